"""Open the runs of a report, join each into its table of outcomes, and name them."""

from __future__ import annotations

import dataclasses
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from genprobe import metrics, tasks
from genprobe.errors import InputError
from genprobe.outcomes import counted, table
from genprobe.records import Score, digest
from genprobe.render.grid import model_names
from genprobe.resources import packs, registry
from genprobe.runs.run import OTHERS, Run
from genprobe.runs.usage import Used, usage
from genprobe.tasks import Table, Task
from genprobe.text import whole
from genprobe.text.display import alike, clean, short_name

if TYPE_CHECKING:
    import pandas as pd


def salt(redact: bool | str) -> str:
    """Return the salt of the names in a redacted page; "" if nothing is redacted.

    redact: a text is the salt. It is drawn anew for each export, so that the names tell nothing to
    somebody who guesses what they stand for, and nothing links two exports.
    """
    return redact if isinstance(redact, str) else secrets.token_hex(16) if redact else ""


def hashed(salt: str, *parts: str) -> str:
    """Return eight hex digits that stand for something in a redacted page."""
    return digest([salt, *parts], 8)


def without_types(rows: pd.DataFrame, salt: str) -> pd.DataFrame:
    """Replace the bias types of a table, which are words of the data, by hashes."""
    if not salt or "bias_type" not in rows:
        return rows
    column = rows["bias_type"].astype(object)
    return rows.assign(
        bias_type=column.map(lambda one: f"type {hashed(salt, str(one))}", na_action="ignore")
    )


def without_folders(signature: str) -> str:
    """Leave of each path in a signature only its last part."""
    parts = signature.split("|")
    kept = ("metric:", "server:")
    return "|".join(p if p.startswith(kept) else _FOLDERS.sub("", p) for p in parts)


_FOLDERS = re.compile(r"[^:{},+=]*[/\\]")


@dataclass(frozen=True)
class Source:
    """A run of the report.

    name: its name on the page, unique among the runs of its command. salt: of a redacted page.
    """

    name: str
    run: Run
    salt: str = ""

    @cached_property
    def outcomes(self) -> pd.DataFrame:
        """Return the table of outcomes without its texts, read or joined on first use.

        Raises InputError, with the folder of the run, if it cannot be joined.
        """
        return self._told(counted.counted)

    def with_texts(self, *names: str, every: int = 1) -> pd.DataFrame:
        """Return the outcomes with these texts, joined anew; with all, once, if none is named.

        every: keep one of so many rows (`counted.compact_of`). Raises as `outcomes`.
        """
        if names:
            return self._told(lambda run: counted.compact_of(run, names, every))
        if every not in self._sampled:
            all_of = tuple(counted.texts())
            self._sampled[every] = self._told(lambda run: counted.compact_of(run, all_of, every))
        return self._sampled[every]

    @cached_property
    def _sampled(self) -> dict[int, pd.DataFrame]:
        return {}

    def whole(self) -> pd.DataFrame:
        """Return the table of outcomes with all texts, joined anew. Raises as `outcomes`."""
        return self._told(table.outcomes)

    def texts(self) -> dict[tuple[str, str], str]:
        """Return the text of each statement, by its language and id in the outcomes."""
        every = self.run.statements()
        return {(one.lang, alike(whole(one.id))): whole(one.text) for one in every}

    def _told(self, joined: Callable[[Run], pd.DataFrame]) -> pd.DataFrame:
        try:
            return without_types(joined(self.run), self.salt)
        except InputError as error:
            raise InputError(f"{self.run.folder}: {error}") from None

    @cached_property
    def task(self) -> Task:
        """Return the task (instrument) that made the run."""
        return tasks.of(self.run.spec)

    @cached_property
    def table(self) -> Table:
        """Return the declaration of how the run is shown."""
        return self.task.table(self.run)

    @property
    def kind(self) -> str:
        """Return the kind of the run's main table."""
        return self.table.kind

    @property
    def asked(self) -> str:
        """Return what a probe of the run is called, such as `Question`."""
        return self.task.probe.capitalize().replace("Probe", "Question")

    @property
    def title(self) -> str:
        """Return the name of the run with its command, since runs can share a name."""
        return f"{self.name}, {clean(self.run.spec.command)}"

    @cached_property
    def judges(self) -> dict[str, str]:
        """Return judge -> signature, without labels by others, which are used only on request."""
        return {k: v for k, v in self.run.judges().items() if not k.startswith(OTHERS)}

    @cached_property
    def read_in(self) -> list[str]:
        """Return the readings of the run's answers, in the order of `DECODES`."""
        if "decode" not in self.outcomes:
            return []
        column = self.outcomes["decode"]
        return [str(d) for d in column.cat.categories if (column == d).any()]

    @property
    def first(self) -> pd.DataFrame:
        """Return the outcomes of the first reading alone."""
        rows = self.outcomes
        return rows[rows["decode"] == self.read_in[0]] if self.read_in else rows

    def score(self, names: Sequence[str], by: Sequence[str], reading: str = "") -> list[Score]:
        """Compute the metrics that fit this run, by those columns of `by` that it has.

        reading: if the run has this reading, use only its rows. Each cell names the run and the
        reading of its answers.
        """
        rows = self.outcomes
        if reading and reading in self.read_in:
            rows = rows[rows["decode"] == reading]
        columns = [c for c in by if c in rows]
        scores = []
        for name in names:
            metric = metrics.find(name)
            if not metric.fits(rows) or set(columns) & set(metric.never_by):
                continue
            told = bool(self.read_in) and "decode" not in (*columns, *metric.never_by)
            cells = ["decode", *columns] if told else columns
            scores += metrics.score(rows, [name], cells, self._sign)
        return self.named(scores)

    def named(self, scores: Iterable[Score]) -> list[Score]:
        """Return scores whose cells begin with the name of the run."""
        return [dataclasses.replace(s, by={"run": self.name, **s.by}) for s in scores]

    def sign(self, made: str) -> str:
        """Return the signature of a figure of this run.

        made: metric, version and method.
        """
        return self._signer(made)

    @cached_property
    def _signer(self) -> Callable[[str], str]:
        return self.run.signer()

    def _sign(self, metric: str) -> str:
        return self.sign(metrics.find(metric).id)

    @property
    def languages(self) -> list[str]:
        """Return the codes of the run's languages, in the order of their English names."""
        return sorted({str(c) for c in self.outcomes["lang"].dropna()}, key=packs.language_name)

    @property
    def statements(self) -> int:
        """Count the different items that were asked about."""
        column = "item" if "item" in self.outcomes else "statement"
        return int(self.outcomes[column].nunique())

    @property
    def status(self) -> Counter[str]:
        """Count the planned requests: answered, failed, missing."""
        if self.task.rows.rows is None:
            without = self.outcomes["left_out"].astype(object)
            return Counter(without.where(metrics.unanswered(self.outcomes), "answered").tolist())
        # A table of log-probabilities has a row per pair, not per request.
        planned = sum(1 for _ in self.run.requests())
        answered, failed = len(set(self.run.answered())), self._failed.total()
        return Counter(answered=answered, failed=failed, missing=planned - answered - failed)

    @cached_property
    def _failed(self) -> Counter[str]:
        answered = set(self.run.answered())
        failed = {f.request: f.kind for f in self.run.failures() if f.request not in answered}
        return Counter(failed.values())

    @property
    def failures(self) -> dict[str, int]:
        """Count the requests that failed, by kind of failure, the most frequent first."""
        return {clean(kind): count for kind, count in self._failed.most_common()}

    @cached_property
    def used(self) -> Used:
        """Return tokens and times of the replies, and the models that the server named in them."""
        return usage(self.run)

    @property
    def when(self) -> str:
        """Return when the replies came, as the end of a sentence: one day, or first and last."""
        first, last = self.used.first[:10], self.used.last[:10]
        if not first:
            return "; when they came is not recorded"  # a file's own time may be that of a copy
        return f", on {first}" if first == last else f", from {first} to {last}"


