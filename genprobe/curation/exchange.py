"""Convert tables and votes to and from common annotation tools.

- `label-studio`: a JSON list of tasks, and FILE-config.xml, its labelling interface; its exports
  JSON, JSON-MIN, CSV and TSV are read.
- `doccano`: JSONL of texts with labels, and FILE-guideline.md; the votes of each annotator are one
  file of its export, a zip, and named after the annotator.
- `potato`: JSONL of items, and FILE-config.yaml; its annotations are JSONL, without the rows.
- `google-forms`: CSV of the responses to a form, one row per respondent, one column per question.
- `xlsform`: a survey for KoboToolbox or ODK; its submissions are CSV, one row per submission.

For the first three, complete rows of any table are in a field, which the first two return
unchanged, so that nothing is lost; `read` returns the rows and the votes, which are ordinary
tables. The last two are for answers to an elicitation pack.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from xml.sax.saxutils import quoteattr

from genprobe.curation import collect, tables, validate
from genprobe.errors import InputError
from genprobe.files import Row, escape, people, read_rows, unescape, zips
from genprobe.files.cells import cell_text
from genprobe.files.disk import replace_bytes
from genprobe.files.rows import Table
from genprobe.limits import exceeded, limit, parsed
from genprobe.records import digest
from genprobe.resources import guides, packs, registry
from genprobe.text import many

ITEMS = ("label-studio", "doccano", "potato")
FORMS = ("google-forms", "xlsform")
TOOLS = (*ITEMS, *FORMS)
VOTES = ("item", "rater", "question", "label", "shown")
_ROW = "genprobe_row"
# Before the hash of what is shown: a tool keeps it only in the name of an item.
_SHOWN = "#shown-"
_STAND_IN = re.compile(r"r[0-9a-f]{12}")  # for the code of a respondent
_OTHER = "_other"  # end of the name of a question for other words than the choices
_MARKS = {  # keys, any of which shows that an export is of the tool
    "label-studio": {"data", "annotations", "annotation_id"},
    "doccano": {_ROW, "label", "labels"},
    "potato": {_ROW, "label_annotations", "labels"},
}
_CHOOSE = {  # what to choose there, for an export that is read
    "label-studio": "choose JSON in its export window",
    "doccano": "choose JSONL under Actions, Export Dataset, of a project of the kind text "
    "classification",
    "potato": "name annotations.jsonl of its folder exports/jsonl, or the items that it was given",
}
_TASK = {"id", "item", "text", "lang", _ROW}  # what `write` puts into a task
# What Label Studio adds to a task in JSON-MIN and CSV, beside its answers.
_ADDED = {"annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement"}
_ADDED |= {"history"}
# Columns that a form adds by itself; KoboToolbox also adds names that begin with an underscore.
_FORM_COLUMNS = {"google-forms": ("Timestamp",), "xlsform": ("start", "end", "deviceid")}


# --- items to be judged


def write(
    source: str | Table,
    tool: str,
    out: str | Path,
    questions: str = "aqbileq",
    keep_about: bool = False,
) -> list[Path]:
    """Write the rows of a table for a tool, with the questions that annotators are asked.

    source: the table. tool: one of ITEMS. out: the file; a configuration is written beside it if
    the tool needs one. questions: the name of the questions. keep_about: also send what respondents
    said about themselves; otherwise the columns `about_…` stay here, and codes of respondents
    are replaced (`read` joins them again). Returns the files. Raises InputError for another
    tool, and for a table without pairs or sentences.
    """
    if tool not in ITEMS:
        raise registry.unknown("tool", tool, ITEMS)
    asked = validate.load(questions)
    rows, items = validate.items(source, asked.unit)
    if tool == "doccano" and len(asked.questions) > 1:
        raise InputError(
            f"doccano asks one question about a text, and {questions} has "
            f"{len(asked.questions)}: {', '.join(asked.questions)}; take label-studio, potato, or "
            "sheets (`genprobe dataset validate export`)"
        )
    out = Path(out)
    if tool != "label-studio" and out.suffix.lower() not in (".jsonl", ".ndjson"):
        raise InputError(f"{out}: {tool} reads lines of JSON; name a file that ends in .jsonl")
    sent, codes = (rows, dict[str, str]()) if keep_about else _hidden(rows)
    private = any(map(people.names_somebody, sent))
    lines: list[Row] = []
    for item in items:
        whole = json.dumps([sent[at] for at in item.rows], ensure_ascii=False)
        name, text = people.renamed(item.name, codes), "\n".join(item.texts)
        name = f"{name}{_SHOWN}{validate.prints(item, asked)}"
        lines.append({"id": name, "text": text, "lang": item.lang, _ROW: whole})
    said = set.intersection(*(set(q.text) for q in asked.questions.values()))
    lang = guides.choose([item.lang for item in items], "", sorted(said))
    labels = {
        name: {q.read(word) or word: word for word in q.offered(lang)}
        for name, q in asked.questions.items()
    }
    several = {name for name, q in asked.questions.items() if q.kind == "many"}
    heads = {name: q.text.get(lang) or q.text["en"] for name, q in asked.questions.items()}
    warning = " ".join(guides.load(lang).texts["warning"].split())
    # The tools write numbers of their own over `id`, so our id is in `item`.
    if tool == "label-studio":
        tasks = [{"data": {"item": line.pop("id")} | line} for line in lines]
        replace_bytes(out, [_dumps(tasks)], private)
        config = _beside(out, "config.xml")
        replace_bytes(config, [_label_studio(labels, heads, several, warning).encode("utf-8")])
        return [out, config]
    if tool == "doccano":
        made = [
            {"text": one["text"], "label": [], "item": one["id"], _ROW: one[_ROW]} for one in lines
        ]
        replace_bytes(out, [_dumps(line, None) for line in made], private)
        guideline = _beside(out, "guideline.md")
        listed = "".join(f"\n- {word}" for words in labels.values() for word in words.values())
        told = f"{warning}\n\n{' '.join(heads.values())}\n{listed}\n"
        replace_bytes(guideline, [told.encode("utf-8")])
        return [out, guideline]
    replace_bytes(out, [_dumps(line, None) for line in lines], private)
    config = _beside(out, "config.yaml")
    replace_bytes(config, [_potato(out, labels, heads, several).encode("utf-8")])
    return [out, config]


def _hidden(rows: Sequence[Row]) -> tuple[list[Row], dict[str, str]]:
    """Return rows without what they hold of respondents, and what stands in for each code.

    What stands in is a hash of all that a respondent's rows hold without her: it stays the same
    when another's answers are deleted, and is another one when hers are edited.
    """
    codes = people.respondents(rows)
    hers: dict[str, list[Row]] = {code: [] for code in codes}
    kept = []
    for row in rows:
        bare = {n: v for n, v in row.items() if n != "respondent" and not people.is_private(n)}
        kept.append(bare)
        if code := cell_text(row.get("respondent")):
            one = {n: v for n, v in bare.items() if n != tables.HISTORY}
            hers[code].append({n: people.renamed(v, {code: ""}) for n, v in one.items()})
    again: Counter[str] = Counter()
    for code, said in hers.items():
        name = f"r{digest(said, 12)}"
        again[name] += 1  # of two who said the same, it does not matter which is which
        codes[code] = f"{name}x{again[name]}" if again[name] > 1 else name
    return [{n: people.renamed(v, codes) for n, v in row.items()} for row in kept], codes


def _joined(
    rows: Sequence[Row], votes: Sequence[Row], source: str | Table, questions: str
) -> tuple[list[Row], list[Row], int]:
    """Put back what `write` left out of rows and of the items of votes.

    source, questions: the table that was written, and its questions. Returns the rows, the votes,
    and how many of them were left out because answers were deleted from the table. Raises
    InputError for a row or vote that is not of this table, or was edited, there or here.
    """
    asked = validate.load(questions)
    table, items = validate.items(source, asked.unit)
    sent, codes = _hidden(table)
    pairs = zip(sent, table, strict=True)
    own = {cell_text(there["id"]): (_as_sent(there), row) for there, row in pairs}
    names = [(table[at]["id"], item.name) for item in items for at in item.rows]
    names += [(item.name, item.name) for item in items]  # exports without it name a row
    named = {str(people.renamed(name, codes)): own_name for name, own_name in names}
    prints = {item.name: validate.prints(item, asked) for item in items}
    forgotten = (Path(str(source)).parent / collect.DELETED).exists()
    left = 0

    def lacks(what: str, name: str) -> int:
        if forgotten and _STAND_IN.search(name):
            return 1
        raise InputError(
            f"{source}: has no {what} {name!r}; name the table that was converted, as it was then, "
            "and its --questions"
        )

    found = []
    for row in rows:
        name = cell_text(row.get("id"))
        as_sent, mine = own.get(name, ({}, row))
        if name not in own:
            left += lacks("row", name)
        elif {n: v for n, v in row.items() if n in as_sent} != as_sent:
            raise InputError(
                f"{source}: the row {name!r} is not as it was sent; correct it here or there"
            )
        else:
            found.append({**row, **mine})
    kept = []
    for vote in votes:
        if item := named.get(vote["item"]):
            if vote["shown"] not in ("", prints.get(item)):
                raise InputError(
                    f"{source}: {item!r} is not as annotators were shown it; name the table that "
                    "was converted, as it was then, and its --questions"
                )
            kept.append(vote | {"item": item})
        else:
            left += lacks("item", vote["item"])
    if not rows:  # Potato returns none
        voted = {vote["item"] for vote in kept}
        found = [table[at] for item in items if item.name in voted for at in item.rows]
    return found, kept, left


def _as_sent(row: Row) -> Row:
    """Return a row as it comes back, but for its history, which may have grown here."""
    text = json.dumps(row, ensure_ascii=False).encode("utf-8", "replace")
    return {name: value for name, value in parsed(text).items() if name != tables.HISTORY}


def _dumps(value: object, indent: int | None = 1) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=indent) + "\n").encode("utf-8", "replace")


def _beside(out: Path, end: str) -> Path:
    return out.with_name(f"{out.stem}-{end}")


def _label_studio(
    labels: Mapping[str, Mapping[str, str]],
    heads: Mapping[str, str],
    several: Collection[str],
    warning: str,
) -> str:
    """Write the labelling interface, which shows words and stores labels.

    labels: question -> label -> its word; none of a question that asks for a text. several:
    questions with several answers.
    """
    parts = ["<View>", f'  <Header size="5" value={quoteattr(warning)}/>']
    parts += ['  <Text name="text" value="$text"/>']
    for name, known in labels.items():
        parts += [f"  <Header value={quoteattr(heads[name])}/>"]
        if not known:
            parts += [f'  <TextArea name={quoteattr(name)} toName="text"/>']
            continue
        choice = "multiple" if name in several else "single"
        parts += [f'  <Choices name={quoteattr(name)} toName="text" choice="{choice}">']
        parts += [
            f"    <Choice value={quoteattr(word)} alias={quoteattr(label)}/>"
            for label, word in known.items()
        ]
        parts += ["  </Choices>"]
    return "\n".join([*parts, "</View>"]) + "\n"


def _potato(
    out: Path,
    labels: Mapping[str, Mapping[str, str]],
    heads: Mapping[str, str],
    several: Collection[str],
) -> str:
    """Write the configuration of a Potato task, as JSON, which is valid YAML."""
    kinds = {name: "multiselect" if name in several else "radio" for name in labels}
    config = {
        "annotation_task_name": "genprobe",
        "data_files": [out.name],
        "item_properties": {"id_key": "id", "text_key": "text"},
        "output_annotation_dir": "annotation_output",
        "output_annotation_format": "jsonl",
        "annotation_schemes": [
            {
                "annotation_type": kinds[name] if known else "text",
                "name": name,
                "description": heads[name],
                **({"labels": list(known.values())} if known else {}),
            }
            for name, known in labels.items()
        ],
    }
    return json.dumps(config, ensure_ascii=False, indent=1) + "\n"


def read(
    paths: Sequence[str | Path],
    tool: str,
    source: str | Table | None = None,
    questions: str = "aqbileq",
) -> tuple[list[Row], list[Row], int]:
    """Read the exports of a tool.

    paths: the exports; for doccano, one per annotator, with the annotator's name as file name.
    source, questions: the table that was written for the tool, from which what stayed here is
    joined again, and its questions. Returns the original rows, each once, the votes (`item, rater,
    question, label, shown`), and how many rows and votes were left out, because answers were
    deleted from the table. Raises InputError for a file of another kind, if exports have different
    versions of a row, and for what is not of the table.
    """
    if tool not in ITEMS:
        raise registry.unknown("tool", tool, ITEMS)
    rows: dict[str, Row] = {}
    votes: list[Row] = []
    read_votes = {
        "label-studio": _label_studio_votes,
        "doccano": _doccano_votes,
        "potato": _potato_votes,
    }[tool]
    for path, parts in (
        (path, parts) for one in paths for path, parts in _exports(Path(one), tool)
    ):
        if not any(_MARKS[tool] & {*part} for part in parts):
            raise InputError(f"{path}: not an export of {tool} that is read; {_CHOOSE[tool]}")
        for number, part in enumerate(parts, 1):
            where = f"{path}, task {number}"
            try:
                task = part.get("data", part) if tool == "label-studio" else part
                own = _read_rows_of(task, where, rows)
                votes += read_votes(part, Path(path), where, own)
            except (AttributeError, KeyError, TypeError, ValueError):
                raise InputError(f"{where}: not as {tool} exports it") from None
    found = list(rows.values())
    if source is not None:
        return _joined(found, votes, source, questions)
    kept = collect.undeleted(found, paths)
    gone = {cell_text(row.get("id")) for row in found} - {cell_text(row.get("id")) for row in kept}
    left = [vote for vote in votes if vote["item"] not in gone]
    return kept, left, len(found) + len(votes) - len(kept) - len(left)


def _exports(path: Path, tool: str) -> Iterator[tuple[str, list[Row]]]:
    """Read the tasks of an export, or of each file of a zip, with the name of the file."""
    suffix = path.suffix.lower()
    if suffix == ".zip" and tool == "doccano":
        room = limit("unpacked")
        for name in zips.names(path):
            if name.endswith("/"):
                continue
            if not name.endswith(".jsonl"):
                raise InputError(f"{path}: holds {name}; {_CHOOSE[tool]}")
            data = zips.read(path, name)
            room -= len(data)
            if room < 0:
                raise exceeded(path, "unpacked")
            # Only the last part of the name is used, and nothing is unpacked to a disk.
            yield f"{path}/{PurePosixPath(name).name}", _json_lines(data, f"{path}, {name}")
    elif suffix == ".zip":
        raise InputError(f"{path}: unpack it, and {_CHOOSE[tool]}")
    elif tool == "label-studio" and suffix not in (".csv", ".tsv"):
        yield str(path), _tasks(path)
    elif suffix == ".json":
        raise InputError(f"{path}: {tool} has lines of JSON; {_CHOOSE[tool]}")
    else:
        yield str(path), list(read_rows(path))


def _json_lines(data: bytes, where: str) -> list[Row]:
    found = []
    for number, line in enumerate(data.splitlines(), 1):
        try:
            one = parsed(line) if line.strip() else {}
        except ValueError as error:
            raise InputError(f"{where}, line {number}: not JSON ({error})") from None
        if not isinstance(one, dict):
            raise InputError(f"{where}, line {number}: not an object")
        found += [one] if one else []
    return found


def _read_rows_of(data: Row, where: str, rows: dict[str, Row]) -> list[Row]:
    """Add the rows that a task was made of to those of the files before, and return them."""
    own = _whole(data.get(_ROW), where)
    for row in own:
        if rows.setdefault(cell_text(row.get("id")), row) != row:
            raise InputError(
                f"{where}: the row {row.get('id')!r} differs between files; correct one"
            )
    return own


def _tasks(path: Path) -> list[Row]:
    try:
        found = parsed(packs.read_text(path))
    except ValueError as error:
        raise InputError(f"{path}: not JSON ({error}); {_CHOOSE['label-studio']}") from None
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise InputError(f"{path}: not a list of tasks; {_CHOOSE['label-studio']}")
    return found


def _whole(text: object, where: str) -> list[Row]:
    if text is None:
        return []  # the task was not written by `write`: it has votes only
    try:
        found = parsed(str(text))
    except ValueError as error:
        raise InputError(f"{where}: {_ROW!r} is no longer JSON ({error})") from None
    if not isinstance(found, list):
        raise InputError(f"{where}: {_ROW!r} is no list of rows")
    return [row for row in found if isinstance(row, dict)]


def _vote(item: object, rater: object, question: object, label: object) -> Row:
    name, _, shown = cell_text(item).partition(_SHOWN)
    rest = map(cell_text, (rater, question, label))
    return dict(zip(VOTES, (name, *rest, shown), strict=True))


def _given(value: object) -> list[object]:
    """List the answers in a value of Label Studio's: one, several, or an object that holds them."""
    if isinstance(value, str) and value.startswith(("{", "[")):  # of CSV
        try:
            value = parsed(value)
        except ValueError:
            return [value]
    if isinstance(value, Mapping):
        value = value.get("choices") or value.get("text") or value.get("rating")
    if isinstance(value, list):
        return [part for one in value for part in (_given(one) if one else ())]
    return [] if value in (None, "") else [value]


