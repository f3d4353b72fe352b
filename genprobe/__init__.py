"""genprobe: what multilingual instruct models say about stereotypes, read and counted.

    import genprobe
    run = genprobe.yesno("./my-model", langs=["mr"])
    scores = genprobe.score([run.folder])

The names below are public; they are imported when first used, so that `import genprobe` is light.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "yesno": "asking",
    "judge_run": "reading",
    "judge_file": "reading",
    "score": "counting",
    "Run": "store",
    "Sampling": "engines",
    "Statement": "records",
    "Request": "records",
    "Response": "records",
    "Failure": "records",
    "Judgment": "records",
    "Score": "records",
    "GenprobeError": "errors",
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'genprobe' has no attribute {name!r}")
    return getattr(importlib.import_module(f"genprobe.{_PUBLIC[name]}"), name)
