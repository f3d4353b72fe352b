"""Run classifiers: the engines that cards name, and the labels from their probabilities.

    classifier = models.open("kk-linear")
    classifier.predict(["Өте жақсы кітап."], "kk")    ->  [Prediction("positive", …)]

Engines: `linear` and `story` (embedded: `linear.py`, `story.py`), `transformers` (a folder or a
model of the hub; only the model that the card names is downloaded), `vader` (English rules, the
extra `vader`). A text over a classifier's limit is cut into windows at white space (`linear`,
`vader`) or between tokens (`transformers`); their probabilities are averaged, weighted by size.
"""

from __future__ import annotations

import functools
import itertools
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from genprobe.errors import EngineError, need_models
from genprobe.files import door
from genprobe.judges.classifiers.cards import Card, load

_CLASSES = (None, "single_label_classification")  # of networks whose shares add up to 1
_PLACES = 4  # decimal places of a transformer's probabilities; further ones depend on the batch


class Prediction(NamedTuple):
    """The label of a text and its probabilities.

    label: one of `LABELS`, or `unscored` if the text has nothing to score (then all are None) or if
    no label reaches the card's probability `sure`.
    negative, neutral, positive: probabilities; `neutral` is None for a classifier of two classes,
    which is neutral within a band of probabilities that the card gives.
    """

    label: str
    negative: float | None
    neutral: float | None
    positive: float | None


UNSCORED = Prediction("unscored", None, None, None)


class Classifier(Protocol):
    """An opened card."""

    card: Card
    signature: str  # name, and hash of everything that a prediction depends on

    def predict(self, texts: Sequence[str], lang: str) -> list[Prediction]:
        """Return one prediction per text, in order.

        Raises InputError if the card does not have the language.
        """
        ...


def open(name: str) -> Classifier:
    """Open the classifier of a card.

    Raises EngineError if its model cannot be loaded.
    """
    return _open(load(name))


@functools.cache
def folder(pairs: tuple[tuple[str, str], ...]) -> Any:
    from genprobe.judges.classifiers import linear

    return linear.Folder(dict(pairs))


def _open(card: Card) -> Classifier:
    kinds = {
        "linear": LinearClassifier,
        "story": StoryClassifier,
        "transformers": Transformer,
        "vader": Vader,
    }
    return kinds[card.engine](card)


def decide(card: Card, negative: float, neutral: float | None, positive: float) -> Prediction:
    """Choose the label: the likeliest of three classes; of two, neutral within the card's band."""
    if neutral is not None:
        best = max((negative, "negative"), (positive, "positive"), (neutral, "neutral"))
        label = best[1] if best[0] >= card.sure else UNSCORED.label
        return Prediction(label, negative, neutral, positive)
    low, high = card.neutral or (card.threshold, card.threshold)
    label = "positive" if negative < low else "negative" if negative >= high else "neutral"
    return Prediction(label, negative, None, positive)


def _windows(text: str, most: int) -> list[str]:
    """Cut a text into pieces of at most `most` characters, after white space if there is any."""
    if not most or len(text) <= most:
        return [text]
    pieces = []
    while len(text) > most:
        cut = max(text.rfind(" ", 0, most), text.rfind("\n", 0, most)) + 1
        cut = cut if cut > most // 2 else most
        pieces.append(text[:cut])
        text = text[cut:]
    return [*pieces, text] if text.strip() else pieces


class _InCharacters:
    """The common part of engines with limits in characters."""

    card: Card

    def _scores(self, texts: Sequence[str]) -> list[tuple[float, float | None, float] | None]:
        raise NotImplementedError

    def predict(self, texts: Sequence[str], lang: str) -> list[Prediction]:
        self.card.check(lang)
        card = self.card
        if not card.max_size or all(len(text) <= card.max_size for text in texts):
            return [
                decide(card, *score) if score and _enough(text, card.min_size) else UNSCORED
                for text, score in zip(texts, self._scores(texts), strict=True)
            ]
        pieces = [_windows(text, self.card.max_size) for text in texts]
        scores = iter(self._scores([piece for part in pieces for piece in part]))
        found = []
        for text, part in zip(texts, pieces, strict=True):
            own = [(len(piece), next(scores)) for piece in part]
            known = [(size, score) for size, score in own if score is not None]
            if not known or not _enough(text, self.card.min_size):
                found.append(UNSCORED)
            else:
                found.append(decide(self.card, *_mean(known)))
        return found


