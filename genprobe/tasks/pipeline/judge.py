"""Judge the replies of a run, or of a file."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from genprobe import files, logs, text
from genprobe.datasets import frames
from genprobe.errors import Caution, InputError
from genprobe.files import bodies, cells
from genprobe.files.rows import Rows, Table
from genprobe.judges import Item, Judge, Verdict, asked, make, seen, verdicts, where
from genprobe.limits import parsed
from genprobe.linguistics import stems, thoughts
from genprobe.records import Judgment, LogProb, Request, canonical
from genprobe.resources import packs
from genprobe.runs.run import Run
from genprobe.tasks.pipeline import Note, Progress, quiet
from genprobe.tasks.pipeline.gold import Gold
from genprobe.text import many
from genprobe.text.display import clean


def judge(
    run: Run,
    judges: Iterable[Judge],
    progress: Callable[[str], None] | None = None,
) -> dict[str, int]:
    """Judge the replies of a run. Returns judge name -> number of judgments.

    Judgments are written in the order of the plan, so that a run that was interrupted and resumed
    has the same files, byte for byte, as one that was not. `progress` is called with the judge's
    name after each.
    """
    judges = list(judges)
    # Items for several judges are made once, unless they are too many to keep in memory.
    kept = list(items_of(run)) if len(judges) > 1 and run.small else None
    counts = {}
    for judge in judges:
        found = judgments_of(judge, kept or items_of(run), progress)
        counts[judge.name] = run.write_judgments(judge.name, judge.signature, found, judge.reads)
    return counts


def kinds_of(run: Run, judge: str) -> dict[str, str]:
    """Return request -> the kind that a judge gave its reply, or its label if it gives no kinds.

    Raises InputError if it has not judged the run.
    """
    if judge not in run.judges():
        raise InputError(
            f"{run.folder}: the kind of its replies is unknown; run `genprobe judge {run.folder} "
            f"--judge {judge}` first"
        )
    return {j.request: str(j.fields.get("kind", j.label)) for j in run.judgments(judge)}


def judgments_of(
    judge: Judge,
    items: Iterable[tuple[Request, Item]],
    progress: Callable[[str], None] | None = None,
) -> Iterator[Judgment]:
    """Yield the judgments of the items that a judge reads, in their order.

    Raises InputError if it reads answers with options, and a question has none.
    """
    wants = "options" in judge.needs

    def own() -> Iterator[tuple[tuple[str, Item], Item]]:
        for request, item in items:
            if request.decode in judge.reads:
                if wants and not item.options:
                    raise InputError(
                        f"the judge {judge.name!r} reads questions with options, and "
                        f"{request.id} ({request.probe}) has none; see `genprobe list judges`"
                    )
                yield (request.id, item), item

    for (request, item), verdict in verdicts(judge, own()):
        yield Judgment(
            request=request,
            judge=judge.name,
            label=verdict.label,
            score=verdict.score,
            rule=verdict.rule,
            evidence=verdict.evidence,
            fields={k: v for k, v in (verdict.fields | where(item)).items() if v is not None},
        )
        if progress:
            progress(judge.name)


def items_of(run: Run) -> Iterator[tuple[Request, Item]]:
    """Yield each answered request with the item that a judge reads."""
    for request, answer in run.exchanges():
        prompt = asked(request)
        item = Item(
            packs.first_of(request.lang),
            request.probe,
            prompt,
            "",
            options=listed(request),
            marks=frames.shown(request),
        )
        if isinstance(answer, LogProb):
            yield request, item._replace(continuations=answer.continuations)
        else:
            found = seen(request.lang, request.probe, prompt, answer)
            if item.options:
                found = found._replace(options=item.options, marks=item.marks)
            if probe := run.probes.get(request.probe):
                found = found._replace(reads=probe.reads, when=probe.when)
            yield request, found


def listed(request: Request) -> tuple[str, ...]:
    """Return the options of a choice in the order of the list; of several forms, the last."""
    return tuple(texts[-1] for texts in request.options.values())


def judge_file(
    path: str | Path | Rows | logs.Log,
    judges: str | Judge | Sequence[Judge | str] = (),
    out: str | Path | None = None,
    progress: Progress = quiet,
    note: Note = quiet,
    only: Sequence[str] = (),
    gold: Gold | None = None,
) -> dict[str, dict[str, int]]:
    """Judge the replies of a table or a log into a file. Returns judge name -> label -> count.

    The file is a log of another harness (`genprobe.logs`), or a table: JSONL, CSV, Parquet, XLSX.
    Rows are written in the same order, with the judges' columns after their own; an input column
    with the name of a new column is kept as `<name>_data`. If `response` is null, the new columns
    are null, and the row is counted as `no reply`; so too, as `not recognised`, if neither the row
    nor a pack tells what its prompt asks. If it is a server's answer to a batch request (OpenAI,
    vLLM), its content is read, with a note; another object, or a list, is an error. Memory does not
    grow with the file.

    path: a file, a folder, a pattern, `-` for standard input, or rows in memory. judges: objects or
    names, `yesno` if empty. out: a file, whose suffix gives the format; it is written completely or
    not at all; None means stdout, as JSONL. only: judge only rows with one of these values in the
    column `kind`; the new columns of other rows are null and not counted. gold: compares the first
    judge with people's labels, or with another reader's. Raises InputError, with all rows that
    cannot be judged.
    """
    judges = make(judges)
    counts: dict[str, dict[str, int]] = {judge.name: Counter() for judge in judges}
    progress("reading", 0, 0)
    with path if isinstance(path, logs.Log) else logs.Log(path) as log:
        rows = judged_rows(log, judges, counts, progress, note, only, gold)
        files.write_rows(out, rows)
    return counts


def judged_rows(
    source: str | Path | Rows | logs.Log,
    judges: Sequence[Judge],
    counts: dict[str, dict[str, int]] | None = None,
    progress: Progress = quiet,
    note: Note = quiet,
    only: Sequence[str] = (),
    gold: Gold | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table or log with each judge's columns, as `judge_file` writes them.

    counts: judge name -> label -> count, to which rows are added. gold: counts the first judge's
    agreement with others' labels.
    """
    if not isinstance(source, logs.Log):
        source = logs.Log(source)
    if source.told:
        note(source.told)
    counts = counts if counts is not None else {judge.name: Counter() for judge in judges}
    stances = any("probe" in judge.needs for judge in judges)
    asked: list[bool] = []  # of the first rows that are read as stances: are they questions?
    problems = cells.Problems(source.name)
    done, read_any = 0, False
    for part in _parts(opened(source, problems, note)):
        if only and "kind" not in part[0].row:
            raise InputError(
                f"{source.name}: has no column 'kind', by which a second reader's rows are chosen; "
                f"run `genprobe judge {source.name} -o FILE` first, and name that file"
            )
        read = [
            one
            for one in part
            if (not only or one.row.get("kind") in only) and not _unasked(one, judges)
        ]
        verdicts_of = dict(zip(map(id, read), _together(read, judges, problems), strict=True))
        if stances and len(asked) < _LOOKED_AT:
            asked += [_asks(o.row) for o in read if o.row.get("prompt") and not o.row.get("reads")]
        for one in part if not problems else ():
            if id(one) in verdicts_of:
                columns = _columns(one.row, judges, verdicts_of[id(one)], counts)
                if gold is not None:
                    place = one.where.removeprefix(f"{source.name}, ")
                    with problems.at(one.where):
                        gold.add(place, one.row, columns[judges[0].column], columns.get("kind"))
            else:
                columns = _unread(judges)
                for judge in judges if not only else ():
                    counts[judge.name]["not recognised"] += 1
            yield _kept(one.row, columns) | columns
        done += len(part)
        read_any = read_any or bool(read)
        progress("reading", done, 0)
    problems.tell()
    tell_unknown(source, read_any, note)
    if 2 * sum(asked) > len(asked):
        note(
            Caution(
                f"{source.name}: caution: {sum(asked)} of {len(asked)} prompts look like plain "
                "questions, and the replies are read as stances on a statement; if they are "
                "questions, give the rows the column 'reads' with the value question"
            )
        )


