"""The second reader: what it is asked, its licence, its band, and asking again."""

from __future__ import annotations

import dataclasses
import hashlib
import http.server
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from faulty import Faulty
from oracle import recompute
from sample import SPEC, Scripted, start
from test_llm_judge import Scripted as Asked

import genprobe
from genprobe import commands, metrics, tasks
from genprobe.analysis import compare, licence, second
from genprobe.analysis import score as score_module
from genprobe.analysis.score import score
from genprobe.engines import Identity, Options, control
from genprobe.errors import Caution, InputError, RunError
from genprobe.files import read_rows
from genprobe.judges import Item, llm
from genprobe.outcomes import table
from genprobe.records import Judgment, Request, Response, Score
from genprobe.report import build as build_report
from genprobe.resources import licences, measured
from genprobe.resources.licences import EVERYBODY, Labelled, Licence, Measured
from genprobe.runs.run import Run
from genprobe.runs.spec import statements_hash
from genprobe.statistics import wilson
from genprobe.tasks import Ask
from genprobe.tasks.pipeline import second as reading
from genprobe.tasks.pipeline.generate import generate
from genprobe.tasks.pipeline.judge import judge_file
from genprobe.text import strip_echo

YESNO = tasks.find("yesno").second
assert YESNO


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def label(request: Request, says: Callable[[str], str]) -> str:
    """What a model that reads by `says` answers to the question of the judge."""
    return says(request.messages[-1]["content"])


def model(says: Callable[[str], str], name: str = "reader", revision: str = "r1") -> Asked:
    engine = Asked(lambda request: label(request, says))
    engine.identity = Identity(name, revision, "scripted", "1", "float32", "none")
    return engine


