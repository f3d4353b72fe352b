"""Make the sections of a report: choose which figures are shown where, for every kind of run."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from genprobe import metrics, tasks
from genprobe.analysis import (
    compare,
    components,
    flips,
    league,
    paradigm_runs,
    significance,
    splits,
)
from genprobe.analysis.paired import fits
from genprobe.errors import GenprobeError, InputError
from genprobe.metrics import wordings
from genprobe.metrics.negrate import FEWEST, not_told
from genprobe.records import Score
from genprobe.render import findings
from genprobe.render.grid import titled
from genprobe.report.changes import Changes, of_runs
from genprobe.report.corrected import TITLES
from genprobe.report.replies import FACETS
from genprobe.report.sources import Source, first_reading, hashed
from genprobe.report.tables import HEADS, Table, table, unit
from genprobe.report.words import what
from genprobe.resources.packs import language_name
from genprobe.text.display import clean, label

MOST = 1000  # most templates that are listed one by one
GROUPS = 60  # no table by a column with more values than this

# The main table of each kind of run.
_TABLES = {one.kind: one for task in tasks.every() for one in task.tables}
_REPLIES = ("yes", "no", "ambiguous", "refusal", "conflict", "wrong-language")
_SPLIT = ("lang", "probe", "bias_type", "domain", "role")  # by which something may stand out
_READ = ("yes", "no", "ambiguous", "recognised", "endorsed", "affirmed")


@dataclass
class Templates:
    """The templates of a run with their stories. more: how many templates are not listed.

    name: of the run. rows: one per template.
    """

    name: str
    rows: list[Votes]
    more: int


@dataclass(frozen=True)
class Votes:
    """A template with one mark per story: `negative`, `other`, or why the story does not count."""

    name: str  # the text of the template; a hash in a redacted page
    lang: str
    domain: str
    marks: list[str]
    verdict: str

    @property
    def told(self) -> list[tuple[str, int]]:
        """Return how many stories have each mark: (the mark in words, number)."""
        names = {"negative": "negative", "other": "not negative"}
        counts = Counter(names.get(mark, f"left out ({mark})") for mark in self.marks)
        return sorted(counts.items(), reverse=True)


@dataclass
class Section:
    """A heading and its content. more: further sentences of the lead. open: shown unfolded."""

    id: str
    title: str
    lead: str = ""
    tables: list[Table] = field(default_factory=list)
    templates: list[Templates] = field(default_factory=list)
    changes: list[Changes] = field(default_factory=list)
    open: bool = False
    guarded: bool = False  # it contains statements; page.html reads it
    alone: bool = False  # it is shown even if it has only a lead
    more: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.tables or self.templates or self.changes or self.alone)


class Sections:
    """The maker of all sections about some runs.

    series: name of a run -> number of its marker. kinds: kind of table -> its runs. Once made:
    differences between runs (both: of the rates that a review of both corrects), splits within
    each, and why runs were not compared, by kind.
    """

    def __init__(self, sources: Sequence[Source], redact: bool, review: Path | None = None) -> None:
        self.sources, self.redact, self.review = sources, redact, review
        self.both: list[Score] = []
        self.series: dict[str, int] = {}
        self.differences: list[Score] = []
        self.splits: list[Score] = []
        self.why: dict[str, list[str]] = {}
        for source in sources:
            self.series.setdefault(source.name, len(self.series))
        self.kinds = {
            kind: found
            for kind in _TABLES
            if (found := [source for source in sources if source.kind == kind])
        }

    # -- the main figures

    def made(self) -> tuple[list[Section], list[Section]]:
        """Return the main sections, and the non-empty sections of details."""
        # These read the runs again, so they are made before the other tables take memory.
        compared = [
            *self._compared(),
            *self._outstanding(),
            *self._retested(),
            *self._paradigms(),
        ]
        main = list(self._main())
        behind = [
            *self._answers(),
            *self._stories(),
            *self._essays(),
            *self._preferences(),
            *self._others(),
            *self._leagues(),
            *compared,
            *self._changes(),
        ]
        return main, [section for section in behind if section]

    def _main(self) -> Iterator[Section]:
        """Make one section for each kind of run, with its main table."""
        for kind, sources in self.kinds.items():
            names, across = _TABLES[kind].main, _TABLES[kind].across
            first = self._first(kind)
            caption = _TABLES[kind].title
            if _several(sources, first):
                caption += f", by {_heads(sources)[first].lower()}"
            made = self._tables(sources, names, first, across, caption=caption)
            if wide := self._wide(sources):
                made.insert(0, wide)
            lead = _TABLES[kind].lead if made else "No figure could be computed."
            yield Section(kind, _TABLES[kind].title, lead, made, open=True)
            yield from self._wordings(sources)

    def _wide(self, sources: Sequence[Source]) -> Table | None:
        """Make a table of the headline measure, models by language; None for one of either."""
        name = sources[0].table.ranked[0]
        if len(sources) < 2 or not _several(sources, "lang"):
            return None
        found = [s for one in sources for s in one.score([name], ["lang"], first_reading(one))]
        found.sort(key=lambda score: language_name(str(score.by["lang"])))
        caption = f"{titled(name)}, in %: models by language"
        made = table(found, ["run"], ["lang"], caption=caption, series=self.series)
        if made is None or unit(name) != "%":
            return None
        for column in made.columns:
            column.title, column.across, column.axis, column.unit = column.across, "", None, ""
        return dataclasses.replace(made, wide=True, link=self._link(made, sources))

    def _link(self, made: Table, sources: Sequence[Source]) -> str | None:
        """Return what leads from a table's figures to replies: nothing where no row is a reply."""
        for column in made.columns:
            of = wordings.base(column.metric) or column.metric
            if any(
                "measures" in s.outcomes and (s.outcomes["measures"] == of).any() for s in sources
            ):
                column.at = "&".join(filter(None, [column.at, f"measures={of}"]))
        known = all(s.task.rows.rows is None for s in sources) and set(made.keys) <= FACETS.keys()
        return made.link if known else None

    def corrected(self, scores: Sequence[Score]) -> Section:
        """Make the section of the rates that are corrected by reviewers' answers.

        scores: those of `corrected.of_review`. The corrected rate comes first, then the rate as
        measured.
        """
        made = [
            found
            for rate in dict.fromkeys(s.by["rate"] for s in scores)
            if (
                found := table(
                    [s for s in scores if s.by["rate"] == rate],
                    ["lang", "probe", "domain", "run"],
                    caption=f"Rate: {clean(str(rate))}",
                    series=self.series,
                    titles=TITLES,
                    heads=HEADS,
                )
            )
        ]
        lead = (
            "People read a sample of the replies. Report these rates: they are corrected by the "
            "people's answers, and their intervals join what statements, the judge and the "
            "reviewers' disagreements leave open. Beside them "
            "are the uncorrected rates, which all other tables and figures of this page show."
        )
        if compared := table(
            self.both, ["of", "b"], caption="Corrected rates compared", series=self.series,
            titles={"holm-p": "p (Holm)"}, heads=HEADS,
        ):  # fmt: skip
            made.append(compared)
        return Section("reviewed", "Rates corrected by people", lead, made, open=True)

    def _wordings(self, sources: Sequence[Source]) -> Iterator[Section]:
        """Make the section about wordings, for runs that asked in several wordings."""
        sources = [s for s in sources if "wording" in s.outcomes and _several([s], "wording")]
        if not sources:
            return
        each = ("recognised", "endorsed", "negative-stories", "argues-for", "accuracy")
        suffixes = ("these-wordings", "over-wordings", "next-wording")
        over = tuple(f"{name}-{suffix}" for name in each for suffix in suffixes)
        made = [
            *self._tables(sources, over, "lang", caption="Over wordings, by language"),
            *self._tables(sources, each, "wording", caption="Each wording by itself"),
        ]
        parts: list[Score] = []
        for source in sources:
            for metric in each:
                with contextlib.suppress(GenprobeError):  # no variance to divide into components
                    rows = source.outcomes
                    parts += source.named(components.of_outcomes(rows, metric, [], [], source.sign))
        if parts and (found := table(
            parts, ["effect", "run"], ["of"], caption="What an answer depends on",
            series=self.series, whole=[], heads=HEADS,
        )):  # fmt: skip
            made.append(found)
        lead = (
            "Each question was asked in several wordings. Of these wordings the mean has an "
            "interval for other statements. The mean over wordings like these has one for other "
            "wordings, too, if any of those asked could have been any other: the more they "
            "differ, the wider it is. One further wording lies in the third interval, if the "
            "logits of wordings vary normally. The intervals of one wording hold for that wording "
            "alone. The last table shows how much of the variance of one answer is due to the "
            "statement, the wording and the question."
        )
        if made:
            kind = sources[0].kind
            name = "wordings" if kind == "answers" else f"{kind}-wordings"
            title = f"Effect of the wording: {_TABLES[kind].title.lower()}"
            yield Section(name, title, lead, made, open=True)

    def _leagues(self) -> Iterator[Section]:
        """Make a section for each kind of run that sets enough languages in order."""
        lead = (
            "Of many measured shares the highest is high by chance, too. So each is shown again, "
            "shrunk towards those of the other languages by as much as these are alike, with the "
            "chance that no other is truly higher. One is named only where that chance is over "
            "95 % and unclear replies cannot account for it."
        )
        for kind, sources in self.kinds.items():
            scores: dict[str, list[Score]] = {}
            told: dict[str, list[str]] = {}
            for source, name in itertools.product(sources, _TABLES[kind].main):
                for caption, some, line in self._league(source, name, _TABLES[kind].across):
                    scores.setdefault(caption, []).extend(some)
                    told.setdefault(caption, []).append(line)
            made = []
            for caption, some in scores.items():
                if one := table(some, ["lang", "run"], caption=caption, series=self.series):
                    one.notes[:] = told[caption]
                    made.append(one)
            title = f"Languages in order: {_TABLES[kind].title.lower()}"
            yield Section(f"{kind}-league", title, lead, made)

    def _league(
        self, source: Source, name: str, across: Sequence[str]
    ) -> Iterator[tuple[str, list[Score], str]]:
        """Yield the league tables of a measure of a run: caption, figures, which is the highest."""
        rows = source.outcomes
        if source.read_in:
            rows = rows[rows["decode"] == source.read_in[0]]
        measure = metrics.find(name)
        if not measure.fits(rows) or not measure.pairable:
            return
        by = [column for column in across if column in rows and column not in measure.never_by]
        with contextlib.suppress(InputError):  # it is no share, or there are too few languages
            for scores, line in league.league(rows, name, "lang", by, source.sign):
                cell = [str(v) for c, v in scores[0].by.items() if c not in ("of", "lang")]
                caption = clean(", ".join([f"{name} by language", *cell]))
                yield caption, source.named(scores), f"{source.name}: {line.rpartition(': ')[2]}"

    def _first(self, kind: str) -> str:
        """Choose the column that makes the rows of a kind's main table."""
        *others, last = _TABLES[kind].rows
        return next((name for name in others if _several(self.kinds[kind], name)), last)

    def _tables(
        self,
        sources: Sequence[Source],
        names: Sequence[str],
        first: str,
        across: Sequence[str] = (),
        more: Sequence[str] = (),
        *,
        caption: str,
        split: str = "",
        every_reading: bool = False,
    ) -> list[Table]:
        """Make tables of metrics, with a row for each value of `first`, of `more`, and each run.

        The rows over all values of `first` stand on top. names: the metrics. across: columns by
        which a metric is split into table columns. split: a column that gets a table for each of
        its values. every_reading: make a row for each reading; otherwise only the first reading is
        used. Returns an empty list if no metric fits the runs.
        """
        by = [c for c in (split, *more, *across) if c]
        # Include the language and the question in every cell, even if there is only one.
        by += [c for c in ("lang", "probe") if c not in (first, *by) and _one(sources, c)]
        cells: list[Score] = []
        whole: list[Score] = []
        for source in sources:
            reading = "" if every_reading else next(iter(source.read_in), "")
            cells += source.score(names, [first, *by], reading)
            whole += source.score(names, by, reading)
        if len({s.by.get(first) for s in cells}) < 2:
            whole = []
        made = []
        for value in dict.fromkeys(s.by.get(split) for s in cells):
            of, pooled = (
                [s for s in scores if s.by.get(split) == value] for scores in (cells, whole)
            )
            found = table(
                of,
                [first, *more, "run", *(["decode"] if every_reading else [])],
                across,
                caption=caption.format(clean(str(value))),
                series=self.series,
                whole=pooled,
                heads=_heads(sources),
            )
            if found:
                found.link = self._link(found, sources)
                made.append(found)
        return made

    # -- the details

    def _answers(self) -> Iterator[Section]:
        if not (sources := self.kinds.get("answers", [])):
            return
        yield Section(
            "replies-by-language",
            "What was answered, by language and question",
            "Yes, no and ambiguous are shares of all replies and add up to 100 %. What a yes "
            "means depends on the question.",
            self._tables(
                sources, _REPLIES, "lang", caption="Answers to the {} question", split="probe"
            ),
        )
        yield from self._split("answers", "bias_type", "By bias type")
        yield from self._split("answers", "domain", "By domain")
        yield from self._split(
            "answers",
            "role",
            "Stereotypes and their contrasts",
            "A contrast is the same sentence about another group. If a model endorses both alike, "
            "its answers do not depend on the stereotype.",
        )
        yield Section(
            "consistency",
            "Are the answers consistent?",
            "Acquiescence: how often a question and its reverse get the same answer word. "
            "Contrast gap: how much more often the stereotype is endorsed than its contrasts.",
            self._tables(sources, ("acquiescence", "contrast-gap"), "lang", caption="Consistency"),
        )
        yield self._readings([s for s in sources if len(s.read_in) > 1])

    def _split(
        self, kind: str, column: str, title: str, lead: str = "", more: Sequence[str] = ()
    ) -> Iterator[Section]:
        """Make the section with the main figures of a kind, split by a column.

        Yields nothing if that column has only one value, or more than `GROUPS`.
        """
        sources = self.kinds.get(kind, [])
        if sources and _several(sources, column):
            names, across = _TABLES[kind].main, _TABLES[kind].across
            made = self._tables(sources, names, column, across, more, caption=title)
            yield Section(f"{kind}-by-{column}".replace("_", "-"), title, lead, made)

    def _readings(self, sources: Sequence[Source]) -> Section:
        caption = "The {} question, read in several ways"
        tables = [
            *self._tables(
                sources, _READ, "lang", caption=caption, split="probe", every_reading=True
            ),
            *self._tables(
                *(sources, ("disagreement",), "lang", ("readings",)),
                caption="Where two readings of the {} question disagree",
                split="probe",
                every_reading=True,
            ),
            *self._tables(
                *(sources, ("p-yes", "outside"), "lang", ("probe",)),
                caption="Probabilities of the answer words",
                every_reading=True,
            ),
        ]
        for source in sources:
            made = table(
                source.score(["readings"], []),
                source.read_in,
                caption=f"Combinations of answers of {source.name}",
            )
            tables += [made] if made else []
        return Section(
            "readings",
            "The readings compared",
            "The same questions, answered by a free reply, by a forced choice between the answer "
            "words, and by the probabilities of these words. Where they disagree, a figure "
            "depends on the reading.",
            tables,
        )

    def _stories(self) -> Iterator[Section]:
        if not (sources := self.kinds.get("stories", [])):
            return
        yield from self._split("stories", "lang", "Stories by language", more=("domain", "probe"))
        yield from self._split("stories", "probe", "Stories by wording", more=("domain",))
        yield from self._split("stories", "subdomain", "Stories by subdomain")
        yield Section(
            "stories-checked",
            "How reliable the labels of templates are",
            "Which stories could be scored, how clear the majority of a template is, and how many "
            "stories a template would need for a reliable label.",
            self._tables(
                sources,
                ("usable", "vote-margin", "seeds"),
                self._first("stories"),
                caption="Stories checked",
            ),
        )
        yield Section(
            "templates",
            "Template by template",
            "A mark for each story: negative, not negative, or not counted. The majority of the "
            f"stories that count gives the label; with fewer than {FEWEST} there is none.",
            templates=[self._templates(s) for s in sources if "sentiment" in s.outcomes],
            guarded=not self.redact,
        )

    def _templates(self, source: Source) -> Templates:
        rows, texts = source.outcomes, source.texts()
        why = not_told(rows).where(lambda reason: reason != "", None)
        mark = why.fillna(
            rows["sentiment"].astype(object).map(lambda s: s if s == "negative" else "other")
        )
        keys = [c for c in ("lang", "probe", "statement") if c in rows]
        several = "probe" in rows and rows["probe"].nunique() > 1  # wordings
        found = []
        groups = rows.assign(__mark=mark).groupby(keys, sort=False, observed=True)
        for _, group in itertools.islice(groups, MOST):
            marks = [clean(str(m)) for m in group.sort_values("sample")["__mark"]]
            first = group.iloc[0]
            item = (str(first["lang"]), str(first["statement"]))
            name = hashed(source.salt, *item) if self.redact else clean(texts.get(item, item[1]))
            if several:
                name += f" ({clean(str(first['probe']))})"
            domain = label(_scalar(first.get("domain")))
            found.append(Votes(name, str(first["lang"]), domain, marks, verdict(marks)))
        return Templates(source.name, found, max(0, groups.ngroups - MOST))

    def _essays(self) -> Iterator[Section]:
        yield from self._split("essays", "lang", "Stances by language", more=("probe",))
        yield from self._split("essays", "bias_type", "Stances by bias type")
        yield from self._split("essays", "role", "Stances on stereotypes and their contrasts")

    def _preferences(self) -> Iterator[Section]:
        for kind in ("pairs", "choices"):
            for column in ("bias_type", "domain", "subdomain"):
                title = f"{_TABLES[kind].title}, by {column.replace('_', ' ')}"
                yield from self._split(kind, column, title)

    def _others(self) -> Iterator[Section]:
        """Make a section for each kind, with the measures that no other table of the kind has."""
        shown = {
            "answers": {*_REPLIES, "disagreement", "readings", "p-yes", "outside"},
            "stories": {"usable", "vote-margin", "seeds"},
        }
        for kind, sources in self.kinds.items():
            main, across = _TABLES[kind].main, _TABLES[kind].across
            names = [n for n in metrics.default() if n not in {*main, *shown.get(kind, ())}]
            title = f"{_TABLES[kind].title}: other measures"
            across = ("probe",) if kind == "essays" else () if kind == "stories" else across
            first = "lang" if kind == "essays" else self._first(kind)
            made = self._tables(sources, names, first, across, caption=title)
            yield Section(f"{kind}-other", title, "", made)

    def _paired(self) -> dict[str, dict[str, list[Score]]]:
        """Compare each run of a kind with the first: kind -> name of the other run -> scores.

        p-values are corrected for all comparisons of the page. Fills `differences` and `why`.
        """
        found: dict[tuple[str, str], list[Score]] = {}
        for kind, (one, *others) in self.kinds.items():
            for other in others:
                try:
                    found[kind, other.name] = _paired(one, other, _apart(kind))
                except GenprobeError as error:
                    why = what(error, self.sources, self.redact)
                    line = f"{one.name} and {other.name} cannot be compared item by item: {why}"
                    self.why.setdefault(kind, []).append(line)
                    continue
                if self.review is None:
                    continue
                with contextlib.suppress(GenprobeError):  # the review is not of both
                    found["", f"{kind} {other.name}"] = _paired(one, other, [], (), self.review)
        every = significance.corrected(itertools.chain.from_iterable(found.values()))
        self.differences += every
        whose = {id(score): key for key, scores in found.items() for score in scores}
        split: dict[str, dict[str, list[Score]]] = {kind: {} for kind in ("", *self.kinds)}
        kind, name = "", ""
        for score in every:  # a corrected p-value follows the one that it corrects
            kind, name = whose.get(id(score), (kind, name))
            split[kind].setdefault(name, []).append(score)
        self.both = [*itertools.chain(*split[""].values())]
        return split

    def _compared(self) -> Iterator[Section]:
        """Compare each run of a kind with the first run of that kind, item by item."""
        paired = self._paired()
        for kind, sources in self.kinds.items():
            one, found = sources[0], paired[kind]
            lines = [f"{line}." for line in self.why.get(kind, [])]
            for other in sources[1:]:
                lines += _changed(one, other) if other.name in found else []
            tables = [
                made
                for other in sources[1:]
                if other.name in found
                for made in self._pair(kind, one, other, found[other.name])
            ]
            lead = (
                "The models are compared on the same items. The difference is the second model's "
                "figure minus the first's, with an interval over statements; p is McNemar's where "
                "a statement has one answer (n: items that are a hit for only one of the two), "
                "else that of the swap test. Holm's is this p corrected for all n comparisons of "
                "models on this page: report this one."
            )
            title = f"{_TABLES[kind].title}: models compared"
            yield Section(
                f"{kind}-compared", title, lead if tables else "", tables, more=lines,
                alone=bool(lines),
            )  # fmt: skip

    def _outstanding(self) -> Iterator[Section]:
        """Compare each language, question and kind of statement of a run with all others.

        Fills `splits`.
        """
        parts: list[Score] = []
        for source in self.sources:
            rows = source.first
            for name in source.table.ranked:
                parts += source.named(splits.splits(rows, name, _SPLIT, source.sign))
        self.splits = significance.corrected(parts)
        out = [d for d in findings.differences(self.splits) if d.reach]
        cells = [d.difference.by for d in out]
        shown = [s for s in self.splits if s.by in cells and s.metric != "interval-p"]
        titles = {"a": "the other", "b": "this", "holm-p": "p (Holm)"}
        made = table(
            shown,
            ["between", "b", "a", "of", "run"],
            caption="One value of a column against all others",
            series=self.series,
            titles=titles,
            heads=HEADS | {"between": "Column", "b": "Value", "a": "Against"},
        )
        lead = (
            "Each language, question and kind of statement was compared with all others of the "
            "same run, of the units that count for each. Those that surely differ are shown; "
            "Holm's p is corrected for all n comparisons, those that are not shown included."
        )
        yield Section("stands-out", "What stands out", lead, [made] if made else [])

    def _changes(self) -> Iterator[Section]:
        """Show the answers of each run that differ from the first run's, with both replies."""
        if self.redact:
            return
        sources = self.kinds.get("answers", [])
        found = [change for other in sources[1:] for change in of_runs(sources[0], other)]
        lead = (
            "Questions to which both runs gave a clear answer, but not the same one. If replies "
            "are sampled, some answers change by chance: the comparison of the models says how "
            "many."
        )
        yield Section("answers-changed", "Answers that changed", lead, changes=found, guarded=True)

    def _pair(
        self, kind: str, one: Source, other: Source, found: Sequence[Score]
    ) -> Iterator[Table]:
        """Make the tables that compare two runs.

        The first has the figures that can be paired, over all items. The second has the differences
        by language (for stories: by domain).
        """
        apart = _apart(kind)
        who = f"{other.name} against {one.name}"
        titles = {"a": one.name, "b": other.name, "mcnemar-p": "McNemar's p", "swap-p": "p (swaps)"}
        titles["holm-p"] = "p (Holm)"
        if made := table(found, ["of", *apart], caption=f"{who}, on the same items", titles=titles):
            yield made
        first = "domain" if kind == "stories" else "lang"
        names = [
            name
            for name in _TABLES[kind].main
            if fits(metrics.find(name), [first]) and any(s.by["of"] == name and s.n for s in found)
        ]
        across = ["probe"] if kind == "answers" else apart
        if not names:
            return
        apart = [first, *across]
        try:
            paired = _paired(one, other, apart, names)
        except InputError:
            return  # in no cell does a unit count
        made = table(
            [s for s in paired if s.metric == "difference"],
            [first],
            ["of", *across],
            caption=f"{who}, by {HEADS[first].lower()}",
        )
        if made and len(made.rows) > 1:
            yield made

    def _paradigms(self) -> Iterator[Section]:
        """Compare what models say with what they prefer, if there are runs of both."""
        said, preferred = (self.kinds.get(kind, []) for kind in ("answers", "pairs"))
        both = {s.run.spec.who for s in said} & {s.run.spec.who for s in preferred}
        if not said or not preferred:
            return
        title = "What it says and what it prefers"
        if not both:
            lead = "No model has both a yes/no run and a log-probability run of the same revision."
            yield Section("paradigms", title, lead, alone=True)
            return
        folders = [s.run.folder for s in (*said, *preferred) if s.run.spec.who in both]
        tables = []
        try:
            for by in (["model"], ["lang"]):
                found = paradigm_runs.paradigms(folders, by=by)
                where = "all languages" if by == ["model"] else "by language"
                for names, part in _PARADIGMS.items():
                    made = table(
                        [s for s in found if s.metric in names],
                        ["lang", "model", "decode", "scorer"],
                        caption=f"{part}: {where}",
                    )
                    tables += [made] if made else []
        except GenprobeError as error:
            lead = f"Not compared: {what(error, self.sources, self.redact)}."
            yield Section("paradigms", title, lead, alone=True)
            return
        lead = (
            "The same items, asked about and scored by log-probability. says: mean endorsement; "
            "prefers: share of items whose stereotype is likelier than its contrast; "
            "no-but-prefers: denied when asked, but preferred."
        )
        yield Section("paradigms", title, lead, tables)

    def _retested(self) -> Iterator[Section]:
        """Show how far runs of one model, or the samples of one run, agree."""
        for kind, sources in self.kinds.items():
            found: list[Score] = []
            for who in dict.fromkeys(source.run.spec.who for source in sources):
                mine = [source for source in sources if source.run.spec.who == who]
                if len(mine) == 1 and not _several(mine, "sample"):
                    continue
                first, *others = (source.run.folder for source in mine)
                for name in (*_TABLES[kind].main, "negative-stories"):
                    # Some measures are no mean over units, and some runs asked nothing twice.
                    with contextlib.suppress(GenprobeError):
                        scores = compare.compare(first, others, test="retest", metrics=name)
                        found += [
                            dataclasses.replace(s, by={"model": mine[0].name, **s.by})
                            for s in scores
                        ]
            unique = list({(s.metric, *s.by.items()): s for s in found}.values())
            made = table(
                unique, ["of", "model", "times"], caption=f"{_TABLES[kind].title}, asked again"
            )
            lead = (
                "The same questions, asked again of the same model, in several runs or in the "
                "samples of one run. Reliability is that of a single measurement: 1 is perfect "
                "agreement, 0 is agreement by chance."
            )
            title = f"{_TABLES[kind].title}: test and retest"
            yield Section(f"{kind}-retest", title, lead, [made] if made else [])