def _unasked(one: logs.Found, judges: Sequence[Judge]) -> bool:
    """Tell whether a row is left out since nobody knows what its prompt asks."""
    lacking = {n for judge in judges for n in judge.needs if n in ("lang", "probe")}
    if one.row.get("reads"):
        lacking.discard("probe")
    return (
        one.unknown and "response" in one.row and any(one.row.get(name) is None for name in lacking)
    )


def tell_unknown(log: logs.Log, read: bool, note: Note) -> None:
    """Note how many prompts were recognised, and name those that were not, the most usual first.

    read: whether any reply was. Raises InputError if not.
    """
    if log.known:
        note(f"{log.name}: {many(log.known, 'question')} recognised by the words of the packs")
    if log.earlier:
        note(
            Caution(
                f"{log.name}: {many(log.earlier, 'earlier answer')} in the chats not read, only "
                "the last of each; if they are no examples that you gave, make a row of each"
            )
        )
    for (column, said, found), count in log.against.most_common(3):
        rows = f"{many(count, 'row')} with {column} {clean(said)[:40]!r}"
        what = f"ask {found!r} in the words of a pack"
        note(Caution(f"{log.name}: {rows}: the prompts {what}; the column is believed"))
    if unknown := log.unknown.total():
        first = "; ".join(
            f"{' '.join(text.split())!r} ({n})" for text, n in log.unknown.most_common(3)
        )
        what = "prompts are not recognised" if unknown > 1 else "prompt is not recognised"
        more = " and others" if len(log.unknown) > 3 else ""
        ways = f"{', '.join(packs.READS[:-1])} or {packs.READS[-1]}"
        cure = f"the columns 'lang' and 'probe' (or 'reads': {ways}) would say what they ask"
        cure += "; of a choice, 'options', read by `genprobe judge` with --judge choice"
        if not read:
            raise InputError(f"{log.name}: {unknown} {what}: {first}{more}; {cure}")
        note(Caution(f"{log.name}: {unknown} {what}, and left out: {first}{more}; {cure}"))


