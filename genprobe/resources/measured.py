"""The accuracy of the judges, on fresh texts and on real replies: `prompts/measured.toml`."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable
from typing import Any

from genprobe.resources import licences, packs, registry


@functools.cache
def _table() -> dict[str, Any]:
    file = registry.path("measured.toml")
    return packs.read_toml(file) if file.is_file() else {}  # a user's copy of prompts/ may lack it


def accuracy(judge: str, langs: Iterable[str] = ()) -> tuple[int, int]:
    """Return (number correct, total) of a judge's labels, in `langs` or in all languages."""
    row, asked = {"right": {}, "n": {}} | _table().get(judge, {}), set(langs)
    codes = [code for code in row["n"] if not asked or code in asked]
    return sum(row["right"][code] for code in codes), sum(row["n"][code] for code in codes)


def has_errors(judge: str) -> bool:
    """Tell whether a judge's labels on labelled texts (`called`), and its version, are known."""
    return {"called", "judge"} <= _table().get(judge, {}).keys()


def called(judge: str) -> tuple[list[str], list[list[int]]]:
    """Return the confusion matrix of a judge on labelled texts.

    These are the labels, and for each true label the number of texts that got each label.
    """
    row = _table()[judge]["called"]
    return list(row), [[int(n) for n in row[label]] for label in row]


def doubtful(judge: str) -> dict[str, frozenset[str]]:
    """Return how a probe is read -> the rules whose verdicts are not reliable enough.

    These are right in less than the share `reliable` of replies that nobody tuned them on.
    """
    rules, least = _table().get(judge, {}).get("rules", {}), _table().get("reliable", 0)
    found: dict[str, frozenset[str]] = dict.fromkeys(packs.READS, frozenset())
    for reads, row in rules.items():
        found[reads] = frozenset(rule for rule, (right, n) in row.items() if right < least * n)
    return found


FEWEST = 50  # real replies of a language, below which it is not measured


@functools.cache
def real() -> dict[tuple[str, str], licences.Measured]:
    """Return how the rules read real replies: language and kind of question -> figures.

    Languages with fewer than `FEWEST` replies are left out.
    """
    rows = [
        licences.Measured(**{"skew": None, "left": [0, 0]} | row)
        for row in _table().get("yesno", {}).get("real", {}).get("rows", ())
        if row["by"] == licences.EVERYBODY
    ]
    counts = Counter[str]()
    for row in rows:
        counts[row.lang] += row.n
    return {(row.lang, row.kind): row for row in rows if counts[row.lang] >= FEWEST}


def version(judge: str) -> str:
    """Return the name, version and hash of word lists of the judge to which `called` belongs."""
    return str(_table()[judge]["judge"])


def caution(judge: str, langs: Iterable[str]) -> str:
    """Return the caution about rates from this judge; "" if it is accurate enough.

    It states the accuracy over all languages, because there are few texts in each, and then that in
    `langs`, if given.
    """
    from genprobe.statistics import wilson

    langs = set(langs)
    right, n = accuracy(judge)
    ends = wilson(right, n)
    if ends is None:
        return (
            f"the judge {judge} was never measured on fresh texts: review a sample, and report the "
            "rates corrected by it"
        )
    if ends[0] >= _table()["sound"]:
        return ""
    here, of = accuracy(judge, langs)
    own = f" ({here} of {of} in the languages of this run)" if langs and of else ""
    return (
        f"the judge {judge} is right in {100 * right / n:.0f} % ({100 * ends[0]:.0f} to "
        f"{100 * ends[1]:.0f}, n {n}) of fresh texts{own}: have a model judge them "
        "(--second-reader), review a sample, and report the rates corrected by it"
    )
