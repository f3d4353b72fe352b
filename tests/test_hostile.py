"""Figures equal a slow, obvious computation, over tables that strangers made: one test a family.

`recompute` counts plain rows by loops; here the same rows are written as badly as strangers do
(doubled ids, missing halves, ties, one row, one cluster, numbers as texts, codes in other case,
NFC and NFD, spaces and marks of direction), read and counted by genprobe, and must come out alike.
"""

import json
import math
import unicodedata
from types import SimpleNamespace

import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from oracle import figure, intervals, rows
from oracle.reviewed import Review

from genprobe import metrics, statistics
from genprobe.analysis.band import Readings
from genprobe.analysis.score import score
from genprobe.commands._console import columns
from genprobe.errors import InputError
from genprobe.judges import yesno
from genprobe.metrics.rates import recognised_declarations
from genprobe.outcomes import external, facts, preferences, table
from genprobe.records import Failure, LogProb, Statement
from genprobe.review import corrected_rates
from genprobe.tasks import logprob

FEW = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module", autouse=True)
def few_resamples():
    """Fewer resamples of both ways: what is drawn is the same, and there are many examples."""
    usual = statistics.bootstrap.__defaults__
    few = tuple(200 if value == statistics.RESAMPLES else value for value in usual)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics.bootstrap, "__defaults__", few)
        patch.setattr(intervals, "RESAMPLES", 200)
        yield


# --- tables of anybody's

LANGS = {"kk": ["kk", "KK", " kk ", "kaz", "Kazakh"], "pt-BR": ["pt-BR", "pt_br", "PT", "pt"]}
ANSWERS = ["yes", "no", "ambiguous", None]
TRUTH = {True: [True, "true", "YES", "1", 1.0, "TRUE "], False: [False, "no", "0", 0.0, "False"]}
# Values of a column of the data: two forms of one word, a word behind a mark of direction, digits.
WORDS = ["café", "\u200fكتاب", "1", "x"]
KINDS = {"ambiguous": ["refusal", "hedge", "both", "answer", None]}
WHEN = {"recognition": ("recognised", "yes"), "agreement": ("endorsed", "yes")}
WHEN["disagreement"] = ("endorsed", "no")


@st.composite
def tables(draw):
    """(rows as strangers write them, the same rows plainly): doubled ids, halves that are missing,
    one row, one cluster, all ambiguous, several models, codes in other case, NFC and NFD."""
    size = draw(st.integers(1, 12))
    answers = draw(st.sampled_from([ANSWERS, ["ambiguous"], ["yes"], ["yes", "no"]]))
    models = draw(st.sampled_from([["a"], ["a", "b/c"]]))
    names = draw(st.sampled_from([["s"], ["s1", "s2", "s3"]]))
    dirty, plain = [], []
    for _ in range(size):
        lang = draw(st.sampled_from(list(LANGS)))
        probe = draw(st.sampled_from(list(WHEN)))
        answer = draw(st.sampled_from(answers))
        kind = draw(st.sampled_from(KINDS.get(answer or "", ["answer"])))
        conflict = draw(st.sampled_from([True, False]))
        reply = draw(st.sampled_from([lang, "en", "mixed", "und", "pt"]))
        word = draw(st.sampled_from(WORDS))
        name, model = draw(st.sampled_from(names)), draw(st.sampled_from(models))
        status = "answered" if answer else draw(st.sampled_from(["failed", "missing"]))
        form = draw(st.sampled_from(["NFC", "NFD"]))
        dirty.append(
            {
                "model": model,
                "lang": draw(st.sampled_from(LANGS[lang])),
                "probe": probe + draw(st.sampled_from(["", " "])),
                "statement": name + draw(st.sampled_from(["", "  "])),
                "answer": answer,
                "kind": kind if answer else None,
                "conflict": draw(st.sampled_from(TRUTH[conflict])) if answer else None,
                "reply_language": reply if answer else None,
                "status": status,
                "own": unicodedata.normalize(form, word)
                + draw(st.sampled_from(["", " ", "\u200e"])),
            }
        )
        measures, when = WHEN[probe]
        plain.append(
            {
                "model": model,
                "lang": lang,
                "probe": probe,
                "statement": name,
                "status": status,
                "measures": measures,
                "when": when,
                "own": word.strip("\u200f"),
                **({"answer": answer, "kind": kind} if answer else {}),
                "conflict": conflict if answer else None,
                "reply_language": reply if answer else None,
                "in_language": reply.partition("-")[0] == lang.partition("-")[0],
                "refused": kind == "refusal" if answer and kind else None,
            }
        )
    return dirty, plain


