"""Correct a rate for the errors of the judge, from a sample that people have reviewed.

A judge read N replies and called the share q of them positive. A sample of the N was reviewed. What
share of all replies like these is truly positive?

**The value** is prediction-powered (Angelopoulos et al. 2023, Science 382:669; with the power
tuning of PPI++, arXiv:2311.01453): the judge's rate plus its error as estimated from the review.
For labels of 0 and 1 that is exactly the maximum-likelihood estimate of double sampling (Tenenbein
1970, JASA 65:1350): t = q × a + (1 - q) × b, where a is the share of truly positive replies among
those that the judge calls positive, and b among the others.

**The interval** joins what statements, wordings and the reader leave open (`_interval`). a and b
are drawn by a Bayesian bootstrap of statements with anchors of the size of one reply, q by one with
anchors of the size of a statement (`statistics.share_draws`), or over wordings like these
(`statistics.two_way`). Other statements have another true share, of which the judge shows only the
part J, its sensitivity less its false alarms: t moves by (q drawn - q) / J. By Bayes' rule
J = q (1 - q) (a - b) / (t (1 - t)). (The product q × a + (1 - q) × b of drawn parts is too narrow:
where more is truly positive, more of what the judge calls positive is so, too.) q also varies by
the judge's own errors; t is therefore taken to vary by no more than a share of t would if all
replies to a statement were alike.

**The reviewers** are not the truth. Their majority is taken for it in the value. If two or more
read the same replies, the interval holds for two readings of their disagreements: that they are
real, and the majority stands; and that they are errors, independent and equally frequent, which
leave the majority wrong with a probability that follows from how often two of them differ (Dawid &
Skene 1979, Applied Statistics 28:20, with one rate of error); the share is then corrected for it,
as by Rogan & Gladen (1978, American J. of Epidemiology 107:71). Replies on which they are evenly
split count as positive at the upper end and as not positive at the lower one. With one reviewer
nothing is known of it, and the interval takes that reader for the truth.

**The judge's accuracy** on replies like these is the same estimate for the share of correct labels.

How often the intervals hold is simulated in `benchmarks/corrected.py`. The rates of a run are in
`corrected_rates`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from genprobe.errors import InputError
from genprobe.statistics import (
    COLUMNS,
    LEVEL,
    SEED,
    Array,
    Interval,
    share_draws,
    share_interval,
    two_way,
    usual_size,
)

VERSION = "8"
METHOD = f"joint95s{SEED}"  # the interval in signatures
LEAST = 0.1  # sensitivity less false alarms, below which a judge is not used


@dataclass(frozen=True)
class Read:
    """Replies that a judge read, and people in part.

    measured: (N,), whether the judge calls each positive. truth: (N,), the reviewers' label (0 or
    1); NaN if there is none. weights: (N,), of reviewed replies the inverse of their probability of
    being drawn, up to a factor. clusters: (N,), labels; replies of one cluster are not independent.
    wordings: (N,), labels; None for one wording. split: (N,), reviewed replies without a label,
    because the reviewers are evenly split. doubt: the probability that the reviewers' label is
    wrong, if their disagreements are errors; 0 with one reviewer.
    """

    measured: Array
    truth: Array
    weights: Array
    clusters: Array
    wordings: Array | None = None
    split: Array | None = None
    doubt: float = 0.0
    seen: Array = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.measured)
        f, y, w = np.asarray(self.measured, bool), np.asarray(self.truth, float), self.weights
        if not n == len(y) == len(w) == len(self.clusters):
            raise InputError("measured, truth, weights and clusters must have the same length")
        seen = ~np.isnan(y)
        if not np.isin(y[seen], (0, 1)).all():
            raise InputError("a reviewed reply must be positive (1) or not (0)")
        if not (np.isfinite(w[seen]) & (w[seen] > 0)).all():
            raise InputError("the weight of a reviewed reply must be a number above 0")
        for name, value in (("measured", f), ("truth", y), ("seen", seen)):
            object.__setattr__(self, name, value)
        split = np.zeros(n, bool) if self.split is None else self.split & ~seen
        object.__setattr__(self, "split", split)

    @property
    def blind(self) -> bool:
        """Return whether no reply with one of the judge's labels was reviewed."""
        labels = (self.measured, ~self.measured)
        return any(label.any() and not (self.seen & label).any() for label in labels)

    @property
    def tells(self) -> bool:
        """Return whether the rate can be corrected.

        It cannot by a review of one of several clusters, which says nothing about the others.
        """
        if self.blind or not self.seen.any():
            return False
        return not len(np.unique(self.clusters[self.seen])) == 1 < len(np.unique(self.clusters))

    def settled(self, label: float) -> Read:
        """Return it with the replies on which reviewers are split labelled `label`."""
        assert self.split is not None
        return replace(self, truth=np.where(self.split, label, self.truth), split=None)

    def right(self) -> Read:
        """Return whether the judge is right about a reply in place of whether it is positive."""
        return replace(self, truth=np.where(self.seen, self.truth == self.measured, np.nan))


