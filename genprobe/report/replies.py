"""The browser of replies in a report: every reply, with what it was read as.

`section` packs the rows of the outcomes into one inert block of the page. The block is JSON with a
list of distinct values and a list of codes for each column, compressed by gzip, in base64, so that
no text of a model or of a file can be markup or script there. When the reader opens the browser,
replies.js unpacks the block and inserts its texts only as text. The page inlines replies.css and
replies.js once.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from genprobe.metrics import not_clear, unanswered
from genprobe.metrics.negrate import not_told
from genprobe.metrics.rates import no_essay
from genprobe.outcomes import columns
from genprobe.outcomes.columns import UNANSWERED
from genprobe.outcomes.table import ANSWERS
from genprobe.records import DECODES
from genprobe.render.findings import READINGS
from genprobe.report.sources import direction, hashed, salt, without_types
from genprobe.report.words import REASONS
from genprobe.resources.packs import language_name, native
from genprobe.resources.page import ENGLISH, Words, load
from genprobe.text import strip_echo

if TYPE_CHECKING:
    from markupsafe import Markup

HERE = Path(__file__).parent

# Columns by which replies can be filtered, if they have more than one value -> their headings.
FACETS = {
    "run": "Model",
    "lang": "Language",
    "probe": "Question",
    "measures": "Asks about",
    "decode": "Reading",
    "wording": "Wording",
    "persona": "Persona",
    "instruction": "Question in",
    "answer": "Answer",
    "sentiment": "Sentiment",
    "side": "Side",
    "kind": "Kind",
    "thought_state": "Thought",
    "rule": "Rule",
    "usable": "Usable",
    "bias_type": "Bias type",
    "role": "Statement",
    "refused": "Refused",
    "conflict": "Conflict",
    "left_out": "Left out",
}
# Columns that are shown with a reply, but are no filters.
_FACTS = ("came", "reply_language", "sample")
_NUMBERS = {"p_yes": "P(yes)", "p_no": "P(no)", "outside": "other words", "negative": "P(negative)"}
# Columns of other judges can also be filtered by.
FACETS |= {
    name: column.heading
    for name, column in columns.known().items()
    if column.heading and name not in FACETS
}
_WORDS = {
    "decode": READINGS,
    "role": {"original": "stereotype"},
    "reply_language": {"und": "cannot be told", "mixed": "several"},
    "thought_state": {"closed": "before the reply", "open": "cut off in it", "hidden": "not shown"},
    "side": {
        "for": "argues for",
        "against": "argues against",
        "both": "argues both ways",
        "neither": "takes no side",
        "refusal": "refuses",
    },
}
# The order of the values of these columns; other values are ordered by name.
_ORDER: Mapping[str, Sequence[str]] = {
    "decode": DECODES,
    "answer": ANSWERS,
    "sentiment": ("negative", "neutral", "positive"),
    "side": ("for", "against", "both", "neither", "refusal"),
    "role": ("original", "contrast"),
}

# Columns whose values are words of genprobe, and those of `_WORDS`.
_SAID = ("answer", "sentiment", "kind", "usable", "refused", "conflict", "left_out")
_LONG = {"reply": "cut", "thought": "cut_thought"}  # columns of long texts -> key of their cuts
MOST = 20_000  # rows that a page shows; of more, a sample
LONGEST = 20_000  # most characters of a reply or a thought in the page
SHORTEST = 100  # texts are never cut shorter than this, even if the page becomes too large
# Characters of the block, in all and per reply: a page with 20,000 replies stays under 3 MB.
ROOM, ROOM_EACH = 2_200_000, 110


def section(
    tables: Mapping[str, pd.DataFrame],
    redact: bool | str,
    asked: str = FACETS["probe"],
    planned: int = 0,
    words: Words | None = None,
) -> Markup:
    """Return the section of a page that shows the replies of runs; empty if no run has any.

    tables: name of a run -> its outcomes (`table.outcomes`); tables of log-probabilities have no
    replies and are ignored. redact: show only labels and a hash of each item, without statements,
    prompts, replies and evidence; a text is the salt (`sources.salt`) of tables that are already
    without bias types. asked: the heading of the filter by question. planned: of how many requests
    the tables are, if they are a sample. words: the page's own words, by default English.
    """
    from markupsafe import Markup

    from genprobe.report import speech

    kept = {name: rows for name, rows in tables.items() if "request" in rows}
    if not any(map(len, kept.values())):
        return Markup("")
    rows = pd.concat([_rows(name, table) for name, table in kept.items()], ignore_index=True)
    salted = salt(redact)
    if redact is True:
        rows = without_types(rows, salted)
    rows = rows.astype(object).where(rows.notna(), None)
    answered = int((rows["came"] == "yes").sum())
    words = words or load(ENGLISH)
    payload = _payload(rows, list(kept), salted, asked, words)
    if words.translated:
        payload["words"] = words.browser()
    data, longest = _pack(payload, len(rows))
    page = (
        speech.environment(words)
        .get_template("replies.html")
        .render(
            en=Markup(words.mark),
            redact=bool(redact),
            rows=len(rows),
            answered=answered,
            runs=len(kept),
            data=data,
            longest=longest,
            planned=max(planned, len(rows)),
            thoughts="thought" in rows and rows["thought"].fillna("").any(),
        )
    )
    return Markup(page)


def _rows(run: str, table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of a table that the page needs."""
    came = pd.Series("yes", table.index, dtype=object).mask(unanswered(table), "no")
    told = _left_out(table)
    table = table.assign(run=pd.Series(run, table.index, dtype=object), left_out=told, came=came)
    names = [*FACETS, *_FACTS, *_NUMBERS, "statement", "text", "prompt", "response", "thought"]
    names.append("evidence")
    return table[[name for name in names if name in table]].astype(object)


