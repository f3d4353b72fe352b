"""Count how often the rules of extraction are right.

    python benchmarks/extraction.py ../shared/data/afristereo/extraction.csv
    python benchmarks/extraction.py

The second line counts sentences in seven other languages (tests/extraction.jsonl), mild ones, made
up by the author of the rules, who speaks none of these languages as a native. Set 1, 30 a language,
was written after the rules, which were then mended by it; set 2, 20 a language, was written after
that and measured once, and no rule was changed since. A sentence counts where identity and
attribute are both right, or where rightly nothing is extracted.

extraction-readings.csv has, for each of 200 sentences drawn by seed, a hash of the sentence and of
its readings (`identity|attribute` in small letters, empty where nothing can be extracted, identity
by the names of the rules `en`): the sentences are not ours to publish. `first` and `second` are one
person's, with the column of the kind of stereotype beside the sentence; `other` is another
person's, who saw the sentences alone and no earlier reading; `settled` is what two of the three
say, empty where all differ. Most sentences are "X are Y". The rules `en` were written by somebody
who had seen the sentences, so their figure is an upper one.
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
    """Count what the readings agree on, and how many of the settled rows each set of rules has.

    Returns: `sure` rows whose two readings by one person are the same, `other` those of them that
    the other person reads so too, `settled` rows; and rules -> settled rows that they get right.
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
    """Count what is right: (set, language) -> sentences, right, and left out wrongly."""
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
