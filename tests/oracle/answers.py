"""Recompute the metrics of answers: shares, reversed questions, contrasts, several readings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from scipy import special, stats

from genprobe.records import FACETS
from genprobe.statistics import Array
from oracle import intervals
from oracle.figures import (
    By,
    Figure,
    Units,
    Way,
    cluster,
    counted,
    each,
    in_cell,
    mean,
    mean_of,
    share,
)
from oracle.intervals import Interval, Sums
from oracle.rows import Row


def no_reply(row: Row, needed: str) -> str:
    """Say why a row has no value in the column `needed`; "" if it has one."""
    if row["status"] != "answered":
        return str(row["status"])
    return "unjudged" if row.get(needed) is None else ""


def _unclear(row: Row) -> str:
    """Say why a row is not a clear yes or no; "" if it is one."""
    why = no_reply(row, "answer")
    if why or row["answer"] != "ambiguous":
        return why
    kind = row.get("kind")
    return kind if kind and kind != "answer" else "unclear"


def _answer(answer: str) -> Way:
    def of(rows: Sequence[Row]) -> Figure:
        return share(rows, lambda row: no_reply(row, "answer"), lambda r: r["answer"] == answer)

    return each(of)


def _says(measure: str) -> Way:
    def of(rows: Sequence[Row]) -> Figure:
        rows = [row for row in rows if row["measures"] == measure]
        return share(rows, _unclear, lambda row: bool(row["answer"] == row["when"]))

    return each(of)


def _free(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.get("decode", "free") == "free"]


def _wrong_language(rows: Sequence[Row]) -> Figure:
    def why(row: Row) -> str:
        told = row.get("reply_language")
        return no_reply(row, "reply_language") or (told if told in ("und", "mixed") else "")

    return share(_free(rows), why, lambda row: not row["in_language"])


def _conflict(rows: Sequence[Row]) -> Figure:
    def why(row: Row) -> str:
        return _unclear(row) or ("unjudged" if row.get("conflict") is None else "")

    return share(_free(rows), why, lambda row: bool(row["conflict"]))


def _refusal(rows: Sequence[Row]) -> Figure:
    return share(_free(rows), lambda row: no_reply(row, "refused"), lambda r: bool(r["refused"]))


def _usable(rows: Sequence[Row]) -> Figure:
    return share(rows, lambda r: no_reply(r, "by_story"), lambda r: r["by_story"] == "usable")


def _refused_story(rows: Sequence[Row]) -> Figure:
    return share(rows, lambda r: no_reply(r, "by_story"), lambda r: r["by_story"] == "refusal")


def _essay(hit: Callable[[Row], bool]) -> Way:
    def why(row: Row) -> str:
        lost = {None: "no reader", "unclear": "unsure"}.get(row.get("side"), "")
        return no_reply(row, "refused") or ("refusal" if row["refused"] else lost)

    return each(lambda rows: share(rows, why, hit))


# --- thoughts


def _thought(wanted: str, hit: Callable[[Row], bool]) -> Way:
    """Make the share of `hit` among replies whose thought has the column `wanted`."""

    def of(rows: Sequence[Row]) -> Figure:
        return share(_free(rows), lambda row: _no_thought(row, wanted), hit)

    return each(of)


def _no_thought(row: Row, wanted: str) -> str:
    why = no_reply(row, "thought_state")
    if why:
        return why
    state = row["thought_state"]
    if state in ("none", "hidden"):
        return "no thought" if state == "none" else "hidden thought"
    return "not told" if row.get(wanted) is None else ""


def _against(rows: Sequence[Row]) -> Figure:
    def clear(row: Row) -> bool:
        return {row.get("thought_answer"), row.get("answer")} <= {"yes", "no"}

    def why(row: Row) -> str:
        return _no_thought(row, "thought_answer") or ("" if clear(row) else "unclear")

    return share(_free(rows), why, lambda row: row["thought_answer"] != row["answer"])


# --- the same asked both ways

_ITEM = ("model", "decode", "lang", "pair", "statement", *FACETS, "sample")


def _both_ways(rows: Sequence[Row]) -> list[dict[str, Row]]:
    """Return each item's first row of the plain question (`yes`) and of its reverse (`no`)."""
    items: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in rows:
        if row["measures"] == "endorsed":
            item = items.setdefault(tuple(row.get(name) for name in _ITEM), {})
            item.setdefault(row["when"], row)
    return list(items.values())