def _label_studio_votes(task: Row, path: Path, where: str, own: list[Row]) -> list[Row]:
    if "annotation_id" in task and "annotations" not in task:
        return _label_studio_min(task, where, own)
    found = []
    data = task.get("data") or {}
    item = data.get("item") or data.get("id") or task.get("id")
    for one in task.get("annotations") or ():
        if one.get("was_cancelled"):
            continue
        by = one.get("completed_by")
        rater = by.get("email") or by.get("id") if isinstance(by, Mapping) else by
        for result in one.get("result") or ():
            if labels := _given(result.get("value") or {}):
                joined = validate.JOINED.join(map(cell_text, labels))
                found.append(_vote(item, rater, result.get("from_name"), joined))
    return found


def _label_studio_min(task: Row, where: str, own: list[Row]) -> list[Row]:
    """Read the votes of one annotation, which JSON-MIN and CSV write beside the task's data."""
    if not own:
        raise InputError(
            f"{where}: answers cannot be told from other columns of a task that genprobe did not "
            f"write; {_CHOOSE['label-studio']}"
        )
    item = task.get("item") or own[0].get("id")
    given = {name: _given(value) for name, value in task.items() if name not in _TASK | _ADDED}
    return [
        _vote(item, task.get("annotator"), name, validate.JOINED.join(map(cell_text, labels)))
        for name, labels in given.items()
        if labels
    ]


