"""Judge whether a reply is negative, neutral or positive, by a classifier of `classifiers/`.

If no classifier is named, the best one for stories in the language of the item is used, or for
another kind of text if one is named (`cards.default`). The label is that of the reply *as a whole*;
a reply that is longer than the classifier can read is cut into windows. The fields also give the
mean of P(negative) over the sentences, and whether that mean would give another label. If it would,
the tone of the reply changes from sentence to sentence, and one number does not describe it. A
reply without a letter or emoji is `unscored`.
"""

from __future__ import annotations

from collections.abc import Sequence

from genprobe.judges import LABEL, NUMBER, Column, Item, Verdict, field_of
from genprobe.judges.classifiers import cards, models
from genprobe.judges.classifiers.cards import Card
from genprobe.judges.classifiers.models import Classifier, Prediction, decide
from genprobe.linguistics.sentences import sentences
from genprobe.resources import registry

VERSION = 2

PLACE, READS = 60, "stories"
COLUMNS = (
    Column("sentiment", "negative, neutral, positive or unscored", LABEL),
    Column(
        "negative", "calibrated probability that the text is negative", lambda j: j.score, NUMBER
    ),
    Column("classifier", "name of the classifier", field_of("classifier")),
)


def make(classifier: str | None = None, kind: str | None = None) -> SentimentJudge:
    """Make the judge.

    classifier: the name or the path of a card; None: the default card of each language for texts
    of this kind. kind: one of `cards.KINDS`; None means stories. Raises InputError if either is
    unknown.
    """
    kind = kind or cards.KINDS[0]
    if kind not in cards.KINDS:
        raise registry.unknown("kind of text", kind, cards.KINDS)
    return SentimentJudge(classifier, kind)


class SentimentJudge:
    """The judge `sentiment`: see the module's docstring.

    label: `negative`, `neutral`, `positive` or `unscored`. score: P(negative). fields: `negative`
    (P(negative) again), `classifier` (its name), `by_sentence` (mean of P(negative) over the
    sentences), `sentences` (their number), `disagree` (whether that mean gives another label).
    """

    name = "sentiment"
    column = "sentiment"
    reads = frozenset(("free",))
    needs = ("lang", "response")

    heavy = True  # its classifier may be a network that is loaded here

    def __init__(self, classifier: str | None, kind: str) -> None:
        self._name, self._kind = classifier, kind
        self._cautions: dict[str, None] = {}
        self._open: dict[str, Classifier] = {}
        if classifier is not None:
            self._open[classifier] = models.open(classifier)

    @property
    def signature(self) -> str:
        """Return the version, and the classifier named or all that are a default, with hashes."""
        if self._name is not None:
            used = [self._open[self._name].signature]
        else:
            known = [cards.load(name) for name in cards.names()]
            used = [f"{card.name}+{card.hash}" for card in known if card.default_for]
        return f"sentiment@{VERSION}+{self._kind}+{'+'.join(used)}"

    @property
    def cautions(self) -> list[str]:
        """Return the cautions for the classifiers that were used, each one once."""
        return list(self._cautions)

    def __call__(self, item: Item) -> Verdict:
        return self.many([item])[0]

    def many(self, items: Sequence[Item]) -> list[Verdict]:
        """Return the verdict of each item, in order; items of one language are read together."""
        found: dict[int, Verdict] = {}
        by_lang: dict[str, list[int]] = {}
        for at, item in enumerate(items):
            by_lang.setdefault(item.lang, []).append(at)
        for lang, places in by_lang.items():
            replies = [items[at] for at in places]
            texts = [item.own for item in replies]
            found.update(zip(places, self._judge(texts, lang), strict=True))
        return [found[at] for at in range(len(items))]

    def _judge(self, texts: list[str], lang: str) -> list[Verdict]:
        name = self._name if self._name is not None else cards.default(lang, self._kind)
        if name not in self._open:
            self._open[name] = models.open(name)
        classifier = self._open[name]
        if caution := classifier.card.caution(lang, self._kind):
            self._cautions[caution] = None
        parts = [sentences(text, lang) for text in texts]
        # A reply of one sentence is not classified twice.
        pieces = [part if len(part) > 1 else [] for part in parts]
        every = classifier.predict([*texts, *(s for part in pieces for s in part)], lang)
        rest = iter(every[len(texts) :])
        verdicts = []
        for text, whole, part, own in zip(texts, every, parts, pieces, strict=False):
            each = [next(rest) for _ in own] or [whole]
            verdicts.append(_verdict(classifier.card, text, whole, len(part), each))
        return verdicts


def _verdict(
    card: Card, text: str, whole: Prediction, sentences: int, each: Sequence[Prediction]
) -> Verdict:
    scored = [p for p in each if p.negative is not None]
    mean = _mean([p.negative for p in scored])
    disagree = False
    if mean is not None:
        neutral, positive = _mean([p.neutral for p in scored]), _mean([p.positive for p in scored])
        disagree = decide(card, mean, neutral, positive or 0.0).label != whole.label
    return Verdict(
        whole.label,
        "whole" if whole.negative is not None else "nothing-to-score",
        "",
        whole.negative,
        {
            "negative": whole.negative,
            "classifier": card.name,
            "by_sentence": mean,
            "sentences": sentences,
            "disagree": disagree,
        },
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 6) if known else None
