"""The command line: parse, call, print. Results go to stdout, all else to stderr.

A GenprobeError is one line and exit code 2. Nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from genprobe._version import __version__
from genprobe.errors import GenprobeError, InputError
from genprobe.text import many

if TYPE_CHECKING:
    from genprobe.records import Score

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def main() -> None:
    """Entry point: every error that is a user's to mend becomes one line."""
    traceback = "-v" in sys.argv[1:] or "--verbose" in sys.argv[1:]
    try:
        if sys.stdout is None:
            raise InputError("standard output is closed; send it to a file or to /dev/null")
        code = cli.main(prog_name="genprobe", standalone_mode=False)
        sys.stdout.flush()
    except (click.exceptions.Abort, KeyboardInterrupt):
        code = _say("stopped; the same command takes up a run where it was", 130)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of a pipe has gone: not an error of ours
        code = 0
    except OSError as error:
        # All files have their own errors; what is left is a standard output that is full.
        if traceback or error.filename is not None:
            raise
        with contextlib.suppress(OSError):
            sys.stdout.close()  # else Python tries to write the rest once more when it ends
        code = _say(f"standard output: cannot be written ({error.strerror})", 2)
    except (click.ClickException, GenprobeError) as error:
        if traceback:
            raise
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        if isinstance(error, click.MissingParameter) and error.ctx and "Choose" not in message:
            message = f"{message} Such as: {_least(error.ctx)}"
        code = _say(" ".join(message.split()), 2)
    sys.exit(code if isinstance(code, int) else 0)


def _least(context: click.Context) -> str:
    """A command with all that it cannot do without."""
    words = [context.command_path]
    for parameter in context.command.params:
        if parameter.required:
            option = parameter.opts[:1] if isinstance(parameter, click.Option) else []
            words += [*option, parameter.make_metavar(context)]
    return " ".join(words)


def _say(message: str, code: int = 0) -> int:
    from genprobe.text.display import clean

    click.echo(f"genprobe: {clean(message)}", err=True)
    return code


def _note(quiet: bool) -> Callable[[str], None]:
    return (lambda message: None) if quiet else (lambda message: (_say(message), None)[1])


class _Bar:
    """Progress on stderr where a person looks at it: one bar for each thing that is done."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet or not sys.stderr.isatty()
        self.what = ""
        self.bar: Any = None

    def __call__(self, what: str, done: int, total: int) -> None:
        if self.quiet:
            return
        if what != self.what:
            from tqdm import tqdm  # transformers needs it anyway

            self.close()
            self.what = what
            self.bar = tqdm(total=total or None, desc=what, unit=" replies", leave=False)
        self.bar.update(done - self.bar.n)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@click.group(context_settings=_CONTEXT)
@click.version_option(__version__, prog_name="genprobe")
def cli() -> None:
    """Measure how far language models carry stereotypes, by what they say when asked.

    \b
    genprobe yesno --lang mr                    the built-in control model, in Marathi
    genprobe yesno --lang kk --model FOLDER     a model of yours
    genprobe judge replies.jsonl -o read.jsonl  read replies that you have
    genprobe score read.jsonl --by model,lang   count them

    The statements are stereotypes: offensive by nature, here to measure and reduce harm.
    """


def _shared(*options: str) -> Callable[[Any], Any]:
    """Options that several commands have in common, in one order."""
    known = {
        "quiet": click.option("-q", "--quiet", is_flag=True, help="No progress, no notes."),
        "verbose": click.option("-v", "--verbose", is_flag=True, help="Show tracebacks."),
        "format": click.option(
            "-f",
            "--format",
            "form",
            type=click.Choice(["table", "csv", "json", "latex"]),
            default="table",
            show_default=True,
            help="How scores are printed.",
        ),
        "by": click.option(
            "--by", "by", metavar="COL,…", help="Columns that make the cells, any of the outcomes'."
        ),
        "declared": click.option(
            "--declared",
            is_flag=True,
            help="Only originals of type declaration, where marked valid in the language.",
        ),
    }

    def wrap(command: Any) -> Any:
        for name in reversed(options):
            command = known[name](command)
        return functools.wraps(command)(command)

    return wrap


_ASKED: dict[str, Callable[[Any], Any]] = {
    "langs": click.option(
        "--lang", "langs", multiple=True, metavar="CODE", help="Language; may be repeated."
    ),
    "model": click.option(
        "--model", metavar="M", help="Alias, hub id or folder; without it, the control model."
    ),
    "limit": click.option(
        "--limit", type=click.IntRange(1), metavar="N", help="First N items a language."
    ),
    "out": click.option(
        "--out", type=click.Path(path_type=Path), metavar="DIR", help="The run folder."
    ),
    "engine": click.option(
        "--engine",
        default="auto",
        show_default=True,
        metavar="E",
        help="auto, transformers, vllm, openai, ray, or replay: recorded replies, of which --model "
        "names the file.",
    ),
    "base_url": click.option(
        "--base-url", metavar="URL", help="Of an OpenAI-compatible server; ends in /v1."
    ),
    "concurrency": click.option(
        "--concurrency",
        type=click.IntRange(1),
        metavar="N",
        help="Most requests in flight to a server.  [default: 64]",
    ),
    "engine_args": click.option(
        "--engine-arg",
        "engine_args",
        multiple=True,
        metavar="KEY=VALUE",
        help="Argument of the engine, such as dtype=float32 or tensor_parallel_size=2; may be "
        "repeated.",
    ),
    "seed": click.option(
        "--seed", type=int, default=0, show_default=True, help="Base of every request's seed."
    ),
}


def _drawn(
    samples: int, temperature: str, top_p: float, max_tokens: int
) -> tuple[Callable[[Any], Any], ...]:
    """The options of sampling, with a command's own defaults. temperature: said in words."""
    return (
        click.option(
            "--samples",
            type=click.IntRange(1),
            default=samples,
            show_default=True,
            metavar="N",
            help="Replies asked of each question, each with a seed of its own.",
        ),
        click.option(
            "--temperature",
            type=click.FloatRange(0),
            metavar="T",
            help=f"0 is greedy.  [default: {temperature}]",
        ),
        click.option(
            "--top-p",
            type=click.FloatRange(0, 1, min_open=True),
            default=top_p,
            show_default=True,
            metavar="P",
            help="Nucleus that replies are drawn from.",
        ),
        click.option(
            "--max-tokens",
            type=click.IntRange(1),
            default=max_tokens,
            show_default=True,
            metavar="N",
            help="Most tokens of a reply.",
        ),
    )


