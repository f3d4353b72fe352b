"""RuBia: 125 win rates of five models on Russian pairs, from their perplexities.

The study publishes scored_data.tsv, with the perplexities of thirteen models in columns such as
`ppl-pro-XGLM`; a pairs.csv may call them `ppl_pro:XGLM`. A tie does not count as a win.
"""

from __future__ import annotations

from collections.abc import Iterator

from genprobe.analysis.reproduce import Cell, File, Folder, Printed

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
    """Yield the win rates, from the perplexities in the folder."""
    from genprobe import metrics
    from genprobe.outcomes import table

    pairs = folder.read(PAIRS)
    names = printed.data["names"]
    rows = printed.rows("win-rates")
    for model in _MODELS:
        values = pairs.rename(columns={_PRO + model: "pro", _ANTI + model: "anti"})
        with folder.at(PAIRS, model):
            outcomes = table.from_rows(values[["domain", "task_type", "pro", "anti"]], True)
            scores = metrics.score(outcomes, ["rubia"], [], str)
        shares = {
            tuple(names.get(s.by[c], s.by[c]) for c in ("domain", "task_type")): s.value
            for s in scores
        }
        for row in rows:
            share = shares.get((row["domain"], row["subdomain"]))
            yield printed.cell(
                f"{model}, win rate in %",
                f"{row['domain']}, {row['subdomain']}",
                row[model],
                None if share is None else 100 * share,
            )
