"""Measure what a run of many replies needs: time, peak memory of each process, disk a reply.

    python benchmarks/scale.py [--replies 300000] [--rows 1000000 10000000] [--folder FOLDER]

Made-up statements in four languages, three questions and ten samples each, answered by recorded
replies of two models. Each row of the table is a process of its own; its peak is that of the
operating system (`wait4`). `first` is a score without the table that a score leaves in the folder,
`again` with it. The rows of `Parquet` count a file of judged replies by language and question;
below them are bare group-bys of the same file by pyarrow and by pandas, which count only hits and
replies, without reasons, bounds and intervals. --folder keeps what was made, and uses it again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LANGS = ("en", "de", "hi", "ar")
PROBES = ("recognition", "agreement", "disagreement")
SAMPLES = 10
WORDS = {
    "en": ("Yes", "No", "It depends on whom you ask"),
    "de": ("Ja", "Nein", "Das kommt darauf an"),
    "hi": ("हाँ", "नहीं", "यह कहना कठिन है"),
    "ar": ("نعم", "لا", "الأمر يختلف من شخص لآخر"),
}
MEASURES = ("yes", "no", "ambiguous", "endorsed", "recognised", "acquiescence", "contrast-gap")
BARE = {
    "pyarrow": """
import sys, pyarrow.parquet as pq, pyarrow.compute as pc
t = pq.read_table(sys.argv[1], columns=["lang", "probe", "pair", "answer"])
for word in ("yes", "no", "ambiguous"):
    part = t.append_column("hit", pc.cast(pc.equal(t["answer"], word), "int8"))
    found = part.group_by(["lang", "probe", "pair"]).aggregate([("hit", "sum"), ("hit", "count")])
print(found.num_rows)
""",
    "pandas": """
import sys, pandas as pd
t = pd.read_parquet(sys.argv[1], columns=["lang", "probe", "pair", "answer"])
for word in ("yes", "no", "ambiguous"):
    part = t.assign(hit=t["answer"] == word)
    found = part.groupby(["lang", "probe", "pair"])["hit"].agg(["sum", "count"])
print(len(found))
""",
}


def statements(replies: int) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield id, language, pair, role and text of statements for about so many replies."""
    pairs = max(1, round(replies / (len(LANGS) * len(PROBES) * SAMPLES * 2)))
    for lang in LANGS:
        for pair in range(pairs):
            for role in ("original", "contrast"):
                name = f"{pair}-{role}"
                yield name, lang, f"p{pair}", role, f"People of group {pair} {role} are late."


def make(folder: Path, replies: int) -> None:
    """Write the statements, and the recorded replies of two models."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "data.jsonl").open("w", encoding="utf-8") as file:
        for name, lang, pair, role, text in statements(replies):
            row = {"id": name, "lang": lang, "pair": pair, "role": role, "text": text}
            row |= {"bias_type": ("age", "origin", "gender")[int(pair[1:]) % 3]}
            file.write(json.dumps(row) + "\n")
    for model, inclined in (("alpha", 0.4), ("beta", 0.6)):
        drawn = random.Random(model)
        with (folder / f"{model}.jsonl").open("w", encoding="utf-8") as file:
            for name, lang, _, _, text in statements(replies):
                for probe in PROBES:
                    for sample in range(SAMPLES):
                        at = 2 if drawn.random() < 0.1 else int(drawn.random() > inclined)
                        reply = f"{WORDS[lang][at]}. {text} ({drawn.randrange(10**6)})"
                        row = {"statement": name, "lang": lang, "probe": probe, "sample": sample}
                        file.write(json.dumps(row | {"model": model, "response": reply}) + "\n")


def table(path: Path, rows: int) -> None:
    """Write a Parquet file of judged replies, in pieces, in a process of its own."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    drawn = np.random.default_rng(1)
    each, every = len(PROBES) * SAMPLES, statements(rows)
    answers = np.array(["yes", "no", "ambiguous"], object)
    writer = None
    while some := list(itertools.islice(every, 1000)):
        names, langs, pairs, roles, _ = (
            np.repeat(cells, each) for cells in zip(*some, strict=True)
        )
        n = len(names)
        columns: dict[str, Any] = {"statement": names, "lang": langs, "pair": pairs, "role": roles}
        columns |= {"model": ["alpha"] * n, "probe": np.tile(np.repeat(PROBES, SAMPLES), len(some))}
        columns["sample"] = np.tile(np.arange(SAMPLES), len(some) * len(PROBES))
        columns["answer"] = drawn.choice(answers, n, p=[0.5, 0.4, 0.1])
        batch = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, batch.schema, compression="zstd")
        writer.write_table(batch)
    if writer:
        writer.close()


