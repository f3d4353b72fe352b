"""Records of Every Eval Ever, one for each run: its figures, with what they were measured on.

https://github.com/evaleval/every_eval_ever (eval.schema.json 0.3.0). A line for each reply there
must say whether it `is_correct`. Whether a model agrees with a stereotype is nothing correct or
wrong, so no such lines are written: the replies are in the run, and each record says so.
"""

from __future__ import annotations

import calendar
import hashlib
import math
import re
import time
import uuid
from collections.abc import Iterator
from typing import Any

from genprobe import metrics, tasks
from genprobe._version import __version__
from genprobe.records import Score, canonical, digest
from genprobe.runs import card
from genprobe.runs.run import Run

SCHEMA = "0.3.0"
_NO_TRUTH = (
    "none: what a model says of a stereotype is a stance, neither correct nor wrong; the replies, "
    "their labels and evidence are in the run"
)


def made(name: str, run: Run, at: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (path, record) of a run. name: of its folder. at: when it was published (UTC)."""
    spec = run.spec
    when = str(calendar.timegm(time.strptime(at, "%Y-%m-%dT%H:%M:%SZ")))
    developer, _, model = spec.model.rstrip("/").rpartition("/")
    folder = f"data/genprobe-{spec.command}/{_name(developer or 'unknown')}/{_name(model)}"
    own = bytearray(hashlib.sha256(f"{name} {spec.hash} {at}".encode()).digest()[:16])
    file = uuid.UUID(bytes=bytes(own), version=4)
    first = next((one.at for one in run.seals()), "")
    managed = "externally_managed" if spec.server else "self_deployed"
    library = {"estimands": "genprobe list estimands", "seal": first and run.seals()[-1].short}
    yield (
        f"{folder}/{file}.json",
        {
            "schema_version": SCHEMA,
            "evaluation_id": f"genprobe-{spec.command}-{name}/{spec.model}/{when}",
            **({"evaluation_timestamp": first} if first else {}),
            "retrieved_timestamp": when,
            "source_metadata": {
                "source_name": f"genprobe {spec.command}",
                "source_type": "evaluation_run",
                "source_organization_name": "unknown",
                "evaluator_relationship": "other",
                "additional_details": {"run": f"runs/{name}", "is_correct": _NO_TRUTH},
            },
            "eval_library": {
                "name": "genprobe",
                "version": spec.version or __version__,
                "additional_details": {k: str(v) for k, v in library.items() if v},
            },
            "model_info": {
                "name": spec.model,
                "id": spec.model,
                **({"developer": developer} if developer else {}),
                "inference_engine": {"name": spec.engine, "version": spec.engine_version},
                "additional_details": {
                    "deployment_type": "unknown" if spec.engine in ("log", "replay") else managed,
                    "model_availability": "unknown" if spec.server else "open_weights",
                    "revision": spec.revision,
                },
            },
            "evaluation_results": [
                _result(one, run)
                for one in run.scores()
                if one.value is not None and math.isfinite(one.value)
            ],
        },
    )


def _name(text: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-. ") or "model"
    return f"{plain}-" if plain == "data" else plain


def _result(score: Score, run: Run) -> dict[str, Any]:
    spec, known = run.spec, metrics.catalogue().get(score.metric)
    cell = card.cell_of(score) or "all"
    config: dict[str, Any] = {
        "metric_id": f"genprobe.{score.metric}",
        "metric_name": score.metric,
        # Of most of these measures, neither is better.
        "lower_is_better": False,
        "additional_details": {"direction": "descriptive: neither end is better by itself"},
    }
    if known is not None:
        low, high = (_bound(value) for value in known.limits)
        config |= {"evaluation_description": known.title, "metric_unit": known.scale}
        config |= {"score_type": "continuous", "min_score": low, "max_score": high}
    details = {
        "n": str(score.n),
        "excluded": canonical(score.excluded),
        "by": canonical(score.by),
        "signature": score.signature,
    }
    if score.bounds is not None:
        details["bounds"] = canonical(score.bounds)
    found: dict[str, Any] = {"score": score.value, "details": details}
    if score.low is not None and score.high is not None:
        interval = {"lower": score.low, "upper": score.high, "confidence_level": 0.95}
        found["uncertainty"] = {
            "confidence_interval": {**interval, "method": known.method if known else "unknown"},
            "num_samples": score.n,
        }
    drawn = {"temperature": spec.temperature, "top_p": spec.top_p, "max_tokens": spec.max_tokens}
    return {
        "evaluation_result_id": f"{score.metric}-{digest([score.metric, cell])}",
        "evaluation_name": f"{spec.command}: {score.metric} ({cell})",
        "source_data": {
            "dataset_name": spec.data,
            "source_type": "other",
            "additional_details": {
                "statements": spec.statements,
                "pack": spec.pack,
                "probes": ", ".join(spec.probes),
                "task": tasks.of(spec).about,
            },
        },
        "metric_config": config,
        "score_details": found,
        "generation_config": {
            "generation_args": {name: v for name, v in drawn.items() if v is not None},
            "additional_details": {"seed": str(spec.seed), "samples": str(spec.samples)},
        },
    }


def _bound(value: float) -> float | str:
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"