_LOOKED_AT = 1000  # rows whose prompts are looked at, and characters at their end
_ASKS = re.compile(r"[?？؟][\W_]*\Z")
_STANCES = stems.FOR | stems.AGAINST | stems.FOR_ME | stems.AGAINST_ME | stems.STEREOTYPE


def _asks(row: dict[str, Any]) -> bool:
    """Tell whether the prompt of a row looks like a plain question.

    It ends as a question, without a word of agreement or of stereotypes. Of the real prompts in
    docs/reading.md that is so of 366 of 383 questions and 2 of 276 stances.
    """
    prompt = cells.cell_text(row["prompt"])[-_LOOKED_AT:]
    if not _ASKS.search(prompt):
        return False
    language = packs.load_language(packs.language_code(cells.cell_text(row.get("lang"))))
    words = text.tokens(text.replace(text.normalise(prompt), language.fold))
    found = stems.grammar(language.code).hits(words, 0, len(words))
    return not stems.bits_of(found) & _STANCES


def opened(log: logs.Log, problems: cells.Problems, note: Note = quiet) -> Iterator[logs.Found]:
    """Yield the rows of a log or table; a server's answer to a batch request is unpacked.

    problems: gets the rows whose response is neither a text nor such an answer. Raises InputError
    if two files of a harness give one question two replies of the same sample number.
    """
    for older, later in log.again:
        note(
            Caution(
                f"{log.name}: {older.path} is left out: {later.path} asks the same of the same "
                "model again, and a rerun is no further sample; name one file to read it"
            )
        )
    told = False
    several = len(log.read) > 1 and log.harness
    replied: dict[int, tuple[Table, str]] = {}
    again = 0
    for one in log.rows():
        reply = one.row.get("response")
        if several and isinstance(reply, str):
            sample = one.row.get("sample")
            asked_of = (one.row.get(name) for name in ("model", "prompt", "messages"))
            key, place = hash(canonical([*asked_of, sample])), (one.path, one.where)
            path, where_first = replied.setdefault(key, place)
            if path != one.path and sample is not None:
                raise InputError(
                    f"{log.name}: {where_first} and {one.where} are replies to the same question, "
                    f"both with the sample number {sample}; name one of the files"
                )
            again += path != one.path
        if isinstance(reply, str) and reply.lstrip().startswith('{"status_code"'):
            with contextlib.suppress(ValueError):
                reply = parsed(reply)
        if isinstance(reply, list) and len(reply) == 1 and isinstance(reply[0], str):
            one = one._replace(row=one.row | {"response": reply[0]})
        elif isinstance(reply, dict | list):
            with problems.at(one.where):
                one = one._replace(row=one.row | _of_batch(reply))
                if not told:
                    what = "responses are a server's answers; their content is read"
                    note(Caution(f"{log.name}: {what}"))
                told = True
        yield one
    if again:
        note(
            Caution(
                f"{log.name}: {many(again, 'reply')} of one file to what another file asks of the "
                "same model, too: counted as further samples; if they are reruns, name one file"
            )
        )


