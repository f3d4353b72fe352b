"""Draw figures for papers: `draw` makes every figure that the runs allow.

Each file here is a family of figures (found by `registry.module("figures", name)`). Its function
`figures(data)` yields every `Figure` that the data allow. Figures show scores, with the metrics and
intervals of `genprobe score`; everything shown is also in the figure's CSV.
"""

from __future__ import annotations

import dataclasses
import io
import itertools
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from genprobe.analysis.again import differing_rows
from genprobe.errors import InputError, RunError
from genprobe.files import disk
from genprobe.records import JSON, Score
from genprobe.render import formats, latex
from genprobe.resources import registry
from genprobe.tasks.pipeline import Note, quiet
from genprobe.text.display import clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

FORMS = ("svg", "pdf", "csv", "tex")
_SEAL = re.compile(r"\|seal:([^|]+)")


@dataclass(frozen=True)
class Figure:
    """A figure before it is drawn.

    name: base name of its files, saying what it shows. title: a phrase for a caption. scores:
    exactly the scores that are drawn. plot: the function that draws it. across: the columns of the
    cells that become columns of the table. more: further numbers drawn for each score, such as
    quartiles.
    """

    name: str
    title: str
    scores: Sequence[Score]
    plot: Callable[[], Canvas]
    across: tuple[str, ...] = ()
    more: Sequence[Mapping[str, JSON]] = field(default=())
    tests: bool = False  # True for test statistics, which have p-values instead of intervals


def found(
    folders: Sequence[str | Path],
    *,
    redact: bool | str = False,
    reviewed: str | Path | None = None,
    note: Note = quiet,
) -> list[Figure]:
    """Return the figures that these runs allow, by name.

    note: called with a line about anything a figure leaves out. reviewed: a table of
    `review import`; its corrected rates become a figure. redact: omit figures by entity, since
    entity names are words of the data, and name bias types by a hash, as `report.build` does.

    Raises RunError or InputError for a run that cannot be read or counted.
    """
    from genprobe.report import sources
    from genprobe.report.figures._data import Data

    salt = sources.salt(redact)
    data = Data.of(folders, note, salt)
    if reviewed is not None:
        from genprobe.report import corrected

        rates = corrected.of_review(sources.load(folders, salt), Path(reviewed))
        data = dataclasses.replace(data, corrected=tuple(rates))
    figures: dict[str, Figure] = {}
    for name in registry.names("figures"):
        for figure in registry.module("figures", name).figures(data):
            # Two names may differ only in characters that file names leave out.
            names = itertools.chain(
                [figure.name], (f"{figure.name}-{n}" for n in itertools.count(2))
            )
            free = next(n for n in names if n not in figures)
            figures[free] = dataclasses.replace(figure, name=free)
    return [figures[name] for name in sorted(figures)]


def draw(
    folders: Sequence[str | Path],
    out: str | Path,
    *,
    redact: bool | str = False,
    reviewed: str | Path | None = None,
    note: Note = quiet,
) -> list[Path]:
    """Draw every figure that these runs allow into the folder `out`; return the files by name.

    Writes for each figure NAME.svg, NAME.pdf, NAME.csv (exactly what is drawn) and NAME.tex (a
    table for booktabs). The same runs give the same bytes, and no file is written in part.

    The other arguments are those of `found`. Raises RunError if nothing can be drawn or a file
    cannot be written, and the errors of `found`.
    """
    figures = found(folders, redact=redact, reviewed=reviewed, note=note)
    if not figures:
        raise RunError(
            f"{', '.join(map(str, folders))}: nothing to draw; there are figures of yesno and "
            "stories runs, and of logprob runs that have the scorer bias, choices, mixed pairs or "
            "checkpoints (docs/figures.md)"
        )
    for figure in figures:
        bare = sum(s.value is not None and s.low is None for s in figure.scores)
        if bare and not figure.tests:
            note(f"{figure.name}: {bare} of {len(figure.scores)} points have no interval")
    return written(figures, Path(out))


def written(figures: Iterable[Figure], folder: Path) -> list[Path]:
    """Write the files of figures into a folder, and return them. Raises RunError."""
    with disk.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for figure in figures:
        for form, content in rendered(figure):
            path = folder / f"{figure.name}.{form}"
            disk.replace_bytes(path, [content])
            paths.append(path)
    return paths


def differing(
    folders: Sequence[str | Path], drawn: Path, reviewed: str | Path | None = None
) -> tuple[int, list[str]]:
    """Compare the CSV files that `draw` made with the figures that these runs give now.

    drawn: the folder of the figures, which must not be redacted. Returns their number, and a line
    for each that differs. Raises InputError if there are none, and the errors of `found`.
    """
    again = {figure.name: figure for figure in found(folders, reviewed=reviewed)}
    stored = sorted(drawn.glob("*.csv"))
    if not stored:
        raise InputError(f"{drawn}: no figures; `genprobe report --figures` makes them, as CSV too")
    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="genprobe-verify-") as name:
        for path in stored:
            if path.stem not in again:
                lines.append(f"{path.name}: these runs give no such figure")
                continue
            figure, made = again[path.stem], Path(name) / path.name
            table = formats.table_csv(figure.scores, figure.more)
            disk.replace_bytes(made, [table.encode()])
            lines += differing_rows(path, made)
    return len(stored), lines


def rendered(figure: Figure) -> Iterator[tuple[str, bytes]]:
    """Return the bytes of each file of a figure, by file format (`FORMS`)."""
    from genprobe.report.figures import _plot

    sealed = dict.fromkeys(name for s in figure.scores for name in _SEAL.findall(s.signature))
    seals = f"seal {', '.join(sealed)}" if sealed else "unsealed"
    with _plot.style():
        canvas = figure.plot()
        for form in FORMS[:2]:
            file = io.BytesIO()
            # No date and no version: the same figure must give the same bytes.
            gone = ("Date", "Creator") if form == "svg" else ("CreationDate", "Producer", "Creator")
            title = {"Title": re.sub("[\ufffe\uffff]", "", clean(figure.title))}  # no XML
            about = {"Description" if form == "svg" else "Subject": seals}
            canvas.savefig(file, format=form, metadata={**dict.fromkeys(gone), **title, **about})
            yield form, file.getvalue()
    yield "csv", formats.table_csv(figure.scores, figure.more).encode()
    table = latex.latex(figure.scores, figure.title, figure.name, figure.across)
    yield "tex", table.encode()


def over_days(
    name: str, metric: str, curves: Mapping[str, Sequence[tuple[float, Score]]], axis: str
) -> Figure:
    """Make the figure of a measure over days: a curve of intervals for each part.

    curves: part -> its points, (day, score). axis: the title of the axis of days.
    """
    from genprobe.metrics import shown
    from genprobe.report.figures._plot import Scale, lines, looks

    about = shown(metric)
    share = about.scale == "share"
    unit = Scale(f"{about.title} (%)" if share else about.title, share, None)
    return Figure(
        name,
        f"{about.title}, over time",
        [score for points in curves.values() for _, score in points],
        lambda: lines(curves, Scale(axis, False, None), unit, looks(list(curves))),
    )


def stem(*parts: JSON) -> str:
    """Turn any words into a file name of lower-case letters, digits and hyphens."""
    words = [re.sub(r"[^a-z0-9]+", "-", str(part).lower()).strip("-") for part in parts if part]
    return "-".join(word for word in words if word)[:80]
