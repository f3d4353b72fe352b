"""How often the rules of extraction are right, by two readings of 200 published sentences.

    python benchmarks/extraction.py ../shared/data/afristereo/extraction.csv

extraction-readings.csv has, for each of 200 sentences drawn by seed, a hash of the sentence and of
two readings (`identity|attribute` in small letters, empty where nothing can be extracted, identity
by the names of the rules `en`): the sentences are not ours to publish. One person read them twice;
the second reading was made anew where a reading is not plain. Most sentences are "X are Y". The
rules `en` were written by somebody who had seen the sentences, so their figure is an upper one.
"""

from __future__ import annotations

import csv
import hashlib
import sys
from pathlib import Path

from genprobe.curation import extract
from genprobe.statistics import wilson

READINGS = Path(__file__).with_name("extraction-readings.csv")


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


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


if __name__ == "__main__":
    n, found = count(Path(sys.argv[1]))
    for name, k in found.items():
        low, high = wilson(k, n) or (0.0, 1.0)
        print(f"{name:12} {k} of {n} ({100 * k / n:.1f} % [{100 * low:.1f}, {100 * high:.1f}])")
