"""Two workers, each with a Ray of its own, write to shared storage; the pieces become one run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("vllm")
pytest.importorskip("ray")

from genprobe.engines.control import MODEL
from genprobe.runs.run import Run

WORKERS, STATEMENTS = 2, 4  # statements of each


def started(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "genprobe", *map(str, arguments)]
    # Two Rays beside CI's other tests start slowly.
    slow = {"RAY_raylet_start_wait_time_s": "600"}
    return subprocess.Popen(
        command,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **slow},
    )


def said(process: subprocess.Popen[str]) -> str:
    out, _ = process.communicate(timeout=1800)
    assert process.returncode == 0, out
    return out


def test_pieces_of_two_workers_become_one_run(tmp_path: Path):
    pieces = []
    for worker in range(WORKERS):
        data = tmp_path / f"part-{worker}.jsonl"
        rows = [
            {"id": f"{worker}-{n}", "lang": "en", "text": f"People of group {worker}{n} are late."}
            for n in range(STATEMENTS)
        ]
        data.write_text("".join(json.dumps(row) + "\n" for row in rows))
        pieces.append(tmp_path / "shared" / f"part-{worker}")
    how = ["--engine", "ray", "--engine-arg", "block=4", "--max-tokens", "8", "-q"]
    working = [
        started(
            "yesno", "--data", tmp_path / f"{one.name}.jsonl", "--model", MODEL, *how, "--out", one
        )
        for one in pieces
    ]
    for worker in working:
        said(worker)
    whole = tmp_path / "shared" / "whole"
    said(started("merge", *pieces, "-o", whole, "-q"))
    n = 3 * STATEMENTS
    checked = said(started("verify", *pieces, whole))
    assert checked.count(f": {n} responses to {n} requests, none twice") == WORKERS
    assert f": {WORKERS * n} responses to {WORKERS * n} requests, none twice" in checked
    run = Run.open(whole)
    assert run.spec.engine == "ray" and len(list(run.statements())) == WORKERS * STATEMENTS
    replies = [one for piece in pieces for one in Run.open(piece).responses()]
    assert len({one.request for one in replies}) == WORKERS * n
    assert sorted(run.responses(), key=str) == sorted(replies, key=str)
    assert "endorsed" in said(started("score", whole, "--metric", "endorsed", "--by", "lang"))