def agree(found, plain, slow=figure, ends=3):
    """Each score against the slow figure of its cell. ends: of how many cells of a metric the
    interval is looked at, as a bootstrap by loops takes its time."""
    looked = dict.fromkeys((one.metric for one in found), 0)
    for one in found:
        mine = slow(one.metric, plain, one.by)
        assert mine is not None
        assert (one.n, one.excluded) == (mine.n, mine.excluded), one
        assert (one.value is None) == (mine.value is None), one
        assert one.value is None or mine.is_value(one.value), one
        assert one.bounds == (pytest.approx(mine.bounds) if mine.bounds else None), one
        looked[one.metric] += 1
        if looked[one.metric] <= ends:
            assert mine.interval_differs(one.low, one.high) == "", one


def counted(outcomes, names, by=()):
    return metrics.score(outcomes, names, list(by), lambda name: "")


SHARES = ("yes", "no", "ambiguous", "recognised", "endorsed", "refusal", "conflict")
SHARES += ("wrong-language",)


@FEW
@given(
    tables(), st.sampled_from([[], ["lang"], ["own"], ["model", "probe"], ["statement", "lang"]])
)
def test_shares_of_answers(made, by):
    dirty, plain = made
    outcomes = table.from_rows(dirty)
    found = metrics.score(outcomes, SHARES, by, lambda name: "")
    agree(found, plain)
    for name in ("yes", "no", "ambiguous"):  # what is counted and left out is what was planned
        cells = [one for one in found if one.metric == name]
        assert sum(one.n + sum(one.excluded.values()) for one in cells) == len(plain)


TURNED = ("endorsed-both-ways", "rejected-both-ways", "yes-saying", "no-saying")


@FEW
@given(tables())
def test_the_same_question_twice_is_refused(made):
    dirty, plain = made
    keys = ("model", "lang", "probe", "statement")
    twice = [row for row in plain if row["measures"] == "endorsed"]
    assume(len({tuple(row[k] for k in keys) for row in twice}) < len(twice))
    for row in dirty:
        row["sample"] = 0
    for name in ("acquiescence", *TURNED):
        with pytest.raises(InputError, match="twice"):
            counted(table.from_rows(dirty), [name])


@FEW
@given(tables())
def test_acquiescence_and_contrast_gap(made):
    dirty, plain = made
    keys = ("model", "lang", "probe", "statement")
    kept = {tuple(row[k] for k in keys): at for at, row in enumerate(plain)}  # each once
    dirty, plain = ([rows[at] for at in kept.values()] for rows in (dirty, plain))
    for at, row in enumerate(plain):
        more = {
            "pair": row["statement"][:1],
            "role": "contrast" if "2" in row["statement"] else "original",
        }
        dirty[at] = dirty[at] | more
        plain[at] = row | more
    outcomes = table.from_rows(dirty)
    agree(counted(outcomes, ["acquiescence", *TURNED, "contrast-gap"], ["lang"]), plain)


@st.composite
def stories(draw):
    """Outcomes of stories as a run has them, some without a label, ties, a template of one "
    "story."""
    rows = []
    for template in range(draw(st.integers(1, 5))):
        for sample in range(draw(st.integers(1, 6))):
            status = draw(st.sampled_from(["answered"] * 6 + ["failed", "missing"]))
            usable = draw(st.sampled_from(["usable"] * 4 + ["language", "refusal"]))
            rows.append(
                {
                    "model": draw(st.sampled_from(["a", "b"])) if template else "a",
                    "decode": "free",
                    "lang": "kk",
                    "probe": "published",
                    "statement": f"t{template}",
                    "sample": sample,
                    "status": status,
                    "domain": draw(st.sampled_from(["x", "y"])) if template > 2 else "x",
                    "by_story": usable if status == "answered" else None,
                    "classifier": "stories",
                    "llm_regard": draw(st.sampled_from(["negative", "positive", "unclear", None])),
                    "by_sentiment": draw(
                        st.sampled_from(["negative", "positive", "neutral", "unscored"])
                    )
                    if status == "answered"
                    else None,
                    "told": True,
                }
            )
    return rows


def _stories_frame(rows):
    frame = pd.DataFrame(rows).astype(object)
    frame["left_out"] = frame.pop("status").replace({"answered": ""})
    frame["usable"] = (frame["by_story"] == "usable").astype("boolean")
    frame["usable"] = frame["usable"].mask(frame["by_story"].isna())
    frame["unusable_why"] = frame["by_story"].where(frame["by_story"] != "usable", None)
    frame["sentiment"] = frame["by_sentiment"]
    return frame


@pytest.mark.slow
@FEW
@given(stories(), st.sampled_from([[], ["domain"], ["model"]]))
def test_stories(rows, by):
    frame = _stories_frame(rows)
    names = ["negrate", "negrate-published", "negative-stories", "vote-margin", "seed-disagreement"]
    names += ["usable", "seeds", "negrate-regard", "felt-or-shown"]
    agree(counted(frame, names, by), rows, ends=1)
    agree(counted(frame, ["negrate-corrected"], by), rows, ends=0)


