"""Replies in every language and how they are to be read: `replies/<code>.jsonl`, one a line.

A row gives what goes in (lang, probe, prompt, response) and what must come out: answer, kind,
and conflict where it is beyond dispute.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from genprobe.judges import Item, yesno

FILES = sorted((Path(__file__).parent / "replies").glob("*.jsonl"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_replies_are_read_as_their_language_means_them(path: Path) -> None:
    judge = yesno.make()
    wrong = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        row = json.loads(line)
        verdict = judge(Item(row["lang"], row["probe"], row["prompt"], row["response"]))
        read = {"answer": verdict.label, **verdict.fields}
        differs = {
            k: read[k] for k in ("answer", "kind", "conflict") if k in row and read[k] != row[k]
        }
        if differs:
            wrong.append(f"line {number}: {row['response']!r} read as {differs} by {verdict.rule}")
    assert not wrong, "\n".join(wrong)