# Measures that compare what is said with what is preferred -> the caption of their table.
_PARADIGMS = {
    ("says", "prefers", "spearman", "point-biserial"): "Saying and preferring",
    ("no-but-prefers", "yes-and-prefers", "yes-but-not", "no-and-not"): "Items, two by two",
    ("models-spearman", "models-kendall"): "Models ranked by saying and by preferring",
}


def verdict(marks: Sequence[str]) -> str:
    """Return the label of a template by its stories' marks: `negative`, `not negative`, `no label`.

    There is no label if fewer than `FEWEST` stories count.
    """
    counted = [mark for mark in marks if mark in ("negative", "other")]
    if len(counted) < FEWEST:
        return "no label"
    return "negative" if counted.count("negative") * 2 > len(counted) else "not negative"


def _apart(kind: str) -> list[str]:
    """List the columns by which comparisons of two runs of a kind are always split."""
    return ["scorer"] if kind in ("pairs", "choices") else []


def _paired(
    one: Source,
    other: Source,
    by: Sequence[str],
    names: Sequence[str] = (),
    review: Path | None = None,
) -> list[Score]:
    """Compare two runs and name them as on the page; p-values are not corrected yet.

    review: compare the rates that it corrects.
    """
    found = compare.compare(one.run.folder, other.run.folder, metrics=names, by=by, reviewed=review)
    return [
        dataclasses.replace(score, by={**score.by, "a": one.name, "b": other.name})
        for score in found
        if score.metric != "holm-p"
    ]


