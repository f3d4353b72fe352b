"""Models are asked and scored: `yesno`, `stories`, `essays`, `logprob`.

Each checks all of its input before it starts anything slow, and prints nothing: notes for a
person go to `note`, progress to `progress`.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import re
from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from genprobe import classifiers
from genprobe._version import __version__
from genprobe.datasets import statements, templates
from genprobe.engines import Engine, Options, Sampling, control
from genprobe.engines.control import stories as tales
from genprobe.engines.scoring import Scorer
from genprobe.errors import EngineError, InputError
from genprobe.judges import Judge
from genprobe.records import Statement, digest
from genprobe.render.notebook import Run
from genprobe.resources import models, packs, registry
from genprobe.runs.spec import Spec, statements_hash, versions
from genprobe.tasks import pipeline
from genprobe.tasks.judging import OTHERS, Note, Progress, judge_run, quiet
from genprobe.text import natural, whole

DECODES = ("free", "choice", "logprob")
SCORING = ("transformers", "vllm", "openai")  # engines that score texts
LASTING = frozenset(("too-long", "unscorable"))  # kinds of failures that asking again repeats
# The judges of a yes/no run, by decode, in the order of their columns.
JUDGES = {
    "free": ("yesno", "refusal", "language"),
    "choice": ("yesno",),
    "logprob": ("probability",),
}


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
    by: Sequence[str] = (),
    note: Note = quiet,
    progress: Progress = quiet,
) -> Run:
    """Ask a model yes/no questions about statements and judge its replies.

    model: an alias, a hub id or a folder (for `replay`: a run or file of recordings); None is the
    control model, or the only one of a server. langs, probes: all that the data and the pack have,
    where empty. decodes: of `DECODES`. limit: statements a language. out: the run folder, which
    the same call resumes; None derives its name. by: columns by which the outcomes will be split;
    one that they cannot have is refused before the model is loaded.
    Returns the run, closed, with judgments. GenprobeError in one line for whatever cannot be.
    """
    pack = packs.load_pack("yesno")
    codes = [packs.language_code(lang) for lang in langs]
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
        by=by,
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
    by: Sequence[str] = (),
    note: Note = quiet,
    progress: Progress = quiet,
) -> Run:
    """Ask a model for stories about templates with an open slot; check them, read their sentiment.

    Aqbileq 4.2: five stories a template, each with a seed of its own. langs: Kazakh where empty.
    probes: wordings of the pack, `published` where empty. classifier: of sentiment, by its card;
    each language's own where None. The rest as in `yesno`.
    """
    pack = packs.load_pack("stories")
    codes = [packs.language_code(lang) for lang in langs] or ["kk"]
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
        by=by,
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
    by: Sequence[str] = (),
    note: Note = quiet,
    progress: Progress = quiet,
) -> Run:
    """Ask a model for essays, reasons and remarks about statements; read where they stand.

    SHADES 4.2.2 and Appendix I, with its sampling. probes: frames of the pack, all where empty.
    The rest as in `yesno`.
    """
    if _is_control(model, options):
        raise InputError("essays need --model, or --base-url: the control model writes none")
    pack = packs.load_pack("essays")
    codes = [packs.language_code(lang) for lang in langs]
    items, notes = statements.load(data, codes or None)
    items = _chosen(items, notes, codes, pack, limit, note)
    return _run(
        "essays",
        pack,
        items,
        _probes(probes, pack) or list(pack.probes),
        [registry.module("judges", name).make() for name in OTHERS["essays"]],
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
        by=by,
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
    by: Sequence[str] = (),
    note: Note = quiet,
    progress: Progress = quiet,
) -> Run:
    """Score pairs of sentences, or choices, by their log-probability under a model.

    data: as in `pairs.load`. scorers: of `logprob.SCORERS`; those of `logprob.DEFAULT` that fit
    model and data where empty. context: what stands before every sentence of a pair; for an
    encoder-decoder model the encoder's prompt. prefix: a word put before every sentence of a table.
    plain: score a chat model as a plain language model, without its template. limit: pairs or
    choices a language. by: as in `yesno`.
    engine: transformers; vllm and openai (a running vLLM server) know causal models alone. auto:
    openai where `options.base_url` names a server, else transformers.
    Returns the run, closed. GenprobeError in one line for whatever cannot be.
    """
    from genprobe.datasets import choices, pairs
    from genprobe.outcomes import preferences as scored

    items, notes = pairs.load(data, langs or None, prefix)
    for line in notes:
        note(line)
    items = scored.first(items, limit)
    chosen = any(map(choices.is_choice, items))
    scored.check(scorers, chosen)
    if context and chosen:
        raise InputError("choices have a context of their own; --context goes with pairs")
    if whole(context) != context:
        raise InputError("the context holds half a character; give it in UTF-8")
    if by:
        _splits(by, scored.columns(items))
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
            version=__version__,
        )
        folder = Path(out) if out else Path("runs") / _folder_name(spec)
        with Run.start(folder, spec, items, requests) as run:
            _generate(run, runner, Sampling(), note, progress)
            _tell_unknown(run, runner.unknown, note)
            return run
    finally:
        runner.close()


def _open_scorer(engine: str, model: str | None, options: Options) -> Scorer:
    """What scores texts: of a server, where one is named; close it."""
    from genprobe.engines import scoring

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
        from genprobe.engines.scoring import served

        return served.open(known.id, dataclasses.replace(options, base_url=url))
    if options.base_url:
        raise InputError(f"--base-url names a server, which --engine {engine} does not ask")
    options = dataclasses.replace(
        options,
        revision=options.revision or known.revision or None,
        dtype=options.dtype or known.dtype or None,
    )
    if engine == "vllm":
        from genprobe.engines.scoring import vllm

        scorer: Scorer = vllm.open(known.id, options)
    else:
        scorer = scoring.open(known.id, options)
    if _is_control(model, options):
        scorer.identity = dataclasses.replace(scorer.identity, model="control")
    return scorer


def _tell_unknown(run: Run, unknown: int | None, note: Note) -> None:
    """In which languages the model has no token for parts of the texts: it is the same one for all
    that is unknown, so that its probability is not theirs."""
    langs = {request.id: request.lang for request in run.requests()}
    held = Counter(
        langs[record.request]
        for record in run.logprobs()
        if any(unknown in part["tokens"] for part in record.continuations)
    )
    if held:
        of = Counter(langs.values())
        parts = ", ".join(f"{lang} {n} of {of[lang]}" for lang, n in held.items())
        note(f"texts with what the model has no token for, of which its values say little: {parts}")


def checkpoints(model: str) -> list[str]:
    """The model folders in a folder, step-9 before step-10; none where it is a model."""
    folder = Path(model).expanduser()
    if not folder.is_dir() or (folder / "config.json").exists():
        return []
    found = [str(path.parent) for path in folder.glob("*/config.json")]
    return sorted(found, key=natural)


def _splits(by: Sequence[str], columns: Sequence[str]) -> None:
    """InputError for a column that the outcomes will not have."""
    for column in by:
        if column not in columns:
            raise registry.unknown("column", column, list(dict.fromkeys(columns)))


def _is_control(model: str | None, options: Options | None) -> bool:
    return model is None and (options is None or options.base_url is None)


def _probes(names: Sequence[str], pack: packs.Pack) -> list[str]:
    """The probes of these names, in the order of the pack. InputError for one that it lacks."""
    for name in names:
        if name not in pack.probes:
            what = {"stories": "wording", "essays": "frame"}.get(pack.name, "probe")
            raise registry.unknown(what, name, list(pack.probes))
    return [name for name in pack.probes if name in names]


def _run(
    command: str,
    pack: packs.Pack,
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
    by: Sequence[str],
    note: Note,
    progress: Progress,
) -> Run:
    """Plan, ask, judge: what `yesno`, `stories` and `essays` have in common."""
    if samples > 1 and not sampling.temperature and engine != "replay":
        raise InputError(
            f"{samples} samples at temperature 0 are one reply {samples} times; raise --temperature"
        )
    if by:
        from genprobe.outcomes import table

        _splits(by, table.columns(items))
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
            version=__version__,
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
    pack: packs.Pack,
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
    if found.get("batch_tokens", 1) < 1:
        raise InputError(f"--engine-arg batch_tokens={found['batch_tokens']}: 1 at least")
    ours = {name: found.pop(name) for name in known if name in found}
    return Options(**ours, base_url=base_url, concurrency=concurrency, more=found)


def _module(engine: str) -> ModuleType:
    return registry.module("engines", engine)


def open_engine(engine: str, model: str | None, options: Options, note: Note) -> Engine:
    """The engine that answers, for `auto` the one that fits model and machine; close it."""
    options = dataclasses.replace(options, note=note)
    if engine != "auto" and engine not in registry.names("engines"):
        raise registry.unknown("engine", engine, ["auto", *registry.names("engines")])
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
    names = [spec.model.rstrip("/").rsplit("/", 1)[-1] or "model", spec.checkpoint]
    model = "-".join(re.sub(r"[^\w.-]+", "-", name)[:40] for name in names if name)
    langs = "-".join(spec.languages) if len(spec.languages) < 4 else f"{len(spec.languages)}-langs"
    return f"{spec.command}-{model}-{langs}-{spec.hash[:8]}"


def _generate(run: Run, runner: Engine, sampling: Sampling, note: Note, progress: Progress) -> None:
    def step(counts: pipeline.Counts) -> None:
        progress("asking", counts.already + counts.done + counts.failed, counts.total)

    total = sum(1 for _ in run.requests())
    progress("asking", total - len(pipeline.pending(run)), total)  # the first batch may take long
    counts = pipeline.generate(run, runner, sampling, step)
    if counts.already:
        note(f"{counts.already} of {counts.total} replies were there already")
    if counts.failed:
        last = list(deque(run.failures(), counts.failed))
        kinds = Counter(one.kind for one in last)
        ((kind, _),) = kinds.most_common(1)
        details = Counter(one.detail or kind for one in last if one.kind == kind)
        ((why, n),) = details.most_common(1)
        such = "such as " if n < sum(details.values()) else ""
        others = f" (and {len(last) - sum(details.values())} others)" if len(kinds) > 1 else ""
        cure = "" if LASTING.issuperset(kinds) else "; the same command asks them again"
        said = f"requests failed: {such}{why[:200]}{others} ({run.folder}/failures.jsonl){cure}"
        if counts.failed == counts.total:
            raise EngineError(f"all {counts.total} {said}")
        note(f"{counts.failed} of {counts.total} {said}")
