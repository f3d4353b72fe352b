"""The cards of a publication: for people, for the Hugging Face hub, for Croissant, to be cited."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from genprobe import metrics, tasks
from genprobe.files import door
from genprobe.outcomes import counted
from genprobe.records import Score
from genprobe.render import croissant
from genprobe.runs import card
from genprobe.runs.run import Run
from genprobe.text import many, whole

README, INDEX, CROISSANT, CITE = "README.md", "model-index.yml", "croissant.json", "CITATION.cff"
_ABOUT = (
    "What language models replied to questions about stereotypes, how the replies were read, and "
    "the figures that were counted of them, each with its interval, its n and its signature."
)
_LICENCE = (
    "Statements of genprobe: Apache-2.0; of other data: as their source says; replies: as the "
    "licence of the model says."
)
_WARNING = (
    "The statements are stereotypes, offensive by nature, and the replies may be as bad. They are "
    "here to measure and reduce harm: for evaluation, never for training."
)
_LIMITS = (
    "What a model says when it is asked is not what it does in use; another question, language or "
    "statement may give another figure.",
    "An interval speaks for statements like those asked. Where each was asked in one wording, it "
    "says nothing about other wordings.",
    "A judge errs. A figure rests on its reading; where a share is corrected for its errors, it is "
    "named so. Replies that no judge could read are left out of n and inside the bounds.",
    "Neither end of most measures is better by itself; a model that answers nothing is not fair.",
    "Who could write to this folder could make it anew: compare the SHA-256 of SHA256SUMS, or the "
    "seals in the signatures, with what the authors published elsewhere.",
)

Runs = Sequence[tuple[Mapping[str, Any], Run]]  # what published.json says of a run, and the run


def made(runs: Runs, about: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (file name, text) of each card. runs: in the publication."""
    models = list(dict.fromkeys(run.spec.model for _, run in runs))
    title = f"genprobe: {', '.join(dict.fromkeys(run.spec.command for _, run in runs))} of " + (
        ", ".join(models) if len(models) < 4 else many(len(models), "model")
    )
    yield README, whole("\n".join([*_front(runs, title), *_page(runs, about, title)]) + "\n")
    yield INDEX, json.dumps({"model-index": [_index(run) for _, run in runs]}, indent=2) + "\n"
    document = json.dumps(_croissant(runs, about, title), indent=2, ensure_ascii=False)
    yield CROISSANT, whole(document) + "\n"
    cite = {
        "cff-version": "1.2.0",
        "message": "Cite this folder with the SHA-256 of its SHA256SUMS, and genprobe.",
        "type": "dataset",
        "title": title,
        "authors": [{"name": "those who published it"}],
        "date-released": about["at"][:10],
        "references": [
            {
                "type": "software",
                "title": "genprobe",
                "version": about["genprobe"],
                "authors": [{"name": "The genprobe authors"}],
            }
        ],
    }
    yield CITE, "".join(f"{key}: {json.dumps(value)}\n" for key, value in cite.items())


def _front(runs: Runs, title: str) -> list[str]:
    """Write the YAML metadata at the head of the card, which the hub reads."""
    configs: list[dict[str, Any]] = []
    for said, run in runs:
        place = f"runs/{said['name']}"
        # All in JSON, because `datasets` reads the files of a card in one format.
        for one in card.configurations(run.folder):
            one.pop("default", None)
            own = {"config_name": f"{said['name']}-{one['config_name']}"}
            configs.append(one | own | {"data_files": f"{place}/{one['data_files']}"})
    head = {
        "license": "other",
        "license_name": "see-card",
        "pretty_name": title,
        "language": sorted(
            {lang.partition("-")[0] for _, run in runs for lang in run.spec.languages}
        ),
        "tags": ["not-for-all-audiences", "bias", "stereotypes", "evaluation", "croissant"],
        "configs": configs,
        "extra_gated_prompt": _WARNING,
    }
    # JSON is valid YAML.
    return ["---", *(f"{key}: {json.dumps(value)}" for key, value in head.items()), "---"]


