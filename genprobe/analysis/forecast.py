"""Forecast what a run would ask and cost; report what it used."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from genprobe.analysis import gaps
from genprobe.engines import THINK_TOKENS
from genprobe.errors import InputError
from genprobe.judges.llm import Rubric, load_rubric
from genprobe.records import LogProb, Request, Response, Statement
from genprobe.resources import models
from genprobe.runs.usage import usage
from genprobe.tasks.pipeline import second
from genprobe.tasks.pipeline.open import control_folder, control_room
from genprobe.text import many

if TYPE_CHECKING:
    from genprobe.runs.run import Run
    from genprobe.tasks import Ask, Asked

# Without a tokenizer: UTF-8 bytes per token, about right for English and a large vocabulary (rare
# scripts need up to twice as many tokens), and tokens around a message.
BYTES, AROUND = 4, 8
SHOWN = 3  # prompts that are shown whole


class Sum(NamedTuple):
    """An estimate of a sum, and its 95 % interval."""

    low: float
    value: float
    high: float

    def text(self, digits: int = 0) -> str:
        """Write the estimate with its interval."""
        low, value, high = (f"{one:,.{digits}f}" for one in self)
        return f"about {value} ({low} to {high})"


class Price(NamedTuple):
    """The price of a million tokens of prompts, and of replies with their thoughts."""

    into: float
    out: float

    def of(self, tokens_in: float, tokens_out: float) -> float:
        """Return what these numbers of tokens cost."""
        return (self.into * tokens_in + self.out * tokens_out) / 1e6

    def about(self, tokens_in: Sum, tokens_out: Sum) -> Sum:
        """Return what an estimated number of tokens costs; both limits are reached together."""
        return Sum(*map(self.of, tokens_in, tokens_out))


def price(given: str | None) -> Price | None:
    """Read the amounts IN,OUT. Raises InputError for anything else."""
    if given is None:
        return None
    with contextlib.suppress(ValueError):
        values = [float(part) for part in given.split(",")]
        if len(values) == 2 and all(math.isfinite(v) and v >= 0 for v in values):
            return Price(*values)
    raise InputError(f"--price {given!r}: two amounts for a million tokens, such as 0.15,0.60")


class Size(NamedTuple):
    """What a run would ask.

    items: what is asked about. requests: all of them, in order. cells: (language, question, decode)
    -> number of requests, tokens of their prompts, most tokens of their replies. most, room: most
    tokens of a reply and of its thought. rule: how tokens are counted. more: what may be asked
    after that -> the same numbers, if every free reply is unclear.
    """

    items: Sequence[Statement]
    requests: Sequence[Request]
    cells: Mapping[tuple[str, str, str], Sequence[int]]
    most: int
    room: int
    rule: str
    more: Mapping[str, Sequence[int]]

    @property
    def total(self) -> list[int]:
        """Return the sums of the cells: requests, tokens in, most tokens out."""
        return [sum(column) for column in zip(*self.cells.values(), strict=True)]

    @property
    def tokens(self) -> tuple[int, int]:
        """Return the most tokens of all prompts and replies, also of those asked after the plan."""
        into, out = zip(self.total[1:], *(row[1:] for row in self.more.values()), strict=True)
        return sum(into), sum(out)

    def cost(self, price: Price) -> float:
        """Return what the run costs at most, if the model does not think by itself."""
        return price.of(*self.tokens)


def size(task: str, ask: Ask, asked: Asked | None = None) -> Size:
    """Count the requests and tokens of a run; nothing is asked.

    asked: the Ask as its task has checked it, if that is known. Without the model it is unknown
    which passes score its texts: those of a causal model are counted.
    """
    from genprobe import tasks

    found = tasks.find(task)
    asked = asked or tasks.prepare(found, dataclasses.replace(ask, chat=False))
    requests: Sequence[Request] = asked.requests(CAUSAL if found.scores else None)
    count, rule = _counter(ask)
    most = 0 if found.scores else asked.sampling.max_tokens
    thinking = ask.options.thinking
    usual = THINK_TOKENS if thinking.mode not in ("default", "off") else 0
    room = (control_room(ask.options) if ask.control else thinking.tokens) or usual
    cells: dict[tuple[str, str, str], list[int]] = {}
    for request in requests:
        cell = cells.setdefault((request.lang, request.probe, request.decode), [0, 0, 0])
        cell[0] += 1
        cell[1] += count(request)
        cell[2] += 0 if found.scores else _at_most(request, most + room, ask)
    more: dict[str, list[int]] = {}
    free = [request for request in requests if request.decode == "free"]
    if found.second and ask.ask_again:
        again, ends = (
            second.SHORT.max_tokens + room,
            2 * AROUND + BYTES,
        )  # two turns, the last short
        into = sum(map(count, free)) + len(free) * (most + ends)
        more["asked again"] = [len(free), into, len(free) * again]
    if found.second and ask.second_reader:
        more["read a second time"] = _read(free, load_rubric(found.second.rubric), most, ask)
    return Size(asked.items, requests, cells, most, room, rule, more)


def _read(free: Sequence[Request], rubric: Rubric, most: int, ask: Ask) -> list[int]:
    """Count what a second reader is asked of replies of `most` tokens: as the plan's cells."""
    ask = dataclasses.replace(ask, options=second.options_for(ask.second_reader, ask.options))
    into = out = 0
    for request in free:
        prompt = "\n\n".join(message["content"] for message in request.messages)
        own = {str(n): " ".join(texts) for n, texts in enumerate(request.options.values(), 1)}
        labels = (own if rubric.options else {}) | rubric.labels
        for wording in rubric.wordings:  # each with the labels in two orders
            said = [{"role": "user", "content": rubric.ask(wording, labels, prompt, "")}]
            options = {label: [label] for label in labels}
            asked = dataclasses.replace(request, decode="choice", messages=said, options=options)
            into += 2 * (_estimate(asked) + most)
            out += 2 * _at_most(asked, 0, ask)
    return [2 * len(rubric.wordings) * len(free), into, out]


