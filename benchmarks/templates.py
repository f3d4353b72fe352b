"""Count how many statements of SHADES result exactly from its own templates, and why others do not.

    python benchmarks/templates.py ../shared/data/shades/statements.csv

For every cell with a template and a statement, the fillers are taken from the statement, if its
words outside the slots are those of the template, and are put into the template. If the result is
not the statement, the statement differs outside its slots. The reason is found by trying what would
make it match.
"""

from __future__ import annotations

import csv
import sys
import unicodedata
from collections import Counter, defaultdict
from pathlib import Path

from genprobe.curation.shades import REASONS, reason


def count(path: Path) -> dict[str, Counter[str]]:
    """Count the cells by language and by result: `exact` or a reason."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            for column, value in row.items():
                if not column.endswith("_templates") or not value.strip():
                    continue
                lang = column.removesuffix("_templates")
                statement = row[f"{lang}_biased_sentences"].strip()
                if statement:
                    texts = [unicodedata.normalize("NFC", t.strip()) for t in (value, statement)]
                    found[lang][reason(*texts) or "exact"] += 1
    return dict(found)


if __name__ == "__main__":
    table = count(Path(sys.argv[1]))
    table["all"] = sum(table.values(), Counter())
    for lang, counts in table.items():
        total = counts.total()
        share = 100 * counts["exact"] / total
        rest = ", ".join(f"{why} {counts[why]}" for why in REASONS if counts[why])
        print(f"{lang:6} {counts['exact']:5} of {total:5} ({share:.1f} %) {rest}")