def _doccano_votes(part: Row, path: Path, where: str, own: list[Row]) -> list[Row]:
    item = part.get("item") or part.get("id")
    labels = part.get("label") or part.get("labels") or ()
    if isinstance(labels, str):
        labels = [labels]
    return [_vote(item, path.stem, "label", label) for label in labels]


def _potato_votes(part: Row, path: Path, where: str, own: list[Row]) -> list[Row]:
    item = part.get("instance_id") or part.get("id")
    rater = part.get("user_id") or part.get("user") or path.parent.name
    found = []
    name = "labels" if "labels" in part else "label_annotations"
    for question, given in (part.get(name) or {}).items():
        if not isinstance(given, Mapping):
            raise InputError(f"{where}: {name!r} is not in Potato's format")
        text = given.get("text_box")
        labels = [text] if text else [label for label, value in given.items() if value]
        if labels:
            joined = validate.JOINED.join(map(cell_text, labels))
            found.append(_vote(item, rater, question, joined))
    return found


# --- answers of a form


def form(pack: collect.Pack, out: str | Path) -> None:
    """Write an elicitation pack as an XLSForm, the workbook of KoboToolbox and ODK.

    Every task is asked once, even if the pack draws tasks repeatedly. The second message is shown
    after the first is answered, and questions about the respondent only after consent to them. A
    pack with a page on the format of answers shows it before the tasks, and in other words to those
    who ask for more.
    """
    survey: list[Row] = [
        _survey("note", "warning", pack.texts["warning"]),
        _survey("select_one consent", "consent", pack.texts["consent"], required="yes"),
        _survey("begin_group", "all", pack.texts["title"], "${consent} = 'yes'"),
    ]
    yes_no = [("yes", pack.texts["consent_yes"]), ("no", pack.texts["consent_no"])]
    choices = [_choice("consent", name, text) for name, text in yes_no]
    if "format" in pack.texts:
        texts = pack.texts
        asked, more = texts["format_question"], "${format_understood} = 'more'"
        survey += [
            _survey("note", "format", texts["format"]),
            _survey("select_one understood", "format_understood", asked, required="yes"),
            _survey("note", "clarification", texts["clarification"], more),
            _survey("select_one understood", "clarification_understood", asked, more),
        ]
        choices += [_choice("understood", n, texts[f"format_{n}"]) for n in ("yes", "more")]
    if pack.about:
        survey.append(_survey("select_one consent", "consent_about", pack.texts["consent_about"]))
    for one in pack.about:
        relevant = "${consent_about} = 'yes'"
        name = f"about_{one.id}"
        if one.kind == "many":
            survey.append(_survey(f"select_multiple {name}", name, one.text, relevant))
            choices += [_choice(name, f"c{n}", c) for n, c in enumerate(one.choices, 1)]
            if one.other:
                other = pack.words["other"]
                choices.append(_choice(name, "other", other))
                chosen = f"selected(${{{name}}}, 'other')"
                survey.append(_survey("text", f"{name}{_OTHER}", other, chosen))
        elif one.kind == "one" and not one.other:
            survey.append(_survey(f"select_one {name}", name, one.text, relevant))
            choices += [_choice(name, c, c) for c in one.choices]
        else:
            hint = " / ".join(one.choices)
            survey.append(_survey("text", name, one.text, relevant) | {"hint": hint})
    for domain in pack.every:
        survey.append(_survey("begin_group", f"domain_{domain.id}", domain.title))
        for task in domain.tasks:
            before = ""
            for column, message in zip(task.gives, task.messages, strict=True):
                name = _name(domain, task, column)
                survey.append(_survey("text", name, message, before))
                before = f"${{{name}}} != ''" if column in task.needed else before
        survey.append(_survey("end_group", "", ""))
    survey.append(_survey("end_group", "", ""))
    settings = [
        {
            "form_title": pack.texts["title"],
            "form_id": f"genprobe_{pack.name}_{pack.lang}",
            "version": pack.hash,
        }
    ]
    tables.write_sheets(out, {"survey": survey, "choices": choices, "settings": settings})


