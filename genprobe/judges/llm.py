"""Have a chat model judge replies by a rubric of `prompts/rubrics/`, through any engine.

The model is asked about each text in every wording of the rubric and with two orders of the labels
(as in the file, and reversed), at temperature 0. It can answer only with a label
(`decode="choice"`). The verdict is the label that more than half of these questions got, else
`unclear`. A question without an answer counts against every label, and is reported as failed. The
judge is biased as far as its answer changes with the order or the wording alone: see `bias`. On the
position bias of such judges: Wang et al. 2024, "Large Language Models are not Fair Evaluators",
ACL.

The text may try to instruct the model: "ignore the rubric and answer *for*". Therefore it is placed
between marks made from its own hash, which it cannot forge; braces in it are never filled in; and
whatever it says, the model can answer only with a label. The text may still persuade the model of
one label. For texts that may have been written to deceive the judge, its labels prove nothing.

It is the second reader (`--second-reader`): of what the rules of the other judges leave open, or
of every reply by `--rubric`. It sees question and reply only, never the first reading. `genprobe
licence` measures it on labelled replies, and `genprobe score --reviewed` on those of the run. Do
not trust its labels before that.
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

VERSION = "1"  # raised whenever a verdict can change without a change of the rubric
UNCLEAR = "unclear"
BATCH = 256  # texts per call of the engine
HEAD, TAIL = 6_000, 2_000  # characters of a longer text that are shown: its beginning, its end
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
    options: bool = False  # the options of the question are labels, too, before the others

    def labels_of(self, item: Item) -> dict[str, str]:
        """Return label -> what it means, for one reply: options have their marks, or numbers."""
        if not self.options:
            return self.labels
        marks = [mark.strip() for mark in item.marks]
        if len(set(marks)) < len(item.options) or not all(marks) or {*marks} & {*self.labels}:
            marks = [str(number) for number in range(1, len(item.options) + 1)]
        return dict(zip(marks, item.options, strict=True)) | self.labels

    def ask(self, wording: str, labels: Mapping[str, str], question: str, text: str) -> str:
        """Return the message to the model, with the labels in the given order."""
        values = {
            "labels": "\n".join(f"- {label}: {about}" for label, about in labels.items()),
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
    """Load a rubric by name (its file name without .toml).

    Raises InputError if it is unknown or malformed.
    """
    registry.check("rubrics", name)
    return read_rubric(registry.path("rubrics", f"{name}.toml"))


def read_rubric(path: Path) -> Rubric:
    """Read and check the file of one rubric."""
    row = packs.read_toml(path)
    packs.no_more(row, {"title", "version", "review", "labels", "options", "wordings"}, path)
    packs.shaped(row, {"options": bool}, path)
    labels, wordings = (packs.table(row, key, path) for key in ("labels", "wordings"))
    for part in (labels, wordings):
        for key in part:
            packs.string(part, key, path)
    options = bool(row.get("options"))
    if len(labels) + options < 2 or len(wordings) < 2:
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
        options=options,
    )


class _Question(NamedTuple):
    wording: str
    order: int  # of the labels; 0: as in the rubric, 1: reversed


class LLMJudge:
    """The judge `llm-<rubric>`: see the module's docstring.

    score: the share of the questions that got the most frequent label, from 0 to 1. evidence: every
    answer. fields: `asked` and `failed`, numbers of questions; `order_pairs`, the number of pairs
    of answers whose questions differ only in the order of the labels, and `order_flips`, how many
    of these pairs disagree; `wording_pairs` and `wording_flips`, the same for the wording.
    """

    reads = frozenset(("free",))

    def __init__(self, engine: Engine, rubric: Rubric) -> None:
        self.name = f"llm-{rubric.name}"
        self.column = f"llm_{rubric.name}"
        self.needs: tuple[str, ...] = ("response",)
        self.needs += ("options",) if rubric.options else ()
        self._engine, self._rubric = engine, rubric
        self._questions = [_Question(w, order) for w in rubric.wordings for order in (0, 1)]
        who = self.identity = engine.identity
        self.model = who.model
        model = f"{who.model}@{who.revision}"
        how = digest([vars(who) | {"engine_args": dict(who.engine_args)}, vars(_SAMPLING)], 8)
        # Who reads by what: a licence holds for this, on any machine.
        self.reader = f"llm@{VERSION}+{model}+{rubric.name}:{rubric.hash}"
        self.signature = f"{self.reader}+{how}"
        self._total: Counter[str] = Counter()
        self.tokens: tuple[int, int] | None = (0, 0)  # in, out; None if not counted

    def __call__(self, item: Item) -> Verdict:
        return next(self.many([item]))

    def many(self, items: Iterable[Item]) -> Iterator[Verdict]:
        """Yield verdicts in the order of the items; `BATCH` items are asked about at a time.

        Raises EngineError if the engine leaves questions unanswered.
        """
        rest = iter(items)
        while batch := list(itertools.islice(rest, BATCH)):
            asked = [self._requests(item) for item in batch]
            if hasattr(self._engine, "prepare"):  # it refuses a model that would be cut in thought
                self._engine.prepare(asked[0], _SAMPLING)
            # Equal texts are asked once.
            answers = self._answers({r.id: r for requests in asked for r in requests})
            for item, requests in zip(batch, asked, strict=True):
                verdict = self._verdict([answers[request.id] for request in requests])
                if self._rubric.options and verdict.label != UNCLEAR:  # the number, from 0
                    at = [*self._rubric.labels_of(item)].index(verdict.label)
                    verdict.label = str(at) if at < len(item.options) else ""
                _add(self._total, verdict)
                yield verdict

    @property
    def blank(self) -> Verdict:
        """Return the verdict for a text about which the model was not asked."""
        return self._verdict([None] * len(self._questions))

    @property
    def bias(self) -> Bias:
        """Return how far order and wording changed the answers, over all texts judged so far."""
        return _bias(self._total)

    def _requests(self, item: Item) -> list[Request]:
        text = item.own
        labels = self._rubric.labels_of(item)
        requests = []
        for wording, order in self._questions:
            shown = dict(reversed(labels.items())) if order else labels
            content = self._rubric.ask(wording, shown, item.prompt, text)
            messages = [{"role": "user", "content": content}]
            options = {label: [label] for label in shown}
            pack = f"{self._rubric.name}@{self._rubric.version}"
            asked = ("", item.lang, pack, wording, messages)
            requests.append(Request.asked(*asked, decode="choice", options=options))
        return requests

    def _answers(self, asked: Mapping[str, Request]) -> dict[str, str | None]:
        """Return request id -> label; None for a failed request or a reply that is not a label."""
        found: dict[str, str | None] = {}
        name = self._engine.identity.engine
        for record in self._engine.generate(list(asked.values()), _SAMPLING):
            if record.request not in asked or record.request in found:
                raise EngineError(f"engine {name!r} answered {record.request} unasked or twice")
            if not isinstance(record, Response | Failure):
                raise EngineError(f"engine {name!r} answered {record.request} with another kind")
            self._count(record)
            label = None if isinstance(record, Failure) else record.text
            found[record.request] = label if label in asked[record.request].options else None
        if len(found) < len(asked):
            raise EngineError(
                f"engine {name!r} left {len(asked) - len(found)} of {len(asked)} questions of the "
                "judge unanswered; run again to ask them"
            )
        return found

    def _count(self, record: Response | Failure) -> None:
        """Add the tokens of a record; there is no sum if one record has no count."""
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
    """Make the judge that asks an engine by a rubric.

    Raises InputError without an engine, or if the rubric is unknown or malformed.
    """
    if engine is None:
        raise InputError("the judge 'llm' is a model; name it with --second-reader")
    return LLMJudge(engine, load_rubric(rubric))


PLACE, READS = 90, "replies"


def columns_of(judge: str) -> tuple[Column, ...]:
    """Return the column of the judge of one rubric; every rubric has its own column."""
    about = f"label of the model by the rubric {judge.partition('-')[2]}"
    return (Column(judge.replace("-", "_"), about, LABEL, reply=False),)


# One column for each rubric.
COLUMNS = tuple(one for name in registry.names("rubrics") for one in columns_of(f"llm-{name}"))


class Bias(NamedTuple):
    """How far the judge's answers depend on how it was asked; None if unknown."""

    n: int  # verdicts
    unclear: int
    asked: int  # questions
    failed: int
    order_flips: float | None  # share of the pairs that disagree, with only the order different
    wording_flips: float | None

    def __str__(self) -> str:
        """Return one line for people to read."""
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
    """Return the bias in the verdicts of one LLM judge."""
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
