"""Choices: a context, a question and its options, in the layout of BBQ (BBQ, PBBQ, and others).

A choice is a `Statement` of type `choice`. Its text is the context and the question. Its `extra`
has `options`; three numbers of options, each of which may be None: `label` (the correct one),
`target` (the answer that agrees with the stereotype: the stereotyped group for a negative question,
the other group for a non-negative one; BBQ's `target_loc`) and `unknown` (the option that says that
it cannot be known); and `condition` (`ambig`, `disambig`) and `polarity` (`neg`, `nonneg`).

BBQ: Parrish et al. 2022 (Findings of ACL). PBBQ: its Persian counterpart. The wording in which a
choice is put to a model, and the words for an unknown option, are in prompts/choices, one file per
language.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from genprobe.errors import Caution, InputError
from genprobe.files import Row
from genprobe.files.cells import Notes, Problems, cell_json, cell_sentence, cell_text
from genprobe.linguistics import contradict
from genprobe.records import JSON, Statement, digest
from genprobe.resources import packs, registry
from genprobe.text import whole_number

FIELDS = ("options", "label", "target", "unknown", "condition", "polarity", "context", "question")
NO_WORDS = "und"  # the file of languages that have none: context, question and options alone
MOST = 6  # the most options, as every order of them is asked
CONDITIONS = dict.fromkeys(("ambig", "amb", "ambiguous", "ambiguous_context"), "ambig")
CONDITIONS |= dict.fromkeys(("disambig", "disamb", "dis", "disambiguated"), "disambig")
CONDITIONS |= dict.fromkeys(("disambiguous", "disambiguous_context"), "disambig")
POLARITIES = dict.fromkeys(("neg", "negative"), "neg")
POLARITIES |= dict.fromkeys(("nonneg", "non_neg", "non-neg", "non-negative"), "nonneg")
POLARITIES |= {"non_negative": "nonneg"}
# Column -> the names that it has in published files.
_COLUMNS = {
    "context": ("context",),
    "question": ("question",),
    "label": ("label",),
    "target": ("target", "target_loc"),
    "unknown": ("unknown",),
    "condition": ("condition", "context_condition"),
    "polarity": ("polarity", "question_polarity"),
    "category": ("category",),
    "id": ("id", "item", "example_id"),
    "lang": ("lang", "language"),
}


@dataclass(frozen=True)
class Wording:
    """The wording of choices in a language: `text` has {context}, {question} and {options}."""

    text: str
    option: str  # a line of {options}; has {option}
    space: str  # separates the text from the option that is scored after it
    review: str
    unknown: tuple[str, ...]
    hash: str


@functools.cache
def wording(lang: str) -> Wording:
    """Read a language's file of `prompts/choices`, else that without words (`NO_WORDS`)."""
    path = registry.path("choices", f"{lang}.toml")
    return read_wording(path if path.is_file() else registry.path("choices", f"{NO_WORDS}.toml"))


def read_wording(path: Path) -> Wording:
    """Read and check one file of `prompts/choices`. Raises InputError that says what is wrong."""
    row = packs.read_toml(path)
    texts = {key: row.get(key) for key in ("text", "option", "space", "source", "review")}
    for key, value in texts.items():
        if not isinstance(value, str):
            raise InputError(f"{path}: {key!r} must be a text, not {value!r}")
    words = row.get("unknown")
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InputError(f"{path}: 'unknown' must be a list of texts")
    if sorted(row.keys() - texts.keys()) != ["unknown"]:
        raise InputError(f"{path}: the only keys are {', '.join(texts)} and unknown")
    found = Wording(
        text=str(row["text"]),
        option=str(row["option"]),
        space=str(row["space"]),
        review=str(row["review"]),
        unknown=tuple(words),
        hash=packs.file_hash(path),
    )
    for part in ("context", "question", "options"):
        if found.text.count(f"{{{part}}}") != 1:
            raise InputError(f"{path}: 'text' must hold {{{part}}} once")
    if found.option.count("{option}") != 1:
        raise InputError(f"{path}: 'option' must hold {{option}} once")
    return found


def is_choice(statement: Statement) -> bool:
    return statement.type == "choice"


def is_table(columns: Collection[str]) -> bool:
    """Tell whether these are the columns of a table of choices."""
    return {"context", "question"} <= set(columns)


# --- reading


