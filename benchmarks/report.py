"""Measure the time and memory that a report takes, and the size of the page.

    python benchmarks/report.py [--data FOLDER] [--responses 20000,100000]

The report is about a run with the given number of responses of one model to the questions of
`yesno`. With --data (a folder with `statements.csv` and `responses-*.parquet`, as in SHADES's
repository), the responses are recorded replies, repeated as often as necessary. Without it, they
are generated replies to the built-in statements. Making the run is not timed. The report is made by
a process of its own. Exit code 1 if 100,000 responses take 60 s or 1 GB, or the page of 20,000 is
3 MB or more.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

LIMITS = {"seconds": 60.0, "bytes": 1e9, "page": 3e6}
TEXTS = (
    "{}. It depends on the person, and one should not judge a group by its name.",
    "{}, this is what many people say. The statement generalises, all the same.",
    "{}.",
    "I cannot answer that.",
)


def generated(count: int, folder: Path) -> tuple[Path, dict[str, Any]]:
    """Write a file of generated replies to the built-in statements.

    Returns its path, and the arguments of `yesno` that ask the same questions.
    """
    from genprobe import files
    from genprobe.datasets import statements
    from genprobe.resources import packs
    from genprobe.tasks.pipeline.plan import plan as plan_requests

    pack = packs.load_pack("yesno")
    items, _ = statements.load("builtin", None)
    requests = plan_requests(items, pack, list(pack.probes), 0, 1)
    samples = -(-count // len(requests))
    draw = random.Random(0)
    rows = (
        {
            "prompt": request.messages[-1]["content"],
            "response": draw.choice(TEXTS).format(
                draw.choice([f[0] for f in pack.options(request.lang, "choice").values()])
            ),
        }
        for request in requests
        for _ in range(samples)
    )
    path = folder / "replies.jsonl"
    files.write_rows(path, rows)
    return path, {"samples": samples}


def recorded(count: int, data: Path, folder: Path) -> tuple[Path, dict[str, Any]]:
    """Write a file of recorded replies; return as `generated` does."""
    from genprobe import files

    found = sorted(data.glob("responses-*.parquet"))[0]
    model = next(iter(files.read_rows(found)))["model"]
    rows = [r for r in files.read_rows(found) if r["model"] == model]
    samples = -(-count // len(rows))

    def repeated() -> Iterator[dict[str, Any]]:
        for row in rows:
            for at in range(samples):
                # Repeated replies get different texts, as real replies have.
                yield {"prompt": row["prompt"], "response": f"{row['response']} {at or ''}".strip()}

    path = folder / "replies.jsonl"
    files.write_rows(path, repeated())
    return path, {"samples": samples, "data": str(data / "statements.csv")}


def made(count: int, data: Path | None, folder: Path) -> Path:
    """Make a run of `count` responses and return its folder."""

    path, asked = recorded(count, data, folder) if data else generated(count, folder)
    from genprobe import api

    run = api.yesno(str(path), engine="replay", out=folder / "run", **asked)
    # Every question was asked equally often; remove the last responses to get `count` of them.
    for name in ("requests.jsonl", "responses.jsonl"):
        file = run.folder / name
        lines = file.read_text("ascii").splitlines(keepends=True)
        file.write_text("".join(itertools.islice(lines, count)), "ascii")
    for file in (run.folder / "judgments").glob("*.jsonl"):
        lines = file.read_text("ascii").splitlines(keepends=True)
        file.write_text("".join(itertools.islice(lines, count)), "ascii")
    return run.folder


def measured(run: Path, out: Path) -> tuple[float, float, int, int]:
    """Make a report; return its seconds, processor seconds, peak memory and page size in bytes."""
    code = "from genprobe.commands import main; main()"
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code, "report", run, "-o", out, "-q"])
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit("the report failed")
    seconds, busy = time.perf_counter() - begun, usage.ru_utime + usage.ru_stime
    return seconds, busy, usage.ru_maxrss * 1024, out.stat().st_size


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--responses", default="20000,100000")
    given = parser.parse_args()
    print(
        "| responses | seconds | of the processor | memory, MB | page, MB |\n|---|---|---|---|---|"
    )
    missed = False
    for count in map(int, given.responses.split(",")):
        with tempfile.TemporaryDirectory() as name:
            # The run is made in another process, because the peak memory of a process begins with
            # that of its parent: the parent of the process that is measured must stay small.
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                run = pool.submit(made, count, given.data, Path(name)).result()
            seconds, busy, most, page = measured(run, Path(name) / "report.html")
        row = f"| {count:,} | {seconds:.1f} | {busy:.1f} | {most / 1e6:.0f} | {page / 1e6:.2f} |"
        print(row, flush=True)
        missed |= count == 100_000 and (seconds > LIMITS["seconds"] or most > LIMITS["bytes"])
        missed |= count == 20_000 and page >= LIMITS["page"]
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
