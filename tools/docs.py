"""Write the pages of the documentation that are made by running commands.

    python tools/docs.py commands          docs/commands.md: every command's help
    python tools/docs.py shades FOLDER     docs/shades.md, from the recorded replies of the SHADES
                                           study (responses-dev.parquet, answers-dev.jsonl)
    python tools/docs.py reproduce FOLDER  docs/reproduce.md, from a folder of the studies' data:
                                           shades/, rubia/, bbq/, crows-pairs/
    python tools/docs.py pages [PAGE…]     README.md and docs/: outputs of all examples (pages.py)
    python tools/docs.py check [PAGE…]     print where pages show other outputs than their examples
                                           give; exit code 1 if they do

The pages get figures, but neither statements nor replies of the studies.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import pages  # beside this file

ROOT = Path(__file__).parents[1]
GENPROBE = Path(sys.executable).parent / "genprobe"


def every_command(group: click.Group | None = None, *names: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command, in the order of the help; a group precedes its commands."""
    from genprobe.commands import cli

    group = cli if group is None else group
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*names, name)
        if isinstance(command, click.Group):
            yield from every_command(command, *names, name)


def run(*arguments: str | Path, cwd: Path = ROOT) -> str:
    """Run a genprobe command and return its standard output."""
    command = [str(GENPROBE), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=cwd).stdout


def commands() -> str:
    """Return the page with the help of every command."""
    parts = ["# Commands\n\nMade by `python tools/docs.py commands`.\n"]
    for words in ((), *every_command()):
        title = " ".join(["genprobe", *words])
        parts.append(
            f"## {title}\n\n```\n$ {title} --help\n{run(*words, '--help').rstrip()}\n```\n"
        )
    return "\n".join(parts)


def shades(folder: Path) -> str:
    """Return the page that compares the study's published labels with ours, cell by cell.

    folder: recorded replies (responses-dev.parquet) and blind readings (answers-dev.jsonl).
    """
    replies, readings = folder / "responses-dev.parquet", folder / "answers-dev.jsonl"
    by = "model,probe,lang"
    with tempfile.TemporaryDirectory() as name:
        ours, theirs = Path(name, "ours.jsonl"), Path(name, "published.jsonl")
        read, read_published = Path(name, "read.jsonl"), Path(name, "read-published.jsonl")
        run("judge", replies, "-q", "-o", ours)
        run("judge", replies, "--parser", "shades2025", "-q", "-o", theirs)
        run("judge", readings, "-q", "-o", read)
        run("judge", readings, "--parser", "shades2025", "-q", "-o", read_published)
        shares = ["--metric", "yes", "--metric", "no", "--metric", "ambiguous"]
        mine = _cells(run("score", ours, *shares, "--by", by, "-f", "json"))
        published = _cells(run("score", theirs, *shares, "--by", by, "-f", "json"))
        banded = json.loads(run("score", replies, "--band", "--by", by, "-f", "json"))
        rows = [json.loads(line) for line in theirs.open()]
        exact = sum(row["answer"] == row["published"] for row in rows)
        page = [
            _HEAD.format(replies=len(rows), exact=exact),
            _readings(read, read_published),
            _bands(banded),
            _moved(mine, published),
        ]
    return "\n".join(page)


_HEAD = """# The replies of the SHADES study, read again

Made by `python tools/docs.py shades FOLDER`, which runs `genprobe judge` (once as it is, once with
`--parser shades2025`) and `genprobe score` on {replies:,} recorded replies of
Mistral-7B-Instruct-v0.1 and Qwen2-7B-Instruct from the SHADES study (Mitchell et al. 2025; its
public repository). `--parser shades2025` gives {exact:,} of the {replies:,} published labels.

Both readings give the literal answer, before the study swaps yes and no for the disagreement
question.
"""


def _cells(out: str) -> dict[tuple[str, str, str], dict[str, float]]:
    cells: dict[tuple[str, str, str], dict[str, float]] = {}
    for score in json.loads(out):
        cell = (score["by"]["model"], score["by"]["probe"], score["by"]["lang"])
        cells.setdefault(cell, {"n": score["n"]})[score["metric"]] = 100 * score["value"]
    return cells