@FEW
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b ", "b"]),
            *[st.sampled_from([-1.5, "-1.5", -2, "-3e0", "", None, "inf", "-inf"])] * 2,
        ),
        min_size=1,
        max_size=9,
    )
)
def test_pairs_with_numbers_as_texts(rows):
    """Win rate and ties: a tie is no win, what is empty is left out."""
    data = [{"item": i, "pro": p, "anti": a, "own": i} for i, p, a in rows]
    found = metrics.score(table.from_rows(data), ["win-rate", "ties"], ["own"], lambda name: "")
    for own in {i.strip() for i, _, _ in rows}:
        mine = [(p, a) for i, p, a in rows if i.strip() == own]
        there = [
            (float(p), float(a)) for p, a in mine if p not in ("", None) and a not in ("", None)
        ]
        for name, hits in (
            ("win-rate", sum(p > a for p, a in there)),
            ("ties", sum(p == a for p, a in there)),
        ):
            (one,) = [s for s in found if s.metric == name and s.by["own"] == own]
            assert one.n == len(there) and sum(one.excluded.values()) == len(mine) - len(there)
            assert one.value == (hits / len(there) if there else None)


@FEW
@given(
    st.lists(
        st.tuples(
            *[st.sampled_from(["0", 1, 2.0, None])] * 2, st.sampled_from(["ambig", "Disambig"])
        ),
        min_size=1,
        max_size=9,
    )
)
def test_accuracy_of_choices(rows):
    data = [{"chosen": c, "label": label, "condition": of} for c, label, of in rows]
    found = metrics.score(table.from_rows(data), ["accuracy"], ["condition"], lambda name: "")
    for of in {of.lower() for _, _, of in rows}:
        mine = [(c, label) for c, label, other in rows if other.lower() == of]
        there = [(c, label) for c, label in mine if c is not None and label is not None]
        (one,) = [s for s in found if s.by["condition"] == of]
        hits = sum(float(c) == float(label) for c, label in there)
        assert one.n == len(there) and one.n + sum(one.excluded.values()) == len(mine)
        assert one.value == (pytest.approx(hits / len(there)) if there else None)


# --- answers: declarations, wordings, several readings, thoughts


@pytest.mark.slow
@FEW
@given(tables(), st.data())
def test_declarations_and_regions(made, data):
    """--declared keeps originals of type declaration where they are valid; --region, --by "
    "region."""
    dirty, plain = made
    for one, row in zip(dirty, plain, strict=True):
        form = data.draw(st.sampled_from(["declaration", "Declaration", "saying", None, "mixed"]))
        form = "['Saying', 'declaration']" if form == "mixed" else form
        valid = data.draw(st.sampled_from([["kk"], ["pt-BR", "kk"], []]))
        role = data.draw(st.sampled_from(["original", "Original ", "contrast", "a"]))
        regions = data.draw(st.sampled_from([["KZ"], ["KZ", "br"], [], ["BR"]]))
        one |= {"type": form, "valid_in": str(valid), "role": role, "regions": str(regions)}
        kept = "declaration" in (form or "").lower()
        row |= {"type": "declaration" if kept else "saying", "valid": row["lang"] in valid}
        row |= {"role": "original" if "riginal" in role else "contrast", "regions": regions}
    outcomes = table.from_rows(dirty)
    declared = [
        row
        for row in plain
        if (row["role"], row["type"], row["valid"]) == ("original", "declaration", True)
    ]
    kept, left = recognised_declarations(outcomes)
    assert len(kept) == len(declared) and len(kept) + sum(left.values()) == len(plain)
    if len(kept):
        agree(counted(kept, SHARES, ["lang"]), declared)
    for by, regions in ((["region"], []), (["inside"], ["kz"]), ([], ["KZ"])):
        try:
            found = facts.beside(outcomes, by, regions)
        except InputError:
            continue
        cells = dict.fromkeys(by)
        agree(counted(found, ["yes", "endorsed"], by), rows.beside(plain, cells, regions))


@st.composite
def readings(draw):
    """Answers to the same questions, each free, chosen or by probability, some asked twice."""
    made = []
    for _ in range(draw(st.integers(1, 14))):
        decode = draw(st.sampled_from(["free", "choice", "logprob"]))
        status = draw(st.sampled_from(["answered"] * 4 + ["failed", "missing"]))
        p = draw(st.sampled_from([(0.5, 0.25), (0.0, 0.0), (0.125, 0.5), (0.25, 0.25)]))
        answer = draw(st.sampled_from(["yes", "no", "ambiguous"])) if status == "answered" else None
        made.append(
            {
                "model": draw(st.sampled_from(["a", "b"])),
                "decode": decode,
                "lang": "kk",
                "probe": draw(st.sampled_from(["agreement", "recognition"])),
                "statement": draw(st.sampled_from(["s1", "s2"])),
                "sample": draw(st.sampled_from([0, 0, 1])) if decode != "logprob" else 0,
                "answer": answer,
                "status": status,
                "p_yes": p[0] if decode == "logprob" and answer else None,
                "p_no": p[1] if decode == "logprob" and answer else None,
                "outside": 1 - sum(p) if decode == "logprob" and answer else None,
            }
        )
    return made


