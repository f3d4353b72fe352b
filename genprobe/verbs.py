"""What the command line does, as functions: `yesno`, `judge`, `score`.

Each checks all of its input before it starts anything slow, and prints nothing: notes for a
person go to `note`, progress to `progress`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import genprobe
from genprobe import (
    classifiers,
    control,
    files,
    inputs,
    models,
    pipeline,
    registry,
    statements,
    templates,
)
from genprobe.control import stories as tales
from genprobe.engines import Engine, Options, Sampling
from genprobe.errors import InputError, RunError
from genprobe.judges import Item, Judge, Verdict, verdicts
from genprobe.records import Score, Statement, digest
from genprobe.scoring import Scorer
from genprobe.signature import (
    WHO,
    Spec,
    both_signatures,
    file_signature,
    signature,
    statements_hash,
    versions,
)
from genprobe.store import Run

if TYPE_CHECKING:
    import pandas as pd

DECODES = ("free", "choice", "logprob")
SCORING = ("transformers", "vllm", "openai")  # engines that score texts
# The judges of a yes/no run, by decode, in the order of their columns.
JUDGES = {
    "free": ("yesno", "refusal", "language"),
    "choice": ("yesno",),
    "logprob": ("probability",),
}

Note = Callable[[str], None]
Progress = Callable[[str, int, int], None]  # what, how many done, of how many


def _quiet(*_: Any) -> None:
    """For notes and progress that nobody wants."""


def yesno(
    model: str | None = None,
    *,
    langs: Sequence[str] = (),
    data: str = "builtin",
    probes: Sequence[str] = (),
    limit: int | None = None,
    engine: str = "auto",
    sampling: Sampling | None = None,
    seed: int = 0,
    samples: int = 1,
    decodes: Sequence[str] = ("free",),
    options: Options | None = None,
    out: str | Path | None = None,
    note: Note = _quiet,
    progress: Progress = _quiet,
) -> Run:
    """Ask a model yes/no questions about statements and judge its replies.

    model: an alias, a hub id or a folder (for `replay`: a run or file of recordings); None is the
    control model, or the only one of a server. langs, probes: all that the data and the pack have,
    where empty. decodes: of `DECODES`. limit: statements a language. out: the run folder, which
    the same call resumes; None derives its name.
    Returns the run, closed, with judgments. GenprobeError in one line for whatever cannot be.
    """
    pack = inputs.load_pack("yesno")
    codes = [inputs.language_code(lang) for lang in langs]
    items, notes = statements.load(data, codes or None)
    items = _chosen(items, notes, codes, pack, limit, note)
    decodes = tuple(d for d in DECODES if d in decodes)
    if engine == "replay" and decodes != ("free",):
        raise InputError("recorded replies are free ones; leave --decode out")
    names = dict.fromkeys(name for decode in decodes for name in JUDGES[decode])
    judges = [registry.module("judges", name).make() for name in names]
    return _run(
        "yesno",
        pack,
        items,
        _probes(probes, pack) or list(pack.probes),
        judges,
        model=model,
        data=data,
        limit=limit,
        engine=engine,
        sampling=sampling or Sampling(),
        seed=seed,
        samples=samples,
        decodes=decodes,
        options=options,
        out=out,
        note=note,
        progress=progress,
    )


def stories(
    model: str | None = None,
    *,
    langs: Sequence[str] = (),
    data: str = "builtin",
    probes: Sequence[str] = (),
    limit: int | None = None,
    classifier: str | None = None,
    engine: str = "auto",
    sampling: Sampling | None = None,
    seed: int = 0,
    samples: int = 5,
    options: Options | None = None,
    out: str | Path | None = None,
    note: Note = _quiet,
    progress: Progress = _quiet,
) -> Run:
    """Ask a model for stories about templates with an open slot; check them, read their sentiment.

    Aqbileq 4.2: five stories a template, each with a seed of its own. langs: Kazakh where empty.
    probes: wordings of the pack, `published` where empty. classifier: of sentiment, by its card;
    each language's own where None. The rest as in `yesno`.
    """
    pack = inputs.load_pack("stories")
    codes = [inputs.language_code(lang) for lang in langs] or ["kk"]
    if _is_control(model, options):
        for code in codes:
            tales.kinds(code)  # the languages that it tells stories in
    items, notes = templates.load(data, codes)
    items = _chosen(items, notes, codes, pack, limit, note)
    judges = [registry.module("judges", "story").make()]
    try:
        for code in () if classifier else codes:
            classifiers.default(code)
    except InputError as error:  # stories can be asked for now, and their sentiment read later
        note(f"{error}; the stories are checked, their sentiment is not read")
    else:
        judges.append(registry.module("judges", "sentiment").make(classifier))
    return _run(
        "stories",
        pack,
        items,
        _probes(probes, pack) or ["published"],
        judges,
        model=model,
        data=data,
        limit=limit,
        engine=engine,
        sampling=sampling or Sampling(temperature=1.0, max_tokens=512),
        seed=seed,
        samples=samples,
        decodes=("free",),
        options=options,
        out=out,
        note=note,
        progress=progress,
    )


def essays(
    model: str | None = None,
    *,
    langs: Sequence[str] = (),
    data: str = "builtin",
    probes: Sequence[str] = (),
    limit: int | None = None,
    engine: str = "auto",
    sampling: Sampling | None = None,
    seed: int = 0,
    samples: int = 1,
    options: Options | None = None,
    out: str | Path | None = None,
    note: Note = _quiet,
    progress: Progress = _quiet,
) -> Run:
    """Ask a model for essays, reasons and remarks about statements; read where they stand.

    SHADES 4.2.2 and Appendix I, with its sampling. probes: frames of the pack, all where empty.
    The rest as in `yesno`.
    """
    if _is_control(model, options):
        raise InputError("essays need --model, or --base-url: the control model writes none")
    pack = inputs.load_pack("essays")
    codes = [inputs.language_code(lang) for lang in langs]
    items, notes = statements.load(data, codes or None)
    items = _chosen(items, notes, codes, pack, limit, note)
    return _run(
        "essays",
        pack,
        items,
        _probes(probes, pack) or list(pack.probes),
        [registry.module("judges", name).make() for name in ("stance", "refusal", "language")],
        model=model,
        data=data,
        limit=limit,
        engine=engine,
        sampling=sampling or Sampling(temperature=0.7, top_p=0.95, max_tokens=128),
        seed=seed,
        samples=samples,
        decodes=("free",),
        options=options,
        out=out,
        note=note,
        progress=progress,
    )


def logprob(
    model: str | None = None,
    *,
    langs: Sequence[str] = (),
    data: str = "builtin",
    scorers: Sequence[str] = (),
    context: str = "",
    prefix: str = "",
    plain: bool = False,
    limit: int | None = None,
    engine: str = "auto",
    options: Options | None = None,
    out: str | Path | None = None,
    note: Note = _quiet,
    progress: Progress = _quiet,
) -> Run:
    """Score pairs of sentences, or choices, by their log-probability under a model.

    data: as in `pairs.load`. scorers: of `logprob.SCORERS`; all that fit model and data where
    empty. context: what stands before every sentence of a pair; for an encoder-decoder model the
    encoder's prompt. prefix: a word put before every sentence of a table. plain: score a chat
    model as a plain language model, without its template. limit: pairs or choices a language.
    engine: transformers; vllm and openai (a running vLLM server) know causal models alone. auto:
    openai where `options.base_url` names a server, else transformers.
    Returns the run, closed. GenprobeError in one line for whatever cannot be.
    """
    from genprobe import choices, pairs
    from genprobe import logprob as scored

    items, notes = pairs.load(data, langs or None, prefix)
    for line in notes:
        note(line)
    items = scored.first(items, limit)
    chosen = any(map(choices.is_choice, items))
    for name in scorers:
        scored.find(name)
    if engine not in ("auto", *SCORING):
        raise registry.unknown("engine", engine, ["auto", *SCORING])
    options = dataclasses.replace(options or Options(), note=note)
    runner = _open_scorer(engine, model, options)
    try:
        identity = runner.identity
        if identity.chat_template != "none" and not plain and not _is_control(model, options):
            raise InputError(
                f"{model or identity.model} is a chat model, and its template is no part of these "
                "sentences; --plain scores them as plain text, and the run says so"
            )
        names = list(dict.fromkeys(scorers)) or scored.default(runner.passes, chosen)
        requests = scored.requests(items, names, runner.passes, context)
        languages = tuple(dict.fromkeys(item.lang for item in items))
        asked = {"context": digest(context)} if context else {}
        if chosen:
            asked |= {code: choices.wording(code).hash for code in languages}
        spec = Spec(
            command="logprob",
            **dataclasses.asdict(identity) | {"engine_args": {"first": runner.first}},
            pack=scored.PACK,
            pack_hashes=asked,
            data=data if data in pairs.DATA else Path(data).name,
            statements=statements_hash(items),
            languages=languages,
            probes=tuple(names),
            decode=("score",),
            temperature=None,
            top_p=None,
            max_tokens=None,
            seed=0,
            samples=1,
            limit=limit,
            packages=versions(_module(identity.engine).PACKAGES),
            version=genprobe.__version__,
        )
        folder = Path(out) if out else Path("runs") / _folder_name(spec)
        with Run.start(folder, spec, items, requests) as run:
            _generate(run, runner, Sampling(), note, progress)
            return run
    finally:
        runner.close()


def _open_scorer(engine: str, model: str | None, options: Options) -> Scorer:
    """What scores texts: of a server, where one is named; close it."""
    from genprobe import scoring

    if _is_control(model, options) and engine != "openai":
        options.note(
            "no --model: the control model runs, a test instrument and not a model to be judged"
        )
        device = "cpu" if engine != "vllm" else options.device
        options = dataclasses.replace(options, dtype="float32", device=device)
        known = models.Model("", str(control.MODEL))
    elif model is None or (options.base_url and model.lower() not in models.catalogue()):
        known = models.Model("", model or "")  # by the server's own name
    else:
        known = models.resolve(model)
    url = options.base_url or known.base_url or None
    if engine == "openai" or (engine == "auto" and url):
        from genprobe.scoring import served

        return served.open(known.id, dataclasses.replace(options, base_url=url))
    if options.base_url:
        raise InputError(f"--base-url names a server, which --engine {engine} does not ask")
    options = dataclasses.replace(
        options,
        revision=options.revision or known.revision or None,
        dtype=options.dtype or known.dtype or None,
    )
    if engine == "vllm":
        from genprobe.scoring import vllm

        scorer: Scorer = vllm.open(known.id, options)
    else:
        scorer = scoring.open(known.id, options)
    if _is_control(model, options):
        scorer.identity = dataclasses.replace(scorer.identity, model="control")
    return scorer


def checkpoints(model: str) -> list[str]:
    """The model folders in a folder, by the numbers in their names; none where it is a model."""
    folder = Path(model).expanduser()
    if not folder.is_dir() or (folder / "config.json").exists():
        return []
    found = [str(path.parent) for path in folder.glob("*/config.json")]
    return sorted(found, key=lambda name: [int(n) for n in re.findall(r"\d+", Path(name).name)])


def _is_control(model: str | None, options: Options | None) -> bool:
    return model is None and (options is None or options.base_url is None)


def _probes(names: Sequence[str], pack: inputs.Pack) -> list[str]:
    """The probes of these names, in the order of the pack. InputError for one that it lacks."""
    for name in names:
        if name not in pack.probes:
            raise registry.unknown("probe", name, list(pack.probes))
    return [name for name in pack.probes if name in names]


def _run(
    command: str,
    pack: inputs.Pack,
    items: Sequence[Statement],
    probes: Sequence[str],
    judges: Sequence[Judge],
    *,
    model: str | None,
    data: str,
    limit: int | None,
    engine: str,
    sampling: Sampling,
    seed: int,
    samples: int,
    decodes: Sequence[str],
    options: Options | None,
    out: str | Path | None,
    note: Note,
    progress: Progress,
) -> Run:
    """Plan, ask, judge: what `yesno`, `stories` and `essays` have in common."""
    if samples > 1 and not sampling.temperature and engine != "replay":
        raise InputError(
            f"{samples} samples at temperature 0 are one reply {samples} times; raise --temperature"
        )
    requests = pipeline.plan(items, pack, probes, seed, samples, decodes)
    runner = open_engine(engine, model, options or Options(), note)
    try:
        recorded = runner.identity.engine == "replay"
        drawn: dict[str, Any] = dataclasses.asdict(sampling)
        if recorded:  # how the replies were drawn is not ours to say
            drawn = dict.fromkeys(drawn)
        languages = tuple(dict.fromkeys(item.lang for item in items))
        packages = {} if recorded else versions(_module(runner.identity.engine).PACKAGES)
        spec = Spec(
            command=command,
            **dataclasses.asdict(runner.identity),
            pack=pack.id,
            pack_hashes={code: pack.hashes[code] for code in languages},
            data=data if data in statements.names() else Path(data).name,
            statements=statements_hash(items),
            languages=languages,
            probes=tuple(probes),
            decode=("recorded",) if recorded else tuple(decodes),
            **drawn,
            seed=seed,
            samples=samples,
            limit=limit,
            packages=packages,
            version=genprobe.__version__,
        )
        folder = Path(out) if out else Path("runs") / _folder_name(spec)
        with Run.start(folder, spec, items, requests) as run:
            _generate(run, runner, sampling, note, progress)
            judge_run(run, judges, progress)
            return run
    finally:
        runner.close()


def _chosen(
    items: list[Statement],
    notes: Sequence[str],
    codes: list[str],
    pack: inputs.Pack,
    limit: int | None,
    note: Note,
) -> list[Statement]:
    """The items of the languages asked for, and at most `limit` of each."""
    for line in notes:
        note(line)
    without = sorted({s.lang for s in items} - pack.wordings.keys())
    if without:
        note(f"no wordings in {', '.join(without)}: their statements are left out")
    count: dict[str, int] = {}
    chosen = []
    for item in items:
        if item.lang in without or (codes and item.lang not in codes):
            continue
        count[item.lang] = count.get(item.lang, 0) + 1
        if limit is None or count[item.lang] <= limit:
            chosen.append(item)
    missing = [code for code in codes if code not in count]
    if missing or not chosen:
        raise InputError(f"no statements in {', '.join(missing) or 'any language of the pack'}")
    return chosen


def engine_options(
    arguments: Sequence[str] = (), base_url: str | None = None, concurrency: int | None = None
) -> Options:
    """Options from `KEY=VALUE` texts. A value is read as JSON where it is JSON, else as it is.

    InputError for what is not of that form, is there twice, or looks like a key to a server.
    """
    known = {"dtype": str, "device": str, "revision": str, "batch_tokens": int}
    found: dict[str, Any] = {}
    for argument in arguments:
        name, equals, text = argument.partition("=")
        if not equals or not name.isidentifier():
            raise InputError(f"--engine-arg {argument!r} is not KEY=VALUE")
        if name in found:
            raise InputError(f"--engine-arg {name} is there twice")
        if name in ("api_key", "key", "token", "hf_token", "password"):
            raise InputError(
                f"--engine-arg {name}: keys are not given here, where others can read them; "
                "set GENPROBE_API_KEY (a server) or log in with `hf auth login` (the hub)"
            )
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
        if name in known and type(found[name]) is not known[name]:
            if known[name] is not str:
                raise InputError(f"--engine-arg {argument!r}: {name} is a whole number")
            found[name] = text
    ours = {name: found.pop(name) for name in known if name in found}
    return Options(**ours, base_url=base_url, concurrency=concurrency, more=found)


def _module(engine: str) -> ModuleType:
    return registry.module("engines", engine)


def open_engine(engine: str, model: str | None, options: Options, note: Note) -> Engine:
    """The engine that answers, for `auto` the one that fits model and machine; close it."""
    options = dataclasses.replace(options, note=note)
    if engine == "replay":  # recordings have no alias
        if model is None:
            raise InputError("replay needs --model: the run folder or the file with the recordings")
        return _module(engine).open(model, options)
    runner: Engine
    if model is None and options.base_url is None:
        note("no --model: the control model runs, a test instrument and not a model to be judged")
        engine = "transformers" if engine == "auto" else engine
        # The known rates of the control model are those of single precision; so small a model is
        # no faster on a GPU, but vLLM runs only where it was built for.
        device = options.device or ("cpu" if engine == "transformers" else None)
        options = dataclasses.replace(options, dtype="float32", device=device)
        runner = _module(engine).open(str(control.MODEL), options)
        runner.identity = dataclasses.replace(runner.identity, model="control")
        return runner
    known = models.resolve(model) if model is not None else models.Model("", "")
    if options.base_url is not None and not known.alias and model is not None:
        known = dataclasses.replace(known, id=model)
    if known.kind == "masked":
        raise InputError(
            f"{model} is a masked model, which writes no replies; name an instruct model "
            "(`genprobe list models`)"
        )
    if known.kind == "base":
        note(f"{model} is a base model: it continues the question as plain text")
    options = dataclasses.replace(
        options,
        base_url=options.base_url or known.base_url or None,
        revision=options.revision or known.revision or None,
        dtype=options.dtype or known.dtype or None,
        more={**known.engine_args, **options.more},
    )
    why = ""
    if engine == "auto":
        engine, why = (known.engine, "") if known.engine else _choose(known, options)
    runner = _module(engine).open(known.id, options)
    if why:
        note(f"engine: {engine} ({why})")
    return runner


def _choose(model: models.Model, options: Options) -> tuple[str, str]:
    """The engine for `auto`, and why."""
    if options.base_url is not None:
        return "openai", "a server is named"
    if importlib.util.find_spec("vllm") is None:
        return "transformers", "vLLM is not installed"
    import torch  # both engines need it

    if not torch.cuda.is_available():
        return "transformers", "no GPU is here"
    if model.architecture == "encoder-decoder":
        return "transformers", "vLLM does not run encoder-decoder models"
    return "vllm", "it is installed, and a GPU is here"


def _folder_name(spec: Spec) -> str:
    """Readable and its own for every spec, so that the same command finds its run again."""
    model = re.sub(r"[^\w.-]+", "-", spec.model.rstrip("/").rsplit("/", 1)[-1]) or "model"
    langs = "-".join(spec.languages) if len(spec.languages) < 4 else f"{len(spec.languages)}-langs"
    return f"{spec.command}-{model[:40]}-{langs}-{digest(dataclasses.asdict(spec), 8)}"


def _generate(run: Run, runner: Engine, sampling: Sampling, note: Note, progress: Progress) -> None:
    def step(counts: pipeline.Counts) -> None:
        progress("asking", counts.already + counts.done + counts.failed, counts.total)

    total = sum(1 for _ in run.requests())
    progress("asking", total - len(pipeline.pending(run)), total)  # the first batch may take long
    counts = pipeline.generate(run, runner, sampling, step)
    if counts.already:
        note(f"{counts.already} of {counts.total} replies were there already")
    if counts.failed:
        note(
            f"{counts.failed} of {counts.total} requests failed ({run.folder}/failures.jsonl); "
            "the same command asks them again"
        )


def judge_run(run: Run, judges: Sequence[Judge], progress: Progress = _quiet) -> dict[str, int]:
    """Judge every answer of a run again, each judge those that it reads; name -> judgments."""
    decodes = {request.id: request.decode for request in run.requests()}
    total = sum(decodes.get(name) in judge.reads for name in run.answered() for judge in judges)
    done = 0

    def step(_: str) -> None:
        nonlocal done
        done += 1
        progress("reading", done, total)

    return pipeline.judge(run, judges, step)


def judge_file(
    path: str | Path,
    judges: Sequence[Judge],
    out: str | Path | None = None,
    progress: Progress = _quiet,
) -> dict[str, dict[str, int]]:
    """Judge the rows of a JSONL, CSV or Parquet file; judge name -> label -> count.

    Rows come back in their order with each judge's columns behind their own (DESIGN.md, "The
    command line"); a column of the input with the name of one of ours is kept as `<name>_data`.
    A response that is null is no reply: its columns are null, and it is counted as `no reply`.
    out: a file, by suffix, written whole or not at all; None is stdout, as JSONL. Streams: memory
    does not grow with the file. InputError, with the row, for what cannot be judged.
    """
    counts: dict[str, dict[str, int]] = {judge.name: Counter() for judge in judges}
    progress("reading", 0, 0)

    def rows() -> Iterator[dict[str, Any]]:
        numbered = files.numbered_rows(path)
        while part := list(itertools.islice(numbered, _TOGETHER)):
            found = _together(path, part, judges)
            for (number, row), own in zip(part, found, strict=True):
                columns = _columns(row, judges, own, counts)
                yield _kept(row, columns) | columns
                if not number % 1000:
                    progress("reading", number, 0)

    files.write_rows(out, rows())
    return counts


_TOGETHER = 512  # rows that are read, judged and written at a time


def _together(
    path: str | Path, part: list[tuple[int, dict[str, Any]]], judges: Sequence[Judge]
) -> list[tuple[Verdict, ...]]:
    """Each row's verdicts, in the order of the judges."""
    found = []
    for judge in judges:
        items = []
        for number, row in part:
            with _at_row(path, number):
                items.append((number, _item(row, judge)))
        if hasattr(judge, "many"):
            try:
                found.append([verdict for _, verdict in verdicts(judge, items)])
                continue
            except InputError:  # one by one below, which says where
                pass
        one_by_one = []
        for number, item in items:
            with _at_row(path, number):
                one_by_one.append(judge(item))
        found.append(one_by_one)
    return list(zip(*found, strict=True))


