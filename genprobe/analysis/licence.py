"""Measure a second reader on labelled replies: its licence.

The replies are imitations that come with genprobe, files of the user's own, and, if the user allows
the download, real ones. Of these only pointers, hashes and labels come with genprobe: a text is
fetched from its public repository at a fixed commit into the cache, and used only if its hash is
the one that was labelled.

The reader is asked about every labelled reply, not only about those that the rules leave open, of
which there are few; its figure on these is given apart.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from genprobe import files, tasks
from genprobe._version import __version__
from genprobe.engines import Engine
from genprobe.errors import Caution, InputError
from genprobe.files import cells, disk, door
from genprobe.files.rows import Table
from genprobe.judges import Item, Judge, llm, verdicts
from genprobe.limits import exceeded, limit, parsed
from genprobe.outcomes.external import truth
from genprobe.resources import licences, packs, registry
from genprobe.resources.licences import Labelled, Licence, Measured
from genprobe.tasks.pipeline import Note, Progress, quiet
from genprobe.tasks.pipeline.judge import listed_in
from genprobe.tasks.pipeline.second import Second
from genprobe.text import whole_number

_HERE = Path(__file__).parents[1]
# In a wheel the labelled imitations are inside the package, in a checkout they are with the tests.
_IMITATIONS = next(p for p in (_HERE / "labelled", _HERE.parent / "tests" / "blind") if p.is_dir())
RAW = "https://raw.githubusercontent.com/"  # the only address that texts are fetched from
_SECONDS = 60


class Case(NamedTuple):
    """A labelled reply. kind: of question (`licences.SIDES`). gold: its label, in these words."""

    kind: str
    item: Item
    gold: str
    by: str
    source: str

    def read_as(self, label: str, left: bool = False) -> Labelled:
        """Return what a reader makes of it. left: whether the rules leave it open."""
        asked = self.item.prompt or self.item.response
        return Labelled(self.item.lang, self.kind, self.gold, label, asked, self.by, left)


def measured(cases: Sequence[Case], engine: Engine, progress: Progress = quiet) -> list[Licence]:
    """Ask a model about labelled replies, and return how well it reads them."""
    found: list[Licence] = []
    done = 0
    for own in (task.second for task in tasks.every() if task.second):
        mine = [case for case in cases if _fits(case, own)]
        if not mine:
            continue
        judge = llm.make(engine, own.rubric)
        rules = _rules(own)
        rows = []
        for case, verdict in verdicts(judge, [(case, case.item) for case in mine]):
            label = own.none if verdict.label == llm.UNCLEAR else verdict.label
            left = rules is not None and rules(case.item).fields.get("kind") in own.open
            rows.append(case.read_as(label, left))
            done += 1
            progress("asking", done, len(cases))
        for one in licences.measure(rows):
            own_cases = (c for c in mine if (c.item.lang, c.kind) == (one.lang, one.kind))
            about: dict[str, Any] = {
                "reader": judge.reader,
                "sources": sorted({case.source for case in own_cases}),
                "made": datetime.date.today().isoformat(),
                "version": __version__,
            }
            found.append(Licence(**vars(one), **about))
    return found


def _fits(case: Case, own: Second) -> bool:
    return case.kind == own.asks or (not own.asks and case.kind in packs.READS)


def _rules(own: Second) -> Judge | None:
    """Return the judge whose kinds say what the rules leave open; None if it gives no kinds."""
    module = registry.module("judges", own.of or own.fills)
    return module.make() if any(c.name == "kind" for c in module.COLUMNS) else None


def imitations(langs: Collection[str] = ()) -> list[Case]:
    """Return the labelled imitations that come with genprobe, in these languages or in all."""
    paths = [_IMITATIONS / f"{name}.jsonl" for name in ("yesno", "choices", "stance", "stories")]
    found = (case for path in paths for case in of_file(path, langs))
    return [case._replace(by="their authors and two others", source="imitations") for case in found]


def of_file(path: Table, langs: Collection[str] = ()) -> list[Case]:
    """Read labelled replies: rows with `lang, prompt, response, reads, gold`.

    reads: a kind of `licences.SIDES`; a choice has `options`, and may have `shown`. gold: the
    label; of a choice the number of the option from 0, or empty. `labelled_by` says by whom. Rows
    with `sure` false are left out. Raises InputError, with the row, for unusable ones.
    """
    found = []
    problems = cells.Problems(path)
    for number, row in files.numbered_rows(path):
        sure = None
        with problems.at():
            sure = truth("sure", row.get("sure"), number)
        with problems.at(number):
            if sure is not False:
                found.append(_case(row, path.name))
    problems.tell()
    return [case for case in found if not langs or case.item.lang in langs]


def _case(row: dict[str, Any], source: str) -> Case:
    row = _imitated(row)
    for name in ("lang", "response", "gold"):
        if name not in row:
            raise InputError(f"no column {name!r}; columns: {', '.join(map(str, row))}")
    kind, prompt, reply, by = (
        cells.cell_text(row.get(name)) for name in ("reads", "prompt", "response", "labelled_by")
    )
    if kind not in licences.SIDES:
        raise registry.unknown("value of 'reads'", kind, list(licences.SIDES))
    gold = "" if row["gold"] is None else cells.cell_text(row["gold"]).strip()
    known = [*filter(None, licences.SIDES[kind]), *(["both"] if kind == "essay" else [])]
    if known and gold not in known:
        raise registry.unknown("value of 'gold'", gold, known)
    item = Item(packs.language_code(cells.cell_text(row["lang"])), "", prompt, reply)
    if kind in packs.READS:
        item = item._replace(reads=kind, when=row.get("when", ""))
    if kind == "choice":
        options, marks = listed_in(row)
        gold = gold.removesuffix(".0")  # of a column with empty cells
        at = whole_number(gold)
        if gold and (at is None or at >= len(options)):
            there = ", ".join(map(str, range(len(options))))
            raise InputError(f"gold {gold!r}: name an option, {there}, or none (an empty cell)")
        item = item._replace(options=options, marks=marks)
    return Case(kind, item, gold, by or source, source)


def _imitated(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of the imitations in the form of `of_file`; other rows as they are."""
    if "gold" in row:
        return row
    if "answer" in row and (probe := packs.load_pack().probes.get(row.get("probe", ""))):
        return row | {"gold": row["answer"], "reads": probe.reads, "when": probe.when}
    if "chosen" in row and "options" in row:
        marks = row.get("shown") or [""] * len(row["options"])
        lines = (f"{m}. {o}" if m else o for m, o in zip(marks, row["options"], strict=True))
        asked = "\n".join([row["context"], row["question"], *lines])
        return row | {"gold": row["chosen"], "reads": "choice", "prompt": asked}
    if "stance" in row:
        wording = packs.load_pack("essays").wordings[row["lang"]]["essay"]
        asked = wording.ask(row["statement"])
        return row | {"gold": row["stance"], "reads": "essay", "prompt": asked}
    return row | ({"gold": row["sentiment"], "reads": "story"} if "sentiment" in row else {})


