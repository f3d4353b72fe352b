from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample import SPEC

from genprobe import metrics
from genprobe.errors import InputError, RunError
from genprobe.records import digest
from genprobe.runs.spec import Spec, file_signer, signature, versions

FIELDS = [f.name for f in dataclasses.fields(Spec)]


def changed(value: Any) -> list[Any]:
    """Values near to `value`: what a careless signature would not tell apart."""
    match value:
        case str():
            return [value + "x", value[:-1] + "!", value + "|seed:1", value * 9, ""]
        case bool() | int():
            return [value + 1]
        case float():
            return [value + 1e-9]
        case tuple():
            return [(*value, "x"), value[::-1] + value, ("+".join(value) + "+",), ()]
        case dict():
            return [value | {"x": "y"}, dict.fromkeys(value, "?"), {}]
        case None:
            return [0, 5]
    raise AssertionError(f"a new type of field: {value!r}")


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_changes_the_signature(name: str) -> None:
    old = getattr(SPEC, name)
    specs = [dataclasses.replace(SPEC, **{name: new}) for new in changed(old) if new != old]
    signatures = {signature(spec, {}, "rates/1") for spec in [SPEC, *specs]}
    assert len(signatures) == len(specs) + 1


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_shows_in_the_differences(name: str) -> None:
    for new in changed(getattr(SPEC, name)):
        if new != getattr(SPEC, name):
            lines = SPEC.differences(dataclasses.replace(SPEC, **{name: new}))
            assert lines and all(line.startswith(name) and " -> " in line for line in lines)
    assert SPEC.differences(SPEC) == []


def test_equal_specs_have_equal_signatures_through_json() -> None:
    back = Spec.from_json(SPEC.to_json())
    packages = dict(reversed(SPEC.packages.items()))
    turned = dataclasses.replace(back, packages=packages)
    assert back == turned == SPEC
    both = {"yesno": "1:ab|c", "language": "2"}
    assert signature(turned, both, "rates/1") == signature(
        SPEC, dict(reversed(both.items())), "rates/1"
    )


@given(st.text(), st.text())
def test_no_two_texts_look_the_same(a: str, b: str) -> None:
    first, second = (signature(dataclasses.replace(SPEC, model=t), {}, "m/1") for t in (a, b))
    assert (first == second) == (a == b)


def test_it_reads_like_one_line_of_keys_and_values() -> None:
    text = signature(SPEC, {"yesno": "1:ab|c"}, "rates/1")
    pairs = [part.split(":") for part in text.split("|")]
    assert all(len(pair) == 2 and all(pair) for pair in pairs)
    assert pairs[0] == ["metric", "rates/1"]
    assert pairs[-1] == ["version", SPEC.version]
    assert "|model:org/model-1|" in text
    assert "|revision:0123456~" in text
    assert "limit" not in text  # nothing to say


def test_every_metric_is_named_in_full() -> None:
    for metric in metrics.catalogue().values():
        text = signature(SPEC, {}, f"{metric.id}+declared")
        assert text.startswith(f"metric:{metric.id}+declared|")


def test_judges_and_metric_change_the_signature() -> None:
    texts = {
        signature(SPEC, judges, metric)
        for judges in ({}, {"yesno": "1"}, {"yesno": "2"}, {"other": "1"})
        for metric in ("rates/1", "rates/2")
    }
    assert len(texts) == 8


def test_a_folder_on_this_machine_is_not_told() -> None:
    spec = dataclasses.replace(SPEC, model="/home/somebody/models/mine")
    assert "somebody" not in signature(spec, {}, "m/1")


def test_a_file_counts_by_its_bytes(tmp_path: Path) -> None:
    one, two = tmp_path / "a.csv", tmp_path / "b.csv"
    one.write_text("x")
    two.write_text("x")
    given_by_file = {"yesno": "given"}
    assert file_signer([one], given_by_file)("m/1") == file_signer([two], given_by_file)("m/1")
    assert "judge.yesno:given|file:" in file_signer([one], given_by_file)("m/1")
    two.write_text("y")
    assert file_signer([one], {})("m/1") != file_signer([two], {})("m/1")
    with pytest.raises(InputError, match=r"gone\.csv: cannot be read"):
        file_signer([tmp_path / "gone.csv"], {})


@pytest.mark.parametrize("damage", ['"seed":7', '"languages":["en"]', '"limit":null'])
def test_a_spec_is_strict(damage: str) -> None:
    text = SPEC.to_json()
    assert damage in text
    key = damage.split(":")[0]
    with pytest.raises(RunError):
        Spec.from_json(text.replace(damage, f"{key}:true"))
    with pytest.raises(RunError):
        Spec.from_json(text.replace(damage, f'{damage},"key":"secret"'))


def test_versions_are_found_without_importing_anything() -> None:
    code = (
        "import sys; from genprobe.runs.spec import versions; found = versions(('torch', 'transformers'));"
        "assert not {'torch', 'transformers'} & sys.modules.keys(); print(sorted(found))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "['python', 'torch', 'transformers']"
    assert versions()["python"].startswith("3.")


def test_a_revision_without_a_name_keeps_the_hash_of_older_runs() -> None:
    new = (
        "checkpoint",
        "server",
        "thinking",
        "thinking_put",
        "thinking_seen",
        "system",
        "wordings",
        "personas",
        "instruct",
        "data_version",
        "data_licence",
        "data_citation",
    )
    older = {name: value for name, value in vars(SPEC).items() if name not in new}
    assert SPEC.checkpoint == "" and Spec.from_dict(older) == SPEC
    assert SPEC.hash == digest(older)
    named = dataclasses.replace(SPEC, checkpoint="step1000")
    assert named.hash != SPEC.hash and named.who == SPEC.who
    assert (SPEC.shown, named.shown) == (SPEC.revision, "step1000")


def test_checkpoints_stand_in_the_order_of_their_numbers() -> None:
    called = ["step-10", "Step-9", "", "step-100"]
    specs = [dataclasses.replace(SPEC, checkpoint=name) for name in called]
    ordered = sorted(specs, key=lambda spec: spec.order)
    assert [spec.checkpoint for spec in ordered] == ["", "Step-9", "step-10", "step-100"]