@contextlib.contextmanager
def _at_row(path: str | Path, number: int) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}, row {number}: {error}") from None


def _columns(
    row: dict[str, Any],
    judges: Sequence[Judge],
    found: Sequence[Verdict],
    counts: dict[str, dict[str, int]],
) -> dict[str, Any]:
    """The judges' columns of a row, the same for every row; all null where there is no reply."""
    columns: dict[str, Any] = {}
    for judge, verdict in zip(judges, found, strict=True):
        # One judge's columns are plain; more judges than one need their names on them.
        own = f"{judge.name}_" if columns else ""
        columns[judge.column] = verdict.label
        for name, value in verdict.fields.items():
            columns[name if name not in columns else f"{judge.name}_{name}"] = value
        columns[f"{own}rule"] = verdict.rule
        columns[f"{own}evidence"] = verdict.evidence
        counts[judge.name]["no reply" if row["response"] is None else verdict.label] += 1
    return columns if row["response"] is not None else dict.fromkeys(columns)


def _kept(row: dict[str, Any], ours: Collection[str]) -> dict[str, Any]:
    """A row of the input beside our columns: none is lost, also where a file is judged again."""
    kept = {}
    for name, value in row.items():
        if name in ours:
            name += "_data"
            while name in row or name in ours:
                name += "_data"
        kept[name] = value
    return kept


