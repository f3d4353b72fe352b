"""Show which instruments of the five studies genprobe has, by running a command for each.

    python benchmarks/studies.py [--data FOLDER] [-o docs/studies.md]

The rows and checks are those of benchmarks/studies.toml. All checks run in one temporary folder, on
files made here; FOLDER has the studies' data (shades/, rubia/, bbq/, crows-pairs/), without which
their rows are not checked. Exit code 1 if a check does not show what it should.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = {
    "two.jsonl": '{"id": "1", "lang": "nl", "probe": "agreement", "prompt": "Klopt dit?", '
    '"response": "Nee, dat klopt helemaal niet, want ieder mens is anders."}\n',
    "regions.csv": "id,lang,text,pair,role,valid_in,stereotype_valid_regions\n"
    "1,en,Bakers get up early.,1,original,en kk,GB;KZ\n"
    "1,kk,Наубайшылар ерте тұрады.,1,original,en kk,GB;KZ\n".replace("GB;KZ", '"GB, KZ"'),
    "it.csv": "id,lang,template,original,contrast\n"
    "1,it,OCCUPATION-PL sono gentili.,teachers,doctors\n",
    "said.csv": "id,lang,attribute\n1,en,Women are smart\n2,en,Women are not smart\n",
    "prefer.csv": "item,model,pro,anti\n1,a,-1,-2\n2,a,-1,-2\n1,b,-1,-2\n2,b,-3,-2\n",
}


def run(command: str, folder: Path, data: str) -> str:
    """Run a command with bash in the folder and return all that it prints."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    more = {"PATH": path, "CLONE": str(ROOT), "DATA": data, "TINY": str(folder), "COLUMNS": "200"}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        timeout=600,
    )
    return done.stdout + done.stderr


def page(checks: dict[str, list[str]], studies: dict[str, str], data: str) -> tuple[str, list[str]]:
    """Return the page, and the names of the checks that failed."""
    shown: dict[str, str] = {}
    failed = []
    with tempfile.TemporaryDirectory() as name:
        for file, text in FILES.items():
            Path(name, file).write_text(text, "utf-8")
        for check, (command, pattern) in checks.items():
            if "$DATA" in command and not data:
                shown[check] = "not run: needs the study's data"
                continue
            said = run(command, Path(name), data)
            found = re.search(pattern, said)
            shown[check] = (found[0] if found else "FAILS").splitlines()[0][:90]
            if not found:
                failed.append(check)
                print(f"{check}: {command}\n{said[-1500:]}", file=sys.stderr)
            else:
                print(f"{check}: {shown[check]}", file=sys.stderr)
    rows, states = [], Counter[str]()
    for study, text in studies.items():
        rows += ["", f"## {study}", "", "| row | instrument | state | check |", "|---|---|---|---|"]
        for line in text.strip().splitlines():
            at, what, state, check, remark = (part.strip() for part in line.split("|"))
            state = "FAILS" if check in failed else state
            states[state] += 1
            rows.append(f"| {at} | {what} | {state}{': ' * bool(remark)}{remark} | {check} |")
    told = ", ".join(f"{n} {state}" for state, n in states.most_common())
    head = f"""# The five studies, row by row

Made by `python benchmarks/studies.py --data FOLDER -o docs/studies.md`, which runs every check.

Which instruments of SHADES, Aqbileq, RuBia, AfriStereo and PBBQ genprobe has. *Works*: as the study
describes it. *Limits*: it works, within what the remark says. *Partly* and *missing* say so.
*Elsewhere*: [software alone cannot](cannot.md). A check is a command whose output shows the row;
those that name a test run it. Rows with one state and one check are joined (*D2-3*). Of the
{sum(states.values())} lines: {told}."""
    checked = ["", "## The checks", "", "| check | command | shows |", "|---|---|---|"]
    for check, (command, _) in checks.items():
        cell = command.replace("|", r"\|")
        checked.append(f"| {check} | `{cell}` | {shown[check].replace('|', ' ')} |")
    return "\n".join([head, *rows, *checked]) + "\n", failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="", help="folder with the studies' data")
    parser.add_argument("-o", "--out", type=Path, help="file for the page; else it is printed")
    given = parser.parse_args()
    told = tomllib.loads((ROOT / "benchmarks" / "studies.toml").read_text("utf-8"))
    data = str(Path(given.data).resolve()) if given.data else ""
    text, failed = page(told["checks"], told["studies"], data)
    if given.out:
        given.out.write_text(text, "utf-8")
    else:
        print(text)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
