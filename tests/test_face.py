"""The Python face: every command is one call, with the same keywords, and of rows as of runs."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import click
import pandas as pd
import pytest
from click.testing import CliRunner

import genprobe
from genprobe import api, commands, files
from genprobe.api import served
from genprobe.errors import InputError
from genprobe.runs.run import Run

LOGS = Path(__file__).parent / "logs"
GOLDEN = Path(__file__).parent / "golden"


def walk(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from walk(command, (*path, name))
        elif command is not None:
            yield "_".join((*path, name)), command


# What asks a person in the terminal has no function.
COMMANDS = {name: one for name, one in walk(commands.cli) if name != "audit_new"}
# `list` would hide Python's own; `audit FILE` is short for `audit run FILE`.
NAMED = {"list": "list_names", "audit_run": "audit"}
if not hasattr(genprobe, "audit"):
    COMMANDS.pop("audit_run", None)
# What only the command line has: how a result is printed, what exit code it gives, several models
# in one call, and what is said before a model is asked.
PRINTED = {
    "quiet",
    "form",
    "allow_undecided",
    "model",
    "models",
    "dry_run",
    "price",
    "pilot",
    "revision",
}
# Before a run is scored; `score` has it.
SCORED = {"yesno": {"declared"}, "essays": {"declared"}}


def face(command: str) -> Callable[..., Any]:
    return getattr(genprobe, NAMED.get(command, command))  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_a_function_with_its_options_as_keywords(name):
    keywords = inspect.signature(face(name)).parameters
    options = {p.name for p in COMMANDS[name].params if p.expose_value and p.name}
    arguments = {p.name for p in COMMANDS[name].params if isinstance(p, click.Argument)}
    assert options - arguments - PRINTED - SCORED.get(name, set()) - set(keywords) == set()
    # A parameter without a default is an argument of the command, or an option that it needs.
    needed = [
        k for k, p in keywords.items() if p.default is p.empty and p.kind is not p.VAR_KEYWORD
    ]
    must = sum(p.required for p in COMMANDS[name].params)
    assert len(needed) <= must and NAMED.get(name, name) in genprobe.__all__


# --- one name or several

ROWS = [
    {"model": m, "lang": "en", "probe": p, "statement": f"s{n}", "response": r}
    for m in "ab"
    for p in ("agreement", "disagreement")
    for n, r in enumerate(("Yes.", "No.", "No."))
]
SAID = [{"sentence": "Farmers are patient.", "attribute": "patient", "lang": "en"}]
GONE = "gone.csv"  # a name that nothing has
ASKS = ("yesno", "stories", "essays", "choices", "logprob")
# What each function needs besides the value that is tried.
NEEDS: dict[str, dict[str, Any]] = {
    "judge": {"source": ROWS},
    "describe": {"data": [{"id": "1", "lang": "en", "text": "People are kind."}]},
    "dataset_collect": {"pack": "afristereo"},
    "dataset_convert": {"to": None, "from_": "doccano", "out": "no.jsonl"},
    "dataset_diversity": {"data": SAID},
    "dataset_document": {"data": SAID, "about": GONE, "out": "no"},
    "dataset_group": {"data": SAID},
    "dataset_validate_import": {"key": LOGS / "lm-eval"},
    "dataset_validate_keep": {"data": [{"pro": "a", "anti": "b", "lang": "en"}]},
    "classifiers_compare": {"data": [{"lang": "kk", "text": "x", "label": "negative"}]},
    "licence": {"model": "nothing/none"},
    "review_export": {"sources": GONE, "out": "no.csv"},
    "merge": {"out": "no"},
    "peers": {"harness": "lm-eval"},
    "publish": {"runs": GONE, "out": "no"},
    "rejudge": {"run": GONE},
    "augment": {"data": SAID, "model": "nothing/none"},
    "dataset_disambiguate": {"data": SAID, "model": "nothing/none"},
}


def judged() -> list[dict[str, Any]]:
    return list(genprobe.judge(ROWS))


def lists(command: click.Command) -> Iterator[str]:
    """Yield the parameters that take several values, or columns with commas between them."""
    for one in command.params:
        several = getattr(one, "multiple", False) or one.nargs == -1
        if (several or one.name in ("by", "between", "sweep", "instruct")) and one.name:
            yield one.name


def error(call: Callable[[], Any]) -> str:
    with pytest.raises(genprobe.GenprobeError) as found:
        call()
    assert "\n" not in str(found.value)
    return str(found.value)


TOLD_LATER = {("judge", "only"), ("dataset_validate_import", "paths"), ("review_export", "only")}
TOLD_LATER |= {("merge", "runs")}
LISTS = [
    (name, {"folders": "runs"}.get(option, option))
    for name, command in COMMANDS.items()
    for option in lists(command)
    if (name, option) not in {("gate", "max_rise"), ("gate", "max_fall")}
    and option != "model"
    and not name.startswith("audit")
]


@pytest.mark.parametrize(("name", "option"), LISTS)
def test_a_single_name_is_a_list_of_it(name, option, tmp_path):
    needs = dict(NEEDS.get(name, {}))
    if name in ("score", "compare"):
        rows = [row | {"regions": "KZ"} for row in judged()]
        needs = {"sources" if name == "score" else "first": rows}
    if name == "gate":
        needs = {"new": judged()[:6], "against": judged()[6:], "max_rise": {"endorsed": 90}}
    if option in served.Served.__annotations__:
        one, several = (served.options_of({option: given}) for given in ("k=1", ["k=1"]))
        assert one == several != served.options_of({})
        return
    if name in ASKS:
        asked = [api.ask_of(name, None, {option: given}) for given in ("ab", ["ab"])]
        assert asked[0] == asked[1] != api.ask_of(name, None, {})
        return
    if option == "sweep":
        assert list(genprobe.dataset_group(SAID * 3, sweep=0.5)) == list(
            genprobe.dataset_group(SAID * 3, sweep=[0.5])
        )
        return
    if option == "scorers":
        needs = {"sources": shutil.copytree(GOLDEN / "pairs", tmp_path / "pairs")}
    one, several = (
        error(lambda given=given: face(name)(**{**needs, option: given}))
        for given in (GONE, [GONE])
    )
    assert one == several
    if (name, option) in TOLD_LATER:  # something else is wrong first
        assert error(lambda: face(name)(**{**needs, option: 3})) != one
    else:
        assert "gone" in one


# --- what is wrong is one line


def consumed() -> Iterator[Any]:
    rows = iter(ROWS)
    list(rows)
    return rows


WRONG: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "a number": lambda: 3,
    "no number": lambda: float("nan"),
    "bytes": lambda: b"x",
    "no rows": list,
    "no rows of pandas": pd.DataFrame,
    "numbers": lambda: [3],
    "texts": lambda: ["x", "y"],
    "a dict": lambda: {"a": [1]},
    "an empty row": lambda: [{}],
    "a wrong column": lambda: [{"zz": 1}],
    "wrong cells": lambda: [{"sentence": 3, "text": None, "pro": "x", "lang": [1]}],
    "a row that is none": lambda: [ROWS[0], 3],
    "no file": lambda: GONE,
    "a generator that was read": consumed,
    "anything": object,
}
# Functions whose first argument is no table, and those that may be given nothing.
FIRST = dict.fromkeys(ASKS, "data")
MORE: dict[str, dict[str, Any]] = {
    "classifiers_measure": {"data": SAID, "kind": "stories"},
    "classifiers_compare": {"data": SAID},
    "classifiers_train": {"out": "no.toml"},
    "dataset_convert": {"out": "no.json", "to": "label-studio"},
    "dataset_document": {"out": "no", "about": GONE},
    "dataset_validate_export": {"out": "no.csv"},
    "dataset_validate_import": {"key": GONE},
    "dataset_validate_keep": {"votes": [{"item": "a", "rater": "1", "label": "yes"}]},
    "gate": {"against": GONE, "max_rise": {"endorsed": 50}},
    "review_export": {"out": "no.csv"},
    "merge": {"out": "no"},
    "peers": {"harness": "lm-eval"},
    "publish": {"out": "no"},
}
# An empty list of these is none of them, and nothing is wrong then.
NOTHING = {("lint", "no rows"), ("verify", "no rows")}


NO_TABLE = ("selftest", "list", "audit_run", "audit_series")
TABLES = [name for name in COMMANDS if name not in NO_TABLE]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", TABLES)
def test_every_wrong_table_is_one_line(name, wrong):
    if (name, wrong) in NOTHING:
        return
    first = FIRST.get(name, next(iter(inspect.signature(face(name)).parameters)))
    assert error(lambda: face(name)(**{**MORE.get(name, {}), first: WRONG[wrong]()}))


VALID: dict[str, Callable[[], tuple[Any, ...]]] = {
    "read": lambda: ("Yes.",),
    "judge": lambda: (ROWS,),
    "score": lambda: (judged(),),
    "compare": lambda: (judged(),),
    "gate": lambda: (judged()[:6],),
    "report": lambda: (judged(),),
    "describe": lambda: (NEEDS["describe"]["data"],),
    "peers": tuple,
    "dataset_collect": lambda: ("afristereo", GONE),
    "licence": lambda: ("nothing/none",),
    "classifiers_measure": lambda: ("kk-linear",),
    "reproduce": lambda: ("rubia",),
    **dict.fromkeys((*ASKS, "classifiers_compare", "selftest"), tuple),
    **dict.fromkeys(
        ("verify", "lint", "merge", "publish", "rejudge", "dataset_validate_import"),
        lambda: (GONE,),
    ),
    **dict.fromkeys([n for n in COMMANDS if n.startswith("review_")], lambda: (GONE,)),
}
NOT_READ = {"note", "progress", "ask", "say", "meant"}  # functions
RIGHT = {("dataset_group", "sweep", list)}  # a list of a number is right there


@pytest.mark.parametrize("name", [*TABLES, "selftest", "list", "read"])
def test_a_value_of_a_wrong_type_is_one_line(name):
    if name == "list":
        assert error(lambda: genprobe.list_names(3)) == "what: give a text, not int"
        return
    given = VALID.get(name, lambda: (SAID,))()
    for one in list(inspect.signature(face(name)).parameters.values())[len(given) :]:
        if one.name in NOT_READ or one.kind is one.VAR_KEYWORD:
            continue
        for bad in (object(), [3], {"a": object()}):
            if (name, one.name, type(bad)) not in RIGHT:
                asked = {"langs": GONE, "data": "builtin"} if name in ASKS else {}
                assert error(
                    lambda: face(name)(*given, **{**MORE.get(name, {}), **asked, one.name: bad})  # noqa: B023
                ), (name, one.name, bad)


# --- tables instead of runs


def replies(model: str, share: float, size: int = 12) -> Iterator[dict[str, Any]]:
    for at in range(size):
        for probe in ("agreement", "disagreement"):
            hit = Random(f"{model}{at}{probe}").random() < share
            says = "Yes." if hit == (probe == "agreement") else "No."
            about = {"model": model, "lang": "en", "probe": probe, "statement": f"s{at}"}
            yield {**about, "prompt": f"Do you agree that people of group {at} are kind?", "response": says}  # fmt: skip


@pytest.fixture(scope="module")
def three() -> genprobe.Rows:
    """Replies of three models, as `judge` reads them."""
    every = (("a", 0.2), ("b", 0.7), ("c", 0.75))
    return genprobe.judge([row for model, share in every for row in replies(model, share)])


@pytest.fixture(scope="module")
def runs(three: genprobe.Rows, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The same replies as runs."""
    folder = tmp_path_factory.mktemp("face")
    for model in "abc":
        genprobe.judge([row for row in three if row["model"] == model], out=folder / model)
    return [folder / model for model in "abc"]


