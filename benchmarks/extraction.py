"""Count how often the rules of extraction are right.

    python benchmarks/extraction.py ../shared/data/afristereo/extraction.csv
    python benchmarks/extraction.py

The second line counts sentences in seven other languages (tests/extraction.jsonl), mild ones, made
up by the author of the rules, who speaks none of these languages as a native. Set 1, 30 a language,
was written after the rules, which were then mended by it; set 2, 20 a language, was written after
that and measured once, and no rule was changed since. A sentence counts where identity and
attribute are both right, or where rightly nothing is extracted.

extraction-readings.csv has, for each of 200 sentences drawn by seed, a hash of the sentence and of
two readings (`identity|attribute` in small letters, empty where nothing can be extracted, identity
by the names of the rules `en`): the sentences are not ours to publish. One person read them twice;
the second reading was made anew where a reading is not plain. Most sentences are "X are Y". The
rules `en` were written by somebody who had seen the sentences, so their figure is an upper one.
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


def count(path: Path) -> tuple[int, dict[str, int]]:
    """How many rows both readings agree on, and of these how many each set of rules gets right."""
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with READINGS.open(encoding="utf-8") as file:
        readings = list(csv.DictReader(file))
    names = extract.load("en")
    agreed, right = 0, {"en": 0, "afristereo": 0}
    for reading in readings:
        row = rows[int(reading["row"])]
        if _hash(row["sentence"]) != reading["sentence"]:
            raise SystemExit(f"{path}: row {reading['row']} is another sentence")
        if reading["first"] != reading["second"]:
            continue
        agreed += 1
        for name in right:
            found = extract.extract(row["sentence"], extract.load(name), row["stereotype_type"])
            identity = extract.normal(found.identity, names)
            text = f"{identity}|{found.attribute}" if identity else ""
            right[name] += _hash(text) == reading["first"]
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
        n, found = count(Path(sys.argv[1]))
        for name, k in found.items():
            print(_line(name, k, n))
    else:
        for (which, lang), (n, k, left) in count_languages().items():
            print(f"{_line(f'set {which} {lang}', k, n)}; {left} left out")
