"""Measure how the rules read real replies, and whether their errors take sides.

    python benchmarks/skew.py [LABELLED.jsonl ...]

Without files, the replies that prompts/real.jsonl points to are fetched (genprobe licence
--download does the same). The rows, by language, kind of question and who labelled them, are
printed and written to prompts/measured.toml, from which `genprobe list languages` and the cautions
of `genprobe score` take them, and to the table of docs/reading.md.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from genprobe.analysis import licence
from genprobe.judges import verdicts, yesno
from genprobe.resources import licences, packs, registry
from genprobe.resources.licences import Measured

ROOT = Path(__file__).parents[1]
TABLE, PAGE = ROOT / "prompts" / "measured.toml", ROOT / "docs" / "reading.md"
HEAD = """\
# How real replies of models are read (benchmarks/skew.py, docs/reading.md): by language, kind of
# question and who labelled them. sides: of yes and of no, [replies, lost]; none: replies without an
# answer, and those that are read as one.
"""


def row(one: Measured) -> str:
    """Write a row as a line of TOML, which has no null."""
    fields = {name: value for name, value in vars(one).items() if value is not None}
    del fields["left"]
    ends = {name: round(fields[name], 4) for name in ("low", "high")}
    parts = (
        f'{k} = "{v}"' if isinstance(v, str) else f"{k} = {v}" for k, v in (fields | ends).items()
    )
    return f"  {{ {', '.join(parts)} }},\n"


def shown(one: Measured) -> str:
    """Write a row as a line of the page."""
    share = (
        f"{one.right} ({100 * one.right / one.n:.1f} % [{100 * one.low:.1f}, {100 * one.high:.1f}])"
    )
    lost = [f"{k} of {n}" for n, k in one.sides]
    points = [f"{100 * part:+.1f}" for part in one.skew or ()]
    skew = f"{points[0]} [{points[1]}, {points[2]}]" if points else "–"
    whose = one.by != licences.EVERYBODY
    name = f"… labelled by {one.by}" if whose else f"{one.lang}, {one.kind}"
    cells = (name, one.n, share, *lost, skew, f"{one.none[1]} of {one.none[0]}")
    return f"| {' | '.join(map(str, cells))} |\n"


def read_by_rules(cases: Sequence[licence.Case]) -> list[Measured]:
    """Return how well the rules read the labelled replies of yes/no questions and choices."""
    rows = []
    for name, kinds in (("yesno", packs.READS), ("choice", ("choice",))):
        rules = registry.module("judges", name).make()
        mine = ((case, case.item) for case in cases if case.kind in kinds)
        rows += [case.read_as(verdict.label) for case, verdict in verdicts(rules, mine)]
    return licences.measure(rows)


def main() -> None:
    files = [Path(name) for name in sys.argv[1:]]
    cases = [case for path in files for case in licence.of_file(path)]
    cases = cases or licence.real(note=lambda line: print(line, file=sys.stderr))
    found = read_by_rules(cases)
    for line in licence.lines(found):
        print(line.removesuffix("; not enough for a licence"))
    part = f'[yesno.real]\njudge = "{yesno.make().signature}"\nrows = [\n'
    part += "".join(row(one) for one in found) + "]\n"
    kept = re.sub(
        r"\n# How real replies of models.*?\n\]\n", "", TABLE.read_text("utf-8"), flags=re.S
    )
    TABLE.write_text(f"{kept.rstrip()}\n\n{HEAD}{part}", "utf-8")
    page = PAGE.read_text("utf-8")
    before, rest = page.split("<!-- skew -->\n")
    old, after = rest.split("<!-- /skew -->\n")
    heads = "".join(line for line in old.splitlines(keepends=True)[:2])
    rows = "".join(map(shown, found))
    PAGE.write_text(f"{before}<!-- skew -->\n{heads}{rows}<!-- /skew -->\n{after}", "utf-8")


if __name__ == "__main__":
    main()