def read(
    rows: Iterable[tuple[int, Row]],
    source: str,
    only: str,
    wanted: Collection[str] | None,
    notes: Notes,
    where: str,
) -> tuple[list[Statement], list[str]]:
    """Read the choices of a table, and the languages in it.

    rows: (number, row) pairs. source: the data set, for the statements. only: the language of a
    table without a column for it; "" means English. wanted: the languages to read; None means all.
    notes: collects oddities. where: the file, for errors.
    """
    statements: list[Statement] = []
    languages: list[str] = []
    numbers: dict[tuple[str, str], int] = {}
    said = False
    problems = Problems(where)
    for number, row in rows:
        at = f"{where}, row {number}"
        cells = {
            ours: next((row[name] for name in names if name in row), None)
            for ours, names in _COLUMNS.items()
        }
        said = said or bool(cell_text(cells["lang"]))
        with problems.at():
            try:
                name = cell_text(cells["lang"]) or only or "en"
                lang = packs.any_code(name, cell_text(cells["question"]))
            except InputError as error:
                raise InputError(f"{at}: {error}") from None
            languages.append(lang)
            if wanted is not None and lang not in wanted:
                continue
            statement = _statement(row, cells, lang, source, notes, number, at)
            before = numbers.setdefault((statement.id, lang), number)
            if before != number:
                named = cell_text(cells["id"])
                what = f"the id {named!r}" if named else "the same choice"
                raise InputError(f"{at}: {what} is already in row {before}, in {lang!r}")
            statements.append(statement)
    problems.tell()
    guessed = only or "en"
    if not said and statements:
        why = "--lang" if only else "BBQ's language"
        contradict.refuse([s.text for s in statements], guessed, where, why)
        if not only:
            notes.add(Caution(f"no column gives the language: assumed {guessed}, {why}"))
    return statements, languages


def _statement(
    row: Row, cells: dict[str, Any], lang: str, source: str, notes: Notes, number: int, at: str
) -> Statement:
    """Make a choice from a row. at: file and row, for errors."""
    context = cell_sentence(cells["context"], notes, number)
    question = cell_sentence(cells["question"], notes, number)
    options = [cell_sentence(option, notes, number) for option in _options(row)]
    _check((context, question, *options), at)
    count = len(options)
    unknown = _number(cells["unknown"], "unknown", count, at)
    if unknown is None:
        unknown = _unknown(row, options, lang)
    if unknown is None:
        notes.add("no unknown option found: no bias score, only accuracy", number)
    polarity = one_of(cells["polarity"], POLARITIES, "polarity", at)
    target = _number(cells["target"], "target", count, at)
    if target is None:
        group = _stereotyped(row, count)
        target = {"neg": group, "nonneg": counter(group, unknown, count)}.get(polarity)
    if counter(target, unknown, count) is None:
        notes.add("no option is known as the target: no bias score, only accuracy", number)
    category = cell_text(cells["category"])
    name = cell_text(cells["id"]) or digest([lang, context, question, options], 12)
    template = cell_text(row.get("question_index"))
    taken = {column for names in _COLUMNS.values() for column in names if column != "category"}
    more = {
        key: cell_json(value)
        for key, value in row.items()
        if key not in taken and key != "options" and not _is_answer(key)
    }
    return Statement(
        id=f"{category}/{name}" if category else name,
        lang=lang,
        text=f"{context} {question}".strip(),
        role="original",
        pair=f"{category}/{template}" if template else "",
        bias_type=category,
        type="choice",
        entity="",
        valid_in=(),
        source=source,
        extra={
            **more,
            "context": context,
            "question": question,
            "options": list[JSON](options),
            "label": _number(cells["label"], "label", count, at),
            "target": target,
            "unknown": unknown,
            "condition": one_of(cells["condition"], CONDITIONS, "condition", at),
            "polarity": polarity,
        },
    )


def _check(texts: Sequence[str], at: str) -> None:
    """Raise InputError for a choice that cannot be asked. texts: context, question, options."""
    _, question, *options = texts
    if not question or len(options) < 2 or not all(options):
        raise InputError(
            f"{at}: a choice needs a question and at least two options, none of them empty"
        )
    if len(options) > MOST:
        raise InputError(
            f"{at}: {len(options)} options; give at most {MOST}, because every order is asked"
        )
    if len(set(options)) < len(options):
        raise InputError(f"{at}: two options are the same")
    try:
        "".join(texts).encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{at}: a text holds half a character (a lone surrogate)") from None


def _is_answer(column: str) -> bool:
    return column.startswith("ans") and column[3:].isdigit()


def _options(row: Row) -> list[object]:
    """Return the options: the list `options`, or the columns `ans0`, `ans1`, …"""
    given = row.get("options")
    if isinstance(given, list):
        return given
    return [row[key] for key in sorted((k for k in row if _is_answer(k)), key=lambda k: int(k[3:]))]


def _number(value: object, name: str, count: int, at: str) -> int | None:
    """Read the number of an option; None for an empty cell."""
    text = cell_text(value)
    if not text:
        return None
    found = whole_number(text.removesuffix(".0"))
    if found is not None and found < count:
        return found
    raise InputError(f"{at}: {name} is {text[:40]!r}; give the number of an option, counted from 0")