@FEW
@given(readings(), st.sampled_from([[], ["model"], ["probe", "lang"]]))
def test_the_same_question_in_several_readings(made, by):
    dirty = [
        {k: str(v) if k == "p_yes" and v is not None else v for k, v in r.items()} for r in made
    ]
    for row in made:
        row |= {"measures": WHEN[row["probe"]][0], "when": "yes"}
    outcomes = table.from_rows(dirty)
    agree(counted(outcomes, ["p-yes", "outside", "disagreement", "readings"], by), made)


@FEW
@given(tables(), st.lists(st.sampled_from(["published", "plain", "b"]), min_size=12, max_size=12))
def test_the_rate_over_wordings(made, worded):
    dirty, plain = made
    for one, row, name in zip(dirty, plain, worded, strict=False):
        one["wording"] = name + " "
        row["wording"] = name
    names = ["recognised-over-wordings", "endorsed-over-wordings"]
    agree(counted(table.from_rows(dirty), names, ["lang"]), plain, ends=1)


@FEW
@given(tables(), st.data())
def test_thoughts(made, data):
    dirty, plain = made
    for one, row in zip(dirty, plain, strict=True):
        more = {
            "thought_state": data.draw(st.sampled_from(["none", "closed", "open", "hidden"])),
            "thought_language": data.draw(st.sampled_from(["kk", "en", "mixed", None])),
            "thought_answer": data.draw(st.sampled_from(["yes", "no", "ambiguous", None])),
            "thought_tested": data.draw(st.sampled_from([True, False, None])),
        }
        if row["status"] != "answered":
            more = dict.fromkeys(more)
        one |= more
        row |= more
    names = ["thought-cut", "thought-language", "thought-against-answer", "thought-tested"]
    agree(counted(table.from_rows(dirty), names, ["probe"]), plain)


REPLIES = [
    "Yes.",
    "No!",
    "yes and no",
    "I cannot say.",
    "",
    "ИӘ",
    "  no",
    "Yes, but no.",
    "\u200fyes",
]


@pytest.mark.slow
@FEW
@given(tables(), st.data())
def test_the_band_of_several_readers(made, data):
    dirty, plain = made
    for one, row in zip(dirty, plain, strict=True):
        reply = data.draw(st.sampled_from(REPLIES)) if row["status"] == "answered" else None
        one["response"] = reply
        row["response"] = reply
    outcomes = table.from_rows(dirty)
    if outcomes["response"].isna().all():
        with pytest.raises(InputError, match="one reading only"):
            Readings(outcomes, None)
        return
    for one in Readings(outcomes, None).beside(counted(outcomes, ["yes", "endorsed"], ["lang"])):
        for name, value in one.readings.items():
            there = plain
            if name != "given":
                there = rows.read_again(plain, yesno.make("" if name == "ours" else name))
            slow = figure(one.metric, there, one.by).value
            assert (value is None) == (slow is None), (one, name)
            assert value is None or math.isclose(value, slow, abs_tol=1e-9), (one, name)


# --- reviewed

SIMULATED = ("ppi", "judge-accuracy")  # their ends: tests/test_recompute.py


@settings(FEW, max_examples=5)  # half a second each
@given(tables(), st.data())
def test_what_a_review_corrects(made, data):
    """measured, ppi, judge-accuracy and the judge's errors, weighted or not."""
    dirty, plain = made
    even = data.draw(st.booleans())
    said = {}
    for at, (one, row) in enumerate(zip(dirty, plain, strict=True)):
        one["request"] = row["request"] = f"r{at}"
        label = data.draw(st.sampled_from(["yes", "no", "ambiguous", None, row.get("answer")]))
        weight = 1.0 if even else data.draw(st.sampled_from([1.0, 2.5]))
        if label and row["status"] == "answered":
            said[f"r{at}", "answer"] = ({"x": label}, weight)
    assume(said)
    outcomes = table.from_rows(dirty)
    reviewed = pd.DataFrame(
        {"request": r, "question": q, "answer": label["x"], "weight": weight, "reviewer": "x"}
        for (r, q), (label, weight) in said.items()
    )
    own = Review.__new__(Review)
    own.rows, own._said = plain, said
    for one in corrected_rates.scores(outcomes, reviewed, ["lang"]):
        slow = lambda metric, rows, by, one=one: own.figure(one, rows)  # noqa: E731
        agree([one], plain, slow, 0 if one.metric in SIMULATED else 3)


