"""Judges say what a reply is. One file each; `registry.module("judges", name)`.

A judge module has `make(**options) -> Judge`. Judging is a pure function of the item: the same
item gets the same verdict on every machine, alone or in any batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from genprobe.records import JSON


class Item(NamedTuple):
    """What a judge sees. `prompt` may be empty where nobody kept it; `probe` likewise."""

    lang: str
    probe: str
    prompt: str
    response: str
    # Instead of a reply, the probabilities of the answer words (`LogProb.continuations`).
    continuations: Sequence[Mapping[str, Any]] = ()


@dataclass(slots=True)
class Verdict:
    """label, what it rests on, and further columns; becomes a `Judgment` record.

    A judge's verdicts all have the same `fields`, so that they fit one table.
    """

    label: str
    rule: str
    evidence: str = ""
    score: float | None = None
    fields: dict[str, JSON] = field(default_factory=dict)


class Judge(Protocol):
    """A judge that is faster on many items may have `many(items) -> Iterator[Verdict]` too, the
    same verdicts in the same order; call it through `verdicts`."""

    name: str
    column: str  # what `label` is called in a table: "answer", "language", "refusal"
    reads: frozenset[str]  # decodes whose answers it reads: `free`, `choice`, `logprob`
    needs: tuple[str, ...]  # Item fields that must be there: ("lang", "response")
    signature: str  # version and data hashes; changes whenever a verdict can change

    def __call__(self, item: Item) -> Verdict: ...


def verdicts(judge: Judge, items: Iterable[Item]) -> Iterator[Verdict]:
    """The verdict on each item, in their order: by the judge's `many` if it has one."""
    many = getattr(judge, "many", None)
    return many(items) if many else map(judge, items)