def _item(row: dict[str, Any], judge: Judge) -> Item:
    values = {name: row.get(name) for name in ("lang", "probe", "prompt", "response")}
    for name in judge.needs:
        if values[name] is None and name != "response":
            raise InputError(f"the judge {judge.name!r} needs the column {name!r}")
    if "response" not in row:
        raise InputError(f"no column 'response'; columns: {', '.join(map(str, row))}")
    lang, probe, prompt, response = (
        v if isinstance(v, str) else files.cell_text(v) for v in values.values()
    )
    return Item(lang, probe, prompt, response)


def score(
    sources: Sequence[str | Path],
    *,
    metrics: Sequence[str] = (),
    by: Sequence[str] = (),
    declared: bool = False,
    reviewed: str | Path | None = None,
    scorers: Sequence[str] = (),
    perplexity: bool = False,
    people: str | Path | None = None,
    note: Note = _quiet,
) -> list[Score]:
    """Scores of run folders or of files of judged replies or scored pairs, each source by itself.

    metrics: `metrics.DEFAULT` where empty. by: the columns that make the cells; where empty
    language and probe, domain of what has one, and model if there are several; sources that share
    a cell all the same get `source` in front. declared: only the recognised declarations.
    reviewed: a table of `review import`; rates come as measured and as corrected by it, too.
    scorers: of log-prob runs; what they were asked for where empty.
    perplexity: the values of files of pairs are perplexities, lower is preferred. people: a table
    of what people say of the stereotypes of choices (`scored.with_people`). When all are counted,
    the scores of a run are also written to its `scores.json`, its outcomes to `outcomes.csv`.
    InputError in one line.
    """
    from genprobe import metrics as measures
    from genprobe import table
    from genprobe.metrics.rates import recognised_declarations

    tables = []
    for source in dict.fromkeys(map(Path, sources)):
        run = Run.open(source) if source.is_dir() else None
        try:
            if run and perplexity:
                raise InputError("--perplexity is for files of pairs; a run knows what it holds")
            if scorers and not (run and run.spec.decode == ("score",)):
                raise InputError("--scorer goes with a log-prob run")
            if run:
                outcomes = table.outcomes(run, scorers)
            else:
                outcomes = table.from_rows(files.read_rows(source), perplexity)
        except InputError as error:
            raise _about(source, error) from None
        if people is not None:
            outcomes = _with_people(source, outcomes, Path(people))
        tables.append((source, run, outcomes))
    every = [set(outcomes) for _, _, outcomes in tables]
    columns = list(by) or [c for c in ("lang", "probe") if all(c in there for there in every)]
    if not by and all("domain" in there and there & {"usable", "pro"} for there in every):
        columns.append("domain")
    differ = {name: _values_of(tables, name) for name in ("model", "revision", "scorer")}
    if not by:
        columns[:0] = [n for n in ("model", "revision") if len(differ[n]) > 1][:1]
    if differ["scorer"] and "scorer" not in columns:
        columns.insert(0, "scorer")  # belongs to the number, also where there is but one
    scores: dict[Path, list[Score]] = {}
    for source, run, outcomes in tables:
        chosen = outcomes
        if declared:
            chosen, left = recognised_declarations(outcomes)
            reasons = ", ".join(f"{count} {why}" for why, count in left.items() if count)
            note(f"{source}: recognised declarations only; left out: {reasons or 'nothing'}")
        subset = ("+declared" if declared else "") + ("+perplexity" if perplexity else "")
        sign = _signer(source, run, subset, {"yesno": "given"} if "answer" in chosen else {})
        if people is not None:
            sign = _beside(sign, Path(people))
        # What no judge has looked at is left out, unless it was asked for by name.
        names = metrics or [m for m in measures.DEFAULT if measures.find(m).fits(chosen)]
        try:
            whole = [n for n in names if not by and measures.find(n).whole]
            rest = [n for n in names if n not in whole]
            scores[source] = measures.score(chosen, rest, columns, sign)
            scores[source] += measures.score(chosen, whole, [], sign)
            if reviewed is not None:
                scores[source] += _corrected(source, run, chosen, Path(reviewed), by, sign)
        except InputError as error:
            raise _about(source, error) from None
    for source, run, outcomes in tables:
        if run:
            run.write_scores(scores[source])
            files.write_rows(run.folder / "outcomes.csv", _plain_rows(outcomes))
    return _told_apart(scores)