def load(folders: Sequence[str | Path], salt: str = "") -> list[Source]:
    """Open the runs, each once, sorted by kind and training step.

    salt: of a redacted page. Raises RunError if a folder is not a run.
    """
    each = {Path(folder).resolve(): Path(folder) for folder in folders}
    runs = [Run.open(folder) for folder in each.values()]
    found = [Source(name, run, salt) for name, run in zip(_names(runs), runs, strict=True)]
    return sorted(found, key=lambda source: (source.table.place, source.run.spec.order))


def _names(runs: Sequence[Run]) -> list[str]:
    """Return the short name of each run's model.

    If several runs have the same command and model, the names also contain their folders.
    """
    models = model_names(run.spec for run in runs)
    short = [models[run.spec.who] for run in runs]
    keys = [(name, run.spec.command) for name, run in zip(short, runs, strict=True)]
    named = [
        name if keys.count(key) == 1 else f"{name} ({short_name(run.folder.name)})"
        for name, key, run in zip(short, keys, runs, strict=True)
    ]
    # Folders in different places can have the same name: number them.
    pairs = [(name, run.spec.command) for name, run in zip(named, runs, strict=True)]
    return [
        name if pairs.count(pair) == 1 else f"{name} {at}"
        for at, (name, pair) in enumerate(zip(named, pairs, strict=True), 1)
    ]


def first_reading(source: Source) -> str:
    return next(iter(source.read_in), "")


def languages(runs: Sequence[Source]) -> list[tuple[str, str, str]]:
    """List the languages of the runs that genprobe knows: English name, code, native name."""
    codes = sorted({code for run in runs for code in run.languages}, key=packs.language_name)
    known = set(registry.names("languages"))
    return [(packs.language_name(c), c, packs.load_language(c).native) for c in codes if c in known]


def direction(code: str) -> str:
    """Return `ltr` or `rtl`, or `auto` for a language that genprobe does not know."""
    try:
        return packs.load_language(code).direction
    except InputError:
        return "auto"