def _enough(text: str, least: int) -> bool:
    """Tell whether a text has at least `least` letters, digits and emoji."""
    if text[:least].isalnum() and len(text) >= least:
        return True
    found = (c for c in text if c.isalnum() or unicodedata.category(c) == "So")
    return least <= 0 or next(itertools.islice(found, least - 1, None), None) is not None


def _mean(parts: Sequence[tuple[int, Sequence[float | None]]]) -> tuple[float, float | None, float]:
    """Average the probabilities of parts, weighted by their size."""
    if len(parts) == 1:
        negative, neutral, positive = parts[0][1]
    else:
        total = sum(size for size, _ in parts)
        negative, neutral, positive = (
            None
            if scores[0] is None
            else round(sum(s * v for (s, _), v in zip(parts, scores, strict=True)) / total, 6)
            for scores in zip(*(score for _, score in parts), strict=True)
        )
    assert negative is not None and positive is not None
    return negative, neutral, positive


class LinearClassifier(_InCharacters):
    """Engine `linear`. The weights are next to the card; their hash must be the card's."""

    def __init__(self, card: Card) -> None:
        from genprobe.judges.classifiers import linear

        self.card = card
        self._model = linear.read(card.weights, folder(tuple(card.fold.items())), card.sha256)
        self.signature = f"{card.name}+{card.hash}"

    def _scores(self, texts: Sequence[str]) -> list[tuple[float, float | None, float] | None]:
        return [
            None if p is None else (p, None, round(1 - p, 6)) for p in self._model.negative(texts)
        ]


class StoryClassifier(_InCharacters):
    """Engine `story`: three classes, sentence by sentence (`story.py`)."""

    def __init__(self, card: Card) -> None:
        from genprobe.judges.classifiers import story

        self.card = card
        self._model = story.read(card.weights, card.sha256)
        self.signature = f"{card.name}+{card.hash}"

    def _scores(self, texts: Sequence[str]) -> list[tuple[float, float | None, float] | None]:
        return [*self._model.probabilities(texts)]


class Vader(_InCharacters):
    """Engine `vader` (Hutto & Gilbert 2014): English rules, no probabilities.

    `negative`, `neutral`, `positive` are 0 or 1, by the published thresholds of the compound
    score: at most -0.05, at least 0.05.
    """

    def __init__(self, card: Card) -> None:
        try:
            from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer
        except ImportError:
            raise EngineError("VADER is not installed; pip install 'genprobe[vader]'") from None
        from importlib.metadata import version

        self.card = card
        self._analyzer = SentimentIntensityAnalyzer()
        self.signature = f"{card.name}+{card.hash}+{version('vaderSentiment')}"

    def _scores(self, texts: Sequence[str]) -> list[tuple[float, float | None, float] | None]:
        found: list[tuple[float, float | None, float] | None] = []
        for text in texts:
            score = self._analyzer.polarity_scores(text)["compound"]
            found.append((float(score <= -0.05), float(-0.05 < score < 0.05), float(score >= 0.05)))
        return found