def _left_out(table: pd.DataFrame) -> pd.Series:
    """Say for each row which figures leave it out, and why; None if it counts.

    The reasons are those of the metrics, such as `clear answers: refusal`.
    """
    reason, of = table["left_out"].astype(object).where(unanswered(table), ""), "everything"
    if "chosen" in table:
        reason, of = table["left_out"].astype(object), "choices"
    elif "answer" in table:
        reason, of = not_clear(table), "clear answers"
    elif "sentiment" in table:
        reason, of = not_told(table), "stories that count"
    elif "side" in table and "refused" in table:
        reason, of = no_essay(table), "essays"
    failure = table["failure"] if "failure" in table else pd.Series(None, table.index)

    def told(why: str, failure: Any) -> str | None:
        if why == "failed" and isinstance(failure, str):
            why = f"failed ({failure})"
        elif why not in UNANSWERED:
            return f"{of}: {why}" if why else None
        return f"everything: {why}"

    return pd.Series(list(map(told, reason, failure)), table.index, dtype=object)


# --- the payload


def _payload(
    rows: pd.DataFrame, runs: Sequence[str], salt: str, asked: str, words: Words
) -> dict[str, Any]:
    """Make the data that replies.js reads.

    Its `columns` are: name -> the distinct `values` (None last), their `labels` if these differ
    from the values, and the `codes` of the rows (left out if all are 0). No key comes from data.
    """
    columns = {"run": _coded(rows["run"], runs)}
    for name in (*FACETS, *_FACTS):
        if name in rows and name != "run":
            columns[name] = _column(name, rows[name], words)
    items = list(zip(rows["lang"], rows["statement"], strict=True))
    columns["item"] = _coded(hashed(salt, *item) if salt else item[1] for item in items)
    payload: dict[str, Any] = {"n": len(rows), "redact": bool(salt)}
    if not salt:
        columns |= _texts(rows)
    payload["columns"] = columns
    payload["facets"] = [
        [name, title]
        for name, title in (FACETS | {"probe": asked}).items()
        if name in columns and len(columns[name]["values"]) > 1
    ]
    payload["numbers"] = [
        [title, [None if v is None else round(float(v), 4) for v in rows[name]]]
        for name, title in _NUMBERS.items()
        if name in rows and rows[name].notna().any()
    ]
    none: dict[str, Any] = {"values": []}
    payload["languages"] = [
        [code, language_name(code), direction(code)]
        for code in dict.fromkeys(
            code
            for name in ("lang", "reply_language")
            for code in columns.get(name, none)["values"]
        )
        if code
    ]
    return payload


def _column(name: str, cells: Iterable[Any], words: Words) -> dict[str, Any]:
    """Return a column of labels for the payload, its values in the order of the filter's menu."""
    texts = [None if cell is None else _word(cell) for cell in cells]
    found = {text for text in texts if text is not None}
    names = _WORDS.get(name, {})
    if name in ("lang", "reply_language"):
        named = native if words.translated else language_name
        names = {code: named(code) for code in found} | dict(names)
    labels = {text: names.get(text, text) for text in found}
    if words.translated and (name in _WORDS or name in _SAID):
        labels = {text: _said(words, name, said) for text, said in labels.items()}
    order = list(_ORDER.get(name, ()))
    if name == "probe":  # in the order of the packs
        order = list(dict.fromkeys(t for t in texts if t))
    known = sorted(
        found, key=lambda t: (order.index(t) if t in order else len(order), labels[t].casefold(), t)
    )
    column = _coded(texts, known)
    if any(labels[text] != text for text in known):
        column["labels"] = [labels[text] for text in known]
    return column


def _said(words: Words, name: str, label: str) -> str:
    """Say a label in the reader's language, and why something was left out in a sentence."""
    of, _, why = label.rpartition(": ")
    if name in ("kind", "left_out"):
        why, more, rest = why.partition(" (")
        why = (words.phrase(REASONS.get(why, why)) or why) + more + rest
    else:
        why = words.phrase(why) or why
    return f"{words.phrase(of) or of}: {why}" if of else why