def _of_batch(reply: Any) -> dict[str, Any]:
    """Return reply, thought and finish of a chat completion or of an answer to a batch request.

    The reply is None if the request failed. Raises InputError for any other object.
    """
    body = reply
    if isinstance(reply, dict) and "status_code" in reply:
        body = reply.get("body")
        if reply["status_code"] != 200:
            return {"response": None}
    with contextlib.suppress(TypeError, LookupError, AttributeError):
        said = bodies.said(body)
        if len(body["choices"]) > 1:
            n = len(body["choices"])
            raise InputError(f"'response' holds {n} replies; make a row of each")
        apart = {
            "reasoning": said.reasoning,
            "reasoning_from": said.reasoning_from,
            "finish": said.finish,
        }
        return {"response": said.text or ""} | {k: v for k, v in apart.items() if v}
    what = "a list" if isinstance(reply, list) else "an object"
    raise InputError(f"'response' is {what}, not a text; put the text of the reply there")


_TOGETHER = 512  # rows that are read, judged and written at a time


def _parts(rows: Iterable[logs.Found]) -> Iterator[list[logs.Found]]:
    """Cut rows into parts; consecutive rows with the same prompt stay together."""
    part: list[logs.Found] = []
    for one in rows:
        prompt = one.row.get("prompt")
        same = part and prompt and part[-1].row.get("prompt") == prompt
        if len(part) >= _TOGETHER * (2 if same else 1):
            yield part
            part = []
        part.append(one)
    if part:
        yield part


def _together(
    part: Sequence[logs.Found], judges: Sequence[Judge], problems: cells.Problems
) -> list[tuple[tuple[Item, Verdict], ...]]:
    """Judge some rows at once. Returns each row's items and verdicts, in the order of the judges.

    problems: gets the rows that cannot be judged. If there are any, all verdicts are empty, as
    nothing is written then.
    """
    found = []
    for judge in judges:
        items = []
        for one in part:
            with problems.at(one.where):
                items.append((one.where, item_of(one.row, judge)))
        if problems:
            continue
        if hasattr(judge, "many"):
            try:
                several = [verdict for _, verdict in verdicts(judge, items)]
                found.append([(item, one) for (_, item), one in zip(items, several, strict=True)])
                continue
            except InputError:  # judged one by one below, so that the message names the row
                pass
        one_by_one = []
        for place, item in items:
            with problems.at(place):
                one_by_one.append((item, judge(item)))
        found.append(one_by_one)
    return [()] * len(part) if problems else list(zip(*found, strict=True))


def _columns(
    row: dict[str, Any],
    judges: Sequence[Judge],
    found: Sequence[tuple[Item, Verdict]],
    counts: dict[str, dict[str, int]],
) -> dict[str, Any]:
    """Make the judges' columns of a row. All rows have the same ones, null without a reply."""
    columns: dict[str, Any] = {}
    for judge, (item, verdict) in zip(judges, found, strict=True):
        # The columns of the first judge have plain names; those of others begin with the judge's.
        own = f"{judge.name}_" if columns else ""
        columns[judge.column] = verdict.label
        for name, value in verdict.fields.items():
            columns[name if name not in columns else f"{judge.name}_{name}"] = value
        if judge.name == "yesno" and "thought" not in columns:
            columns["thought"] = item.parted.thought
            columns["thought_state"] = item.parted.state
        columns[f"{own}rule"] = verdict.rule
        columns[f"{own}evidence"] = verdict.evidence
        columns[f"{own}reader"] = judge.signature
        counts[judge.name]["no reply" if row["response"] is None else verdict.label] += 1
    return columns if row["response"] is not None else dict.fromkeys(columns)


_BLANK = Item("en", "agreement", "", "", options=("A", "B"))