def _heads(sources: Sequence[Source]) -> Mapping[str, str]:
    """Return column of the cells -> heading, for tables of runs of one kind."""
    return HEADS | {"probe": sources[0].asked}


def _one(sources: Sequence[Source], column: str) -> bool:
    """Tell whether each run has only one value of a column."""
    return all(c.outcomes[column].nunique() == 1 for c in sources if column in c.outcomes)


def _several(sources: Sequence[Source], column: str) -> bool:
    """Tell whether a column has at least two values in these runs, and at most `GROUPS`."""
    values: set[Any] = set()
    for source in sources:
        if column not in source.outcomes:
            return False
        values |= set(source.outcomes[column].dropna())
    return 1 < len(values) <= GROUPS


def _changed(one: Source, other: Source) -> Iterator[str]:
    """Say in one sentence for each measure how many answers differ between two runs.

    Answers can differ even if the averages are equal.
    """
    for measure in ("endorsed", "recognised"):
        # Runs may have no yes/no answers, or no clear ones.
        with contextlib.suppress(GenprobeError, KeyError):
            found = flips.flips(one.outcomes, other.outcomes, measure)
            ends = f"{100 * found.low:.1f} to {100 * found.high:.1f}"
            yield (
                f"{measure.capitalize()}, from {one.name} to {other.name}: "
                f"{found.up + found.down + found.lost + found.found} of {found.n} answers changed "
                f"({100 * found.share:.1f} %, {ends}), {found.up} up, {found.down} down, "
                f"{found.lost} no longer clear, {found.found} newly clear."
            )
            if found.beyond is None or found.by_itself is None:
                yield "How many change by chance is unknown."
                continue
            low, high = (100 * end for end in found.beyond)
            yield (
                f"By chance {100 * found.by_itself:.1f} % change, beyond that "
                f"{100 * (found.share - found.by_itself):+.1f} points ({low:+.1f} to {high:+.1f})."
            )


def _scalar(value: Any) -> Any:
    return None if value is None or value != value else value
