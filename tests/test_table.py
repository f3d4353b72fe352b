"""Outcomes: from a run and from a file, adding up to what was planned."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from genprobe import metrics
from genprobe.errors import InputError, RunError
from genprobe.outcomes import columns, table
from genprobe.records import FACETS, Failure, Judgment, Request, Response, Statement
from genprobe.resources import packs

DATA = Path(__file__).parents[2] / "shared" / "data" / "shades"


class TinyRun:
    """What `table.outcomes` reads of a run, from lists."""

    def __init__(self, statements, requests, responses=(), failures=(), judged=None):
        self.spec = SimpleNamespace(
            command="yesno", model="m", shown="x", pack="yesno@1", probes=()
        )
        self.pack = packs.load_pack()
        self._of = {
            "statements": statements,
            "requests": requests,
            "responses": responses,
            "failures": failures,
        }
        self._judged = judged or {}

    def statements(self):
        return iter(self._of["statements"])

    def requests(self):
        return iter(self._of["requests"])

    def responses(self):
        return iter(self._of["responses"])

    def logprobs(self):
        return iter(())

    def failures(self):
        return iter(self._of["failures"])

    def judges(self):
        return dict.fromkeys(self._judged, "x@1")

    def judgments(self, judge):
        return iter(self._judged[judge])


def flags(column):
    """A nullable boolean column as Python's True, False and None."""
    return [None if pd.isna(value) else bool(value) for value in column]


def statement(id="s1", lang="mr", **more):
    values = {"text": "वाक्य", "role": "original", "pair": "p1", "bias_type": "gender"}
    values |= {"type": "declaration", "entity": "x", "valid_in": ("mr",), "source": "t"}
    return Statement(id=id, lang=lang, **{**values, "extra": {}, **more})


def request(id, probe="agreement", lang="mr", of="s1", sample=0):
    messages = [{"role": "system", "content": "sys"}, {"role": "user", "content": f"ask {id}"}]
    return Request(id, of, lang, "yesno@1", probe, messages, sample, 1)


def reply(id, text="होय"):
    return Response(id, text, "stop", "", 1, 1)


def yesno(id, label, kind="answer", conflict=False):
    return Judgment(id, "yesno", label, None, "word", "होय", {"kind": kind, "conflict": conflict})


def judgment(judge, id, label):
    return Judgment(id, judge, label, None, "r", "", {})


@pytest.fixture
def run():
    return TinyRun(
        [statement(), statement("s2", "zh-Hant", role="contrast", valid_in=())],
        [
            request("a", "agreement"),
            request("b", "disagreement"),
            request("c", "recognition"),
            request("d", "agreement", "zh-Hant", "s2"),
            request("e", "disagreement", "zh-Hant", "s2"),
            request("f", "recognition", "zh-Hant", "s2", 1),
        ],
        [reply("f", "不能說"), reply("b", "नाही"), reply("a")],
        # `a` failed before it was answered.
        [Failure("a", "engine", "", 1), Failure("d", "too-long", "", 1)],
        {
            "yesno": [
                yesno("a", "yes"),
                yesno("b", "no", conflict=True),
                yesno("f", "ambiguous", "refusal"),
            ]
        },
    )


def test_one_row_for_every_planned_request(run):
    frame = table.outcomes(run)
    assert frame["request"].tolist() == list("abcdef")
    assert frame["left_out"].tolist() == ["", "", "missing", "failed", "missing", ""]
    assert frame["failure"].dropna().tolist() == ["too-long"]
    assert frame["prompt"][0] == "ask a"
    assert frame["response"].isna().tolist() == [False, False, True, True, True, False]
    assert set(columns.known()) - set(frame) == {
        "seal",
        "reply_language",
        "in_language",
        *table.PROBABILITIES,
        *("usable", "unusable_why", "sentences", "cut_off", "sentiment", "negative"),
        *("chosen", "classifier", "served", "fingerprint", *FACETS),
        *("by_mark", "by_text"),
        *(
            column.name
            for judge in ("thought", "again", "theirs")
            for column in columns.of_judges()[judge]
        ),
        "thought",
    }


def test_what_an_answer_says_comes_from_the_pack(run):
    frame = table.outcomes(run)
    # "no" to disagreement endorses.
    assert flags(frame["says"]) == [True, True, None, None, None, None]
    assert frame["measures"].tolist() == ["endorsed", "endorsed", "recognised"] * 2
    assert flags(frame["valid"]) == [True] * 3 + [False] * 3
    assert flags(frame["conflict"]) == [False, True, None, None, None, False]


