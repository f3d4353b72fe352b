"""Measure how much time and memory it takes to group near-duplicates.

    python benchmarks/grouping.py [templates|pairs|words] [SENTENCES]

Prints wall and processor time of reading, grouping and writing, and the peak of memory; the target
is 100,000 sentences within a minute and 2 GB on two cores. No two sentences are the same:

- `templates`: 60 groups in 1,700 predicates, as sentences from templates are: every sentence shares
  its predicate with 59 others, and its group with 1,699.
- `pairs`: 50,000 sentences of random words, each also with another group in the place of its own.
- `words`: seven to twelve words drawn by Zipf's law from 20,000; hardly any two are alike.

Words are made of syllables with a fixed seed, so that every machine groups the same texts.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from genprobe.curation import group, tables


def words(count: int, drawn: random.Random) -> list[str]:
    """Make `count` different words of one to four syllables."""
    syllables = [
        a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "is")
    ]
    made: dict[str, None] = {}
    while len(made) < count:
        made["".join(drawn.choices(syllables, k=drawn.choice((1, 2, 2, 3, 3, 4))))] = None
    return list(made)


def sentences(kind: str, count: int) -> Iterator[str]:
    """Make `count` different sentences of a kind."""
    drawn = random.Random(1)
    vocabulary = words(20_000, drawn)
    weights = list(accumulate(1 / rank for rank in range(1, len(vocabulary) + 1)))

    def some(least: int, most: int) -> str:
        k = drawn.randint(least, most)
        return " ".join(drawn.choices(vocabulary, cum_weights=weights, k=k))

    groups = [" ".join(pair) for pair in zip(words(60, drawn), words(60, drawn), strict=True)]
    seen: set[str] = set()
    while len(seen) < count:
        body = some(6, 11) if kind == "words" else some(3, 6)
        subjects = groups
        if kind == "words":
            subjects = [drawn.choice(vocabulary)]
        elif kind == "pairs":
            subjects = drawn.sample(groups, 2)
        for subject in subjects:
            text = f"{subject} {body}."
            if text not in seen and len(seen) < count:
                seen.add(text)
                yield text


def main(kind: str = "pairs", count: int = 100_000) -> None:
    """Group sentences of a kind, and print the time and memory that it took."""
    with tempfile.TemporaryDirectory() as name:
        source, out = Path(name, "in.jsonl"), Path(name, "out.jsonl")
        with source.open("w") as file:
            for at, text in enumerate(sentences(kind, count)):
                file.write(json.dumps({"id": str(at), "text": text}) + "\n")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        wall, processor = time.perf_counter(), time.process_time()
        rows, columns = group.run(source, group.Grouping(), print)
        tables.write(out, rows, columns)
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = len({row["group"] for row in rows})
    print(f"{kind}: {count:,} sentences in {found:,} groups")
    print(f"wall {wall:.1f} s, processor {processor:.1f} s")
    print(f"peak {peak / 2**20:.2f} GB, of which {before / 2**20:.2f} GB before it began")


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
