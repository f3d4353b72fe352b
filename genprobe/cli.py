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

import genprobe
from genprobe.errors import GenprobeError, InputError

if TYPE_CHECKING:
    from genprobe.records import Score

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def main() -> None:
    """Entry point: every error that is a user's to mend becomes one line."""
    traceback = "-v" in sys.argv[1:] or "--verbose" in sys.argv[1:]
    try:
        if sys.stdout is None:
            raise InputError("standard output is closed; send it to a file or to /dev/null")
        code = cli.main(standalone_mode=False)
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
        code = _say(" ".join(message.split()), 2)
    sys.exit(code if isinstance(code, int) else 0)


def _say(message: str, code: int = 0) -> int:
    from genprobe.formats import clean

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
@click.version_option(genprobe.__version__, prog_name="genprobe")
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


@cli.command(short_help="Ask a model yes/no questions, read and count its replies.")
@click.option("--lang", "langs", multiple=True, metavar="CODE", help="Language; may be repeated.")
@click.option(
    "--model", metavar="M", help="Alias, hub id or folder; without it, the control model."
)
@click.option(
    "--data",
    default="builtin",
    show_default=True,
    metavar="D",
    help="builtin, shades, or a file of statements.",
)
@click.option("--probe", "probes", multiple=True, metavar="P", help="Probe; may be repeated.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="First N statements a language.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="The run folder.")
@click.option(
    "--engine",
    default="auto",
    show_default=True,
    metavar="E",
    help="auto, transformers, vllm, openai, ray, or replay: recorded replies, of which --model "
    "names the file.",
)
@click.option("--base-url", metavar="URL", help="Of an OpenAI-compatible server; ends in /v1.")
@click.option(
    "--concurrency",
    type=click.IntRange(1),
    metavar="N",
    help="Most requests in flight to a server.  [default: 64]",
)
@click.option(
    "--engine-arg",
    "engine_args",
    multiple=True,
    metavar="KEY=VALUE",
    help="Argument of the engine, such as dtype=float32 or tensor_parallel_size=2; may be "
    "repeated.",
)
@click.option(
    "--decode",
    "decodes",
    multiple=True,
    type=click.Choice(["free", "choice", "logprob"]),
    help="How the answer is read: the model's own words (default), forced to an answer word, or "
    "the probabilities of the answer words; may be repeated.",
)
@click.option(
    "--samples",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="Replies asked of each question, each with a seed of its own.",
)
@click.option(
    "--temperature",
    type=click.FloatRange(0),
    metavar="T",
    help="0 is greedy.  [default: 0; the control model: 1]",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(1),
    default=64,
    show_default=True,
    metavar="N",
    help="Most tokens of a reply.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Base of every request's seed."
)
@_shared("by", "declared", "format", "quiet", "verbose")
def yesno(
    langs: tuple[str, ...],
    model: str | None,
    data: str,
    probes: tuple[str, ...],
    limit: int | None,
    out: Path | None,
    engine: str,
    base_url: str | None,
    concurrency: int | None,
    engine_args: tuple[str, ...],
    decodes: tuple[str, ...],
    samples: int,
    temperature: float | None,
    max_tokens: int,
    seed: int,
    by: str | None,
    declared: bool,
    form: str,
    quiet: bool,
    verbose: bool,
) -> None:
    """Ask a model yes/no questions about statements, read its replies, count them.

    Writes a run folder (runs/… unless --out), which the same command resumes, and prints the
    table. Without --model the built-in control model runs: a test instrument, not a model to
    be judged.
    """
    from genprobe import verbs
    from genprobe.engines import Sampling

    if temperature is None:
        # The rates of the control model are those of its draws.
        temperature = 1.0 if model is None and base_url is None else 0.0
    note = _note(quiet)
    with _Bar(quiet) as bar:
        run = verbs.yesno(
            model,
            langs=langs,
            data=data,
            probes=probes,
            limit=limit,
            engine=engine,
            sampling=Sampling(temperature, 1.0, max_tokens),
            seed=seed,
            samples=samples,
            decodes=decodes or ("free",),
            options=verbs.engine_options(engine_args, base_url, concurrency),
            out=out,
            note=note,
            progress=bar,
        )
    scores = verbs.score([run.folder], by=_columns(by), declared=declared, note=note)
    _print_scores(scores, form)
    note(f"run folder: {run.folder}")


def _columns(by: str | None) -> list[str]:
    return [column.strip() for column in by.split(",") if column.strip()] if by else []


def _print_scores(scores: list[Score], form: str) -> None:
    import shutil

    from genprobe import formats

    width = shutil.get_terminal_size((100, 24)).columns
    click.echo(formats.render(scores, form, width), nl=False)