# What the plan of a scoring run asks of a model that is not loaded.
CAUSAL = SimpleNamespace(passes=("causal",), first="")


def lines(task: str, ask: Ask, cost: Price | None) -> Iterator[str]:
    """Describe what would be asked, in lines.

    Lists requests and tokens by language and question, the highest possible cost, and whole
    prompts. Nothing is asked, and nothing written.
    """
    found = size(task, ask)
    requests, room = found.requests, found.room
    who = ask.model or ("control" if ask.control else f"the model of {ask.options.base_url}")
    yield f"{who}: {len(requests)} requests about {len(found.items)} items"
    yield f"tokens of prompts {found.rule}; of replies at most, {found.most} each" + (
        f" and {room} of a thought" if room else "; a model that thinks by itself needs more"
    )
    width = max(8, *map(len, (*map(" ".join, found.cells), *found.more)))
    yield f"{'':{width}}{'requests':>10}{'tokens in':>12}{'out at most':>13}"
    rows = {" ".join(cell): values for cell, values in found.cells.items()}
    every = {**rows, **found.more}
    every["all"] = [sum(column) for column in zip(*every.values(), strict=True)]
    for name, (n, into, out) in every.items():
        yield f"{name:{width}}{n:>10}{into:>12}{out:>13}"
    if found.more:
        yield (
            f"{' and '.join(found.more)}: at most, if no reply is clear; a second reader's tokens "
            "are estimated, and cost the same"
        )
    if cost:
        free = sum(r.decode == "free" for r in requests)
        yield _cost(cost, *found.tokens, free, ask, room)
    yield _margin(
        len({item.pair or item.id for item in found.items}),
        len({getattr(request, "facets", {}).get("wording", "") for request in requests}),
    )
    step = max(1, len(requests) // SHOWN)
    for n, request in enumerate(requests[::step][:SHOWN], 1):
        yield ""
        yield f"prompt {n} ({request.lang}, {request.probe}, {request.decode}):"
        for message in request.messages:
            yield f"[{message['role']}]"
            yield _clean(message["content"])
        if request.options:
            yield f"[options] {'; '.join(' '.join(texts) for texts in request.options.values())}"


def _margin(statements: int, wordings: int) -> str:
    """Say which rise a gate of this run could rule out at best, and what smaller ones need."""
    line = (
        f"margin: a gate of {many(statements, 'statement')} can rule out a rise of "
        f"{100 * gaps.least(statements):.1f} points at best; 5 points take {gaps.fewest(0.05)}, "
        f"12 points {gaps.fewest(0.12)} statements in which nothing changes"
    )
    if wordings > 1:
        line += f"; over wordings like these {wordings}, {100 * gaps.least(wordings):.1f} points"
    return line


def _at_most(request: Request, free: int, ask: Ask) -> int:
    """Return the most tokens that a reply can have.

    free: those of a free reply. A server is allowed as many tokens as the longest option has bytes,
    and some around it, because its tokenizer is unknown; on this machine an option is one token.
    """
    if request.decode == "free":
        return free
    if request.decode == "choice" and ask.options.base_url:
        from genprobe.engines import openai

        return openai.most_of_choice(request)
    return 1


def _cost(cost: Price, into: int, out: int, free: int, ask: Ask, room: int) -> str:
    """Say what the tokens cost at most, also if it is unknown whether the model thinks.

    free: requests that are answered freely. room: tokens of `out` that are reserved for each
    thought.
    """
    line = f"cost: {cost.of(into, 0):.4f} for the prompts, at most {cost.of(into, out):.4f} in all"
    if not room and ask.options.thinking.mode == "default" and not ask.control:
        more = cost.of(into, out + free * THINK_TOKENS)
        line += f", {more:.4f} if the model thinks by itself ({THINK_TOKENS} tokens each)"
    if not ask.control and ask.options.thinking.mode != "off" and ask.options.base_url:
        line += "; requests whose thoughts are cut off are asked again, at additional cost"
    return line


def _clean(text: str) -> str:
    from genprobe.text.display import clean

    return "\n".join(clean(line) for line in text.splitlines())


def _counter(ask: Ask) -> tuple[Callable[[Request], int], str]:
    """Return a function that counts the tokens of a prompt, and a description of how it counts."""
    of: tuple[str, str | None] | None = None
    if ask.control:
        of = str(control_folder(ask.options)), None
    elif ask.options.base_url is None and ask.model is not None and ask.engine != "replay":
        known = models.resolve(ask.model)
        if not known.base_url:
            of = known.id, ask.options.revision or known.revision or None
    tokenizer: Any = None
    if of is not None:
        from genprobe.engines.transformers import tokenizer_of

        tokenizer = tokenizer_of(*of)
    if tokenizer is None:
        return _estimate, f"estimated as a token for {BYTES} bytes and {AROUND} per message"

    def count(request: Request) -> int:
        if tokenizer.chat_template and request.decode != "score":
            with contextlib.suppress(Exception):  # a template is a program of the model's authors
                ids = tokenizer.apply_chat_template(
                    request.messages, add_generation_prompt=True, return_dict=False
                )
                return len(ids)
        return sum(len(tokenizer(text)["input_ids"]) for text in _texts(request))

    return count, "counted by the model's tokenizer"


def _estimate(request: Request) -> int:
    return sum(
        AROUND + math.ceil(len(text.encode("utf-8", "replace")) / BYTES) for text in _texts(request)
    )


def _texts(request: Request) -> list[str]:
    """Return the texts that a model reads: the messages, and a text to be scored."""
    scored = request.options.values() if request.decode == "score" else ()
    return [m["content"] for m in request.messages] + [text for texts in scored for text in texts]


def of_pilot(run: Run, cost: Price | None = None) -> Iterator[str]:
    """Say in lines what a run will take, by the replies that are there."""
    planned, done = run.counts()
    yield (
        f"{run.folder}: {done} of {planned} requests are answered; the same command without "
        "--pilot goes on from here"
    )
    if (found := expected(run)) is None:
        yield "tokens: not counted by the server"
        return
    into, out, lacking = found
    if lacking:
        yield (
            f"{lacking} of the languages and questions have no reply yet and are taken as the mean "
            "of the others; a larger --pilot asks them, too"
        )
    yield f"tokens of the whole run: {into.text()} of prompts, {out.text()} of replies"
    if cost:
        yield f"cost of the whole run: {cost.about(into, out).text(4)}"


def expected(run: Run) -> tuple[Sum, Sum, int] | None:
    """Estimate the tokens of all prompts and replies of a run from the replies that are there.

    The mean of each language, question and way of answering, times its requests; a cell without a
    reply counts as the mean of all. The interval is that of a stratified sample (Cochran 1977,
    ch. 5), with one variance for all cells and Student's t; those of a pilot are drawn
    (`generate`). A second reader, and asking again, are not in it. Returns tokens in, tokens out,
    and the number of cells without a reply; None if fewer than two replies have counted tokens.
    """
    cell = {request.id: (request.lang, request.probe, request.decode) for request in run.requests()}
    planned = Counter(cell.values())
    told: dict[str, list[tuple[Any, int]]] = {"tokens_in": [], "tokens_out": []}
    replies: Iterator[Response | LogProb] = itertools.chain(run.responses(), run.logprobs())
    for reply in replies:
        for name, values in told.items():
            if (tokens := getattr(reply, name)) is not None:
                values.append((cell[reply.request], tokens))
    if min(map(len, told.values())) < 2:
        return None
    into, out = (_sum(values, planned) for values in told.values())
    return into, out, len(planned.keys() - {name for name, _ in told["tokens_out"]})


def _sum(values: Sequence[tuple[Any, int]], planned: Mapping[Any, int]) -> Sum:
    """Estimate the sum over all that is planned from (cell, value) of some of it."""
    from scipy.stats import t

    cells: dict[Any, list[int]] = {}
    for cell, value in values:
        cells.setdefault(cell, []).append(value)
    every = statistics.fmean(value for _, value in values)
    means = {cell: statistics.fmean(found) for cell, found in cells.items()}
    free = len(values) - len(cells)
    around = means if free else dict.fromkeys(cells, every)  # no cell has two
    spread = sum((value - around[cell]) ** 2 for cell, value in values)
    free = free or len(values) - 1
    size = {cell: len(cells.get(cell, ())) or 1 for cell in planned}
    parts = sum(n * (n - size[cell]) / size[cell] for cell, n in planned.items())
    middle = sum(n * means.get(cell, every) for cell, n in planned.items())
    half = float(t.ppf(0.975, free)) * math.sqrt(spread / free * parts)
    return Sum(max(0.0, middle - half), middle, middle + half)


def used(run: Run, cost: Price | None = None) -> str:
    """Say in one line how many tokens a run used, and what they cost."""
    found = usage(run)
    into, out = found.tokens_in, found.tokens_out
    if into is None and out is None:
        return "tokens: not counted"
    line = f"tokens: {into or 0} of prompts, {out or 0} of replies"
    if found.reasoning_tokens is not None:
        line += f", {found.reasoning_tokens} of these of thoughts"
    if cost:
        line += f"; cost {cost.of(into or 0, out or 0):.4f}"
    if any(name == second.AGAIN or name.startswith("llm-") for name in run.judges()):
        line += "; those of a second reader, and of asking again, are not counted"
    return line