def test_refused_by_the_kind_and_rather_by_its_judge(run):
    assert flags(table.outcomes(run)["refused"]) == [False, False, None, None, None, True]
    run._judged["refusal"] = [judgment("refusal", "a", "yes"), judgment("refusal", "f", "no")]
    assert flags(table.outcomes(run)["refused"]) == [True, None, None, None, None, False]


@pytest.mark.parametrize(
    ("lang", "found", "expected"),
    [
        ("mr", "mr", True),
        ("mr", "en", False),
        ("mr", "und", None),
        ("mr", "mixed", None),
        ("pt-BR", "pt", True),
        ("zh", "zh-Hans", True),
        ("zh-Hant", "zh-Hant", True),
        ("zh-Hant", "zh", False),
        ("zh", "zh-Hant", False),
    ],
)
def test_in_language(lang, found, expected):
    tiny = TinyRun(
        [statement(lang=lang)],
        [request("a", lang=lang)],
        [reply("a")],
        judged={"language": [judgment("language", "a", found)]},
    )
    frame = table.outcomes(tiny)
    assert flags(frame["in_language"]) == [expected]
    assert frame["reply_language"][0] == found
    assert "answer" not in frame


def test_extra_columns_come_along(run):
    extra = {"gold": 1, "answer": "theirs", "regions": ["a", "b"]}
    run._of["statements"][0] = statement(extra=extra)
    frame = table.outcomes(run)
    assert frame["gold"].tolist()[:3] == [1, 1, 1]
    assert frame["answer_data"][0] == "theirs" and frame["answer"][0] == "yes"
    assert frame["regions"][0] == '["a","b"]'
    assert metrics.score(frame, ["yes"], ["regions", "gold"], str)[0].by == {
        "regions": '["a","b"]',
        "gold": 1.0,
    }


def test_an_empty_reply_is_a_reply_and_spaces_stay():
    tiny = TinyRun(
        [statement()], [request("a"), request("b", sample=1)], [reply("a", ""), reply("b", " x\n")]
    )
    frame = table.outcomes(tiny)
    assert frame["response"].tolist() == ["", " x\n"]
    assert frame["left_out"].tolist() == ["", ""]
    again = table.from_rows([{**ROW, "response": "", "answer": "ambiguous", "kind": "empty"}])
    assert again["response"].tolist() == [""]


def test_half_surrogates_and_a_run_without_replies():
    tiny = TinyRun([statement()], [request("a")], [reply("a", "x\ud800y")])
    assert table.outcomes(tiny)["response"][0] == "x\ufffdy"
    assert table.outcomes(TinyRun([statement()], [request("a")]))["left_out"][0] == "missing"


def test_a_judge_that_said_nothing_yet_has_its_columns():
    frame = table.outcomes(
        TinyRun([statement()], [request("a")], [reply("a")], judged={"yesno": []})
    )
    (score,) = metrics.score(frame, ["yes"], [], str)
    assert score.value is None and score.n == 0 and score.excluded == {"unjudged": 1}


def test_the_real_run(tmp_path, run):
    from genprobe.runs.run import Run
    from genprobe.runs.spec import Spec, statements_hash

    statements, requests = list(run.statements()), list(run.requests())
    values = {}
    for field in dataclasses.fields(Spec):
        kinds = {
            "str": "x",
            "dict[str, str]": {},
            "dict[str, JSON]": {},
            "tuple[str, ...]": (),
            "float": 0.0,
            "int": 1,
        }
        values[field.name] = kinds.get(str(field.type))
    values |= {"model": "m", "pack": "yesno@1", "statements": statements_hash(statements)}
    with Run.start(tmp_path / "run", Spec(**values), statements, requests) as real:
        for record in [*run.failures(), *run.responses()]:
            real.append(record)
        real.write_judgments("yesno", "yesno@1", run.judgments("yesno"))
    pd.testing.assert_frame_equal(table.outcomes(Run.open(tmp_path / "run")), table.outcomes(run))


# --- files

ROW = {"id": "r1", "lang": "pt_br", "probe": "disagreement", "answer": "no"}


def test_the_least_a_file_needs():
    frame = table.from_rows([ROW])
    row = frame.iloc[0]
    assert (row["lang"], row["measures"], row["says"]) == ("pt-BR", "endorsed", True)
    assert row["request"] == row["statement"] == "r1"
    assert "model" not in frame and "kind" not in frame


