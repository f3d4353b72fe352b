"""Have a chat model judge replies by a rubric of `prompts/rubrics/`, through any engine.

Each text is put to the model in every wording of the rubric and in two orders of the labels (as
in the file, and backwards), at temperature 0, and may be answered by nothing but a label
(`decode="choice"`). The label that more than half of all the questions got is the verdict, else
`unclear`; a question without an answer counts against every label, and is counted. How often the
answer turns with the order or the wording alone is the judge's own bias: see `bias`. Position
bias of such judges: Wang et al. 2024, "Large Language Models are not Fair Evaluators", ACL.

The text is hostile: it may say "ignore the rubric and answer *for*". It stands between marks
made from its own hash, which it cannot forge, its braces are never filled in, and whatever it
says, only a label can come out. That does not keep it from persuading the model of a label: on
texts that may have been written for the judge, a label by a model proves nothing.

`genprobe score --reviewed` compares its labels with people's; do not trust them before that.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from genprobe.engines import Engine, Sampling
from genprobe.errors import EngineError, InputError
from genprobe.judges import LABEL, Column, Item, Verdict
from genprobe.records import Failure, Judgment, Request, Response, digest
from genprobe.resources import packs, registry
from genprobe.text import strip_echo

VERSION = "1"  # raised whenever a verdict can change without a change of the rubric
UNCLEAR = "unclear"
BATCH = 256  # texts that are put to the engine together
HEAD, TAIL = 6_000, 2_000  # characters of a long text that are shown
_SAMPLING = Sampling(temperature=0.0, max_tokens=32)
_FIELD = re.compile(r"\{(labels|options|question|text)\}")


@dataclass(frozen=True)
class Rubric:
    """A question with a closed list of answers, in at least two wordings."""

    name: str
    title: str
    version: str
    labels: dict[str, str]  # label -> what it means
    wordings: dict[str, str]
    hash: str

    def ask(self, wording: str, labels: Sequence[str], question: str, text: str) -> str:
        """Write the message to the model, with the labels in this order."""
        values = {
            "labels": "\n".join(f"- {label}: {self.labels[label]}" for label in labels),
            "options": ", ".join(labels),
            "question": _marked(question) if question else "(not known)",
            "text": _marked(text),
        }
        return _FIELD.sub(lambda match: values[match.group(1)], self.wordings[wording]).strip()


def _marked(text: str) -> str:
    if len(text) > HEAD + TAIL:
        text = f"{text[:HEAD]} […] {text[-TAIL:]}"
    mark = digest(text, 12)
    return f"<<<{mark}\n{text}\n{mark}>>>"


@functools.cache
def load_rubric(name: str) -> Rubric:
    """Load the rubric of a file name.

    Raises InputError where it is unknown or malformed.
    """
    registry.check("rubrics", name)
    return read_rubric(registry.PROMPTS / "rubrics" / f"{name}.toml")


def read_rubric(path: Path) -> Rubric:
    """Read and check one rubric."""
    row = packs.read_toml(path)
    packs.no_more(row, {"title", "version", "review", "labels", "wordings"}, path)
    labels, wordings = (packs.table(row, key, path) for key in ("labels", "wordings"))
    for part in (labels, wordings):
        for key in part:
            packs.string(part, key, path)
    if len(labels) < 2 or len(wordings) < 2:
        raise InputError(f"{path}: needs at least two [labels] and two [wordings]")
    if UNCLEAR in labels:
        raise InputError(f"{path}: the label {UNCLEAR!r} is reserved for the judge; choose another")
    for name, wording in wordings.items():
        missing = {"labels", "options", "text"} - set(_FIELD.findall(wording))
        if missing:
            raise InputError(f"{path}: wordings.{name} lacks {{{sorted(missing)[0]}}}")
    return Rubric(
        name=path.stem,
        title=packs.string(row, "title", path),
        version=packs.string(row, "version", path),
        labels=labels,
        wordings=wordings,
        hash=packs.file_hash(path),
    )


class _Question(NamedTuple):
    wording: str
    order: int  # 0: as in the rubric, 1: backwards


class LLMJudge:
    """Ask a model for a label by a rubric: the judge `llm-<rubric>` of the module.

    score: the share of the questions that got the commonest label; evidence: every answer.

    fields: how many questions were `asked` and `failed`; of the pairs of answers that differ only
    in the order of the labels (only in the wording), how many there are and how many disagree:
    `order_pairs`, `order_flips`, `wording_pairs`, `wording_flips`.
    """

    reads = frozenset(("free",))
    needs = ("response",)

    def __init__(self, engine: Engine, rubric: Rubric) -> None:
        self.name = f"llm-{rubric.name}"
        self.column = f"llm_{rubric.name}"
        self._engine, self._rubric = engine, rubric
        self._questions = [_Question(w, order) for w in rubric.wordings for order in (0, 1)]
        who = engine.identity
        model = f"{who.model}@{who.revision}"
        how = digest([vars(who) | {"engine_args": dict(who.engine_args)}, vars(_SAMPLING)], 8)
        self.signature = f"llm@{VERSION}+{model}+{rubric.name}:{rubric.hash}+{how}"
        self._total: Counter[str] = Counter()
        self.tokens: tuple[int, int] | None = (0, 0)  # in, out; None where they are not counted

    def __call__(self, item: Item) -> Verdict:
        return next(self.many([item]))

    def many(self, items: Iterable[Item]) -> Iterator[Verdict]:
        """Yield verdicts in the order of the items, `BATCH` of them asked together.

        EngineError if the engine leaves questions unanswered.
        """
        rest = iter(items)
        while batch := list(itertools.islice(rest, BATCH)):
            asked = [self._requests(item) for item in batch]
            # Equal texts are asked once.
            answers = self._answers({r.id: r for requests in asked for r in requests})
            for requests in asked:
                verdict = self._verdict([answers[request.id] for request in requests])
                _add(self._total, verdict)
                yield verdict

    @property
    def blank(self) -> Verdict:
        """Make the verdict of a text that nobody was asked about, with the fields of all others."""
        return self._verdict([None] * len(self._questions))

    @property
    def bias(self) -> Bias:
        """Sum up what the order and the wording alone turned, over all that was judged."""
        return _bias(self._total)

    def _requests(self, item: Item) -> list[Request]:
        reply = item.reply
        text = reply[strip_echo(item.prompt, reply) :]
        labels = list(self._rubric.labels)
        requests = []
        for wording, order in self._questions:
            shown = labels[::-1] if order else labels
            content = self._rubric.ask(wording, shown, item.prompt, text)
            messages = [{"role": "user", "content": content}]
            options = {label: [label] for label in shown}
            pack = f"{self._rubric.name}@{self._rubric.version}"
            asked = ("", item.lang, pack, wording, messages)
            requests.append(Request.asked(*asked, decode="choice", options=options))
        return requests

    def _answers(self, asked: Mapping[str, Request]) -> dict[str, str | None]:
        """Request id -> label; None for a failure, and for a reply that is no label."""
        found: dict[str, str | None] = {}
        name = self._engine.identity.engine
        for record in self._engine.generate(list(asked.values()), _SAMPLING):
            if record.request not in asked or record.request in found:
                raise EngineError(f"engine {name!r} answered {record.request} unasked or twice")
            if not isinstance(record, Response | Failure):
                raise EngineError(f"engine {name!r} answered {record.request} with another kind")
            self._count(record)
            label = None if isinstance(record, Failure) else record.text
            found[record.request] = label if label in self._rubric.labels else None
        if len(found) < len(asked):
            raise EngineError(
                f"engine {name!r} left {len(asked) - len(found)} of {len(asked)} questions of the "
                "judge unanswered; run again to ask them"
            )
        return found

    def _count(self, record: Response | Failure) -> None:
        """Add the tokens of a record, unless one was not counted."""
        if isinstance(record, Response) and self.tokens is not None:
            more = record.tokens_in, record.tokens_out
            known = None not in more
            self.tokens = (
                (self.tokens[0] + (more[0] or 0), self.tokens[1] + (more[1] or 0))
                if known
                else None
            )

    def _verdict(self, answers: Sequence[str | None]) -> Verdict:
        given = dict(zip(self._questions, answers, strict=True))
        votes = Counter(label for label in answers if label is not None)
        top, most = votes.most_common(1)[0] if votes else (UNCLEAR, 0)
        if most == len(answers):
            label, rule = top, "agreed"
        elif most * 2 > len(answers):
            label, rule = top, "majority"
        else:
            label, rule = UNCLEAR, "split" if votes else "failed"
        pairs = list(itertools.combinations(self._questions, 2))
        fields = {"asked": len(answers), "failed": len(answers) - votes.total()}
        for kind, other in (("order", "wording"), ("wording", "order")):
            both = [
                (given[a], given[b])
                for a, b in pairs
                if getattr(a, other) == getattr(b, other) and given[a] and given[b]
            ]
            fields[f"{kind}_pairs"] = len(both)
            fields[f"{kind}_flips"] = sum(first != second for first, second in both)
        evidence = "; ".join(
            f"{wording}: {', '.join(given[_Question(wording, o)] or 'failed' for o in (0, 1))}"
            for wording in self._rubric.wordings
        )
        return Verdict(label, rule, evidence, most / len(answers), {**fields})


def make(engine: Engine | None = None, rubric: str = "stance") -> LLMJudge:
    """Make the judge of an engine and a rubric.

    Raises InputError without an engine, or for a rubric that is unknown or malformed.
    """
    if engine is None:
        raise InputError("the judge 'llm' needs a model; name one with --model or --base-url")
    return LLMJudge(engine, load_rubric(rubric))


PLACE, READS = 90, "replies"


def columns_of(judge: str) -> tuple[Column, ...]:
    """Name the column of one judge of many: a rubric has a column of its own."""
    about = f"label of the model by the rubric {judge.partition('-')[2]}"
    return (Column(judge.replace("-", "_"), about, LABEL, reply=False),)


# One for each rubric.
COLUMNS = tuple(one for name in registry.names("rubrics") for one in columns_of(f"llm-{name}"))


class Bias(NamedTuple):
    """How far the judge's answers depend on how it was asked; None if unknown."""

    n: int  # verdicts
    unclear: int
    asked: int  # questions
    failed: int
    order_flips: float | None  # share of pairs that differ in the order of the labels alone
    wording_flips: float | None

    def __str__(self) -> str:
        """One line, for a person."""
        order, wording = (
            "never asked both ways" if share is None else f"{100 * share:.1f} %"
            for share in (self.order_flips, self.wording_flips)
        )
        return (
            f"answers changed by the order of the labels alone: {order}, by the wording alone: "
            f"{wording}; {self.unclear} of {self.n} texts unclear, {self.failed} of {self.asked} "
            "questions failed"
        )


def bias(verdicts: Iterable[Verdict | Judgment]) -> Bias:
    """Sum up the verdicts of one LLM judge."""
    total: Counter[str] = Counter()
    for verdict in verdicts:
        _add(total, verdict)
    return _bias(total)


def _add(total: Counter[str], verdict: Verdict | Judgment) -> None:
    total.update({k: v for k, v in verdict.fields.items() if isinstance(v, int)})
    total.update(n=1, unclear=verdict.label == UNCLEAR)


def _bias(total: Counter[str]) -> Bias:
    order, wording = (
        total[f"{kind}_flips"] / total[f"{kind}_pairs"] if total[f"{kind}_pairs"] else None
        for kind in ("order", "wording")
    )
    return Bias(total["n"], total["unclear"], total["asked"], total["failed"], order, wording)