def _values_of(tables: Sequence[tuple[Path, Run | None, pd.DataFrame]], column: str) -> set[Any]:
    """The values of a column that all tables have; none where one lacks it."""
    if not all(column in outcomes for _, _, outcomes in tables):
        return set()
    return {value for _, _, outcomes in tables for value in set(outcomes[column])}


def _with_people(source: Path, outcomes: pd.DataFrame, people: Path) -> pd.DataFrame:
    import pandas as pd

    from genprobe import scored

    if "p_target" not in outcomes:
        raise InputError(f"{source} holds no probabilities of choices to set beside people's")
    rows = pd.DataFrame(list(files.read_rows(people)), dtype=object)
    try:
        return scored.with_people(outcomes, rows)
    except InputError as error:
        raise _about(people, error) from None


def compare(
    first: str | Path,
    others: Sequence[str | Path],
    *,
    metrics: Sequence[str] = (),
    by: Sequence[str] = (),
) -> list[Score]:
    """Each of the other runs against the first, item by item (`genprobe.compare.paired`).

    metrics: of those that pair, all that both runs have, where empty. by: columns that make the
    cells; one cell of all where empty. RunError where two runs differ in more than who was asked;
    InputError for what cannot be compared.
    """
    from genprobe import compare as pairing
    from genprobe import metrics as measures
    from genprobe import table

    runs = [Run.open(folder) for folder in (first, *others)]
    a = runs[0]
    for b in runs[1:]:
        _asked_alike(a, b)
    tables = [table.outcomes(run) for run in runs]
    named = [name or run.folder.name for name, run in zip(_models(runs), runs, strict=True)]
    scores = []
    for at in range(1, len(runs)):
        two = (tables[0], tables[at])
        chosen = metrics or [
            name
            for name in measures.DEFAULT
            if pairing.fits(measures.find(name), by) and all(map(measures.find(name).fits, two))
        ]
        for name in chosen:
            found = pairing.paired(*two, name, by)
            signs = [_signer(run.folder, run, "", {})(name) for run in (a, runs[at])]
            scores += pairing.scores(
                [p for p in found if p.n], named[0], named[at], both_signatures(*signs)
            )
    return scores