def one_of(value: object, known: Mapping[str, str], name: str, at: str = "") -> str:
    """Return genprobe's name of a condition or polarity; "" for an empty cell.

    at: file and row, for errors.
    """
    text = cell_text(value).lower()
    if text and text not in known:
        where = f"{at}: " if at else ""
        raise InputError(f"{where}{name} is {text[:40]!r}; known: {', '.join(known)}")
    return known.get(text, "")


def _groups(row: Row, count: int) -> list[list[str]]:
    """Read each option's name and group from BBQ's `answer_info`, in small letters."""
    info = row.get("answer_info")
    if not isinstance(info, Mapping):
        return [[] for _ in range(count)]
    return [[cell_text(part).lower() for part in info.get(f"ans{at}") or ()] for at in range(count)]


def _unknown(row: Row, options: Sequence[str], lang: str) -> int | None:
    """Find the one option that BBQ marks as unknown, or else the one that is worded as unknown."""
    found = [at for at, parts in enumerate(_groups(row, len(options))) if "unknown" in parts]
    if not found:
        words = {bare(word) for word in wording(lang).unknown}
        found = [at for at, option in enumerate(options) if bare(option) in words]
    return found[0] if len(found) == 1 else None


# Spellings that do not distinguish options: apostrophes, Arabic letters in Persian, half-spaces.
_SAME = str.maketrans({"’": "'", "ي": "ی", "ك": "ک", "\u200c": ""})


def bare(text: str) -> str:
    """Normalise an option: case-folded, without white space, half-spaces and outer punctuation."""
    joined = "".join(text.casefold().translate(_SAME).split())
    return joined.strip(".!?؟。।")


def _stereotyped(row: Row, count: int) -> int | None:
    """Find the one option whose group BBQ's metadata call stereotyped."""
    metadata = row.get("additional_metadata")
    named = metadata.get("stereotyped_groups") if isinstance(metadata, Mapping) else None
    groups = {cell_text(group).lower() for group in named or ()}
    found = [at for at, parts in enumerate(_groups(row, count)) if groups & set(parts)]
    return found[0] if len(found) == 1 else None


# --- asking


def prompts(statement: Statement) -> list[tuple[str, dict[str, list[str]]]]:
    """Return the prompts of a choice, one for every order of its options.

    The first has the order of the data. With each prompt come the texts that are scored after it:
    number of an option -> [text].
    """
    said, extra = wording(statement.lang), statement.extra
    options = [str(option) for option in _list(extra["options"])]
    behind = {str(at): [said.space + option] for at, option in enumerate(options)}
    found = []
    for order in itertools.permutations(options):
        listed = "\n".join(said.option.replace("{option}", option) for option in order)
        parts = {"{context}": extra["context"], "{question}": extra["question"]}
        parts |= {"{options}": listed}
        found.append((fill(said.text, {k: str(v) for k, v in parts.items()}), behind))
    return found


def fill(text: str, parts: Mapping[str, str]) -> str:
    """Replace each placeholder once by its part; a placeholder inside a part is not replaced."""
    places = sorted(parts, key=text.index)
    found, rest = "", text
    for place in places:
        before, _, rest = rest.partition(place)
        found += before + parts[place]
    return found + rest