class Transformer:
    """Engine `transformers`: AutoModelForSequenceClassification on a GPU or the CPU.

    model: a folder (absolute, or next to the card) or a hub id; limits count tokens. The signature
    has the revision that was actually loaded, even if the card does not fix one.
    """

    def __init__(self, card: Card, batch: int = 32) -> None:
        with need_models(f"the classifier {card.name}"):
            import torch
            import transformers

        self.card, self._batch = card, batch
        beside = card.path.parent / card.model
        there = door.lies_at(beside) == "folder"
        if there:
            door.need_own(beside)
        source = str(beside) if there else card.model
        options = {"revision": card.revision} if card.revision and not there else {}
        try:
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(
                source, trust_remote_code=False, **options
            )
            self._net, info = transformers.AutoModelForSequenceClassification.from_pretrained(
                source, output_loading_info=True, trust_remote_code=False, **options
            )
        except (OSError, ValueError, ImportError) as error:
            reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise EngineError(
                f"the classifier {card.name!r} ({card.model}) cannot be loaded: {reason}"
            ) from None
        if info["missing_keys"]:
            raise EngineError(
                f"{card.model}: {min(info['missing_keys'])} is missing and would be random; "
                "it is not a trained classifier"
            )
        if not self._tokenizer.is_fast:
            raise EngineError(f"{card.model} has no fast tokenizer, which windows need")
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._net.to(self._device).eval()
        self._columns = self._map(self._net.config.id2label)
        config = self._net.config
        room = getattr(config, "max_position_embeddings", None) or 512
        # RoBERTa's positions begin after the padding index.
        room -= (config.pad_token_id or 0) + 1 if "roberta" in config.model_type else 0
        self._room = min(card.max_size or room, room)
        loaded = getattr(config, "_commit_hash", None) or card.revision or "local"
        self.signature = f"{card.name}+{card.hash}+{loaded[:12]}"

    def _map(self, id2label: Mapping[int, str]) -> dict[str, list[int]]:
        """Return our label -> the outputs that the card maps to it; every output must be mapped."""
        ours = {theirs.casefold(): label for theirs, label in self.card.labels.items()}
        columns: dict[str, list[int]] = {}
        for index, theirs in id2label.items():
            if theirs.casefold() not in ours:
                raise EngineError(
                    f"{self.card.model} has the label {theirs!r}, which [labels] of "
                    f"{self.card.path} does not map"
                )
            columns.setdefault(ours[theirs.casefold()], []).append(int(index))
        kind = self._net.config.problem_type
        if not {"negative", "positive"} <= columns.keys() or kind not in _CLASSES:
            raise EngineError(
                f"{self.card.model} ({kind or len(columns)}) is no classifier of one label for a "
                "text, negative or positive; name another model in the card"
            )
        return columns

    def predict(self, texts: Sequence[str], lang: str) -> list[Prediction]:
        self.card.check(lang)
        asked = [i for i, text in enumerate(texts) if _enough(text, self.card.min_size)]
        pieces: list[tuple[int, list[int]]] = []
        if asked:
            encoded = self._tokenizer(
                [texts[i] for i in asked],
                truncation=True,
                max_length=self._room,
                return_overflowing_tokens=True,
            )
            owners = encoded["overflow_to_sample_mapping"]
            pieces = [(asked[o], r) for o, r in zip(owners, encoded["input_ids"], strict=True)]
        special = self._tokenizer.num_special_tokens_to_add()
        parts: list[list[tuple[int, tuple[float, float | None, float]]]] = [[] for _ in texts]
        order = sorted(range(len(pieces)), key=lambda i: -len(pieces[i][1]))
        for start in range(0, len(order), self._batch):
            chosen = [pieces[i] for i in order[start : start + self._batch]]
            rows = self._run([ids for _, ids in chosen])
            for (at, ids), row in zip(chosen, rows, strict=True):
                parts[at].append((len(ids) - special, row))
        return [decide(self.card, *_mean(sorted(p))) if p else UNSCORED for p in parts]

    def _run(self, rows: list[list[int]]) -> list[tuple[float, float | None, float]]:
        import torch

        batch = self._tokenizer.pad({"input_ids": rows}, return_tensors="pt").to(self._device)
        with torch.inference_mode():
            shares = self._net(**batch).logits.float().softmax(-1).cpu()

        def of(row: Any, label: str) -> float | None:
            columns = self._columns.get(label)
            return None if columns is None else round(float(row[columns].sum()), _PLACES)

        return [
            (of(r, "negative") or 0.0, of(r, "neutral"), of(r, "positive") or 0.0) for r in shares
        ]
