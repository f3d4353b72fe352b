"""Figures for papers: `draw` makes every figure that the runs allow.

One file a family of figures; `registry.module("figures", name)`. A file has `figures(data)`, which
yields a `Figure` for each one that the data allow. What is drawn are scores, of the same measures
and intervals as `genprobe score`: a figure shows nothing that its CSV does not say.
"""

from __future__ import annotations

import dataclasses
import io
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from genprobe.errors import RunError
from genprobe.files import disk
from genprobe.records import JSON, Score
from genprobe.render import formats, latex
from genprobe.resources import registry
from genprobe.tasks.pipeline import Note, quiet
from genprobe.text.display import clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

FORMS = ("svg", "pdf", "csv", "tex")


@dataclass(frozen=True)
class Figure:
    """A figure before it is drawn.

    name: of its files, and what it shows. scores: all that is drawn, and no more. plot: draws it.
    title: what it shows in a phrase, for a caption. across: the columns of `by` that head the
    columns of the table. more: further numbers of each score that are drawn, such as quartiles.
    """

    name: str
    title: str
    scores: Sequence[Score]
    plot: Callable[[], Canvas]
    across: tuple[str, ...] = ()
    more: Sequence[Mapping[str, JSON]] = field(default=())
    tests: bool = False  # of statistics of tests, which have p-values and no intervals


def found(
    folders: Sequence[str | Path],
    *,
    redact: bool = False,
    reviewed: str | Path | None = None,
    note: Note = quiet,
) -> list[Figure]:
    """Return the figures that these runs allow, by name.

    What a figure leaves out is told to `note`. reviewed: a table of `review import`, of which the
    corrected rates are a figure, too.

    redact: none by the entities that statements are about, which are words of the data.
    RunError and InputError for a run that cannot be read or counted.
    """
    from genprobe.report.figures._data import Data

    data = Data.of(folders, note, redact)
    if reviewed is not None:
        from genprobe.report import corrected, sources

        rates = corrected.of_review(sources.load(folders), Path(reviewed))
        data = dataclasses.replace(data, corrected=tuple(rates))
    figures: dict[str, Figure] = {}
    for name in registry.names("figures"):
        for figure in registry.module("figures", name).figures(data):
            # What tells two names apart may be in a script that file names here do without.
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
    redact: bool = False,
    reviewed: str | Path | None = None,
    note: Note = quiet,
) -> list[Path]:
    """Draw every figure that these runs allow into the folder `out`; the files, by name.

    Of each figure NAME.svg, NAME.pdf, NAME.csv (exactly what is drawn) and NAME.tex (a table of
    it, for booktabs). The same runs give the same bytes. Each file is whole or not there.
    RunError where nothing can be drawn, or a file not be written; else as `found`.
    """
    figures = found(folders, redact=redact, reviewed=reviewed, note=note)
    if not figures:
        raise RunError(
            f"{', '.join(map(str, folders))}: nothing to draw; there are figures of yesno and "
            "stories runs, and of logprob runs that have the scorer bias, choices, mixed pairs or "
            "checkpoints (docs/figures.md)"
        )
    folder = Path(out)
    with disk.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for figure in figures:
        bare = sum(s.value is not None and s.low is None for s in figure.scores)
        if bare and not figure.tests:
            note(f"{figure.name}: {bare} of {len(figure.scores)} points have no interval")
        for form, content in rendered(figure):
            path = folder / f"{figure.name}.{form}"
            disk.replace_bytes(path, [content])
            paths.append(path)
    return paths


def rendered(figure: Figure) -> Iterator[tuple[str, bytes]]:
    """Return the form and the bytes of each file of a figure, by `FORMS`."""
    from genprobe.report.figures import _plot

    with _plot.style():
        canvas = figure.plot()
        for form in FORMS[:2]:
            file = io.BytesIO()
            # No date and no version: the same figure is the same file.
            gone = ("Date", "Creator") if form == "svg" else ("CreationDate", "Producer", "Creator")
            title = {"Title": re.sub("[\ufffe\uffff]", "", clean(figure.title))}  # no XML
            canvas.savefig(file, format=form, metadata={**dict.fromkeys(gone), **title})
            yield form, file.getvalue()
    yield "csv", formats.table_csv(figure.scores, figure.more).encode()
    table = latex.latex(figure.scores, figure.title, figure.name, figure.across)
    yield "tex", table.encode()


def stem(*parts: JSON) -> str:
    """Return a name for a file from any words: lower case, letters, digits and hyphens."""
    words = [re.sub(r"[^a-z0-9]+", "-", str(part).lower()).strip("-") for part in parts if part]
    return "-".join(word for word in words if word)[:80]
