"""The records of a run: frozen dataclasses, one JSON object a line, unknown fields refused.

`runs/README.md` is generated from the field comments below (`python -m genprobe.runs.run`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import types
import typing
from dataclasses import dataclass, field
from typing import Any, Self

from genprobe.errors import RunError

JSON = str | int | float | bool | None | list["JSON"] | dict[str, "JSON"]


def canonical(value: Any) -> str:
    """JSON text of `value` that is the same for equal values: sorted keys, no spaces, ASCII.

    ASCII escapes keep lone surrogates, which models do produce, readable and writable.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(value: Any, length: int = 16) -> str:
    """First `length` hex digits of the SHA-256 of `canonical(value)`."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()[:length]


class Record:
    """What every record can do: become a line of JSON and come back from one."""

    def to_json(self) -> str:
        # One pass over the fields in their order; ASCII, so that U+2028 or a lone surrogate
        # in a reply cannot split or break a line.
        return json.dumps(vars(self), separators=(",", ":"), ensure_ascii=True)

    @classmethod
    def from_json(cls, line: str | bytes) -> Self:
        """Parse one line. RunError for anything that is not exactly this record."""
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise RunError(f"not a line of JSON ({error})") from None
        if not isinstance(row, dict):
            raise RunError(f"a {cls.__name__} is an object, not {type(row).__name__}")
        return cls.from_dict(row)

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> Self:
        kinds = _kinds(cls)
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
        if list(values) != list(kinds):  # by hand, or from before a field with a default
            for name, (_, required) in kinds.items():
                if required and name not in values:
                    raise RunError(f"a {cls.__name__} lacks the field {name!r}")
            return cls(**values)
        # A frozen dataclass sets its fields one by one, which takes longer than to parse the line.
        made = object.__new__(cls)
        made.__dict__.update(values)
        return made


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


def _field(doc: str, **more: Any) -> Any:
    return field(metadata={"doc": doc}, **more)


@dataclass(frozen=True)
class Statement(Record):
    """A sentence under test."""

    id: str = _field("Name of the item, the same in every language; intervals cluster on it.")
    lang: str = _field("BCP 47 code.")
    text: str = _field("The sentence, NFC.")
    role: str = _field(
        "`original` (the stereotype), `contrast` (of another group), `unrelated` (StereoSet)."
    )
    pair: str = _field("What an original shares with its contrasts; empty where it has none.")
    bias_type: str = _field("Such as `gender`; several joined by `+`, sorted; empty if unknown.")
    type: str = _field("Linguistic form: `declaration`, `obligation`, …; empty if unknown.")
    entity: str = _field("Who the sentence is about.")
    valid_in: tuple[str, ...] = _field("Languages in which the stereotype is known (BCP 47).")
    source: str = _field("Data set it comes from, with its version or hash.")
    extra: dict[str, JSON] = _field("Columns of the input that genprobe does not know.")


@dataclass(frozen=True)
class Request(Record):
    """One question of a pack about one statement, as it is put to a model."""

    id: str = _field(
        "Hash of statement, pack, probe, messages, sample number and options; not of a model."
    )
    statement: str = _field("Statement id.")
    lang: str = _field("BCP 47 code of statement and wording.")
    pack: str = _field("Pack name and version.")
    probe: str = _field("`recognition`, `agreement`, `disagreement`.")
    messages: list[dict[str, str]] = _field("Chat messages: `role`, `content`.")
    sample: int = _field("0 for the first reply asked of this question, 1 for the second, …")
    seed: int = _field("Derived from base seed, id and sample: no other request changes it.")
    decode: str = _field(
        "`free`, `choice` (only the options) or `logprob` (their probabilities).", default="free"
    )
    options: dict[str, list[str]] = _field(
        "Answer -> the ways to write it; empty where the reply is free.", default_factory=dict
    )
    facets: dict[str, str] = _field(
        "What varies besides the model: `wording`, by its name in the panel, and `order`, in "
        "which the question names the answers; empty where the published questions alone are "
        "asked.",
        default_factory=dict,
    )

    def to_json(self) -> str:
        # Without a panel a request is the line that it was before there were any.
        row = vars(self) if self.facets else {k: v for k, v in vars(self).items() if k != "facets"}
        return json.dumps(row, separators=(",", ":"), ensure_ascii=True)


@dataclass(frozen=True)
class Response(Record):
    """What came back."""

    request: str = _field("Request id.")
    text: str = _field("The reply exactly as the engine returned it.")
    finish: str = _field(
        "`stop`, `length`, `content_filter` (a filter of the server kept the prompt or the reply "
        "back), `refusal` (the server says that it refuses), or the engine's own word."
    )
    sent: str = _field("What was really sent: the prompt after the chat template, or the JSON.")
    tokens_in: int | None = _field("Tokens of the prompt.")
    tokens_out: int | None = _field("Tokens of the reply.")
    reasoning: str | None = _field(
        "The thought, where the server delivers it apart; null where it does not. A thought inside "
        "`text` stays there: what is separated is read from the kept text.",
        default=None,
    )
    reasoning_from: str = _field(
        "Where the thought came from, such as `reasoning_content`; `hidden` where the server "
        "only says that there was one; empty where nothing came apart.",
        default="",
    )
    reasoning_tokens: int | None = _field(
        "Tokens of the thought, null where nobody counted them.", default=None
    )
    model: str = _field("The model that the reply itself names; empty: it names none.", default="")
    fingerprint: str = _field(
        "The `system_fingerprint` that came with it; empty: none came.", default=""
    )
    at: str = _field(
        "When it came, UTC, such as `2026-11-22T13:31:05Z`; empty: not recorded.", default=""
    )


@dataclass(frozen=True)
class LogProb(Record):
    """What a model thinks of the answer words, each as the beginning of its reply."""

    request: str = _field("Request id.")
    continuations: list[dict[str, Any]] = _field(
        "Each with `answer`, `text`, `tokens` (ids) and `logprobs`: natural log of the "
        "probability of each token, given the prompt and the tokens before it."
    )
    sent: str = _field("The prompt after the chat template, or the JSON.")
    tokens_in: int | None = _field("Tokens of the prompt.")
    reasoning: str | None = _field(
        "The thought behind which they are read; null where there is none.", default=None
    )
    reasoning_tokens: int | None = _field("Tokens of the thought.", default=None)
    at: str = _field("When they came, UTC; empty: not recorded.", default="")


@dataclass(frozen=True)
class Failure(Record):
    """A request that has no response; never a text. The next run asks again."""

    request: str = _field("Request id.")
    kind: str = _field("`too-long`, `missing`, `engine`, …")
    detail: str = _field("The reason in words.")
    attempts: int = _field("How often it was tried.")
    at: str = _field("When it was given up, UTC; empty: not recorded.", default="")


@dataclass(frozen=True)
class Judgment(Record):
    """What a judge says of a response, and what it rests on."""

    request: str = _field("Request id.")
    judge: str = _field("Judge name.")
    label: str = _field("yesno: `yes`, `no`, `ambiguous`; language: a code; refusal: `yes`, `no`.")
    score: float | None = _field("A probability or share where the judge has one.")
    rule: str = _field("The rule that decided, by name.")
    evidence: str = _field("The words of the reply that it rests on.")
    fields: dict[str, JSON] = _field("Further columns of this judge, such as `kind`, `conflict`.")


@dataclass(frozen=True)
class Judged(Record):
    """Which judge wrote a file of judgments, so that a score can name it."""

    judge: str = _field("Judge name.")
    signature: str = _field("Its version and the hashes of its data.")
    hash: str = _field("First 16 hex digits of the SHA-256 of the file of judgments.")
    reads: list[str] = _field("Decodes whose answers it reads, sorted.")


@dataclass(frozen=True)
class Score(Record):
    """A number with what it needs to be defended."""

    metric: str = _field("Such as `yes`, `endorsed`, `contrast-gap`.")
    by: dict[str, JSON] = _field("The cell: column -> value.")
    value: float | None = _field("null where there is nothing to count; never 0 for that.")
    low: float | None = _field("95 % interval.")
    high: float | None = _field("95 % interval.")
    n: int = _field("What was counted.")
    excluded: dict[str, int] = _field("What was left out of n, by reason.")
    bounds: list[float] | None = _field(
        "The share if everything unclear were no, and if it were yes."
    )
    signature: str = _field("From which the number can be reproduced.")
    readings: dict[str, float | None] | None = _field(
        "The same figure by each reader, `ours`, `strict`, …; null unless the band was asked for.",
        default=None,
    )

    @property
    def band(self) -> tuple[float, float] | None:
        """Lowest and highest of the readings: no interval. None where no reader has a figure."""
        values = [value for value in (self.readings or {}).values() if value is not None]
        return (min(values), max(values)) if values else None

    def by_reading(self, value: float) -> str:
        """The readings that have this figure, joined by `+`."""
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
    """16 hex digits from the content of a request, so that runs of different models pair."""
    content = [statement, lang, pack, probe, messages, sample]
    return digest([*content, decode, options] if options else content)


def derive_seed(base: int, request: str, sample: int) -> int:
    """A 31-bit seed from base seed, request id and sample number, independent of all else."""
    return int(digest([base, request, sample], 8), 16) & 0x7FFFFFFF
