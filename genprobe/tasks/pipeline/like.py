"""Ask the questions of an earlier run again, as its folder holds them.

Statements, wordings, languages, personas, system prompt and samples are the stored ones, whatever
packs are installed now, so the requests have the same ids and both runs pair item by item. A folder
may come from a stranger: it says what is asked, never to which server (and with whose key).
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from genprobe.engines import Options, Sampling, Thinking
from genprobe.errors import InputError, RunError
from genprobe.records import Request, derive_seed, request_id
from genprobe.runs.run import Run
from genprobe.runs.spec import LOG, WHO, Spec

_TOKENS = re.compile(r"(\d+) tokens")
_COMMIT = re.compile(r"[0-9a-f]{40}")
# What a run keeps of the one whose questions it asks again.
_KEPT = (
    *("pack", "pack_hashes", "data", "probes", "decode", "temperature", "top_p", "max_tokens"),
    *("seed", "samples", "limit", "wordings", "personas", "instruct", "system"),
    *("data_version", "data_licence", "data_citation"),
)


def sampled(spec: Spec, default: Sampling) -> tuple[Sampling, list[str]]:
    """Return how the replies of a run were sampled, and the settings that nobody knows.

    default: the values of these.
    """
    drawn = dataclasses.asdict(default)
    known = {name: v for name in drawn if (v := getattr(spec, name)) is not None}
    return dataclasses.replace(default, **known), [name for name in drawn if name not in known]


def whom(run: Run, model: str | None, options: Options) -> tuple[str | None, Options]:
    """Return the model that is asked again, and how: the one given, else the run's own.

    Raises InputError if the folder alone does not say which model, or the run asked a server, which
    is to be named by the user.
    """
    spec, named = run.spec, model is not None or options.base_url is not None
    if options.thinking == Thinking():
        mode, tokens = spec.thinking.partition(" ")[0], _TOKENS.search(spec.thinking)
        mode = "default" if mode[:1].isdigit() else mode or "default"
        room = int(tokens[1]) if tokens else None
        options = dataclasses.replace(options, thinking=Thinking(mode, room))
    if model is None and options.base_url is not None and spec.server:
        model = spec.model
    if not named:
        if spec.engine in (LOG, "replay"):
            raise InputError(f"{run.folder}: holds replies that were recorded; name --model")
        if spec.server:
            raise InputError(
                f"{run.folder}: asked {spec.model} at {spec.server}; name the server with "
                "--base-url, since a folder may not say where your key is sent"
            )
        if spec.model != "control":
            model = spec.model
            if _COMMIT.fullmatch(spec.revision) and options.revision is None:
                options = dataclasses.replace(options, revision=spec.revision)
    template = spec.engine_args.get("template")
    if model == spec.model and isinstance(template, dict) and not options.template_args:
        options = dataclasses.replace(options, template_args=template)
    return model, options


def questions(run: Run) -> list[Request]:
    """Return the requests of a run, as they were asked.

    Raises RunError for one that was edited, InputError if they cannot be asked again.
    """
    asked = list(run.requests())
    for number, r in enumerate(asked, 1):
        made = request_id(
            *(r.statement, r.lang, r.pack, r.probe, r.messages, r.sample, r.decode, r.options)
        )
        if made != r.id or r.seed != derive_seed(run.spec.seed, r.id, r.sample):
            where = f"{run.folder}/requests.jsonl:{number}"
            raise RunError(f"{where}: was edited; `genprobe verify {run.folder}` says more")
    if run.spec.engine == LOG:
        _need_whole(run, asked)
    return asked


def _need_whole(run: Run, asked: list[Request]) -> None:
    """Raise InputError unless a log tells all prompts, and of each statement the same."""
    without = sum(not any(m["content"] for m in r.messages) for r in asked)
    if without:
        what = f"{without} of {len(asked)} questions have no prompt in the folder"
        raise InputError(f"{run.folder}: {what}, so they cannot be asked again")
    probes: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for r in asked:
        probes[r.lang, r.statement][r.probe] += 1
    if len({tuple(sorted(found.items())) for found in probes.values()}) > 1:
        raise InputError(
            f"{run.folder}: the log asks more about some statements than about others; name a "
            "table of them with --data to ask all the same"
        )


def fields(
    old: Spec, decodes: Sequence[str], sampling: Sampling | None, recorded: bool
) -> dict[str, object]:
    """Return the fields of the spec that say what is asked: those of the old run.

    decodes, sampling: of this run; None if nothing is sampled. recorded: its replies are recorded.
    """
    kept = {name: getattr(old, name) for name in _KEPT}
    if sampling is None:
        return kept
    drawn = dataclasses.asdict(sampling)
    if recorded:
        return kept | dict.fromkeys(drawn) | {"decode": ("recorded",)}
    return kept | drawn | {"decode": tuple(decodes)}


def apart(old: Spec, new: Spec) -> str:
    """Say how a run is not like the one whose questions it asks; "" if in nothing but the model.

    Of the same model, everything is told that may change a reply.
    """
    but = ("version", "packages") if old.model == new.model else WHO
    return "; ".join(old.differences(new, but))