def figures(scores: genprobe.Scores) -> list[Any]:
    return [(s.metric, s.by, s.value, s.low, s.high, s.n, s.excluded) for s in scores]


def test_rows_of_several_models_are_compared_as_their_runs_are(three, runs):
    found = genprobe.compare(three, metrics="endorsed")
    assert figures(found) == figures(genprobe.compare(runs, metrics="endorsed"))
    assert [s.by["b"] for s in found if s.metric == "difference"] == ["b", "c"]
    assert found.rankings and found.finding and found.finding.title.text
    assert "|rows:" in found[0].signature and "judge.yesno:yesno@" in found[0].signature


@pytest.mark.parametrize("test", ["ks", "components", "differences"])
def test_every_test_reads_rows_as_it_reads_runs(three, runs, test):
    asked = {"test": test, "metrics": "endorsed"}
    assert figures(genprobe.compare(three, **asked)) == figures(genprobe.compare(runs, **asked))


def test_rows_are_gated_as_runs_are(three, runs, tmp_path):
    rows = [[row for row in three if row["model"] == model] for model in "abc"]
    limits: dict[str, Any] = {
        "max_rise": {"endorsed": 60, "refusal": 60, "unclear": 60, "failed": 60}
    }
    for new, old in ((1, 0),):
        ours = genprobe.gate(pd.DataFrame(rows[new]), against=rows[old], **limits)
        theirs = genprobe.gate(runs[new], against=runs[old], **limits)
        assert ours.verdict == theirs.verdict
        assert [c.told() for c in ours.checks] == [c.told() for c in theirs.checks]
    files.write_rows(tmp_path / "old.csv", rows[0])
    mixed = genprobe.gate(runs[1], against=tmp_path / "old.csv", **limits)
    assert mixed.checks and mixed.old.endswith("old.csv")