def _asked_alike(a: Run, b: Run, but: Collection[str] = WHO) -> None:
    """RunError where two runs differ in more than the fields `but`, or in who read the answers."""
    if apart := a.spec.differences(b.spec, but):
        raise RunError(
            f"{a.folder} and {b.folder} differ in more than the model ({'; '.join(apart)}); "
            "ask both in the same way"
        )
    mine, theirs = a.judges(), b.judges()
    for name in mine.keys() & theirs.keys():
        if mine[name] != theirs[name]:
            raise RunError(
                f"{a.folder} and {b.folder} were read by different judges {name!r}; "
                f"run `genprobe judge` with --judge {name} on both"
            )


# What the runs of a kind may differ in besides the model; what makes a row of their tables.
_MAY = {"yesno": (*WHO, "decode"), "logprob": (*WHO, "probes")}
_ROW = {
    "yesno": ["decode", "lang", "probe", "statement", "sample"],
    "logprob": ["scorer", "lang", "item", "contrast"],
}


def paradigms(
    folders: Sequence[str | Path], *, by: Sequence[str] = (), note: Note = _quiet
) -> list[Score]:
    """What models say against what they prefer (`genprobe.paradigms`), each by its own yes/no and
    log-prob runs, which are told apart, and matched by model and revision.

    by: columns that make the cells besides model, reading and scorer; language where empty. Items
    that do not count are told to `note`. RunError where a model lacks runs of a kind, or two models
    were not asked alike; InputError for what else cannot be compared.
    """
    from genprobe import paradigms as both
    from genprobe import table

    columns = [c for c in by or ["lang"] if c not in ("model", "decode", "scorer")]
    models = _by_model([Run.open(folder) for folder in dict.fromkeys(map(Path, folders))])
    first = next(iter(models.values()))
    scores: list[Score] = []
    signers: list[Callable[[str], str]] = []
    for name, runs in models.items():
        for kind, of_kind in runs.items():
            for run in of_kind:
                like = (r for r in first[kind] if not r.spec.differences(run.spec, _MAY[kind]))
                _asked_alike(next(like, first[kind][0]), run, _MAY[kind])
        try:
            said, preferred = (
                _whole([table.outcomes(run) for run in of_kind], _ROW[kind])
                for kind, of_kind in runs.items()
            )
            found = both.items(said, preferred, columns)
        except InputError as error:
            folder = " and ".join(str(r.folder) for of_kind in runs.values() for r in of_kind)
            raise InputError(f"{folder}: {error}") from None
        own = [_signer(r.folder, r, "", {}) for of_kind in runs.values() for r in of_kind]
        signers += own
        one = name if len(models) > 1 else None
        scores += both.scores(found, columns, _signed_by(own), one)
        for line in both.notes(found):
            note(f"{name}: {line}" if one else line)
    if len(models) > 1:
        scores += both.ranking(scores, _signed_by(signers))
    if 1 < len(models) < both.LEAST:
        note(f"{len(models)} models: whether they are ranked alike takes {both.LEAST} at least")
    return scores