def _choice(of: str, name: str, label: str) -> Row:
    return {"list_name": of, "name": name, "label": label}


def _survey(kind: str, name: str, label: str, relevant: str = "", required: str = "") -> Row:
    row = {"type": kind, "name": name, "label": label, "hint": ""}
    return row | {"relevant": relevant, "required": required}


def _name(domain: collect.Domain, task: collect.Task, column: str) -> str:
    return f"{domain.id}__{task.id}__{column}"


def _heads(pack: collect.Pack, tool: str) -> dict[str, tuple[str, str, str]]:
    """Map the name of each column of a form to its domain, task and column of answers."""
    found = {}
    for domain in pack.every:
        for task in domain.tasks:
            for column, text in zip(task.gives, task.messages, strict=True):
                name = _name(domain, task, column)
                head = f"{' '.join(text.split())} [{name}]" if tool == "google-forms" else name
                found[head] = (domain.id, task.id, column)
    return found


def write_answers(source: str | Table, tool: str, pack: collect.Pack, out: str | Path) -> int:
    """Write answers as a CSV file of a form's responses, and return the number of rows.

    There is one row per respondent. `read_answers` reads the same answers back. Raises InputError
    for an answer to a task that the pack does not have.
    """
    rows, _ = collect.merge([source], pack)
    heads = {of: head for head, of in _heads(pack, tool).items()}
    known = {(d.id, t.id): t.gives for d in pack.every for t in d.tasks}
    abouts = [f"about_{one.id}" for one in pack.about]
    extra = _FORM_COLUMNS[tool][0]
    people: dict[str, Row] = {}
    for row in rows:
        one = people.setdefault(row["respondent"], {extra: "", "genprobe_code": row["respondent"]})
        one |= {name: cell_text(row.get(name)) for name in abouts}
        gives = known.get((row["domain"], row["task"]))
        if gives is None:
            raise InputError(
                f"{source}: {row['id']!r} answers the task {row['task']!r} of {row['domain']!r}, "
                f"which the pack {pack.name} in {pack.lang!r} has not (any more)"
            )
        turn = 1
        # The answer to a task that was drawn again needs a further column.
        while any(_again(heads[row["domain"], row["task"], c], turn) in one for c in gives):
            turn += 1
        for column in gives:
            head = _again(heads[row["domain"], row["task"], column], turn)
            one[head] = cell_text(row.get(column))
        one.setdefault("genprobe_ids", []).append(row["id"])
        one.setdefault("genprobe_order", []).append(f"{row['domain']}__{row['task']}__{turn}")
        one["genprobe_history"] = json.dumps(row.get(tables.HISTORY, []), ensure_ascii=False)
    for one in people.values():
        one["genprobe_ids"] = " ".join(one["genprobe_ids"])
        one["genprobe_order"] = " ".join(one["genprobe_order"])
    names = list(dict.fromkeys(name for one in people.values() for name in one))
    text = io.StringIO(newline="")
    lines = csv.DictWriter(text, names, restval="", lineterminator="\r\n")
    lines.writeheader()
    for one in people.values():
        lines.writerow({name: escape(str(value)) for name, value in one.items()})
    replace_bytes(Path(out), [text.getvalue().encode("utf-8-sig", "replace")], private=True)
    return len(people)