def test_a_gate_needs_one_model(three):
    asked = {"against": three, "max_rise": {"endorsed": 15}}
    told = error(lambda: genprobe.gate(three, **asked))
    assert told == "against: holds replies of several models (a, b, c); give those of one"


def test_rows_that_were_asked_otherwise_are_not_compared(three):
    one = [row for row in three if row["model"] == "a"]
    other = [row | {"prompt": "Is it so?"} for row in three if row["model"] == "b"]
    assert "asked differently in 24 of 24 rows" in error(lambda: genprobe.compare(one, other))
    drawn = [[r | {"temperature": t} for r in one] for t in (0, 1)]
    assert "(temperature: 0 and 1)" in error(lambda: genprobe.compare(*drawn))
    read = [row | {"reader": "yesno@0"} for row in one]
    assert "read by different judges 'yesno'" in error(lambda: genprobe.compare(one, read))
    told: list[str] = []
    genprobe.compare(one, [r for r in three if r["model"] == "b"][:20], note=told.append)
    assert "rows 1: 4 rows of 24 not in rows 2" in told


def test_rows_without_a_statement_are_not_paired_by_their_place(three):
    one, other = (
        [{n: v for n, v in row.items() if n not in ("statement", "prompt")} for row in three if row["model"] == model]
        for model in "ab"
    )  # fmt: skip
    assert "no unit counts for both" in error(lambda: genprobe.compare(one, other))
    nameless = [*one, *({**row, "model": None} for row in other)]
    assert "24 rows without a model" in error(lambda: genprobe.compare(nameless))


