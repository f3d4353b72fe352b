"""`import genprobe`: its names, scores and runs that show themselves, a run as a data set."""

from __future__ import annotations

import ast
import dataclasses
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sample import REQUESTS, SPEC, Echo, Scripted, start

import genprobe
from genprobe.analysis import score
from genprobe.engines import Sampling
from genprobe.judges import yesno
from genprobe.records import Failure, Response, Score
from genprobe.render import formats
from genprobe.render.notebook import Run
from genprobe.render.scores import Scores
from genprobe.runs import card as dataset_card
from genprobe.tasks.pipeline.generate import generate
from genprobe.tasks.pipeline.judge import judge

ROOT = Path(__file__).parents[1]
GREEDY = Sampling(temperature=0.0, top_p=1.0, max_tokens=64)

# --- the names


def test_importing_takes_nothing_heavy():
    heavy = "{'pandas', 'numpy', 'torch', 'click', 'importlib.metadata'} & sys.modules.keys()"
    code = f"import sys, genprobe; dir(genprobe); print(*({heavy}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_every_public_name_is_what_it_is_said_to_be():
    assert sorted(genprobe.__all__) == sorted(["__version__", *genprobe._PUBLIC])
    assert set(genprobe.__all__) <= set(dir(genprobe))
    tree = ast.parse(Path(genprobe.__file__).read_text())
    typed = {
        alias.asname or alias.name: f"{node.module.removeprefix('genprobe.')}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and node.module
        and node.module.startswith("genprobe.")
        and node.module != "genprobe._version"
        for alias in node.names
    }
    assert typed == genprobe._PUBLIC
    assert (Path(genprobe.__file__).parent / "py.typed").exists()
    for name in genprobe._PUBLIC:
        found = getattr(genprobe, name)
        assert callable(found) and (found.__doc__ or "").strip(), name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        genprobe.nothing  # noqa: B018