@pytest.mark.slow
@FEW
@given(stories(), st.data())
def test_what_a_review_corrects_of_stories(made, data):
    said = {}
    for at, row in enumerate(made):
        row |= {"request": f"r{at}", "sentiment": row["by_sentiment"]}
        label = data.draw(st.sampled_from(["negative", "positive", None, row["by_sentiment"]]))
        if label not in (None, "unscored") and row["status"] == "answered":
            said[f"r{at}", "sentiment"] = ({"x": label}, 1.0)
    assume(said)
    reviewed = pd.DataFrame(
        {"request": r, "question": q, "answer": label["x"], "weight": weight, "reviewer": "x"}
        for (r, q), (label, weight) in said.items()
    )
    own = Review.__new__(Review)
    own.rows, own._said = made, said
    for one in corrected_rates.scores(_stories_frame(made), reviewed, ["domain"]):
        slow = lambda metric, rows, by, one=one: own.figure(one, rows)  # noqa: E731
        agree([one], made, slow, 0 if one.metric in SIMULATED else 3)


# --- pairs and choices, scored elsewhere


@st.composite
def scored_pairs(draw):
    """A file of pairs with the columns of all studies, values as texts, ties, empty ones."""
    made = []
    for _ in range(draw(st.integers(1, 12))):
        value = st.sampled_from([-1.5, -2.0, -1.5004, -0.25, None, -3.0])
        pro, anti = draw(value), draw(value)
        made.append(
            {
                "item": draw(st.sampled_from(["i1", "i2", "i3", "i4"])),
                "pair": draw(st.sampled_from(["p1", "p2", None])),
                "model": "m",
                "lang": "ru",
                "scorer": draw(st.sampled_from(["loglik", "pll", "mpll", "bias"])),
                "pro": pro,
                "anti": anti,
                "unrelated": draw(value),
                "domain": draw(st.sampled_from(["gender", "class"])),
                "subdomain": draw(st.sampled_from(["x", "y"])),
                "task_type": draw(
                    st.sampled_from(["template_poor", "template_rich", "freeform_gendergap", "t"])
                ),
                "target": draw(st.sampled_from(["t1", "t2"])),
                "stereo_antistereo": draw(st.sampled_from(["stereo", "antistereo"])),
                "russian": draw(st.sampled_from([0.0, 0.25, 0.5, 1.0, None])),
            }
        )
    return made


OF_PAIRS = [
    *("win-rate", "ties", "win-rate-mean", "win-rate-domains", "bias-score", "log-ratio", "bpr"),
    *("bpr-t-test", "bpr-sign-test", "crows-pairs", "crows-pairs-neutral"),
    *("crows-pairs-direction", "lm-score", "stereotype-score", "icat", "rubia", "mixing"),
    *("mixing-share", "mixing-r", "mixing-r-bins"),
]


@pytest.mark.slow
@FEW
@given(scored_pairs(), st.sampled_from([[], ["subdomain"]]))
def test_pairs_of_all_studies(made, by):
    dirty = [
        {
            k: f" {v:g}" if isinstance(v, float) and k != "russian" else f"{v} " if v == "x" else v
            for k, v in row.items()
        }
        for row in made
    ]
    for row in dirty:
        row |= {side: made[dirty.index(row)][side] and row[side] for side in ("pro", "anti")}
    plain = [{**row, "why": ""} for row in made]
    outcomes = table.from_rows(dirty)
    names = [name for name in OF_PAIRS if not (by and name in ("win-rate-mean",))]
    agree(counted(outcomes, names, by), plain, ends=1)


@st.composite
def scored_choices(draw):
    made = []
    for _ in range(draw(st.integers(1, 12))):
        option = st.sampled_from([0, 1, 2, None])
        unknown, target = draw(option), draw(option)
        two = unknown is not None and target is not None and target != unknown
        made.append(
            {
                "item": draw(st.sampled_from(["i1", "i2"])),
                "model": draw(st.sampled_from(["a", "b"])),
                "chosen": draw(option),
                "label": draw(option),
                "unknown": unknown,
                "target": target,
                "counter": 3 - unknown - target if two else None,
                "condition": draw(st.sampled_from(["ambig", "disambig"])),
            }
        )
    return made


@FEW
@given(scored_choices(), st.sampled_from([[], ["item"]]))
def test_choices_of_a_file(made, by):
    words = {"ambig": " Ambig", "disambig": "disambig "}
    dirty = []
    for at, row in enumerate(made):
        number = {k: row[k] for k in ("chosen", "label", "unknown", "target")}
        texts = {k: None if v is None else f"{v}.0" if at % 2 else v for k, v in number.items()}
        dirty.append({**row, **texts, "condition": words[row["condition"]]})
        del dirty[-1]["counter"]
    plain = [{**row, "why": "missing" if row["chosen"] is None else "", "p": None} for row in made]
    for row in plain:
        if row["counter"] is None:
            row["target"] = None
    outcomes = table.from_rows(dirty)
    agree(counted(outcomes, ["accuracy", "bbq-bias", "disambiguated-bias"], by), plain, ends=1)


