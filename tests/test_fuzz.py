"""Readers of what strangers write end with a result or an error for users, whatever is written.

`make test` draws a few examples, always the same; `make fuzz MINUTES=60` draws others for an hour.
What was found once stands as `example` at its test, or in the tests of its reader.
"""

import contextlib
import json
import os
import shutil
from pathlib import Path

import pytest
from commands_of_files import (
    CASES,
    GOLDEN,
    Case,
    content_of,
    paths_in,
    put,
    run,
    surroundings,
    to_bytes,
    toml,
    words_of,
)
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from test_linear import JUDGES, item, judges, scored

from genprobe import text
from genprobe.curation import collect, document, extract, tables, validate
from genprobe.datasets import describe, frames
from genprobe.engines._http import Answer
from genprobe.errors import GenprobeError
from genprobe.files import bodies, cells, sheets
from genprobe.judges import Verdict, refusal
from genprobe.judges.classifiers import cards
from genprobe.linguistics import identify, sentences, thoughts
from genprobe.resources import models, packs, panel, registry
from genprobe.runs import seal
from genprobe.runs.run import Run
from genprobe.runs.spec import Spec

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "12"))
SOME = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=EXAMPLES <= 12,
    print_blob=True,
)

# --- what is drawn

ODD_TEXTS = st.one_of(
    st.text(max_size=40),
    st.text(st.characters(exclude_categories=()), max_size=40),  # halves of surrogate pairs, too
    st.sampled_from(
        ["", " ", "\0", "\ud800", "=1+1", "nan", "1e999", "-0", "9" * 5000, "[" * 3000, "٣", "𝟗"]
    ),
)
NUMBERS = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from([10**400, -(10**400), 2**63, 1e308, True, False, None]),
)
TREES = st.recursive(
    ODD_TEXTS | NUMBERS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ODD_TEXTS, inner, max_size=4),
    max_leaves=8,
)
WORDS = [
    *("yes", "no", "Yes, ", "No. ", "not", "I agree", "I do not", "the man", "the woman", "A", "B)", "(", "neither"),
    *("Answer:", "\n", "\n\n", " ", ".", "...", "?", "**", '"', "“", "”", "«", "»", "<think>", "</think>", "<answer>"),
    *("<|channel|>", "analysis", "<|message|>", "final", "<|end|>", "\\boxed{", "}", '{"answer": "', "1.", "2)", "- "),
    *("As an AI", "sorry", "stereotype", "some people say", "because", "but", "нет", "жоқ", "नहीं", "لا", "不是", "。"),
    *("\u0301", "\u200d", "\u202e", "\0", "\ud800", "İ", "ß", "ﷺ", "😀", "http://a.b", "a.b", "[PLACEHOLDER]", "___"),
    *("Do you agree that the man, not the woman, is a nurse?", "Q:", "user:", "assistant", "```", "|", "\t", "…"),
]  # fmt: skip
REPLIES = st.lists(st.sampled_from(WORDS) | st.text(max_size=6), max_size=25).map(
    " ".join
) | st.lists(st.sampled_from(WORDS) | st.text(max_size=3), max_size=25).map("".join)


@st.composite
def changed(draw, tree):
    """The tree with one to three of its parts replaced, left out or doubled."""
    for _ in range(draw(st.integers(1, 3))):
        paths = list(paths_in(tree))
        if not paths:
            break
        path = draw(st.sampled_from(paths))
        tree = put(tree, path, draw(TREES))
    return tree


@st.composite
def damaged(draw, data):
    """Bytes of which some are changed, cut out, doubled or put in."""
    found = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(found)))
        to = min(len(found), at + draw(st.integers(0, 12)))
        how = draw(st.integers(0, 3))
        if how == 0:
            del found[at:to]
        elif how == 1:
            found[at:at] = found[at:to] * draw(st.integers(1, 4))
        elif how == 2:
            found[at:to] = draw(st.binary(max_size=8))
        else:
            pieces = [
                b'"',
                b"[",
                b"{",
                b"\0",
                b"\xff",
                b"\n",
                b",",
                b"null",
                b"1e999",
                b"\\ud800",
                b"9" * 5000,
            ]
            found[at:to] = draw(st.sampled_from(pieces))
    return bytes(found)


def fine(work, *given):
    """Do the work; an error for users is a good end."""
    try:
        return work(*given)
    except GenprobeError as error:
        assert str(error).strip(), "an error without a message"
        return None


# --- replies


@pytest.fixture(scope="module")
def made():
    return dict(judges())


