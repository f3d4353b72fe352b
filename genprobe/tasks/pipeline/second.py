"""Read once more what the rules leave open: by a second reader, or by asking the model again.

The second reader is a chat model of the user's choice (judges/llm.py), never the one under test. It
sees question and reply, not the first reading. Its verdicts stand in columns of their own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from genprobe import text
from genprobe.engines import Engine, Identity, Options, Sampling
from genprobe.errors import Caution, InputError
from genprobe.files import door
from genprobe.judges import Judge, again, llm, seen
from genprobe.records import Judgment, Request, Response
from genprobe.resources import licences, models, packs
from genprobe.runs.run import Run
from genprobe.runs.spec import Spec
from genprobe.tasks.pipeline import Progress, quiet
from genprobe.tasks.pipeline.judge import items_of, judgments_of, kinds_of
from genprobe.tasks.pipeline.open import open_engine, served
from genprobe.text import many

OPEN = ("unsure", "undecided", "both", "offtopic")  # kinds of replies that the rules leave open
AGAIN = "again"
SHORT = Sampling(temperature=0.0, max_tokens=32)  # of a reply that is asked for again


@dataclass(frozen=True)
class Second:
    """What a second reader reads in the runs of a task.

    rubric: of prompts/rubrics. fills: the judge whose labels its verdicts stand beside. of: the
    judge by whose kinds replies are chosen; `fills` if empty. open: these kinds. asks: the kind of
    question (`licences.SIDES`); if empty, how the probe is read. none: the label for its verdict
    `unclear`, which is none, in the words of `fills`.
    """

    rubric: str
    fills: str
    of: str = ""
    open: tuple[str, ...] = OPEN
    asks: str = ""
    none: str = "ambiguous"

    @property
    def name(self) -> str:
        """Return the name of the judge."""
        return f"llm-{self.rubric}"

    def kind(self, run: Run, request: Request) -> str:
        """Return the kind of question of a request."""
        return self.asks or run.probes[request.probe].reads


def options_for(model: str, options: Options) -> Options:
    """Return the options by which a second reader is opened, beside a model under test.

    options: those of the model under test. Its server is used, unless the reader is a folder or an
    alias with a server of its own. Raises InputError for an unknown model.
    """
    known = models.catalogue().get(model.lower())
    plain = Options(device=options.device, concurrency=options.concurrency, note=options.note)
    if (known and known.base_url) or door.expanded(model).is_dir():
        return plain
    if options.base_url:
        return dataclasses.replace(
            plain,
            base_url=options.base_url,
            headers=options.headers,
            key_env=options.key_env,
            http_key=options.http_key,
        )
    found = served("auto", model, plain)
    if not found.base_url:
        models.resolve(model)
    return found


def need_another(spec: Spec, who: Identity) -> None:
    """Raise InputError if a reader is the model under test, by its name or revision."""
    hashes = {spec.revision, who.revision}
    same = len(hashes) == 1 and re.fullmatch(r"[0-9a-f]{12,}", who.revision)
    told_apart = len(hashes) == 2 and all(re.fullmatch(r"[0-9a-f]{12,}", one) for one in hashes)
    if same or (who.model == spec.model and not told_apart):
        raise InputError(
            f"--second-reader {who.model}: is the model under test ({spec.model}), which would "
            "read its own replies; name another"
        )


@contextlib.contextmanager
def reader(model: str | None, options: Options, engine: str, rubric: str) -> Iterator[llm.LLMJudge]:
    """Open a second reader."""
    with contextlib.closing(open_engine(engine, model, options)) as opened:
        yield llm.make(opened, rubric)


def read(
    run: Run,
    second: Second,
    judge: llm.LLMJudge,
    only: Sequence[str] = (),
    progress: Progress = quiet,
) -> int:
    """Have a second reader read the replies of a run that are open. Returns how many.

    only: kinds of replies, instead of those of the task. A reply that this reader has read before
    is not asked about again. Raises InputError if the reader is the model under test.
    """
    need_another(run.spec, judge.identity)
    wanted = left_open(run, second, only)
    if only:
        need_kind(run, second, only)
    before = _before(run, judge.name, judge.signature)
    items = [one for one in items_of(run) if one[0].id in wanted]
    new = iter(judgments_of(judge, (one for one in items if one[0].id not in before)))
    langs = {(request.lang, second.kind(run, request)) for request, _ in items}
    known = licences.find(judge.reader)

    def found() -> Iterator[Judgment]:
        for number, (request, _) in enumerate(items, 1):
            yield before.get(request.id) or next(new)
            progress("second reader", number, len(items))

    kinds = "+".join(only or second.open)
    licence = [vars(known[key]) for key in sorted(langs) if key in known]
    sign = f"{judge.signature}+only-{kinds}"
    return run.write_judgments(judge.name, sign, found(), judge.reads, kinds, licence)


def left_open(run: Run, second: Second, only: Sequence[str] = ()) -> frozenset[str]:
    """Return the ids of the requests whose replies are of these kinds, or are open."""
    kinds, wanted = kinds_of(run, second.of or second.fills), only or second.open
    free = {request.id for request in run.requests() if request.decode == "free"}
    return frozenset(at for at, kind in kinds.items() if at in free and kind in wanted)


def need_kind(run: Run, second: Second, only: Sequence[str]) -> None:
    """Raise InputError if no reply of a run is of these kinds."""
    kinds = Counter(kinds_of(run, second.of or second.fills).values())
    if not kinds.keys() & set(only):
        there = ", ".join(f"{name} {count}" for name, count in kinds.most_common())
        shown = " or ".join(map(repr, only))
        raise InputError(f"{run.folder}: no reply is of the kind {shown}; it has {there}")


def _before(run: Run, name: str, signature: str) -> Mapping[str, Judgment]:
    """Return the verdicts of the same reader that are as it gave them, without failed ones."""
    noted, path = run.judged().get(name), run.folder / "judgments" / f"{name}.jsonl"
    if noted is None or noted.signature.partition("+only-")[0] != signature or not path.is_file():
        return {}
    if hashlib.sha256(door.content(path)).hexdigest()[:16] != noted.hash:
        return {}
    return {j.request: j for j in run.judgments(name) if not j.fields.get("failed")}


def told(run: Run, second: Second) -> Iterator[str]:
    """Say what the second reader of a run has read, and how well it was measured."""
    noted = run.judged().get(second.name)
    if noted is None:
        return
    who = noted.signature.partition("+")[2].partition(f"+{second.rubric}:")[0]
    by_id = {request.id: request for request in run.requests()}
    counts: dict[tuple[str, str], Counter[str]] = {}
    for verdict in run.judgments(second.name):
        request = by_id[verdict.request]
        key = request.lang, second.kind(run, request)
        counts.setdefault(key, Counter())[verdict.label or "none"] += 1
    yield f"second reader {who}: {many(sum(c.total() for c in counts.values()), 'reply')} read"
    known = licensed(run, second)
    without = [f"{lang} ({kind})" for lang, kind in sorted(counts) if (lang, kind) not in known]
    for (lang, kind), found in sorted(counts.items()):
        labels = ", ".join(f"{label} {n}" for label, n in found.most_common())
        licence = f"; licence: {known[lang, kind].told()}" if (lang, kind) in known else ""
        yield f"second reader, {lang} ({kind}): {labels}{licence}"
    if without:
        yield Caution(
            f"caution: the second reader has no licence for {', '.join(without)}: there its "
            f"verdicts are shown apart and move no band; `genprobe licence {who.partition('@')[0]} "
            f"--lang {without[0].split(' ')[0]}` measures it"
        )


def licensed(run: Run, second: Second) -> Mapping[tuple[str, str], licences.Licence]:
    """Return the licences of a run's second reader that hold, by language and kind of question."""
    noted = run.judged().get(second.name)
    rows = map(licences.Licence.from_dict, noted.licence if noted else ())
    return {(row.lang, row.kind): row for row in rows if row.holds}