@dataclass(frozen=True)
class Corrected:
    """A rate as measured and corrected, with intervals; shares of 0 to 1.

    measured, low, high: the judge's rate, with an interval that assumes that the judge is right.
    ppi: the corrected rate, for these wordings; over: over wordings like these, None for fewer than
    three. n: replies measured, of which n_reviewed are reviewed. accuracy, sensitivity,
    specificity: those of the judge, estimated from the reviewed replies, which are weighted so that
    the judge's labels are as frequent as among the n.

    A field is None if it cannot be estimated. This holds for all estimates from the review if no
    reply with one of the judge's labels is reviewed.
    """

    measured: float | None
    low: float | None
    high: float | None
    n: int
    n_reviewed: int
    accuracy: float | None = None
    sensitivity: float | None = None
    specificity: float | None = None
    accuracy_low: float | None = None
    accuracy_high: float | None = None
    ppi: float | None = None
    ppi_low: float | None = None
    ppi_high: float | None = None
    over: float | None = None
    over_low: float | None = None
    over_high: float | None = None


def correct(read: Read, level: float = LEVEL) -> Corrected:
    """Correct a rate that a judge measured for the judge's errors, as a review shows them.

    Nothing is corrected if only one of several clusters was reviewed, or if no reply with one of
    the judge's labels was reviewed, because it is then unknown how often the judge is right about
    that label. The same holds for the accuracy.
    """
    f, y, seen = read.measured, read.truth, read.seen
    if not len(f):
        return Corrected(None, None, None, 0, 0)
    table = _by_cluster(read.clusters, f, np.ones(len(f)))
    plain = share_interval(table[:, 0], table[:, 1], level) or (None, None)
    found = Corrected(float(f.mean()), plain[0], plain[1], len(f), int(seen.sum()))
    if read.blind or not seen.any():
        return found
    run = _as_run(f, read.weights, seen)
    right = read.right()
    low, high = interval([right], level, by_errors=False)
    found = replace(
        found,
        accuracy=value(right),
        accuracy_low=low,
        accuracy_high=high,
        sensitivity=_share(f, run, seen & (y == 1)),
        specificity=_share(~f, run, seen & (y == 0)),
    )
    if not read.tells:
        return found
    low, high = interval([read], level)
    found = replace(found, ppi=value(read), ppi_low=low, ppi_high=high)
    if _wordings(read) >= COLUMNS:
        low, high = interval([read], level, over=True)
        found = replace(found, over=value(read, over=True), over_low=low, over_high=high)
    return found


def value(read: Read, over: bool = False) -> float:
    """Return the corrected rate; over: as the mean over wordings that weigh alike."""
    return at_least(read, _called(read, over), 1.0)


def at_least(read: Read, called: float, counted: float) -> float:
    """Return the corrected rate of all planned replies, if none that does not count were positive.

    called, counted: the shares of them that the judge calls positive, and that count.
    """
    a, b = _parts(read)
    return called * a + (counted - called) * b


def _parts(read: Read) -> tuple[float, float]:
    """Return the shares of truly positive replies, by the judge's label."""
    f, y, w = read.measured, read.truth, read.weights
    labels = [read.seen & label for label in (f, ~f)]
    labels = labels if all(label.any() for label in labels) else [read.seen] * 2
    a, b = (_share(y == 1, w, label) or 0.0 for label in labels)
    return a, b


def _called(read: Read, over: bool) -> float:
    """Return the share of replies that the judge calls positive."""
    if not over or read.wordings is None:
        return float(read.measured.mean())
    at = np.unique(read.wordings, return_inverse=True)[1]
    return float((np.bincount(at, read.measured) / np.bincount(at)).mean())


def _wordings(read: Read) -> int:
    return 1 if read.wordings is None else len(np.unique(read.wordings))


def interval(
    reads: Sequence[Read], level: float = LEVEL, over: bool = False, by_errors: bool = True
) -> Interval:
    """Compute the interval of a corrected rate, or of the difference of two (the second's less).

    reads: one, or two whose clusters have the same labels. over: over wordings like these; at least
    as wide as for these wordings. by_errors: whether the judge's rate of positive labels tells of
    the share only by its sensitivity and false alarms; if not (accuracy), the share moves with it
    as a product. The head of this module says how.
    """
    ends = []
    for out, widest in ((-1, min), (1, max)):
        drawings = _drawings(reads, over, by_errors, out)
        found = [float(np.quantile(drawn, (1 + out * level) / 2)) for drawn in drawings]
        ends.append(widest(_here(reads, over), *found))
    return max(0.0 if len(reads) == 1 else -1.0, ends[0]), min(1.0, ends[1])