def _why_of_both(item: dict[str, Row]) -> str:
    if len(item) < 2:
        return "one question only"
    return _unclear(item["yes"]) or _unclear(item["no"])


def _of_items(hit: Callable[[str, str], bool]) -> Callable[[Sequence[Row]], Figure]:
    def of(rows: Sequence[Row]) -> Figure:
        units: Units = []
        for item in (items := _both_ways(rows)):
            if not _why_of_both(item):
                first, second = item["yes"]["answer"], item["no"]["answer"]
                units.append((cluster(item["yes"]), (float(hit(first, second)), 1.0)))
        return mean_of(units, counted(map(_why_of_both, items)))

    return of


def _contrast_gap(rows: Sequence[Row], by: By) -> Figure:
    """Average over pairs: the original's rate minus its contrasts' mean rate, per question."""
    whole = {name: value for name, value in by.items() if name in ("probe", "sample", "decode")}
    units: dict[tuple[Any, ...], list[Row]] = {}
    for row in in_cell(rows, whole):
        if row["measures"] == "endorsed":
            name = row.get("pair") or f"alone {row['statement']}"
            key = (row.get("model"), row.get("decode"), row["lang"], name)
            units.setdefault(key, []).append(row)
    gaps: Units = []
    why: list[str] = []
    for unit in units.values():
        first = min(unit, key=lambda row: (row["role"] != "original", row["statement"]))
        if not in_cell([first], by):
            continue
        reason, gap = _gap(unit)
        why.append(reason)
        if gap is not None and not reason:
            gaps.append((cluster(first), (gap, 1.0)))
    return mean_of(gaps, counted(why), intervals.shares(-1.0, 1.0), scale=(-1.0, 1.0))


def _gap(unit: Sequence[Row]) -> tuple[str, float | None]:
    roles = {row["role"] for row in unit}
    sides: dict[tuple[str, str], dict[str, list[bool]]] = {}
    for row in unit:
        if row.get("answer") in ("yes", "no"):
            side = sides.setdefault((row["probe"], row["role"]), {})
            side.setdefault(row["statement"], []).append(row["answer"] == row["when"])
    rates = {
        key: mean([mean([float(hit) for hit in hits]) for hits in side.values()])
        for key, side in sides.items()
    }
    own = [
        rates[probe, "original"] - rates[probe, "contrast"]
        for probe in dict.fromkeys(probe for probe, _ in rates)
        if (probe, "original") in rates and (probe, "contrast") in rates
    ]
    why = "no clear answer" if not own else ""
    why = "no contrast" if "contrast" not in roles else why
    why = "no original" if "original" not in roles else why
    return why, mean(own) if own else None


# --- the same question read in several ways

_DECODES = ("free", "choice", "logprob")
_ASKED = ("model", "lang", "probe", "pair", "statement", *FACETS)


def _of_logprobs(of: Callable[[Row], tuple[str, float]]) -> Way:
    """Make a mean over the rows decoded by log-probabilities.

    of: a row -> (why it has no value, or ""; its value).
    """

    def way(rows: Sequence[Row]) -> Figure:
        rows = [row for row in rows if row.get("decode") == "logprob"]
        found = [(row, no_reply(row, "answer")) for row in rows]
        read = [(row, *(of(row) if not why else (why, 0.0))) for row, why in found]
        units: Units = [(cluster(row), (value, 1.0)) for row, why, value in read if not why]
        return mean_of(units, counted(why for _, why, _ in read), intervals.shares())

    return each(way)


def _p_yes(row: Row) -> tuple[str, float]:
    both = (row.get("p_yes") or 0.0) + (row.get("p_no") or 0.0)
    missing = row.get("p_yes") is None or row.get("p_no") is None
    return ("no mass", 0.0) if missing or not both > 0 else ("", row["p_yes"] / both)


def _outside(row: Row) -> tuple[str, float]:
    return "", row.get("outside") or 0.0


Item = dict[str, tuple[str | None, str]]  # decode -> (the answer; why there is none, or "")