@cli.command(short_help="Read replies, of a run or of anybody's.")
@click.argument("source", type=click.Path(path_type=Path), metavar="RUN|FILE")
@click.option("--judge", "names", multiple=True, metavar="J", help="Judge; default yesno.")
@click.option("--parser", metavar="P", help="For yesno: shades2025, the study's own reader.")
@click.option("--classifier", metavar="C", help="For sentiment: a card; see `list classifiers`.")
@click.option("-o", "out", metavar="FILE", help="JSONL, CSV or Parquet by suffix; else stdout.")
@_shared("quiet", "verbose")
def judge(
    source: Path,
    names: tuple[str, ...],
    parser: str | None,
    classifier: str | None,
    out: str | None,
    quiet: bool,
    verbose: bool,
) -> None:
    """Read replies: of a run folder, or of anybody's, in JSONL, CSV or Parquet.

    Rows need `response`; for the answers also `lang` and `probe`, and `prompt` where replies may
    begin with an echo of it. They come back with `answer`, `kind`, `conflict`, `rule` and
    `evidence` (or `language`, `refusal`, `sentiment` and `negative`), other columns untouched.
    """
    from genprobe import registry, verbs
    from genprobe.store import Run

    names = names or ("yesno",)
    if parser and "yesno" not in names:
        raise InputError("--parser goes with --judge yesno")
    if classifier and "sentiment" not in names:
        raise InputError("--classifier goes with --judge sentiment")
    options = {"yesno": {"parser": parser}, "sentiment": {"classifier": classifier}}
    judges = [
        registry.module("judges", name).make(
            **{key: value for key, value in options.get(name, {}).items() if value}
        )
        for name in dict.fromkeys(names)
    ]
    note = _note(quiet)
    with _Bar(quiet) as bar:
        if source.is_dir():
            if out:
                raise InputError("-o goes with a file; judgments of a run stay in its folder")
            with Run.open(source) as run:
                counts = verbs.judge_run(run, judges, bar)
            for name, count in counts.items():
                note(f"{source}/judgments/{name}.jsonl: {count} judgments")
            return
        found = verbs.judge_file(source, judges, out, bar)
    for name, labels in found.items():
        total = sum(labels.values())
        parts = ", ".join(
            f"{label} {n}" for label, n in sorted(labels.items(), key=lambda x: -x[1])
        )
        note(f"{name}: {total} replies: {parts}")


@cli.command(short_help="Count answers, with intervals and signatures.")
@click.argument(
    "sources", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN|FILE..."
)
@click.option("--metric", "metrics", multiple=True, metavar="M", help="Metric; see `list metrics`.")
@_shared("by", "declared", "format", "quiet", "verbose")
def score(
    sources: tuple[Path, ...],
    metrics: tuple[str, ...],
    by: str | None,
    declared: bool,
    form: str,
    quiet: bool,
    verbose: bool,
) -> None:
    """Count the answers of run folders, or of files that `judge` wrote.

    Every figure comes with its n, what was left out, a 95 % interval and a signature. No model
    is needed: a run can be scored again and again.
    """
    from genprobe import verbs

    _print_scores(
        verbs.score(
            sources, metrics=metrics, by=_columns(by), declared=declared, note=_note(quiet)
        ),
        form,
    )


@cli.command(short_help="Prove that a run folder is whole.")
@click.argument("folder", type=click.Path(path_type=Path), metavar="RUN")
@_shared("verbose")
def verify(folder: Path, verbose: bool) -> int:
    """Prove that a run folder is whole, or name what is not (exit code 1)."""
    from genprobe.formats import clean
    from genprobe.store import Run

    run = Run.open(folder)
    problems = run.verify()
    for problem in problems:
        click.echo(clean(problem))
    if not problems:
        replies, planned = (sum(1 for _ in rows) for rows in (run.answered(), run.requests()))
        failed = f", {planned - replies} failed" if replies < planned else ""
        click.echo(
            f"{clean(str(folder))}: whole: {replies} responses to {planned} requests{failed}, "
            "none twice"
        )
    return 1 if problems else 0


@cli.command(short_help="Check packs and languages.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@click.option("-q", "--quiet", is_flag=True, help="Errors only.")
@_shared("verbose")
def lint(paths: tuple[Path, ...], quiet: bool, verbose: bool) -> int:
    """Check packs and languages: files or folders, without any all that is shipped.

    Exit code 1 if there are errors. The published wordings are an instrument, used as they were:
    their faults are warnings.
    """
    from genprobe.formats import clean
    from genprobe.lint import lint as check

    found = check(paths)
    errors = sum(f.level == "error" for f in found)
    for finding in found:
        if finding.level == "error" or not quiet:
            click.echo(clean(f"{_short(finding.where)}: {finding.level}: {finding.message}"))
    if not quiet or errors:
        _say(f"{errors} errors, {len(found) - errors} warnings")
    return 1 if errors else 0


def _short(where: str) -> str:
    """A path as one would type it from here."""
    here = f"{Path.cwd()}/"
    return where.removeprefix(here)


_LISTS = ("models", "packs", "languages", "classifiers", "engines", "judges", "metrics", "data")


@cli.command(name="list", short_help="List languages, packs, engines, judges, metrics.")
@click.argument("what", type=click.Choice(_LISTS))
@_shared("verbose")
def list_(what: str, verbose: bool) -> None:
    """List what there is, one a line: name, then what it is."""
    rows = _listed(what)
    width = max(len(name) for name, _ in rows)
    for name, about in rows:
        click.echo(f"{name:<{width}}  {about}".rstrip())


def _listed(what: str) -> list[tuple[str, str]]:
    from genprobe import inputs, models, registry, statements

    if what == "models":
        return [
            ("(none)", "the control model: without --model; a test instrument"),
            ("FOLDER", "a model on disk, as transformers saves it"),
            ("ORG/NAME", "a model of the Hugging Face hub"),
            *models.listed(),
        ]
    if what == "packs":
        packs = [inputs.load_pack(name) for name in registry.names("packs")]
        return [(p.name, f"{p.title} {', '.join(p.probes)}; {p.citation}") for p in packs]
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
    if what == "metrics":
        from genprobe import metrics

        return [(m.name, m.title) for m in metrics.catalogue().values()]
    if what == "data":
        return list(statements.DATA.items())
    names = registry.names(what)
    return [(n, (registry.module(what, n).__doc__ or "").strip().split("\n")[0]) for n in names]


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