def p_value(reads: Sequence[Read], over: bool = False) -> float:
    """Compute the two-sided p-value for the hypothesis that two corrected rates do not differ.

    reads, over: as in `interval`. It is 1 less the highest level at which `interval` leaves out 0:
    the same question, and never another answer.
    """
    here = _here(reads, over)
    if not here:
        return 1.0
    out = 1 if here < 0 else -1  # the end that could reach 0
    drawings = _drawings(reads, over, True, out)
    return min(1.0, 2 * max(_beyond(0.0, -out * drawn) for drawn in drawings))


def _beyond(value: float, drawn: Array) -> float:
    """Return the chance whose quantile of the draws is `value`, the inverse of `np.quantile`.

    At least one over their number: what was never drawn is not impossible.
    """
    drawn = np.sort(drawn)
    at, n = int(np.searchsorted(drawn, value, "right")), len(drawn)
    if 0 < at < n:
        place = at - 1 + (value - drawn[at - 1]) / (drawn[at] - drawn[at - 1])
        return float(max(place / (n - 1), 1 / n))
    return 1.0 if at else 1 / n


def _here(reads: Sequence[Read], over: bool) -> float:
    """Return the corrected rate, or the difference."""
    own = [value(read, over) for read in reads]
    return own[0] if len(own) == 1 else own[0] - own[1]


def _drawings(reads: Sequence[Read], over: bool, by_errors: bool, out: int) -> Iterator[Array]:
    """Yield draws of the rate or difference towards its upper (out: 1) or lower (-1) end.

    One array for each reading of the reviewers' disagreements, and of wordings; the widest decides.
    The arguments are those of `interval`.
    """
    # Towards this end for the first rate, against it for the one that is subtracted.
    sides = [out, -out][: len(reads)]
    for doubt in sorted({0.0, *(read.doubt for read in reads if by_errors)}):
        if doubt >= 0.5:  # nothing is known
            yield np.full(2, out if len(reads) > 1 else (1 + out) / 2)
            continue
        parts = [
            _Part.of(
                *(read.settled((1 + side) / 2), side, min(doubt, read.doubt)),
                *(over, by_errors, at),
            )
            for at, (read, side) in enumerate(zip(reads, sides, strict=True))
        ]
        moves = [_moved(reads, parts, sides)]
        moves += [_moved_over(reads, parts, out)] if over else []
        for moved in moves:
            n = min(len(moved), *(len(part.here) for part in parts))
            drawn = parts[0].here[:n] + moved[:n]
            yield drawn - parts[1].here[:n] if len(parts) > 1 else drawn


@dataclass(frozen=True)
class _Part:
    """What is drawn of one rate.

    here: (draws,), the true share of the replies at hand, which is open by the review. slope: how
    far the true share moves with the judge's rate of positive labels. most: the standard deviation
    that it can have for other statements (and wordings).
    """

    here: Array
    slope: float
    most: float

    @classmethod
    def of(
        cls, read: Read, side: int, doubt: float, over: bool, by_errors: bool, seed: int
    ) -> _Part:
        f, seen, q = read.measured, read.seen, _called(read, over)
        y, w = np.where(seen, read.truth, 0.0), np.where(seen, read.weights, 0.0)
        labels = [f, ~f] if all((seen & g).any() for g in (f, ~f)) else [np.ones(len(f), bool)]
        tables = np.array([_by_cluster(read.clusters, w * y * g, w * g) for g in labels])
        # Anchors have a size between that of one reply and that of a statement's. If the judge says
        # the same of all, only the review tells of other statements, and they have the latter.
        several = len(labels) > 1
        sizes = [usual_size(table[:, 1]) for table in tables]
        if several:
            alone = [usual_size(w[g]) for g in labels]
            sizes = [(a * b) ** 0.5 for a, b in zip(sizes, alone, strict=True)]
        drawn = share_draws(tables, np.array(sizes), 0.5 + side / 4, SEED + 1 + seed)
        drawn = np.clip((drawn - doubt) / (1 - 2 * doubt), 0, 1)
        a, b = drawn[0], drawn[-1]
        here = q * a + (1 - q) * b
        t, slope = float(here.mean()), float((a - b).mean())
        # One over the number of statements (and of wordings), as if of one size.
        lone = usual_size(np.unique(read.clusters, return_counts=True)[1]) / len(f)
        lone += 1 / _wordings(read) if over else 0.0
        if by_errors:
            shown = q * (1 - q) * slope / (t * (1 - t))
            slope = 1 / max(shown, LEAST) if several else 0.0
        return cls(here, slope, (t * (1 - t) * lone) ** 0.5)


