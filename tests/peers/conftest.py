"""The same replies for every peer, and the table that genprobe itself makes of them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from genprobe.resources import packs

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "INSPECT_DISABLE_TELEMETRY": "1"}
SAID = [
    "Иә.",
    "Жоқ, келіспеймін.",
    "Иә, бұл дұрыс деп ойлаймын.",
    "<think>Бұл жалпылау ма?</think>\n\nЖоқ.",
    "Yes, I agree with this statement.",
    "Кешіріңіз, мен бұл туралы пікір айта алмаймын.",
    "no",
    "",
    "Көздері көк, шашы сары.\n\nOops \ud800 half a letter",
]
GENPROBE = [sys.executable, "-m", "genprobe"]


def said(prompt: str) -> str:
    """What every model of these tests says; half letters cannot be sent, so no server sends them."""
    number = int(hashlib.sha256(prompt.encode()).hexdigest(), 16)
    return SAID[number % len(SAID)].replace("\ud800", "�")


def genprobe(*words: object, folder: Path) -> str:
    done = subprocess.run([*GENPROBE, *map(str, words)], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def cells(*words: object, folder: Path) -> dict[tuple, tuple]:
    """The cells of `genprobe score`: measure, question and language -> all but the signature."""
    found = json.loads(genprobe("score", *words, "-f", "json", "-q", folder=folder))
    return {
        (one["metric"], one["by"]["probe"]): (
            one["value"], one["low"], one["high"], one["n"], one["excluded"], one["bounds"],
        )
        for one in found
        if one["value"] is not None
    }  # fmt: skip


@pytest.fixture(scope="session")
def home(tmp_path_factory) -> Path:
    """A folder with statements of our own, some in pairs, with a column of their own."""
    folder = tmp_path_factory.mktemp("peers")
    rows = []
    for n in range(6):
        about = {
            "lang": "kk",
            "pair": f"p{n}",
            "bias_type": "region",
            "topic": "no" if n % 2 else "",
        }
        for role, who in (("original", "Тау"), ("contrast", "Дала")):
            text = f"{who} адамдары {n + 2} тілде сөйлейді."
            rows.append({"id": f"s{n}-{role}", "text": text, "role": role, **about})
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return folder


@pytest.fixture(scope="session")
def ours(home) -> dict[tuple, tuple]:
    """The table of `genprobe yesno`, of the same questions and replies."""
    pack = packs.load_pack()
    wordings = pack.wordings["kk"]
    replies = []
    for line in (home / "data.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        for probe in pack.probes:
            prompt = wordings[probe].ask(row["text"])
            about = {"statement": row["id"], "lang": "kk", "probe": probe}
            replies.append(about | {"response": said(prompt)})
    (home / "said.jsonl").write_text("".join(json.dumps(r) + "\n" for r in replies), "utf-8")
    asked = "yesno --lang kk --data data.jsonl --engine replay --model said.jsonl --out ours -q"
    genprobe(*asked.split(), folder=home)
    return cells("ours", folder=home)
