"""Sentiment classifiers, each described by its card in `classifiers/` (README.md there).

    classifier = classifiers.open("kk-linear")
    classifier.predict(["Өте жақсы кітап."], "kk")    ->  [Prediction("positive", …)]

Engines: `linear` and `story` (embedded: `linear.py`, `story.py`), `transformers` (a folder or a
model of the hub; nothing but what the card names is downloaded), `vader` (English rules, the extra
`vader`). A text beyond a classifier's limit is cut into windows at white space (`linear`, `vader`)
or between tokens (`transformers`); their probabilities are averaged, weighted by their size.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from genprobe.errors import EngineError, InputError
from genprobe.resources import packs, registry
from genprobe.resources.packs import file_hash, no_more, read_toml, string, strings, table

LABELS = ("negative", "neutral", "positive")
ENGINES = ("linear", "story", "transformers", "vader")
KINDS = ("stories", "reviews", "essays", "tweets")  # of texts that a figure is measured on
NOT_MEASURED = "not measured"
MACRO_F1 = "macro F1"
CALLED = "called negative"  # of the texts of one true class, the share that is called so
SOUND = 0.8  # macro F1 whose lower end lets a figure stand without a caution
_PLACES = 4  # of a transformer's probabilities: the next ones depend on the batch


class Prediction(NamedTuple):
    """What a classifier says of a text.

    label: of `LABELS`, or `unscored` where the text holds nothing to score (then all None), or
    where no label is as likely as the card's `sure`.
    negative, neutral, positive: probabilities; `neutral` is None where the classifier knows two
    classes, whose uncertain band the card calls neutral.
    """

    label: str
    negative: float | None
    neutral: float | None
    positive: float | None


UNSCORED = Prediction("unscored", None, None, None)


class Classifier(Protocol):
    """An opened card."""

    card: Card
    signature: str  # name and hash of all that a prediction depends on

    def predict(self, texts: Sequence[str], lang: str) -> list[Prediction]:
        """One prediction a text, in their order. InputError for a language not on the card."""
        ...


@dataclass(frozen=True)
class Measured:
    """A figure that was measured with this project; (low, high) is its 95 % interval.

    kind: of texts, one of `KINDS`; lang: their language; empty where a card does not say.
    """

    on: str
    n: int
    metric: str
    value: float
    low: float
    high: float
    kind: str = ""
    lang: str = ""


@dataclass(frozen=True)
class Card:
    """What is known of a classifier. See classifiers/README.md for each field."""

    name: str
    path: Path
    title: str
    engine: str
    model: str
    revision: str
    languages: tuple[str, ...]
    default_for: tuple[str, ...]
    licence: str
    source: str
    trained_on: str
    stories: str
    labels: dict[str, str]
    min_size: int
    max_size: int
    neutral: tuple[float, float] | None
    threshold: float
    share: float | None
    sure: float
    sha256: str
    fold: dict[str, str]
    measured: tuple[Measured, ...]  # empty: not measured
    hash: str

    def check(self, lang: str) -> str:
        """Find the code of a language.

        Raises InputError where the card is not for it.
        """
        code = packs.language_code(lang)
        if "*" not in self.languages and code not in self.languages:
            raise InputError(
                f"the classifier {self.name!r} is for {', '.join(self.languages)} and not for "
                f"{code}; {_could(code)}"
            )
        return code

    def figures(self) -> str:
        """Write the macro F1 by kind of text and language in a line.

        It says so where stories were not measured.
        """
        shown = [
            f"{m.kind or m.on} {m.lang} {m.value:.2f} ({m.low:.2f} to {m.high:.2f}, n {m.n})"
            for m in self.measured
            if m.metric == MACRO_F1
        ]
        if not any(m.kind == "stories" for m in self.measured):
            shown.append(f"stories {NOT_MEASURED}")
        return f"{MACRO_F1}: {'; '.join(shown)}"

    def accuracy(self, lang: str, kind: str) -> Measured | None:
        """Find the macro F1 on texts of a kind in a language; None where it was not measured."""
        fitting = [m for m in self.measured if (m.metric, m.kind, m.lang) == (MACRO_F1, kind, lang)]
        return max(fitting, key=lambda m: m.n, default=None)

    def caution(self, lang: str, kind: str = "stories") -> str:
        """Say what a reader must know before any figure of this classifier; "" where it is sound.

        A classifier that was never measured on such texts, or whose macro F1 on them is not
        surely above `SOUND`, brings a caution.
        """
        try:
            found = self.accuracy(packs.language_code(lang), kind)
        except InputError:  # a language that nothing describes
            found = None
        if found is None:
            return (
                f"the classifier {self.name} was never measured on {kind} in {lang}: what it says "
                "of them may be near to noise; review a sample and report corrected rates"
            )
        if found.low < SOUND:
            return (
                f"the classifier {self.name} has a macro F1 of {found.value:.2f} ({found.low:.2f} "
                f"to {found.high:.2f}, n {found.n}) on {kind} in {lang}: report corrected rates"
            )
        return ""


_SCALARS = {
    *("title", "engine", "model", "revision", "languages", "default_for", "licence", "source"),
    *("trained_on", "stories", "sha256", "measured"),
}


def names() -> list[str]:
    """List the names of all cards."""
    return registry.names("classifiers")


@functools.cache
def load(name: str) -> Card:
    """Load the card of a name, or of a path that ends in .toml.

    Raises InputError where it is unknown or malformed.
    """
    if name.endswith(".toml"):
        return read_card(Path(name))
    registry.check("classifiers", name)
    return read_card(registry.CLASSIFIERS / f"{name}.toml")


def read_card(path: Path) -> Card:
    """Read and check one card."""
    row = read_toml(path)
    no_more(row, _SCALARS | {"labels", "limits", "decision", "fold"}, path)
    engine = string(row, "engine", path)
    if engine not in ENGINES:
        raise InputError(f"{path}: engine {engine!r} is none of {', '.join(ENGINES)}")
    labels = {k: string({k: v}, k, path) for k, v in table(row, "labels", path).items()}
    for label in labels.values():
        if label not in LABELS:
            raise InputError(f"{path}: labels map to {', '.join(LABELS)}, not to {label!r}")
    if engine == "transformers" and not {"negative", "positive"} <= set(labels.values()):
        raise InputError(f"{path}: [labels] names no label for negative or for positive")
    limits, decision = table(row, "limits", path), table(row, "decision", path)
    no_more(limits, {"min", "max"}, path, "limits.")
    no_more(decision, {"neutral", "threshold", "share", "sure"}, path, "decision.")
    band = decision.get("neutral")
    if band is not None and not _is_band(band):
        raise InputError(f"{path}: decision.neutral must be two shares, the smaller first")
    languages = strings(row, "languages", path)
    default_for = strings(row, "default_for", path)
    for code in (*languages, *default_for):
        if code != "*" and code not in registry.names("languages"):
            raise registry.unknown(f"language in {path}", code, registry.names("languages"))
    sha256 = string(row, "sha256", path, "")
    return Card(
        name=path.stem,
        path=path,
        title=string(row, "title", path),
        engine=engine,
        model=string(row, "model", path),
        revision=string(row, "revision", path, ""),
        languages=languages,
        default_for=default_for,
        licence=string(row, "licence", path),
        source=string(row, "source", path),
        trained_on=string(row, "trained_on", path),
        stories=string(row, "stories", path),
        labels=labels,
        min_size=_number(limits, "min", path, 1, int),
        max_size=_number(limits, "max", path, 0, int),
        neutral=(float(band[0]), float(band[1])) if band is not None else None,
        threshold=_number(decision, "threshold", path, 0.5, float),
        share=decision.get("share"),
        sure=_number(decision, "sure", path, 0.0, float),
        sha256=sha256,
        fold={k: string({k: v}, k, path, "") for k, v in table(row, "fold", path).items()},
        measured=_measured(row, path),
        hash=file_hash(path),
    )


def _is_band(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(v, int | float) for v in value)
        and 0 <= value[0] <= value[1] <= 1
    )


def _number(row: Mapping[str, Any], key: str, path: Path, default: Any, kind: type) -> Any:
    value = row.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int if kind is int else int | float):
        raise InputError(f"{path}: {key!r} must be a number and is {value!r}")
    if value < 0 or (kind is float and value > 1):
        raise InputError(f"{path}: {key!r} is out of range: {value!r}")
    return kind(value)


def _measured(row: Mapping[str, Any], path: Path) -> tuple[Measured, ...]:
    """Read the figures; a card without any says so: measured = "not measured"."""
    value = row.get("measured")
    if value == NOT_MEASURED:
        return ()
    keys, more = {"on", "n", "metric", "value", "low", "high"}, {"kind", "lang"}
    if (
        not isinstance(value, list)
        or not value
        or any(not keys <= set(v) <= keys | more for v in value)
        or any(v.get("kind", KINDS[0]) not in KINDS for v in value)
    ):
        raise InputError(
            f'{path}: measured must be "{NOT_MEASURED}" or [[measured]] tables with '
            f"{', '.join(Measured.__annotations__)} (kind: {', '.join(KINDS)})"
        )
    return tuple(Measured(**part) for part in value)


def default(lang: str, kind: str = "stories") -> str:
    """Choose the card for texts of a kind in a language.

    Of those that name the language in `default_for`, the one with the best macro F1 on such texts;
    one that was never measured on them comes last. Raises InputError where no card names the
    language.
    """
    code = packs.language_code(lang)
    cards = [card for card in map(load, names()) if code in card.default_for]
    if not cards:
        raise InputError(f"no classifier is the default for {code}; {_could(code)}")
    found = [(m.value if (m := card.accuracy(code, kind)) else -1.0) for card in cards]
    return cards[found.index(max(found))].name


def _could(code: str) -> str:
    fitting = [n for n in names() if {code, "*"} & set(load(n).languages)]
    if not fitting:
        return "no card is for it; write one (classifiers/README.md)"
    return f"name one with --classifier: {', '.join(fitting)}"


def open(name: str) -> Classifier:
    """Open the classifier of a card.

    Raises EngineError where its model cannot be had.
    """
    return _open(load(name))


@functools.cache
def _folder(pairs: tuple[tuple[str, str], ...]) -> Any:
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
    """Choose the label: of three classes the likeliest; of two, neutral inside the card's band."""
    if neutral is not None:
        best = max((negative, "negative"), (positive, "positive"), (neutral, "neutral"))
        label = best[1] if best[0] >= card.sure else UNSCORED.label
        return Prediction(label, negative, neutral, positive)
    low, high = card.neutral or (card.threshold, card.threshold)
    label = "positive" if negative < low else "negative" if negative >= high else "neutral"
    return Prediction(label, negative, None, positive)