def measured(name: str, command: list[str], cwd: Path) -> None:
    """Run a command, and print its wall and processor time and its peak memory."""
    begun = time.monotonic()
    with (cwd / "log.txt").open("ab") as log:
        child = subprocess.Popen(command, cwd=cwd, stdout=log, stderr=log)
        _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall, busy = time.monotonic() - begun, used.ru_utime + used.ru_stime
    failed = f"  exit code {child.returncode}, see {cwd}/log.txt" if child.returncode else ""
    peak = used.ru_maxrss / (1 << 20 if sys.platform != "darwin" else 1 << 30)
    print(f"| {name} | {wall:.0f} s | {busy:.0f} s | {peak:.2f} GB |{failed}", flush=True)


def size(*paths: Path) -> int:
    """Return the bytes of the files that there are."""
    return sum(path.stat().st_size for path in paths if path.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--replies", type=int, default=300_000)
    rows = parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 10_000_000])
    rows.help = "of the Parquet files"
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--table", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.table:
        table(given.table, *given.rows)
        return
    folder = (given.folder or Path(tempfile.mkdtemp())).resolve()
    if not (folder / "beta.jsonl").exists():
        make(folder, given.replies)
    print("| what | time | processor | peak |\n|---|---|---|---|")
    python = [sys.executable]
    genprobe = [*python, "-c", "from genprobe.__main__ import main; main()"]
    if shutil.which("genprobe"):
        genprobe = ["genprobe"]
    for model in ("alpha", "beta"):
        if not (folder / model / "scores.json").exists():
            asked = ["yesno", "--data", "data.jsonl", "--engine", "replay", "--model"]
            more = ["--samples", f"{SAMPLES}", "--out", model, "-q"]
            measured(f"run, {model}", [*genprobe, *asked, f"{model}.jsonl", *more], folder)
    runs = folder / "alpha", folder / "beta"
    with (runs[0] / "requests.jsonl").open("rb") as file:
        lines = sum(1 for _ in file)
    one = [*genprobe, "score", "alpha", "--metric", "endorsed", "--by", "lang"]
    for run in runs:
        for path in run.glob("outcomes.*"):
            path.unlink()
    measured("score, first", one, folder)
    measured("score, again", one, folder)
    measured("score, all measures", [*genprobe, "score", "alpha"], folder)
    measured("compare", [*genprobe, "compare", "alpha", "beta"], folder)
    measured("report", [*genprobe, "report", "alpha", "-o", "page.html"], folder)
    measured("verify", [*genprobe, "verify", "alpha"], folder)
    chosen = [part for name in MEASURES for part in ("--metric", name)]
    for rows in given.rows:
        parquet = folder / f"judged-{rows}.parquet"
        if not parquet.exists():
            own = [*python, __file__, "--rows", f"{rows}", "--table", f"{parquet}"]
            subprocess.run(own, check=True)
        of = f"Parquet of {rows:,}"
        measured(f"{of}, seven measures", [*genprobe, "score", parquet.name, *chosen], folder)
        for name, code in BARE.items():
            measured(f"{of}, bare {name}", [*python, "-c", code, parquet.name], folder)
    raw = size(runs[0] / "requests.jsonl", runs[0] / "responses.jsonl")
    judged = size(*(runs[0] / "judgments").glob("*"))
    derived = size(*runs[0].glob("outcomes.*"))
    print(f"\n{lines:,} replies; bytes of disk a reply: raw {raw / lines:.0f}, ", end="")
    print(f"judgments {judged / lines:.0f}, table of outcomes {derived / lines:.0f}; ", end="")
    print(f"the page has {size(folder / 'page.html') / 1e6:.1f} MB")
    if not given.folder:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
