"""What is counted and compared: runs, tables of outcomes, and logs of other harnesses."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import glob
import math
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from genprobe import files, metrics, tasks
from genprobe.errors import Caution, InputError, RunError
from genprobe.files import door
from genprobe.files.cells import cell_text
from genprobe.files.rows import Rows, Table, any_of, sources_of
from genprobe.limits import parsed_list
from genprobe.logs import Log
from genprobe.records import canonical
from genprobe.render.grid import model_names
from genprobe.resources import packs, registry
from genprobe.runs.run import OTHERS, Run
from genprobe.runs.spec import LOG, WHO, both_signatures, file_signer
from genprobe.tasks.pipeline import Note, logged, quiet
from genprobe.tasks.pipeline.judge import judged_rows
from genprobe.text import many, natural, whole, whole_number
from genprobe.text.display import alike

if TYPE_CHECKING:
    import pandas as pd

# Columns of a table that say how its replies were drawn; two models must have the same.
_DRAWN = ("temperature", "top_p", "max_tokens", "system")
_SHOWN = 40  # characters of a prompt in a message


def is_run(source: Table) -> bool:
    """Tell whether something is the folder of a run."""
    return isinstance(source, Path) and door.expanded(str(source)).joinpath("run.json").exists()


def runs_of(given: object) -> list[Path]:
    """Return the folders of one run or several. Raises InputError for a table in memory."""
    found = _spread(any_of(given))
    for one in found:
        if isinstance(one, Rows):
            raise InputError(f"{one}: is no run; give runs, or their folders; `score` counts rows")
    return [one for one in found if isinstance(one, Path)]


def opened(given: object, note: Note = quiet) -> list[Table]:
    """Return runs and tables, one or several, as they can be counted.

    A log of a harness (`genprobe.logs`) becomes the rows that the judge `yesno` reads in it.
    """
    return [_read(source, note) for source in _spread(sources_of(given), note)]


_PAGES = (".md", ".html", ".pdf", ".svg", ".tex")  # what stands beside runs


def _spread(given: Sequence[Table], note: Note | None = None) -> list[Table]:
    """Replace a folder of runs by those in it, and a pattern such as `runs/*` by runs that fit.

    A shell has put all that is there in the place of a pattern: pages beside runs are left out, if
    there is somebody to tell it.
    """
    found: list[Table] = []
    beside = note is not None and any(map(is_run, given))
    for one in given:
        if note and beside and isinstance(one, Path) and one.suffix.lower() in _PAGES:
            note(Caution(f"{one}: is no run, and left out"))
            continue
        inside: list[str] = []
        if isinstance(one, Path) and not one.exists() and glob.has_magic(str(one)):
            fitting = Path(one.anchor).glob(str(one.relative_to(one.anchor)))
            inside = [str(path) for path in fitting if is_run(path)]
        elif isinstance(one, Path) and one.is_dir() and not is_run(one):
            inside = [str(path.parent) for path in one.glob("*/run.json")]
        found += map(Path, sorted(inside, key=natural)) if inside else [one]
    return found


def _read(source: Table, note: Note) -> Table:
    if isinstance(source, Rows) or is_run(source):
        return source
    try:
        log = Log(source)
    except InputError:
        return source  # whoever opens it as a run or as a table says what is wrong
    with log:
        if not log.harness:
            piped = str(source) == "-"
            return Rows([one.row for one in log.rows()], "-") if piped else source
        judge = registry.module("judges", "yesno").make()
        note(Caution(f"{source}: no judge has read these replies; now read by {judge.name}"))
        # What asks a question that nobody knows is told, and is no row of a table of answers.
        rows = [row for row in judged_rows(log, [judge], note=note) if row["lang"] and row["probe"]]
        return Rows(rows, str(source))


@contextlib.contextmanager
def as_runs(given: object, note: Note = quiet) -> Iterator[list[Path]]:
    """Give the folders of runs; tables of replies and logs become runs, which go at the end.

    Replies of a table that `genprobe judge` wrote keep its labels; others are read by the judges of
    the task. Raises InputError for a table without replies.
    """
    from genprobe.outcomes import counted

    sources = _spread(any_of(given), note)
    with tempfile.TemporaryDirectory(prefix="genprobe-") as made:

        def tell(line: str) -> None:
            if made not in line:
                note(line)

        folders: list[Path] = []
        for number, source in enumerate(sources, 1):
            if isinstance(source, Path) and (is_run(source) or not _is_table(source)):
                folders.append(source)
                continue
            with Log(source) as log:
                own_runs = logged.keep(log, Path(made, f"{number}"), tell)
                labels = _labels(log)
                for run in own_runs:
                    own = [n for n in tasks.of(run.spec).judges["free"] if n not in run.judges()]
                    if labels is not None:  # what its judges do not say, `score` does not count
                        own = [name for name in own if _says(labels, name)]
                    if own:
                        tasks.judge_run(run, own)
                    counted.counted(run, True)  # joined once; it is read from the folder then
                    folders.append(run.folder)
            if labels is not None:
                _check_same(source, labels, own_runs)
        yield folders


def _labels(log: Log) -> pd.DataFrame | None:
    """Return the rows of tables of replies with their answers, each with its model, else None.

    Their texts are not read (`files.frames`).
    """
    import pandas as pd

    from genprobe.files.frames import read_compact
    from genprobe.outcomes import counted

    parts = []
    for one, _ in () if log.harness else log.read:
        rows = read_compact(one.path, counted.texts() - {"text"}, answers=True)
        model = rows["model"] if "model" in rows else pd.Series(None, rows.index, dtype=object)
        own = model.map(lambda name, path=one.path: cell_text(name) or Path(str(path)).stem)
        parts.append(rows.assign(model=own))
    rows = pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0] if parts else None
    return rows if rows is not None and "answer" in rows else None


def _says(labels: pd.DataFrame, judge: str) -> bool:
    """Tell whether a table has what a judge writes."""
    from genprobe.outcomes import columns

    return judge in labels or any(column.name in labels for column in columns.filled(judge))


# The measures by which a table and its runs are compared.
_BY_LABELS = (
    *("yes", "no", "ambiguous", "refusal", "conflict", "wrong-language", "recognised", "endorsed"),
    "contrast-gap",
)


def _check_same(source: Table, labels: pd.DataFrame, runs: Sequence[Run]) -> None:
    """Raise InputError if a table of labels has other figures than the runs made of it.

    A run holds less than a table can: one reading of a reply, one revision, the labels of one
    judge. What a page would show must be what `score` counts, of each model.
    """
    import pandas as pd

    from genprobe.outcomes import counted, table

    where = f"{source}: a page of this table would not show what `genprobe score` counts"
    cure = "make a page of the run, or give the rows of one reading and revision with their replies"
    if "decode" in labels and set(labels["decode"].map(cell_text)) - {"free", ""}:
        raise InputError(f"{where}: replies of several readings (decode); {cure}")
    for model, rows in labels.groupby("model", sort=False):
        if "revision" in rows and rows["revision"].map(cell_text).nunique() > 1:
            raise InputError(f"{where}: several revisions of a model; {cure}")
        own = [counted.counted(run) for run in runs if run.spec.model == model]
        of = f" of {model}" if labels["model"].nunique() > 1 else ""
        shown = pd.concat(own, ignore_index=True) if len(own) > 1 else own[0]
        _compare(counted.compact(table.from_rows(rows)), shown, f"{where}{of}", cure)


def _compare(whole: pd.DataFrame, shown: pd.DataFrame, where: str, cure: str) -> None:
    """Raise InputError, with where and cure, if two tables of outcomes have other figures."""
    for name in _BY_LABELS:
        metric = metrics.find(name)
        if not metric.fits(whole):
            continue
        by = [column for column in ("lang", "probe") if column not in metric.never_by]
        of_table, of_runs = (
            {
                tuple(one.by.values()): (one.value, one.n)
                for one in metrics.score(outcomes, [name], by, str)
            }
            if metric.fits(outcomes)
            else {}
            for outcomes in (whole, shown)
        )
        for cell in of_table | of_runs:
            value, n = of_table.get(cell, (None, 0))
            there, count = of_runs.get(cell, (None, 0))
            same = value == there or (value and there and math.isclose(value, there))
            if n != count or not same:
                raise InputError(
                    f"{where}: {name} would be {_percent(there)} of {count}, and is "
                    f"{_percent(value)} of {n}; {cure}"
                )


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{100 * value:.1f} %"


def _is_table(source: Path) -> bool:
    """Tell whether something that is no run is named as a table or a log is."""
    log = source.is_dir() or glob.has_magic(str(source)) or str(source) == "-"
    return log or source.is_file()


def answered(
    source: Table, read: bool = False, texts: bool = True
) -> tuple[pd.DataFrame, str | None]:
    """Return the rows of a file with their answers, and the signature of their reader.

    read: if the file has replies without answers, the judge `yesno` reads them. texts: keep long
    texts; without them, a table of any size is held by columns (`files.frames`). The signature is
    that of the column `reader`, which `genprobe judge` writes; None if it is unknown.
    """
    import pandas as pd

    from genprobe.files.frames import read_compact
    from genprobe.outcomes import counted

    rows = files.read_frame(source) if texts else read_compact(source, counted.texts() - {"text"})
    if not read or "answer" in rows or "response" not in rows:
        return rows, reader_of(rows)
    judge = registry.module("judges", "yesno").make()
    judged = list(judged_rows(source, [judge]))
    return pd.DataFrame(judged, rows.index, dtype=object), judge.signature


def reader_of(rows: pd.DataFrame) -> str | None:
    """Return the signature of the only reader of these rows, None if it is unknown."""
    there = rows["reader"].unique() if "reader" in rows else ()
    readers = {one for one in there if isinstance(one, str) and one}
    return readers.pop() if len(readers) == 1 else None


def about(source: Table, error: InputError) -> InputError:
    """Return the error with the name of the source in front, if it does not contain it."""
    return error if str(error).startswith(f"{source}") else type(error)(f"{source}: {error}")


def signer(
    source: Table, run: Run | None, subset: str, given: Mapping[str, str]
) -> Callable[[str], str]:
    """Return a function from a metric to its signature over this source.

    given: judges of a file's labels.
    """
    if run:
        sign = run.signer()
    else:  # the file is read once; its labels are known by its hash, not by a judge
        sign = file_signer([source], given)
    return lambda name: sign(_metric_id(name) + subset)


def signed_by(signers: Sequence[Callable[[str], str]]) -> Callable[[str], str]:
    """Return a function from a metric to the signature of a number from all these sources."""
    return lambda metric: both_signatures(*(sign(metric) for sign in signers))


def _metric_id(name: str) -> str:
    """Return name and version of a metric, or a name that already has a version."""
    return name if "/" in name else metrics.find(name).id


@dataclasses.dataclass(frozen=True)
class Side:
    """One model of a comparison, with its outcomes: a run, or the model's rows of a table.

    name: what messages call it. who: its model and revision, empty if unknown. read: makes the
    outcomes. judges: name -> signature, of those that are known. run: None for a table.
    """

    name: str
    who: tuple[str, str]
    read: Callable[[], pd.DataFrame]
    sign: Callable[[str], str]
    judges: Mapping[str, str]
    run: Run | None = None

    @functools.cached_property
    def outcomes(self) -> pd.DataFrame:
        return self.read()

    @property
    def checkpoint(self) -> str:
        return self.run.spec.checkpoint if self.run else ""

    @property
    def drawn_otherwise(self) -> str:
        """Say whether the server drew the replies in its own way; "" if not, or unknown."""
        return self.run.spec.drawn_otherwise if self.run else ""

    @property
    def recorded(self) -> bool:
        """Return whether the replies were recorded; then its revision is that of a file."""
        return self.run is not None and self.run.spec.decode == ("recorded",)

    @property
    def short(self) -> str:
        """Return the name of the folder or file without what is before and after it."""
        return self.run.folder.name if self.run else Path(self.name).stem

    @property
    def content(self) -> tuple[str, ...]:
        """Return what only a copy of it has, too."""
        if self.run is None:
            return *self.who, self.sign("yes")
        paths = [self.run.folder / name for name in ("responses.jsonl", "logprobs.jsonl")]
        return self.run.spec.hash, *(packs.file_hash(path) for path in paths if path.is_file())

    @property
    def ranked(self) -> list[str]:
        """Return its main measures, the headline first."""
        if self.run is not None:
            return tasks.of(self.run.spec).table(self.run).ranked
        shown = [table.ranked for task in tasks.every() for table in task.tables]
        fit = (names for names in shown if metrics.find(names[0]).fits(self.outcomes))
        return next(fit, [])

    def need_judges(self) -> None:
        """Raise RunError if no judge has read the replies of a run."""
        if self.run and tasks.of(self.run.spec).judges and not self.judges:
            cure = "run `genprobe judge` on it first"
            raise RunError(f"{self.name}: no reply has been judged; {cure}")


def sides_of(given: object, note: Note = quiet, texts: bool = True) -> list[Side]:
    """Open the models of runs and tables, in their order; those of a table in its own order.

    texts: also read the texts of a run's outcomes. Raises RunError for a folder that is no run,
    InputError for a table that cannot be read.
    """
    found: list[Side] = []
    for source in opened(given, note):
        if isinstance(source, Rows) or (source.is_file() and not is_run(source)):
            found += _of_table(source, note)
        else:
            found.append(_of_run(Run.open(source), texts))
    return found


def one_side(given: object, name: str, note: Note = quiet) -> Side:
    """Open one model. name: what messages call it, if it is in memory."""
    several = sources_of(given)
    if len(several) != 1:
        raise InputError(f"{name}: give one run or table, not {len(several)}")
    found = sides_of(given, note)
    if len(found) != 1:
        models = ", ".join(one.who[0] for one in found)
        raise InputError(f"{name}: holds replies of several models ({models}); give those of one")
    return found[0]


def _of_run(run: Run, texts: bool) -> Side:
    from genprobe.outcomes import counted, table

    return Side(
        str(run.folder),
        run.spec.who,
        lambda: table.outcomes(run) if texts else counted.counted(run),
        signer(run.folder, run, "", {}),
        run.judges(),
        run,
    )


def _of_table(source: Table, note: Note) -> Iterator[Side]:
    """Yield the models of a table, in its order."""
    import pandas as pd

    from genprobe.outcomes import table

    rows, _ = answered(source)
    try:
        every = table.from_rows(rows)
        for line in table.oddities(rows, every):
            note(Caution(f"{source}: {line}"))
        if "answer" in every:  # the number of a row names no statement that another table has
            own = f"{source}, " + every["statement"]
            every["statement"] = every["statement"].mask(table.unnamed(rows), own)
        if "sample" in every:  # a number, whatever the file made of it
            read = [whole_number(c) if isinstance(c, str) else c for c in every["sample"]]
            told = pd.Series(read, every.index, dtype=object)
            every["sample"] = told.where(told.notna(), every["sample"])
        parts = list(_models(every))
    except InputError as error:
        raise about(source, error) from None
    for who, outcomes in parts:
        reader = reader_of(outcomes)
        judges = {"yesno": reader or "given"} if "answer" in outcomes else {}
        yield Side(
            f"{source}, {who[0]}" if len(parts) > 1 else str(source),
            who,
            functools.partial(_same, outcomes),
            signer(source, None, "", judges),
            {"yesno": reader} if reader else {},
        )


def _same(outcomes: pd.DataFrame) -> pd.DataFrame:
    return outcomes


def _models(outcomes: pd.DataFrame) -> Iterator[tuple[tuple[str, str], pd.DataFrame]]:
    """Yield the models of a table with their rows; revisions of one are different models."""
    columns = [name for name in WHO if name in outcomes]
    if "model" not in columns:
        yield ("", ""), outcomes
        return
    if nameless := int(outcomes["model"].isna().sum()):
        raise InputError(f"{many(nameless, 'row')} without a model, among rows that name one")
    for values, rows in outcomes.groupby(columns, sort=False, dropna=False):
        cells = ["" if one != one else str(one) for one in values]
        yield (cells[0], cells[-1] if len(cells) > 1 else ""), rows.reset_index(drop=True)


def names_of(sides: Sequence[Side]) -> list[str]:
    """Return a name for each: its model, or where there are several of it, its folder or file."""
    short = model_names(sides)
    names = [short[side.who] for side in sides]
    names = [
        name if name and names.count(name) == 1 else side.short
        for name, side in zip(names, sides, strict=True)
    ]
    return names if len(set(names)) == len(names) else [side.name for side in sides]


def need_alike(a: Side, b: Side, but: Collection[str] = WHO) -> Iterator[str]:
    """Refuse two models that were not asked alike; yield what must be known of their items.

    but: fields of the spec in which two runs may differ. Raises RunError.
    """
    if a.run and b.run:
        asked_alike(a.run, b.run, but)
        return
    _need_same_judges(a.name, a.judges, b.name, b.judges)
    for column in _DRAWN:
        if column in a.outcomes and column in b.outcomes:
            mine, theirs = ({*map(str, s.outcomes[column].dropna())} for s in (a, b))
            if mine and theirs and mine != theirs:
                told = " and ".join(", ".join(sorted(values)) for values in (mine, theirs))
                raise RunError(
                    f"{a.name} and {b.name} differ in more than the model ({column}: {told}); "
                    "ask both in the same way"
                )
    yield from _need_same_prompts(a, b)


def _need_same_prompts(a: Side, b: Side) -> Iterator[str]:
    """Yield how many items only one of two has. Raises RunError if one item has two prompts."""
    from genprobe.analysis.paired import SAME

    keys = [c for c in SAME if c in a.outcomes and c in b.outcomes]
    prompts = ["prompt"] if "prompt" in a.outcomes and "prompt" in b.outcomes else []
    if prompts and any("messages" in s.outcomes for s in (a, b)):  # with a system prompt, or turns
        one, other = (
            s.outcomes[keys].astype(str).assign(prompt=_asked(s.outcomes)) for s in (a, b)
        )
    else:
        one, other = (s.outcomes[[*keys, *prompts]].astype(str) for s in (a, b))
    both = one.merge(other, "outer", keys, suffixes=("_a", "_b"), indicator="__side")
    counts = both["__side"].value_counts()
    for side, which, beside in ((a, "left_only", b), (b, "right_only", a)):
        if n := int(counts[which]):
            yield f"{side.name}: {many(n, 'row')} of {len(side.outcomes)} not in {beside.name}"
    if not prompts or not counts["both"]:
        return
    both = both[both["__side"] == "both"]
    mine, theirs = (both[f"prompt_{side}"].map(lambda text: alike(whole(text))) for side in "ab")
    known = ~(mine.isin(_EMPTY) | theirs.isin(_EMPTY))
    differ = both[(mine != theirs) & known]
    if len(differ):
        first = differ.iloc[0]
        asked = " and ".join(repr(first[f"prompt_{side}"][-_SHOWN:]) for side in "ab")
        which = ", ".join(str(first[key]) for key in keys if key in ("lang", "probe", "statement"))
        raise RunError(
            f"{a.name} and {b.name} asked differently in {len(differ)} of {len(both)} rows, such "
            f"as {which}: {asked}; ask both in the same way"
        )


def _asked(outcomes: pd.DataFrame) -> list[str]:
    """Return each prompt with the other messages of its chat, such as a system prompt."""
    told = []
    for prompt, chat in outcomes.reindex(columns=["prompt", "messages"]).itertuples(index=False):
        if isinstance(chat, str):
            with contextlib.suppress(ValueError):
                chat = parsed_list(chat)
        chat = chat if isinstance(chat, Collection) and not isinstance(chat, str) else ()
        said = [one.get("content") for one in chat if isinstance(one, dict)]
        told.append("\n\n".join([str(prompt), *(str(one) for one in said if one != prompt)]))
    return told


_EMPTY = ("", "None", "nan", "<NA>")


def asked_alike(a: Run, b: Run, but: Collection[str] = WHO) -> None:
    """Refuse two runs that differ in fields other than `but`, or in the judge of the answers.

    Raises RunError.
    """
    if {tasks.of(a.spec).paradigm, tasks.of(b.spec).paradigm} == {"says", "prefers"}:
        raise RunError(
            f"{a.folder} and {b.folder} are of `{a.spec.command}` and `{b.spec.command}`; to "
            "compare what a model says with what it prefers, use --paradigms"
        )
    # Replies in two files were asked for elsewhere; the files' names say nothing of it.
    named = ("data",) if {a.spec.engine, b.spec.engine} == {LOG} else ()
    if apart := a.spec.differences(b.spec, (*but, *named)):
        cure = "ask both in the same way"
        if a.spec.model == b.spec.model and a.spec.statements != b.spec.statements:
            cure += ", or put pieces of one run together with `genprobe merge RUN RUN -o FOLDER`"
        raise RunError(
            f"{a.folder} and {b.folder} differ in more than the model ({'; '.join(apart)}); {cure}"
        )
    if named:
        _need_same_messages(a, b)
    _need_same_judges(a.folder, a.judges(), b.folder, b.judges())


def _need_same_messages(a: Run, b: Run) -> None:
    """Refuse two runs of logs in which one question was asked in different words.

    What was asked stands in the requests alone. A table without prompts does not say it.
    """
    asked: list[dict[tuple[str, ...], set[str]]] = [{}, {}]
    for run, found in zip((a, b), asked, strict=True):
        for one in run.requests():
            if said := [m for m in one.messages if m["content"]]:
                key = (one.statement, one.lang, one.probe, canonical(one.facets))
                found.setdefault(key, set()).add(canonical([_plain(m) for m in said]))
    both = asked[0].keys() & asked[1].keys()
    apart = sorted(key for key in both if asked[0][key] != asked[1][key])
    if apart or (all(asked) and not both):
        such = f", such as {', '.join(apart[0][:3])}" if apart else ""
        raise RunError(
            f"{a.folder} and {b.folder} differ in more than the model (prompts, or system prompts, "
            f"of {len(apart) or 'all'} of {many(len(both or asked[0]), 'question')}{such}); "
            "ask both in the same way"
        )


def _plain(message: Mapping[str, str]) -> list[str]:
    return [message["role"], alike(message["content"])]


def _need_same_judges(
    a: object, mine: Mapping[str, str], b: object, theirs: Mapping[str, str]
) -> None:
    for name in mine.keys() & theirs.keys():
        # People's labels of a sample, and a harness's, belong to one run and are not compared.
        if mine[name] != theirs[name] and not name.startswith(OTHERS):
            raise RunError(
                f"{a} and {b} were read by different judges {name!r}; have one read both "
                "(`genprobe judge`)"
            )