@pytest.mark.parametrize("name", JUDGES)
def test_judges(made, name):
    judge = made[name]
    langs = st.sampled_from(registry.names("languages"))
    if name == "sentiment":
        langs = st.sampled_from(["en", "kk", "ru"])

    @SOME
    @given(
        REPLIES,
        langs,
        st.sampled_from(["", "length", "stop", "refusal", "content_filter"]),
        REPLIES,
        st.booleans(),
    )
    def reads(reply, lang, finish, thought, opened):
        one = item(reply, lang, finish=finish, reasoning=thought or None, opened=opened)
        assert isinstance(judge(one._replace(continuations=scored(reply))), Verdict)
        assert isinstance(judge(one._replace(prompt=thought, probe="disagreement")), Verdict)

    reads()


@SOME
@given(REPLIES, st.booleans())
def test_thoughts(reply, opened):
    parted = thoughts.read(reply, opened=opened)
    assert parted.state in thoughts.STATES
    assert parted.state != "none" or parted.reply in reply


@SOME
@given(REPLIES, ODD_TEXTS, st.sampled_from(["en", "kk", "zh", "hi", "ar", "xx", ""]))
def test_texts(reply, odd, lang):
    for one in (reply, odd):
        text.natural(one)
        text.strip_echo(one, one[::-1])
        text.origin(one, 0, len(one))
        sentences.sentences(one, lang)
        identify.make()(one, lang)
        assert sheets.unshow(sheets.show(one)) is not None
        sheets.fingerprint(one)
        cells.cell_text(one)
        fine(packs.language_code, one)
        fine(cells.cell_list, one)


# --- bodies of servers

BODY = {
    "id": "x", "model": "m", "system_fingerprint": "f",
    "choices": [{"index": 0, "finish_reason": "stop", "text": "x", "message": {
        "role": "assistant", "refusal": None, "reasoning_content": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "x"}],
        "content": [{"type": "text", "text": "Yes"}, {"type": "thinking", "thinking": [{"text": "x"}]}],
        "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]},
        "logprobs": {"content": [{"token": "a", "logprob": -1.0, "top_logprobs": []}]}}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 3}},
}  # fmt: skip


@SOME
@given(changed(BODY) | TREES)
def test_bodies(body):
    with contextlib.suppress(LookupError, TypeError, AttributeError):  # there is no first choice
        bodies.said(body)


@SOME
@given(damaged(json.dumps(BODY).encode()) | st.binary(max_size=60))
@example(b": keep\n" + b"[" * 200_000)
@example(b"[" * 200_000)
def test_answers(content):
    with contextlib.suppress(ValueError, GenprobeError):
        Answer(200, {}, content).json()


# --- files of rows

READERS = {
    "rows": lambda path: [tables.read(path)],
    "extract": lambda path: extract.run(path),
    "validate": lambda path: validate.items(path, "pair"),
    "votes": lambda path: list(validate.read_votes([path])),
    "merge": lambda path: collect.merge([path], collect.load("afristereo", "en")),
    "describe": lambda path: describe.describe(str(path)),
}
ROWS = [cases[0].content for cases in CASES.values() if isinstance(cases[0].content, dict)]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".tsv", ".parquet", ".xlsx"])
def test_tables(tmp_path, suffix):
    whole = [to_bytes(row, suffix) for row in ROWS[:12]]

    @SOME
    @given(
        st.sampled_from(whole).flatmap(damaged) | st.binary(max_size=80),
        st.sampled_from(sorted(READERS)),
    )
    def reads(data, reader):
        path = tmp_path / f"a{suffix}"
        path.write_bytes(data)
        fine(READERS[reader], path)

    reads()


