"""The tasks: what genprobe can measure.

Each module declares one `Task`. An `Ask` is a request to run it:

    run = tasks.run("yesno", Ask(model="./my-model", langs=("mr",)))

To add a task, add a file with `TASK` here, and its pack in prompts/. Code that needs the task of a
run looks it up by `tasks.of(run.spec)`.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from genprobe._version import __version__
from genprobe.datasets import sets
from genprobe.engines import Options, Sampling
from genprobe.errors import Caution, InputError
from genprobe.files import door
from genprobe.files.rows import rows_of
from genprobe.judges import Judge, make
from genprobe.outcomes import columns
from genprobe.records import DECODES, Request, Statement, digest
from genprobe.render import notebook
from genprobe.resources import packs, panel, registry
from genprobe.runs import seal
from genprobe.runs.run import Run
from genprobe.runs.spec import Spec, statements_hash, versions
from genprobe.tasks.pipeline import Note, Progress, generate, like, plan, quiet, second
from genprobe.tasks.pipeline import judge as judging
from genprobe.tasks.pipeline.open import is_control, open_engine, served
from genprobe.tasks.pipeline.second import Second


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What to measure. Each task documents which fields it reads besides the common ones.

    model: alias, hub id or folder (for `replay`: a run folder or a file of recorded replies); None
    means the control model, or the only model of a server. langs: language codes; empty means the
    default of the task, else all languages of the data. data: `builtin`, a name of `genprobe list
    data`, a file, a table in memory (`files.rows.rows_of`), or a run, whose statements are asked
    about again. pack: the file of a pack of the user's own (yesno); "" means that of the task.
    probes: names of questions of the pack; empty means the default of the task. decodes: how
    answers are obtained: `free`, `choice`, `logprob`. wordings, personas, instruct: how a question
    varies (`resources.panel.Vary`). limit: most items per language. samples: number of replies to
    each question. sampling: how they are sampled; None for either means the default of the task.
    seed: number from which each request's own seed is derived. system: a system prompt, put after
    that of the pack. engine: a name of `genprobe list engines`, or `auto`. options: settings of the
    engine. out: the run folder; the same Ask resumes the run in it; None means a name derived from
    the settings. by: columns by which the outcomes will be split; they are checked before the model
    is loaded. classifier: the card of the sentiment classifier (stories). scorers, context, prefix,
    plain, chat, preprocess: see `tasks/logprob.py`. orders, shots, unknowns: see
    `tasks/choices.py`. second_reader: the model that reads what the rules leave open
    (`pipeline.second`), an alias, hub id, folder or name of the server; "" for none. ask_again:
    also ask the model again about it. like: a run whose questions are asked again (`like`), which
    gives the fields from langs to system, and those of logprob and choices. pilot: stop with so
    many replies, of all languages and questions, before any is read. note: called with messages.
    progress: called with (step, number done, total).
    """

    model: str | None = None
    langs: Sequence[str] = ()
    data: Any = "builtin"
    pack: str | Path = ""
    probes: Sequence[str] = ()
    decodes: Sequence[str] = ("free",)
    wordings: str = panel.PUBLISHED
    personas: str = panel.NOBODY
    instruct: Sequence[str] = (panel.OWN,)
    limit: int | None = None
    samples: int | None = None
    sampling: Sampling | None = None
    seed: int = 0
    system: str = ""
    engine: str = "auto"
    options: Options = field(default_factory=Options)
    out: str | Path | None = None
    by: Sequence[str] = ()
    classifier: str | None = None
    scorers: Sequence[str] = ()
    context: str = ""
    prefix: str = ""
    plain: bool = False
    chat: bool = False
    preprocess: str = ""
    orders: str = "all"
    shots: str | Path | None = None
    unknowns: bool = False
    second_reader: str = ""
    ask_again: bool = False
    like: Run | None = None
    pilot: int | None = None
    note: Note = quiet
    progress: Progress = quiet

    def __post_init__(self) -> None:
        """Take a single name for a list, and a table in memory for rows."""
        for name in ("langs", "probes", "decodes", "instruct", "by", "scorers"):
            object.__setattr__(self, name, registry.listed(getattr(self, name), name))
        if not isinstance(self.data, str):
            asked = isinstance(self.data, Run)
            data = self.data.folder / "statements.jsonl" if asked else self.data
            object.__setattr__(self, "data", rows_of(data, "data"))

    @property
    def called(self) -> str:
        """Return the name of the data, without a folder."""
        return rows_of(self.data).name

    @property
    def codes(self) -> list[str]:
        """Return the languages as BCP 47 codes. Raises InputError for an unknown one."""
        if "all" in self.langs:
            raise InputError("--lang all: leave --lang out to ask in every language of the data")
        return [packs.language_code(lang, mixed=True) for lang in self.langs]

    @property
    def vary(self) -> panel.Vary:
        """Return how a question varies. Raises InputError for impossible values."""
        return panel.Vary(self.wordings, self.personas, tuple(self.instruct))

    @property
    def control(self) -> bool:
        """Return whether the control model answers."""
        return is_control(self.model, self.options)

    @property
    def thinks(self) -> bool:
        """Return whether the model is asked to think."""
        return self.options.thinking.mode not in ("default", "off")