def _by_cluster(clusters: Array, hits: Array, sizes: Array) -> Array:
    """Sum hits and sizes over clusters: (clusters, 2)."""
    at = np.unique(clusters, return_inverse=True)[1]
    return np.column_stack([np.bincount(at, hits), np.bincount(at, sizes)])


def _moved(reads: Sequence[Read], parts: Sequence[_Part], sides: Sequence[int]) -> Array:
    """Draw how far the rates of other statements lie from those of these; see `interval`."""
    known, at = np.unique(np.concatenate([r.clusters for r in reads]), return_inverse=True)
    at_ = np.split(at, np.cumsum([len(r.clusters) for r in reads])[:-1])
    tables = np.zeros((len(reads), len(known), 2))
    for table, read, where in zip(tables, reads, at_, strict=True):
        table[:, 0] = np.bincount(where, read.measured, len(known))
        table[:, 1] = np.bincount(where, minlength=len(known))
    anchors = np.array([usual_size(table[:, 1]) for table in tables])
    moved = 0.0
    for i, (part, side) in enumerate(zip(parts, sides, strict=True)):
        # Under the same weights of the statements for both rates.
        off = share_draws(tables, anchors, 0.5 + side / 4)[i] - float(reads[i].measured.mean())
        slope = min(part.slope, part.most / max(float(off.std()), 1e-12))
        moved = moved + (-slope if i else slope) * off
    return np.asarray(moved)


def _moved_over(reads: Sequence[Read], parts: Sequence[_Part], out: int) -> Array:
    """Draw how far the rates over other statements and wordings lie from those over these."""
    statements = np.unique(np.concatenate([r.clusters for r in reads]))
    wordings = np.unique(np.concatenate([np.asarray(r.wordings) for r in reads]))
    tables, own = [], [_called(read, True) for read in reads]
    for read in reads:
        columns = np.searchsorted(wordings, np.asarray(read.wordings))
        where = np.searchsorted(statements, read.clusters), columns
        hits, sizes = np.zeros((2, len(statements), len(wordings)))
        np.add.at(hits, where, read.measured.astype(float))
        np.add.at(sizes, where, 1.0)
        tables.append((hits, sizes))
    # The lower end mirrors the upper one.
    off = [
        (two_way(t) if out > 0 else 1 - two_way((t[1] - t[0], t[1]))) - q
        for t, q in zip(tables, own, strict=True)
    ]
    slopes = [
        min(part.slope, part.most / max(float(one.std()), 1e-12))
        for part, one in zip(parts, off, strict=True)
    ]
    if len(reads) == 1:
        return slopes[0] * off[0]
    ours, theirs = [(hits * by, sizes) for (hits, sizes), by in zip(tables, slopes, strict=True)]
    apart = slopes[0] * own[0] - slopes[1] * own[1]
    return (two_way(ours, theirs) if out > 0 else -two_way(theirs, ours)) - apart


def _as_run(f: Array, w: Array, seen: Array) -> Array:
    """Scale the weights so that the judge's labels are as frequent in the review as in all replies.

    They are unchanged if the review contains only one of the labels.
    """
    labels = [f, ~f]
    if not all((seen & label).any() for label in labels):
        return w
    scale = [label.sum() / w[seen & label].sum() for label in labels]
    return w * np.where(f, *scale)


def _share(hit: Array, w: Array, of: Array) -> float | None:
    return float((w * hit)[of].sum() / w[of].sum()) if of.any() else None


def doubt(votes: Array) -> float:
    """Estimate how often the reviewers' label is wrong, if their disagreements are errors.

    votes: (replies, 3), of each reviewed reply how many of its reviewers called it positive, how
    many read it, and its weight. Reviewers err independently and equally often, with the rate e:
    two of them differ with the probability 2 e (1 - e). Given the votes of a reply, its majority is
    wrong with the odds (e / (1 - e)) ^ (majority - minority). Returns the weighted mean over the
    replies that have a majority; 0 if no reply was read by two.
    """
    k, n, w = np.asarray(votes, float).reshape(-1, 3).T
    pairs = n * (n - 1) / 2
    if not pairs.sum():
        return 0.0
    # Each reply counts alike, however many read it.
    several = pairs > 0
    differ = float(np.average((k * (n - k) / np.maximum(pairs, 1))[several], weights=w[several]))
    if differ >= 0.5:
        return 0.5
    err = (1 - (1 - 2 * differ) ** 0.5) / 2
    apart = np.abs(2 * k - n)
    has = apart > 0
    if not has.any() or not err:
        return 0.0 if has.any() else 0.5
    odds = (err / (1 - err)) ** apart[has]
    return float(np.average(odds / (1 + odds), weights=w[has]))
