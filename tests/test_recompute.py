"""Figures equal a slow, obvious computation: of runs, and of tables that strangers made."""

import json
import math
import shutil
import unicodedata
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from genprobe import metrics
from genprobe.analysis.recompute import figure, recompute
from genprobe.analysis.score import score
from genprobe.commands import cli
from genprobe.outcomes import table
from genprobe.runs.run import Run

GOLDEN = Path(__file__).parent / "golden"
FEW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))

# --- runs


@pytest.fixture(params=["yesno", "stories", "essays", "pairs"])
def run(request, tmp_path):
    folder = Path(shutil.copytree(GOLDEN / request.param, tmp_path / request.param))
    score(folder)
    return folder


def test_every_figure_of_a_run_is_what_its_records_say(run):
    found = recompute(Run.open(run))
    assert found.differences == []
    assert found.figures + sum(found.left.values()) == len(Run.open(run).scores())
    assert set(found.left) <= {
        *("p-yes", "outside", "disagreement", "readings", "seeds", "negrate-corrected"),
        *("negrate", "negrate-published", "negative-stories", "vote-margin", "seed-disagreement"),
    }


@pytest.mark.parametrize("field", ["value", "n", "excluded", "bounds"])
def test_a_figure_that_was_changed_is_named(tmp_path, field):
    folder = Path(shutil.copytree(GOLDEN / "yesno", tmp_path / "run"))
    scores = json.loads((folder / "scores.json").read_text())
    at = next(i for i, s in enumerate(scores) if s["metric"] == "endorsed" and s["value"])
    other = {"value": 0.123, "n": 99, "excluded": {"refusal": 77}, "bounds": [0.01, 0.99]}
    scores[at][field] = other[field]
    (folder / "scores.json").write_text(json.dumps(scores))
    said = CliRunner().invoke(cli, ["verify", str(folder), "--recompute"], standalone_mode=False)
    assert said.return_value == 1
    (line,) = [line for line in said.stdout.splitlines() if line.startswith("endorsed (")]
    shown = {"value": "0.123", "n": "n 99", "excluded": "'refusal': 77", "bounds": "[0.01, 0.99]"}
    assert shown[field] in line


def test_by_and_declared_are_computed_again_too(tmp_path):
    folder = Path(shutil.copytree(GOLDEN / "yesno", tmp_path / "run"))
    for more in ({"by": ["bias_type", "role"]}, {"declared": True}, {"by": ["statement"]}):
        score(folder, **more)
        found = recompute(Run.open(folder))
        assert found.differences == [] and found.figures > 5


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
                "own": unicodedata.normalize(form, word) + draw(st.sampled_from(["", " "])),
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
                "own": word,
                **({"answer": answer, "kind": kind} if answer else {}),
                "conflict": conflict if answer else None,
                "reply_language": reply if answer else None,
                "refused": kind == "refusal" if answer and kind else None,
            }
        )
    return dirty, plain


def agree(found, plain):
    """Each score against the slow figure of its cell, and no cell is forgotten."""
    for one in found:
        slow = figure(one.metric, plain, one.by)
        assert slow is not None
        assert (one.n, one.excluded) == (slow.n, slow.excluded), one
        assert (one.value is None) == (slow.value is None), one
        assert one.value is None or math.isclose(one.value, slow.value, abs_tol=1e-12), one
        if slow.bounds is not ...:
            assert one.bounds == (pytest.approx(slow.bounds) if slow.bounds else None), one
        if one.low is not None:
            assert one.low - 1e-9 <= one.value <= one.high + 1e-9, one


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
    agree(metrics.score(outcomes, ["acquiescence"], ["lang"], lambda name: ""), plain)
    agree(metrics.score(outcomes, ["contrast-gap"], ["lang"], lambda name: ""), plain)


@st.composite
def stories(draw):
    """Outcomes of stories as a run has them, some without a label, ties, a template of one story."""
    rows = []
    for template in range(draw(st.integers(1, 5))):
        for sample in range(draw(st.integers(1, 6))):
            status = draw(st.sampled_from(["answered"] * 5 + ["failed", "missing"]))
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
                    "by_sentiment": draw(
                        st.sampled_from(["negative", "positive", "neutral", "unscored"])
                    )
                    if status == "answered"
                    else None,
                    "told": True,
                }
            )
    return rows


@FEW
@given(stories(), st.sampled_from([[], ["domain"], ["model"]]))
def test_stories(rows, by):
    frame = pd.DataFrame(rows).astype(object)
    frame["usable"] = (frame["by_story"] == "usable").astype("boolean")
    frame["usable"] = frame["usable"].mask(frame["by_story"].isna())
    frame["unusable_why"] = frame["by_story"].where(frame["by_story"] != "usable", None)
    frame["sentiment"] = frame["by_sentiment"]
    names = ("negrate", "negrate-published", "negative-stories", "vote-margin", "seed-disagreement")
    agree(metrics.score(frame, [*names, "usable"], by, lambda name: ""), rows)


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