@dataclass(frozen=True)
class Asked:
    """An Ask that a task has checked, and everything that the run needs.

    items: the statements, pairs or choices. requests: function from the open engine to the
    requests, which may depend on it. spec: function from the open engine to the fields of `Spec`
    that the task sets. judges: the judges of the replies, in the order of their columns. sampling:
    how replies are sampled. pack: the content of the pack's file, if it is the user's own.
    """

    items: Sequence[Statement]
    requests: Callable[[Any], Sequence[Any]]
    spec: Callable[[Any], Mapping[str, Any]]
    judges: Sequence[Judge] = ()
    sampling: Sampling = field(default_factory=Sampling)
    pack: bytes = b""


@dataclass(frozen=True)
class Table:
    """How a report shows runs of a task: the main table of their section.

    kind: its unique name. title: its heading. lead: what the figures mean, in a sentence. main: the
    measures. across: columns of the outcomes whose values become columns of the table. rows:
    columns of the outcomes, of which the first with several values gives the rows, else the last.
    place: its position on the page, low numbers first. headline: the main measure that is told
    first; "" for the first of `main`. replies: what the units are called. read: the column that the
    main measures count, and the judge that fills it.
    """

    kind: str
    title: str
    lead: str
    main: tuple[str, ...]
    across: tuple[str, ...] = ()
    rows: tuple[str, ...] = ("lang",)
    place: int = 50
    headline: str = ""
    replies: str = "replies"
    read: tuple[str, str] = ("", "")

    @property
    def ranked(self) -> list[str]:
        """Return the main measures, the headline first."""
        return sorted(self.main, key=lambda name: name != self.headline)


@dataclass(frozen=True, kw_only=True)
class Task:
    """The declaration of a task.

    name: of the command and of its file. about: one line. prepare: checks an Ask before anything
    slow starts. judges: decode -> names of the judges that read its replies. also: further judges
    that can read a run later. questions: question for reviewers -> (judge, field of the judgment
    with the answer; None for the label); the first of these judges that has judged the run counts.
    tables: how reports show runs. kind_of: function from a run to the kind of its table. asked:
    what the model was asked, as a sentence with {statements}, {languages}, {probes}. probe, thing,
    unit: what a question, an item and a reply are called. scores: whether texts are scored instead
    of answered. whole: whether all replies about an item form one unit, which reviewers read
    together. sampling, samples: defaults for `Ask`. paradigm: `says` or `prefers`, for tasks that
    can be compared item by item. may_differ: fields of the spec in which such runs may differ. row:
    columns that identify an item in such a comparison. rows: what one row of the outcomes is, with
    its further columns. second: what a second reader reads. after: called with run, engine and note
    at the end.
    """

    name: str
    about: str
    prepare: Callable[[Ask], Asked]
    judges: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    questions: Mapping[str, tuple[tuple[str, str | None], ...]] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    kind_of: Callable[[Run], str] | None = None
    asked: str = "asked about {statements} in {languages}"
    probe: str = "probe"
    thing: str = "statement"
    unit: str = "reply"
    scores: bool = False
    whole: bool = False
    sampling: Sampling = field(default_factory=Sampling)
    samples: int = 1
    paradigm: str = ""
    may_differ: tuple[str, ...] = ()
    row: tuple[str, ...] = ()
    rows: columns.Unit = columns.REPLY
    second: Second | None = None
    after: Callable[[Run, Any, Note], None] | None = None

    def table(self, run: Run) -> Table:
        """Return how a run of the task is shown."""
        kind = self.kind_of(run) if self.kind_of else self.tables[0].kind
        return next(one for one in self.tables if one.kind == kind)