def _windows(text: str, most: int) -> list[str]:
    """Cut a text into pieces of at most `most` characters, behind white space where there is."""
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
    """What engines have in common whose limits are characters."""

    card: Card

    def _scores(self, texts: Sequence[str]) -> list[tuple[float, float | None, float] | None]:
        raise NotImplementedError

    def predict(self, texts: Sequence[str], lang: str) -> list[Prediction]:
        self.card.check(lang)
        pieces = [_windows(text, self.card.max_size) for text in texts]
        scores = iter(self._scores([piece for part in pieces for piece in part]))
        found = []
        for text, part in zip(texts, pieces, strict=True):
            own = [(len(piece), next(scores)) for piece in part]
            known = [(size, score) for size, score in own if score is not None]
            if not known or _letters(text) < self.card.min_size:
                found.append(UNSCORED)
            else:
                found.append(decide(self.card, *_mean(known)))
        return found


def _letters(text: str) -> int:
    """Letters, digits and emoji."""
    return sum(c.isalnum() or unicodedata.category(c) == "So" for c in text)


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
    """Engine `linear`. The weights lie beside the card, and are those that it was written for."""

    def __init__(self, card: Card) -> None:
        from genprobe.judges.classifiers import linear

        self.card = card
        self._model = linear.read(
            card.path.with_name(card.model), _folder(tuple(card.fold.items())), card.sha256
        )
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
        self._model = story.read(card.path.with_name(card.model), card.sha256)
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

    model: a folder (absolute, or beside the card) or a hub id; limits count tokens. The revision
    that was really loaded is in the signature, also where the card could not pin one.
    """

    def __init__(self, card: Card, batch: int = 32) -> None:
        import torch
        import transformers

        self.card, self._batch = card, batch
        beside = card.path.parent / card.model
        source = str(beside) if beside.is_dir() else card.model
        options = {"revision": card.revision} if card.revision and not beside.is_dir() else {}
        try:
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(source, **options)
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
        # RoBERTa's positions begin behind the padding index.
        room -= (config.pad_token_id or 0) + 1 if "roberta" in config.model_type else 0
        self._room = min(card.max_size or room, room)
        loaded = getattr(config, "_commit_hash", None) or card.revision or "local"
        self.signature = f"{card.name}+{card.hash}+{loaded[:12]}"

    def _map(self, id2label: Mapping[int, str]) -> dict[str, list[int]]:
        """Our label -> the outputs that the card maps to it; each output has one."""
        ours = {theirs.casefold(): label for theirs, label in self.card.labels.items()}
        columns: dict[str, list[int]] = {}
        for index, theirs in id2label.items():
            if theirs.casefold() not in ours:
                raise EngineError(
                    f"{self.card.model} has the label {theirs!r}, which [labels] of "
                    f"{self.card.path} does not map"
                )
            columns.setdefault(ours[theirs.casefold()], []).append(int(index))
        return columns

    def predict(self, texts: Sequence[str], lang: str) -> list[Prediction]:
        self.card.check(lang)
        asked = [i for i, text in enumerate(texts) if _letters(text) >= self.card.min_size]
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


# --- training --------------------------------------------------------------------------------


def train(
    path: str | Path,
    out_card: str | Path,
    text: str = "text",
    label: str = "label",
    *,
    like: str = "kk-linear",
    share: float | None = None,
    note: Any = lambda message: None,
) -> Card:
    """Train a linear classifier on a table, and write its weights and card.

    path: CSV, JSONL or Parquet with the columns `text` and `label` (0 negative, 1 positive, or
    the words; other rows, such as neutral ones, are an error). out_card: FILE.toml; the weights
    lie beside it. like: the card whose languages, fold and limits are taken. share: of negative
    texts where it will be used; that of the card `like` without one.
    The same file gives the same bytes. InputError, with the row, for what cannot be used.
    """
    import hashlib

    import numpy as np

    from genprobe import files
    from genprobe.judges.classifiers import linear

    out, base = Path(out_card), load(like)
    if out.suffix != ".toml":
        raise InputError(f"{out}: a card is a .toml file")
    texts, negative = [], []
    for number, row in files.numbered_rows(path):
        if text not in row or label not in row:
            missing = text if text not in row else label
            raise InputError(f"{path}: no column {missing!r}; columns: {', '.join(map(str, row))}")
        texts.append(files.cell_text(row[text]))
        negative.append(_class(row[label], f"{path}, row {number}"))
    if min(sum(negative), len(negative) - sum(negative)) < 50:
        raise InputError(f"{path}: fewer than 50 texts of a class; train on more")
    used = share if share is not None else base.share
    if used is None or not 0 < used < 1:
        raise InputError(f"the share of negative texts must be between 0 and 1 and is {used}")
    y = np.array(negative)
    note(f"training on {len(texts)} texts, {sum(negative)} of them negative")
    model, held = linear.train(texts, y, _folder(tuple(base.fold.items())), used)
    data = linear.write(model)
    weight = np.where(y == 1, used / y.mean(), (1 - used) / (1 - y.mean()))
    threshold = best_threshold(held, y, weight)
    folds = macro_f1(held, y, weight, threshold)
    note(f"macro F1 over five folds: {folds:.3f} at {threshold:.2f}, the threshold chosen in them")
    out.with_suffix(".bin").write_bytes(data)
    sha256 = hashlib.sha256(data).hexdigest()
    out.write_text(_card_text(base, out, Path(path).name, len(texts), sha256, used, threshold))
    note(f"{out.with_suffix('.bin')}: SHA-256 {sha256}")
    load.cache_clear()
    return read_card(out)


def _class(value: object, where: str) -> int:
    """1 for negative, 0 for positive."""
    known = {"0": 1, "negative": 1, "1": 0, "positive": 0}
    key = str(value).strip().lower().removesuffix(".0")
    if key not in known:
        raise InputError(f"{where}: label {value!r} is none of 0, 1, negative, positive")
    return known[key]


def best_threshold(negative: Any, y: Any, weight: Any) -> float:
    """Find the threshold of P(negative), in hundredths, with the best weighted macro F1.

    Of several the middle one, so that texts that are easy to tell apart leave room for all labels.
    """
    found = {t: macro_f1(negative, y, weight, t / 100) for t in range(5, 96)}
    best = [t for t, f1 in found.items() if f1 == max(found.values())]
    return best[(len(best) - 1) // 2] / 100


def macro_f1(negative: Any, y: Any, weight: Any, threshold: float) -> float:
    """Mean of the F1 of both classes. negative: P(negative); y: 1 where it is true."""
    said, true = negative >= threshold, y == 1
    hit, miss = weight[said & true].sum(), weight[~said & true].sum()
    false, right = weight[said & ~true].sum(), weight[~said & ~true].sum()
    return float(hit / (2 * hit + miss + false) + right / (2 * right + miss + false))


def _card_text(
    base: Card, out: Path, data: str, n: int, sha256: str, share: float, threshold: float
) -> str:
    """Write a card for new weights; what was measured on others is not taken over."""
    import json

    def quote(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    low, high = max(0.0, threshold - 0.1), min(1.0, threshold + 0.1)
    lines = [
        f"title = {quote(f'Linear classifier trained on {data}')}",
        'engine = "linear"',
        f"model = {quote(out.with_suffix('.bin').name)}",
        f"sha256 = {quote(sha256)}",
        f"languages = {quote(list(base.languages))}",
        "default_for = []",
        'licence = "that of the texts it was trained on"',
        f"source = {quote(f'genprobe classifiers train {data}')}",
        f"trained_on = {quote(f'{n} texts of {data}')}",
        'stories = "Not known: it was trained on other texts."',
        f'measured = "{NOT_MEASURED}"',
        "",
        "[limits]",
        f"min = {base.min_size}",
        f"max = {base.max_size}",
        "",
        "[decision]",
        f"share = {share}",
        f"threshold = {threshold}",
        f"neutral = [{low:.2f}, {high:.2f}]",
        "",
        "[fold]",
        *(f"{quote(old)} = {quote(new)}" for old, new in base.fold.items()),
    ]
    return "\n".join(lines) + "\n"
