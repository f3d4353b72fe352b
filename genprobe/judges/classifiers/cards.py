"""Read the cards of classifiers, choose the default one, and write cautions.

A card is a file of `classifiers/` (README.md there).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genprobe.errors import InputError
from genprobe.files import door
from genprobe.records import fits
from genprobe.resources import packs, registry
from genprobe.resources.packs import file_hash, no_more, read_toml, shaped, string, strings, table

LABELS = ("negative", "neutral", "positive")
ENGINES = ("linear", "story", "transformers", "vader")
KINDS = ("stories", "reviews", "essays", "tweets")  # kinds of texts on which figures are measured
NOT_MEASURED = "not measured"
MACRO_F1 = "macro F1"
CALLED = "called negative"  # metric: share of the texts of one true class that are called negative
SOUND = 0.8  # no caution if the lower end of the interval of the macro F1 is at least this
_FILE = r"(?!\.+\Z)[^/\\:\0-\x1f]{1,200}"  # a name without a folder


@dataclass(frozen=True)
class Measured:
    """A figure that was measured with this project; (low, high) is its 95 % interval.

    on: the data. n: number of texts. kind: kind of texts, one of `KINDS`; lang: their language;
    both are empty if the card does not give them.
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
    """The card of a classifier. See classifiers/README.md for each field."""

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

    @property
    def weights(self) -> Path:
        """The file of weights beside the card. Raises InputError for a link of a stranger's."""
        path = self.path.with_name(self.model)
        if self.path not in registry.files("classifiers"):
            door.need_own_file(path)
        return path

    def check(self, lang: str) -> str:
        """Return the code of a language.

        Raises InputError if the classifier does not read that language.
        """
        code = packs.language_code(lang)
        if "*" not in self.languages and code not in self.languages:
            raise InputError(
                f"the classifier {self.name!r} reads {', '.join(self.languages)}, not {code}; "
                f"{_could(code)}"
            )
        return code

    def figures(self) -> str:
        """Return one line with the macro F1 by kind of text and language.

        The line also says if it was not measured on stories.
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
        """Return the macro F1 on texts of a kind in a language; None if it was not measured."""
        fitting = [m for m in self.measured if (m.metric, m.kind, m.lang) == (MACRO_F1, kind, lang)]
        return max(fitting, key=lambda m: m.n, default=None)

    def caution(self, lang: str, kind: str = "stories") -> str:
        """Return the caution to print with the figures of this classifier; "" if none is needed.

        A caution is needed if the classifier was never measured on such texts, or if the 95 %
        interval of its macro F1 on them reaches below `SOUND`.
        """
        try:
            found = self.accuracy(packs.language_code(lang), kind)
        except InputError:  # a language without a language file
            found = None
        if found is None:
            return (
                f"the classifier {self.name} was never measured on {kind} in {lang}: its labels "
                f"may be close to noise; review a sample and report the rates corrected by it"
            )
        if found.low < SOUND:
            return (
                f"the classifier {self.name} has a macro F1 of {found.value:.2f} ({found.low:.2f} "
                f"to {found.high:.2f}, n {found.n}) on {kind} in {lang}: review a sample and "
                "report the rates corrected by it"
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

    Raises InputError if it is unknown or malformed.
    """
    if name.endswith(".toml"):
        return read_card(Path(name))
    registry.check("classifiers", name)
    return read_card(next(one for one in registry.files("classifiers") if one.stem == name))


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
            raise InputError(f"{path}: labels must map to {', '.join(LABELS)}, not to {label!r}")
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
    model = string(row, "model", path)
    own = engine in ("linear", "story")  # a file of genprobe, else what a library looks for
    if not re.fullmatch(_FILE if own else r"[^\0-\x1f]+", model):
        raise InputError(f"{path}: model {model!r} is not the name of a file beside the card")
    return Card(
        name=path.stem,
        path=path,
        title=string(row, "title", path),
        engine=engine,
        model=model,
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
        raise InputError(f"{path}: {key!r} must be a number, not {value!r}")
    if value < 0 or (kind is float and value > 1):
        raise InputError(f"{path}: {key!r} is out of range: {value!r}")
    return kind(value)


def _measured(row: Mapping[str, Any], path: Path) -> tuple[Measured, ...]:
    """Read the figures; a card without any must have measured = "not measured"."""
    value = row.get("measured")
    if value == NOT_MEASURED:
        return ()
    keys, more = {"on", "n", "metric", "value", "low", "high"}, {"kind", "lang"}
    if (
        not value
        or not fits(value, list[dict[str, Any]])
        or any(not keys <= set(v) <= keys | more for v in value)
        or any(v.get("kind", KINDS[0]) not in KINDS for v in value)
    ):
        raise InputError(
            f'{path}: measured must be "{NOT_MEASURED}" or [[measured]] tables with '
            f"{', '.join(Measured.__annotations__)} (kind: {', '.join(KINDS)})"
        )
    for part in value:
        texts, numbers = ("on", "metric", "kind", "lang"), ("value", "low", "high")
        shaped(part, dict.fromkeys(texts, str) | dict.fromkeys(numbers, float) | {"n": int}, path)
    return tuple(Measured(**part) for part in value)


def default(lang: str, kind: str = "stories") -> str:
    """Return the name of the default card for texts of a kind in a language.

    Among the cards with the language in `default_for`, this is the one with the best macro F1 on
    such texts; cards that were never measured on them come last. Raises InputError if no card has
    the language in `default_for`.
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