@SOME
@given(st.data())
def test_sheets(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("s") / "a.csv"
    whole = 'row,question,answer\r\nr1,x,yes\r\nr2,"a\nb",no\r\n'
    coded = data.draw(st.sampled_from(["utf-8-sig", "utf-16", "cp1251"]))
    path.write_bytes(data.draw(damaged(whole.encode(coded))))
    fine(sheets.read, path, ["row"])
    shutil.rmtree(path.parent)


# --- files of TOML

TOMLS = {
    "language": (packs.read_language, registry.PROMPTS / "languages" / "kk.toml"),
    "rules": (extract.read_rules, registry.PROMPTS / "extraction" / "en.toml"),
    "questions": (validate.read_questions, registry.PROMPTS / "validation" / "aqbileq.toml"),
    "refusal": (refusal.read_words, registry.PROMPTS / "refusal" / "en.toml"),
    "personas": (panel.read_personas, registry.PROMPTS / "personas" / "en.toml"),
    "frames": (frames.read_frames, registry.PROMPTS / "choosing" / "en.toml"),
    "card": (cards.read_card, registry.CLASSIFIERS / "stories.toml"),
    "models": (models.read, ""),
    "about": (document.read_about, ""),
    "elicitation": (collect.read_pack, registry.PROMPTS / "elicitation" / "afristereo" / "en.toml"),
}


@pytest.mark.parametrize("name", [n for n, (_, p) in TOMLS.items() if not p or Path(p).is_file()])
def test_tomls(tmp_path, name):
    read, source = TOMLS[name]
    known = {"models": CASES["yesno", "models"][0].content}
    known["about"] = CASES["dataset document", "about"][0].content
    tree = packs.read_toml(Path(source)) if source else known[name]
    path = tmp_path / (Path(source).name if source else "a.toml")

    @SOME
    @given(
        changed(tree).map(lambda one: toml(one).encode("utf-8", "replace"))
        | damaged(toml(tree).encode())
    )
    @example(b'm = {id = "%s"}' % (b"9" * 5000))
    def reads(data):
        path.write_bytes(data)
        fine(read, path)

    reads()


# --- runs, and files of commands


@pytest.fixture(scope="module")
def around(tmp_path_factory):
    return surroundings(tmp_path_factory.mktemp("around"))


def looked_at(folder):
    """Read everything of a run that commands read."""
    with Run.open(folder) as opened:
        for records in (
            opened.statements,
            opened.requests,
            opened.responses,
            opened.logprobs,
            opened.failures,
        ):
            list(fine(records) or ())
        fine(opened.verify)
        fine(opened.scores)
        fine(opened.counts)
        fine(lambda: list(opened.exchanges()))


@pytest.mark.parametrize("task", ["yesno", "choices", "pairs"])
def test_runs(tmp_path, task):
    source = GOLDEN / task
    names = sorted(
        p.relative_to(source) for p in source.rglob("*") if p.is_file() and p.stat().st_size
    )
    folder = tmp_path / "run"

    @SOME
    @given(st.data())
    def reads(data):
        name = data.draw(st.sampled_from(names))
        shutil.copytree(source, folder, dirs_exist_ok=True)
        whole = (source / name).read_bytes()
        if name.suffix == ".jsonl" and data.draw(st.booleans()):
            first, _, rest = whole.partition(b"\n")
            tree = data.draw(changed(json.loads(first)))
            try:
                whole = json.dumps(tree).encode() + b"\n" + rest
            except ValueError:
                return
        else:
            whole = data.draw(damaged(whole))
        (folder / name).write_bytes(whole)
        words = data.draw(
            st.sampled_from(
                ["verify {}", "score {}", "verify {} --recompute", "review export {} -o {out}"]
            )
        )
        out = tmp_path / "sheet.csv"
        ended = run(
            [w.replace("{}", str(folder)).replace("{out}", str(out)) for w in words.split()]
        )
        for path in tmp_path.glob("sheet*"):
            path.unlink()
        assert not ended.failed, ended.failed
        shutil.rmtree(folder)

    reads()


def test_seals(tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(GOLDEN / "yesno", folder)
    fine(seal.seal, folder)
    path = folder / seal.NAME
    whole = path.read_bytes()
    tree = json.loads(whole.splitlines()[0])

    @SOME
    @given(damaged(whole) | changed(tree).map(_as_line))
    def reads(data):
        path.write_bytes(data)
        ended = run(["verify", str(folder)])
        assert not ended.failed, ended.failed

    reads()


def _as_line(tree):
    try:
        return json.dumps(tree).encode() + b"\n"
    except ValueError:
        return b"null\n"


@SOME
@given(st.data())
def test_specs(data):
    whole = json.loads((GOLDEN / "yesno" / "run.json").read_text(encoding="utf-8"))
    fine(Spec.from_json, _as_line(data.draw(changed(whole))))


ALL = [(key, at) for key, cases in CASES.items() for at in range(len(cases))]
SLOW = ("report", "score {run}", "classifiers", "dataset group")


def test_commands(around, tmp_path):
    """Any command, with its own file of which parts are others."""
    known = [CASES[key][at] for key, at in ALL if not CASES[key][at].words.startswith(SLOW)]

    @SOME
    @given(st.data())
    def reads(data):
        case: Case = data.draw(st.sampled_from(known))
        suffix = data.draw(st.sampled_from(case.suffixes))
        content = content_of(case, around)
        try:
            if data.draw(st.booleans()) and not isinstance(content, str):
                whole = to_bytes(data.draw(changed(content)), suffix)
            else:
                whole = data.draw(damaged(to_bytes(content, suffix)))
        except Exception:
            return  # a file of this kind cannot hold it
        path, out = tmp_path / f"a{suffix}", tmp_path / "out"
        path.write_bytes(whole)
        out.mkdir()
        try:
            ended = run(words_of(case, path, around, out))
        finally:
            shutil.rmtree(out)
        assert not ended.failed, (case.words, suffix, ended.failed)

    reads()
