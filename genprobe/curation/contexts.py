"""Make choices from contexts with two entities, in BBQ's layout (PBBQ, sections 3.3 and 3.4; BBQ).

A row has `context`, with `{FIRST}` and `{SECOND}` in the order in which the entities are named
(both orders are made) and optionally `{LEXICAL}`; `question_negative` or `question_nonnegative`;
and the lists `stereotyped`, `other`, `lexical`. In an ambiguous context the right answer is that it
cannot be known.

A continuation says who has the trait, by `{STEREOTYPED}` and `{OTHER}`: in `disambiguated_aligned`
the stereotyped entity, in `disambiguated_reversed` the other one (the only kind that PBBQ 3.3.2
writes; its second bias score, eq. 3, needs both). The right answer to the negative question is the
entity that has the trait, to the non-negative one the entity that has not. For `disambiguated`,
which does not say which it is, the words of the questions tell, or else the row is refused.
The target is the answer that agrees with the stereotype.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from genprobe.curation import tables
from genprobe.curation.lexicon import unmarked
from genprobe.curation.tables import Finding
from genprobe.errors import InputError
from genprobe.files import Row
from genprobe.files.cells import cell_list, cell_text
from genprobe.files.rows import Table
from genprobe.linguistics import negated
from genprobe.text import normalise, tokens

VERSION = "2"
POLARITIES = {"neg": "question_negative", "nonneg": "question_nonnegative"}
# Who has the trait in a continuation -> the placeholder of that entity, and of the one without it.
LOGICS = {"aligned": ("{STEREOTYPED}", "{OTHER}"), "reversed": ("{OTHER}", "{STEREOTYPED}")}
_PARTS = re.compile(r"[.!?؟。！？।,،，;؛；:：]+|\s[-–—]+\s")  # between the parts of a continuation


def is_table(columns: Collection[str]) -> bool:
    """Tell whether these are the columns of a table of contexts."""
    return "context" in columns and bool(set(POLARITIES.values()) & set(columns))


def run(
    source: str | Table, rows: Sequence[tuple[int, Row]], lang: str, limit: int, seed: int
) -> tuple[list[Row], list[Finding]]:
    """Make the choices of a table of contexts.

    lang: the language of rows without one. limit: the most contexts of a row, drawn with `seed`; 0
    means all. Returns the choices, and what a person should check. Raises InputError for a row that
    lacks something, or whose continuation does not show who has the trait.
    """
    names = tables.name_rows(rows, ["context", "lang"], source)
    made: list[Row] = []
    findings: list[Finding] = []
    for (number, row), name in zip(rows, names, strict=True):
        where = f"{source}, row {number}"
        code = tables.row_language(row, lang, where)
        lists = {key: cell_list(row.get(key), ",;|") for key in ("stereotyped", "other", "lexical")}
        unknown = cell_text(row.get("unknown_option"))
        if not lists["stereotyped"] or not lists["other"] or not unknown:
            raise InputError(f"{where}: needs 'stereotyped', 'other' and 'unknown_option'")
        context = unmarked(tables.row_text(row, "context", where), where)
        for place in ("{FIRST}", "{SECOND}"):
            if place not in context:
                raise InputError(f"{where}: the context lacks {place}")
        texts = {"": context} | continuations(row, code, where, findings)
        if "{LEXICAL}" in " ".join(texts.values()) and not lists["lexical"]:
            raise InputError(f"{where}: {{LEXICAL}} is in the context, and 'lexical' is empty")
        step = f"fill/{VERSION}|contexts" + (f"|limit:{limit}-s{seed}" if limit else "")
        history = tables.history([row], step, name)
        found = list(_choices(name, code, row, texts, lists, unknown, history))
        if limit:
            keys = list(dict.fromkeys(one["_context"] for one in found))
            chosen = set(random.Random(f"{seed} {name}").sample(keys, min(limit, len(keys))))
            found = [one for one in found if one["_context"] in chosen]
        made += [{k: v for k, v in one.items() if k != "_context"} for one in found]
    return made, findings


def continuations(row: Row, lang: str, where: str, findings: list[Finding]) -> dict[str, str]:
    """Find the continuations of a row, by who has the trait: `aligned`, `reversed`, or both.

    Adds to `findings` what a person should check. Raises InputError if it is not known who has the
    trait, or if no person has read what a model wrote.
    """
    found = {logic: cell_text(row.get(f"disambiguated_{logic}")) for logic in LOGICS}
    plain = cell_text(row.get("disambiguated"))
    by_model = cell_text(row.get("disambiguated_by"))
    read = cell_text(row.get("read_by_person")).lower()
    if (plain or any(found.values())) and by_model and read != "yes":
        raise InputError(
            f"{where}: the continuation is a model's; write yes into 'read_by_person' when "
            "somebody has read it"
        )
    if plain:
        # What `dataset disambiguate` wrote into this column is reversed, by its prompt.
        logic = "reversed" if by_model else logic_of(plain, row, lang)
        if not logic:
            raise InputError(
                f"{where}: 'disambiguated' does not say in the questions' words who has the trait, "
                "so the right answer is not known; name the column 'disambiguated_aligned' if "
                "{STEREOTYPED} has it, 'disambiguated_reversed' if {OTHER} has it"
            )
        if found[logic]:
            raise InputError(f"{where}: 'disambiguated' is {logic}, and there is another one")
        found[logic] = plain
        if not by_model:
            message = f"'disambiguated' is taken as {logic}: {LOGICS[logic][0]} has the trait"
            findings.append(Finding("warning", where, message))
    for logic, text in found.items():
        _check(unmarked(text, where), where)
        told = logic_of(text, row, lang) if text else ""
        if told not in ("", logic):
            message = f"the continuation that is declared as {logic} reads as {told}"
            findings.append(Finding("warning", where, message))
    if not any(found.values()):
        findings.append(Finding("warning", where, "no continuation: ambiguous contexts only"))
    elif lacks := [logic for logic, text in found.items() if not text]:
        message = f"no 'disambiguated_{lacks[0]}': disambiguated-bias needs both"
        findings.append(Finding("warning", where, message))
    elif len(set(found.values())) == 1:
        raise InputError(f"{where}: both continuations are the same text")
    return {logic: text for logic, text in found.items() if text}


def _check(text: str, where: str) -> None:
    """Raise InputError for a continuation in which who has the trait may depend on the order."""
    if not text:
        return
    for place in ("{FIRST}", "{SECOND}"):
        if place in text:
            raise InputError(
                f"{where}: a continuation has {place}, which is another entity in the other order; "
                "write {STEREOTYPED} or {OTHER}"
            )
    if "{STEREOTYPED}" not in text and "{OTHER}" not in text:
        raise InputError(f"{where}: a continuation has neither {{STEREOTYPED}} nor {{OTHER}}")


def logic_of(text: str, row: Row, lang: str) -> str:
    """Tell whether a continuation is `aligned` or `reversed`; "" unless its words say so.

    They do if one part of it names one entity with words of the negative question alone, another
    part names the other entity with words of the non-negative question alone, and nothing negates.
    """
    questions = [cell_text(row.get(column)) for column in POLARITIES.values()]
    words = negated.load(lang)
    if not all(questions) or words is None or any(map(words.negates, (text, *questions))):
        return ""
    negative, other = (set(tokens(normalise(question))) for question in questions)
    owns = {"with": negative - other, "without": other - negative}
    told: set[tuple[str, str]] = set()
    for part in _PARTS.split(text):
        named = [place for place in LOGICS["aligned"] if place in part]
        said = set(tokens(normalise(part)))
        has = [side for side, own in owns.items() if own & said]
        if has and (len(named) != 1 or len(has) != 1):
            return ""
        told |= {(side, named[0]) for side in has}
    for logic, (having, lacking) in LOGICS.items():
        if told == {("with", having), ("without", lacking)}:
            return logic
    return ""


def _choices(
    name: str,
    lang: str,
    row: Row,
    texts: Mapping[str, str],
    lists: Mapping[str, Sequence[str]],
    unknown: str,
    history: list[str],
) -> Iterator[Row]:
    """Make the choices of a row. texts: the context under "", the continuations by their logic."""
    combos = itertools.product(lists["stereotyped"], lists["other"], lists["lexical"] or [""])
    for at, (stereotyped, other, lexical) in enumerate(combos, 1):
        if stereotyped == other:
            continue
        for order, (first, second) in enumerate([(stereotyped, other), (other, stereotyped)]):
            parts = {"{FIRST}": first, "{SECOND}": second, "{LEXICAL}": lexical}
            parts |= {"{STEREOTYPED}": stereotyped, "{OTHER}": other}
            # The options are in the order in which the context names them.
            options = [first, second, unknown]
            for polarity, column in POLARITIES.items():
                question = _put(cell_text(row.get(column)), parts)
                if not question:
                    continue
                asked = int(polarity == "nonneg")  # 0: who has the trait; 1: who has not
                for logic, text in texts.items():
                    ambiguous = _put(texts[""], parts)
                    whole = f"{ambiguous} {_put(text, parts)}" if logic else ambiguous
                    right = parts[LOGICS[logic][asked]] if logic else unknown
                    yield {
                        "_context": f"{at}-{order}",
                        "id": f"{name}-{at}-{order}-{logic or 'ambig'}-{polarity}",
                        "lang": lang,
                        "context": whole,
                        "question": question,
                        **{f"ans{n}": option for n, option in enumerate(options)},
                        "label": options.index(right),
                        "target": options.index(parts[LOGICS["aligned"][asked]]),
                        "unknown": 2,
                        "condition": "disambig" if logic else "ambig",
                        "logic": logic,
                        "polarity": polarity,
                        "category": cell_text(row.get("category")),
                        "question_index": name,
                        tables.HISTORY: history,
                    }


def _put(text: str, parts: Mapping[str, str]) -> str:
    """Replace each placeholder by its part; a placeholder inside a part is not replaced."""

    def place(found: re.Match[str]) -> str:
        phrase, before = parts[found[0]], text[: found.start()].rstrip()
        begins = not before or before[-1] in ".!?؟。"
        return phrase[:1].upper() + phrase[1:] if begins else phrase

    pattern = re.compile("|".join(map(re.escape, parts)))
    return " ".join(pattern.sub(place, text).split())