# --- pairs and choices, scored by us: from token to figure


def run_of(statements, requests, records, failures, probes, scorers):
    spec = SimpleNamespace(
        command="logprob", pack="text/1", model="m", shown="r", probes=probes, decode=("score",)
    )
    return SimpleNamespace(
        spec=spec,
        pack=None,
        statements=lambda: statements,
        requests=lambda: requests,
        logprobs=lambda: records,
        failures=lambda: failures,
    )


@st.composite
def log_probabilities(draw):
    """A run about pairs in all passes: unlike lengths, one the beginning of the other, a third
    sentence, requests that failed."""
    statements = []
    for pair in range(draw(st.integers(1, 4))):
        roles = ["original", *["contrast"] * draw(st.integers(0, 2))]
        roles += ["unrelated"] * draw(st.integers(0, 1))
        for at, role in enumerate(roles):
            extra = {"own": draw(st.sampled_from(["x", "y"]))}
            statements.append(
                Statement(
                    *(f"s{pair}.{at}", "en", f"é {pair} {at}", role, f"p{pair}", "age", "", "x"),
                    *(("en",), "test", extra),
                )
            )
    masked = draw(st.booleans())
    names = ["pll", "ppll", "mpll", "pll-word"]
    if not masked:
        names = ["loglik", "loglik-token", "loglik-byte", "ppl", "bias"]
    passes = ("masked", "masked-word") if masked else ("causal",)
    requests = logprob.plan(statements, names, passes)
    records, failures = [], []
    for request in requests:
        what = draw(st.sampled_from(["there"] * 6 + ["failed", "missing"]))
        if what == "failed":
            failures.append(Failure(request.id, "engine", "", 1))
        if what == "there":
            tokens = draw(st.lists(st.integers(0, 3), min_size=1, max_size=5))
            values = [-draw(st.sampled_from([0.5, 1.0, 2.25])) for _ in tokens]
            text = request.options["text"][0]
            part = {"answer": "text", "text": text, "tokens": tokens, "logprobs": values}
            records.append(LogProb(request.id, [part], "", None))
    return run_of(statements, requests, records, failures, tuple(names), names)


@FEW
@given(log_probabilities())
def test_scorers_from_token_to_figure(run):
    assume(preferences.pairs(run.statements()))
    outcomes = table.outcomes(run)
    plain = rows.of_run(run)
    names = ["win-rate", "ties"]
    names += ["bias-score"] if "bias" in run.spec.probes else ["crows-pairs", "bpr"]
    if "unrelated" in outcomes:
        names += ["lm-score", "stereotype-score", "icat"]
    agree(counted(outcomes, names, ["own"]), plain, ends=1)


@st.composite
def options(draw):
    """A run about choices, each in all orders, some options alike, some requests without values."""
    statements = []
    for at in range(draw(st.integers(1, 3))):
        unknown = draw(st.sampled_from([2, None]))
        extra = {
            "context": "c",
            "question": f"q{at}?",
            "options": ["A", "Bb", "Can't be told"],
            "label": draw(st.sampled_from([0, 1, 2])),
            "target": draw(st.sampled_from([0, 1, None])),
            "unknown": unknown,
            "condition": draw(st.sampled_from(["ambig", "disambig"])),
            "polarity": "neg",
        }
        statements.append(
            Statement(
                *(f"i{at}", "en", f"q{at}", "original", f"t{at % 2}", "age", "choice", ""),
                *((), "test", extra),
            )
        )
    names = ["choice", "choice-token", "choice-byte", "choice-char"]
    requests = logprob.plan(statements, names, ("causal",))
    records = []
    for request in requests:
        if draw(st.integers(0, 9)):
            parts = []
            for answer, (text,) in request.options.items():
                tokens = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
                values = [-draw(st.sampled_from([0.5, 1.0])) for _ in tokens]
                parts.append({"answer": answer, "text": text, "tokens": tokens, "logprobs": values})
            records.append(LogProb(request.id, parts, "", None))
    return run_of(statements, requests, records, [], tuple(names), names)