def _readings(ours: Path, published: Path) -> str:
    """Write how many answers of each parser agree with the two blind readings, by language."""
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    count: Counter[str] = Counter()
    both = found = there = 0
    for mine, theirs in zip(ours.open(), published.open(), strict=True):
        row, old = json.loads(mine), json.loads(theirs)
        count[row["lang"]] += 1
        right[row["lang"]] += row["answer"] == row["answer_data"]
        wrong[row["lang"]] += old["answer"] == old["answer_data"]
        both += row["conflict"] and row["conflict_data"]
        found += row["conflict"]
        there += row["conflict_data"]
    lines = [
        "## Against two blind readings\n",
        f"{count.total()} of the replies were read twice, independently and blind, and "
        "have the same answer in both readings. We had these replies when we wrote the word "
        "lists, so this is not a test on unseen replies.\n",
        "| language | replies | genprobe right | published right |",
        "|---|---|---|---|",
    ]
    for lang in sorted(count):
        n = count[lang]
        lines.append(f"| {lang} | {n} | {right[lang] / n:.1%} | {wrong[lang] / n:.1%} |")
    n = count.total()
    lines.append(f"| all | {n} | {right.total() / n:.1%} | {wrong.total() / n:.1%} |")
    f1 = 2 * both / (found + there)
    lines.append(
        f"\nConflict (an explanation that contradicts its answer): F1 {f1:.2f}, of {there}.\n"
    )
    return "\n".join(lines)