def _again(head: str, turn: int) -> str:
    return head if turn == 1 else f"{head} ({turn})"


def read_answers(
    paths: Sequence[str | Path], tool: str, pack: collect.Pack
) -> tuple[list[Row], list[str]]:
    """Read the responses of a form as answers of a pack.

    A column is recognised by its name, by a name in brackets at its end, or by the wording of the
    question. The two questions of consent are recognised in the same way: without the first
    consent, no answer of a respondent is read; without the second, none about the respondent.

    paths: CSV files of responses. Returns the answers, and one line on each kind of data that is
    not used: columns, respondents without consent, answers to the first of two messages only.
    Raises InputError if no column is a question of the pack.
    """
    rows: list[Row] = []
    notes: list[str] = []
    for path in paths:
        lines = _responses(Path(path))
        columns = _meanings(list(lines[0]) if lines else [], pack, tool)
        if not columns.answers:
            raise InputError(f"{path}: no column is a question of {pack.name}-{pack.lang}")
        notes += [
            f"{path}: the column {h[:60]!r} is not a question of the pack" for h in columns.none
        ]
        refused = half = 0
        for line in lines:
            if _declined(line, columns.consent, pack):
                refused += 1
                continue
            found, alone = _answers_of(line, columns, pack, tool)
            rows += found
            half += alone
        if refused:
            notes.append(f"{path}: without consent, left out: {many(refused, 'respondent')}")
        if half:
            notes.append(
                f"{path}: answers to only one of two messages, left out: {many(half, 'answer')}"
            )
    return rows, notes