# -- real replies


def real(langs: Collection[str] = (), note: Note = quiet, progress: Progress = quiet) -> list[Case]:
    """Fetch real labelled replies, as far as they are not in the cache.

    What cannot be fetched, or is no longer what was labelled, is left out with a caution.
    """
    path = registry.path("real.jsonl")
    sources = list(files.read_rows(path)) if path.is_file() else []
    found: list[Case] = []
    for number, source in enumerate(sources, 1):
        rows = [row for row in source["rows"] if not langs or row[0] in langs]
        if not rows:
            continue
        where = f"{source['repo']}@{source['commit'][:10]}"
        try:
            paths = [_fetched(source["repo"], source["commit"], name) for name in source["paths"]]
            texts = {sha(text): text for path in paths for text in texts_in(path)}
        except (OSError, InputError) as error:
            note(
                Caution(f"{where}: cannot be fetched ({error}); its {len(rows)} rows are left out")
            )
            continue
        lacking = 0
        for lang, reads, gold, by, prompt, reply in rows:
            if prompt in texts and reply in texts:
                asked = source["before"] + texts[prompt]
                item = Item(lang, "", asked, texts[reply], reads=reads)
                found.append(Case(reads, item, gold, by, where))
            else:
                lacking += 1
        if lacking:
            note(
                Caution(f"{where}: {lacking} of {len(rows)} texts are not those that were labelled")
            )
        progress("fetching", number, len(sources))
    return found


def _fetched(repo: str, commit: str, name: str) -> Path:
    """Return the copy of a file in the cache; fetch it if it is not there."""
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
    place = door.expanded(home) / "genprobe" / "real"
    path = place / f"{sha(f'{repo}@{commit}:{name}')[:16]}{Path(name).suffix}"
    if path.is_file():
        return path
    address = f"{RAW}{repo}/{commit}/{urllib.parse.quote(name)}"
    most = limit("text")
    with contextlib.closing(urllib.request.urlopen(address, timeout=_SECONDS)) as answer:
        if not answer.url.startswith(RAW):
            raise InputError(f"{address} leads to another address")
        data = answer.read(most + 1)
    if len(data) > most:
        raise exceeded(address, "text")
    with disk.writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    disk.replace_bytes(path, [data])
    return path


def sha(text: str) -> str:
    """Return the SHA-256 by which a text is known."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def texts_in(path: Path) -> Iterator[str]:
    """Yield every text in a JSON, JSONL, CSV or Parquet file."""
    stack: list[Any]
    if path.suffix == ".json":
        try:
            stack = [parsed(packs.read_text(path))]
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}: not JSON ({error})") from None
    else:
        stack = list(files.read_rows(path))
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            stack += value.values()
        elif isinstance(value, list | tuple):
            stack += value


def lines(found: Iterable[Measured]) -> Iterator[str]:
    """Yield a line for each language and kind of question, with those by who labelled below it."""
    for one in found:
        if one.by == licences.EVERYBODY:
            state = "" if one.holds else "; not enough for a licence"
            if one.holds and one.kind == "essay" and not one.tells:
                state = f"; under {100 * licences.TELLS:.0f} %, and so no rate of sides"
            yield f"{one.lang} {one.kind}: {one.told()}{state}"
        else:
            yield f"  labelled by {one.by}: {one.told()}"
