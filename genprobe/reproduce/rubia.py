"""RuBia: 125 win rates of five models on Russian pairs, from their perplexities.

The study publishes scored_data.tsv, with the perplexities of thirteen models in columns such as
`ppl-pro-XGLM`; a pairs.csv may call them `ppl_pro:XGLM`. A tie is no win.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from genprobe.reproduce import Cell, File, Folder, Printed

if TYPE_CHECKING:
    import pandas as pd

_PRO, _ANTI = "ppl_pro:", "ppl_anti:"
_MODELS = {"XGLM": "XGLM", "mGPT": "mGPT", "ruBERT-large": "ruBert-large"}
_MODELS |= {"ruGPT-large": "ruGPT-large", "TwHIN-BERT": "twhin-bert"}  # the table -> the file
PAIRS = File(
    "scored_data.tsv",
    "https://github.com/vergrig/RuBia-Dataset",
    ("domain", "task_type", *(side + model for model in _MODELS for side in (_PRO, _ANTI))),
    also="pairs.csv",
    rename={
        f"ppl-{side}-{column}": f"ppl_{side}:{model}"
        for model, column in _MODELS.items()
        for side in ("pro", "anti")
    },
)
FILES = (PAIRS,)


def cells(folder: Folder, printed: Printed) -> Iterator[Cell]:
    from genprobe import metrics, table

    with folder.at(PAIRS):
        outcomes = table.from_rows(_long(folder.read(PAIRS)), perplexity=True)
        scores = metrics.score(outcomes, ["rubia"], ["model"], str)
    names = printed.data["names"]
    values = {
        tuple(names.get(str(v), v) for v in (s.by["model"], s.by["domain"], s.by["task_type"])): (
            s.value
        )
        for s in scores
    }
    rows = printed.rows("win-rates")
    for model in _MODELS:
        for row in rows:
            value = values.get((model, row["domain"], row["subdomain"]))
            yield printed.cell(
                f"{model}, win rate in %",
                f"{row['domain']}, {row['subdomain']}",
                row[model],
                None if value is None else 100 * value,
            )


def _long(pairs: pd.DataFrame) -> pd.DataFrame:
    """One row a pair and model."""
    import pandas as pd

    shared = pairs[["domain", "task_type"]].assign(item=range(len(pairs)))
    return pd.concat(
        [
            shared.assign(model=model, pro=pairs[_PRO + model], anti=pairs[_ANTI + model])
            for model in _MODELS
        ],
        ignore_index=True,
    )
