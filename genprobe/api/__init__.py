"""The commands as Python functions, such as `genprobe.yesno(…)` and `genprobe.judge(rows)`.

Each takes the options of its command as keywords, by the same names, and a table wherever the
command takes a file: a frame, an Arrow table, a data set, a list of dicts, a path
(`files.rows.rows_of`). It returns tables or runs, prints nothing, writes nothing but to the paths
that it is given, and raises GenprobeError, in one line. The command line calls these functions.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import numbers
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from genprobe import files, tasks
from genprobe.api.served import Served, options_of, shown
from genprobe.engines import Options, Sampling
from genprobe.errors import Caution, InputError
from genprobe.files import disk
from genprobe.files.rows import Row, Rows, Table, rows_of, sources_of
from genprobe.logs import ASKED, Log
from genprobe.render.notebook import Run
from genprobe.render.scores import Scores
from genprobe.resources import registry
from genprobe.tasks import Ask
from genprobe.tasks.pipeline import Note, Progress, quiet
from genprobe.text import many

if TYPE_CHECKING:
    from genprobe.analysis.gate import Verdict
    from genprobe.judges import Judge
    from genprobe.judges.llm import LLMJudge

Names = str | Sequence[str]  # one name, or several
DRAWN = ("temperature", "top_p", "max_tokens")

# --- asking a model


class _Asked(Served, total=False):
    """What every task reads."""

    langs: Names
    data: Any
    like: Any
    limit: int | None
    seed: int
    out: str | Path | None
    by: Names
    note: Note
    progress: Progress


class _Chat(_Asked, total=False):
    """What the tasks read that ask a model in chat."""

    probes: Names
    wordings: str
    personas: str
    samples: int | None
    sampling: Sampling | None
    temperature: float | None
    top_p: float | None
    max_tokens: int | None
    system: str
    second_reader: str


class _Stories(_Chat, total=False):
    classifier: str | None


class _Essays(_Chat, total=False):
    instruct: Names


class _YesNo(_Essays, total=False):
    pack: str | Path
    decodes: Names
    ask_again: bool


class _Choices(_Essays, total=False):
    decodes: Names
    ask_again: bool
    orders: str
    shots: str | Path | None
    unknowns: bool


class _LogProb(_Asked, total=False):
    scorers: Names
    context: str
    prefix: str
    plain: bool
    chat: bool
    preprocess: str


@shown(_YesNo)
def yesno(model: str | None = None, **asked: Unpack[_YesNo]) -> Run:
    """Ask a model yes/no questions about statements and judge its replies.

    model: an alias, a hub id or a folder (for `replay`: a run or file of recordings); None means
    the control model, or the only model of a server. data: `builtin`, `shades`, or a table of
    statements. langs, probes: if empty, all languages of the data and all probes of the pack. pack:
    the file of a pack of your own. wordings, personas, instruct: how a question varies
    (`published`, `all` or N; `none`, `all` or N; `own`, `en` or both). decodes: `free`, `choice`,
    `logprob`. limit: the largest number of statements of each language. sampling: how replies are
    drawn, or temperature, top_p and max_tokens. options: of the engine, or its parts: base_url,
    thinking, think_tokens, headers, … out: the run folder, which the same call resumes; None means
    a name derived from the settings. by: columns by which the outcomes will be split; impossible
    ones are refused before the model is loaded. like: a run, whose questions are asked again as
    they stand in its folder, of its model if none is named. second_reader: a model that reads what
    the rules leave open. ask_again: also ask the model again about it. note: called with messages.
    progress: called with (step, number done, total). Returns the run, closed, with its judgments.
    """
    return tasks.run("yesno", ask_of("yesno", model, asked))


@shown(_Stories)
def stories(model: str | None = None, **asked: Unpack[_Stories]) -> Run:
    """Ask a model for stories about templates with an open slot; check them, read their sentiment.

    As in Aqbileq 4.2: five stories per template, each with its own seed. langs: Kazakh if empty.
    data: `builtin`, or a table of templates. probes: wordings of the pack, `published` if empty.
    classifier: card of a sentiment classifier; None means the default of each language. The other
    arguments are those of `yesno`.
    """
    return tasks.run("stories", ask_of("stories", model, asked))


@shown(_Essays)
def essays(model: str | None = None, **asked: Unpack[_Essays]) -> Run:
    """Ask a model for essays, reasons and remarks about statements; read which side they take.

    As in SHADES 4.2.2 and Appendix I, with its sampling. probes: frames of the pack, all if empty.
    The other arguments are those of `yesno`.
    """
    return tasks.run("essays", ask_of("essays", model, asked))


@shown(_Choices)
def choices(model: str | None = None, **asked: Unpack[_Choices]) -> Run:
    """Ask a model questions with options (BBQ's layout); read which one it chooses.

    data: `bbq`, or a table of choices. probes: frames, `letters` if empty. orders: `all` orders of
    the options, a `balanced` rotation, or `given`. shots: a file of examples. unknowns: also ask
    without the unknown option, and with it in other words (`datasets.choices.unknowns`). The other
    arguments are those of `yesno`.
    """
    return tasks.run("choices", ask_of("choices", model, asked))


@shown(_LogProb)
def logprob(model: str | None = None, **asked: Unpack[_LogProb]) -> Run:
    """Score pairs of sentences, or choices, by their log-probability under a model.

    data: as in `datasets.pairs.load`, or a table of pairs or choices. scorers: of `genprobe list
    scorers`; if empty, those that fit model and data. context: text before every sentence of a
    pair; for an encoder-decoder model the encoder's prompt. prefix: a word put before every
    sentence of a table. plain: score a chat model without its template. chat: score the text as the
    beginning of the model's turn in its template. preprocess: `rubia`. limit: the largest number of
    pairs or choices of each language. engine: transformers; vllm and openai (a running vLLM server)
    only for causal models; auto means openai if `base_url` names a server, else transformers.
    """
    return tasks.run("logprob", ask_of("logprob", model, asked))


def ask_of(task: str, model: str | None, given: Mapping[str, Any]) -> Ask:
    """Turn the keywords of a task into an `Ask`. Raises InputError for an unknown one."""
    from genprobe.tasks.pipeline.open import served, system_text

    asked = dict(given)
    known = {f.name for f in dataclasses.fields(Ask)}
    for name in asked:
        if name not in {*known, *DRAWN, *Served.__annotations__}:
            raise registry.unknown("argument", name, sorted(known | {*DRAWN}))
    options = dataclasses.replace(options_of(asked), note=asked.get("note", quiet))
    drawn = {n: v for n in DRAWN if (v := asked.pop(n, None)) is not None}
    if drawn:
        sampling = asked.get("sampling") or tasks.find(task).sampling
        asked["sampling"] = dataclasses.replace(sampling, **drawn)
    asked["system"] = system_text(asked.get("system"))
    options = served(asked.get("engine", "auto"), model, options)
    like = asked.pop("like", None)
    ask = Ask(model=model, options=options, **asked)
    return ask if like is None else tasks.ask_like(task, ask, like)


# --- reading replies


def read(reply: str, *, judge: str = "yesno", **columns: Any) -> Row:
    """Read one reply, and return what `judge` adds to its row: `answer`, `kind`, `evidence`, …

        genprobe.read("Жоқ, келіспеймін.", lang="kk", probe="agreement")["answer"]

    columns: what else the judge needs or uses, such as lang, probe (or reads), prompt, options,
    reasoning. Raises InputError if it lacks something.
    """
    row = {**columns, "response": reply}
    [found] = _judged(Rows([row], "reply"), [judge])
    unknown = {name for name in ASKED if found.get(name) is None}
    return {name: value for name, value in found.items() if name not in unknown | row.keys()}


@shown(Served)
def judge(
    source: Any,
    judges: str | Judge | Sequence[Judge | str] = (),
    *,
    parser: str | None = None,
    classifier: str | None = None,
    kind: str | None = None,
    second_reader: str | None = None,
    only: Names = (),
    rubric: str | None = None,
    gold: str | None = None,
    mapped: Names | Mapping[str, str] = (),
    encoding: str = "",
    out: str | Path | None = None,
    note: Note = quiet,
    progress: Progress = quiet,
    **served: Unpack[Served],
) -> Rows:
    """Read the replies of a table, of a log of another harness, or of a run.

    source: a run, whose judgments are written to its folder; a log of another harness (a file, a
    folder, a pattern, or `-` for standard input; `genprobe.logs`); or a table with `response`, to
    read yes/no answers also `lang` and `probe` (or `reads`: stance, stereotype or question, which
    beats it), and `prompt`, which a plain question needs. A prompt in the words of a pack tells
    language, probe and statement by itself. judges: names of `genprobe list judges`, or
    objects; `yesno` if empty. parser, classifier, kind: of the judges yesno and sentiment.
    second_reader: a chat model that reads what the rules leave open, at the server of base_url if
    there is one; only: kinds of replies for it. rubric: it reads every reply by this rubric. gold:
    a column of labels that people gave; `note` is told how often they agree, or a harness's own.
    mapped: our column -> the column of the table, such as {"response": "Antwort"}. encoding: of a
    text that is not in UTF-8. out: what to write instead of keeping the rows in memory: a file,
    JSONL, CSV or Parquet by suffix; any other name is the folder of a run of the replies.

    Returns the rows in their order, with the judges' columns after their own (an input column of
    the same name is kept as `<name>_data`), and null where there is no reply; of a run, its
    judgments. Raises InputError, with all rows that cannot be judged.
    """
    from genprobe.judges import make

    kept = out is not None and str(out) != "-" and Path(out).suffix.lower() not in files.SUFFIXES
    table = rows_of(source, streamed=out is not None and not kept)
    asked = dict(served)
    engine = asked.pop("engine", "auto")
    options = dataclasses.replace(options_of(asked), note=note)
    only = registry.listed(only, "only")
    second = bool(second_reader or options.base_url)
    if second and judges:
        raise InputError("--judge and --second-reader: first the judge, then the second reader")
    if (only or rubric) and not second:
        raise InputError("--only and --rubric are for a second reader; name it: --second-reader")
    model = (second_reader, options, str(engine)) if second else None
    found = [] if model else make(judges, parser=parser, classifier=classifier, kind=kind)
    if isinstance(table, Path) and (table / "run.json").is_file():
        of_files = {"-o": out, "--gold": gold, "--map": mapped, "--encoding": encoding}
        for option in (name for name, value in of_files.items() if value):
            cure = "judgments of a run are written to its folder"
            if option == "--gold":
                cure = "people label the replies of a run with `genprobe review export`"
            raise InputError(f"{option} can be used only with a file or log; {cure}")
        return _judge_run(table, found, model, only, rubric, note, progress)
    if kept and gold:
        raise InputError("--gold needs a table: give -o a name that ends in .jsonl or .csv")
    with Log(table, _renamed(mapped), encoding) as log:
        if kept and out is not None:
            own = found if judges or model else None
            return _judge_log(log, Path(out), own, model, only, rubric, note, progress)
        with _reader(model, rubric or "answer") as reader:
            if reader is not None:
                found = [reader]
            return _judge_table(log, found, only, rubric, gold, out, note, progress)


def _renamed(mapped: Names | Mapping[str, str]) -> dict[str, str]:
    """Read --map: our column -> theirs. Raises InputError if a column is named twice."""
    if not isinstance(mapped, Mapping):
        parts = ",".join(registry.listed(mapped, "mapped")).split(",") if mapped else []
        pairs = []
        for part in parts:
            ours, _, theirs = (word.strip() for word in part.partition("="))
            pairs.append((ours, theirs))
            if not (ours and theirs):
                raise InputError(f"--map {part}: write OURS=YOURS, such as response=Antwort")
    else:
        pairs = [(str(ours), str(theirs)) for ours, theirs in mapped.items()]
    for side in zip(*pairs, strict=True):
        for name in side:
            if side.count(name) > 1:
                raise InputError(f"--map names the column {name!r} twice; a column is one of ours")
    return dict(pairs)


# The name of a second reader, the settings of its engine, and the engine.
_Reader = tuple[str | None, Options, str] | None


@contextlib.contextmanager
def _reader(model: _Reader, rubric: str) -> Iterator[LLMJudge | None]:
    from genprobe.tasks.pipeline import second

    if model is None:
        yield None
        return
    with second.reader(*model, rubric) as judge:
        yield judge


def _judge_run(
    folder: Path,
    judges: list[Judge],
    model: _Reader,
    only: Sequence[str],
    rubric: str | None,
    note: Note,
    progress: Progress,
) -> Rows:
    """Judge the replies of a run; its judgments are read from its folder when they are used."""
    from genprobe.analysis.second import told
    from genprobe.tasks.pipeline import second

    with Run.open(folder) as run:
        if model is None:
            counts = tasks.judge_run(run, judges, progress)
        else:
            own = tasks.of(run.spec).second
            if own is None:
                raise InputError(f"{folder}: a run of {run.spec.command} has no replies to read")
            with second.reader(*model, rubric or own.rubric) as judge:
                if rubric and not only:
                    second.need_another(run.spec, judge.identity)
                    counts = tasks.judge_run(run, [judge], progress)
                else:
                    counts = {judge.name: second.read(run, own, judge, only, progress)}
                for line in (*told(run), f"{judge.name}: {judge.bias}"):
                    note(line)
    for name, count in counts.items():
        note(f"{folder}/judgments/{name}.jsonl: {many(count, 'judgment')}")
    return Rows(lambda: (vars(one) for name in counts for one in run.judgments(name)), str(folder))


def _judge_log(
    log: Log,
    folder: Path,
    judges: list[Judge] | None,
    model: _Reader,
    only: Sequence[str],
    rubric: str | None,
    note: Note,
    progress: Progress,
) -> Rows:
    """Make runs of the replies of a log, and judge them. judges: None for those of its task."""
    from genprobe.judges import make
    from genprobe.tasks.pipeline import logged

    parts = []
    for run in logged.keep(log, folder, note):
        own = make(tasks.of(run.spec).judges["free"]) if judges is None else judges
        parts.append(_judge_run(run.folder, own, model, only, rubric, note, progress))
        for line in logged.beside(run):
            note(Caution(line))
    return Rows(lambda: itertools.chain.from_iterable(parts), str(folder))


def _judge_table(
    log: Log,
    judges: list[Any],
    only: Sequence[str],
    rubric: str | None,
    column: str | None,
    out: str | Path | None,
    note: Note,
    progress: Progress,
) -> Rows:
    """Judge the rows of a table or log, and tell how many got which label."""
    from genprobe.tasks.pipeline import second
    from genprobe.tasks.pipeline.gold import THEIRS, Gold

    gold = Gold(column or THEIRS) if column or log.harness else None
    if any(hasattr(judge, "bias") for judge in judges):
        only = only or (() if rubric else second.OPEN)
    found = _judged(log, judges, out, progress, note, only, gold)
    for line in _cautions(judges):
        note(Caution(f"caution: {line}"))
    for name, labels in found.counts.items():
        replies = many(sum(labels.values()), "reply")
        which = f"{replies} of the kind {', '.join(only)}" if only else replies
        ordered = sorted(labels.items(), key=lambda pair: -pair[1])
        parts = ", ".join(f"{label} {n}" for label, n in ordered)
        note(f"{name}: {which}: {parts}" if parts else f"{name}: {which}")
    for line in gold.lines(judges[0].name) if gold and (column or gold.counted) else ():
        note(Caution(line))
    for judge in judges:
        if hasattr(judge, "bias"):
            note(f"{judge.name}: {judge.bias}")
    return found


def _judged(
    table: Table | Log,
    judges: Sequence[Judge | str],
    out: str | Path | None = None,
    progress: Progress = quiet,
    note: Note = quiet,
    only: Sequence[str] = (),
    gold: Any = None,
) -> Rows:
    """Judge the rows of a table or log, into memory or a file, and count the labels."""
    from genprobe.judges import make
    from genprobe.tasks.pipeline.judge import judge_file, judged_rows

    if out is not None:
        written = judge_file(table, judges, out, progress, note, only, gold)
        return Rows(lambda: files.read_rows(out), str(out), written)
    judges = make(judges)
    counts: dict[str, dict[str, int]] = {judge.name: Counter() for judge in judges}
    rows = list(judged_rows(table, judges, counts, progress, note, only, gold))
    return Rows(rows, counts=counts)


def _cautions(judges: Sequence[Any]) -> Iterator[str]:
    """Yield cautions about the measured accuracy of the judges of stories and essays."""
    from genprobe.resources import measured

    for judge in judges:
        if judge.name == "refusal":
            yield from filter(None, [measured.caution(judge.name, ())])
        yield from getattr(judge, "cautions", ())


# --- comparing, and showing


def compare(
    first: Any,
    others: Any = (),
    *,
    test: str = "paired",
    between: Names = (),
    metrics: Names = (),
    by: Names = (),
    power: float | None = None,
    reviewed: str | Path | None = None,
    paradigms: bool = False,
    wide: bool = False,
    note: Note = quiet,
) -> Scores:
    """Compare models: item by item, or by another test (`analysis.compare.compare`).

    first, others: runs, tables of judged replies and logs, one by one or in a list. Of a table with
    a column `model`, each model is compared with the first. paradigms: compare what models say with
    what they prefer, in runs of `yesno` (or `choices`) and `logprob` (`analysis.paradigm_runs`).
    wide: display the values of the last column of `by` side by side, one table for each figure. The
    other arguments and errors are those of `analysis.compare.compare`; `rankings` of the scores has
    the models in order, with ties.
    """
    from genprobe.analysis import compare as side_by_side
    from genprobe.analysis.paradigm_runs import paradigms as said_and_preferred

    if paradigms and metrics:
        raise InputError("--metric cannot be used with --paradigms, which has its own measures")
    plain = not between and power is None and test == "paired"
    if paradigms and not plain:
        raise InputError("--test, --between and --power cannot be used with --paradigms")
    if reviewed is not None and paradigms:
        raise InputError("--reviewed cannot be used with --paradigms")
    if paradigms:
        found = said_and_preferred(sources_of(first, others), by=by, note=note)
    else:
        found = side_by_side.compare(
            first,
            others,
            test=test,
            between=between,
            metrics=metrics,
            by=by,
            power=power,
            reviewed=reviewed,
            note=note,
        )
    found.wide = wide
    return found


def gate(
    new: Any,
    *,
    against: Any,
    max_rise: Mapping[str, float] | None = None,
    max_fall: Mapping[str, float] | None = None,
    max_flips: float | None = None,
    again: Any = None,
    by: Names = (),
) -> Verdict:
    """Test whether a new version of a model is not worse than the old one, by given margins.

    new, against: the runs of the two, or tables of judged replies, of one model each. max_rise,
    max_fall: metric -> by how many points its figure may rise, or fall, such as {"endorsed": 12};
    refusal, unclear and failed have limits anyway. max_flips: how many answers, in %, may change
    beyond those that change when a model is asked again; again: a second run of the old version,
    which shows that. by: columns of which each cell is tested, too.

    Returns the verdict: `.verdict` is `not worse`, `worse` or `undecided`; `.checks`, `.lines()`,
    `.json()`. Raises InputError for a margin that the data cannot show.
    """
    from genprobe.analysis.gate import gate as test

    limits = [_shares(n, v) for n, v in (("max_rise", max_rise), ("max_fall", max_fall))]
    if not any(limits) and max_flips is None:
        raise InputError("no limit is given; add --max-rise METRIC=POINTS, such as endorsed=12")
    return test(
        rows_of(new, "new"),
        rows_of(against, "against"),
        *limits,
        by=registry.listed(by, "by"),
        most_flips=None if max_flips is None else max_flips / 100,
        again=None if again is None else rows_of(again, "again"),
    )


def _shares(name: str, points: Mapping[str, float] | None) -> dict[str, float]:
    """Turn limits in points into shares."""
    limits = {} if points is None else points
    if not isinstance(limits, Mapping) or not all(
        isinstance(metric, str) and isinstance(most, numbers.Real)
        for metric, most in limits.items()
    ):
        raise InputError(f'{name}: give a dict of metrics and points, such as {{"endorsed": 12}}')
    return {metric: most / 100 for metric, most in limits.items()}


def report(
    runs: Any,
    out: str | Path | None = None,
    *,
    figures: str | Path | None = None,
    redact: bool | str = False,
    reviewed: str | Path | None = None,
    page_lang: str = "en",
    note: Note = quiet,
) -> str:
    """Make a page: what was measured, the figures, the replies. Returns it as text.

    runs: runs, tables of replies and logs, one or several. Replies of a table that are judged are
    shown as they were; others are read by the judges of `genprobe yesno`. out: the file to write it
    to, which is replaced as a whole. figures: a folder for what a paper needs: figures as SVG and
    PDF, their data as CSV, wide tables and a paragraph about the methods in LaTeX and Markdown.
    redact: leave out statements, prompts, replies and evidence, and name items and bias types by a
    hash; a text is its salt. reviewed: a table of `review import`; rates are shown corrected by it,
    too. page_lang: the language of the page's own words (prompts/page). note: called with cautions,
    and with the names of the files. Raises InputError or RunError if something is neither a run nor
    a table of replies, or cannot be
    written.
    """
    from genprobe.analysis.sources import as_runs
    from genprobe.report import check, render
    from genprobe.report.sources import salt

    if out is not None:
        check(Path(out))
    salted = salt(redact) or False  # the same names on the page and in its figures
    with as_runs(runs, note) as folders:
        page = render(
            folders, redact=salted, reviewed=reviewed, paper=figures, page_lang=page_lang, note=note
        )
        if out is not None:
            disk.replace(Path(out), [page], encoding="utf-8")
            note(f"report: {out}")
        if figures is not None:
            from genprobe.report.figures import draw

            for path in draw(folders, Path(figures), redact=salted, reviewed=reviewed, note=note):
                note(f"figure: {path}")
    return page


def merge(runs: Any, out: str | Path, *, note: Note = quiet) -> Run:
    """Put pieces of a run, made on several machines, together to one run. Returns it.

    They asked the same model in the same way, each about its own statements, or each a part of one
    plan. out: a new folder. note: called with what is left out. Raises RunError if they do not fit
    together.
    """
    from genprobe.analysis.sources import runs_of
    from genprobe.runs.merge import merge

    merge(runs_of(runs), out, note)
    return Run.open(out)


# --- data


def describe(
    data: Any, *, langs: Names = (), figures: str | Path | None = None, note: Note = quiet
) -> Rows:
    """Count statements, pairs, templates or choices by their annotations.

    data: `builtin`, `shades`, `templates`, or a table. figures: a folder for drawings of the
    counts. note: called with what is missing,
    duplicated or odd. Returns rows of table, value, n, of (the number of all), and
    across, if columns are crossed.
    """
    from genprobe.datasets import describe as counting

    source = data if isinstance(data, str) else rows_of(data, "data")
    found, notes = counting.describe(source, registry.listed(langs, "langs"))
    for line in notes:
        note(line)
    if figures is not None:
        from genprobe.report import counted

        for path in counted.draw(found, str(source), Path(figures)):
            note(f"figure: {path}")
    return Rows([{n: v for n, v in vars(count).items() if v != ""} for count in found], "counts")