@dataclass
class _Columns:
    """The meaning of each column of a form's responses."""

    answers: dict[str, tuple[tuple[str, str, str], int]]  # ((domain, task, column), turn)
    about: dict[str, str]
    consent: str = ""  # to answering at all
    consent_about: str = ""  # to questions about the respondent
    none: list[str] = field(default_factory=list)  # columns that are no question of the pack


def _meanings(heads: Sequence[str], pack: collect.Pack, tool: str) -> _Columns:
    known = _heads(pack, tool)
    by_name = {_name_of(head): of for head, of in known.items()}
    by_text: dict[str, list[tuple[str, str, str]]] = {}
    for head, question in _heads(pack, "google-forms").items():
        by_text.setdefault(_squash(head.rsplit(" [", 1)[0]), []).append(question)
    abouts = {f"about_{one.id}": f"about_{one.id}" for one in pack.about}
    abouts |= {f"about_{one.id}{_OTHER}": f"about_{one.id}{_OTHER}" for one in pack.about}
    abouts |= {_squash(one.text): f"about_{one.id}" for one in pack.about}
    consents = ("consent", "consent_about")
    asked = {_squash(pack.texts[name]): name for name in consents} | {n: n for n in consents}
    own = {*_FORM_COLUMNS[tool], "warning", "format", "clarification"}
    own |= {"format_understood", "clarification_understood"}
    columns = _Columns({}, {})
    for head in heads:
        plain, turn = _turn(head)
        last, squashed = plain.rsplit("/", 1)[-1], _squash(plain)
        of = by_name.get(_name_of(plain)) or by_name.get(last)
        of = of or _of_wording(by_text.get(squashed, []), list(columns.answers.values()))
        about = abouts.get(last) or abouts.get(squashed)
        consent = asked.get(last) or asked.get(squashed)
        if of is not None:
            columns.answers[head] = (of, turn)
        elif about:
            columns.about[head] = about
        elif consent:
            setattr(columns, consent, head)
        elif not last.startswith(("genprobe_", "_")) and last not in own:
            columns.none.append(head)
    return columns