def test_outcomes_that_were_exported_are_compared(runs, tmp_path):
    for run, suffix in zip(runs, (".csv", ".parquet", ".jsonl"), strict=True):
        genprobe.score(run, export=tmp_path / f"{run.name}{suffix}")
    paths = sorted(tmp_path.glob("*.*"))
    want = figures(genprobe.compare(runs, metrics="endorsed"))
    assert figures(genprobe.compare(paths, metrics="endorsed")) == want
    done = CliRunner().invoke(
        commands.cli, ["compare", *map(str, paths[:2]), "--metric", "endorsed", "-f", "json"]
    )
    assert done.exit_code == 0 and '"ranking"' in done.output
    done = CliRunner().invoke(
        commands.cli,
        ["gate", str(paths[1]), "--against", str(paths[0]), "--max-rise", "endorsed=60"],
    )
    assert done.exit_code in (0, 1, 4) and "endorsed" in done.output


SLOW = [pytest.param(task, marks=pytest.mark.slow) for task in ("yesno", "stories")]


@pytest.mark.parametrize("task", ["essays", "choices", "pairs", *SLOW])
def test_a_table_of_outcomes_of_every_task_is_read_again(task, tmp_path):
    run = shutil.copytree(GOLDEN / task, tmp_path / task)
    whole = genprobe.score(run, export=tmp_path / "all.csv")
    found = genprobe.score(tmp_path / "all.csv")
    key = str  # a cell in words
    assert sorted(figures(found), key=key) == sorted(figures(whole), key=key)


