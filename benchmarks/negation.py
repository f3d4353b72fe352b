"""Count how often the lists of negations say of a translation what they say of the English row.

    python benchmarks/negation.py ../shared/data/shades/statements.csv

A row of the SHADES table has one statement in 16 languages. Where the English one negates, the
others mostly do; the share of rows on which a language's list agrees is printed, with the rows on
which it negates alone and the rows on which English negates alone.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from pathlib import Path

from genprobe.errors import InputError
from genprobe.linguistics import negated
from genprobe.resources import packs

_END = "_biased_sentences"


def compare(path: Path) -> tuple[dict[str, Counter[str]], dict[tuple[str, str], list[str]]]:
    """Count the rows by language and outcome, and list the sentences of each outcome but `same`."""
    counts: dict[str, Counter[str]] = {}
    shown: dict[tuple[str, str], list[str]] = {}
    english = negated.load("en")
    assert english is not None
    with path.open(encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            pivot = row[f"en{_END}"].strip()
            for column, text in row.items():
                if not column.endswith(_END) or not text.strip() or not pivot:
                    continue
                try:
                    lang = packs.language_code(column.removesuffix(_END))
                except InputError:
                    continue
                words = negated.load(lang)
                if lang == "en" or words is None:
                    continue
                said = words.negates(text), english.negates(pivot)
                outcome = {(True, False): "alone", (False, True): "english"}.get(said, "same")
                counts.setdefault(lang, Counter())[outcome] += 1
                if outcome != "same":
                    shown.setdefault((lang, outcome), []).append(text.strip())
    return counts, shown


if __name__ == "__main__":
    table, sentences = compare(Path(sys.argv[1]))
    table["all"] = sum(table.values(), Counter())
    for lang, count in table.items():
        share = 100 * count["same"] / count.total()
        print(
            f"{lang:8} {count['same']:5} of {count.total():5} ({share:.1f} %), "
            f"negates alone {count['alone']}, English alone {count['english']}"
        )
    if "--show" in sys.argv:
        for (lang, outcome), texts in sentences.items():
            for text in texts:
                print(lang, outcome, text, sep="\t")