def find(name: str) -> Task:
    """Return the task with this name.

    Raises InputError, with the nearest name, if there is none.
    """
    task: Task = registry.module("tasks", name).TASK
    return task


columns.declare(functools.partial(registry.names, "tasks"), lambda name: find(name).rows)


@functools.cache
def every() -> tuple[Task, ...]:
    """Return all tasks, in the order of their tables on a page."""
    found = [find(name) for name in registry.names("tasks")]
    return tuple(sorted(found, key=lambda task: min([t.place for t in task.tables], default=99)))


def of(spec: Spec) -> Task:
    """Return the task that made a run. Raises InputError for an unknown task."""
    return find(spec.command)


def run(task: str | Task, ask: Ask, opened: Callable[..., Any] | None = None) -> notebook.Run:
    """Plan the requests, ask the model and judge its replies.

    opened: opens the engine; None for `open_engine`. Returns the run, closed. Raises
    GenprobeError.
    """
    task = find(task) if isinstance(task, str) else task
    options = served(ask.engine, ask.model, dataclasses.replace(ask.options, note=ask.note))
    ask = dataclasses.replace(ask, options=options)
    asked = prepare(task, ask)
    free = task.second is not None and (not ask.decodes or "free" in ask.decodes)
    if (ask.second_reader or ask.ask_again) and not free:
        raise InputError(f"a run of {task.name} without free replies leaves nothing to read again")
    if ask.second_reader and ask.second_reader == ask.model:
        raise InputError(
            f"--second-reader {ask.model}: is the model under test, which would read its own "
            "replies; name another"
        )
    settings = second.options_for(ask.second_reader, options) if ask.second_reader else options
    there = task.rows.possible(asked.items) if ask.by else []
    for column in ask.by:
        if column not in there:
            raise registry.unknown("column", column, there)
    engine = (opened or open_engine)(ask.engine, ask.model, options, task.scores)
    try:
        requests = asked.requests(engine)
        if hasattr(engine, "prepare"):
            engine.prepare(requests, asked.sampling)
        languages = tuple(dict.fromkeys(item.lang for item in asked.items))
        recorded = engine.identity.engine == "replay"
        packages = registry.module("engines", engine.identity.engine).PACKAGES
        fields = {
            **dataclasses.asdict(engine.identity),
            "statements": statements_hash(asked.items),
            **sets.facts(ask.data, [item.source for item in asked.items]),
            "languages": languages,
            "limit": ask.limit,
            "packages": {} if recorded else versions(packages),
            "version": __version__,
            **asked.spec(engine),
        }
        spec = Spec(command=task.name, **fields)
        if ask.like and (differs := like.apart(ask.like.spec, spec)):
            ask.note(f"not like {ask.like.folder}: {differs}")
        folder = Path(ask.out) if ask.out else Path("runs") / folder_name(spec)
        with notebook.Run.start(folder, spec, asked.items, requests, asked.pack) as found:
            generate.ask(found, engine, asked.sampling, ask.note, ask.progress, ask.pilot)
            if ask.pilot is not None:
                return found
            if asked.judges:
                judge_run(found, asked.judges, ask.progress)
            if ask.ask_again and task.second:
                by_rules = next(j for j in asked.judges if j.name == task.second.fills)
                second.ask_again(found, task.second, engine, by_rules, ask.progress)
            if task.after:
                task.after(found, engine, ask.note)
    finally:
        engine.close()
    if ask.second_reader and task.second and second.left_open(found, task.second):
        with second.reader(ask.second_reader, settings, "auto", task.second.rubric) as judge:
            second.read(found, task.second, judge, progress=ask.progress)
    return found


def planned(task: str | Task, ask: Ask) -> list[Request]:
    """Plan the requests that a run would send, without opening an engine.

    Raises InputError as `run` does.
    """
    task = find(task) if isinstance(task, str) else task
    return list(prepare(task, ask).requests(None))


# The fields of an Ask that may be given beside a run whose questions are asked again.
_FREE = frozenset(
    (
        *("model", "engine", "options", "out", "by", "classifier", "second_reader", "ask_again"),
        *("like", "pilot", "note", "progress"),
    )
)