def test_a_page_of_rows_shows_the_labels_that_they_have(three, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    turned = [
        row | {"answer": "yes" if row["probe"] == "agreement" else "no", "reader": "people"}
        for row in three
        if row["model"] == "a"
    ]
    told: list[str] = []
    page = genprobe.report(turned, note=told.append)
    assert "<title>a 100.0 %" in page and "judge.yesno:people" in page
    assert list(tmp_path.iterdir()) == [] and not any("/tmp" in line for line in told)
    told_of = error(lambda: genprobe.report([{"item": "a", "pro": -1.0, "anti": -2.0}]))
    assert "response" in told_of or "lang" in told_of


@pytest.mark.parametrize("log", ["inspect.json", "lm-eval", "promptfoo.json"])
def test_a_log_is_scored_and_shown_as_its_run_is(log, tmp_path):
    source = str(LOGS / log)
    genprobe.judge(source, out=tmp_path / "run")
    folder = tmp_path / "run"
    runs = [folder] if (folder / "run.json").exists() else sorted(folder.iterdir())
    told: list[str] = []
    by = {"metrics": ["yes", "endorsed"], "by": ["model", "lang", "probe"]}
    ours = {(*s.by.values(), s.metric): s.value for s in genprobe.score(source, note=told.append, **by)}  # fmt: skip
    theirs = {(*s.by.values(), s.metric): s.value for s in genprobe.score(runs, **by)}
    assert {k[-3:]: v for k, v in ours.items()} == {k[-3:]: v for k, v in theirs.items()}
    assert any("no judge has read these replies; now read by yesno" in line for line in told)
    if log == "promptfoo.json":
        assert genprobe.report(source, tmp_path / "page.html").startswith("<!DOCTYPE html>")
        assert (tmp_path / "page.html").exists()


# --- what a page of a table shows is what the table gives


def _labelled(**more):
    return [
        {"model": "m", "lang": "en", "probe": "agreement", "kind": "answer", "statement": f"s{i}"}
        | {"text": f"Women are number {i}.", "response": "Yes.", "answer": "yes"}
        | {name: value(i) if callable(value) else value for name, value in more.items()}
        for i in range(20)
    ]


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (_labelled(revision=lambda i: f"v{i % 2}"), "several revisions"),
        (_labelled(decode=lambda i: ("free", "choice")[i % 2]), "several readings"),
        (_labelled(refused=lambda i: i < 5), "refusal would be 0.0 % of 20, and is 25.0 % of 20"),
    ],
)
def test_a_table_that_a_page_would_show_otherwise_is_refused(rows, why):
    with pytest.raises(InputError, match=why):
        genprobe.report(rows)


def test_wordings_without_prompts_keep_their_replies(tmp_path):
    rows = [
        one | {"wording": name, "response": said, "answer": said.lower()}
        for name, said in (("w1", "yes"), ("w2", "no"), ("w3", "no"))
        for one in _labelled()
    ]
    assert genprobe.report(rows)
    run = [{k: v for k, v in one.items() if k not in ("answer", "kind")} for one in rows]
    genprobe.judge(run, out=tmp_path / "run")
    found = genprobe.score(tmp_path / "run", metrics="endorsed", by="wording")
    assert [(s.by["wording"], s.value, s.n) for s in found] == [
        ("w1", 1.0, 20),
        ("w2", 0.0, 20),
        ("w3", 0.0, 20),
    ]


def test_a_role_in_another_spelling_is_the_role(tmp_path):
    told = []
    rows = [one | {"role": role} for role in ("Contrast", "a") for one in _labelled()[:1]]
    for number, one in enumerate(rows):
        one |= {"statement": f"r{number}", "text": f"Men are number {number}."}
        del one["answer"], one["kind"]
    genprobe.judge(rows, out=tmp_path / "run", note=told.append)
    assert [s.role for s in Run.open(tmp_path / "run").statements()] == ["contrast", "original"]
    assert any("role 'a' counts as original" in str(line) for line in told)
