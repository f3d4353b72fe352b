"""Judge the replies of a run, or of a file."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from genprobe import files, text
from genprobe.datasets import frames
from genprobe.errors import Caution, InputError
from genprobe.files import bodies, cells
from genprobe.judges import Item, Judge, Verdict, seen, verdicts
from genprobe.limits import parsed
from genprobe.linguistics import stems, thoughts
from genprobe.records import Judgment, LogProb, Request
from genprobe.resources import packs, registry
from genprobe.runs.run import Run
from genprobe.tasks.pipeline import Note, Progress, quiet
from genprobe.tasks.pipeline.gold import Gold


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

    def own() -> Iterator[tuple[str, Item]]:
        for request, item in items:
            if request.decode in judge.reads:
                if wants and not item.options:
                    raise InputError(
                        f"the judge {judge.name!r} reads questions with options, and "
                        f"{request.id} ({request.probe}) has none; see `genprobe list judges`"
                    )
                yield request.id, item

    for request, verdict in verdicts(judge, own()):
        yield Judgment(
            request=request,
            judge=judge.name,
            label=verdict.label,
            score=verdict.score,
            rule=verdict.rule,
            evidence=verdict.evidence,
            fields=verdict.fields,
        )
        if progress:
            progress(judge.name)


def items_of(run: Run) -> Iterator[tuple[Request, Item]]:
    """Yield each answered request with the item that a judge reads."""
    for request, answer in run.exchanges():
        asked = (m["content"] for m in reversed(request.messages) if m["role"] == "user")
        prompt = next(asked, "")
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
    path: str | Path,
    judges: Sequence[Judge | str] = ("yesno",),
    out: str | Path | None = None,
    progress: Progress = quiet,
    note: Note = quiet,
    only: Sequence[str] = (),
    gold: Gold | None = None,
) -> dict[str, dict[str, int]]:
    """Judge the rows of a JSONL, CSV or Parquet file. Returns judge name -> label -> count.

    Rows are written in the same order, with the judges' columns after their own; an input column
    with the name of a new column is kept as `<name>_data`. If `response` is null, the new columns
    are null, and the row is counted as `no reply`. If it is a server's answer to a batch request
    (OpenAI, vLLM), its content is read, with a note; another object, or a list, is an error. Memory
    does not grow with the file.

    judges: objects or names. out: a file, whose suffix gives the format; it is written completely
    or not at all; None means stdout, as JSONL. only: judge only rows with one of these values in
    the column `kind`; the new columns of other rows are null and not counted. gold: compares the
    first judge with people's labels. Raises InputError, with the row, if a row cannot be judged.
    """
    judges = made(judges)
    counts: dict[str, dict[str, int]] = {judge.name: Counter() for judge in judges}
    progress("reading", 0, 0)
    files.write_rows(out, judged_rows(path, judges, counts, progress, note, only, gold))
    return counts


def made(judges: Sequence[Judge | str]) -> list[Judge]:
    """Make the judges that are given by name; keep those that are objects."""
    return [
        registry.module("judges", judge).make() if isinstance(judge, str) else judge
        for judge in judges
    ]


def judged_rows(
    path: str | Path,
    judges: Sequence[Judge],
    counts: dict[str, dict[str, int]] | None = None,
    progress: Progress = quiet,
    note: Note = quiet,
    only: Sequence[str] = (),
    gold: Gold | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file with each judge's columns, as `judge_file` writes them.

    counts: judge name -> label -> count, to which rows are added. gold: counts the first judge's
    agreement with people's labels.
    """
    counts = counts if counts is not None else {judge.name: Counter() for judge in judges}
    stances = any("probe" in judge.needs for judge in judges)
    asked: list[bool] = []  # of the first rows that are read as stances: are they questions?
    for part in _parts(_opened(path, note)):
        if only and "kind" not in part[0][1]:
            raise InputError(
                f"{path}: has no column 'kind', by which a second reader's rows are chosen; run "
                f"`genprobe judge {path} -o FILE` first, and name that file"
            )
        read = [one for one in part if not only or one[1].get("kind") in only]
        found = dict(
            zip((number for number, _ in read), _together(path, read, judges), strict=True)
        )
        if stances and len(asked) < _LOOKED_AT:
            asked += [_asks(row) for _, row in read if row.get("prompt") and not row.get("reads")]
        for number, row in part:
            if number in found:
                columns = _columns(row, judges, found[number], counts)
                if gold is not None:
                    with _at_row(path, number):
                        gold.add(number, row, columns[judges[0].column], columns.get("kind"))
            else:
                columns = _unread(judges)
            yield _kept(row, columns) | columns
            if not number % 1000:
                progress("reading", number, 0)
    if 2 * sum(asked) > len(asked):
        note(
            Caution(
                f"{path}: caution: {sum(asked)} of {len(asked)} prompts look like plain questions, "
                "and the replies are read as stances on a statement; if they are questions, give "
                "the rows the column 'reads' with the value question"
            )
        )


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


