"""The spread of a stereotype between languages, against plain loops."""

import random
from statistics import mean

import pytest

from genprobe import metrics
from genprobe.errors import InputError
from genprobe.outcomes import table
from genprobe.report.figures import _plot, spread
from genprobe.report.figures._data import Data, Series

PROBES = ("agreement", "disagreement")


def row(statement, lang, answer, known, probe="agreement", **more):
    said = {"statement": statement, "lang": lang, "answer": answer, "valid_in": known}
    return {"model": "m", "probe": probe, "pair": statement[:-1], **said, **more}


def score(rows, name, by=()):
    return metrics.score(table.from_rows(rows), [name], list(by), str)


def test_a_statement_is_paired_with_itself_where_it_is_known():
    rows = [
        row("1a", "kk", "yes", "kk,ru"),
        row("1a", "ru", "no", "kk,ru"),
        row("1a", "mr", "yes", "kk,ru"),  # known: 1/2; unknown: 1
        row("1a", "fr", "ambiguous", "kk,ru"),
        row("2a", "kk", "yes", "kk"),
        row("2a", "mr", "no", "kk"),  # 1; 0
        row("3a", "mr", "yes", "kk"),  # was never asked where it is known
        row("4a", "kk", "yes", "kk,mr"),
        row("4a", "mr", "yes", "kk,mr"),  # is known in both
    ]
    for name, value in (
        ("endorsed-where-known", 0.75),
        ("endorsed-where-unknown", 0.5),
        ("known-gap", 0.25),
    ):
        (found,) = score(rows, name)
        assert (found.value, found.n) == (value, 2)
        assert found.excluded == {"no clear answer": 1}
    cells = {s.by["lang"]: (s.value, s.n) for s in score(rows, "known-gap", ["lang"])}
    assert cells == {"fr": (None, 0), "mr": (0.25, 2)}
    between = {
        (s.by["known_in"], s.by["asked_in"]): s.value for s in score(rows, "known-gap-between")
    }
    assert between == {
        ("kk", "mr"): 0.5,
        ("ru", "mr"): -1.0,
        ("kk", "fr"): None,
        ("ru", "fr"): None,
    }
    with pytest.raises(InputError, match="cannot be split by 'valid'"):
        score(rows, "known-gap", ["valid"])


def test_a_language_that_says_yes_more_readily_has_no_net_gap():
    """Kazakh says yes to both groups, Marathi to neither."""
    rows = [
        row(f"1{side}", lang, said, "kk" if side == "a" else "")
        for lang, said in (("kk", "yes"), ("mr", "no"))
        for side in "ab"
    ]
    assert score(rows, "known-gap")[0].value == 1.0
    assert score(rows, "known-gap-net")[0].value == 0.0


def plain(rows, net):
    """Count by loops: (number of units, their mean gap)."""

    def rate(statement, lang, probe):
        said = [
            (r["answer"] == "yes") == (probe == "agreement")
            for r in rows
            if (r["statement"], r["lang"], r["probe"]) == (statement, lang, probe)
            and r["answer"] != "ambiguous"
        ]
        return mean(map(float, said)) if said else None

    def worth(statement, lang, probe):
        own = rate(statement, lang, probe)
        if own is None or not net:
            return own
        others = {r["statement"] for r in rows if r["pair"] == statement[:-1]} - {statement}
        found = [rate(other, lang, probe) for other in others]
        found = [one for one in found if one is not None]
        return own - mean(found) if found else None

    units = {}
    for away in rows:
        if away["lang"] in away["valid_in"]:
            continue
        gaps = []
        for probe in PROBES:
            there = worth(away["statement"], away["lang"], probe)
            homes = [worth(away["statement"], lang, probe) for lang in away["valid_in"].split(",")]
            homes = [one for one in homes if one is not None]
            if there is not None and homes:
                gaps.append(mean(homes) - there)
        if gaps:
            units[away["statement"], away["lang"]] = mean(gaps)
    return len(units), mean(units.values())


@pytest.mark.parametrize("net", [False, True])
def test_the_gap_is_that_of_plain_loops(net):
    draw = random.Random(int(net))
    rows = [
        row(name + side, lang, draw.choice(["yes", "yes", "no", "ambiguous"]), known, probe)
        for name in map(str, range(12))
        for side in "ab"
        for known in [",".join(draw.sample(["kk", "ru", "mr", "fr"], draw.randint(1, 3)))]
        for lang in ("kk", "ru", "mr", "fr")
        for probe in PROBES
        for _ in range(draw.randint(1, 2))
    ]
    (found,) = score(rows, "known-gap-net" if net else "known-gap")
    n, value = plain(rows, net)
    assert (found.n, found.value) == (n, pytest.approx(value))
    assert found.low < value < found.high


def test_regions_and_languages_are_drawn_as_counted():
    known = {"1a": ("kk", ["KZ", "RU"]), "2a": ("ru", ["KZ"])}
    rows = [
        row(name, lang, said, valid, role="original", decode="free", valid_regions=regions)
        for (name, (valid, regions)), said in zip(known.items(), ("yes", "no"), strict=True)
        for lang in ("kk", "ru")
    ]
    said = table.from_rows(rows)
    series = Series("m", (), said)
    object.__setattr__(series, "sign", lambda metric: f"metric:{metric}/1")
    told = []
    found = {f.name: f for f in spread.figures(Data({"yesno": [series]}, told.append))}
    assert set(found) == {"endorsed-by-language-and-region", "known-gap-by-language"}
    cells = {
        (s.by["lang"], s.by["region"]): (s.value, s.n)
        for s in found["endorsed-by-language-and-region"].scores
    }
    assert cells == {(lang, "KZ"): (0.5, 2) for lang in ("kk", "ru")} | {
        (lang, "RU"): (1.0, 1) for lang in ("kk", "ru")
    }
    with _plot.style():
        canvas = found["known-gap-by-language"].plot()
    texts = {text.get_text() for text in canvas.axes[0].texts}
    assert texts == {"0\n(1)"} and not told
    assert canvas.axes[0].get_ylabel() == "known in"


def test_replies_without_the_name_of_a_wording_are_of_one():
    """A table may leave it empty in some rows; they are one more wording, and no error."""
    import pandas as pd

    rows = [
        {"lang": "en", "probe": "agreement", "statement": f"s{n}", "wording": word}
        | {"answer": "yes" if word else "no", "measures": "endorsed", "when": "yes"}
        for n in range(4)
        for word in (None, "a", "b")
    ]
    (found,) = metrics.score(
        table.from_rows(pd.DataFrame(rows)), ["endorsed-over-wordings"], [], str
    )
    assert found.n == 12 and found.value == pytest.approx(2 / 3)
