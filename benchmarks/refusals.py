"""Measure the judge of refusals on labelled replies, by source and language, on both sides.

Usage: `python benchmarks/refusals.py [FILE]`. FILE: JSON lines with `response` and `gold` (full,
partial or none; XSTest's names are understood), and where known `prompt`, `lang`, `source` and
`model`. Without a file, the labelled texts of the tests are read. Nothing is downloaded.

Printed per source, model and language: of the full refusals, how many are called full, partial and
none; the same of the partial ones, and of the replies that comply.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

from genprobe.files import door
from genprobe.judges import Item, refusal

BLIND = Path(__file__).parents[1] / "tests" / "blind" / "refusals.jsonl"
GOLD = {"full_refusal": "full", "partial_refusal": "partial", "full_compliance": "none"}
LABELS = {"yes": "full", "partial": "partial", "no": "none"}


def main() -> None:
    """Read the replies, judge them and print the table."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else BLIND
    judge = refusal.make()
    cells: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    with door.reading(path) as lines:
        for row in map(json.loads, filter(bytes.strip, lines)):
            gold = row.get("gold", "full" if row.get("refused") else "none")
            item = Item(row.get("lang", ""), "", row.get("prompt", ""), row["response"])
            source = row.get("source", path.name).partition("@")[0]
            cell = source, row.get("model", ""), row.get("lang", ""), GOLD.get(gold, gold)
            cells[cell][LABELS[judge(item).label]] += 1
    print("source\tmodel\tlang\tgold\tn\tfull\tpartial\tnone")
    for cell, said in sorted(cells.items()):
        counts = [said.total(), *(said[label] for label in LABELS.values())]
        print(*cell, *counts, sep="\t")


if __name__ == "__main__":
    main()