@FEW
@given(options(), st.sampled_from([0.25, " 0.75", None]))
def test_choices_from_token_to_figure(run, share):
    """And what people say of one stereotype of two, joined by pair."""
    outcomes, plain = table.outcomes(run), rows.of_run(run)
    names = ["accuracy", "bbq-bias", "ambiguous-bias", "ambiguous-printed", "disambiguated-bias"]
    names += ["uncertainty"]
    if share is not None:
        outcomes = external.with_people(outcomes, pd.DataFrame([{"pair": "t0 ", "people": share}]))
        for row in plain:
            asked = row["pair"] == "t0"
            row |= {"people": float(share) if asked else None, "people_of": row["pair"]}
        names += ["kl-people"]
    agree(counted(outcomes, names, ["scorer"]), plain, ends=1)


@FEW
@given(st.data())
def test_originals_against_their_contrasts(data):
    """Several statements a side, several answers a statement, some sides without a clear one."""
    made = [
        {
            "lang": "kk",
            "probe": probe,
            "statement": f"s{at}",
            "pair": "p" if at < 3 else "q",
            "role": "contrast" if at % 3 else "original",
            "sample": sample,
            "status": "answered",
            "answer": data.draw(st.sampled_from(["yes", "no", "no", "ambiguous"])),
        }
        for probe in ("agreement", "disagreement")
        for at in range(6)
        for sample in (0, 1)
    ]
    plain = [
        {**row, "measures": WHEN[row["probe"]][0], "when": WHEN[row["probe"]][1]} for row in made
    ]
    for by in ([], ["probe"], ["statement"]):
        agree(counted(table.from_rows(made), ["contrast-gap"], by), plain)


# --- files of strangers, to `score`


def scored(path, made, *, by=(), **options):
    """Scores of a file, and what was said of it."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in made), "utf-8")
    said = []
    found = score(path, by=by, note=said.append, **{"metrics": ["endorsed"], **options})
    return found, [str(line).partition(": ")[2] for line in said]


def replies(*made, **same):
    """Rows of answers to the question of agreement."""
    return [{"lang": "kk", "probe": "agreement", **same, **row} for row in made]


TWICE = [{"statement": "s", "answer": "yes"}, {"statement": "s ", "answer": "no"}]


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (TWICE, "leave out those that are copies"),
        ([{**TWICE[0], "seed": 1}, {**TWICE[1], "seed": 2}], "--by seed tells them apart"),
        ([TWICE[0], {**TWICE[0], "statement": "s\u200e"}], "leave out those that are copies"),
    ],
)
def test_two_replies_to_one_question_are_said(tmp_path, made, line):
    (found,), said = scored(tmp_path / "a.jsonl", replies(*made))
    assert found.n == 2
    assert said == [
        "row 1 and row 2 ask the same (language, question, statement): counted as several replies "
        f"about one statement; {line}"
    ]


def test_two_replies_of_one_number_are_refused(tmp_path):
    made = [{**TWICE[0], "sample": 0}, {**TWICE[1], "sample": 0}]
    with pytest.raises(InputError, match=r"row 1 and row 2 ask the same .*; leave out copies, and"):
        scored(tmp_path / "a.jsonl", replies(*made))
    made[1]["sample"] = 1
    assert scored(tmp_path / "a.jsonl", replies(*made))[1] == []


def test_pairs_that_are_copies_are_said(tmp_path):
    made = [{"item": "a", "pro": -1, "anti": -2}, {"item": "b", "pro": -3, "anti": -2}]
    metric = {"metrics": ["win-rate"]}
    assert scored(tmp_path / "a.jsonl", made, **metric)[1] == []
    (found,), (said,) = scored(tmp_path / "a.jsonl", [*made, made[0]], **metric)
    assert (found.n, found.value) == (3, pytest.approx(2 / 3))
    assert said.startswith("row 1 and row 3 hold the same in every column: all are counted")


def test_columns_that_would_be_ours_are_said(tmp_path):
    made = [{"statement": name, "Model": m, "answer": "no"} for name in "st" for m in "ab"]
    _, said = scored(tmp_path / "a.jsonl", replies(*made))
    assert said[0] == "the column 'Model' is not read; if it means 'model', rename it"
    assert said[1].endswith("--by Model tells them apart")


def test_revisions_of_a_file_are_apart(tmp_path):
    """Two revisions of one model are neither pooled nor samples of one statement."""
    made = [
        {"model": model, "revision": revision, "statement": name, "answer": answer}
        for model, revision, answer in (("a", "1", "yes"), ("a", "2", "no"), ("b", "1", "no"))
        for name in "st"
    ]
    found, said = scored(tmp_path / "a.jsonl", replies(*made))
    assert said == []
    got = {(s.by["model"], s.by["revision"]): (s.value, s.n) for s in found}
    assert got == {("a", "1"): (1, 2), ("a", "2"): (0, 2), ("b", "1"): (0, 2)}


def test_values_that_look_alike_are_one_group(tmp_path):
    """Numbers as texts, nothing in two ways, marks that nobody sees; what reads otherwise stays."""
    values = [1, "1", " 1\u200e", 1.0, True, "", None, "F", "f", "a\u00a0b", "a b", "é", "e\u0301"]
    made = [{"statement": f"s{n}", "own": v, "answer": "no"} for n, v in enumerate(values)]
    found, _ = scored(tmp_path / "a.jsonl", replies(*made), by=["own"])
    counts = {s.by["own"]: s.n for s in found}
    assert counts == {"1": 4, "true": 1, None: 2, "F": 1, "f": 1, "a b": 2, "é": 2}
    pairs = [{"item": n, "own": v, "pro": n, "anti": 3} for n, v in enumerate(values)]
    found, _ = scored(tmp_path / "a.jsonl", pairs, by=["own"], metrics=["win-rate"])
    assert {s.by["own"]: s.n for s in found} == counts


@pytest.mark.parametrize(
    ("asked", "known"), [("gender", "Gender"), ("GENDER ", "Gender"), ("Catégorie", None)]
)
def test_columns_in_another_spelling(tmp_path, asked, known):
    """A column that differs only in case is named; one in another normal form is found."""
    made = [
        {"statement": n, "Gender": "f", "Cate\u0301gorie": n, "gender2": 1, "answer": "no"}
        for n in "st"
    ]
    asked = columns(asked)
    if known is None:
        found, _ = scored(tmp_path / "a.jsonl", replies(*made), by=asked)
        assert [s.by["Catégorie"] for s in found] == ["s", "t"]
        return
    with pytest.raises(InputError, match=f"did you mean {known!r}"):
        scored(tmp_path / "a.jsonl", replies(*made), by=asked)


def test_replies_to_one_text_are_one_statement(tmp_path):
    """Without ids the statement's text tells which replies are about one statement."""
    made = [{"text": text, "answer": answer} for text in "st" for answer in ("yes", "no", "no")]
    named = [{"statement" if k == "text" else k: v for k, v in row.items()} for row in made]
    (found,), _ = scored(tmp_path / "a.jsonl", replies(*made))
    (same,), _ = scored(tmp_path / "a.jsonl", replies(*named))
    assert (found.low, found.high) == (same.low, same.high)