def _by_model(runs: Sequence[Run]) -> dict[str, dict[str, list[Run]]]:
    """Name of a model -> its runs of each kind, at least one. RunError for a run of another kind,
    and for a model that lacks a kind."""
    known: dict[tuple[str, str], dict[str, list[Run]]] = {}
    for run in runs:
        kind = run.spec.command
        if kind not in _ROW:
            raise RunError(
                f"{run.folder} is a run of `{kind}`; give those of `yesno` and `logprob`"
            )
        of = known.setdefault((run.spec.model, run.spec.revision), {k: [] for k in _ROW})
        of[kind].append(run)
    for (model, revision), of in known.items():
        for kind, other in itertools.permutations(_ROW):
            if of[kind]:
                continue
            there = [r for (m, _), o in known.items() if m == model for r in o[kind]]
            cure = f"run `genprobe {kind}` on it"
            if there:
                cure = f"{there[0].folder} is of revision {there[0].spec.revision}"
            raise RunError(
                f"{of[other][0].folder}: no `{kind}` run of {model}, revision {revision}; {cure}"
            )
    short = Counter(model.rstrip("/").rsplit("/", 1)[-1] for model, _ in known)
    named = {}
    for (model, revision), of in known.items():
        name = model.rstrip("/").rsplit("/", 1)[-1]
        named[name if short[name] == 1 else f"{model}@{revision[:12]}"] = of
    return named


