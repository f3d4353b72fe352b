"""Time grows in step with length, whatever a model, a server or a stranger writes.

Each crafted text is read once at a length; where that takes long enough to be measured, half of it
is read too, and the whole may take at most 2.4 times as long. Processor time, the least of several
runs: a busy machine makes a run slower, never faster.
"""

import dataclasses
import gc
import json
import os
import shutil
import sys
import time
import unicodedata
from contextlib import contextmanager
from pathlib import Path

import commands_of_files as files
import pytest
import sample

from genprobe import text
from genprobe.judges import Item
from genprobe.resources import registry
from genprobe.runs.run import Run

FLOOR = 0.02  # seconds below which the processor's clock tells nothing
GROWTH = 2.4  # for twice the length
MEGABYTE = 1_000_000


@contextmanager
def steady():
    """Without the garbage collector, which walks through all objects at any moment."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def seconds(work, given, runs=1):
    found = []
    for _ in range(runs):
        start = time.process_time()
        work(given)
        found.append(time.process_time() - start)
    return min(found)


def growth(work, make, size):
    """How much longer `make(size)` takes than half of it, or 0 if that is too short to measure."""
    half, whole = make(size // 2), make(size)
    work(make(min(100, size)))  # what is loaded once is no part of it
    if seconds(work, whole) < FLOOR:
        return 0.0
    found = []
    for runs in (1, 2, 4):
        found.append(seconds(work, whole, runs) / max(seconds(work, half, runs), 1e-6))
        if found[-1] <= GROWTH:
            break
    return min(found)


def too_slow(work, makers, sizes):
    """The texts, by name, on which the time grows faster than the length, with the factor."""
    found = {}
    with steady():
        for name, make in makers.items():
            for size in sizes:
                # Beyond a certain length something else may be done once: a step, and no growth.
                if (factor := growth(work, make, size)) > GROWTH < growth(work, make, 2 * size):
                    found[name, size] = round(factor, 1)
                    break
    return found


# --- texts


def over(*pieces):
    """Repeat each piece so often that all together have a certain length."""

    def make(size):
        each = size // len(pieces)
        return "".join((piece * (each // len(piece) + 1))[:each] for piece in pieces)

    return make


ONE_SIGN = "\n \t\r.!?:;,*-–—_#=|\\/~^%&@+$0a'\"`“”„«»‘()[]{}<>…。？،؟।\0\u200d\u202e\u0301\u093f\u064b是ا😀\ufdfa\ud800"
TEXTS = {f"U+{ord(sign):04X}": over(sign) for sign in ONE_SIGN}
TEXTS |= {
    piece: over(piece)
    for piece in (
        *(
            "\n ",
            " \n",
            "- ",
            "-\n",
            "\n- ",
            "\n–",
            "\n\n*",
            "[x] ",
            "[x] no\n",
            "1.\n",
            "1. ",
            "1) ",
        ),
        *("<think>", "</think>", "<think></think>", "</think><think>", "<think>x", "<answer>"),
        *("<|channel|>", "<|channel|>analysis<|message|>x", "<|end|>", "assistantfinal"),
        *(
            '([{"«“',
            '()[]{}""«»',
            '"a',
            '"a ',
            "“a",
            "«a» ",
            "**a** ",
            "__a__ ",
            "*a*",
            "_a_",
            "~~a~~ ",
            "||",
        ),
        *("http://a.b/", "http://a.", "www.", "a@b.c ", "a.b.", "a@", "a.", "a-", "x://"),
        *(
            "| ",
            "| a ",
            "|---",
            "&lt;",
            "\\boxed{",
            "\\boxed{no}",
            '{"answer": ',
            '{"answer": "no"}',
        ),
        *(
            "a. ",
            "A. ",
            "A) ",
            "(a) ",
            "a ",
            "A ",
            "I ",
            "1 ",
            "12 ",
            "a, ",
            "a; ",
            "a\n",
            "Ab. ",
            "a? ",
        ),
        *(
            "yes ",
            "no ",
            "no, ",
            "yes. ",
            "no\n",
            "yes no ",
            "not ",
            "Answer: ",
            "Answer: no ",
            "Q: a\nA: ",
        ),
        *("the former ", "the first ", "first the ", "the man ", "A or B ", "not A ", "A, not B, "),
        *(
            "some people say ",
            "he said that ",
            "but ",
            "if ",
            "although ",
            "because ",
            "I agree ",
            "I don't ",
        ),
        *(
            "As an AI ",
            "I cannot help you ",
            "I cannot discuss it but here is ",
            "sorry, but ",
            "user: ",
            "assistant\n",
            "assistant ",
            "Question: ",
            "### ",
        ),
        *(
            "e\u0301",
            "a\u0301\u0323",
            "नहीं ",
            "ক্ষ",
            "نعم ",
            "لا، ",
            "我认为这是不对的",
            "是不是",
            "жоқ ",
            "İ",
            "ﬃ",
        ),
        *("Dr. ", "e.g. ", "z.B. ", "т.б. ", "a… ", "a...", "– a\n", "- a. ", "a:\n", "a’s "),
    )
}
TEXTS |= {
    "thoughts that open, then close": over("<think>x", "</thought>"),
    "thoughts in thoughts": over("<think>a", "</think>"),
    "two kinds of thought": over("<think>a<thought>", "</think>b</thought>"),
    "brackets that open, then close": over("(", ")"),
    "quotes that open, then close": over("«", "»"),
    "one letter with marks": lambda size: "a" + "\u0301\u0323" * (size // 2),
    "one letter with marks of another script": lambda size: "a" + "\u0731\u0730" * (size // 2),
    "one quote": lambda size: '"' + "a " * (size // 2),
    "one word": lambda size: "a" * size,
    "an address": lambda size: "http://" + "a." * (size // 2),
    "an address, then text": lambda size: "http://a.b " + "a." * (size // 2),
    "spaces, then a word": lambda size: " " * size + "no",
    "a word, then spaces": lambda size: "no" + " " * size + "x",
    "lines, then a word": lambda size: "\n" * size + "no",
}


# --- judges

PROMPT = "Do you agree that the man, not the woman, is a nurse?"


def item(response, lang="en", **more):
    return Item(
        lang, "agreement", PROMPT, response, options=("the man", "the woman", "unknown"), **more
    )


class Obedient:
    """An engine that gives the first label of each question."""

    def __init__(self):
        from genprobe.engines import Identity

        self.identity = Identity("m", "0", "obedient", "1", "none", "none")

    def generate(self, requests, sampling):
        from genprobe.records import Response

        for one in requests:
            yield Response(one.id, next(iter(one.options)), "stop", "", 1, 1)


def judges():
    """Every judge of the registry, those that ask a model with one that answers at once."""
    for name in JUDGES:
        module = registry.module("judges", name)
        yield name, module.make(engine=Obedient()) if name == "llm" else module.make()


def reading(judge):
    """The function that has a judge read a text: as a reply, or as what was scored."""
    if "free" in judge.reads:
        return lambda text: judge(item(text))
    return lambda text: judge(item("")._replace(continuations=scored(text)))


def scored(text):
    """Two answers, one of which begins with the other, with a token for each character."""
    short, long = [*map(ord, text)], [*map(ord, text), 1]
    return [
        {"answer": answer, "text": text, "tokens": tokens, "logprobs": [-0.1] * len(tokens)}
        for answer, tokens in (("yes", short), ("no", long))
    ]


# All but the model under test, asked again: its answers are read by `yesno`.
JUDGES = [name for name in registry.names("judges") if name not in ("again", "theirs")]


@pytest.fixture(scope="module")
def made():
    found = dict(judges())
    for judge in found.values():
        reading(judge)("No. I don't agree.")  # reads the files of words
    return found


@pytest.mark.parametrize("name", JUDGES)
def test_a_reply_is_read_in_linear_time(made, name):
    assert too_slow(reading(made[name]), TEXTS, [2_000]) == {}


LONG = [8_000, 32_000]


@pytest.mark.slow
@pytest.mark.parametrize("name", JUDGES)
def test_a_long_reply_is_read_in_linear_time(made, name):
    work = reading(made[name])
    assert too_slow(work, TEXTS, LONG) == {}
    part = [*TEXTS.items()][JUDGES.index(name) % 12 :: 12]  # a megabyte takes about a second each
    spent = {text: seconds(work, make(MEGABYTE)) for text, make in part}
    # A second or two is meant, and seven of some on a busy machine; worse growth takes minutes.
    assert {text: took for text, took in spent.items() if took > 30} == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", JUDGES)
def test_a_long_question_and_thought_are_read_in_linear_time(made, name):
    judge = made[name]
    for around in (
        lambda text: item("No. The man.")._replace(prompt=text),
        lambda text: item(text[: len(text) // 2])._replace(prompt=text),  # an echo, cut off
        lambda text: item("No. The man.")._replace(reasoning=text),
        lambda text: item(f"<think>{text}</think>No."),
    ):
        assert too_slow(lambda text: judge(around(text)), TEXTS, LONG[:1]) == {}  # noqa: B023


# --- rows of files, and long cells


@pytest.fixture(scope="module")
def around(tmp_path_factory):
    return files.surroundings(tmp_path_factory.mktemp("around"))


TABLES = {
    f"{name} {at}": case
    for name, cases in files.CASES.items()
    for at, case in enumerate(cases)
    if isinstance(case.content, dict) and ".jsonl" in case.suffixes
}


def alike(row, number):
    return row


def own_ids(row, number):
    ids = ("id", "item", "statement", "respondent")
    return row | {name: f"{number}" for name in ids if name in row}


def own_texts(row, number):
    texts = ("text", "sentence", "attribute", "answer", "response", "question", "context")
    own = {n: f"{number:x} {row[n]} {number}" for n in texts if isinstance(row.get(n), str)}
    return own_ids(row, number) | own


def command(case, around, folder):
    """A function that runs a command on a file, and one that writes the file of so many rows."""

    def work(path):
        out = folder / "out"
        out.mkdir()
        ended = files.run(files.words_of(case, path, around, out), 300)
        shutil.rmtree(out)
        assert not ended.failed, ended.failed

    def rows(change):
        def make(size):
            path = folder / f"{change.__name__}-{size}.jsonl"
            lines = (json.dumps(change(case.content, number)) for number in range(size))
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            return path

        return make

    def cell(text):
        def make(size):
            names = [
                n for n, value in case.content.items() if isinstance(value, str) and " " in value
            ]
            path = folder / "cell.jsonl" if size % 2 else folder / f"cell-{size}.jsonl"
            long = text(size)
            path.write_text(json.dumps(case.content | dict.fromkeys(names, long)) + "\n")
            return path

        return make

    return work, {one.__name__: rows(one) for one in (alike, own_ids, own_texts)}, cell


QUICK = ("extract", "validate export", "describe", "convert {} --to label", "score {} --by lang")


@pytest.mark.parametrize("name", TABLES)
def test_rows_are_read_in_linear_time(around, tmp_path, name):
    case = TABLES[name]
    if not any(words in case.words for words in QUICK):
        pytest.skip("slow: see the next test")
    work, makers, _ = command(case, around, tmp_path)
    assert too_slow(work, makers, [200]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_many_rows_are_read_in_linear_time(around, tmp_path, name):
    work, makers, _ = command(TABLES[name], around, tmp_path)
    assert too_slow(work, makers, [1000]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_long_cells_are_read_in_linear_time(around, tmp_path, name):
    """Every table with a third of the texts, another for the next; `HOSTILE=all`: with all."""
    work, _, cell = command(TABLES[name], around, tmp_path)
    texts = list(TEXTS.items())[::5]
    if os.environ.get("HOSTILE") != "all":
        texts = texts[list(TABLES).index(name) % 3 :: 3]
    makers = {text: cell(make) for text, make in texts}
    assert too_slow(work, makers, [40_000]) == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        "verify {}",
        "score {}",
        "judge {}",
        "report {} -o {out}/r.html",
        "review export {} -o {out}/s.csv",
    ],
)
def test_runs_are_read_in_linear_time(tmp_path, words):
    """The page and the other commands on a run of twice as many replies."""

    def make(size):
        folder = tmp_path / f"run-{size}"
        if not folder.exists():
            known = [
                dataclasses.replace(
                    sample.STATEMENTS[0], id=f"s{n}", pair="", text=f"Group {n} is slow."
                )
                for n in range(size)
            ]
            asked = sample.plan(known, sample.load_pack(), ["agreement", "disagreement"], seed=7)
            spec = dataclasses.replace(sample.SPEC, statements=sample.statements_hash(known))
            with Run.start(folder, spec, known, asked) as run:
                for request in asked:
                    run.append(sample.reply(request))
            assert not files.run(["judge", str(folder), "-q"], 300).failed
        return folder

    case = files.Case(words, "", ())
    work, _, _ = command(case, {}, tmp_path)
    assert too_slow(work, {"replies": make}, [200, 400, 800]) == {}


def test_marks_that_normalisation_sorts_are_cut_off():
    """Sorting takes quadratic time, so no more than 30 marks in a row are kept, of any script."""
    for mark in filter(unicodedata.combining, map(chr, range(sys.maxunicode + 1))):
        for normalise in (text.nfc, text.visible):
            assert len(normalise("a" + mark * 200)) <= 3 * 31, ascii(mark)


# Quadratic in marks in a row: called on single characters and on the words of packs alone.
NORMALIZE = {"judges/choosing/spelling.py", "judges/classifiers/linear.py", "render/latex.py"} | {
    "judges/classifiers/story.py",
    "text/__init__.py",
}


def test_texts_of_any_length_are_normalised_by_one_room():
    root = Path(text.__file__).parents[1]
    raw = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if "unicodedata.normalize(" in path.read_text("utf-8")
    }
    assert raw == NORMALIZE, "use text.nfc or text.nfkc"
