"""Define the records of a run: frozen dataclasses, one JSON object per line, no unknown fields.

`runs/README.md` is generated from the field comments below (`python -m genprobe.runs.run`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import operator
import types
import typing
from dataclasses import dataclass, field
from typing import Any, Self

from genprobe.errors import RunError

JSON = str | int | float | bool | None | list["JSON"] | dict[str, "JSON"]


def canonical(value: Any) -> str:
    """Write `value` as JSON text that is the same for equal values: sorted keys, no spaces, ASCII.

    ASCII escapes keep lone surrogates, which models do produce, readable and writable.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(value: Any, length: int = 16) -> str:
    """Return the first `length` hex digits of the SHA-256 of `canonical(value)`."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()[:length]


class Record:
    """Convert a record to a line of JSON and back (base class of all records)."""

    def to_json(self) -> str:
        # One pass over the fields in their order; ASCII, so that U+2028 or a lone surrogate
        # in a reply cannot split or break a line.
        return json.dumps(vars(self), separators=(",", ":"), ensure_ascii=True)

    @classmethod
    def from_json(cls, line: str | bytes) -> Self:
        """Parse one line. Raises RunError for anything that is not exactly this record."""
        try:
            # Given bytes, json would first detect their encoding.
            text = line.decode("ascii") if isinstance(line, bytes) and line.isascii() else line
            row = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RunError(f"not a line of JSON ({error})") from None
        if not isinstance(row, dict):
            raise RunError(f"a {cls.__name__} is an object, not {type(row).__name__}")
        return cls.from_dict(row)

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> Self:
        """Make a record from its fields. Raises RunError for other fields or types of values."""
        shape = (cls, *row, *map(type, row.values()))
        if shape not in _WHOLE:
            kinds = _kinds(cls)
            values = _checked(cls, kinds, row)
            if list(values) != list(
                kinds
            ):  # written by hand, or before a field with a default was added
                return cls(**values)
            if all(
                map(operator.is_, values.values(), row.values())
            ):  # 1 is not accepted as 1.0 here
                _WHOLE.add(shape)
            row = values
        # Faster than the constructor: a frozen dataclass sets its fields one by one.
        made = object.__new__(cls)
        made.__dict__.update(row)
        return made


def _checked(
    cls: type[Record], kinds: dict[str, tuple[tuple[type, ...], bool]], row: dict[str, Any]
) -> dict[str, Any]:
    """Give the fields of a record: lists as tuples, whole numbers as floats where it has those.

    Raises RunError for a field that is missing, unknown or of another type.
    """
    values = {}
    for name, value in row.items():
        known = kinds.get(name)
        if known is None:
            unknown = row.keys() - kinds.keys()
            raise RunError(f"unknown field {sorted(unknown)[0]!r} in a {cls.__name__}")
        if type(value) not in known[0]:
            kind = known[0]
            if tuple in kind and isinstance(value, list):
                value = tuple(value)
            elif float in kind and type(value) is int:
                value = float(value)
            else:
                what = type(value).__name__
                raise RunError(f"field {name!r} of a {cls.__name__} holds {what}")
        values[name] = value
    for name, (_, required) in kinds.items():
        if required and name not in values:
            raise RunError(f"a {cls.__name__} lacks the field {name!r}")
    return values


# (class, names, types) of rows already known to be valid records without conversion.
_WHOLE: set[tuple[Any, ...]] = set()
_KINDS: dict[type, dict[str, tuple[tuple[type, ...], bool]]] = {}


def _kinds(cls: type) -> dict[str, tuple[tuple[type, ...], bool]]:
    """Field name -> (types allowed at run time, required?) of a record class."""
    if cls not in _KINDS:
        hints = typing.get_type_hints(cls)
        table = {}
        for f in dataclasses.fields(cls):
            hint = hints[f.name]
            options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
            allowed = tuple(typing.get_origin(o) or o for o in options)
            required = f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
            table[f.name] = (allowed, required)
        _KINDS[cls] = table
    return _KINDS[cls]


def described(doc: str, **more: Any) -> Any:
    """Make a field of a record, with a description of its content."""
    return field(metadata={"doc": doc}, **more)


# Ways in which requests for one question about one statement may differ: keys of
# `Request.facets`, and columns of the outcomes.
FACETS = ("wording", "order", "persona", "instruction")


@dataclass(frozen=True)
class Statement(Record):
    """A sentence under test."""

    id: str = described("Name of the item, the same in every language; intervals cluster on it.")
    lang: str = described("BCP 47 code.")
    text: str = described("The sentence, NFC.")
    role: str = described(
        "`original` (the stereotype), `contrast` (of another group), `unrelated` (StereoSet)."
    )
    pair: str = described("What an original shares with its contrasts; empty where it has none.")
    bias_type: str = described("Such as `gender`; several joined by `+`, sorted; empty if unknown.")
    type: str = described("Linguistic form: `declaration`, `obligation`, …; empty if unknown.")
    entity: str = described("Who the sentence is about.")
    valid_in: tuple[str, ...] = described("Languages in which the stereotype is known (BCP 47).")
    source: str = described("Data set it comes from, with its version or hash.")
    extra: dict[str, JSON] = described("Columns of the input that genprobe does not know.")


@dataclass(frozen=True)
class Request(Record):
    """One question of a pack about one statement, as it is put to a model."""

    id: str = described(
        "Hash of statement, pack, probe, messages, sample number and options; not of a model."
    )
    statement: str = described("Statement id.")
    lang: str = described("BCP 47 code of statement and wording.")
    pack: str = described("Pack name and version.")
    probe: str = described("`recognition`, `agreement`, `disagreement`.")
    messages: list[dict[str, str]] = described("Chat messages: `role`, `content`.")
    sample: int = described("0 for the first reply asked of this question, 1 for the second, …")
    seed: int = described("Derived from base seed, id and sample: no other request changes it.")
    decode: str = described(
        "`free`, `choice` (only the options) or `logprob` (their probabilities).", default="free"
    )
    options: dict[str, list[str]] = described(
        "Answer -> the ways to write it; empty where the reply is free.", default_factory=dict
    )
    facets: dict[str, str] = described(
        "What varies besides the model: `wording`, by its name in the panel; `order`, in which "
        "the question names the answers; `persona`, by its name; `instruction`, the language of "
        "the question. Empty where the published questions alone are asked.",
        default_factory=dict,
    )

    @classmethod
    def asked(
        cls,
        statement: str,
        lang: str,
        pack: str,
        probe: str,
        messages: list[dict[str, str]],
        *,
        base: int = 0,
        sample: int = 0,
        decode: str = "free",
        options: dict[str, list[str]] | None = None,
        facets: dict[str, str] | None = None,
    ) -> Request:
        """Make a request and derive its id and seed from its content.

        base: the seed of the run. The other arguments are the fields of the same names.
        """
        name = request_id(statement, lang, pack, probe, messages, sample, decode, options)
        seed = derive_seed(base, name, sample)
        what = (statement, lang, pack, probe, messages, sample, seed, decode)
        return cls(name, *what, options or {}, facets or {})

    def to_json(self) -> str:
        # Without a panel, a request gives the same line as before panels were introduced.
        row = vars(self) if self.facets else {k: v for k, v in vars(self).items() if k != "facets"}
        return json.dumps(row, separators=(",", ":"), ensure_ascii=True)


@dataclass(frozen=True)
class Response(Record):
    """What came back."""

    request: str = described("Request id.")
    text: str = described("The reply exactly as the engine returned it.")
    finish: str = described(
        "`stop`, `length`, `content_filter` (a filter of the server kept the prompt or the reply "
        "back), `refusal` (the server says that it refuses), or the engine's own word."
    )
    sent: str = described("What was really sent: the prompt after the chat template, or the JSON.")
    tokens_in: int | None = described("Tokens of the prompt.")
    tokens_out: int | None = described("Tokens of the reply.")
    reasoning: str | None = described(
        "The thought, where the server delivers it apart; null where it does not. A thought inside "
        "`text` stays there: what is separated is read from the kept text.",
        default=None,
    )
    reasoning_from: str = described(
        "Where the thought came from, such as `reasoning_content`; `hidden` where the server "
        "only says that there was one; empty where nothing came apart.",
        default="",
    )
    reasoning_tokens: int | None = described(
        "Tokens of the thought, null where nobody counted them.", default=None
    )
    model: str = described(
        "The model that the reply itself names; empty: it names none.", default=""
    )
    fingerprint: str = described(
        "The `system_fingerprint` that came with it; empty: none came.", default=""
    )
    at: str = described(
        "When it came, UTC, such as `2026-11-22T13:31:05Z`; empty: not recorded.", default=""
    )


@dataclass(frozen=True)
class LogProb(Record):
    """What a model thinks of the answer words, each as the beginning of its reply."""

    request: str = described("Request id.")
    continuations: list[dict[str, Any]] = described(
        "Each with `answer`, `text`, `tokens` (ids) and `logprobs`: natural log of the "
        "probability of each token, given the prompt and the tokens before it."
    )
    sent: str = described("The prompt after the chat template, or the JSON.")
    tokens_in: int | None = described("Tokens of the prompt.")
    reasoning: str | None = described(
        "The thought behind which they are read; null where there is none.", default=None
    )
    reasoning_tokens: int | None = described("Tokens of the thought.", default=None)
    at: str = described("When they came, UTC; empty: not recorded.", default="")


@dataclass(frozen=True)
class Failure(Record):
    """A request that has no response; never a text. The next run asks again."""

    request: str = described("Request id.")
    kind: str = described("`too-long`, `missing`, `engine`, …")
    detail: str = described("The reason in words.")
    attempts: int = described("How often it was tried.")
    at: str = described("When it was given up, UTC; empty: not recorded.", default="")


@dataclass(frozen=True)
class Judgment(Record):
    """What a judge says of a response, and what it rests on."""

    request: str = described("Request id.")
    judge: str = described("Judge name.")
    label: str = described(
        "yesno: `yes`, `no`, `ambiguous`; language: a code; refusal: `yes`, `no`."
    )
    score: float | None = described("A probability or share where the judge has one.")
    rule: str = described("The rule that decided, by name.")
    evidence: str = described("The words of the reply that it rests on.")
    fields: dict[str, JSON] = described(
        "Further columns of this judge, such as `kind`, `conflict`."
    )


@dataclass(frozen=True)
class Judged(Record):
    """Which judge wrote a file of judgments, so that a score can name it."""

    judge: str = described("Judge name.")
    signature: str = described("Its version and the hashes of its data.")
    hash: str = described("First 16 hex digits of the SHA-256 of the file of judgments.")
    reads: list[str] = described("Decodes whose answers it reads, sorted.")
    only: str = described(
        "The kind of replies that alone were given to it (`--only`); empty for all.", default=""
    )


@dataclass(frozen=True)
class Score(Record):
    """A number with what it needs to be defended."""

    metric: str = described("Such as `yes`, `endorsed`, `contrast-gap`.")
    by: dict[str, JSON] = described("The cell: column -> value.")
    value: float | None = described("null where there is nothing to count; never 0 for that.")
    low: float | None = described("95 % interval.")
    high: float | None = described("95 % interval.")
    n: int = described("What was counted.")
    excluded: dict[str, int] = described("What was left out of n, by reason.")
    bounds: list[float] | None = described(
        "The share if everything unclear were no, and if it were yes."
    )
    signature: str = described("From which the number can be reproduced.")
    readings: dict[str, float | None] | None = described(
        "The same figure by each reader, `ours`, `strict`, …; null unless the band was asked for.",
        default=None,
    )

    @property
    def band(self) -> tuple[float, float] | None:
        """Return the lowest and highest reading (no interval); None if no reader has a figure."""
        values = [value for value in (self.readings or {}).values() if value is not None]
        return (min(values), max(values)) if values else None

    def by_reading(self, value: float) -> str:
        """Name the readings that have this figure, joined by `+`."""
        return "+".join(name for name, found in (self.readings or {}).items() if found == value)


RECORDS: dict[str, type[Record]] = {
    "statements.jsonl": Statement,
    "requests.jsonl": Request,
    "responses.jsonl": Response,
    "logprobs.jsonl": LogProb,
    "failures.jsonl": Failure,
    "judgments/<judge>.jsonl": Judgment,
    "judgments/<judge>.json": Judged,
    "scores.json": Score,
}


def request_id(
    statement: str,
    lang: str,
    pack: str,
    probe: str,
    messages: Any,
    sample: int,
    decode: str = "free",
    options: Any = None,
) -> str:
    """Hash the content of a request to 16 hex digits, equal in runs of different models."""
    content = [statement, lang, pack, probe, messages, sample]
    return digest([*content, decode, options] if options else content)


def derive_seed(base: int, request: str, sample: int) -> int:
    """Derive a 31-bit seed from the base seed, the request id and the sample number only."""
    return int(digest([base, request, sample], 8), 16) & 0x7FFFFFFF
