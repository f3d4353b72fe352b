"""Count how often the rules of extraction are right.

    python benchmarks/extraction.py ../shared/data/afristereo/extraction.csv
    python benchmarks/extraction.py

The second line uses sentences in seven other languages (tests/extraction.jsonl). They are mild
sentences made up by the author of the rules, who is not a native speaker of any of these languages.
Set 1 (30 per language) was written after the rules, which were then improved by it. Set 2 (20 per
language) was written after that and measured once; no rule was changed since. A sentence is right
if identity and attribute are both right, or if nothing is extracted and nothing should be.

extraction-readings.csv has hashes of 200 sentences, drawn with a fixed seed, and of their readings,
because the sentences are not ours to publish. A reading is `identity|attribute` in lower case, with
the identity as the rules `en` name it, and is empty if nothing can be extracted. `first` and
`second` are by one person, who saw the column with the kind of stereotype beside the sentence.
`other` is by another person, who saw only the sentences and no earlier reading. `settled` is what
two of the three readings say, empty if all differ. Most sentences are "X are Y". The rules `en`
were written by somebody who had seen the sentences, so their figure is an upper bound.
"""

from __future__ import annotations

import csv
import hashlib
import json
import sys
from collections import Counter
from pathlib import Path

from genprobe.curation import extract
from genprobe.statistics import wilson

READINGS = Path(__file__).with_name("extraction-readings.csv")
SENTENCES = Path(__file__).parents[1] / "tests" / "extraction.jsonl"


def count(path: Path) -> tuple[Counter[str], dict[str, int]]:
    """Count the rows on which the readings agree, and those that each set of rules gets right.

    Returns the numbers of rows, by name: `sure` (both readings by one person are the same), `other`
    (of these, the other person's reading is the same too) and `settled`; and rules -> settled rows
    that they get right.
    """
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with READINGS.open(encoding="utf-8") as file:
        readings = list(csv.DictReader(file))
    names = extract.load("en")
    agreed: Counter[str] = Counter()
    right = {"en": 0, "afristereo": 0}
    for reading in readings:
        row = rows[int(reading["row"])]
        if _hash(row["sentence"]) != reading["sentence"]:
            raise SystemExit(f"{path}: row {reading['row']} is another sentence")
        sure = reading["first"] == reading["second"]
        agreed["sure"] += sure
        agreed["other"] += sure and reading["other"] == reading["first"]
        if not reading["settled"]:
            continue
        agreed["settled"] += 1
        for name in right:
            found = extract.extract(row["sentence"], extract.load(name), row["stereotype_type"])
            identity = extract.normal(found.identity, names)
            text = f"{identity}|{found.attribute}" if identity else ""
            good = _hash(text) == reading["settled"]
            right[name] += good
            if name == "en":
                agreed[found.confidence or "left out"] += 1
                agreed[f"{found.confidence or 'left out'}, right"] += good
    return agreed, right


def count_languages() -> dict[tuple[int, str], tuple[int, int, int]]:
    """Count (set, language) -> sentences, right ones, and those wrongly left without extraction."""
    n: Counter[tuple[int, str]] = Counter()
    right, left = Counter(n), Counter(n)
    for line in SENTENCES.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        key = row["set"], row["lang"]
        rules = extract.load(row["lang"])
        found = extract.extract(row["sentence"], rules)
        identity = extract.normal(row["identity"], rules)
        n[key] += 1
        right[key] += (found.identity, found.attribute) == (identity, row["attribute"])
        left[key] += bool(identity) and bool(found.excluded)
    return {key: (n[key], right[key], left[key]) for key in n}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _line(name: str, k: int, n: int) -> str:
    low, high = wilson(k, n) or (0.0, 1.0)
    return f"{name:12} {k} of {n} ({100 * k / n:.1f} % [{100 * low:.1f}, {100 * high:.1f}])"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        agreed, found = count(Path(sys.argv[1]))
        print(_line("other person", agreed["other"], agreed["sure"]))
        for name, k in found.items():
            print(_line(name, k, agreed["settled"]))
        for degree in ("high", "medium", "low", "left out"):
            print(_line(f"en, {degree}", agreed[f"{degree}, right"], agreed[degree]))
    else:
        for (which, lang), (n, k, left) in count_languages().items():
            print(f"{_line(f'set {which} {lang}', k, n)}; {left} left out")