def _opened(path: str | Path, note: Note) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the numbered rows of a file; a server's answer to a batch request is unpacked.

    Raises InputError, naming the rows, if a response is neither a text nor such an answer.
    """
    problems = cells.Problems(path)
    told = False
    for number, row in files.numbered_rows(path, streamed=True):
        reply = row.get("response")
        if isinstance(reply, str) and reply.lstrip().startswith('{"status_code"'):
            with contextlib.suppress(ValueError):
                reply = parsed(reply)
        if isinstance(reply, dict | list):
            with problems.at(number):
                row = row | _of_batch(reply)
                if not told:
                    note(
                        Caution(f"{path}: responses are a server's answers; their content is read")
                    )
                told = True
        if not problems:
            yield number, row
    problems.tell()


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
        apart = {
            "reasoning": said.reasoning,
            "reasoning_from": said.reasoning_from,
            "finish": said.finish,
        }
        return {"response": said.text or ""} | {k: v for k, v in apart.items() if v}
    what = "a list" if isinstance(reply, list) else "an object"
    raise InputError(f"'response' is {what}, not a text; put the text of the reply there")


_TOGETHER = 512  # rows that are read, judged and written at a time


def _parts(
    rows: Iterable[tuple[int, dict[str, Any]]],
) -> Iterator[list[tuple[int, dict[str, Any]]]]:
    """Cut rows into parts; consecutive rows with the same prompt stay together."""
    part: list[tuple[int, dict[str, Any]]] = []
    for number, row in rows:
        same = part and row.get("prompt") and part[-1][1].get("prompt") == row["prompt"]
        if len(part) >= _TOGETHER * (2 if same else 1):
            yield part
            part = []
        part.append((number, row))
    if part:
        yield part


def _together(
    path: str | Path, part: list[tuple[int, dict[str, Any]]], judges: Sequence[Judge]
) -> list[tuple[Verdict, ...]]:
    """Judge some rows at once. Returns each row's verdicts, in the order of the judges."""
    found = []
    for judge in judges:
        items = []
        for number, row in part:
            with _at_row(path, number):
                items.append((number, _item(row, judge)))
        if hasattr(judge, "many"):
            try:
                found.append([verdict for _, verdict in verdicts(judge, items)])
                continue
            except InputError:  # judged one by one below, so that the message names the row
                pass
        one_by_one = []
        for number, item in items:
            with _at_row(path, number):
                one_by_one.append(judge(item))
        found.append(one_by_one)
    return list(zip(*found, strict=True))


@contextlib.contextmanager
def _at_row(path: str | Path, number: int) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}, row {number}: {error}") from None


def _columns(
    row: dict[str, Any],
    judges: Sequence[Judge],
    found: Sequence[Verdict],
    counts: dict[str, dict[str, int]],
) -> dict[str, Any]:
    """Make the judges' columns of a row. All rows have the same ones, null without a reply."""
    columns: dict[str, Any] = {}
    parted = None
    for judge, verdict in zip(judges, found, strict=True):
        # The columns of the first judge have plain names; those of others begin with the judge's.
        own = f"{judge.name}_" if columns else ""
        columns[judge.column] = verdict.label
        for name, value in verdict.fields.items():
            columns[name if name not in columns else f"{judge.name}_{name}"] = value
        if judge.name == "yesno" and parted is None:
            parted = _item(row, judge).parted
            columns["thought"], columns["thought_state"] = parted.thought, parted.state
        columns[f"{own}rule"] = verdict.rule
        columns[f"{own}evidence"] = verdict.evidence
        counts[judge.name]["no reply" if row["response"] is None else verdict.label] += 1
    return columns if row["response"] is not None else dict.fromkeys(columns)


def _unread(judges: Sequence[Any]) -> dict[str, Any]:
    """Make the judges' columns of a row that is not judged: all null."""
    blank = [judge.blank for judge in judges]
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


# Column that a judge reads -> names that other tools use for it, in lower case.
_ELSEWHERE = {
    "lang": ("language", "locale", "language_code"),
    "response": (
        *("output", "outputs", "completion", "reply", "generated_text", "generation"),
        *("prediction", "resps", "answer", "text"),
    ),
    "prompt": ("input", "instruction", "messages"),
}


def _lacks(row: dict[str, Any], judge: str, lacking: Sequence[str]) -> str:
    """Describe which columns a judge needs and a row lacks, and which ones look like them."""
    either = {"probe": f"'probe' (or 'reads': {', '.join(packs.READS[:-1])} or {packs.READS[-1]})"}
    needed = " and ".join(either.get(name, f"{name!r}") for name in lacking)
    parts = [f"the judge {judge!r} needs {needed}"]
    spelled = {str(name).strip().casefold(): name for name in reversed(row)}
    for name in lacking:
        if name in row:
            parts.append(f"{name!r} is empty here")
            continue
        like = next((spelled[n] for n in (name, *_ELSEWHERE.get(name, ())) if n in spelled), None)
        if like is not None:
            parts.append(f"rename the column {like!r} to {name!r}")
    if len(parts) == 1:
        parts.append(f"columns: {', '.join(map(str, row))}")
    return "; ".join(parts)


def _item(row: dict[str, Any], judge: Judge) -> Item:
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
    found = Item(lang, probe, prompt, response, (), reasoning or None, source, finish, opened)
    if isinstance(reads, str) and "probe" in judge.needs:
        if reads == "question" and not prompt.strip():
            raise InputError("a row that reads 'question' needs 'prompt', the question it answers")
        found = found._replace(reads=reads)
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
