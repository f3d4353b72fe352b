"""The tasks of the command line as Python functions, such as `genprobe.yesno(…)`.

Each makes one `tasks.Ask` and runs the task. The arguments are the fields of `Ask`. Each returns
the run, closed, with its judgments, and raises GenprobeError.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from genprobe import tasks
from genprobe.engines import Options, Sampling
from genprobe.render.notebook import Run
from genprobe.tasks import Ask
from genprobe.tasks.pipeline import Note, Progress, quiet


def yesno(
    model: str | None = None,
    *,
    langs: Sequence[str] = (),
    data: str = "builtin",
    pack: str | Path = "",
    probes: Sequence[str] = (),
    wordings: str = "published",
    personas: str = "none",
    instruct: Sequence[str] = ("own",),
    limit: int | None = None,
    engine: str = "auto",
    sampling: Sampling | None = None,
    seed: int = 0,
    samples: int = 1,
    decodes: Sequence[str] = ("free",),
    options: Options | None = None,
    out: str | Path | None = None,
    by: Sequence[str] = (),
    second_reader: str = "",
    ask_again: bool = False,
    note: Note = quiet,
    progress: Progress = quiet,
) -> Run:
    """Ask a model yes/no questions about statements and judge its replies.

    model: an alias, a hub id or a folder (for `replay`: a run or file of recordings); None means
    the control model, or the only model of a server. langs, probes: if empty, all languages of the
    data and all probes of the pack. pack: the file of a pack of your own. wordings, personas,
    instruct: how a question varies (`published`, `all` or N; `none`, `all` or N; `own`, `en` or
    both). decodes: `free`, `choice`, `logprob`. limit: the largest number of statements of each
    language. out: the run folder, which the same call resumes; None means a name derived from the
    settings. by: columns by which the outcomes will be split; impossible ones are refused before
    the model is loaded. second_reader: a model that reads what the rules leave open. ask_again:
    also ask the model again about it.
    """
    return tasks.run("yesno", _ask(**locals()))


def stories(
    model: str | None = None,
    *,
    langs: Sequence[str] = (),
    data: str = "builtin",
    probes: Sequence[str] = (),
    wordings: str = "published",
    personas: str = "none",
    limit: int | None = None,
    classifier: str | None = None,
    engine: str = "auto",
    sampling: Sampling | None = None,
    seed: int = 0,
    samples: int = 5,
    options: Options | None = None,
    out: str | Path | None = None,
    by: Sequence[str] = (),
    second_reader: str = "",
    note: Note = quiet,
    progress: Progress = quiet,
) -> Run:
    """Ask a model for stories about templates with an open slot; check them, read their sentiment.

    As in Aqbileq 4.2: five stories per template, each with its own seed. langs: Kazakh if empty.
    probes: wordings of the pack, `published` if empty. classifier: card of a sentiment classifier;
    None means the default of each language. The other arguments are those of `yesno`.
    """
    return tasks.run("stories", _ask(**locals()))


def essays(
    model: str | None = None,
    *,
    langs: Sequence[str] = (),
    data: str = "builtin",
    probes: Sequence[str] = (),
    wordings: str = "published",
    personas: str = "none",
    instruct: Sequence[str] = ("own",),
    limit: int | None = None,
    engine: str = "auto",
    sampling: Sampling | None = None,
    seed: int = 0,
    samples: int = 1,
    options: Options | None = None,
    out: str | Path | None = None,
    by: Sequence[str] = (),
    second_reader: str = "",
    note: Note = quiet,
    progress: Progress = quiet,
) -> Run:
    """Ask a model for essays, reasons and remarks about statements; read which side they take.

    As in SHADES 4.2.2 and Appendix I, with its sampling. probes: frames of the pack, all if empty.
    The other arguments are those of `yesno`.
    """
    return tasks.run("essays", _ask(**locals()))


def choices(
    model: str | None = None,
    *,
    data: str,
    langs: Sequence[str] = (),
    probes: Sequence[str] = (),
    orders: str = "all",
    shots: str | Path | None = None,
    unknowns: bool = False,
    wordings: str = "published",
    personas: str = "none",
    instruct: Sequence[str] = ("own",),
    limit: int | None = None,
    engine: str = "auto",
    sampling: Sampling | None = None,
    seed: int = 0,
    samples: int = 1,
    decodes: Sequence[str] = ("free",),
    options: Options | None = None,
    out: str | Path | None = None,
    by: Sequence[str] = (),
    second_reader: str = "",
    ask_again: bool = False,
    note: Note = quiet,
    progress: Progress = quiet,
) -> Run:
    """Ask a model questions with options (BBQ's layout); read which one it chooses.

    probes: frames, `letters` if empty. orders: `all` orders of the options, a `balanced` rotation,
    or `given`. shots: a file of examples. unknowns: also ask without the unknown option, and with
    it in other words (`datasets.choices.unknowns`). The other arguments are those of `yesno`.
    """
    return tasks.run("choices", _ask(**locals()))


def logprobs(
    model: str | None = None,
    *,
    langs: Sequence[str] = (),
    data: str = "builtin",
    scorers: Sequence[str] = (),
    context: str = "",
    prefix: str = "",
    plain: bool = False,
    chat: bool = False,
    preprocess: str = "",
    limit: int | None = None,
    engine: str = "auto",
    options: Options | None = None,
    out: str | Path | None = None,
    by: Sequence[str] = (),
    note: Note = quiet,
    progress: Progress = quiet,
) -> Run:
    """Score pairs of sentences, or choices, by their log-probability under a model.

    data: as in `datasets.pairs.load`. scorers: of `genprobe list scorers`; if empty, those that fit
    model and data. context: text before every sentence of a pair; for an encoder-decoder model the
    encoder's prompt. prefix: a word put before every sentence of a table. plain: score a chat model
    without its template. chat: score the text as the beginning of the model's turn in its template.
    preprocess: `rubia`. limit: the largest number of pairs or choices of each language. engine:
    transformers; vllm and openai (a running vLLM server) only for causal models; auto means openai
    if `options.base_url` names a server, else transformers.
    """
    return tasks.run("logprob", _ask(**locals()))


def _ask(options: Options | None, **fields: object) -> Ask:
    lists = ("langs", "probes", "decodes", "by")  # a single name stands for a list
    one = {name: (fields[name],) for name in lists if isinstance(fields.get(name), str)}
    return Ask(options=options or Options(), **fields | one)  # type: ignore[arg-type]
