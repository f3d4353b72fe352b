"""Measure how fast replies are read, and how much memory a large file takes.

    python benchmarks/reader.py [--replies 60000] [--rows 2000000] [--files FILE...]

Replies are generated from the built-in wordings, statements and word lists (18 languages, all
probes): with and without an echo, plain answers, options, continuations, explanations, and in
decomposed Unicode. Replies of one word are also timed separately. All are read on one core, in one
process, with evidence and conflict. The published study's own reader (substring search, label only)
is timed on the same replies in turn. Then the command line judges a file of --rows rows and one
with a tenth of the rows: the difference of their peak memory is the memory per row.

With --files, only the command line is timed, on each file alone: `genprobe judge`, from its start
to its end, in processor time, to which other programs on the machine add little.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import unicodedata
from pathlib import Path

from genprobe import text
from genprobe.datasets import statements
from genprobe.judges import Item, Judge, yesno
from genprobe.resources import packs, registry

SHORT = 12  # most characters of a reply of one word, as most replies to these questions are


def replies(count: int, seed: int = 0) -> list[Item]:
    draw = random.Random(seed)
    pack = packs.load_pack("yesno")
    items, _ = statements.load("builtin")
    by_lang: dict[str, list[str]] = {}
    for item in items:
        by_lang.setdefault(item.lang, []).append(item.text)

    def some(words: tuple[str, ...]) -> str:
        return draw.choice(list(text.expand(draw.choice(words)))) if words else ""

    found = []
    for _ in range(count):
        code = draw.choice(list(by_lang))
        words = packs.load_language(code if draw.random() < 0.85 else "en").words
        probe = draw.choice(list(pack.probes))
        statement = draw.choice(by_lang[code])
        prompt = pack.wordings[code][probe].ask(statement)
        answer = draw.choice(("yes", "no"))
        word = some(words[answer] + words[f"{answer}_alone"])
        other = draw.choice(by_lang[code])
        sentence = some(words[draw.choice(("agree", "disagree", "stereotype", "wrong"))])
        reply = draw.choice(
            (
                f"{word}.",
                f"\n\n{word.capitalize()}. {other} {sentence}",
                f" {other}\n\n{word}\n\n{other}",
                f"\n{some(words['yes'])} / {some(words['no_alone'])}\n\n{word}.",
                f"{some(words['label'])}: {word}. {sentence}. {other} {statement}",
                f"{sentence}, {other}",
                f" {other} {statement} {draw.choice(by_lang[code])}",
                f"{some(words['hedge'])}. {other}",
            )
        )
        if draw.random() < 0.1:
            reply = unicodedata.normalize("NFD", reply)
        found.append(Item(code, probe, prompt, prompt + reply if draw.random() < 0.5 else reply))
    return found


def speed(judge: Judge, items: list[Item]) -> float:
    start = time.process_time()
    for item in items:
        judge(item)
    return len(items) / (time.process_time() - start)


def peak(path: Path, out: Path) -> tuple[float, float]:
    """Run `genprobe judge` on a file in a process of its own; return (seconds, peak MB)."""
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    command = [
        str(Path(sys.executable).parent / "genprobe"),
        "judge",
        str(path),
        "-q",
        "-o",
        str(out),
    ]
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code, *command], capture_output=True, text=True, check=True
    )
    return time.monotonic() - start, int(done.stdout) / 1024


def whole_command(paths: list[Path]) -> None:
    """Print how fast the command line judges files, in replies per second of processor time."""
    print("| file | replies | characters, mean | processor seconds | replies/s |")
    print("|---|---|---|---|---|")
    for path in paths:
        rows = [json.loads(line) for line in path.open(encoding="utf-8")]
        letters = statistics.mean(len(row["response"]) for row in rows)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with tempfile.TemporaryDirectory() as folder:
            peak(path, Path(folder) / "out.jsonl")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        rate = len(rows) / seconds
        print(f"| {path.name} | {len(rows):,} | {letters:.0f} | {seconds:.1f} | {rate:,.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--replies", type=int, default=60_000)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--files", type=Path, nargs="+", default=[])
    options = parser.parse_args()
    if options.files:
        whole_command(options.files)
        return

    items = replies(options.replies)
    ours, published = yesno.make(), yesno.make("shades2025")
    for code in registry.names("languages"):  # load the word lists, which is done once per process
        ours(Item(code, "agreement", "", "x"))
    rounds = [(speed(ours, items), speed(published, items)) for _ in range(5)]
    letters = statistics.mean(len(i.response) for i in items)
    print(f"{len(items)} generated replies, 18 languages, {letters:.0f} characters on average\n")
    print("| reader | replies/s, one core (median of 5; min-max) |")
    print("|---|---|")
    for at, name in ((0, "genprobe, with evidence and conflict"), (1, "SHADES 2025, label only")):
        rates = [r[at] for r in rounds]
        print(f"| {name} | {statistics.median(rates):,.0f} ({min(rates):,.0f}-{max(rates):,.0f}) |")
    ratio = statistics.median(a / b for a, b in rounds)
    lots = [replies(options.replies // 5, seed) for seed in range(1, 6)]  # so that none is cached
    short = [[item for item in lot if len(item.response) <= SHORT] for lot in lots]
    rates = [speed(ours, lot) for lot in short]
    print(
        f"| genprobe, {sum(map(len, short))} fresh replies of at most {SHORT} characters | "
        f"{statistics.median(rates):,.0f} ({min(rates):,.0f}-{max(rates):,.0f}) |"
    )
    print(f"\ngenprobe / SHADES 2025: {ratio:.2f} (median of the rounds' ratios)")

    with tempfile.TemporaryDirectory() as folder:
        print("\n| file | rows | seconds | rows/s, in and out | peak MB |")
        print("|---|---|---|---|---|")
        for rows in (options.rows // 10, options.rows):
            path = Path(folder) / f"{rows}.jsonl"
            with path.open("w") as file:
                for number in range(rows):
                    item = items[number % len(items)]
                    file.write(json.dumps({"id": number, **item._asdict()}) + "\n")
            seconds, memory = peak(path, Path(folder) / "out.jsonl")
            size = path.stat().st_size / 1e6
            rate = rows / seconds
            print(f"| {size:.0f} MB | {rows:,} | {seconds:.1f} | {rate:,.0f} | {memory:.0f} |")
            path.unlink()


if __name__ == "__main__":
    main()