def _with(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def wrap(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return wrap


def _ask(
    verb: str, by: str | None, temperature: float, given: dict[str, Any], quiet: bool, **own: Any
) -> Path:
    """Run a verb that asks a model, with the options of `_ASKED` and `_drawn`; its run folder."""
    from genprobe.engines import Sampling
    from genprobe.tasks import asking

    model, url = given.pop("model"), given.pop("base_url")
    if (heat := given.pop("temperature")) is None:
        # The rates of the control model are those of its draws.
        heat = 1.0 if model is None and url is None else temperature
    sampling = Sampling(heat, given.pop("top_p"), given.pop("max_tokens"))
    options = asking.engine_options(given.pop("engine_args"), url, given.pop("concurrency"))
    with _Bar(quiet) as bar:
        run = getattr(asking, verb)(
            model,
            sampling=sampling,
            options=options,
            by=_columns(by),
            note=_note(quiet),
            progress=bar,
            **given,
            **own,
        )
    folder: Path = run.folder
    return folder


def _report(folder: Path, by: str | None, declared: bool, form: str, quiet: bool) -> None:
    """Score a run that has just been asked, and print the table."""
    from genprobe.analysis import score as counting

    note = _note(quiet)
    _print_scores(counting.score([folder], by=_columns(by), declared=declared, note=note), form)
    note(f"run folder: {folder}")


@cli.command(short_help="Ask a model yes/no questions, read and count its replies.")
@click.option(
    "--data",
    default="builtin",
    show_default=True,
    metavar="D",
    help="builtin, shades, or a file of statements.",
)
@click.option("--probe", "probes", multiple=True, metavar="P", help="Probe; may be repeated.")
@_with(*_ASKED.values())
@click.option(
    "--decode",
    "decodes",
    multiple=True,
    type=click.Choice(["free", "choice", "logprob"]),
    help="How the answer is read: the model's own words (default), forced to an answer word, or "
    "the probabilities of the answer words; may be repeated.",
)
@_with(*_drawn(1, "0; the control model: 1", 1.0, 64))
@_shared("by", "declared", "format", "quiet", "verbose")
def yesno(
    data: str,
    probes: tuple[str, ...],
    decodes: tuple[str, ...],
    by: str | None,
    declared: bool,
    form: str,
    quiet: bool,
    verbose: bool,
    **asked: Any,
) -> None:
    """Ask a model yes/no questions about statements, read its replies, count them.

    Writes a run folder (runs/… unless --out), which the same command resumes, and prints the
    table. Without --model the built-in control model runs: a test instrument, not a model to
    be judged.
    """
    decodes = decodes or ("free",)
    folder = _ask("yesno", by, 0.0, asked, quiet, data=data, probes=probes, decodes=decodes)
    _report(folder, by, declared, form, quiet)


@cli.command(short_help="Ask a model for stories, read their sentiment and count it.")
@click.option(
    "--data",
    default="builtin",
    show_default=True,
    metavar="D",
    help="builtin, or a file of templates.",
)
@click.option(
    "--wording",
    "probes",
    multiple=True,
    metavar="W",
    help="published (default) or native; may be repeated.",
)
@_with(*_ASKED.values())
@_with(*_drawn(5, "1", 1.0, 512))
@click.option("--classifier", metavar="C", help="Of sentiment; see `list classifiers`.")
@_shared("by", "format", "quiet", "verbose")
def stories(
    data: str,
    probes: tuple[str, ...],
    classifier: str | None,
    by: str | None,
    form: str,
    quiet: bool,
    verbose: bool,
    **asked: Any,
) -> None:
    """Ask a model for five-sentence stories about people, read their sentiment, count it.

    In Kazakh unless --lang. Writes a run folder (runs/… unless --out), which the same command
    resumes, and prints the share of templates with mostly negative stories.
    """
    folder = _ask("stories", by, 1.0, asked, quiet, data=data, probes=probes, classifier=classifier)
    _report(folder, by, False, form, quiet)


@cli.command(short_help="Ask a model for essays and remarks, read where they stand.")
@click.option(
    "--data",
    default="builtin",
    show_default=True,
    metavar="D",
    help="builtin, shades, or a file of statements.",
)
@click.option("--frame", "probes", multiple=True, metavar="F", help="Frame; may be repeated.")
@_with(*_ASKED.values())
@_with(*_drawn(1, "0.7", 0.95, 128))
@_shared("by", "declared", "format", "quiet", "verbose")
def essays(
    data: str,
    probes: tuple[str, ...],
    by: str | None,
    declared: bool,
    form: str,
    quiet: bool,
    verbose: bool,
    **asked: Any,
) -> None:
    """Ask a model for essays, reasons and remarks about statements, read where they stand.

    Writes a run folder (runs/… unless --out), which the same command resumes, and prints the
    table.
    """
    folder = _ask("essays", by, 0.7, asked, quiet, data=data, probes=probes)
    _report(folder, by, declared, form, quiet)


@cli.command(short_help="Score sentence pairs by what a model prefers.")
@click.option(
    "--data",
    default="builtin",
    show_default=True,
    metavar="D",
    help="builtin, templates, shades, or a file of pairs or choices (docs/preferences.md).",
)
@click.option(
    "--scorer",
    "scorers",
    multiple=True,
    metavar="S",
    help="Scorer, see `list scorers`; may be repeated.",
)
@_with(*(_ASKED[name] for name in ("langs", "model", "limit", "out")))
@click.option(
    "--engine",
    default="auto",
    show_default="transformers",
    metavar="E",
    help="transformers; causal models also vllm, or openai: a running vLLM server.",
)
@_with(*(_ASKED[name] for name in ("base_url", "concurrency", "engine_args")))
@click.option(
    "--revision",
    metavar="R,…",
    help="Of a model of the hub; several are one run each. So are the models in a folder.",
)
@click.option(
    "--context", default="", metavar="TEXT", help="Before every sentence of a pair, as it is."
)
@click.option("--prefix", default="", metavar="WORD", help="Part of every sentence of a table.")
@click.option("--plain", is_flag=True, help="Score a chat model without its template.")
@_shared("by", "format", "quiet", "verbose")
def logprob(
    model: str | None,
    revision: str | None,
    out: Path | None,
    engine_args: tuple[str, ...],
    base_url: str | None,
    concurrency: int | None,
    by: str | None,
    form: str,
    quiet: bool,
    verbose: bool,
    **asked: Any,
) -> None:
    """Score pairs of sentences, or choices, by their log-probability under a model.

    Of causal, masked and encoder-decoder models of transformers. Writes a run folder (runs/…
    unless --out), which the same command resumes, with the value of every token: `genprobe score
    RUN --scorer S` reduces them in another way, without the model.
    """
    from genprobe.analysis import score as counting
    from genprobe.tasks import asking

    note, columns, folders = _note(quiet), _columns(by), []
    models: list[str | None] = [*asking.checkpoints(model)] if model else []
    for one in models or [model]:
        for at in _columns(revision) or [""]:
            arguments = [*engine_args, *([f"revision={at}"] if at else [])]
            parts = (Path(one).name if one and models else "", at.replace("/", "-"))
            name = "-".join(part for part in parts if part)
            with _Bar(quiet) as bar:
                run = asking.logprob(
                    one,
                    options=asking.engine_options(arguments, base_url, concurrency),
                    out=out / name if out else None,
                    by=columns,
                    note=note,
                    progress=bar,
                    **asked,
                )
            folders.append(run.folder)
    _print_scores(counting.score(folders, by=columns, note=note), form)
    for folder in folders:
        note(f"run folder: {folder}")


def _columns(by: str | None) -> list[str]:
    return [column.strip() for column in by.split(",") if column.strip()] if by else []


def _print_scores(scores: list[Score], form: str) -> None:
    import shutil

    from genprobe.render import formats

    width = shutil.get_terminal_size((100, 24)).columns
    click.echo(formats.render(scores, form, width), nl=False)


@cli.command(short_help="Read replies, of a run or of anybody's.")
@click.argument("source", type=click.Path(path_type=Path), metavar="RUN|FILE")
@click.option("--judge", "names", multiple=True, metavar="J", help="Judge; default yesno.")
@click.option("--parser", metavar="P", help="For yesno: another reader; shades2025 or strict.")
@click.option("--classifier", metavar="C", help="For sentiment: a card; see `list classifiers`.")
@click.option("--rubric", metavar="R", help="For llm: stance (default), sentiment or answer.")
@click.option(
    "--model", metavar="M", help="For llm: the model that judges; alias, hub id or folder."
)
@_with(*(_ASKED[name] for name in ("engine", "base_url", "concurrency", "engine_args")))
@click.option("-o", "out", metavar="FILE", help="JSONL, CSV or Parquet by suffix; else stdout.")
@_shared("quiet", "verbose")
def judge(
    source: Path,
    names: tuple[str, ...],
    parser: str | None,
    classifier: str | None,
    rubric: str | None,
    out: str | None,
    quiet: bool,
    verbose: bool,
    **asked: Any,
) -> None:
    """Read replies: of a run folder, or of anybody's, in JSONL, CSV or Parquet.

    Rows need `response`; for the answers also `lang` and `probe`, and `prompt` where replies may
    begin with an echo of it. They come back with `answer`, `kind`, `conflict`, `rule` and
    `evidence` (or the columns of another judge: `genprobe list judges`), others untouched.
    The judge llm is a chat model, which --model, or --base-url, and a rubric name.
    """
    from genprobe.resources import registry
    from genprobe.tasks import asking

    note = _note(quiet)
    names = tuple(dict.fromkeys(names or ("yesno",)))
    given: dict[str, dict[str, Any]] = {"yesno": {"parser": parser}}
    given["sentiment"] = {"classifier": classifier}
    given["llm"] = {"rubric": rubric, "engine": asked["model"] or asked["base_url"]}
    for name, options in given.items():
        for option, value in options.items():
            if value and name not in names:
                option = "model" if option == "engine" else option
                raise InputError(f"--{option} goes with --judge {name}")
    with contextlib.ExitStack() as stack:
        if given["llm"]["engine"]:
            opened = asking.open_engine(
                asked["engine"],
                asked["model"],
                asking.engine_options(
                    asked["engine_args"], asked["base_url"], asked["concurrency"]
                ),
                note,
            )
            given["llm"]["engine"] = stack.enter_context(contextlib.closing(opened))
        judges = [
            registry.module("judges", name).make(
                **{key: value for key, value in given.get(name, {}).items() if value}
            )
            for name in names
        ]
        _judge(source, judges, out, note, quiet)


def _judge(
    source: Path, judges: list[Any], out: str | None, note: Callable[[str], None], quiet: bool
) -> None:
    from genprobe.runs.run import Run
    from genprobe.tasks import judging

    with _Bar(quiet) as bar:
        if source.is_dir():
            if out:
                raise InputError("-o goes with a file; judgments of a run stay in its folder")
            with Run.open(source) as run:
                counts = judging.judge_run(run, judges, bar)
            for name, count in counts.items():
                note(f"{source}/judgments/{name}.jsonl: {many(count, 'judgment')}")
                if name.startswith("llm-"):
                    from genprobe.judges import llm

                    note(f"{name}: {llm.bias(run.judgments(name))}")
            return
        found = judging.judge_file(source, judges, out, bar)
    for name, labels in found.items():
        total = sum(labels.values())
        parts = ", ".join(
            f"{label} {n}" for label, n in sorted(labels.items(), key=lambda x: -x[1])
        )
        note(f"{name}: {many(total, 'reply')}: {parts}")
    for judge in judges:
        if hasattr(judge, "bias"):
            note(f"{judge.name}: {judge.bias}")


@cli.command(short_help="Count answers, with intervals and signatures.")
@click.argument(
    "sources", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN|FILE..."
)
@click.option("--metric", "metrics", multiple=True, metavar="M", help="Metric; see `list metrics`.")
@click.option(
    "--reviewed",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Of `review import`: rates come as measured and corrected by what people said.",
)
@click.option(
    "--scorer",
    "scorers",
    multiple=True,
    metavar="S",
    help="Of a log-prob run: how its values are reduced; may be repeated.",
)
@click.option(
    "--perplexity",
    is_flag=True,
    help="The pro and anti of a file are perplexities: the lower is preferred.",
)
@click.option(
    "--people",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Of choices: what share of people agree with each stereotype; see docs/preferences.md.",
)
@click.option("--band", is_flag=True, help="How far the choice of a reader moves yes/no answers.")
@_shared("by", "declared", "format", "quiet", "verbose")
def score(
    sources: tuple[Path, ...],
    metrics: tuple[str, ...],
    reviewed: Path | None,
    scorers: tuple[str, ...],
    perplexity: bool,
    people: Path | None,
    band: bool,
    by: str | None,
    declared: bool,
    form: str,
    quiet: bool,
    verbose: bool,
) -> None:
    """Count the answers of run folders, or of files that `judge` wrote.

    A file of sentence pairs scored anywhere (rows item, model, pro, anti: the value of the
    stereotype and of its contrast, higher is preferred) is counted, too: docs/preferences.md.

    Every figure comes with its n, what was left out, a 95 % interval and a signature. No model
    is needed: a run can be scored again and again.
    """
    from genprobe.analysis import score as counting

    scores = counting.score(
        sources,
        metrics=metrics,
        by=_columns(by),
        declared=declared,
        reviewed=reviewed,
        scorers=scorers,
        perplexity=perplexity,
        people=people,
        band=band,
        note=_note(quiet),
    )
    _print_scores(scores, form)


@cli.command(short_help="Compare models, item by item; tests and power.")
@click.argument("first", type=click.Path(path_type=Path), metavar="RUN")
@click.argument("others", nargs=-1, type=click.Path(path_type=Path), metavar="[RUN]...")
@click.option(
    "--test",
    type=click.Choice(["paired", "anova", "ks"]),
    default="paired",
    show_default=True,
    help="Item by item; analysis of variance; distributions, pair by pair (Kolmogorov-Smirnov).",
)
@click.option(
    "--between",
    metavar="COL",
    help="Column whose values are compared: the model, or such as lang. Of anova the factors: "
    "bias_type,lang,model.",
)
@click.option(
    "--power",
    type=float,
    metavar="POINTS",
    help="How many statements would show a difference of so many points, in place of a test.",
)
@click.option("--metric", "metrics", multiple=True, metavar="M", help="Metric; see `list metrics`.")
@click.option(
    "--paradigms",
    is_flag=True,
    help="Of yes/no and log-prob runs: what each model says against what it prefers "
    "(docs/paradigms.md).",
)
@_shared("by", "format", "quiet", "verbose")
def compare(
    first: Path,
    others: tuple[Path, ...],
    test: str,
    between: str | None,
    power: float | None,
    metrics: tuple[str, ...],
    paradigms: bool,
    by: str | None,
    form: str,
    quiet: bool,
    verbose: bool,
) -> None:
    """Compare the models of two runs on the same items; of more runs, each with the first.

    Items pair by statement, language, question and sample. Prints both figures, the difference
    (second minus first) with an interval over statements, and a p-value: McNemar's mid-p where a
    statement has one item, else that of swapping the models' replies statement by statement. The
    runs may differ in nothing but who was asked. With --between the values of a column of one run
    are paired, such as two languages.

    Which test answers which question, and what it takes for granted: docs/inference.md. Where
    there are several p-values, each comes with itself corrected for all of them.

    With --paradigms the runs are those of `yesno` and `logprob`, of one model or several, matched
    by model and revision: correlation and table of what a model says and what it prefers, item by
    item, for every reading and scorer.
    """
    from genprobe.analysis import compare as comparing

    if paradigms and metrics:
        raise InputError("--metric goes without --paradigms, which has measures of its own")
    if paradigms and (between or power is not None or test != "paired"):
        raise InputError("--test, --between and --power go without --paradigms")
    columns = _columns(by)
    if paradigms:
        found = comparing.paradigms([first, *others], by=columns, note=_note(quiet))
    else:
        found = comparing.compare(
            first,
            others,
            test=test,
            between=_columns(between),
            metrics=metrics,
            by=columns,
            power=power,
            note=_note(quiet),
        )
    _print_scores(found, form)


@cli.command(name="report", short_help="Make a page of runs that one can publish.")
@click.argument(
    "folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN..."
)
@click.option(
    "-o",
    "out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE.html",
    help="The page.",
)
@click.option(
    "--figures",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Also write figures for a paper, each as SVG and PDF with its data as CSV.",
)
@click.option(
    "--redact",
    is_flag=True,
    help="Without statements, prompts, replies and quotes of them; items are known by a hash.",
)
@_shared("quiet", "verbose")
def report_(
    folders: tuple[Path, ...],
    out: Path,
    figures: Path | None,
    redact: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Make one page of one run or several: what was measured, the figures, all behind them.

    The page is one file that needs no network. Runs of several models stand side by side; those
    of `yesno` and `logprob` of one model are also set against each other. No model is needed.
    """
    from genprobe import report

    note = _note(quiet)
    note(f"report: {report.build(folders, out, redact=redact, note=note)}")
    if figures is not None:
        from genprobe.report.figures import draw

        for path in draw(folders, figures, redact=redact, note=note):
            note(f"figure: {path}")


@cli.command(short_help="Derive a published table again from its raw data.")
@click.argument("name", metavar="NAME")
@click.option(
    "--from",
    "folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Where the published raw data lie: a download of yours. Not needed where a study's "
    "printed figures alone are checked.",
)
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="How cells are printed.",
)
@_shared("quiet", "verbose")
def reproduce(name: str, folder: Path | None, form: str, quiet: bool, verbose: bool) -> int:
    """Derive a published table again from published raw data, and set ours beside theirs.

    \b
    genprobe list reproductions
    genprobe reproduce rubia --from ./RuBia-Dataset
    genprobe reproduce rubia --from ./RuBia-Dataset -f csv > cells.csv

    Cell by cell: what agrees to the printed digits, what does not, and why where that is known.
    Published figures come with genprobe, statements and replies do not: docs/reproduce.md names
    the files that each study needs. Exit code 0 if every cell agrees or differs for a known
    reason, else 1.
    """
    from genprobe.analysis.reproduce import _text, run

    found = run(name, folder)
    click.echo(_text.render(found, form), nl=False)
    if form != "table":
        _note(quiet)(f"{name}: {found.summary}")
    return 0 if found.ok else 1


@cli.command(short_help="Prove that a run folder is whole.")
@click.argument("folder", type=click.Path(path_type=Path), metavar="RUN")
@_shared("verbose")
def verify(folder: Path, verbose: bool) -> int:
    """Prove that a run folder is whole, or name what is not (exit code 1)."""
    from genprobe.runs.run import Run
    from genprobe.text.display import clean

    run = Run.open(folder)
    problems = run.verify()
    for problem in problems:
        click.echo(clean(problem))
    if not problems:
        replies, planned = (sum(1 for _ in rows) for rows in (run.answered(), run.requests()))
        failed = f", {planned - replies} failed" if replies < planned else ""
        click.echo(
            f"{clean(str(folder))}: whole: {many(replies, 'response')} to "
            f"{many(planned, 'request')}{failed}, none twice"
        )
    return 1 if problems else 0


@cli.command(short_help="Check packs, languages, templates, phrases.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@click.option("-q", "--quiet", is_flag=True, help="Errors only.")
@_shared("verbose")
def lint(paths: tuple[Path, ...], quiet: bool, verbose: bool) -> int:
    """Check all that lies in prompts/: files or folders, without any all that is shipped.

    Exit code 1 if there are errors. The published wordings are an instrument, used as they were:
    their faults are warnings.
    """
    from genprobe.lint import lint as check
    from genprobe.text.display import clean

    found = check(paths)
    errors = sum(f.level == "error" for f in found)
    for finding in found:
        if finding.level == "error" or not quiet:
            click.echo(clean(f"{_short(finding.where)}: {finding.level}: {finding.message}"))
    if not quiet or errors:
        counts = {"error": errors, "warning": len(found) - errors}
        _say(", ".join(f"{n} {what}{'s' * (n != 1)}" for what, n in counts.items()))
    return 1 if errors else 0


def _short(where: str) -> str:
    """A path as one would type it from here."""
    here = f"{Path.cwd()}/"
    return where.removeprefix(here)


_LISTS = (
    *("models", "packs", "languages", "classifiers", "engines", "judges", "scorers", "metrics"),
    *("data", "reproductions"),
)


@cli.command(
    name="list",
    short_help="List languages, packs, engines, judges, metrics.",
    help=f"List what there is, one a line: name, then what it is.\n\nWHAT: {', '.join(_LISTS)}.",
)
@click.argument("what", type=click.Choice(_LISTS), metavar="WHAT")
@_shared("verbose")
def list_(what: str, verbose: bool) -> None:
    rows = _listed(what)
    width = max(len(name) for name, _ in rows)
    for name, about in rows:
        click.echo(f"{name:<{width}}  {about}".rstrip())


def _listed(what: str) -> list[tuple[str, str]]:
    from genprobe.datasets import statements
    from genprobe.resources import models, registry
    from genprobe.resources import packs as inputs

    if what == "models":
        return [
            ("(none)", "the control model: without --model; a test instrument"),
            ("FOLDER", "a model on disk, as transformers saves it"),
            ("ORG/NAME", "a model of the Hugging Face hub"),
            *models.listed(),
        ]
    if what == "packs":
        packs = [inputs.load_pack(name) for name in registry.names("packs")]
        return [(p.name, f"{p.title} ({', '.join(p.probes)}); {p.citation}") for p in packs]
    if what == "languages":
        pack = inputs.load_pack("yesno")
        languages = [inputs.load_language(code) for code in registry.names("languages")]
        return [
            (
                one.code,
                f"{one.name}, {one.native}; words: {one.review}; "
                f"questions: {pack.reviews.get(one.code, 'none')}",
            )
            for one in languages
        ]
    if what == "classifiers":
        from genprobe import classifiers

        cards = [classifiers.load(name) for name in classifiers.names()]
        return [(c.name, f"{c.title}; {', '.join(c.languages)}; {c.figures()}") for c in cards]
    if what == "scorers":
        from genprobe.outcomes import preferences as logprob

        return [
            (s.name, f"{' or '.join(s.passes)}: {s.about.partition(chr(10))[0]}")
            for s in logprob.SCORERS.values()
        ]
    if what == "metrics":
        from genprobe import metrics

        return [(m.name, m.title) for m in metrics.catalogue().values()]
    if what == "data":
        return list(statements.DATA.items())
    what = "reproduce" if what == "reproductions" else what
    names = registry.names(what)
    return [(n, (registry.module(what, n).__doc__ or "").strip().split("\n")[0]) for n in names]


@cli.group(short_help="Have people read a sample of replies, and use what they say.")
def review() -> None:
    """Have people read a sample of replies, in a spreadsheet, and use what they say.

    \b
    genprobe review export RUN -o sample.csv --reviewers 2     a file for each of two
    genprobe review import sample-reviewer*.csv -o review.csv
    genprobe review agreement review.csv                       do they agree?
    genprobe review export RUN -o last.csv --disagreements review.csv
    """


@review.command(name="export", short_help="Write a blind sample for each reviewer.")
@click.argument(
    "sources", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN..."
)
@click.option("-o", "out", required=True, metavar="FILE.csv", help="How the files are called.")
@click.option(
    "--size",
    type=click.IntRange(1),
    default=200,
    show_default=True,
    metavar="N",
    help="Replies; stories to the nearest whole template.",
)
@click.option(
    "--lang", "langs", multiple=True, metavar="CODE", help="Language asked in; may be repeated."
)
@click.option(
    "--reviewers", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="People."
)
@click.option(
    "--overlap",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    metavar="X",
    help="Share of the sample that all of them read; the rest is dealt out.",
)
@click.option(
    "--repeats",
    type=click.FloatRange(0, 1),
    default=0.1,
    show_default=True,
    metavar="X",
    help="Share of a reviewer's rows that come once more.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of sample and order.")
@click.option(
    "--disagreements",
    type=click.Path(path_type=Path),
    metavar="FILE.csv",
    help="What `import` wrote: what its reviewers disagree on goes to one more reader.",
)
@_shared("quiet", "verbose")
def review_export(
    sources: tuple[Path, ...], out: str, quiet: bool, verbose: bool, **asked: Any
) -> None:
    """Write a blind sample of the replies of runs, one file for each reviewer.

    Of stories whole templates are drawn, with all of their stories.

    That is FILE.csv for one reviewer, FILE-reviewer1.csv, … for several. Beside them come
    FILE-instructions.txt, to read first, and FILE-key.json, which is not for the reviewers:
    `import` needs it.
    """
    from genprobe.review import sample as review

    note = _note(quiet)
    done = review.export(sources, out, **asked)
    drawn = f"from {many(done.strata, 'stratum')}"
    why = "on which reviewers differ" if asked["disagreements"] else drawn
    whole = f" (whole templates: {done.templates:,})" if done.templates else ""
    note(f"{done.items:,} of {many(done.replies, 'reply')}{whole}, {why}")
    for path in (*done.files, done.page):
        note(f"for reviewers: {path}")
    note(f"not for reviewers: {done.key}")


@review.command(name="import", short_help="Take back what reviewers answered, and check it.")
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE.csv..."
)
@click.option(
    "--key",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Of the export.  [default: FILE-key.json]",
)
@click.option(
    "-o", "out", default="review.csv", show_default=True, metavar="FILE", help="The table."
)
@_shared("quiet", "verbose")
def review_import(
    paths: tuple[Path, ...], key: Path | None, out: str, quiet: bool, verbose: bool
) -> int:
    """Take back what reviewers answered: into one table, and into the runs as a judge's labels.

    What is missing, malformed or changed is printed, row by row (exit code 1); the rest counts.
    """
    from genprobe.review import collect as reviewed

    note = _note(quiet)
    done = reviewed.collect(paths, key, out)
    for line in reviewed.told(done.problems):
        click.echo(line)
    answers, problems = many(len(done.rows), "answer"), many(len(done.problems), "problem")
    note(f"{out}: {answers}, {problems}")
    for folder, counts in done.judged.items():
        for question, count in counts.items():
            note(f"{folder}/judgments/reviewed-{question}.jsonl: {many(count, 'label')}")
    return 1 if done.problems else 0


@review.command(name="agreement", short_help="How far reviewers agree, by question and language.")
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE..."
)
@_shared("format", "verbose")
def review_agreement(paths: tuple[Path, ...], form: str, verbose: bool) -> None:
    """How far reviewers agree: raw, Cohen's, Fleiss' and Krippendorff's coefficients, and each
    reviewer with their own repeated answers.

    Rows need `item`, `reviewer`, `question`, `answer`; an empty answer is a missing one. In a
    table shares of answers that agree are in %, coefficients from -1 to 1.
    """
    from genprobe.review.agreement import agreement

    _print_scores(agreement(paths), form)


@cli.group(short_help="Train a sentiment classifier of your own.")
def classifiers() -> None:
    """Sentiment classifiers: `genprobe list classifiers` lists their cards."""


@classifiers.command(name="train", short_help="Train a linear classifier on a table.")
@click.argument("source", type=click.Path(path_type=Path), metavar="FILE")
@click.option(
    "-o", "out", required=True, type=click.Path(path_type=Path), metavar="CARD", help="NAME.toml."
)
@click.option("--text", default="text", show_default=True, metavar="COL", help="Column of texts.")
@click.option(
    "--label",
    default="label",
    show_default=True,
    metavar="COL",
    help="Column of 0 (negative) or 1.",
)
@click.option("--share", type=float, metavar="P", help="Of negative texts where it will be used.")
@_shared("quiet", "verbose")
def train_(
    source: Path, out: Path, text: str, label: str, share: float | None, quiet: bool, verbose: bool
) -> None:
    """Train a linear classifier on a table of texts and labels; write its card and weights.

    The same file gives the same bytes. Texts are folded as those of the card kk-linear.
    """
    from genprobe import classifiers

    classifiers.train(source, out, text, label, share=share, note=_note(quiet))


@cli.command(short_help="Compare what is measured with rates that are known.")
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Base of every request's seed."
)
@_shared("quiet", "verbose")
def selftest(seed: int, quiet: bool, verbose: bool) -> int:
    """Measure the control model and compare with its exact answer rates (exit code 1 if off).

    The whole instrument is tested: engine, reader, counting, intervals.
    """
    from genprobe import selftest as test

    with _Bar(quiet) as bar:
        report = test.run(bar, seed)
    click.echo(report.text())
    return 0 if report.ok else 1