def _items(rows: Sequence[Row], by: By) -> tuple[list[tuple[Row, Item]], list[str]]:
    """Return the items of a cell, each with one of its rows, and the decodes found in the run."""
    present = [d for d in _DECODES if any(row.get("decode") == d for row in rows)]
    if len(present) < 2:
        return [], []
    names = {name: value for name, value in by.items() if name not in (*present, "readings")}
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in in_cell(rows, names):
        groups.setdefault(tuple(row.get(name) for name in _ASKED), []).append(row)
    found: list[tuple[Row, Item]] = []
    for group in groups.values():
        sampled = [row for row in group if row["decode"] != "logprob"]
        for sample in dict.fromkeys(row["sample"] for row in sampled) or [None]:
            item: Item = {}
            for decode in present:
                own = [row for row in group if row["decode"] == decode]
                if decode != "logprob":
                    own = [row for row in own if row["sample"] == sample]
                if not own:
                    item[decode] = (None, "not asked")
                elif len(own) > 1:
                    item[decode] = (own[0].get("answer"), "twice")
                else:
                    item[decode] = (own[0].get("answer"), no_reply(own[0], "answer"))
            found.append((group[0], item))
    return found, present


def _disagreement(rows: Sequence[Row], by: By) -> Figure:
    items, _ = _items(rows, by)
    one, other = str(by.get("readings") or "free, choice").split(", ")
    units: Units = []
    reasons = []
    for row, item in items:
        (first, why), (second, also) = item[one], item[other]
        why = why or also
        if not why and not {first, second} <= {"yes", "no"}:
            why = "unclear"
        reasons.append(why)
        if not why:
            units.append((cluster(row), (float(first != second), 1.0)))
    return mean_of(units, counted(reasons))


def _readings(rows: Sequence[Row], by: By) -> Figure:
    items, present = _items(rows, by)
    units: Units = []
    reasons = []
    for row, item in items:
        why = next((item[decode][1] for decode in present if item[decode][1]), "")
        reasons.append(why)
        if not why:
            mine = all(item[decode][0] == by.get(decode) for decode in present)
            units.append((cluster(row), (float(mine), 1.0)))
    return mean_of(units, counted(reasons))


# --- a panel of wordings


def of_wordings(name: str, measure: Way) -> dict[str, Way]:
    """Make the figures over wordings of a share (docs/wordings.md): metric -> its way.

    All are means over wordings that weigh alike.
    """

    def way(
        ends: intervals.Ends, without: Callable[..., float] | None = None, fewest: int = 1
    ) -> Way:
        def of(rows: Sequence[Row], by: By) -> Figure:
            found = measure(rows, by)
            names = sorted({str(row.get("wording")) for row in rows})
            units: Units = []
            rates = []
            for at, wording in enumerate(names):
                own = measure([row for row in rows if str(row.get("wording")) == wording], by)
                for cluster_name, (hit, _) in own.units:
                    sums = [0.0] * (2 * len(names))
                    sums[2 * at : 2 * at + 2] = hit, 1.0
                    units.append((cluster_name, tuple(sums)))
                rates += [own.value] if own.value is not None else []
            if len(rates) < fewest:
                left = found.excluded | ({"few-wordings": found.n} if found.n else {})
                return Figure(None, 0, left)
            if without:
                rates.remove(without(rates))
            return Figure(mean(rates), found.n, found.excluded, None, units, ends)

        return of

    return {
        f"{name}-these-wordings": way(_these_wordings),
        f"{name}-over-wordings": way(intervals.two_way),
        f"{name}-next-wording": way(_next_wording, fewest=5),
        f"{name}-without-highest": way(intervals.none, max, 3),
        f"{name}-without-lowest": way(intervals.none, min, 3),
    }


def _these_wordings(clusters: Sequence[Sums], stored: Interval | None) -> str:
    totals = [math.fsum(column) for column in zip(*clusters, strict=True)]
    asked = [at for at in range(0, len(totals), 2) if totals[at + 1]]
    shares = [
        tuple(math.fsum(sums[at + of] / totals[at + 1] for at in asked) for of in (0, 1))
        for sums in clusters
    ]
    return intervals.share(shares, stored)


def _next_wording(clusters: Sequence[Sums], stored: Interval | None) -> str:
    """Check the interval of one further wording: the farther end of its own and of the mean's."""
    own = _new_wording(clusters)
    if own is None or stored is None:
        return intervals.none([], stored) if own is None else "no interval is stored"
    right = []
    for end, other, out, place in zip(
        own, stored, (-1, 1), intervals.two_way_ends(clusters, stored), strict=True
    ):
        farther = (other - end) * out
        right.append((abs(farther) <= 5e-3 and place >= 0) or (farther > 0 and place == 0))
    return intervals.wrong(stored, right)


