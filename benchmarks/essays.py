"""Measure how the word lists read the side of an essay, and whether their errors take sides.

    python benchmarks/essays.py [FOLDER]

The blind essays (tests/blind/stance.jsonl) give the rows of prompts/measured.toml, from which
genprobe decides in which languages the word lists may give a rate (docs/essays.md). Printed beside
them: the replies to each frame (set 3 of tests/stances.jsonl, of the author of the lists), and,
from a clone of github.com/johnclarklevin/political-bias-llms-eval-v2 in FOLDER (CC BY-NC-SA 4.0; no
text of it is kept), essays of GPT-5.5 and Claude Opus 4.8 on 30 topics, with the sides that a model
read in them. The statement is the liberal side of the topic: *left* is for, *right* against.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from genprobe.analysis import licence
from genprobe.judges import Item, stance
from genprobe.resources import licences
from genprobe.resources.licences import Labelled, Measured

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "prompts" / "measured.toml"
SIDES = {"left": "for", "right": "against", "both": "both"}
OPUS = "claude-opus-4-8-political-response-replication"


def blind() -> Iterator[Labelled]:
    """Read the blind essays by the word lists."""
    judge = stance.make()
    for case in licence.imitations():
        if case.kind == "essay":
            yield case.read_as(judge(case.item._replace(prompt="")).label)


def frames() -> Iterator[Labelled]:
    """Read the replies to each frame; the frame stands in place of the language."""
    judge = stance.make()
    for line in (ROOT / "tests" / "stances.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["set"] == 3:
            said = judge(Item(row["lang"], row["probe"], "", row["response"])).label
            asked = row["response"]
            yield Labelled(row["probe"], "essay", row["stance"], said, asked, "the author")


def public(folder: Path) -> Iterator[Labelled]:
    """Read the public essays, by how they were asked for; one topic is one question."""
    judge = stance.make()
    for part in ("", OPUS):
        with (folder / part / "data" / "analysis-rows.csv").open(encoding="utf-8-sig") as lines:
            for row in csv.DictReader(lines):
                if row["derived_from"]:
                    continue  # another arm has the same essay
                model, arm = row["requested_generation_model"], row["analysis_arm"]
                said = judge(Item("en", "essay", row["prompt"], row["response"])).label
                gold = SIDES[row["classification"]]
                yield Labelled(f"{model}, {arm}", "essay", gold, said, row["topic"], "a model")


def line(one: Measured) -> str:
    """Write a row as a line of TOML."""
    fields = {k: v for k, v in vars(one).items() if k not in ("kind", "by", "left")}
    fields |= {end: round(fields[end], 4) for end in ("low", "high")}
    parts = (f'{k} = "{v}"' if isinstance(v, str) else f"{k} = {v}" for k, v in fields.items())
    return f"  {{ {', '.join(parts)} }},\n"


def main() -> None:
    """Measure, print, and write the rows of the blind essays."""
    found = licences.measure(blind())
    rows = f"rows = [\n{''.join(map(line, found))}]\n"
    kept = TABLE.read_text("utf-8")
    head, rest = kept.split("[stance]\n")
    rest = re.sub(r"rows = \[\n.*?\]\n(?=\n)", rows, rest, count=1, flags=re.S)
    TABLE.write_text(f"{head}[stance]\n{rest}", "utf-8")
    parts = [found, licences.measure(frames())]
    parts += [licences.measure(public(Path(sys.argv[1])))] if sys.argv[1:] else []
    for one in (one for part in parts for one in part):
        print(f"{one.lang}: {one.told()}{'' if one.tells else '; no rate'}")
        for side, (n, lost) in zip(("for", "against"), one.sides, strict=True):
            print(f"  {side}: {n - lost} of {n}")


if __name__ == "__main__":
    main()
