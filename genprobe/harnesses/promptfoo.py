"""promptfoo: `promptfoo eval -c "$(genprobe peers promptfoo)/promptfooconfig.json" -r PROVIDER`.

The tests ask what `genprobe yesno` asks, of any provider, and an assertion in Python reads each
reply. promptfoo shows the mean of each named score; intervals, n and what was left out come with
`genprobe score` of its results (`-o results.json`).
https://www.promptfoo.dev/docs/configuration/expected-outputs/python
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from genprobe import harnesses
from genprobe.files import disk
from genprobe.files.rows import Row
from genprobe.resources import packs

_ASSERTION = f"from {__name__} import get_assert  # noqa: F401\n"


def write(folder: Path, rows: Sequence[Row], data: str) -> None:
    """Write a configuration with a test for each row of `asked`, but without a provider."""
    config = {
        "description": f"genprobe yesno, {Path(data).name}",
        "prompts": ["{{prompt}}"],
        "defaultTest": {
            "assert": [{"type": "python", "value": "file://genprobe_assert.py"}],
            # Else a list, such as the languages that know a stereotype, makes a test of each item.
            "options": {"disableVarExpansion": True},
        },
        "env": {"PROMPTFOO_PYTHON": sys.executable},
        "tests": [{"vars": row} for row in rows],
    }
    disk.replace(folder / "genprobe_assert.py", [_ASSERTION])
    disk.replace(folder / "promptfooconfig.json", [json.dumps(config, indent=1) + "\n"])


def get_assert(output: Any, context: Mapping[str, Any]) -> dict[str, Any]:
    """Read a reply. It passes if it is a clear answer; what was answered is in the named scores.

    promptfoo starts Python for each reply, so only what that takes is imported.
    """
    row = context["vars"]
    text = output if isinstance(output, str) else json.dumps(output)
    found = harnesses.read(row, {"response": text}, ["yesno"])
    probe, answer = packs.load_pack().probes[row["probe"]], found["answer"]
    clear = answer in packs.ANSWERS
    named = {one: float(answer == one) for one in (*packs.ANSWERS, "ambiguous")}
    if clear:
        named[probe.measures] = float(answer == probe.when)
    return {
        "pass": clear,
        "score": float(clear),
        "reason": f"{answer} ({found['kind']}): {found['evidence']}",
        "namedScores": {f"{name}_{probe.name}": value for name, value in named.items()},
    }