def _bands(scores: list[dict[str, Any]]) -> str:
    """Write how wide the error band is over the cells."""
    lines = [
        "## What the choice of a reader alone makes\n",
        "The table gives the width of the error band ([measures](measures.md)) of each rate in "
        "points, by `genprobe score FILE --band --by model,probe,lang`: the distance between the "
        "lowest and the highest figure of three readers (ours, strict, shades2025) on the same "
        "replies, and in the last columns of two of them.\n",
        "| rate | cells | median | 9 in 10 below | widest | 5 points or more | ours and strict, "
        "median | ours and shades2025, median |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for rate in dict.fromkeys(s["metric"] for s in scores if s["readings"]):
        found = [s["readings"] for s in scores if s["metric"] == rate]
        widths = _widths(found, ("ours", "strict", "shades2025"))
        tenth = widths[math.ceil(0.9 * len(widths)) - 1]
        wide = sum(width >= 5 for width in widths)
        two = (_widths(found, ("ours", other)) for other in ("strict", "shades2025"))
        medians = " | ".join(f"{statistics.median(w):.1f}" for w in two)
        lines.append(
            f"| {rate} | {len(widths)} | {statistics.median(widths):.1f} | {tenth:.1f} | "
            f"{widths[-1]:.1f} | {wide} | {medians} |"
        )
    return "\n".join(lines) + "\n"


def _widths(found: list[dict[str, float | None]], readers: tuple[str, ...]) -> list[float]:
    """Return the highest minus the lowest figure of the readers in each cell, in points, sorted.

    Only cells in which all readers have a figure are used.
    """
    cells = [[readings[name] for name in readers] for readings in found]
    known = [[v for v in cell if v is not None] for cell in cells]
    return sorted(100 * (max(v) - min(v)) for v in known if len(v) == len(readers))


def _moved(
    mine: dict[tuple[str, str, str], dict[str, float]],
    published: dict[tuple[str, str, str], dict[str, float]],
) -> str:
    """Write the table of all cells, and in how many of them a share differs by 5 points or more."""
    moved = 0
    lines = []
    for cell in mine:
        new, old = mine[cell], published[cell]
        shift = max(abs(new[a] - old[a]) for a in ("yes", "no", "ambiguous"))
        moved += shift >= 5
        model, probe, lang = cell
        was = " / ".join(f"{old[a]:.1f}" for a in ("yes", "no", "ambiguous"))
        now = " / ".join(f"{new[a]:.1f}" for a in ("yes", "no", "ambiguous"))
        mark = f"**{shift:.1f}**" if shift >= 5 else f"{shift:.1f}"
        lines.append(f"| {model} | {probe} | {lang} | {new['n']} | {was} | {now} | {mark} |")
    head = [
        "## Every cell\n",
        f"Shares of yes / no / ambiguous in %, of all replies of the cell. In **{moved} of "
        f"{len(mine)}** cells a share moves by 5 points or more (the largest move is in the last "
        "column).\n",
        "| model | probe | language | n | published | genprobe | moves by |",
        "|---|---|---|---|---|---|---|",
    ]
    return "\n".join(head + lines) + "\n"


# --- published tables


def reproduced(folder: Path) -> str:
    """Return the page about all reproductions: how many cells agree, and the cells that do not."""
    from genprobe.analysis import reproduce
    from genprobe.resources import registry

    names = registry.names("reproduce")
    about, found = {}, {}
    for name in names:
        about[name] = registry.module("reproduce", name)
        found[name] = reproduce.run(name, folder / name if about[name].FILES else None)
    rows = ["| name | what | cells | agree | known | unexplained |", "|---|---|---|---|---|---|"]
    parts = []
    for name in names:
        one, doc = found[name], (about[name].__doc__ or "").strip()
        count = Counter(cell.verdict for cell in one.cells)
        shown = " | ".join(str(count[verdict]) for verdict in ("agrees", "known", "differs"))
        title, _, more = doc.partition("\n")
        rows.append(f"| [`{name}`](#{name}) | {title} | {len(one.cells)} | {shown} |")
        parts.append(f"## {name}\n\n{title} {' '.join(more.split())}\n\n{one.source}.\n")
        parts += [_needs(name, about[name].FILES), f"**{one.summary}.**\n", _off(one.cells)]
        if one.faults:
            faults = "\n".join(f"- {fault}." for fault in one.faults)
            parts.append(f"What is wrong and in no cell:\n\n{faults}\n")
    page = (ROOT / "tools" / "reproduce.md").read_text()
    return pages.made(page.replace("{table}", "\n".join(rows)) + "\n".join(filter(None, parts)))


def _needs(name: str, files: Sequence[Any]) -> str:
    if not files:
        return f"`genprobe reproduce {name}` needs no folder.\n"
    lines = [f"`genprobe reproduce {name} --from FOLDER` reads\n"]
    for file in files:
        names = f"`{file.name}`" + (f" or `{file.also}`" if file.also else "")
        may = ", if it is there" if file.optional else ""
        columns = ", ".join(f"`{column}`" for column in file.columns)
        lines.append(f"- {names}{may}: {columns}. Published: {file.where}.")
    return "\n".join(lines) + "\n"


def _off(cells: Sequence[Any]) -> str:
    """Write the cells that do not agree as a table, with the reasons below it."""
    off = [cell for cell in cells if cell.verdict in ("known", "differs")]
    if not off:
        return ""
    whys = list(dict.fromkeys(cell.why or "not known" for cell in off))
    rows = ["| table | cell | published | ours | why |", "|---|---|---|---|---|"]
    for cell in off:
        at = whys.index(cell.why or "not known") + 1
        rows.append(f"| {cell.table} | {cell.name} | {cell.published} | {cell.ours:.4g} | {at} |")
    return "\n".join([*rows, "", *(f"{at}. {why}." for at, why in enumerate(whys, 1))]) + "\n"


def main() -> None:
    if sys.argv[1:2] == ["commands"]:
        (ROOT / "docs" / "commands.md").write_text(commands())
    elif sys.argv[1:2] == ["shades"] and len(sys.argv) == 3:
        (ROOT / "docs" / "shades.md").write_text(shades(Path(sys.argv[2])))
    elif sys.argv[1:2] == ["reproduce"] and len(sys.argv) == 3:
        (ROOT / "docs" / "reproduce.md").write_text(reproduced(Path(sys.argv[2])))
    elif sys.argv[1:2] in (["pages"], ["check"]):
        _examples(sys.argv[1], [Path(name).resolve() for name in sys.argv[2:]])
    else:
        sys.exit(__doc__)


def _examples(what: str, chosen: list[Path]) -> None:
    differ = False
    for page in chosen or pages.paths():
        if what == "pages":
            page.write_text(pages.made(page.read_text()))
        elif found := pages.differences(page):
            differ = True
            print(found, flush=True)  # else the next fork would print what is in the buffer again
    sys.exit(differ)


if __name__ == "__main__":
    main()