def ask_like(task: str, ask: Ask, folder: Any) -> Ask:
    """Fill an Ask with what the run in a folder asked (`pipeline.like`).

    Raises InputError if it is a run of another task, or the Ask says otherwise.
    """
    run = Run.open(folder)
    spec = run.spec
    if spec.command != task:
        cure = f"genprobe {spec.command} --like {run.folder}"
        raise InputError(f"{run.folder}: is a run of {spec.command}; `{cure}` asks its questions")
    sampling, unknown = like.sampled(spec, ask.sampling or find(task).sampling)
    for one in dataclasses.fields(Ask):
        value = getattr(ask, one.name)
        given = value != one.default and one.name not in _FREE
        if given and not (one.name == "sampling" and unknown):
            raise InputError(f"{one.name}: {run.folder} says it (--like); leave it out")
    model, options = like.whom(run, ask.model, ask.options)
    scored = spec.decode == ("score",)
    if unknown and not scored and ask.engine != "replay":
        said = ", ".join(f"{name} {getattr(sampling, name):g}" for name in unknown)
        ask.note(Caution(f"{run.folder}: does not say how replies were sampled; now: {said}"))
    return dataclasses.replace(
        ask,
        model=model,
        options=options,
        like=run,
        data=run.folder / "statements.jsonl",
        langs=spec.languages,
        probes=spec.probes,
        decodes=tuple(dict.fromkeys(request.decode for request in run.requests())),
        sampling=sampling,
        samples=spec.samples,
        seed=spec.seed,
    )


def prepare(task: Task, ask: Ask) -> Asked:
    """Check an Ask: as its task does, or with the questions of the run that it is like."""
    if ask.like is None:
        return task.prepare(ask)
    run, old = ask.like, ask.like.spec
    items, asked = list(run.statements()), like.questions(run)
    if statements_hash(items) != old.statements:
        raise InputError(f"{run.folder}/statements.jsonl: was edited after it was asked from")
    greedy = bool(task.judges) and not (ask.sampling or task.sampling).temperature
    if old.samples > 1 and greedy and ask.engine != "replay":
        raise InputError(
            f"{old.samples} samples at temperature 0 are {old.samples} times the same reply; "
            "raise --temperature"
        )
    if ask.control and ask.thinks and not old.thinking:
        raise InputError("--thinking: the control model thinks only as its run did; leave it out")
    names = [name for decode in ask.decodes for name in task.judges.get(decode, ())]
    there = run.judges()  # such as a sentiment classifier that its language lacks
    names = [name for name in dict.fromkeys(names) if not there or name in there]
    judges = make(names, classifier=ask.classifier) if names else []

    def requests(engine: Any) -> Sequence[Request]:
        lacking = {request.probe for request in asked} - {*getattr(engine, "passes", ())}
        if task.scores and lacking:
            raise InputError(
                f"{run.folder}: scored its texts by {', '.join(sorted(lacking))}, which this model "
                f"cannot; it can {', '.join(engine.passes)}"
            )
        return asked

    def spec(engine: Any) -> dict[str, Any]:
        recorded = engine.identity.engine == "replay"
        found = like.fields(old, ask.decodes, None if task.scores else ask.sampling, recorded)
        if task.scores:
            turn = {name: v for name, v in old.engine_args.items() if name == "turn"}
            if turn and engine.identity.chat_template != old.chat_template:
                raise InputError(
                    f"{run.folder}: its texts stand in the chat template of {old.model}, and this "
                    "model has another; ask it with --data instead"
                )
            found["engine_args"] = {"first": engine.first, **turn}
        return found

    own = run.folder / seal.PACK
    pack = door.content(own) if own.exists() else b""
    return Asked(items, requests, spec, judges, ask.sampling or task.sampling, pack)