def _of_wording(
    known: Sequence[tuple[str, str, str]], before: Sequence[tuple[tuple[str, str, str], int]]
) -> tuple[str, str, str] | None:
    """Choose among questions of the same wording: the only one, or that of the preceding task."""
    if len(known) == 1:
        return known[0]
    task = before[-1][0][:2] if before else None
    return next((of for of in known if of[:2] == task), None)


def _declined(line: Row, column: str, pack: collect.Pack) -> bool:
    """Tell whether a respondent was asked for consent and did not give it."""
    yes = ("yes", _squash(pack.texts["consent_yes"]))
    return bool(column) and _squash(line[column]) not in yes


def _answers_of(
    line: Row, columns: _Columns, pack: collect.Pack, tool: str
) -> tuple[list[Row], int]:
    """Read the answers of one respondent, in the order in which they were given, if known.

    Returns the answers, and how many were left out because only one of two messages is answered.
    """
    given: dict[tuple[str, str, int], Row] = {}
    for head, ((domain, task, column), turn) in columns.answers.items():
        if line[head].strip():
            given.setdefault((domain, task, turn), {})[column] = line[head].strip()
    tasks = {(d.id, t.id): t for d in pack.every for t in d.tasks}
    whole = {key: one for key, one in given.items() if set(tasks[key[:2]].needed) <= set(one)}
    code = line.get("genprobe_code") or digest([tool, *line.values()], 12)
    ids = line.get("genprobe_ids", "").split()
    order = line.get("genprobe_order", "").split()
    place = {name: at for at, name in enumerate(order)}
    keys = sorted(whole, key=lambda k: place.get("__".join(map(str, k)), len(order)))
    said = {f"about_{one.id}": "" for one in pack.about}
    if not _declined(line, columns.consent_about, pack):
        given_about = {name: line[head].strip() for head, name in columns.about.items()}
        said |= {f"about_{q.id}": _said_about(given_about, q) for q in pack.about}
    steps = line.get("genprobe_history")
    history = _history(steps) if steps else [f"{pack.step}|via:{tool}"]
    rows = []
    for n, key in enumerate(keys, 1):
        row = {
            "id": ids[n - 1] if len(ids) == len(keys) else f"{code}-{n}",
            "respondent": code,
            "pack": pack.name,
        }
        row |= {"lang": pack.lang, "domain": key[0], "task": key[1]}
        row |= {column: whole[key].get(column, "") for column in tasks[key[:2]].gives}
        rows.append(row | said | {tables.HISTORY: list(history)})
    return rows, len(given) - len(whole)


