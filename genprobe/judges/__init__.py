"""Judges read replies and label them. Each is a module here: `registry.module("judges", name)`.

A judge module has `make(**options) -> Judge`. Judging is a pure function of the item: the same
item gets the same verdict on every machine, alone or in any batch.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

from genprobe import text
from genprobe.errors import InputError
from genprobe.linguistics import thoughts
from genprobe.records import JSON, Judgment, Request, Response
from genprobe.resources import packs, registry


class _Read(NamedTuple):
    lang: str
    probe: str
    prompt: str
    response: str
    # Instead of a reply, the probabilities of the answer words (`LogProb.continuations`).
    continuations: Sequence[Mapping[str, Any]] = ()
    # What the server delivered separately from the text, and how the text ended: see `Response`.
    reasoning: str | None = None
    reasoning_from: str = ""
    finish: str = ""
    opened: bool = False  # whether the prompt, as it was sent, ended inside a thought
    # The texts of the options, in the order in which they were listed.
    options: Sequence[str] = ()
    # Their labels in the list, in the same order; empty if there were none, or they are unknown.
    marks: Sequence[str] = ()
    # How the question is read (`packs.READS`), and the answer that affirms it, if the run's pack or
    # a column says so, which beats `probe`.
    reads: str = ""
    when: str = ""


class Item(_Read):
    """A reply and its request, as a judge sees them. `prompt` and `probe` are empty if unknown.

    It is parted once, for all judges.
    """

    @functools.cached_property
    def parted(self) -> thoughts.Parted:
        """Return the thought, the reply after it, and the state of the thought (`thoughts.STATES`).

        All judges, review sheets and report pages split a reply in this way. If a reply has no
        thought, the repeated prompt is not removed from it.
        """
        if not self.may_think:
            return thoughts.Parted("", self.response, "none")
        apart = (self.reasoning, self.reasoning_from, self.opened, self.finish)
        parted = thoughts.read(self.response, *apart)
        if parted.state == "none" and self.prompt:
            behind = self.response[text.strip_echo(self.prompt, self.response) :]
            again = thoughts.read(behind, *apart)
            return again if again.state != "none" else parted
        return parted

    @property
    def may_think(self) -> bool:
        """Return whether something in the reply looks like a thought, or came as one."""
        apart = self.reasoning or self.reasoning_from or self.opened
        return bool(apart) or thoughts.marked(self.response)

    @functools.cached_property
    def echo(self) -> int:
        """Return the length of the repeated prompt at the beginning of `parted.reply`."""
        return text.strip_echo(self.prompt, self.parted.reply)

    @functools.cached_property
    def own(self) -> str:
        """Return the reply without thought, repeated prompt, and items that nobody asked about."""
        return self.reply[self.echo :]

    @functools.cached_property
    def reply(self) -> str:
        """Return the text after the thought, without items that nobody asked about.

        It is empty if the reply was cut off inside the thought.
        """
        reply = self.parted.reply
        return reply[: self.echo + text.next_item(self.prompt, reply[self.echo :])]

    @property
    def blocked(self) -> str:
        """Return why the server blocked the reply.

        `filter`: its content filter removed the text. `refusal`: the server reports a refusal. "":
        it is not blocked, and judges read its text.
        """
        if self.finish == "content_filter" and not self.response.strip():
            return "filter"
        return "refusal" if self.finish == "refusal" else ""


def asked(request: Request) -> str:
    """Return the prompt of a request, by which its reply is read: the last message of the user."""
    return next((m["content"] for m in reversed(request.messages) if m["role"] == "user"), "")


def seen(lang: str, probe: str, prompt: str, response: Response) -> Item:
    """Return the item by which judges see a response."""
    return Item(
        packs.first_of(lang),
        probe,
        prompt,
        response.text,
        reasoning=response.reasoning,
        reasoning_from=response.reasoning_from,
        finish=response.finish,
        opened=thoughts.opens(response.sent),
    )


PARTED = "parted"  # the field of a judgment that says where thought and reply lie


def where(item: Item) -> dict[str, JSON]:
    """Return the fields of a judgment that keep how a reply was parted; none without a thought.

    Thought and reply are given by their first and last place in the text and the thought that came
    apart from it, or as texts if they are no part of these (a thought in several tags).
    """
    if not item.may_think:
        return {}
    text = item.response + (item.reasoning or "")

    def place(part: str) -> JSON:
        at = text.rfind(part)
        return part if at < 0 else [at, at + len(part)]

    return {PARTED: [item.parted.state, place(item.parted.thought), place(item.parted.reply)]}


def parted_of(
    request: Request, response: Response, judgments: Iterable[Judgment | None]
) -> thoughts.Parted:
    """Return the parted reply as one of its judgments keeps it; else part it.

    Judgments of earlier versions do not keep it.
    """
    text = response.text + (response.reasoning or "")

    def at(place: Any) -> str:
        return text[slice(*place)] if isinstance(place, list) else str(place)

    for judgment in judgments:
        if judgment and isinstance(kept := judgment.fields.get(PARTED), list):
            state, thought, reply = kept
            return thoughts.Parted(at(thought), at(reply), str(state))
    return seen(request.lang, request.probe, asked(request), response).parted


@dataclass(slots=True)
class Verdict:
    """A label, its evidence, and further columns; becomes a `Judgment` record.

    A judge's verdicts all have the same `fields`, so that they fit one table.
    """

    label: str
    rule: str
    evidence: str = ""
    score: float | None = None
    fields: dict[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True)
class Column:
    """A column of the outcomes that a judge fills (`COLUMNS` of its module).

    kind: `text`, `verbatim` (spaces and case unchanged), `boolean` or `number`. about: what it
    means, in one line. of: function from a judgment to its value; None for a column that
    `outcomes.table` derives from others. reply: whether it describes a single reply, so that scores
    cannot be split by it. heading: title of its filter on a page, for a column with few values.
    """

    name: str
    about: str
    of: Callable[[Any], Any] | None
    kind: str = "text"
    reply: bool = True
    heading: str = ""


TEXT, VERBATIM, BOOLEAN, NUMBER = "text", "verbatim", "boolean", "number"


def LABEL(judgment: Any) -> Any:
    """Return the label of a judgment, as the value of a column."""
    return judgment.label


def field_of(name: str) -> Callable[[Any], Any]:
    """Return a field of a judgment, as the value of a column."""
    return lambda judgment: judgment.fields.get(name)


class Judge(Protocol):
    """A judge: a function from an item to a verdict, with a name and a signature.

    Its module has `COLUMNS` (of `Column`), `PLACE` (their position in the table, low numbers first)
    and `READS` (the kind of texts that it reads, to be shown: `replies`, `stories`). A judge that
    cannot read the replies to every probe also has `fits(probe: packs.Probe) -> bool`, which is
    asked before a model is.
    """

    name: str
    column: str  # the name of `label` in a table: "answer", "language", "refusal"
    reads: frozenset[str]  # ways of decoding whose results it reads: `free`, `choice`, `logprob`
    needs: tuple[str, ...]  # fields of Item that must be known: ("lang", "response")
    signature: str  # version and data hashes; changes whenever a verdict can change

    def __call__(self, item: Item) -> Verdict: ...


T = TypeVar("T")
_TOGETHER = 512  # items per call of `many`


def verdicts(judge: Judge, items: Iterable[tuple[T, Item]]) -> Iterator[tuple[T, Verdict]]:
    """Yield (key, verdict) for each (key, item), in order.

    A judge that is faster on many items at once also has `many(items) -> list of Verdict`, which
    returns the same verdicts as `__call__`. A judge whose verdicts depend on neighbouring items
    also has `together(item) -> group`: consecutive items with the same group are passed to `many`
    in one call.
    """
    many, rest = getattr(judge, "many", None), iter(items)
    if many is None:
        yield from ((key, judge(item)) for key, item in rest)
        return
    parts: Iterator[list[tuple[T, Item]]]
    if together := getattr(judge, "together", None):
        parts = (list(group) for _, group in itertools.groupby(rest, lambda one: together(one[1])))
    else:
        parts = iter(lambda: list(itertools.islice(rest, _TOGETHER)), [])
    for part in parts:
        found = many([item for _, item in part])
        yield from zip((key for key, _ in part), found, strict=True)


def make(judges: Any = (), **given: Any) -> list[Judge]:
    """Make judges by name, each with its own options; keep those that are made already.

    judges: one or several; empty means `yesno`. given: option -> value; None means not given.
    Raises InputError for an option that none of these judges takes.
    """
    several = judges if isinstance(judges, list | tuple) else [judges]
    if not all(isinstance(one, str) or hasattr(one, "signature") for one in several):
        raise InputError(f"judges: give a name, or a list of names, not {type(judges).__name__}")
    given = {name: value for name, value in given.items() if value is not None}
    names = [name for name in several or ("yesno",) if isinstance(name, str)]
    modules = {name: registry.module("judges", name) for name in names}
    takes = {name: _takes(name) for name in modules}
    for option in given:
        if not any(option in own for own in takes.values()):
            owners = [n for n in registry.names("judges") if option in _takes(n)]
            raise InputError(f"--{option} can be used only with --judge {' or '.join(owners)}")
    made = {
        name: module.make(**{o: value for o, value in given.items() if o in takes[name]})
        for name, module in modules.items()
    }
    for name, judge in made.items():
        if judge.name.partition("-")[0] != name:  # its labels would replace another judge's
            raise InputError(
                f"judges/{name}.py: its judge is called {judge.name!r}; call it {name!r}"
            )
    return [made[one] if isinstance(one, str) else one for one in several or ("yesno",)]


def _takes(name: str) -> Mapping[str, Any]:
    return inspect.signature(registry.module("judges", name).make).parameters