def test_a_name_is_the_function_whatever_was_imported_before():
    """Three modules have the name of a command, and importing one sets it in its package."""
    code = (
        "import genprobe.report.words, genprobe.lint, genprobe.selftest, genprobe;"
        "from genprobe import lint, report, selftest; import genprobe.report as again;"
        "print(*(type(f).__name__ for f in (lint, report, selftest, again, genprobe.report)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"function"}


def test_dir_shows_what_is_public_and_nothing_else():
    assert dir(genprobe) == sorted(genprobe.__all__)


@pytest.mark.parametrize("name", sorted(genprobe._GOING))
def test_a_name_that_goes_still_works_and_says_what_to_use(name):
    with pytest.warns(DeprecationWarning, match=f"{name} goes with the next minor version; use "):
        assert callable(getattr(genprobe, name))
    new = re.match(r"\w+", genprobe._GOING[name][1])[0]
    assert new in genprobe.__all__ and name not in genprobe.__all__


def test_python_runs_it_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "genprobe", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("genprobe, version ")


def test_the_page_says_where_every_name_is():
    page = (ROOT / "docs" / "python.md").read_text()
    reference = (ROOT / "docs" / "api.md").read_text()
    verbs = [name for name in genprobe._PUBLIC if name.islower()]
    assert [name for name in verbs if not re.search(rf"`{name}[`(]", page)] == []
    assert [name for name in verbs if f":: genprobe.{name}\n" not in reference] == []


# --- scores

HOSTILE = "<script>alert(1)</script>&\x1b[31m\u202e\ud800\u2028'\""


def made(metric: str = "yes", value: float | None = 0.25, **more: Any) -> Score:
    row: dict[str, Any] = {"by": {"lang": "mr"}, "low": 0.1, "high": 0.5, "n": 48}
    row |= {"excluded": {"failed": 2}, "bounds": None, "signature": "metric:yes|model:m"}
    if value is None:
        row |= {"low": None, "high": None, "n": 0}
    return Score(metric=metric, value=value, **row | more)


def test_a_frame_has_a_row_for_every_score():
    scores = Scores(
        [
            made(),
            made("endorsed", None, by={"probe": "agreement", "n": 3, "old": None}),
            made("recognised", bounds=[0.2, 0.6], by={"lang": "kk"}),
        ]
    )
    table = scores.frame()
    assert list(table.columns) == [
        *("metric", "lang", "probe", "n_data", "old", "value", "low", "high", "n", "excluded"),
        *("bound_low", "bound_high", "signature"),
    ]
    assert table["value"].dtype == table["bound_low"].dtype == "float64"
    assert table["n"].dtype == "int64" and table["n"].tolist() == [48, 0, 48]
    assert table["value"].isna().tolist() == [False, True, False]
    assert table["excluded"].tolist() == [{"failed": 2}] * 3
    assert table["n_data"].tolist()[1] == 3 and table["lang"].isna().tolist() == [
        False,
        True,
        False,
    ]
    assert table[["bound_low", "bound_high"]].to_numpy()[2].tolist() == [0.2, 0.6]
    empty = Scores().frame()
    assert len(empty) == 0 and "value" in empty and "readers_low" not in empty


def test_a_frame_of_bands_says_which_reader_makes_each_end():
    readings = {"ours": 0.25, "strict": None, "shades2025": 0.75}
    table = Scores([made(readings=readings), made("conflict")]).frame()
    row = table.iloc[0]
    assert row["readings"] == readings
    assert (row["readers_low"], row["readers_low_by"]) == (0.25, "ours")
    assert (row["readers_high"], row["readers_high_by"]) == (0.75, "shades2025")
    assert pd.isna(table.iloc[1]["readers_low"]) and pd.isna(table.iloc[1]["readers_low_by"])


def test_scores_show_themselves_as_the_table_of_the_terminal():
    scores = Scores([made(), made("no", 0.5)])
    assert repr(scores) + "\n" == formats.render(scores, "table")
    assert repr(Scores()) == "no scores" and Scores()._repr_html_() == "<p>no scores</p>"
    assert scores == [made(), made("no", 0.5)] and isinstance(scores, list)


class Read(HTMLParser):
    """The cells of each table, and the tags."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: set[str] = set()
        self.text: list[str] = []
        self.cell = False
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.tags.add(tag)
        assert not any(name.startswith("on") for name, _ in attributes)
        if tag == "tr":
            self.rows.append([])
        self.cell = tag in ("td", "th")
        if self.cell:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self.cell = self.cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if self.cell:
            self.rows[-1][-1] += data.strip()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Replies with half a surrogate pair, an empty one, one that is missing and one that failed."""
    folder = tmp_path_factory.mktemp("python") / "run"
    replies = ["Yes, \ud800 they do", "", "No.\u2028\u0000", "I do not agree", None]

    def script(request: Any) -> Response | Failure:
        reply = replies[at] if (at := REQUESTS.index(request)) < len(replies) else "Yes"
        if reply is None:
            return Failure(request.id, "engine", "half \ud83d a pair", 1)
        return Response(request.id, reply, "stop", "\ud83d", 3, None)

    with start(folder) as made_run:
        generate(made_run, Scripted(script), GREEDY)
        judge(made_run, [yesno.make(), Echo()])
    return made_run


def test_html_holds_the_same_figures_as_the_table(run):
    scores = score.score(run, by="probe", band=True)
    page = Read(scores._repr_html_())
    words = " ".join(formats.render(scores, "table", 1000).split("Signature")[0].split())
    head, *body = page.rows
    assert head[:3] == ["probe", "replies", "yes"] and head.count("readers") == 4
    for row in body:
        assert " ".join(cell for cell in row if cell) in words
    for line in formats.render(scores, "table").split("\n\n")[-1].splitlines():
        assert line.split("Signature of ")[-1].split(": metric")[0] in "".join(page.text)


def test_html_is_safe_whatever_a_name_holds():
    scores = Scores(
        [made(by={HOSTILE: HOSTILE}), made(HOSTILE, by={HOSTILE: "b"}, signature=HOSTILE)]
    )
    html = scores._repr_html_()
    assert "<script" not in html and "\x1b" not in html and "\u202e" not in html
    assert Read(html).tags <= {"div", "style", "table", "caption", "b", "thead", "tbody", "tr", "th", "td", "p", "details", "summary", "code"}  # fmt: skip
    html.encode("utf-8")
    run = Run(Path(f"/{HOSTILE}"), dataclasses.replace(SPEC, model=HOSTILE))
    assert "\x1b" not in repr(run)


def test_a_long_table_is_cut_in_html_and_says_so():
    scores = Scores([made(by={"item": f"i{n}"}) for n in range(250)])
    html = scores._repr_html_()
    assert html.count("<tr>") == 201 and "50 rows more" in html


# --- a run


def test_a_run_is_a_path_and_shows_itself(run):
    assert os.fspath(run) == str(run.folder) and Run.open(run).spec == run.spec
    assert repr(run) == f"<Run {run.folder}: yesno, org/model-1, en>"
    page = Read(run._repr_html_())
    assert ["answered", "5 of 6 requests"] in page.rows and ["read by", "echo, yesno"] in page.rows


def test_one_source_or_several_one_name_or_several(run):
    one = score.score(run, metrics="yes", by="probe")
    assert one == score.score([str(run.folder)], metrics=["yes"], by=["probe"])
    assert one == score.score(run.folder, metrics=("yes",), by=("probe",)) and len(one) == 2
    assert isinstance(one, Scores)
    assert len(run.outcomes()) == 6 and list(run.outcomes()["left_out"]).count("failed") == 1


def test_one_language_is_a_list_of_it(tmp_path):
    """A text is no list of letters."""
    run = genprobe.yesno(langs="en", probes="agreement", limit=1, out=tmp_path / "one")
    assert (run.spec.languages, run.spec.probes) == (("en",), ("agreement",))


# --- a data set


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The library, offline, with its cache in a folder of the test."""
    pytest.importorskip("datasets", minversion="4.7")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HOME", str(tmp_path_factory.mktemp("hf")))
        patch.setenv("HF_DATASETS_OFFLINE", "1")
        import datasets

        patch.setattr(datasets.config, "HF_DATASETS_OFFLINE", True)
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))
        datasets.disable_progress_bars()
        yield datasets


def whole(value: Any) -> Any:
    """What datasets makes of a value: the first half of a surrogate pair is dropped."""
    if isinstance(value, str):
        return re.sub("[\ud800-\udfff]", "", value)
    if isinstance(value, list | tuple):
        return [whole(part) for part in value]
    return {k: whole(v) for k, v in value.items()} if isinstance(value, dict) else value


def test_a_run_opens_as_a_data_set(run, datasets):
    score.score(run, band=True, save=True)
    assert set(datasets.get_dataset_config_names(str(run.folder))) == {
        *("statements", "requests", "responses", "failures", "judgments-echo", "judgments-yesno"),
        "scores",
    }
    records = {
        "statements": run.statements(),
        "requests": run.requests(),
        "responses": run.responses(),
        "failures": run.failures(),
        "judgments-yesno": run.judgments("yesno"),
        "judgments-echo": run.judgments("echo"),
        "scores": run.scores(),
    }
    for name, rows in records.items():
        found = datasets.load_dataset(str(run.folder), name, split="train").to_list()
        # A field that is left out where it is empty is none to `datasets`.
        want = [whole(vars(row)) for row in rows]
        want = [{k: None if v == {} and k == "facets" else v for k, v in w.items()} for w in want]
        if name.startswith("judgments-"):  # the name of the file is that of the judge
            want = [{k: v if k != "judge" and v else None for k, v in w.items()} for w in want]
        assert len(found) == len(want) > 0, name
        for one, other in zip(found, want, strict=True):
            assert one.keys() == other.keys()
            for field in one:
                assert one[field] == (pytest.approx(other[field], abs=1e-9) if name == "scores" and field != "by" and other[field] is not None else other[field]), (name, field)  # fmt: skip
    assert datasets.load_dataset(str(run.folder), split="train").column_names[:2] == [
        "request",
        "text",
    ]


def test_outcomes_are_a_data_set_too(run, datasets):
    score.score(run)
    file = str(run.folder / "outcomes.parquet")
    found = datasets.load_dataset("parquet", data_files=file, split="train")
    table = run.outcomes()
    texts = ("text", "request", "prompt", "response", "thought", "evidence")
    assert found.column_names == [*(c for c in table if c not in texts), "seal"]
    assert found["answer"][:] == [None if pd.isna(a) else a for a in table["answer"]]
    assert str(found.features["says"].dtype) == "bool" and found.features["sample"].dtype == "int64"


def test_files_without_rows_are_no_configuration_and_break_nothing(datasets, tmp_path):
    folder = tmp_path / "run"
    with start(folder) as run:
        pass
    assert (folder / "responses.jsonl").stat().st_size == 0
    names = datasets.get_dataset_config_names(str(folder))
    assert set(names) == {"statements", "requests"}
    assert datasets.load_dataset(str(folder), "requests", split="train").num_rows == 6
    judge(run, [yesno.make()])  # judges nothing
    assert set(datasets.get_dataset_config_names(str(folder))) == set(names)


def configurations(folder: Path) -> list[str]:
    lines = (folder / dataset_card.NAME).read_text().splitlines()
    return [json.loads(line[2:])["config_name"] for line in lines if line.startswith("- {")]


def test_the_card_is_written_again_when_something_is_added(tmp_path):
    with start(tmp_path / "run") as run:
        run.append(Response(REQUESTS[0].id, "Yes", "stop", "", None, None))
    assert configurations(run.folder) == ["statements", "requests", "responses"]
    judge(run, [yesno.make()])
    assert configurations(run.folder)[-1] == "judgments-yesno"
    run.write_scores([made()])
    assert configurations(run.folder)[-1] == "scores"
    with start(run.folder) as again:
        again.append(Failure(REQUESTS[1].id, "engine", "", 1))
    assert "failures" in configurations(run.folder)
    (run.folder / "judgments" / "yesno.jsonl").unlink()
    run.write_scores([])
    assert "judgments-yesno" not in configurations(run.folder)


def test_the_card_warns_and_is_safe_text(tmp_path):
    name = "org/mödel\n---\nlicense: mit\n<b>`x`"
    page = dataset_card.text(tmp_path, dataclasses.replace(SPEC, model=name, data="shades"))
    assert page.isascii() and page.count("\n---\n") == 1
    from huggingface_hub import DatasetCard

    data = DatasetCard(page).data
    assert data.license == "other" and data.pretty_name.startswith("genprobe yesno, org/m")
    assert "Content warning" in page and "never for training" in page
    assert "do not publish it" in page and "`shades`" in page and "<b>" not in page
    builtin = dataset_card.text(tmp_path, SPEC)
    assert "Apache-2.0" in builtin and "do not publish" not in builtin


def test_verify_knows_the_card_and_a_run_without_one_is_whole(run):
    assert run.verify() == []
    card = run.folder / dataset_card.NAME
    text = card.read_text()
    card.unlink()
    assert Run.open(run.folder).verify() == [] and len(Run.open(run.folder).outcomes()) == 6
    left = run.folder / "README.md.tmp"
    left.write_text("cut off")
    assert any("README.md.tmp" in problem for problem in run.verify())
    left.unlink()
    card.write_text(text)


def test_stored_scores_of_a_review_have_their_notes_in_a_fresh_interpreter():
    """Nothing that corrects rates is imported where a notebook opens a run."""
    code = (
        "import sys; from genprobe.metrics import shown; "
        "assert 'genprobe.review.correction' not in sys.modules; print(shown('ppi').note)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "report ppi" in said.stdout