def _whole(tables: Sequence[pd.DataFrame], key: Sequence[str]) -> pd.DataFrame:
    """The tables of several runs of one model as one. InputError where a row is in two."""
    import pandas as pd

    whole = pd.concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]
    if len(tables) > 1 and whole.duplicated([c for c in key if c in whole]).any():
        raise InputError("these runs ask the same question twice; give one of them")
    return whole


def _signed_by(signers: Sequence[Callable[[str], str]]) -> Callable[[str], str]:
    """Metric -> the signature of a number that rests on all of these runs."""
    return lambda metric: both_signatures(*(sign(metric) for sign in signers))


def _models(runs: Sequence[Run]) -> list[str]:
    """The runs' models by name, empty where two runs are of one."""
    models = [run.spec.model.rstrip("/").rsplit("/", 1)[-1] for run in runs]
    return [m if models.count(m) == 1 else "" for m in models]


def _corrected(
    source: Path,
    run: Run | None,
    outcomes: pd.DataFrame,
    table: Path,
    by: Sequence[str],
    sign: Callable[[str], str],
) -> list[Score]:
    """The rates that the questions of a review are about, as measured and as corrected by it."""
    import pandas as pd

    from genprobe import corrected, reviewed

    if run is None:
        raise InputError("a review corrects the rates of a run; name its folder")
    spec = reviewed.spec_digest(run)  # folders move; an item names its run by what was asked
    every = reviewed.resolve(reviewed.read_table(table))
    rows = [r for r in every if r.item == reviewed.item_id(spec, r.request)]
    if not rows:
        raise InputError(f"{table} holds no review of this run")
    said = pd.DataFrame(
        {"request": r.request, "question": r.question, "answer": r.label, "weight": r.weight}
        for r in rows
    )
    said["reviewer"] = "resolved"
    content = digest(table.read_bytes().hex(), 8)
    return [
        dataclasses.replace(s, signature=sign(f"{s.metric}/{corrected.VERSION}+review-{content}"))
        for s in corrected.scores(outcomes, said, by)
    ]