def test_a_region_in_two_spellings_is_one(tmp_path):
    """--by region counts what --region counts."""
    known = ["['KZ', 'kz']", "['kz']", "['RU', 'KZ']", "['ru ']"]
    made = [
        {"statement": f"s{n}", "regions": of, "answer": "yes" if n else "no"}
        for n, of in enumerate(known)
    ]
    found, _ = scored(tmp_path / "a.jsonl", replies(*made), by=["region"])
    assert {s.by["region"]: (s.n, s.value) for s in found} == {"KZ": (3, 2 / 3), "RU": (2, 1)}
    (same,), _ = scored(tmp_path / "a.jsonl", replies(*made), regions=["kz"])
    assert (same.n, same.value) == (3, 2 / 3)


def test_people_are_found_by_names_that_look_alike(tmp_path):
    """KL of people's and the model's shares, by hand, over names in another form."""
    shares = [0.5, 0.3, 0.2, 0.6]
    made = [
        {"category": ["Café ", "B\u200f"][n % 2], "condition": "ambig", "chosen": 0, "label": 2}
        | {"target": 0, "unknown": 2, "p_target": p, "p_counter": 0.9 - p, "p_unknown": 0.1}
        for n, p in enumerate(shares)
    ]
    people = tmp_path / "people.csv"
    people.write_text("category,people\nCafe\u0301,0.7\nB,0.2\n", "utf-8")
    (found,), _ = scored(tmp_path / "c.jsonl", made, metrics=["kl-people"], people=people)
    far = []
    for at, q in enumerate((0.7, 0.2)):
        p = (shares[at] + shares[at + 2]) / 2 / 0.9
        far.append(q * math.log(q / p) + (1 - q) * math.log((1 - q) / (1 - p)))
    assert (found.n, found.value) == (4, pytest.approx(sum(far) / 2))


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_answers_all_alike_over_wordings(tmp_path, answer):
    """No narrower than by the statements alone, and as made again by loops."""
    made = [
        {"statement": f"s{n // 8}", "wording": f"w{n % 8}", "answer": answer} for n in range(320)
    ]
    names = ["endorsed-over-wordings", "endorsed"]
    (over, one), _ = scored(tmp_path / "a.jsonl", replies(*made), metrics=names)
    # Eight wordings say less about others than 40 statements about these.
    assert over.low <= one.low and one.high <= over.high
    assert one.high - one.low == pytest.approx(1.96**2 / (40 + 1.96**2), abs=1e-4)
    plain = [{**row, "status": "answered", "measures": "endorsed", "when": "yes"} for row in made]
    made_again = figure("endorsed-over-wordings", replies(*plain), over.by)
    assert made_again.interval_differs(over.low, over.high) == ""