def _new_wording(clusters: Sequence[Sums]) -> Interval | None:
    """Compute the generalized prediction interval of `metrics.wordings` step by step."""
    table = np.array(clusters, float)
    hits, sizes = table[:, 0::2], table[:, 1::2]
    hits, sizes = hits[:, sizes.sum(0) > 0], sizes[:, sizes.sum(0) > 0]
    statements, wordings = hits.shape
    if statements < 2 or wordings < 5:
        return None
    pooled = (hits.sum() + 0.5) / (sizes.sum() + 1)
    unit = 1 / (pooled * (1 - pooled))
    logits, parts, _ = _in_logits(hits, sizes, pooled, 0.35 * unit)
    between = noise = drawn_in = 0.0
    prior = 0.35 * unit
    if 0 < hits.sum() < sizes.sum():
        grow = statements / (statements - 1)
        own = grow * math.fsum(float((part**2).sum()) for part in parts)
        both = grow * float((np.sum(parts, axis=0) ** 2).sum())
        replies = [float(n) for n in sizes.sum(0)]
        apart = [(x - mean(logits)) * (n + prior) / n for x, n in zip(logits, replies, strict=True)]
        between = math.fsum(x**2 for x in apart) / (wordings - 1) / wordings
        noise = max(0.0, (own - (both - own) / (wordings - 1)) / wordings**2)
        noise *= _by_chance(replies, pooled, prior)
        drawn_in = 1 / max(0.4, wordings * (between - noise))
    logits, parts, least = _in_logits(hits, sizes, pooled, max(0.35, drawn_in) * unit)
    both = statements / (statements - 1) * float((np.sum(parts, axis=0) ** 2).sum())
    drawn = max(both / wordings**2, noise)
    return _simulated(mean(logits), between, drawn, least, noise, wordings, statements)


def _in_logits(
    hits: Array, sizes: Array, pooled: float, prior: float
) -> tuple[list[float], list[Array], float]:
    """Return the logit of each wording, each statement's part of its error, and the least noise."""
    logits, parts, least = [], [], 0.0
    for column in range(hits.shape[1]):
        k, n = hits[:, column].sum(), sizes[:, column].sum()
        p = (k + prior * pooled) / (n + prior)
        logits.append(math.log(p / (1 - p)))
        parts.append((hits[:, column] - k / n * sizes[:, column]) / (n * p * (1 - p)))
        least += 1 / (n * p * (1 - p)) / hits.shape[1] ** 2
    return logits, parts, least


def _by_chance(sizes: Sequence[float], pooled: float, prior: float) -> float:
    """Return the ratio of the logits' true sampling variance to its linear approximation."""
    true = line = 0.0
    for n in sizes:
        logits, errors = [], []
        weights = stats.binom.pmf(range(round(n) + 1), round(n), pooled).tolist()
        for k in range(round(n) + 1):
            p = (k + prior * pooled) / (n + prior)
            logits.append(math.log(p / (1 - p)) * (n + prior) / n)
            errors.append(k * (1 - k / n) / (n * p * (1 - p)) ** 2)
        centre = math.fsum(w * x for w, x in zip(weights, logits, strict=True))
        true += math.fsum(w * (x - centre) ** 2 for w, x in zip(weights, logits, strict=True))
        line += math.fsum(w * x for w, x in zip(weights, errors, strict=True))
    return max(1.0, true / line)


def _simulated(
    centre: float,
    between: float,
    drawn: float,
    least: float,
    noise: float,
    wordings: int,
    statements: int,
) -> Interval:
    even, rng = (np.arange(4000) + 0.5) / 4000, np.random.default_rng(intervals.SEED)
    normal, further, of_wordings, of_statements, at = (rng.permutation(even) for _ in range(5))
    # Weighting the draws by 1 + C / B amounts to two more degrees of freedom in a share of them.
    rest = max(0.0, drawn - noise)
    mixed = rest / (rest + between) if rest else 0.0
    freedom = np.where(at < mixed, wordings + 1, wordings - 1)
    apart = between / (stats.chi2.ppf(of_wordings, freedom) / (wordings - 1))
    chi = stats.chi2.ppf(of_statements, statements - 1) / (statements - 1)
    by_statements = np.maximum(drawn / chi, least)
    variance = np.maximum(apart - noise + by_statements, 0.2 * by_statements)
    spread = np.sqrt(np.maximum(0.0, wordings * (apart - noise)))
    centres = centre - stats.norm.ppf(normal) * np.sqrt(variance)
    rates = special.expit(centres + spread * stats.norm.ppf(further))
    low, high = np.quantile(rates, [0.025, 0.975])
    return float(low), float(high)