def _about(source: Path, error: InputError) -> InputError:
    """The error with the name of the source in front, if it does not say it already."""
    return error if str(error).startswith(f"{source}") else InputError(f"{source}: {error}")


def _told_apart(scores: dict[Path, list[Score]]) -> list[Score]:
    """All scores; where two sources share a cell, each cell begins with its source's name."""
    found = [score for part in scores.values() for score in part]
    if len({(s.metric, *s.by.items()) for s in found}) == len(found):
        return found
    return [
        dataclasses.replace(s, by={"source": str(source), **s.by})
        for source, part in scores.items()
        for s in part
    ]


def _signer(
    source: Path, run: Run | None, subset: str, given: Mapping[str, str]
) -> Callable[[str], str]:
    """Metric name -> signature of its scores over this source. given: judges of a file's labels."""
    if run:
        # What people said is counted where it is asked for, and says so itself.
        judges = {k: v for k, v in run.judges().items() if not k.startswith("reviewed-")}
        spec = run.spec
        return lambda name: signature(spec, judges, _metric_id(name) + subset)
    # The file is read once; its hash, not who judged it, is what is known of its labels.
    one = file_signature(source, given, "METRIC")
    return lambda name: one.replace("METRIC", _metric_id(name) + subset, 1)


def _beside(sign: Callable[[str], str], people: Path) -> Callable[[str], str]:
    """Signatures in which those measures that read people's answers name their table."""
    from genprobe import metrics as measures

    content = digest(people.read_bytes().hex(), 8)
    return lambda name: (
        sign(f"{measures.find(name).id}+people-{content}")
        if "/" not in name and "people" in measures.find(name).needs
        else sign(name)
    )


def _metric_id(name: str) -> str:
    """Of a metric by its name, or of what has said its own version."""
    from genprobe import metrics as measures

    return name if "/" in name else measures.find(name).id


def _plain_rows(outcomes: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Rows of Python values, None where a cell is empty."""
    import pandas as pd

    columns = [str(column) for column in outcomes.columns]

    def plain(value: Any) -> Any:
        if isinstance(value, list | tuple | dict):
            return value
        return None if pd.isna(value) else getattr(value, "item", lambda: value)()

    for row in outcomes.itertuples(index=False, name=None):
        yield dict(zip(columns, map(plain, row), strict=True))
