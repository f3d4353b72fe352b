"""Define the records of a run: frozen dataclasses, one JSON object per line, no unknown fields.

`runs/README.md` is generated from the field comments below (`python -m genprobe.runs.run`).
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import operator
import types
import typing
from dataclasses import dataclass, field
from typing import Any, Self

from genprobe.errors import RunError
from genprobe.limits import parsed

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
    def from_json(cls, line: str | bytes, **told: Any) -> Self:
        """Parse one line. Raises RunError for anything that is not exactly this record.

        told: what the file says of all its lines.
        """
        try:
            row = parsed(line)
        except ValueError as error:
            raise RunError(f"not a line of JSON ({error})") from None
        if not isinstance(row, dict):
            raise RunError(f"a {cls.__name__} is an object, not {type(row).__name__}")
        return cls.from_dict(row, **told)

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
                cls._check(values)
                return cls(**values)
            if all(
                map(operator.is_, values.values(), row.values())
            ):  # 1 is not accepted as 1.0 here
                _WHOLE.add(shape)
            row = values
        cls._check(row)
        # Faster than the constructor: a frozen dataclass sets its fields one by one.
        made = object.__new__(cls)
        made.__dict__.update(row)
        return made

    @classmethod
    def _check(cls, row: dict[str, Any]) -> None:
        """Raise RunError unless the parts of lists and objects are as the record describes them."""
        for name, hint in _inner(cls):  # type: ignore[arg-type]
            if name in row and not fits(row[name], hint):
                raise RunError(f"a part of {name!r} of a {cls.__name__} is of another type")
        for name in _whole(cls):  # type: ignore[arg-type]
            if not -MOST <= (row.get(name) or 0) <= MOST:
                raise RunError(f"field {name!r} of a {cls.__name__} is beyond 64 bits")


def _checked(
    cls: type[Record], kinds: dict[str, tuple[tuple[type, ...], bool]], row: dict[str, Any]
) -> dict[str, Any]:
    """Check the fields of a row and convert them to the types of the record.

    A list becomes a tuple, and a whole number a float, where the record has that type. Raises
    RunError for a field that is missing, unknown or of another type.
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
            elif float in kind and type(value) is int and abs(value) < 10**300:
                value = float(value)
            else:
                what = type(value).__name__
                raise RunError(f"field {name!r} of a {cls.__name__} holds {what}")
        values[name] = value
    for name, (_, required) in kinds.items():
        if required and name not in values:
            raise RunError(f"a {cls.__name__} lacks the field {name!r}")
    return values


MOST = (1 << 63) - 1  # of the whole numbers in a record: tables and data sets hold 64 bits

# (class, names, types) of rows already known to be valid records without conversion.
_WHOLE: set[tuple[Any, ...]] = set()
_KINDS: dict[type, dict[str, tuple[tuple[type, ...], bool]]] = {}


def _kinds(cls: type) -> dict[str, tuple[tuple[type, ...], bool]]:
    """Map each field of a record class to its types at run time and whether it is required."""
    if cls not in _KINDS:
        hints = typing.get_type_hints(cls)
        table = {}
        for f in dataclasses.fields(cls):
            hint = hints[f.name]
            options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
            allowed = tuple(typing.get_origin(o) or o for o in options)
            given = f.default is f.default_factory is dataclasses.MISSING
            required = given or f.metadata.get("stored", False)
            table[f.name] = (allowed, required)
        _KINDS[cls] = table
    return _KINDS[cls]


@functools.cache
def _inner(cls: Any) -> tuple[tuple[str, Any], ...]:
    """List the fields of a record class that hold parts whose types it states."""
    hints = typing.get_type_hints(cls)
    # `field.type` is the text of the annotation.
    return tuple(
        (f.name, hints[f.name])
        for f in dataclasses.fields(cls)
        if "[" in str(f.type) and "JSON" not in str(f.type) and "Any" not in str(f.type)
    )


@functools.cache
def _whole(cls: Any) -> tuple[str, ...]:
    """List the fields of a record class that hold whole numbers."""
    return tuple(name for name, (allowed, _) in _kinds(cls).items() if int in allowed)


def fits(value: Any, hint: Any) -> bool:
    """Tell whether a value is as a type states it, with all its parts."""
    kind, parts = _parts(hint)
    if kind is types.UnionType:
        return any(fits(value, one) for one in parts)
    if kind in (list, tuple):
        return isinstance(value, list | tuple) and all(fits(one, parts[0]) for one in value)
    if kind is dict:
        return isinstance(value, dict) and all(fits(one, parts[1]) for one in value.values())
    if kind is float:
        return type(value) is float or (type(value) is int and abs(value) < 10**300)
    return kind is Any or (type(value) is kind and (kind is not int or abs(value) <= MOST))