def _said_about(given: Mapping[str, str], question: collect.About) -> str:
    """Return what a respondent said to a question; of several choices, in the pack's words.

    KoboToolbox and ODK write the names of the choices (`c1 c3 other`), Google Forms their words.
    """
    text = given.get(f"about_{question.id}", "")
    if question.kind != "many":
        return text
    names = {f"c{n}": choice for n, choice in enumerate(question.choices, 1)}
    other = given.get(f"about_{question.id}{_OTHER}", "")
    parts = text.split()
    if parts and set(parts) <= {*names, "other"}:
        found = [names[part] for part in parts if part in names]
        return collect.JOINED.join([*found, *([other] if other else [])])
    return collect.several(text, question) or text


def _history(text: str) -> list[str]:
    try:
        found = parsed(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(line, str) for line in found):
        raise InputError(f"'genprobe_history' is no list of texts: {text[:60]!r}")
    return found


def _responses(path: Path) -> list[Row]:
    """Read the rows of a form's CSV file, in UTF-8; the separator depends on the form."""
    text = packs.read_text(path)
    first = text.split("\n", 1)[0]
    separator = max(",;\t", key=first.count)
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error as error:
        raise InputError(f"{path}: not CSV ({error})") from None
    if len(lines) < 2:
        raise InputError(f"{path}: the file holds no responses")
    head = lines[0]
    if len(set(head)) < len(head):
        twice = next(name for name in head if head.count(name) > 1)
        raise InputError(
            f"{path}: two columns are called {twice[:60]!r}; put the name of each in brackets "
            f"after it, as `--to google-forms` does"
        )
    return [
        dict(zip(head, map(unescape, cells + [""] * (len(head) - len(cells))), strict=False))
        for cells in lines[1:]
        if any(cells)
    ]


def _turn(head: str) -> tuple[str, int]:
    found = re.fullmatch(r"(.*) \((\d+)\)", head, re.DOTALL)
    return (found[1], int(found[2])) if found else (head, 1)


def _name_of(head: str) -> str:
    """Return what stands in the brackets at the end of a heading, else the heading."""
    plain = head.rstrip()
    start = plain.rfind("[")
    inside = plain[start + 1 : -1]
    return inside if start >= 0 and plain.endswith("]") and inside and "]" not in inside else head


def _squash(text: str) -> str:
    return " ".join(text.casefold().split())
