"""Count how many statements of SHADES result exactly from its own templates, and why others do not.

    python benchmarks/templates.py ../shared/data/shades/statements.csv

For every cell with a template and a statement, the fillers are taken from the statement, if its
words outside the slots are those of the template, and are put into the template. If the result is
not the statement, the statement differs outside its slots. The reason is found by trying what would
make it match.
"""

from __future__ import annotations

import csv
import re
import sys
import unicodedata
from collections import Counter, defaultdict
from pathlib import Path

from genprobe.curation import lexicon

REASONS = ("no slot", "case or punctuation", "a slot that is not marked", "words outside the slots")


def fillers(template: str, statement: str, flags: re.RegexFlag = re.NOFLAG) -> list[str] | None:
    """Return the fillers of a statement, one per slot; None if it does not fit the template."""
    pieces = lexicon.slot_pattern().split(template)
    literal = pieces[:: lexicon.slot_pattern().groups + 1]
    first = literal[0][:1].upper() + literal[0][1:]
    pattern = "(.+?)".join(map(re.escape, [first, *literal[1:]]))
    found = re.fullmatch(pattern, statement, flags)
    return list(found.groups()) if found else None


def filled(template: str, parts: list[str]) -> str:
    """Return the template with its slots filled, in order."""
    rest = iter(parts)
    text = lexicon.slot_pattern().sub(lambda _: next(rest), template)
    return text[:1].upper() + text[1:]


def reason(template: str, statement: str) -> str:
    """Return `exact`, or the reason (one of REASONS) why the statement differs."""
    if not lexicon.slots(template):
        return "no slot"
    parts = fillers(template, statement)
    if parts is not None and filled(template, parts) == statement:
        return "exact"
    if fillers(_bare(template), _bare(statement), re.IGNORECASE) is not None:
        return "case or punctuation"
    if re.search(r"[A-Z]{3,}", lexicon.slot_pattern().sub("", template)):
        return "a slot that is not marked"
    return "words outside the slots"


def _bare(text: str) -> str:
    kept = "".join(c for c in text if c in "-:+_" or not unicodedata.category(c).startswith("P"))
    return " ".join(kept.split())


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
                    found[lang][reason(*texts)] += 1
    return dict(found)


if __name__ == "__main__":
    table = count(Path(sys.argv[1]))
    table["all"] = sum(table.values(), Counter())
    for lang, counts in table.items():
        total = counts.total()
        share = 100 * counts["exact"] / total
        rest = ", ".join(f"{why} {counts[why]}" for why in REASONS if counts[why])
        print(f"{lang:6} {counts['exact']:5} of {total:5} ({share:.1f} %) {rest}")