def _unread(judges: Sequence[Any]) -> dict[str, Any]:
    """Make the judges' columns of a row that is not judged: all null."""
    blank = [
        (_BLANK, judge.blank if hasattr(judge, "blank") else judge(_BLANK)) for judge in judges
    ]
    return _columns({"response": None}, judges, blank, {judge.name: Counter() for judge in judges})


def _kept(row: dict[str, Any], ours: Collection[str]) -> dict[str, Any]:
    """Rename the input's columns that have the name of a new column, so that none is lost."""
    kept = {}
    for name, value in row.items():
        if name in ours:
            name += "_data"
            while name in row or name in ours:
                name += "_data"
        kept[name] = value
    return kept


def _lacks(row: dict[str, Any], judge: str, lacking: Sequence[str]) -> str:
    """Describe which columns a judge needs and a row lacks."""
    either = {"probe": f"'probe' (or 'reads': {', '.join(packs.READS[:-1])} or {packs.READS[-1]})"}
    needed = " and ".join(either.get(name, f"{name!r}") for name in lacking)
    parts = [f"the judge {judge!r} needs {needed}"]
    parts += [f"{name!r} is empty here" for name in lacking if name in row]
    if absent := [name for name in lacking if name not in row]:
        there = ", ".join(str(name) for name, value in row.items() if value is not None)
        parts.append(f"columns: {there} (--map {absent[0]}=COLUMN names one)")
    return "; ".join(parts)


def item_of(row: dict[str, Any], judge: Judge) -> Item:
    """Return the item that a judge reads in a row. Raises InputError if the row lacks it."""
    values = {name: row.get(name) for name in ("lang", "probe", "prompt", "response")}
    lacking = [n for n in judge.needs if row.get(n) is None and n != "response"]
    if "response" not in row:
        lacking.append("response")
    reads = row.get("reads")
    if reads and "probe" in lacking:
        lacking.remove("probe")  # `reads` says how it is read
    if lacking:
        raise InputError(_lacks(row, judge.name, lacking))
    if row.get("model") and row["model"] == getattr(judge, "model", None):
        raise InputError(f"a reply of {row['model']}, which would read its own; name another model")
    lang, probe, prompt, response = (
        v if isinstance(v, str) else cells.cell_text(v) for v in values.values()
    )
    apart = (row.get("reasoning"), row.get("reasoning_from"), row.get("finish"))
    reasoning, source, finish = (v if isinstance(v, str) else "" for v in apart)
    opened = thoughts.opens(prompt)
    reads = reads if isinstance(reads, str) and "probe" in judge.needs else ""
    if reads == "question" and not prompt.strip():
        raise InputError("a row that reads 'question' needs 'prompt', the question it answers")
    thought = reasoning or None, source, finish, opened
    found = Item(lang, probe, prompt, response, (), *thought, reads=reads)
    if "options" not in judge.needs:
        return found
    options, marks = listed_in(row)
    return found._replace(options=options, marks=marks)


def listed_in(row: dict[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the options of a row and their labels (`shown`), which may be none."""
    options = _options(row["options"])
    return options, _marks(row.get("shown"), options)


def _marks(cell: Any, options: tuple[str, ...]) -> tuple[str, ...]:
    """Return the labels of the options of a row, one for each option; in a CSV file as JSON."""
    with contextlib.suppress(ValueError):
        cell = parsed(cell) if isinstance(cell, str) else cell
    if cell is None or (not cell and isinstance(cell, list | tuple | str)):
        return ()
    if not isinstance(cell, list | tuple) or len(cell) != len(options):
        raise InputError("'shown' must be a list with the label of each option, or empty")
    return tuple(str(mark) for mark in cell)


def _options(cell: Any) -> tuple[str, ...]:
    """Return the options of a row: a list of texts, in a CSV file as JSON."""
    with contextlib.suppress(ValueError):
        cell = parsed(cell) if isinstance(cell, str) else cell
    texts = list(cell) if isinstance(cell, list | tuple) else []
    if len(texts) < 2 or not all(isinstance(text, str) and text.strip() for text in texts):
        raise InputError(
            "'options' must be a list of at least two texts, none of them empty (in CSV as JSON)"
        )
    return tuple(texts)
