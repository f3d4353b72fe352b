"""Have a model continue ambiguous contexts; people must check the continuations before use.

The model is given the prompt of PBBQ (Appendix D; prompts/disambiguation), which reverses the logic
of the stereotype, and the same prompt with the logic of the stereotype (ours). The continuations go
into the columns `disambiguated_reversed` and `disambiguated_aligned` of a table of contexts (see
`contexts`). In them the names of the two entities are replaced by `{STEREOTYPED}` and `{OTHER}`, so
that they fit every pair of entities, in both orders. The column `to_read` says what a person must
check in a row; `fill` refuses a row until a person writes yes into `read_by_person`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from genprobe.curation import tables
from genprobe.engines import Engine, Sampling
from genprobe.errors import EngineError, InputError
from genprobe.files import Row
from genprobe.files.cells import cell_list, cell_text
from genprobe.files.rows import Table
from genprobe.linguistics import thoughts
from genprobe.records import Request, Response
from genprobe.resources import packs, registry

VERSION = "2"
FOLDER = "disambiguation"
NEEDS = ("context", "stereotyped", "other", "question_negative", "question_nonnegative")
# Who has the trait in a continuation -> the file of its prompt, and what a person must check.
PROMPTS = {
    "reversed": ("pbbq", "does it reverse the stereotype, and read well?"),
    "aligned": ("pbbq-aligned", "does it follow the stereotype, and read well?"),
}
COLUMNS = (
    *(f"disambiguated_{logic}" for logic in PROMPTS),
    *("disambiguated_by", "to_read", "read_by_person"),
)
_PLACES = ("stereotype", "other", "stereotyped", *NEEDS[3:], "context")


def load(name: str = "pbbq") -> tuple[str, int, str]:
    """Read a prompt of prompts/disambiguation: its text, the most tokens of a reply, and its hash.

    Raises InputError if the prompt does not exist or lacks a placeholder.
    """
    registry.check(FOLDER, name)
    path = registry.path(FOLDER, f"{name}.toml")
    row = packs.read_toml(path)
    text, most = row.get("text"), row.get("max_tokens")
    if not isinstance(text, str) or not isinstance(most, int):
        raise InputError(f"{path}: 'text' must be a text, 'max_tokens' a whole number")
    for place in _PLACES:
        if text.count(f"{{{place}}}") != 1:
            raise InputError(f"{path}: 'text' must hold {{{place}}} once")
    return text.strip(), most, packs.file_hash(path)


def run(source: str | Table, engine: Engine, seed: int = 0) -> tuple[list[Row], list[str]]:
    """Have a model write the continuations that rows of a table lack, of both kinds.

    source: a table of contexts with the columns that `fill` needs, and `stereotype` (the stereotype
    in words). A row with a continuation in `disambiguated`, which does not say its kind, is left as
    it is. engine: an open engine, which the caller closes. seed: of sampling. Returns the rows and
    their columns. Raises InputError for a row that lacks something, before the model is asked, and
    EngineError if the model leaves prompts unanswered.
    """
    prompts = {logic: load(name) for logic, (name, _) in PROMPTS.items()}
    rows = tables.read(source)
    there = list(dict.fromkeys(name for _, row in rows for name in row))
    for name in (*NEEDS, "stereotype"):
        tables.need(source, there, (name,), "for the prompt")
    names = tables.name_rows(rows, ["context", "lang"], source)
    asked: dict[str, tuple[int, str, dict[str, str]]] = {}
    requests = []
    for at, ((number, row), name) in enumerate(zip(rows, names, strict=True)):
        for logic, (prompt, _, _) in prompts.items():
            if cell_text(row.get("disambiguated")) or cell_text(row.get(f"disambiguated_{logic}")):
                continue
            parts = _parts(row, f"{source}, row {number}")
            messages = [{"role": "user", "content": _put(prompt, parts)}]
            lang = cell_text(row.get("lang"))
            pack = f"disambiguate/{VERSION}"
            request = Request.asked(name, lang, pack, logic, messages, base=seed)
            asked[request.id] = (at, logic, parts)
            requests.append(request)
    most = max(most for _, most, _ in prompts.values())
    replies: dict[int, dict[str, tuple[str, str]]] = {}
    for record in engine.generate(requests, Sampling(max_tokens=most)) if requests else ():
        at, logic, parts = asked[record.request]
        reply = _reply(record) if isinstance(record, Response) else ""
        replies.setdefault(at, {})[logic] = _placed(reply, parts, PROMPTS[logic][1])
    answered = sum(map(len, replies.values()))
    if answered < len(requests):
        raise EngineError(f"{len(requests) - answered} of {len(requests)} were not answered")
    who = f"{Path(engine.identity.model).name}@{engine.identity.revision[:12]}"
    versions = "+".join(version for _, _, version in prompts.values())
    step = f"disambiguate/{VERSION}|prompt:{versions}|model:{who}|s{seed}"
    made = []
    for at, ((_, row), name) in enumerate(zip(rows, names, strict=True)):
        one: dict[str, Any] = {"id": name} | row | {"id": name}
        one |= {column: row.get(column, "") for column in COLUMNS}
        if at in replies:
            told = {logic: replies[at][logic] for logic in PROMPTS if logic in replies[at]}
            one |= {f"disambiguated_{logic}": text for logic, (text, _) in told.items()}
            one["disambiguated_by"] = who
            one["to_read"] = " ".join(f"{logic}: {odd}" for logic, (_, odd) in told.items())
            one |= {"read_by_person": "", tables.HISTORY: tables.history([row], step, name)}
        made.append(one)
    return made, tables.columns(made, COLUMNS)


def _parts(row: Row, where: str) -> dict[str, str]:
    """Make the texts that fill the prompt: a row, with its first two entities in context order."""
    lists = {name: cell_list(row.get(name), ",;|") for name in ("stereotyped", "other", "lexical")}
    if not lists["stereotyped"] or not lists["other"]:
        raise InputError(f"{where}: needs 'stereotyped' and 'other'")
    first, second = lists["stereotyped"][0], lists["other"][0]
    context = cell_text(row.get("context"))
    for place, name in (("{FIRST}", first), ("{SECOND}", second)):
        context = context.replace(place, name)
    context = context.replace("{LEXICAL}", lists["lexical"][0] if lists["lexical"] else "")
    parts = {"stereotyped": first, "other": second, "context": " ".join(context.split())}
    for name in ("stereotype", "question_negative", "question_nonnegative"):
        text = cell_text(row.get(name))
        if not text:
            raise InputError(f"{where}: {name!r} is empty")
        parts[name] = text.replace("{STEREOTYPED}", first).replace("{OTHER}", second)
    return parts


def _put(prompt: str, parts: dict[str, str]) -> str:
    """Replace each placeholder by its part; a placeholder inside a part is not replaced."""
    pattern = re.compile("|".join(f"{{{name}}}" for name in map(re.escape, parts)))
    return pattern.sub(lambda found: parts[found[0][1:-1]], prompt)


def _reply(response: Response) -> str:
    """Return the reply without its thought, on one line, and without surrounding quotes."""
    answer = thoughts.part(response.text, thoughts.opens(response.sent)).reply
    return " ".join(answer.split()).strip('"“”«» ')


def _placed(reply: str, parts: dict[str, str], check: str) -> tuple[str, str]:
    """Replace the entities in a continuation by placeholders; say what a person must check.

    check: what must always be checked.
    """
    odd = []
    if not reply:
        return "", "the model wrote nothing"
    if parts["context"].casefold() in reply.casefold():
        reply = re.sub(re.escape(parts["context"]), "", reply, flags=re.IGNORECASE).strip()
        odd.append("it repeated the initial text, which was taken away")
    pattern = re.compile(
        "|".join(rf"(?<!\w){re.escape(parts[name])}(?!\w)" for name in ("stereotyped", "other")),
        re.IGNORECASE,
    )
    same = {parts["stereotyped"].casefold(): "{STEREOTYPED}", parts["other"].casefold(): "{OTHER}"}
    text = pattern.sub(lambda found: same[found[0].casefold()], reply)
    lacks = [place for place in same.values() if place not in text]
    if lacks:
        odd.append(f"it does not name {' nor '.join(lacks)}")
    if len(re.findall(r"[.!?؟。]+(?:\s|$)", text)) > 2:
        odd.append("it is longer than two sentences")
    return text, "; ".join([*odd, check])