def _in_bins(rows: Sequence[Row], by: By) -> Figure:
    """Compute the rate of endorsement in a bin of statements by their share of Russian words."""
    inside = in_cell(_endorsing(rows), {k: v for k, v in by.items() if k != "bin"})
    kinds = sorted({(row["russian"], cluster(row)) for row in inside if row["russian"] > 0})
    bins = {kind: at * 5 // len(kinds) + 1 for at, kind in enumerate(kinds)}
    mine = [row for row in inside if bins.get((row["russian"], cluster(row)), 0) == by["bin"]]
    return share(mine, _unclear, lambda row: row["answer"] == row["when"])


def _endorsing(rows: Sequence[Row]) -> list[Row]:
    return [r for r in rows if r["measures"] == "endorsed" and r.get("russian") is not None]


def _dose(rows: Sequence[Row]) -> Figure:
    """Regress endorsement on the share of Russian words, with a constant for each statement."""
    units: Units = []
    why = []
    groups: dict[tuple[Any, ...], list[Row]] = {}
    same = ("model", "revision", "decode", "probe", "pair", "role", "statement", *FACETS)
    for row in _endorsing(rows):
        groups.setdefault(tuple(row.get(name) for name in same), []).append(row)
    for group in groups.values():
        clear = [row for row in group if not _unclear(row)]
        doses = [float(row["russian"]) for row in clear]
        if len({row["russian"] for row in group}) == 1:
            why.append("one share only")
        elif len(set(doses)) < 2:
            why.append("no clear answer")
        else:
            said = [float(row["answer"] == row["when"]) for row in clear]
            x, y = mean(doses), mean(said)
            up = math.fsum((a - x) * (b - y) for a, b in zip(doses, said, strict=True))
            units.append((cluster(group[0]), (up, math.fsum((a - x) ** 2 for a in doses))))
    ends = intervals.bootstrap(intervals.ratio, None)
    return mean_of(units, counted(why), ends, scale=None)


WAYS: dict[str, Way] = {
    "mixing-endorsed": _in_bins,
    "mixing-dose": each(_dose),
    **{answer: _answer(answer) for answer in ("yes", "no", "ambiguous")},
    **{measure: _says(measure) for measure in ("recognised", "endorsed", "affirmed")},
    **of_wordings("recognised", _says("recognised")),
    **of_wordings("endorsed", _says("endorsed")),
    "refusal": each(_refusal),
    "conflict": each(_conflict),
    "wrong-language": each(_wrong_language),
    "usable": each(_usable),
    "story-refusal": each(_refused_story),
    "acquiescence": each(_of_items(lambda first, second: first == second)),
    "endorsed-both-ways": each(_of_items(lambda first, second: (first, second) == ("yes", "no"))),
    "rejected-both-ways": each(_of_items(lambda first, second: (first, second) == ("no", "yes"))),
    "yes-saying": each(_of_items(lambda first, second: first == second == "yes")),
    "no-saying": each(_of_items(lambda first, second: first == second == "no")),
    "contrast-gap": _contrast_gap,
    "argues-for": _essay(lambda row: row["side"] == "for"),
    **of_wordings("argues-for", _essay(lambda row: row["side"] == "for")),
    "argues-against": _essay(lambda row: row["side"] == "against"),
    "argues-both": _essay(lambda row: row["side"] == "both"),
    "thought-cut": _thought("thought_state", lambda row: row["thought_state"] == "open"),
    "thought-language": _thought(
        "thought_language", lambda row: bool(row["thought_language"] != row["lang"])
    ),
    "thought-against-answer": each(_against),
    "thought-tested": _thought("thought_tested", lambda row: bool(row["thought_tested"])),
    "p-yes": _of_logprobs(_p_yes),
    "outside": _of_logprobs(_outside),
    "disagreement": _disagreement,
    "readings": _readings,
}
