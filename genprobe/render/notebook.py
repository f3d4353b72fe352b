"""The class `Run` for Python and notebooks: a run folder, its table, its scores, its display."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genprobe.render import formats
from genprobe.render.scores import Scores
from genprobe.runs import run
from genprobe.text.display import clean

if TYPE_CHECKING:
    import pandas as pd


class Run(run.Run):
    """A run folder.

    `Run.start` begins a new run, and `Run.open` reads an existing one. Close it, or use `with`.
    """

    def __repr__(self) -> str:
        langs = " ".join(self.spec.languages)
        return clean(f"<Run {self.folder}: {self.spec.command}, {self.spec.model}, {langs}>")

    def _repr_html_(self) -> str:
        spec = self.spec
        asked, answered = self.counts()
        facts = {
            "model": f"{spec.model} ({spec.shown if spec.checkpoint else spec.revision[:12]})",
            "engine": f"{spec.engine} {spec.engine_version}",
            "statements": f"{spec.data}, in {', '.join(spec.languages)}",
            "asked": f"{', '.join(spec.probes)}; {', '.join(spec.decode)}",
            "answered": f"{answered} of {asked} requests",
            "read by": ", ".join(self.judges()) or "nobody yet",
        }
        return formats.html_facts(f"{self.folder}: {spec.command}", facts)

    def outcomes(self) -> pd.DataFrame:
        """Build the table that scores are computed from, with one row per planned request."""
        from genprobe.outcomes import table

        return table.outcomes(self)

    def scores(self) -> Scores:
        """Read the scores that were saved. Raises RunError if there are none."""
        return Scores(super().scores())