def _word(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _coded(cells: Iterable[Any], values: Iterable[Any] = ()) -> dict[str, Any]:
    """Return the distinct values and the code of each row (its place among the values).

    The given values come first, then the others in the order of the rows.
    """
    codes = {value: at for at, value in enumerate(values)}
    numbers = [codes.setdefault(cell, len(codes)) for cell in cells]
    column: dict[str, Any] = {"values": list(codes)}
    if len(codes) > 1:
        column["codes"] = numbers
    return column


def _texts(rows: pd.DataFrame) -> dict[str, Any]:
    """Return the columns of texts, each distinct text once.

    A prompt is kept as the text before and after the statement. A reply that begins with an exact
    echo of the prompt is kept without the echo.
    """
    nothing = [None] * len(rows)
    names = ("text", "prompt", "response", "evidence", "rule")
    cells = [rows[name].tolist() if name in rows else nothing for name in names]
    wordings, echoes, replies, places = [], [], [], []
    for text, prompt, response, evidence, rule in zip(*cells, strict=True):
        before, statement, after = (prompt or "").rpartition(text or "\0")
        wordings.append((before, after) if statement else (prompt or "",))
        at = strip_echo(prompt or "", response or "")
        # An echo that differs in white space or marks is rare, and stays visible.
        exact = bool(at) and response[:at] == prompt
        reply = response[at:] if exact else response
        echoes.append("exact" if exact else None)
        replies.append(reply)
        places.append(_place(reply or "", evidence or "", rule or "", 0 if exact else at))
    columns = {
        "text": _coded(cells[0]),
        "around": _coded(wordings),
        "echo": _coded(echoes, (None,)),
        "reply": _coded(replies),
        "place": _coded(places),
    }
    if any(cells[3]):
        columns["evidence"] = _coded(cells[3])
    if "thought" in rows and any(found := [cell or None for cell in rows["thought"]]):
        columns["thought"] = _coded(found)
    return columns


# With these rules, the evidence can also occur earlier, where the reply repeats the options.
_CHOSEN = ("word-after-options", "word-alone-after-options", "choice-by-number")


def _place(reply: str, evidence: str, rule: str, start: int) -> tuple[int, int]:
    """Find the evidence in a reply: start and end in UTF-16 units; (0, 0) if it does not occur.

    Whole words are preferred. All combining marks of the last letter are included. rule: the rule
    by which the reply was read. start: the first character to search.
    """
    if not evidence.strip():
        return 0, 0
    words = re.escape(evidence)
    found = [m.span() for m in re.finditer(rf"(?<![^\W_]){words}(?![^\W_])", reply[start:])]
    if found:
        which = -1 if rule == "labelled" else 1 if rule in _CHOSEN and len(found) > 1 else 0
        low, high = (start + at for at in found[which])
    else:
        low = reply.find(evidence, start)
        high = low + len(evidence)
    if low < 0:
        return 0, 0
    while high < len(reply) and unicodedata.category(reply[high]).startswith("M"):
        high += 1
    before = _units(reply[:low])
    return before, before + _units(reply[low:high])


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


# --- the block


def _pack(payload: dict[str, Any], rows: int) -> tuple[str, int]:
    """Write the payload as text for the page.

    Also returns the lengths at which its replies and thoughts were cut to fit.
    """
    room = max(ROOM, ROOM_EACH * rows)
    kept = [payload["columns"][name]["values"] for name in _LONG if name in payload["columns"]]
    lengths = sorted(len(text or "") for texts in kept for text in texts)
    limit = LONGEST
    while True:
        packed = _compress(_cut(payload, limit))
        size = 4 * len(packed) / 3
        if size <= room or limit <= SHORTEST:
            return base64.b64encode(packed).decode("ascii"), limit
        # Shorten in proportion to the excess, so that one or two rounds suffice.
        least = 0.95 * room / size * sum(min(n, limit) for n in lengths)
        limit = max(SHORTEST, min(limit - 1, _limit(lengths, least)))


def _limit(lengths: Sequence[int], total: float) -> int:
    """Find the largest n for which texts of these lengths, cut at n, fit into `total`."""
    for at, length in enumerate(lengths):  # in ascending order
        if length * (len(lengths) - at) > total:
            return int(total / (len(lengths) - at))
        total -= length
    return lengths[-1] if lengths else 0


def _cut(payload: dict[str, Any], limit: int) -> dict[str, Any]:
    """Return the payload with its replies and thoughts cut to `limit` characters.

    Adds `cut` and `cut_thought`: pairs of the code of a cut text and its original length.
    """
    found = dict(payload["columns"])
    cuts: dict[str, list[list[int]]] = {}
    for name, cut in _LONG.items():
        if name in found:
            texts = found[name]["values"]
            cuts[cut] = [[at, len(t)] for at, t in enumerate(texts) if t and len(t) > limit]
            found[name] = found[name] | {"values": [text and text[:limit] for text in texts]}
    return payload | {"columns": found} | cuts


def _compress(payload: dict[str, Any]) -> bytes:
    """Write as JSON in UTF-8, lone surrogates escaped, and compress by gzip; deterministic."""
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    return gzip.compress(text.encode("utf-8", "backslashreplace"), compresslevel=6, mtime=0)
