"""The error band: what other readers make of the same replies, counted by hand here."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from sample import REQUESTS, SPEC, STATEMENTS, Scripted, start

from genprobe import commands, files, text
from genprobe.analysis import score as counting
from genprobe.analysis.band import RATES, Readings
from genprobe.engines import Sampling
from genprobe.errors import InputError
from genprobe.judges import Item, probability, yesno
from genprobe.records import LogProb, Request, Response, Score
from genprobe.render import formats
from genprobe.render.notebook import Run
from genprobe.resources import packs, registry
from genprobe.review import collect
from genprobe.runs import run as store
from genprobe.runs.spec import statements_hash
from genprobe.tasks.pipeline.generate import generate
from genprobe.tasks.pipeline.judge import judge, judge_file
from genprobe.tasks.pipeline.plan import plan

SHADES = Path(__file__).parents[2] / "shared" / "data" / "shades" / "responses-dev.parquet"
GREEDY = Sampling(temperature=0.0, top_p=1.0, max_tokens=64)

# --- the strict reader


def strict(reply: str, lang: str = "en", prompt: str = "") -> str:
    return yesno.make("strict")(Item(lang, "agreement", prompt, reply)).label


@pytest.mark.parametrize(
    ("lang", "reply", "label"),
    [
        ("en", "Yes", "yes"),
        ("en", "  **NO**, I don't.", "no"),
        ("en", "“Yes.”", "yes"),
        ("en", "No one is like that.", "no"),  # its fault: it reads one word
        ("en", "Well, yes", "ambiguous"),
        ("en", "I agree.", "ambiguous"),
        ("en", "Yesterday", "ambiguous"),
        ("en", "no-one", "ambiguous"),
        ("en", "1. Yes", "ambiguous"),
        ("en", "Oui", "ambiguous"),
        ("en", "", "ambiguous"),
        ("en", "?! 🙂", "ambiguous"),
        ("de", "Yes", "ambiguous"),  # English is another language
        ("de", "Nein, das ist falsch", "no"),
        ("fr", "Non-violence", "ambiguous"),
        ("es", "Si\u0301, claro", "yes"),
        ("en", "ＮＯ！", "no"),
        ("zh", "是的，我同意", "yes"),
        ("zh", "不是。", "no"),
        ("zh", "是否如此", "ambiguous"),  # a run of ideographs is one word
        ("zh", "是刻板印象", "ambiguous"),
        ("ar", "نعم، أوافق", "yes"),
        ("mr", "होय", "yes"),
    ],
)
def test_strict_reads_the_first_word_of_the_language(lang, reply, label):
    assert strict(reply, lang) == label


@pytest.mark.parametrize("lang", registry.names("languages"))
def test_strict_knows_the_words_that_are_asked_for_and_removes_the_echo(lang):
    pack = packs.load_pack()
    prompt = pack.wordings[lang]["agreement"].ask("X Y Z.")
    for answer, word in pack.answers[lang].items():
        assert strict(f"{word}.", lang) == answer
        assert strict(f"{prompt}\n{word}.", lang, prompt) == answer
    assert strict(prompt, lang, prompt) == "ambiguous"


@given(st.sampled_from(registry.names("languages")), st.sampled_from(["yes", "no"]), st.text())
def test_strict_looks_at_nothing_behind_the_first_word(lang, answer, tail):
    word = packs.load_pack().answers[lang][answer]
    assert strict(f"{word}. {tail}", lang) == answer


@given(st.text(max_size=60), st.sampled_from(["en", "hi", "zh"]))
def test_strict_answers_with_a_word_of_its_list_or_not_at_all(reply, lang):
    verdict = yesno.make("strict")(Item(lang, "agreement", "", reply))
    if verdict.label == "ambiguous":
        assert verdict.evidence == "" and verdict.fields["kind"] in ("offtopic", "empty")
    else:
        language = packs.load_language(lang)
        listed = language.words[verdict.label] + language.words[f"{verdict.label}_alone"]
        folded = text.replace(text.normalise(verdict.evidence), language.fold)
        assert folded in {
            text.replace(phrase, language.fold)
            for pattern in listed
            for phrase, _ in text.plain_phrases(pattern)
        }


def test_strict_is_a_parser_and_an_unknown_one_is_told():
    assert yesno.make("strict").signature.startswith("strict@1.")
    with pytest.raises(InputError, match=r"unknown parser 'stric'; did you mean 'strict'"):
        yesno.make("stric")
    hostile = "a" * 1_000_000 + " yes"
    assert strict(hostile) == "ambiguous" and strict("\u0301" * 1_000_000) == "ambiguous"


# --- a run

# To agreement and disagreement of three statements; each reader differs from each other one.
REPLIES = ["Yes.", "I agree.", "Similarly, no", "No one agrees", "I do not agree", "Hm \ud800 da"]


def by_hand(replies: list[str], reader: str, requests: list[Request] = REQUESTS) -> dict[str, float | None]:  # fmt: skip
    """Each rate over all requests, by plain loops."""
    judge_ = yesno.make("" if reader == "ours" else reader)
    labels = [
        judge_(Item(r.lang, r.probe, r.messages[-1]["content"], text.whole(reply))).label
        for r, reply in zip(requests, replies, strict=True)
    ]
    found: dict[str, float | None] = {
        answer: labels.count(answer) / len(labels) for answer in ("yes", "no", "ambiguous")
    }
    endorses = {"agreement": "yes", "disagreement": "no"}
    clear = [(r, label) for r, label in zip(requests, labels, strict=True) if label != "ambiguous"]
    hits = sum(label == endorses[r.probe] for r, label in clear)
    found["endorsed"] = hits / len(clear) if clear else None
    return found


def make(folder: Path, replies: list[str] = REPLIES, parser: str = "") -> Run:
    script = dict(zip((r.id for r in REQUESTS), replies, strict=True))
    with start(folder) as run:
        engine = Scripted(lambda r: Response(r.id, script[r.id], "stop", "", None, None))
        generate(run, engine, GREEDY)
        judge(run, [yesno.make(parser)])
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make(tmp_path_factory.mktemp("band") / "run")


def rates(scores: list[Score]) -> dict[str, Score]:
    return {s.metric: s for s in scores if s.metric in RATES}


def everything(folder: Path) -> str:
    kept = [p for p in sorted(folder.rglob("*.json*")) if not p.name.startswith(("scores", "outc"))]
    return hashlib.sha256(b"".join(p.read_bytes() for p in kept)).hexdigest()


def test_the_band_is_that_of_plain_loops_and_nothing_on_the_disk_moves(run):
    before = everything(run.folder)
    found = rates(counting.score([run.folder], by=["model"], band=True))
    assert set(found) == {"yes", "no", "ambiguous", "endorsed"}
    for metric, score in found.items():
        assert score.readings == {
            reader: by_hand(REPLIES, reader)[metric] for reader in ("ours", "strict", "shades2025")
        }
        assert score.value == score.readings["ours"]
        assert score.band == (min(score.readings.values()), max(score.readings.values()))
    assert len(set(found["yes"].readings.values())) == 3, "replies that all readers read alike"
    assert everything(run.folder) == before and run.verify() == []


def test_by_cells_and_without_the_band(run):
    cells = counting.score([run.folder], by=["probe"], metrics=["yes"], band=True)
    for at, score in enumerate(cells):
        mine = REQUESTS[at::2]
        want = {
            n: by_hand(REPLIES[at::2], n, mine)["yes"] for n in ("ours", "strict", "shades2025")
        }
        assert score.by == {"probe": mine[0].probe} and score.readings == want
    plain = counting.score([run.folder], by=["probe"], metrics=["yes"])
    assert [s.readings for s in plain] == [None, None]
    assert [dataclasses.replace(s, readings=None, signature=p.signature) for s, p in zip(cells, plain, strict=True)] == plain  # fmt: skip


def test_the_signature_names_the_band_and_only_that_of_rates(run):
    scores = counting.score([run.folder], metrics=["yes", "conflict"], by=["model"], band=True)
    plain = counting.score([run.folder], metrics=["yes", "conflict"], by=["model"])
    version = Readings(run.outcomes(), run.judges()["yesno"]).version
    assert scores[0].signature == plain[0].signature.replace(
        "anchored95", f"anchored95+{version}", 1
    )
    assert scores[1] == plain[1]


def test_a_run_read_by_another_reader(tmp_path):
    other = make(tmp_path / "shades", parser="shades2025")
    found = rates(counting.score([other.folder], by=["model"], band=True))["yes"]
    assert list(found.readings) == ["shades2025", "ours", "strict"]
    assert found.value == found.readings["shades2025"] == by_hand(REPLIES, "shades2025")["yes"]
    # Labels of a version of ours that is gone: they have a place of their own in the band.
    with Run.open(other.folder) as older:
        gone = [dataclasses.replace(j, label="no") for j in older.judgments("yesno")]
        older.write_judgments("yesno", "yesno@0+12345678", gone)
    found = rates(counting.score([other.folder], by=["model"], band=True))["yes"]
    assert list(found.readings) == ["given", "ours", "strict", "shades2025"]
    assert found.value == found.readings["given"] == 0.0 == found.band[0]


def test_failed_missing_and_unjudged_replies_count_for_no_reader(tmp_path):
    with start(tmp_path / "run") as run:
        for request, reply in zip(REQUESTS[:4], REPLIES, strict=False):
            run.append(Response(request.id, reply, "stop", "", None, None))
        judge(run, [yesno.make()])
    found = rates(counting.score([run.folder], by=["model"], band=True))["no"]
    want = by_hand(REPLIES[:4], "strict", REQUESTS[:4])["no"]
    assert found.readings["strict"] == want and found.n == 4


def test_a_band_is_not_split_by_what_a_reader_says(run):
    with pytest.raises(InputError, match="'kind' depends on the reading"):
        counting.score([run.folder], metrics=["yes"], by=["kind"], band=True)


# --- several decodes


@pytest.fixture(scope="module")
def decoded(tmp_path_factory: pytest.TempPathFactory) -> Run:
    decodes = ("free", "choice", "logprob")
    requests = plan(STATEMENTS, packs.load_pack(), ["agreement"], 7, 1, decodes)
    spec = dataclasses.replace(SPEC, probes=("agreement",), decode=decodes)
    assert spec.statements == statements_hash(STATEMENTS)

    def script(request: Request) -> Response | LogProb:
        at = int(request.statement[1:])
        if request.decode == "logprob":
            parts = [
                {"answer": a, "text": a, "tokens": [n], "logprobs": [-1.0 - (n == at)]}
                for n, a in enumerate(("yes", "no"))
            ]
            return LogProb(request.id, parts, "", 1)
        reply = ["Yes", "I agree", "Never mind"][at] if request.decode == "free" else "no"
        return Response(request.id, reply, "stop", "", None, None)

    folder = tmp_path_factory.mktemp("decoded") / "run"
    with Run.start(folder, spec, STATEMENTS, requests) as run:
        generate(run, Scripted(script), GREEDY)
        judge(run, [yesno.make(), probability.make()])
    return run


def test_choice_and_probability_are_readings_of_the_same_questions(decoded):
    scores = counting.score([decoded.folder], metrics=["yes"], by=["probe"], band=True)
    want = {"ours": 2 / 3, "strict": 1 / 3, "shades2025": 1 / 3, "choice": 0.0, "logprob": 1 / 3}
    assert [s.by["decode"] for s in scores] == ["free", "choice", "logprob"]
    assert [s.value for s in scores] == pytest.approx([2 / 3, 0, 1 / 3])
    for score in scores:
        assert score.readings == pytest.approx(want) and score.band == pytest.approx((0, 2 / 3))
        assert score.by_reading(score.band[0]) == "choice"
        assert score.by_reading(score.band[1]) == "ours"
    notes = formats.render(scores, "table")
    assert "the same questions asked in another way (choice, logprob)" in notes
    # Asked for by name, the decode is a column like others.
    named = counting.score([decoded.folder], metrics=["yes"], by=["decode", "probe"], band=True)
    assert [s.readings for s in named] == [s.readings for s in scores]


def test_a_run_of_one_reading_has_no_band(tmp_path):
    requests = plan(STATEMENTS, packs.load_pack(), ["agreement"], 7, 1, ["choice"])
    spec = dataclasses.replace(SPEC, probes=("agreement",), decode=("choice",))
    with Run.start(tmp_path / "run", spec, STATEMENTS, requests) as run:
        generate(run, Scripted(lambda r: Response(r.id, "no", "stop", "", None, None)), GREEDY)
        judge(run, [yesno.make()])
    with pytest.raises(InputError, match=r"run: one reading only \(choice\)"):
        counting.score([run.folder], band=True)


# --- files


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    files.write_rows(path, rows)
    return path


ROWS = [
    {"lang": r.lang, "probe": r.probe, "prompt": r.messages[-1]["content"], "response": reply}
    for r, reply in zip(REQUESTS, REPLIES, strict=True)
]


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_a_file_of_replies_is_read_and_banded(tmp_path, suffix):
    source = write(tmp_path / f"replies.{suffix}", ROWS)
    found = rates(counting.score([source], by=["lang"], band=True))
    assert list(found["yes"].readings) == ["ours", "strict", "shades2025"]
    for metric, score in found.items():
        assert score.readings == {n: by_hand(REPLIES, n)[metric] for n in score.readings}
    assert f"judge.yesno:{yesno.make().signature}|file:" in found["yes"].signature


def test_a_file_that_is_judged_has_its_own_answers_too(tmp_path):
    out = tmp_path / "judged.jsonl"
    judge_file(write(tmp_path / "r.jsonl", ROWS), [yesno.make("strict")], out)
    found = rates(counting.score([out], by=["lang"], band=True))["yes"]
    assert list(found.readings) == ["strict", "ours", "shades2025"]  # by the column `reader`
    assert found.value == found.readings["strict"]
    assert found.value != found.readings["ours"]


def test_rows_without_a_reply_are_left_out(tmp_path):
    source = write(tmp_path / "r.jsonl", [*ROWS, {**ROWS[0], "response": None}])
    found = rates(counting.score([source], by=["lang"], band=True))["yes"]
    assert found.excluded == {"missing": 1} and found.n == 6
    assert found.readings["strict"] == by_hand(REPLIES, "strict")["yes"]


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ({"lang": "en", "probe": "agreement", "answer": "yes"}, r"one reading only \(given\)"),
        ({"item": "a", "model": "m", "pro": 1.0, "anti": 0.5}, "answers to yes/no questions"),
        ({"probe": "agreement", "response": "Yes"}, "row 1: the judge 'yesno' needs 'lang'"),
        ({"lang": "en", "text": "Yes"}, "lacks the column 'probe'"),
    ],
)
def test_a_file_without_replies_is_an_error_in_one_line(tmp_path, row, error):
    source = write(tmp_path / "f.jsonl", [row])
    with pytest.raises(InputError, match=error) as caught:
        counting.score([source], band=True)
    assert "\n" not in str(caught.value) and str(source) in str(caught.value)


# --- with a review


def review(run: Run, path: Path) -> Path:
    """Somebody who finds a yes in the first replies."""
    spec = run.spec.hash
    rows = [
        dict.fromkeys(collect.COLUMNS, "")
        | {"item": collect.item_id(spec, r.id), "reviewer": "a", "question": "answer"}
        | {"answer": "yes", "request": r.id, "weight": "1", "repeat": "0"}
        for r in [r for r in run.requests() if r.decode == "free"][:4]
    ]
    return write(path / "review.csv", rows)


def test_beside_a_review_stand_the_readings_of_all_replies(run, tmp_path):
    scores = counting.score([run.folder], reviewed=review(run, tmp_path), band=True)
    measured = {str(s.by["rate"]): s for s in scores if s.metric == "measured"}
    for answer in ("yes", "no", "ambiguous"):
        found = measured[f"answer {answer}"].readings
        assert found == {name: by_hand(REPLIES, name)[answer] for name in found}
        assert len(found) == 3
    # A share of all replies, not of clear answers, as what is corrected.
    found = measured["endorsed of all"]
    for name, value in found.readings.items():
        one = by_hand(REPLIES, name)
        assert value == pytest.approx((one["endorsed"] or 0) * (1 - (one["ambiguous"] or 0)))
    assert found.readings["ours"] == found.value
    assert all(s.readings is None for s in scores if s.metric in ("ppi", "rg", "judge-accuracy"))
    shown = formats.render(scores, "table", 200)
    row = next(line for line in shown.splitlines() if line.startswith("answer yes"))
    assert row.index("–") < row.index("]", row.index("–")), (
        "the corrected figure is in the same row"
    )


def test_a_review_corrects_the_free_replies_of_a_run_with_several_decodes(decoded, tmp_path):
    scores = counting.score([decoded.folder], reviewed=review(decoded, tmp_path), band=True)
    yes = next(s for s in scores if s.by.get("rate") == "answer yes" and s.metric == "measured")
    assert (yes.n, yes.value) == (3, pytest.approx(2 / 3))
    assert yes.readings["ours"] == yes.value and yes.readings["choice"] == 0.0


# --- what is printed and kept


def banded(readings: dict[str, float | None], metric: str = "yes", **by: str) -> Score:
    return Score(metric, dict(by), 0.4167, 0.288, 0.557, 48, {}, None, "metric:yes|a:1", readings)


BANDED = [
    banded({"ours": 0.4167, "strict": 0.354, "shades2025": 0.583}, probe="agreement"),
    banded({"ours": 0.4167, "strict": None, "shades2025": 0.4167}, probe="recognition"),
    banded({"ours": None, "strict": None, "shades2025": None}, probe="disagreement"),
]


def test_the_column_and_the_note():
    lines = formats.render(BANDED, "table").splitlines()
    assert lines[0].split() == ["probe", "replies", "yes", "readers"]
    assert lines[1] == "agreement          48  41.7 [28.8, 55.7]  35.4–58.3"
    assert lines[2].endswith("41.7–41.7") and lines[3].endswith("  –")
    notes = "\n".join(lines)
    assert "it is not a confidence interval" in notes and "(ours, strict, shades2025)" in notes
    assert "left out of the band: strict 2, ours 1, shades2025 1." in notes
    assert "readers" not in formats.render([dataclasses.replace(BANDED[0], readings=None)], "table")


def test_the_command(run, tmp_path):
    shell = CliRunner()
    found = shell.invoke(commands.cli, ["score", str(run.folder), "--band", "--by", "model"])
    assert found.exit_code == 0 and found.output.count("readers") == 4
    source = write(tmp_path / "r.jsonl", ROWS)
    found = shell.invoke(commands.cli, ["judge", str(source), "--parser", "strict", "-q"])
    answers = [json.loads(line)["answer"] for line in found.output.splitlines()]
    assert answers.count("yes") / 6 == by_hand(REPLIES, "strict")["yes"]


def test_csv_and_json_say_which_reader_makes_each_end():
    head, *rows = (line.split(",") for line in formats.render(BANDED, "csv").splitlines())
    first = dict(zip(head, rows[0], strict=True))
    assert first["readings"] == "ours=0.4167;strict=0.354;shades2025=0.583"
    ends = ("readers_low", "readers_low_by", "readers_high", "readers_high_by")
    assert [first[end] for end in ends] == ["0.354", "strict", "0.583", "shades2025"]
    assert rows[1][-4:] == ["0.4167", "ours+shades2025"] * 2
    assert rows[2][-5:] == [""] * 5
    plain = formats.render([dataclasses.replace(BANDED[0], readings=None)], "csv")
    assert "readings" not in plain
    assert [Score.from_dict(row) for row in json.loads(formats.render(BANDED, "json"))] == BANDED
    latex = formats.render(BANDED, "latex")
    assert "& readers" in latex and "35.4--58.3" in latex


def test_scores_without_readings_can_still_be_read(run):
    kept = run.folder / "scores.json"
    counting.score([run.folder], metrics=["yes"], by=["model"], band=True, save=True)
    assert run.scores()[0].readings is not None and run.verify() == []
    old = [
        {k: v for k, v in row.items() if k != "readings"} for row in json.loads(kept.read_text())
    ]
    kept.write_text(json.dumps(old))
    assert run.scores()[0].readings is None and run.verify() == []
    page = (Path(__file__).parents[1] / "runs" / "README.md").read_text()
    assert page == store.format_page() and "`readings` | object or null" in page


# --- the recorded replies of the study


@pytest.mark.skipif(not SHADES.exists(), reason="the recorded SHADES replies are not here")
def test_on_recorded_replies_the_published_label_is_a_reading(tmp_path):
    table = pd.read_parquet(SHADES, filters=[("lang", "in", ["pt-br", "zh-hant", "ar"])])
    table = table.groupby(["model", "probe", "lang"]).head(60)
    source = tmp_path / "part.parquet"
    table.to_parquet(source)
    scores = counting.score(
        [source], metrics=["yes", "no"], by=["model", "probe", "lang"], band=True
    )
    assert len(scores) == 36
    for score in scores:
        cell = table[(table.model == score.by["model"]) & (table.probe == score.by["probe"])]
        cell = cell[cell.lang.map(packs.language_code) == score.by["lang"]]
        assert score.readings["shades2025"] == (cell.published == score.metric).mean()
        assert score.band[0] <= score.value <= score.band[1]
    assert max(s.band[1] - s.band[0] for s in scores) > 0.5