def ask_again(
    run: Run,
    second: Second,
    engine: Engine,
    judge: Judge,
    progress: Callable[[str, int, int], None] = quiet,
) -> int:
    """Ask the model under test once more about the replies that are open. Returns how many.

    engine: of that model. judge: reads what it says. Its own reply stands before a last turn
    "Answer:", in the language of the question. A request that fails has no judgment.
    """
    wanted = left_open(run, second)
    sign = f"{AGAIN}@{again.VERSION}+{judge.signature}"
    before = _before(run, AGAIN, sign)
    asked: dict[str, Request] = {}  # id of the first request -> the second
    items = {}
    for request, item in items_of(run):
        if request.id in wanted and item.reply.strip():
            items[request.id] = item
            if request.id not in before:
                turns = [
                    {"role": "assistant", "content": item.reply.strip()},
                    {"role": "user", "content": _label(request.lang)},
                ]
                asked[request.id] = Request.asked(
                    *(request.statement, request.lang, request.pack, request.probe),
                    [*request.messages, *turns],
                    base=run.spec.seed,
                    sample=request.sample,
                    options=request.options,
                )
    replies: dict[str, Response] = {}
    for number, record in enumerate(engine.generate(list(asked.values()), SHORT), 1):
        if isinstance(record, Response):
            replies[record.request] = record
        progress("asking again", number, len(asked))

    def judgments() -> Iterator[Judgment]:
        for name, item in items.items():
            if name in before:
                yield before[name]
            elif reply := replies.get(asked[name].id):
                found = seen(item.lang, item.probe, item.prompt, reply)
                kept = {k: getattr(item, k) for k in ("options", "marks", "reads", "when")}
                verdict = judge(found._replace(**kept))
                yield Judgment(
                    *(name, AGAIN, verdict.label, None, verdict.rule, verdict.evidence),
                    {"kind": verdict.fields["kind"], "said": reply.text},
                )

    return run.write_judgments(AGAIN, sign, judgments(), ("free",), "+".join(second.open))


def _label(lang: str) -> str:
    """Return the word for an answer in a language, with a colon."""
    word = next(iter(text.expand(packs.load_language(lang).words["label"][0])))
    return f"{word[:1].upper()}{word[1:]}:"