def _page(runs: Runs, about: Mapping[str, Any], title: str) -> Iterator[str]:
    """Write the evaluation card."""
    yield f"# {card.plain(title)}"
    yield from ("", f"> **Content warning.** {_WARNING}", "", _ABOUT, "", _LICENCE)
    yield from ("", "## What was asked, and of whom", "")
    for said, run in runs:
        spec, task = run.spec, tasks.of(run.spec)
        words = spec.wordings or "the published one"
        lines = {
            "what": f"{task.about} {', '.join(spec.probes)} ({', '.join(spec.decode)})",
            "about": f"{spec.data}, statements {spec.statements}, in {', '.join(spec.languages)}",
            "of": f"{spec.model}, revision {spec.checkpoint or spec.revision}; {spec.engine} "
            f"{spec.engine_version}, {spec.dtype}, chat template {spec.chat_template}",
            "in which words": f"{spec.pack}, {words} of each question"
            + (f", personas {spec.personas}" if spec.personas else "")
            + (", with a system prompt" if spec.system else ""),
            "by whose reading": ", ".join(run.judges().values()) or "nobody: probabilities alone",
            "raw seal": said["raw_seal"] or "none: sealed when it was published",
            "SHA-256 of the raw MANIFEST": said["raw_manifest_sha256"] or "none",
            "hidden": ", ".join(said["hidden"]) or "nothing",
        }
        yield from (f"### {card.plain(said['name'])}", "", "| | |", "|---|---|")
        yield from (f"| {name} | {card.plain(what)} |" for name, what in lines.items())
        yield ""
    yield from ("## What came out, and how surely", "")
    yield "Values, 95 % intervals and bounds (if all that nobody could read were no, or yes)."
    for said, run in runs:
        names = {name for table in tasks.of(run.spec).tables for name in table.main}
        found = [one for one in run.scores() if one.metric in names] or run.scores()
        yield from ("", f"### {card.plain(said['name'])}: figures", "")
        yield from ("| figure | of | value | bounds | n | left out |", "|---|---|---|---|---|---|")
        yield from map(_row, found)
        known = {name: metrics.catalogue()[name] for name in names if name in metrics.catalogue()}
        yield ""
        yield from (f"- {name}: {card.plain(known[name].title)}" for name in sorted(known))
    yield from ("", "## What they do not show", "", *(f"- {line}" for line in _LIMITS))
    yield from ("", "## Check it", "", "```", "sha256sum -c SHA256SUMS", "genprobe verify .")
    yield from ("genprobe verify --recompute .", "```", "")
    yield 'What is counted, without texts: `datasets.load_dataset("parquet", '
    yield 'data_files="runs/*/outcomes.parquet")`.'
    yield f"Every figure is in `figures.csv`. Published on {about['at'][:10]} by genprobe "
    yield f"{card.plain(about['genprobe'])}, which sent nothing anywhere."


def _row(one: Score) -> str:
    cell = card.cell_of(one)
    value = "none" if one.value is None else f"{one.value:.4f}"
    if one.value is not None and one.low is not None and one.high is not None:
        value += f" [{one.low:.4f}, {one.high:.4f}]"
    bounds = "" if one.bounds is None else " to ".join(f"{end:.4f}" for end in one.bounds)
    lost = ", ".join(f"{name} {n}" for name, n in one.excluded.items())
    return (
        f"| {card.plain(one.metric)} | {card.plain(cell)} | {value} | {bounds} | {one.n} "
        f"| {card.plain(lost)} |"
    )


def _index(run: Run) -> dict[str, Any]:
    """Return the main figures of a run for the card of its model, as the hub reads them."""
    task = tasks.of(run.spec)
    names = {name for table in task.tables for name in table.main}
    found = [one for one in run.scores() if one.value is not None]
    kept = [
        {
            "type": f"genprobe.{one.metric}",
            "name": f"{one.metric} ({card.cell_of(one) or 'all'})",
            "value": one.value,
        }
        for one in [one for one in found if one.metric in names] or found
    ]
    data = {"name": f"{run.spec.data} ({', '.join(run.spec.languages)})", "type": run.spec.data}
    asked = {"type": "text-generation", "name": task.about}
    return {"name": run.spec.model, "results": [{"task": asked, "dataset": data, "metrics": kept}]}


def _croissant(runs: Runs, about: Mapping[str, Any], title: str) -> dict[str, Any]:
    listed = []
    for said, run in runs:
        table = counted.stored(run.folder / card.OUTCOMES)
        columns = {} if table is None else {str(n): _kind(table[n]) for n in table}
        features = {
            f"{one['config_name']}.jsonl": {
                feature["name"]: _dtype(feature) for feature in one["features"]
            }
            for one in card.configurations(run.folder)
            if one["config_name"] == "responses"
        }
        for name, kinds in {card.OUTCOMES: columns, **features}.items():
            path = f"runs/{said['name']}/{name}"
            ident = f"{said['name']}-{Path(name).stem}"
            sha = hashlib.sha256(door.content(run.folder / name)).hexdigest()
            listed.append(croissant.File(ident, path, sha, f"{ident}-rows", kinds))
    languages = sorted({lang for _, run in runs for lang in run.spec.languages})
    more = {
        "datePublished": about["at"][:10],
        "rai:dataUseCases": "to check and compare figures of stereotype bias; never for training",
        "rai:dataLimitations": " ".join(_LIMITS),
        "rai:dataBiases": _WARNING,
        "rai:dataCollection": "replies of language models to planned questions; see README.md",
        "rai:dataCollectionType": "Others",
        "rai:personalSensitiveInformation": "statements name social groups; no person is meant",
    }
    return croissant.dataset(
        title, _ABOUT, _LICENCE, {"url": "."}, ["those who published it"], languages, listed, more
    )


def _kind(column: Any) -> str:
    kind = str(column.dtype)
    if kind in ("int64", "float64"):
        return kind
    if kind in ("bool", "boolean"):
        return "bool"
    first = next((value for value in column if hasattr(value, "__iter__")), "")
    return "string" if isinstance(first, str) else "list"


def _dtype(feature: Mapping[str, Any]) -> str:
    kind = feature.get("dtype", "list")
    return "string" if kind == "json" else str(kind)