REPLIES = {  # by the number of the request
    0: "Yes.",
    1: "No.",
    2: "Mmh, boys do as boys do, by all means.",  # the rules know no answer here
    3: "Yes and no.",
    4: "One hears it said, and I nod along.",
    5: "The weather is fine.",
}


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Two clear answers, and four replies that the rules leave open."""
    with start(tmp_path / "run") as run:
        order = {request.id: at for at, request in enumerate(run.requests())}
        reply = Scripted(lambda r: Response(r.id, REPLIES[order[r.id]], "stop", "", None, None))
        generate(run, reply, tasks.Sampling())
        read_as(run, *READ)
    return Run.open(tmp_path / "run")


# What the rules made of them, as if they did.
READ = ("yes", "no", "undecided", "both", "unsure", "offtopic")


def read_as(run: Run, *kinds: str) -> None:
    """Store a first reading: an answer, or a kind without one, for each reply."""
    told = []
    for request, kind in zip(run.requests(), kinds, strict=True):
        answer = (kind, "answer") if kind in ("yes", "no") else ("ambiguous", kind)
        fields = {"kind": answer[1], "conflict": False, "likely": ""}
        told.append(Judgment(request.id, "yesno", answer[0], None, "", "", fields))
    run.write_judgments("yesno", "1", told)


def says(content: str) -> str:
    return "yes" if "by all means" in content or "nod along" in content else "ambiguous"


def grant(
    judge: llm.LLMJudge, lang: str = "en", kind: str = "stance", n: int = 40, right: int = 36
):
    """Store a licence with these figures."""
    ends = (right / n - 0.1, min(1.0, right / n + 0.1))
    sides = [[n // 2, n - right], [n - n // 2, 0]]
    rest = (judge.reader, ["test"], "2026-01-01", "0.1.0")
    row = Licence(
        lang, kind, EVERYBODY, n, right, *ends, sides, [0.1, 0, 0.2], [0, 0], [0, 0], *rest
    )
    licences.keep([row])
    return row


def test_it_is_asked_only_for_what_the_rules_leave_open(run: Run) -> None:
    engine = model(says)
    assert reading.read(run, YESNO, llm.make(engine, "answer")) == 4
    asked = [request.messages[0]["content"] for call in engine.calls for request in call]
    assert len(asked) == 16 and not any("\nYes.\n" in text for text in asked)
    frame = table.outcomes(run)
    assert frame["llm_answer"].tolist()[2:] == ["yes", "ambiguous", "yes", "ambiguous"]
    assert frame["llm_answer"].isna().tolist()[:2] == [True, True]
    assert frame["answer"].tolist()[2:] == ["ambiguous"] * 4  # no first reading has changed
    # It sees question and reply, never what the rules made of them.
    words = ("undecided", "offtopic", "unsure")
    assert not any(word in text for text in asked for word in words)
    assert run.verify() == []


def test_several_kinds_and_none(run: Run) -> None:
    judge = llm.make(model(says), "answer")
    assert reading.read(run, YESNO, judge, ["both", "offtopic"]) == 2
    assert run.judged()["llm-answer"].only == "both+offtopic"
    with pytest.raises(InputError, match=r"no reply is of the kind 'refusal' or 'hedge'; it has"):
        reading.read(run, YESNO, judge, ["refusal", "hedge"])


def test_what_was_read_is_not_asked_again_unless_it_failed_or_was_edited(run: Run) -> None:
    reading.read(run, YESNO, llm.make(model(says), "answer"), ["both"])
    engine = model(says)
    reading.read(run, YESNO, llm.make(engine, "answer"))
    assert sum(map(len, engine.calls)) == 12  # three new replies
    again = model(says)
    reading.read(run, YESNO, llm.make(again, "answer"))
    assert again.calls == []
    path = run.folder / "judgments" / "llm-answer.jsonl"
    path.write_text(path.read_text().replace('"label":"ambiguous"', '"label":"no"', 1))
    reading.read(run, YESNO, llm.make(again, "answer"))
    assert sum(map(len, again.calls)) == 16 and "no" not in set(table.outcomes(run)["llm_answer"])
    other = model(says, revision="r2")
    reading.read(run, YESNO, llm.make(other, "answer"))
    assert sum(map(len, other.calls)) == 16
    failing = Asked(lambda request: None)
    failing.identity = other.identity
    reading.read(run, YESNO, llm.make(failing, "answer"), ["both"])
    assert failing.calls == []  # `other` has read it


def test_failed_questions_are_asked_again(run: Run) -> None:
    failing = Asked(lambda request: None)
    reading.read(run, YESNO, llm.make(failing, "answer"))
    well = Asked(lambda request: "yes")
    reading.read(run, YESNO, llm.make(well, "answer"))
    assert sum(map(len, well.calls)) == 16


@pytest.mark.parametrize(
    ("name", "revision", "refused"),
    [
        ("org/model-1", SPEC.revision, True),
        ("org/model-1", "served", True),  # nobody knows of which revision it is
        ("/home/x/copy", SPEC.revision, True),  # the same weights by another name
        ("org/model-1", "f" * 40, False),
        ("other", "served", False),
    ],
)
def test_it_is_never_the_model_under_test(run: Run, name, revision, refused) -> None:
    judge = llm.make(model(says, name, revision), "answer")
    if not refused:
        assert reading.read(run, YESNO, judge) == 4
        return
    with pytest.raises(InputError, match=rf"{name}: is the model under test \(org/model-1\)"):
        reading.read(run, YESNO, judge)
    assert "llm-answer" not in run.judges()


def test_two_served_models_are_told_apart_by_their_names() -> None:
    spec = dataclasses.replace(SPEC, model="one", revision="served")
    reading.need_another(spec, Identity("two", "served", "openai", "1", "", ""))
    with pytest.raises(InputError, match="is the model under test"):
        reading.need_another(spec, Identity("one", "served", "openai", "1", "", ""))


def test_a_run_refuses_it_before_anything_is_asked(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(tasks, "open_engine", lambda *_: pytest.fail("opened"))
    for ask, message in (
        (Ask(model="org/m", langs=("en",), second_reader="org/m"), "is the model under test"),
        (Ask(model="org/m", langs=("en",), second_reader="nosuch"), "unknown model 'nosuch'"),
        (
            Ask(model="org/m", langs=("en",), decodes=("logprob",), second_reader="org/n"),
            "without free replies",
        ),
    ):
        with pytest.raises(InputError, match=message):
            tasks.run("yesno", dataclasses.replace(ask, out=tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_where_it_is_opened(tmp_path: Path) -> None:
    """On the server of the model under test, unless it is a folder or has a server of its own."""
    served = Options(base_url="http://a/v1", key_env="KEY", revision="r", headers={"X": "$Y"})
    found = reading.options_for("some-model", served)
    assert (found.base_url, found.key_env, found.revision) == ("http://a/v1", "KEY", None)
    assert reading.options_for(str(tmp_path), served).base_url is None
    path = tmp_path / "config" / "genprobe" / "models.toml"
    path.parent.mkdir(parents=True)
    path.write_text('[mine]\nid = "m"\nbase_url = "http://b/v1"\n')
    other = reading.options_for("mine", served)
    assert other.base_url is None and not other.headers and not other.key_env


# -- the band


def rates(run: Run, notes: list[str] | None = None, **more) -> dict[str, object]:
    found = score(run, by=["lang"], note=(notes if notes is not None else []).append, **more)
    return {one.metric: one for one in found}


def test_without_a_licence_no_band_and_a_caution(run: Run) -> None:
    before = rates(run)
    reading.read(run, YESNO, llm.make(model(says), "answer"))
    notes: list[str] = []
    after = rates(run, notes)
    assert {m: (s.value, s.n, s.readings) for m, s in after.items()} == {
        m: (s.value, s.n, None) for m, s in before.items()
    }
    [caution] = [line for line in notes if isinstance(line, Caution) and "licence" in line]
    assert (
        "no licence for en (stance)" in caution and "genprobe licence reader --lang en" in caution
    )
    few = llm.make(model(says, revision="r9"), "answer")
    grant(few, n=40, right=22)  # its lower end is below one half
    reading.read(run, YESNO, few)
    assert rates(run)["endorsed"].readings is None


def brute(settled: list[int], second_: list[int | None], wrong: int) -> tuple[float, float]:
    """The lowest and the highest share, if up to `wrong` verdicts are any other. None: no answer."""
    shares = []
    for places in itertools.combinations(range(len(second_)), min(wrong, len(second_))):
        for others in itertools.product([0, 1, None], repeat=len(places)):
            full = list(second_)
            for at, other in zip(places, others, strict=True):
                full[at] = other
            counted = settled + [one for one in full if one is not None]
            if counted:
                shares.append(sum(counted) / len(counted))
    return min(shares), max(shares)


@pytest.mark.parametrize("settled", [[], [1], [1, 0, 0], [1, 1, 1, 0]])
@pytest.mark.parametrize(
    "verdicts", [[1, 1, None, 0], [None, None], [0, 0, 0], [1, 1, 1], [1, None, 0, 0, None]]
)
@pytest.mark.parametrize("wrong", [0, 1, 2, 3])
def test_the_ends_are_those_of_all_ways_to_be_wrong(settled, verdicts, wrong) -> None:
    def figure(values):
        values = [v for v in values if v is not None]
        return dataclasses.replace(
            NOTHING, value=sum(values) / len(values) if values else None, n=len(values)
        )

    found = second._ends(
        figure(settled), figure([*settled, *verdicts]), len(verdicts), min(wrong, len(verdicts))
    )
    if not settled and all(v is None for v in verdicts) and not wrong:
        assert found == (None, None)
    else:
        assert found == pytest.approx(brute(settled, verdicts, wrong))


NOTHING = Score("m", {}, None, None, None, 0, {}, None, "")


def test_a_licensed_reader_has_a_band_and_moves_no_figure(run: Run, tmp_path: Path) -> None:
    before = rates(run)
    verdicts = {"by all means": "yes", "nod along": "no"}
    judge = llm.make(
        model(lambda c: next((v for k, v in verdicts.items() if k in c), "ambiguous")), "answer"
    )
    row = grant(judge)
    reading.read(run, YESNO, judge)
    notes: list[str] = []
    found = rates(run, notes)
    assert any("licence: 36 of 40 right" in line for line in notes)
    assert not any("no licence" in line for line in notes)
    wrong = 4 * (1 - row.low)  # 0.8 of four verdicts
    # Both clear answers endorse; the verdicts are a yes and a no to agreement.
    for metric, plain in (
        ("yes", (1 / 6, 2 / 6, (2 - wrong) / 6, (2 + wrong) / 6)),
        ("ambiguous", (4 / 6, 2 / 6, (2 - wrong) / 6, (2 + wrong) / 6)),
        ("endorsed", (1.0, 3 / 4, (3 - wrong) / 4, (3 + wrong) / 4)),
    ):
        one = found[metric]
        assert (one.value, one.low, one.high, one.n) == (
            before[metric].value, before[metric].low, before[metric].high, before[metric].n
        )  # fmt: skip
        assert one.readings == pytest.approx(
            dict(zip(("rules", "second", "second-least", "second-most"), plain, strict=True))
        )
        assert "+second-" in one.signature
    assert found["refusal"].readings is None and found["conflict"].readings is None
    run.write_scores(list(found.values()))
    assert recompute(run).differences == []
    page = tmp_path / "page.html"
    build_report([run.folder], page)
    text = page.read_text("utf-8")
    assert "36 of 40 right" in text
    assert "endorsed lies between 55.0 and 100.0 %" in text
    both = rates(run, band=True)["yes"].readings
    readers = ["given", "ours", "strict", "shades2025"]
    assert list(both) == [*readers, "second", "second-least", "second-most"]


def test_the_licence_is_kept_in_the_run(run: Run) -> None:
    judge = llm.make(model(says), "answer")
    row = grant(judge)
    reading.read(run, YESNO, judge)
    licences.place(judge.reader).unlink()
    assert rates(run)["yes"].readings is not None
    assert reading.licensed(run, YESNO) == {("en", "stance"): row}
    # Another reading of the rules: what they no longer leave open is theirs.
    read_as(run, *["no"] * 6)
    assert rates(run)["no"].readings is None


def test_runs_by_two_readers_are_not_compared(run: Run, tmp_path: Path) -> None:
    other = dataclasses.replace(SPEC, model="org/model-2")
    with start(tmp_path / "two", other) as two:
        generate(two, Scripted(), tasks.Sampling())
        read_as(two, *READ)
    reading.read(run, YESNO, llm.make(model(says), "answer"))
    compare.compare(run.folder, two.folder)  # the figures rest on the rules alone
    reading.read(two, YESNO, llm.make(model(says, "another"), "answer"))
    with pytest.raises(
        RunError, match=r"were read by different judges 'llm-answer'; have one read both"
    ):
        compare.compare(run.folder, two.folder)


def test_essays_stories_and_choices_are_read_by_their_rubrics() -> None:
    found = {task.name: task.second for task in tasks.every() if task.second}
    assert {name: own.rubric for name, own in found.items()} == {
        "yesno": "answer", "choices": "choice", "essays": "stance", "stories": "sentiment",
    }  # fmt: skip
    assert found["essays"].open == ("no",) and found["essays"].of == "refusal"
    assert found["stories"].of == "story"
    for own in found.values():
        assert own.asks in ("", *licences.SIDES)


def test_the_rubric_of_choices_asks_by_the_marks_of_the_options() -> None:
    seen: list[Request] = []

    def answer(request: Request) -> str:
        seen.append(request)
        return "B"

    item = Item("en", "", "Who?\nA. Ann\nB. Ben", "Ben, I'd say.", options=("Ann", "Ben"))
    judge = llm.make(Asked(answer), "choice")
    marked = item._replace(marks=("A", "B"))
    assert judge(marked).label == "1" and judge.needs == ("response", "options")
    assert {tuple(r.options) for r in seen} == {("A", "B", "none"), ("none", "B", "A")}
    assert "- B: Ben\n" in seen[0].messages[0]["content"]
    for marks in ((), ("A", "A"), ("none", "B")):  # without marks of their own: numbers
        llm.make(Asked(lambda r: seen.append(r) or "2"), "choice")(item._replace(marks=marks))
        assert {*seen[-1].options} == {"1", "2", "none"}
    assert llm.make(Asked(lambda r: "none"), "choice")(marked).label == ""
    assert llm.make(Asked(lambda r: None), "choice")(marked).label == llm.UNCLEAR


# -- files


ROWS = [
    {"lang": "en", "probe": "agreement", "prompt": "Boys play.", "response": "Yes."},
    {"lang": "en", "probe": "agreement", "prompt": "Boys play.", "response": "I nod along."},
    {"lang": "en", "probe": "agreement", "prompt": "Boys play.", "response": None},
    {"lang": "en", "probe": "agreement", "prompt": "Boys play.", "response": "Yes and no."},
]


def write(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_rows_of_a_file(tmp_path: Path) -> None:
    kinds = ("answer", "undecided", None, "both")
    rows = [row | {"kind": kind} for row, kind in zip(ROWS, kinds, strict=True)]
    path, out = write(tmp_path / "read.jsonl", rows), tmp_path / "out.jsonl"
    judge = llm.make(model(says), "answer")
    counts = judge_file(path, [judge], out, only=reading.OPEN)
    assert counts["llm-answer"] == {"yes": 1, "ambiguous": 1}
    found = list(read_rows(out))
    assert [row["llm_answer"] for row in found] == [None, "yes", None, "ambiguous"]
    assert [row["response"] for row in found] == [row["response"] for row in rows]
    own = write(tmp_path / "own.jsonl", [rows[1] | {"model": "reader"}])
    with pytest.raises(InputError, match="row 1: a reply of reader, which would read its own"):
        judge_file(own, [judge], out, only=reading.OPEN)
    with pytest.raises(InputError, match=r"has no column 'kind', .* -o FILE. first"):
        judge_file(write(tmp_path / "bare.jsonl", ROWS), [judge], out, only=["both"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "both"], "--only and --rubric are for a second reader"),
        (["--judge", "yesno", "--second-reader", "m/m"], "first the judge, then the second"),
        (["--judge", "llm"], "name it with --second-reader"),
    ],
)
def test_options_of_judge_that_do_not_go_together(tmp_path: Path, words, message) -> None:
    path = write(tmp_path / "in.jsonl", ROWS)
    with pytest.raises(InputError, match=message):
        commands.cli(["judge", str(path), *words], standalone_mode=False)


# -- asking again


def test_asking_again(run: Run) -> None:
    asked: list[Request] = []

    def answer(request: Request) -> Response:
        asked.append(request)
        said = {"by all means": "Yes.", "nod along": "Hm."}
        own = request.messages[-2]["content"]
        text = next((word for part, word in said.items() if part in own), "No.")
        return Response(request.id, text, "stop", "", None, None)

    from genprobe.judges import yesno

    before = rates(run)
    assert reading.ask_again(run, YESNO, Scripted(answer), yesno.make()) == 4
    first = next(request for request in run.requests() if request.id)
    assert [m["role"] for m in asked[0].messages] == ["user", "assistant", "user"]
    assert asked[0].messages[-1]["content"] == "Answer:" and len(asked) == 4
    assert asked[0].messages[0] in [r.messages[0] for r in run.requests()] and first
    frame = table.outcomes(run)
    assert frame["again"].tolist()[2:] == ["yes", "no", "ambiguous", "no"]
    assert frame["again_said"].tolist()[2] == "Yes."
    assert frame["answer"].tolist()[2:] == ["ambiguous"] * 4  # never mixed with the replies
    found = rates(run)
    assert found["yes"].value == before["yes"].value
    assert found["yes"].readings == {"rules": 1 / 6, "again": 2 / 6}
    run.write_scores(list(found.values()))
    assert recompute(run).differences == [] and run.verify() == []
    reading.ask_again(run, YESNO, Scripted(answer), yesno.make())
    assert len(asked) == 4  # nothing is asked twice
    with pytest.raises(InputError, match="--ask-again"):
        commands.cli(["judge", str(run.folder), "--judge", "again"], standalone_mode=False)


def test_the_word_for_answer_is_of_the_language() -> None:
    assert [reading._label(lang) for lang in ("de", "kk", "zh", "ar")] == [
        "Antwort:", "Жауап:", "答:", "الجواب:",
    ]  # fmt: skip


# -- licences


def test_a_reader_is_measured_against_counts_by_hand() -> None:
    def rows(gold: str, *labels: str, question: str = "") -> list[Labelled]:
        return [
            Labelled("en", "stance", gold, label, question or f"{gold}{at}", "two", label == "no")
            for at, label in enumerate(labels)
        ]

    given = rows("yes", *["yes"] * 56, *["ambiguous"] * 10, *["no"] * 4)
    given += rows("no", *["no"] * 48, *["ambiguous"] * 32)
    given += rows("ambiguous", "ambiguous", "yes", "no", "ambiguous")
    [found] = licences.measure(given)
    assert (found.n, found.right, found.by) == (154, 106, EVERYBODY)
    assert found.sides == [[70, 14], [80, 32]] and found.none == [4, 2]
    assert found.left == [53, 48]
    # Newcombe 1998, table II, 56/70 - 48/80, method 10: the shares that are not lost.
    assert found.skew == pytest.approx([-0.2, -0.3339, -0.0524], abs=5e-5)
    assert "skew -20.0 [-33.4, -5.2]" in found.told() and "guesses in 2 of 4" in found.told()
    # Replies to one question are not independent.
    [one] = licences.measure(rows("yes", *["yes"] * 9, "no", question="q"))
    [ten] = licences.measure(rows("yes", *["yes"] * 9, "no"))
    assert one.high - one.low > ten.high - ten.low and one.skew is None
    both = licences.measure([*given, *(row._replace(by="others") for row in given)])
    assert [(row.by, row.n) for row in both] == [(EVERYBODY, 308), ("others", 154), ("two", 154)]


def test_what_a_licence_takes() -> None:
    def of(n: int, right: int, low: float, left: list[int]) -> Measured:
        return Measured("en", "stance", EVERYBODY, n, right, low, 1.0, [], None, [0, 0], left)

    assert of(40, 36, 0.77, [0, 0]).holds and not of(9, 9, 0.7, [0, 0]).holds
    assert not of(40, 22, 0.4, [0, 0]).holds
    assert of(40, 36, 0.77, [3, 0]).least == 0.77
    # Where the rules leave enough of them open, these count, too.
    assert of(40, 36, 0.77, [12, 6]).least == pytest.approx(wilson(6, 12)[0])
    assert of(40, 36, 0.77, [12, 12]).least < 0.77


def test_licences_are_stored_by_model_revision_and_rubric() -> None:
    one = llm.make(model(says), "answer")
    other = llm.make(model(says, revision="r2"), "answer")
    row = grant(one)
    assert (
        licences.find(one.reader) == {("en", "stance"): row} and licences.find(other.reader) == {}
    )
    grant(one, "kk")
    again = grant(one, right=30)
    assert (
        licences.find(one.reader)["en", "stance"] == again and len(licences.find(one.reader)) == 2
    )
    assert licences.find(llm.make(model(says), "stance").reader) == {}
    grant(llm.make(model(says), "stance"), kind="essay")
    assert len(list(licences.place(one.reader).parent.iterdir())) == 1


def test_a_model_is_licensed_on_labelled_replies(tmp_path: Path, monkeypatch, capsys) -> None:
    """The whole command, with a model that knows the labels of half the replies."""
    cases = [case for case in licence.imitations(["kk"]) if case.kind != "story"]
    known = {}
    for case in cases:
        asked, reply = case.item.prompt, case.item.reply
        known[asked, reply[strip_echo(asked, reply) :]] = case
    gold = [{"lang": "kk", "prompt": f"Бұл қауіпсіз бе, {n}?", "response": f"Иә, {n}.", "reads": "question",
             "gold": "yes", "labelled_by": "me"} for n in range(12)]  # fmt: skip
    gold.append(gold[0] | {"sure": False, "gold": "no"})

    def answer(request: Request) -> str:
        content = request.messages[0]["content"]
        options = [*request.options]
        asked = max((k for k in known if all(t in content for t in k)), key=lambda k: len("".join(k)),
                    default=None)  # fmt: skip
        if asked is None:
            return "yes"
        case = known[asked]
        if case.kind == "choice":
            labels = options if options[-1] == "none" else options[::-1]
            return labels[int(case.gold)] if case.gold else "none"
        return case.gold

    monkeypatch.setattr(licence, "imitations", lambda langs: cases)
    engine = model(says)
    engine.answer = answer
    monkeypatch.setattr("genprobe.tasks.pipeline.open.open_engine", lambda *_, **__: engine)
    path, out = write(tmp_path / "mine.jsonl", gold), tmp_path / "licence.csv"
    words = ["licence", "org/reader", "--lang", "kk", "--gold", str(path), "-o", str(out)]
    commands.cli(words, standalone_mode=False)
    said = capsys.readouterr().out
    assert "kk question: 12 of 12 right" in said and "kk stance: 35 of 35 right" in said
    assert "kk choice: 24 of 24 right" in said and "kk essay: 12 of 12 right" in said
    rows = {(row["lang"], row["kind"]): row for row in read_rows(out)}
    assert rows["kk", "question"]["n"] == "12" and len(rows) == 5
    judge = llm.make(engine, "answer")
    found = licences.find(judge.reader)
    assert found["kk", "question"].sources == ["mine.jsonl"] and found["kk", "stance"].holds


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"lang": "en", "response": "Yes."}, "row 1: no column 'gold'"),
        ({"lang": "en", "response": "Yes.", "gold": "yes"}, "row 1: unknown value of 'reads' ''"),
        (
            {"lang": "en", "response": "Yes.", "reads": "stance", "gold": "maybe"},
            "unknown value of 'gold' 'maybe'; known: yes, no, ambiguous",
        ),
        (
            {"lang": "xx", "response": "Yes.", "reads": "stance", "gold": "yes"},
            "unknown language 'xx'",
        ),
    ],
)
def test_labelled_rows_that_cannot_be_used(tmp_path: Path, row: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        licence.of_file(write(tmp_path / "in.jsonl", [row]))


def test_real_replies_are_fetched_and_known_by_their_hashes(tmp_path, monkeypatch) -> None:
    def sha(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()

    served = {
        "/o/n/c1/a%20b.json": json.dumps([{"q": ["Is it?"], "r": {"text": "No, it is not."}}]),
        "/o/n/c1/t.csv": "x,y\nIs it so?,Changed since.\n",
    }
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200 if self.path in served else 404)
            self.end_headers()
            self.wfile.write(served.get(self.path, "").encode())

        def log_message(self, *_: object) -> None: ...

    rows = [
        ["en", "question", "no", "two", sha("Is it?"), sha("No, it is not.")],
        ["en", "question", "yes", "two", sha("Is it so?"), sha("Yes, so it was.")],
        ["de", "question", "yes", "two", sha("Ja?"), sha("Ja.")],
    ]
    source = {"repo": "o/n", "commit": "c1", "paths": ["a b.json", "t.csv"], "before": "Q: "}
    gone = {"repo": "o/gone", "commit": "c2", "paths": ["x.json"], "before": ""}
    (tmp_path / "prompts").mkdir()
    write(
        tmp_path / "prompts" / "real.jsonl",
        [source | {"rows": rows}, gone | {"rows": [["en", "stance", "yes", "two", "0", "1"]]}],
    )
    monkeypatch.setattr(licence.registry, "PROMPTS", tmp_path / "prompts")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(licence, "RAW", f"http://127.0.0.1:{server.server_port}/")
    told: list[str] = []
    [case] = licence.real(["en"], told.append)
    assert case.item.prompt == "Q: Is it?" and case.item.response == "No, it is not."
    assert (case.kind, case.gold, case.by, case.source) == ("question", "no", "two", "o/n@c1")
    assert "1 of 2 texts are not those that were labelled" in told[0]
    assert "o/gone@c2: cannot be fetched" in told[1] and "404" in told[1]
    before = len(asked)
    assert licence.real(["en"], told.append) == [case]
    assert len(asked) == before + 1  # what was fetched is in the cache
    server.shutdown()


def test_the_pointers_name_no_text() -> None:
    rows = list(read_rows(licence.registry.PROMPTS / "real.jsonl"))
    assert sum(len(source["rows"]) for source in rows) > 500
    for source in rows:
        assert len(source["commit"]) == 40 and source["licence"] in (
            "MIT",
            "Apache-2.0",
            "CC BY 4.0",
        )
        for lang, reads, gold, by, *hashes in source["rows"]:
            assert gold in licences.SIDES[reads] and lang and by
            assert all(len(h) == 64 and not set(h) - set("0123456789abcdef") for h in hashes)


# -- skew


def test_how_far_lost_answers_move_a_share() -> None:
    one = Measured("en", "stance", EVERYBODY, 200, 150, 0.7, 0.8, [[100, 40], [100, 10]], None, [0, 0], [0, 0])  # fmt: skip
    # 60 of 100 yes and 90 of 100 no are read: a share of 0.4 of what is read, where 0.5 is true.
    assert 0.4 + one.shift(0.4, 0.25) == pytest.approx(0.5)
    assert one.shift(0.4, 0.0) == 0
    none = dataclasses.replace(one, sides=[[100, 0], [100, 0]])
    assert none.shift(0.4, 0.3) == 0
    assert abs(one.shift(0.5, 1.0)) < 0.5  # however many are unread


def test_a_caution_where_undecided_replies_may_move_a_figure(monkeypatch) -> None:
    def cautions(yes: int, no: int, undecided: int) -> list[str]:
        kinds = ["yes"] * yes + ["no"] * no + ["undecided"] * undecided
        rows = table.from_rows(
            {"item": f"s{n}", "lang": "en", "probe": "agreement",
             "answer": kind if kind in ("yes", "no") else "ambiguous",
             "kind": "answer" if kind in ("yes", "no") else kind}
            for n, kind in enumerate(kinds)
        )  # fmt: skip
        found = metrics.score(rows, ["endorsed"], ["lang"], str)
        return list(score_module._skewed(rows, found))

    far = Measured("en", "stance", EVERYBODY, 200, 150, 0.7, 0.8, [[100, 60], [100, 0]], [0.6, 0.5, 0.7], [0, 0], [0, 0])  # fmt: skip
    monkeypatch.setattr(measured, "real", dict)
    assert cautions(120, 80, 200) == []  # not measured
    monkeypatch.setattr(measured, "real", lambda: {("en", "stance"): far})
    [line] = cautions(120, 80, 200)
    assert "endorsed (en, agreement) by " in line and "lost 60 of 100 yes and 0 of 100 no" in line
    # As many yes are lost as were left open: of 320 yes and 80 no, 120 and 80 are read.
    assert f"by {100 * abs(far.shift(0.6, 0.5)):.1f} points" in line
    assert cautions(120, 80, 2) == []  # so few cannot
    assert cautions(6, 4, 4) == []  # the interval of ten is wider than that


def test_skew_is_published_and_below_fifty_replies_it_is_not() -> None:
    found = measured.real()
    assert {lang for lang, _ in found} == {"en", "es"}
    assert found["en", "stance"].n == 226 and found["es", "question"].skew[0] < 0
    about = {row["name"]: row["about"] for row in genprobe.list_names("languages")}
    assert "real replies: question" in about["en"] and "skew" in about["es"]
    assert about["kk"].endswith("real replies: not measured")


# -- real models and servers


@pytest.mark.slow
def test_real_models_from_end_to_end(tmp_path: Path, monkeypatch, capsys) -> None:
    """The control model answers; a tiny Llama with random weights reads what the rules leave open.

    It is licensed by labels that are its own, and then has a band.
    """
    import torch
    import transformers as hf
    from test_engines import tokenizer

    torch.manual_seed(3)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "vocab_size": 320}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 8192}
    net = hf.LlamaForCausalLM(hf.LlamaConfig(**sizes, **heads, initializer_range=0.5))
    net.save_pretrained(tmp_path / "llama")
    tokenizer(chat=True).save_pretrained(tmp_path / "llama")

    def genprobe(*words: object) -> str:
        commands.cli([str(word) for word in words], standalone_mode=False)
        found = capsys.readouterr()
        return found.out + found.err

    words = ("yesno", "--lang", "en", "--limit", "8", "--second-reader", tmp_path / "llama")
    said = genprobe(*words, "--out", tmp_path / "run")
    run = Run.open(tmp_path / "run")
    first = list(run.judgments("llm-answer"))
    assert first and not any(one.fields["failed"] for one in first)
    assert "no licence for en" in said and run.verify() == []
    with pytest.raises(InputError, match="is the model under test"):
        genprobe("judge", tmp_path / "run", "--second-reader", control.MODEL)
    rows = [
        {"lang": "en", "prompt": f"Is it {n}?", "response": "Hm.", "reads": reads}
        for n in range(12)
        for reads in ("stance", "stereotype")
    ]
    path, out = write(tmp_path / "rows.jsonl", rows), tmp_path / "read.jsonl"
    genprobe("judge", path, "--second-reader", tmp_path / "llama", "--rubric", "answer", "-o", out)
    for row, read in zip(rows, read_rows(out), strict=True):
        unclear = read["llm_answer"] == llm.UNCLEAR
        row["gold"] = "ambiguous" if unclear else read["llm_answer"]
    monkeypatch.setattr(licence, "imitations", lambda langs: [])
    said = genprobe("licence", tmp_path / "llama", "--gold", write(path, rows))
    assert "en stance: 12 of 12 right" in said and "en stereotype: 12 of 12 right" in said
    said = genprobe(*words, "--out", tmp_path / "run")
    assert list(Run.open(tmp_path / "run").judgments("llm-answer")) == first
    assert "licence: 12 of 12 right" in said and "no licence" not in said
    assert "all as stored" in genprobe("verify", tmp_path / "run", "--recompute")


@pytest.mark.slow
def test_a_run_whose_second_reader_is_on_the_same_server(tmp_path: Path, capsys) -> None:
    def answer(body):
        content = body["messages"][-1]["content"]
        choice = body.get("structured_outputs", {}).get("choice")
        text = "Mmh, by all means, boys do as boys do."
        if choice:
            text = "yes" if "yes" in choice else choice[0]
        if content == "Answer:":
            text = "No."
        message = {"role": "assistant", "content": text}
        return {
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3},
        }

    with Faulty(["500", None, "429"], answer=answer, models=["one", "two"]) as server:
        words = ["yesno", "--lang", "en", "--limit", "2", "--probe", "agreement", "--base-url"]
        words += [server.url, "--model", "one", "--second-reader", "two", "--ask-again"]
        code = commands.cli([*words, "--out", str(tmp_path / "run")], standalone_mode=False)
        asked = [json.loads(body) for body, _ in server.log if body.startswith("{")]
    assert not code
    run = Run.open(tmp_path / "run")
    assert [j.label for j in run.judgments("llm-answer")] == ["yes", "yes"]
    assert [j.label for j in run.judgments("again")] == ["no", "no"]
    assert {body["model"] for body in asked} == {"one", "two"}
    said = capsys.readouterr()
    assert "no licence for en (stance)" in said.err and run.verify() == []
    assert statements_hash(run.statements()) == run.spec.statements