@functools.cache
def _parts(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    return typing.get_origin(hint) or hint, typing.get_args(hint)


def described(doc: str, stored: bool = False, **more: Any) -> Any:
    """Make a field of a record, with a description of its content.

    stored: every stored record has it, although it has a default in Python.
    """
    return field(metadata={"doc": doc, "stored": stored}, **more)


# How an answer is obtained: as free text, by forced choice of an answer, by probabilities.
DECODES = ("free", "choice", "logprob")
# Ways in which requests with the same question about the same statement may differ: keys of
# `Request.facets`, and columns of the outcomes.
FACETS = ("wording", "order", "persona", "instruction")


@dataclass(frozen=True)
class Statement(Record):
    """A sentence that the model is asked about."""

    id: str = described(
        "Id of the statement, the same in every language. For intervals, all replies about a "
        "statement are one cluster; if it has a `pair`, all replies about the pair are."
    )
    lang: str = described("Language (BCP 47 code).")
    text: str = described("The sentence, normalised to NFC.")
    role: str = described(
        "`original`: states the stereotype; `contrast`: says the same of another group; "
        "`unrelated`: makes no sense (StereoSet).",
        stored=True,
        default="original",
    )
    pair: str = described(
        "Id shared by an original and its contrasts; empty if the statement has no contrast.",
        stored=True,
        default="",
    )
    bias_type: str = described(
        "Type of bias, such as `gender`; several are sorted and joined by `+`; empty if unknown.",
        stored=True,
        default="",
    )
    type: str = described(
        "Linguistic form, such as `declaration` or `obligation`; empty if unknown.",
        stored=True,
        default="",
    )
    entity: str = described("The group that the sentence is about.", stored=True, default="")
    valid_in: tuple[str, ...] = described(
        "Languages (BCP 47 codes) whose speakers know the stereotype.", stored=True, default=()
    )
    source: str = described(
        "Dataset that the statement comes from, with its version or hash.", stored=True, default=""
    )
    extra: dict[str, JSON] = described(
        "Columns of the input that genprobe does not know.", stored=True, default_factory=dict
    )


@dataclass(frozen=True)
class Request(Record):
    """One question about one statement, as it is sent to the model."""

    id: str = described(
        "Hash of the statement id, pack, probe, messages, sample number and options. The model "
        "does not enter it, so runs of different models have the same ids."
    )
    statement: str = described("Id of the statement.")
    lang: str = described("Language of the statement and of the question (BCP 47 code).")
    pack: str = described("Name and version of the prompt pack.")
    probe: str = described("Kind of question, such as `recognition`, `agreement`, `disagreement`.")
    messages: list[dict[str, str]] = described(
        "Messages of the chat, each with `role` and `content`."
    )
    sample: int = described("Number of the sample: 0 for the first reply to a question, then 1, …")
    seed: int = described("Seed of this request, derived only from the base seed, id and sample.")
    decode: str = described(
        "`free`: any text; `choice`: the reply must be one of the options; `logprob`: no text, the "
        "probabilities of the options; `score`: the log-probability of a text.",
        default="free",
    )
    options: dict[str, list[str]] = described(
        "For each answer, the words that express it; for `score`, the text to be scored; empty if "
        "`decode` is `free`.",
        default_factory=dict,
    )
    facets: dict[str, str] = described(
        "How this request differs from others of the same question: `wording` (its name), `order` "
        "(in which the question names the answers), `persona` (its name), `instruction` (language "
        "of the question). Empty if only the published wordings are asked.",
        default_factory=dict,
    )

    @classmethod
    def _check(cls, row: dict[str, Any]) -> None:
        super()._check(row)
        messages = row["messages"]
        if not all(message.keys() >= {"role", "content"} for message in messages):
            raise RunError("a message of a Request lacks its role or content")
        if not all(row.get("options", {}).values()):
            raise RunError("'options' of a Request hold an answer without words")

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
    """The reply to a request."""

    request: str = described("Id of the request.")
    text: str = described("The reply exactly as the engine returned it.")
    finish: str = described(
        "Why the reply ended: `stop`, `length` (token limit), `content_filter` (the server's "
        "filter withheld the prompt or the reply), `refusal` (the server reports a refusal), or "
        "another word of the engine."
    )
    sent: str = described(
        "What was sent: the prompt after the chat template, or the JSON body of the request."
    )
    tokens_in: int | None = described("Number of tokens of the prompt; null if unknown.")
    tokens_out: int | None = described("Number of tokens of the reply; null if unknown.")
    reasoning: str | None = described(
        "The model's thought, if the server returns it in a field of its own; otherwise null. A "
        "thought inside `text` stays there and is separated when the reply is read.",
        default=None,
    )
    reasoning_from: str = described(
        "Field in which the server returned the thought, such as `reasoning_content`; `hidden` if "
        "it reports a thought without its text; empty if there was no such field.",
        default="",
    )
    reasoning_tokens: int | None = described(
        "Number of tokens of the thought; null if unknown.", default=None
    )
    model: str = described("Model named in the server's reply; empty if none is.", default="")
    fingerprint: str = described(
        "`system_fingerprint` of the server's reply; empty if there is none.", default=""
    )
    at: str = described(
        "Time at which the reply arrived (UTC), such as `2026-11-22T13:31:05Z`; empty if unknown.",
        default="",
    )


@dataclass(frozen=True)
class LogProb(Record):
    """The log-probabilities of answer words, as beginnings of the reply, or of a text."""

    request: str = described("Id of the request.")
    continuations: list[dict[str, Any]] = described(
        "One object for each answer word, or for the text: `answer`, `text`, `tokens` (ids) and "
        "`logprobs` (natural logarithm of the probability of each token, given what is before it)."
    )
    sent: str = described(
        "What was sent: the prompt after the chat template, or the JSON body of the request."
    )
    tokens_in: int | None = described("Number of tokens of the prompt; null if unknown.")
    reasoning: str | None = described(
        "The thought after which they are scored; null if there is none.", default=None
    )
    reasoning_tokens: int | None = described(
        "Number of tokens of the thought; null if unknown.", default=None
    )
    at: str = described("Time at which they arrived (UTC); empty if unknown.", default="")

    @classmethod
    def _check(cls, row: dict[str, Any]) -> None:
        super()._check(row)
        kinds = {"answer": str, "text": str, "tokens": list[int], "logprobs": list[float]}
        for one in row["continuations"]:
            if not isinstance(one, dict) or not all(
                name in one and fits(one[name], kind) for name, kind in kinds.items()
            ):
                raise RunError("a part of 'continuations' of a LogProb is not as it is described")


@dataclass(frozen=True)
class Failure(Record):
    """A request without a reply. It is asked again when the run is resumed."""

    request: str = described("Id of the request.")
    kind: str = described("Kind of failure, such as `too-long`, `missing`, `engine`.")
    detail: str = described("The reason, for people to read.")
    attempts: int = described("Number of attempts.")
    at: str = described("Time of the last attempt (UTC); empty if unknown.", default="")


@dataclass(frozen=True)
class Judgment(Record):
    """The label that a judge gives to a reply, with its evidence.

    A field that is empty is not stored, and neither is the judge if the file has its name.
    """

    request: str = described("Id of the request.")
    judge: str = described("Name of the judge; that of the file if it is not there.", default="")
    label: str = described(
        "The label. Judge `yesno`: `yes`, `no` or `ambiguous`; `language`: a language code; "
        "`refusal`: `yes` or `no`; and so on.",
        default="",
    )
    score: float | None = described(
        "A probability or share; null if the judge gives none.", default=None
    )
    rule: str = described("Name of the rule that decided.", default="")
    evidence: str = described("The words of the reply that decided.", default="")
    fields: dict[str, JSON] = described(
        "Further columns of this judge, such as `kind`, `conflict`; one that is not there is null.",
        default_factory=dict,
    )

    def to_json(self, judge: str = "") -> str:
        """Write the record as a line. judge: of the file, which its lines do not repeat."""
        row = {name: value for name, value in vars(self).items() if value not in (None, "")}
        if self.judge == judge:
            row.pop("judge", None)
        if not self.fields:
            del row["fields"]
        return json.dumps(row, separators=(",", ":"), ensure_ascii=True)

    @classmethod
    def from_dict(cls, row: dict[str, Any], judge: str = "") -> Self:
        """Make a judgment from its fields. judge: the name of the file."""
        if "request" in row and len(row) < len(_kinds(cls)):
            empty = {"judge": judge, "label": "", "score": None, "rule": "", "evidence": ""}
            row = {"request": row["request"], **empty, "fields": {}} | row
        return super().from_dict(row)


@dataclass(frozen=True)
class Judged(Record):
    """The judge that wrote a file of judgments; signatures of scores name it."""

    judge: str = described("Name of the judge.")
    signature: str = described("Version of the judge and hashes of its data.")
    hash: str = described("First 16 hex digits of the SHA-256 of the file of judgments.")
    reads: list[str] = described(
        "Values of `decode` whose replies the judge reads, such as `free`; sorted."
    )
    only: str = described(
        "Kinds of replies that the judge was restricted to, joined by `+`; empty if it read all.",
        default="",
    )
    licence: tuple[dict[str, JSON], ...] = described(
        "Of a second reader: how well it was measured in each language and kind of question "
        "(`resources/licences.py`); empty if it was not.",
        default=(),
    )


@dataclass(frozen=True)
class Score(Record):
    """A figure with its number of units, exclusions, confidence interval and signature."""

    metric: str = described("Name of the measure, such as `yes`, `endorsed`, `contrast-gap`.")
    by: dict[str, JSON] = described("The cell of the table: for each column, its value.")
    value: float | None = described("The figure; null (never 0) if there is nothing to count.")
    low: float | None = described("Lower end of the 95 % confidence interval.")
    high: float | None = described("Upper end of the 95 % confidence interval.")
    n: int = described("Number of units counted.")
    excluded: dict[str, int] = described("For each reason, the number of units left out of n.")
    bounds: list[float] | None = described(
        "The share if all unclear replies were *no*, and if all were *yes*."
    )
    signature: str = described("Everything that the figure depends on, to reproduce it.")
    readings: dict[str, float | None] | None = described(
        "The figure by each reader (`ours`, `strict`, …), with `--band`; with the verdicts of a "
        "licensed second reader (`second`, and the ends that its licence leaves possible), or the "
        "answers when asked again (`again`); else null.",
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