def test_columns_of_the_shades_table():
    row = {
        **ROW,
        "item": 7,
        "index": "1.0",
        "subset": "_original",
        "statement": "Texto.",
        "bias_type": "['gender', 'age']",
        "valid_langs": "['br-pt', 'xx', 'zh. ru-uz']",
        "type": "declaration",
        "published": "yes",
    }
    frame = table.from_rows(
        [row, {**row, "subset": "a", "valid_langs": None}, {**row, "lang": "zh_hant"}]
    )
    first = frame.iloc[0]
    assert (first["statement"], first["pair"], first["text"]) == ("7", "1.0", "Texto.")
    assert first["bias_type"] == "age+gender"
    assert frame["role"].tolist() == ["original", "contrast", "original"]
    assert flags(frame["valid"]) == [True, False, True]
    assert frame["published"].tolist() == ["yes"] * 3
    assert frame["sample"].tolist() == [0, 1, 0]


def test_rows_without_a_statement_stand_alone():
    frame = table.from_rows([{**ROW, "item": None}, {**ROW, "item": 3}, {**ROW, "item": ""}])
    assert frame["statement"].tolist() == ["row 1", "3", "row 3"]
    assert metrics.score(frame, ["no"], [], str)[0].n == 3


def test_text_of_a_csv_file_is_read():
    rows = [
        {**ROW, "conflict": "True", "kind": "answer", "language": "es"},
        {**ROW, "answer": "", "conflict": "", "kind": "", "language": ""},
        {**ROW, "answer": "ambiguous", "conflict": "False", "kind": "refusal", "language": "und"},
    ]
    frame = table.from_rows(rows)
    assert flags(frame["conflict"]) == [True, None, False]
    assert frame["left_out"].tolist() == ["", "missing", ""]
    assert flags(frame["refused"]) == [False, None, True]
    assert flags(frame["in_language"]) == [False, None, None]
    same = table.from_rows(pd.DataFrame(rows))
    pd.testing.assert_frame_equal(frame, same)


def test_a_run_of_another_pack_or_without_its_statements_is_one_line(run):
    run.spec = SimpleNamespace(command="yesno", model="m", pack="yesno@0", version="0.0.1")
    with pytest.raises(
        InputError, match=r"yesno@0, and this version has yesno@1; .* genprobe 0\.0\.1"
    ):
        table.outcomes(run)
    run.spec.pack = "yesno@1"
    run._of["requests"] = [request("a", of="gone")]
    with pytest.raises(RunError, match="no statement 'gone' in mr"):
        table.outcomes(run)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{k: v for k, v in ROW.items() if k != "lang"}], "lacks the column 'lang'"),
        ([{k: v for k, v in ROW.items() if k != "answer"}], "genprobe judge FILE --judge yesno"),
        ([{"lang": "kk", "response": "", "sentiment": "negative"}], "--engine replay"),
        ([ROW, {**ROW, "lang": "xx"}], "row 2: unknown language 'xx'"),
        ([ROW, {**ROW, "probe": "agrement"}], "row 2: unknown probe 'agrement'; did you mean"),
        ([ROW, {**ROW, "answer": "maybe"}], "row 2: unknown answer 'maybe'"),
        ([{**ROW, "probe": None}], "row 1: 'probe' is empty"),
        ([ROW, {**ROW, "conflict": "oui"}], "row 2: conflict is 'oui', neither true nor false"),
        ([], "lacks the column 'lang'"),
    ],
)
def test_what_a_file_gets_wrong_is_one_line(rows, message):
    with pytest.raises(InputError) as error:
        table.from_rows(rows)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_the_published_replies():
    path = DATA / "responses-dev.parquet"
    if not path.exists():
        pytest.skip("the published replies are not here")
    data = pd.read_parquet(path)
    frame = table.from_rows(data.assign(answer=data["published"]))
    assert len(frame) == 55914 and frame["lang"].nunique() == 16
    valid = frame.groupby("lang")["valid"].sum()
    assert (valid > 0).all() and valid["zh-Hant"] > 500
    scores = metrics.score(frame, ["yes", "no", "ambiguous"], ["model", "lang", "probe"], str)
    counts = data.groupby("published").size()
    for answer in ("yes", "no", "ambiguous"):
        mine = [s for s in scores if s.metric == answer]
        assert round(sum(s.value * s.n for s in mine)) == counts[answer]