def chat(
    ask: Ask,
    task: Task,
    items: Sequence[Statement],
    judges: Sequence[Judge],
    probes: Sequence[str] = (),
) -> Asked:
    """Check a task that asks a model in chat about statements, with the wordings of a pack.

    items: the statements, as loaded. judges: the judges of the replies. probes: the questions to
    use if the Ask names none; empty means all of the pack.
    """
    pack = packs.read_own(Path(ask.pack)) if ask.pack else packs.load_pack(task.name)
    items = chosen(items, ask, pack)
    for name in ask.probes:
        if name not in pack.probes:
            raise registry.unknown(task.probe, name, list(pack.probes))
    asked = [p for p in pack.probes if p in ask.probes] or list(probes or pack.probes)
    for judge in judges:
        fits = getattr(judge, "fits", lambda probe: True)
        for name in asked:
            if not fits(pack.probes[name]):
                raise InputError(
                    f"the judge {judge.name} cannot read the replies to the probe {name!r} of "
                    f"{pack.id}; leave it out (--probe), or say in its pack.toml how it is read"
                )
    sampling, samples = ask.sampling or task.sampling, ask.samples or task.samples
    if samples > 1 and not sampling.temperature and ask.engine != "replay":
        raise InputError(
            f"{samples} samples at temperature 0 are {samples} times the same reply; raise "
            "--temperature"
        )
    requests = plan.plan(
        items,
        pack,
        asked,
        ask.seed,
        samples,
        ask.decodes,
        ask.vary,
        ask.system,
        ask.thinks,
    )

    def spec(engine: Any) -> dict[str, Any]:
        recorded = engine.identity.engine == "replay"
        drawn: dict[str, Any] = dataclasses.asdict(sampling)
        if recorded:  # nobody knows how recorded replies were sampled
            drawn = dict.fromkeys(drawn)
        languages = dict.fromkeys(item.lang for item in items)
        return {
            "pack": pack.id,
            "pack_hashes": panel.hashes(pack, languages, ask.vary),
            **ask.vary.fields(),
            "data": ask.called,
            "probes": tuple(asked),
            "decode": ("recorded",) if recorded else tuple(ask.decodes),
            **drawn,
            "seed": ask.seed,
            "samples": samples,
            "system": digest(ask.system, 12) if ask.system else "",
        }

    return Asked(items, lambda engine: requests, spec, judges, sampling, pack=pack.own)


def chosen(items: Sequence[Statement], ask: Ask, pack: packs.Pack) -> list[Statement]:
    """Keep the items in the requested languages, at most `ask.limit` of each."""
    codes = ask.codes
    langs = {s.lang for s in items}
    without = sorted(lang for lang in langs if packs.first_of(lang) not in pack.wordings)
    if without:
        ask.note(
            Caution(
                f"no wordings in {', '.join(without)}: statements in these languages are left out"
            )
        )
    count: dict[str, int] = {}
    kept = []
    for item in items:
        if item.lang in without or (codes and item.lang not in codes):
            continue
        count[item.lang] = count.get(item.lang, 0) + 1
        if ask.limit is None or count[item.lang] <= ask.limit:
            kept.append(item)
    missing = [code for code in codes if code not in count]
    if missing or not kept:
        raise InputError(f"no statements in {', '.join(missing) or 'any language of the pack'}")
    return kept


def judge_run(
    run: Run,
    judges: str | Judge | Sequence[Judge | str] = (),
    progress: Progress = quiet,
) -> dict[str, int]:
    """Judge the replies of a run again.

    judges: objects or names. Returns judge name -> number of judgments. Raises InputError for the
    judge `yesno` on a run without yes/no questions.
    """
    made = make(judges)
    own = of(run.spec).judges
    reads = {name for names in own.values() for name in names}
    if own and "yesno" not in reads and any(judge.name == "yesno" for judge in made):
        names = " or ".join(f"--judge {name}" for name in dict.fromkeys(own.get("free", ())))
        raise InputError(
            f"{run.folder} is a run of {run.spec.command}, whose replies answer no yes/no "
            "question; "
            f"name {names}"
        )
    if len(run.spec.decode) == 1 and run.spec.decode[0] in DECODES:
        answers = run.count("responses") + run.count("logprobs")
        total = answers * sum(run.spec.decode[0] in judge.reads for judge in made)
    else:
        decodes = Counter(request.decode for request in run.requests())
        if len(decodes) > 1:
            decodes = Counter(request.decode for request, _ in run.exchanges())
        else:
            decodes = Counter(
                dict.fromkeys(decodes, run.count("responses") + run.count("logprobs"))
            )
        total = sum(n for decode, n in decodes.items() for judge in made if decode in judge.reads)
    done = 0

    def step(_: str) -> None:
        nonlocal done
        done += 1
        progress("reading", done, total)

    return judging.judge(run, made, step)


def folder_name(spec: Spec) -> str:
    """Make a readable name for a run's folder. Every spec has its own, so that runs can resume."""
    names = [spec.model.rstrip("/").rsplit("/", 1)[-1] or "model", spec.checkpoint]
    model = "-".join(re.sub(r"[^\w.-]+", "-", name)[:40] for name in names if name)
    langs = "-".join(spec.languages) if len(spec.languages) < 4 else f"{len(spec.languages)}-langs"
    return f"{spec.command}-{model}-{langs}-{spec.hash[:8]}"
