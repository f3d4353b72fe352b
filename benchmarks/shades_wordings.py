"""Divide the variance of the SHADES study's recorded replies among statement, question and model.

    python benchmarks/shades_wordings.py FILE      FILE: recorded replies, as `genprobe judge` reads

Prints the tables of docs/shades-wordings.md, by language, and whether the models can be ranked. The
answers are the clear ones about originals to "do you agree" and "do you disagree". This direction
of the question is the only wording that the study varied.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from genprobe import metrics
from genprobe.analysis import components as split
from genprobe.analysis import ranking
from genprobe.analysis.significance import values
from genprobe.outcomes import table
from genprobe.resources import registry
from genprobe.tasks.pipeline.judge import judged_rows

MODELS = {"Mistral-7B-Instruct-v0.1": "Mistral", "Qwen2-7B-Instruct": "Qwen2"}
LEAST = 20  # fewest clear replies per model and question of a language that is analysed


def outcomes(path: Path) -> pd.DataFrame:
    """Read the replies to the two questions about originals, and return them as outcomes."""
    judge = registry.module("judges", "yesno").make()
    found = table.from_rows(judged_rows(path, [judge]))
    kept = (found["role"] == "original") & (found["probe"] != "recognition")
    return found[kept].reset_index(drop=True)


def main(path: Path) -> None:
    found = outcomes(path)
    kept, left = values(found, "endorsed", ["lang", "model", "probe"])
    print(f"{len(kept)} clear answers of {len(found)}; left out: {left}\n")
    cells(kept)
    components(kept)
    pooled(kept)
    habits(found)


def cells(kept: pd.DataFrame) -> None:
    """Print which model endorses more, by question and language."""
    print("| language | answers | " + " | ".join(
        f"{short}, {probe}" for probe in ("agree", "disagree") for short in MODELS.values()
    ) + " | more endorsed by |")  # fmt: skip
    print("|---|---|---|---|---|---|---|")
    turned = whole = 0
    for lang, part in kept.groupby("lang"):
        rate = part.pivot_table(index="model", columns="probe", values="value", aggfunc="mean")
        count = part.pivot_table(index="model", columns="probe", values="value", aggfunc="size")
        rate, count = (t.reindex(list(MODELS)) for t in (rate, count))
        shown = [
            f"{100 * rate.loc[m, p]:.0f} ({count.loc[m, p]:.0f})" if p in rate and
            rate.loc[m, p] == rate.loc[m, p] else "–"
            for p in ("agreement", "disagreement") for m in MODELS
        ]  # fmt: skip
        more = "too few"
        if count.shape == (2, 2) and (count >= LEAST).all(axis=None):
            gap = rate.iloc[0] - rate.iloc[1]
            whole += 1
            if gap["agreement"] * gap["disagreement"] < 0:
                more, turned = "it turns round", turned + 1
            else:
                more = "Mistral" if gap.sum() > 0 else "Qwen2"
        print(f"| {lang} | {len(part)} | {' | '.join(shown)} | {more} |")
    print(f"\nIn {turned} of {whole} languages the question turns round which endorses more.\n")


EFFECTS = (
    ("statement",), ("direction",), ("model",), ("statement", "direction"), ("statement", "model"),
    ("direction", "model"), (),
)  # fmt: skip


def components(kept: pd.DataFrame) -> None:
    """Print the components of the variance of one answer, by language.

    Each has its share of the variance in brackets; negative estimates are printed as they are.
    """
    print("| language | n | " + " | ".join(" × ".join(e) or "residual" for e in EFFECTS) + " |")
    print("|---" * (len(EFFECTS) + 2) + "|")
    for lang, part in kept.groupby("lang"):
        counts = part.groupby(["model", "probe"]).size()
        if len(counts) < 4 or counts.min() < LEAST:
            continue
        found = taken_apart(part)
        print(f"| {lang} | {found.n} | " + " | ".join(said(found, e) for e in EFFECTS) + " |")
    print()


def taken_apart(part: pd.DataFrame) -> split.Components:
    return split.components(
        part["value"].to_numpy(float),
        {"statement": part["statement"], "direction": part["probe"], "model": part["model"]},
    )


def said(found: split.Components, effect: tuple[str, ...]) -> str:
    one = found[effect]
    if one.value < 0:
        return f"{one.value:+.3f}"
    return f"{one.value:.3f} ({share(found, one):.0f} %)"


def share(found: split.Components, part: split.Component) -> float:
    """Compute the share of the variance of one answer, in percent; 0 if it is negative."""
    return 100 * max(0.0, part.value) / found.total


def pooled(kept: pd.DataFrame) -> None:
    """Print the components over all languages, and whether the models can be ranked."""
    found = split.components(
        kept["value"].to_numpy(float),
        {"statement": kept["statement"], "language": kept["lang"], "direction": kept["probe"],
         "model": kept["model"]},
    )  # fmt: skip
    print("| effect | component | 95 % interval | of one answer | levels |\n|---|---|---|---|---|")
    for part in found.parts:
        ends = "–" if part.low is None else f"{part.low:.4f} to {part.high:.4f}"
        print(
            f"| {part.name} | {part.value:+.4f} | {ends} | {share(found, part):.1f} % | "
            f"{part.levels} |"
        )
    print()
    for name, facet in (("the two questions as wordings drawn", "probe"), ("as all there are", "")):
        rows = kept.rename(columns={facet: "wording"}) if facet else kept
        names, hits, sizes = ranking.tables(rows)
        one = ranking.ranking(names, hits, sizes)
        assert one is not None
        (pair,) = one.pairs
        print(
            f"{name}: {one.values[0]:.3f} and {one.values[1]:.3f} ({one.models[0]} first), gap "
            f"{100 * pair.difference:.1f} points [{100 * pair.low:.1f}, {100 * pair.high:.1f}]: "
            f"{'no ranking' if one.groups is None else 'ranked'}"
        )
    print()


def habits(found: pd.DataFrame) -> None:
    """Print how each model answers when the question is reversed."""
    names = ("endorsed-both-ways", "rejected-both-ways", "yes-saying", "no-saying")
    scores = metrics.score(found, names, ["model"], lambda name: "")
    print("| model | items | " + " | ".join(names) + " |\n|---|---|---|---|---|---|")
    for model in MODELS:
        mine = [s for s in scores if s.by["model"] == model]
        shown = " | ".join(
            f"{100 * (s.value or 0):.1f} [{100 * (s.low or 0):.1f}, {100 * (s.high or 0):.1f}]"
            for s in mine
        )
        print(f"| {model} | {mine[0].n} | {shown} |")


if __name__ == "__main__":
    np.seterr(all="ignore")
    main(Path(sys.argv[1]))