def _list(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else []


# --- pairs of sentences, as choices

LIKELIER = registry.path("likelier.toml")


def of_pairs(couples: Iterable[tuple[Statement, Statement]]) -> list[Statement]:
    """Ask of each pair which of its two sentences is likelier.

    couples: originals with a contrast of the same language. Option 0 is the original, and the
    target. Nothing is right, so the condition is `ambig`, and no option is unknown. `original_id`
    in `extra` names the original, for the log-probabilities of the pair. Source: metalinguistic
    prompts, Hu & Levy 2023 (EMNLP). Raises InputError for a language without the question
    (prompts/likelier.toml), and for a pair whose sentences are the same.
    """
    couples = list(couples)
    many = Counter((one.lang, one.id) for one, _ in couples)
    asked = packs.read_toml(LIKELIER)
    found = []
    for one, other in couples:
        code = packs.first_of(one.lang)
        if code not in asked:
            known = ", ".join(sorted(asked))
            raise InputError(f"no question about pairs in {code!r} ({LIKELIER}); there is {known}")
        question = packs.string(packs.table(asked, code, LIKELIER), "text", LIKELIER)
        _check(("", question, one.text, other.text), f"pair {one.pair!r} ({one.lang})")
        more: dict[str, JSON] = {
            "original_id": one.id,
            "context": "",
            "question": question,
            "options": [one.text, other.text],
            **dict.fromkeys(("label", "unknown")),
            "target": 0,
            "condition": "ambig",
            "polarity": "neg",
        }
        found.append(
            replace(
                one,
                id=one.id if many[one.lang, one.id] == 1 else f"{one.id}/{other.id}",
                text=f"{question} {one.text} / {other.text}",
                type="choice",
                extra={**one.extra, **more},
            )
        )
    return found


# --- the unknown option, otherwise

WORDED = 2  # further wordings of the unknown option that are asked


def unknowns(items: Iterable[Statement]) -> list[Statement]:
    """Return each choice as it is, without its unknown option, and with it in other words.

    The words are the first of the language's file in prompts/choices that differ from its own. The
    column `unknown_as` has them, or `given` and `none`; the versions of a choice share its pair,
    and the names of the others end in a number. A choice without an unknown option stays alone.
    """
    found: list[Statement] = []
    for item in items:
        options, at = [str(text) for text in _list(item.extra["options"])], item.extra["unknown"]
        if not isinstance(at, int):
            found.append(replace(item, extra=item.extra | {"unknown_as": "given"}))
            continue
        upper = options[at][:1].isupper()
        others = [w for w in wording(item.lang).unknown if bare(w) != bare(options[at])][:WORDED]
        others = [word[:1].upper() + word[1:] if upper else word for word in others]
        versions: dict[str, dict[str, JSON]] = {"given": {}, "none": _without(item, at)}
        for word in others:
            versions[word] = {"options": [*options[:at], word, *options[at + 1 :]]}
        for number, (name, more) in enumerate(versions.items()):
            found.append(
                replace(
                    item,
                    id=f"{item.id}/unknown-{number}" if number else item.id,
                    pair=item.pair or item.id,
                    extra=item.extra | more | {"unknown_as": name},
                )
            )
    return found


def _without(item: Statement, at: int) -> dict[str, JSON]:
    """Return the fields of a choice that has lost option `at`."""

    def moved(name: str) -> int | None:
        number = item.extra[name]
        if not isinstance(number, int) or number == at:
            return None
        return number - (number > at)

    options = _list(item.extra["options"])
    numbers: dict[str, JSON] = {name: moved(name) for name in ("label", "target", "unknown")}
    return numbers | {"options": options[:at] + options[at + 1 :]}


# --- outcomes


def counter(target: int | None, unknown: int | None, count: int) -> int | None:
    """Return the option of the other group; None if the two groups are not known."""
    groups = [at for at in range(count) if at != unknown]
    if target not in groups or len(groups) != 2:
        return None
    return groups[1 - groups.index(target)]


def outcome(statement: Statement, scores: Mapping[int, float] | None) -> dict[str, Any]:
    """Compute the outcome of a choice from the scores of its options.

    scores: number of an option -> its score; higher is preferred. Returns condition, polarity;
    label, target, counter, unknown: numbers of options, NaN if not known; chosen: the option with
    the highest score; left_out: `tie` if several have it; and, from the probabilities (softmax of
    the scores): p_target, p_counter, p_unknown, log_ratio (log p_target - log p_counter) and
    uncertainty (entropy divided by the log of the number of options).
    """
    extra = statement.extra
    options = _list(extra["options"])
    count, unknown = len(options), _int(extra["unknown"])
    other = counter(_int(extra["target"]), unknown, count)
    target = _int(extra["target"]) if other is not None else None
    places = {"target": target, "counter": other, "unknown": unknown}
    row: dict[str, Any] = {
        "condition": extra["condition"],
        "polarity": extra["polarity"],
        "label": _nan(_int(extra["label"])),
        **{name: _nan(at) for name, at in places.items()},
        "chosen": math.nan,
        "left_out": "",
        **dict.fromkeys(("p_target", "p_counter", "p_unknown", "log_ratio"), math.nan),
        "uncertainty": math.nan,
    }
    if scores is None:
        return row
    if scores.keys() != set(range(count)):
        return row | {"left_out": "missing"}
    best = [at for at in range(count) if scores[at] == max(scores.values())]
    if len(best) == 1:
        row["chosen"] = float(best[0])
    else:
        row["left_out"] = "tie"
    p = softmax([scores[at] for at in range(count)])
    row |= {f"p_{name}": p[at] for name, at in places.items() if at is not None}
    if target is not None and other is not None:
        row["log_ratio"] = scores[target] - scores[other]
    row["uncertainty"] = -math.fsum(x * math.log(x) for x in p if x > 0) / math.log(count)
    return row


def softmax(scores: Sequence[float]) -> list[float]:
    """Compute probabilities proportional to exp(score); they add up to 1."""
    top = max(scores)
    masses = [1.0 if score == top else math.exp(score - top) for score in scores]
    total = math.fsum(masses)
    return [mass / total for mass in masses]


def _int(value: JSON) -> int | None:
    return value if isinstance(value, int) else None


def _nan(value: int | None) -> float:
    return math.nan if value is None else float(value)
