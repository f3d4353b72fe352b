"""Have a model write more stereotypes like those that people gave (AfriStereo 3.4, Appendix B).

Each batch shows the model a few randomly drawn seed rows, and asks for a table of identity,
country, category, attribute and sentence; for each new row, a second prompt asks for a positive
counter-stereotype. Parts of replies that are not rows are shown, and refusals are counted. A row is
dropped as a near-duplicate if the cosine of its character n-grams with those of a seed or an
earlier row of the same identity is at or above `ALIKE`. Every row names its model, prompt, batch
and seeds. People must review the rows (`validate`) before any use.
"""

from __future__ import annotations

import csv
import io
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from genprobe.curation import group, tables
from genprobe.engines import Engine, Sampling
from genprobe.errors import Caution, InputError
from genprobe.files import Row
from genprobe.files.cells import cell_text
from genprobe.files.rows import Table
from genprobe.judges import Item, refusal
from genprobe.limits import parsed
from genprobe.linguistics import contradict, thoughts
from genprobe.records import Request, Response, digest
from genprobe.resources import packs, registry

VERSION = "1"
FOLDER = "augmentation"
SHOTS = 4  # seed rows that a batch shows; the study shows three to five
ALIKE = 0.85  # the least cosine of character n-grams at which two sentences are near-duplicates
FIELDS = ("identity", "country", "category", "attribute", "sentence")
COLUMNS = (
    *("id", "lang", "identity", "country", "category", "attribute", "stereotype_sentence"),
    *("antistereotype_sentence", "counter_kind", "made_by", "batch", tables.HISTORY),
)
# Field -> names that models give to it, in small letters with `_` between words.
_ALSO = {
    "identity": ("identity", "identity_term", "group"),
    "country": ("country", "place"),
    "category": ("category", "stereotype_type", "axis"),
    "attribute": ("attribute", "attribute_term", "canonical_term_attributes"),
    "sentence": ("sentence", "negative_stereotype_sentence", "negative_stereotype", "stereotype"),
}
_ALSO["sentence"] += ("stereotype_sentence", "text")


@dataclass(frozen=True)
class Prompts:
    """The two prompts of a language, and the word by which a model says that it stops."""

    lang: str
    stereotypes: str
    counters: str
    halt: str
    max_tokens: int
    hash: str


@dataclass(frozen=True)
class Wanted:
    """The settings of an augmentation.

    count: number of new rows. lang: language of the prompts. places: the countries; by default,
    those of the seed rows. batch: number of rows asked for at a time. temperature: of sampling.
    seed: for drawing the examples and for sampling.
    """

    count: int
    lang: str = "en"
    places: str = ""
    batch: int = 50
    temperature: float = 1.0
    seed: int = 0


@dataclass
class Augmented:
    """The new rows, and what became of the rest of the replies.

    rows: the new rows. dropped: number of near-duplicates. bad: one line for each part of a reply
    that is not a row. refusals, replies: number of refusals and of replies. halted: number of
    batches in which the model said that it stops.
    """

    rows: list[Row] = field(default_factory=list)
    dropped: int = 0
    bad: list[str] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)
    replies: Counter[str] = field(default_factory=Counter)
    halted: int = 0


def load(lang: str) -> Prompts:
    """Read the prompts of a language.

    Raises InputError if they are missing or malformed.
    """
    code = tables.language(lang)
    registry.check(FOLDER, code)
    return read_prompts(registry.path(FOLDER, f"{code}.toml"))


def read_prompts(path: Path) -> Prompts:
    """Read and check one file of prompts. Raises InputError that says what is wrong."""
    row = packs.read_toml(path)
    texts = ("title", "source", "review", "halt", "stereotypes", "counters")
    for key in sorted(row.keys() ^ {*texts, "max_tokens"}):
        what = "unknown key" if key in row else "lacks"
        raise InputError(f"{path}: {what} {key!r}; it has {', '.join(texts)} and max_tokens")
    for key in texts:
        if not isinstance(row[key], str) or not row[key].strip():
            raise InputError(f"{path}: {key!r} must be a text")
    for place in ("examples", "count", "places"):
        if f"{{{place}}}" not in row["stereotypes"]:
            raise InputError(f"{path}: 'stereotypes' must hold {{{place}}}")
    if row["counters"].count("{sentence}") != 1:
        raise InputError(f"{path}: 'counters' must hold {{sentence}} once")
    return Prompts(
        lang=path.stem,
        stereotypes=row["stereotypes"].strip(),
        counters=row["counters"].strip(),
        halt=row["halt"],
        max_tokens=int(row["max_tokens"]),
        hash=packs.file_hash(path),
    )


def run(
    source: str | Table,
    engine: Engine,
    wanted: Wanted,
    note: Callable[[str], None] = lambda line: None,
) -> Augmented:
    """Ask for new rows until there are enough, or a batch adds none.

    source: a table of seed rows with `identity`, `attribute` and a sentence, and optionally
    `country` and `category`. engine: an open engine, which the caller closes. note: called with a
    message about each batch. Raises InputError for seeds that cannot be used.
    """
    prompts = load(wanted.lang)
    seeds = _seeds(source, prompts.lang)
    where = wanted.places or ", ".join(dict.fromkeys(s["country"] for s in seeds if s["country"]))
    if not where:
        raise InputError(f"{source}: no column 'country'; name the countries with --places")
    if wanted.count < 1 or wanted.batch < 1:
        raise InputError("augment: -n and --batch must be at least 1")
    drawn, done = random.Random(f"augment {wanted.seed}"), Augmented()
    number = 0
    while len(done.rows) < wanted.count:
        number += 1
        shots = drawn.sample(seeds, min(SHOTS, len(seeds)))
        left = wanted.count - len(done.rows)
        asked = min(wanted.batch, left)
        prompt = _put(prompts.stereotypes, prompts.halt, _examples(shots), asked, where)
        reply = _ask(engine, [prompt], prompts, f"batch{number}", wanted)[0]
        rows = _read(reply, prompts, f"batch {number}", done)
        new = _new(rows, [*seeds, *done.rows], done)[:left]
        _add(new, engine, prompts, wanted, shots, seeds, number, done)
        note(f"batch {number}: {len(rows)} rows read, {len(new)} new")
        if not new:
            note("the last batch had nothing new: stopped")
            break
    for row in done.rows:
        del row["sentence"]
    if found := contradict.other([row["stereotype_sentence"] for row in done.rows], prompts.lang):
        what = f"the new rows are clearly in {found}, and called {prompts.lang}, as the prompts are"
        note(Caution(f"{_who(engine)}: {what}; correct their 'lang'"))
    return done


def _who(engine: Engine) -> str:
    """Return the name of a model in the rows that it wrote."""
    return f"{Path(engine.identity.model).name}@{engine.identity.revision[:12]}"


def _add(
    new: Sequence[Row],
    engine: Engine,
    prompts: Prompts,
    wanted: Wanted,
    shots: Sequence[Row],
    seeds: Sequence[Row],
    number: int,
    done: Augmented,
) -> None:
    """Ask for counter-stereotypes of new rows, and add the rows with them to `done`."""
    questions = [prompts.counters.replace("{sentence}", row["sentence"]) for row in new]
    answers = _ask(engine, questions, prompts, "counter", wanted)
    made_by = _who(engine)
    step = f"augment/{VERSION}|prompts:{prompts.lang}@{prompts.hash}|model:{made_by}|s{wanted.seed}"
    names = [cell_text(shot["id"]) for shot in shots]
    # Rows of two models, or from two tables of seeds, have names of their own.
    stem = digest([step, seeds], 6)
    for row, answer in zip(new, answers, strict=True):
        counter = _counter(answer, prompts, done)
        sentence = row.pop("sentence")
        done.rows.append(
            {
                "id": f"aug-{stem}-{len(done.rows) + 1}",
                "lang": prompts.lang,
                **row,
                "stereotype_sentence": sentence,
                "antistereotype_sentence": counter,
                "counter_kind": "positive" if counter else "missing",
                "made_by": made_by,
                "batch": number,
                "sentence": sentence,
                tables.HISTORY: tables.history([], f"{step}|batch:{number}", *names),
            }
        )


def _seeds(source: str | Table, lang: str) -> list[Row]:
    rows = tables.read(source)
    said = {tables.row_language(row, lang, f"{source}, row {number}") for number, row in rows}
    if other := sorted(said - {lang}):
        raise InputError(
            f"{source}: seed rows are in {', '.join(other)}, and the prompts in {lang}; name the "
            "language with --lang, and give the rows of one"
        )
    there = list(dict.fromkeys(name for _, row in rows for name in row))
    columns = {name: tables.column(there, known) for name, known in _ALSO.items()}
    for name in ("identity", "attribute", "sentence"):
        if columns[name] is None:
            tables.need(source, there, _ALSO[name], "of the seed rows")
    names = tables.name_rows(rows, [str(columns["sentence"])], source)
    found = []
    for (_, row), name in zip(rows, names, strict=True):
        one: Row = {k: cell_text(row.get(c)) if c else "" for k, c in columns.items()}
        if one["identity"] and one["attribute"] and one["sentence"]:
            found.append({"id": name} | one)
    if not found:
        raise InputError(f"{source}: no row has identity, attribute and sentence")
    return found


def _examples(shots: Sequence[Row]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(
        [[row[name] for name in FIELDS] for row in shots]
    )
    return text.getvalue().strip()


def _put(prompt: str, halt: str, examples: str, count: int, places: str) -> str:
    parts = {"{examples}": examples, "{count}": str(count), "{places}": places, "{halt}": halt}
    pattern = re.compile("|".join(map(re.escape, parts)))
    return pattern.sub(lambda found: parts[found[0]], prompt)


def _ask(
    engine: Engine, texts: Sequence[str], prompts: Prompts, probe: str, wanted: Wanted
) -> list[Response | None]:
    """Send each prompt to the engine; the reply is None if there is none."""
    sampling = Sampling(temperature=wanted.temperature, max_tokens=prompts.max_tokens)
    requests = []
    for at, text in enumerate(texts):
        messages = [{"role": "user", "content": text}]
        asked = (str(at), prompts.lang, f"augment/{VERSION}", probe, messages)
        requests.append(Request.asked(*asked, base=wanted.seed))
    found: dict[str, Response] = {}
    for record in engine.generate(requests, sampling) if requests else ():
        if isinstance(record, Response):
            found[record.request] = record
    return [found.get(request.id) for request in requests]


def _text(reply: Response | None) -> str:
    if reply is None:
        return ""
    return thoughts.part(reply.text, thoughts.opens(reply.sent)).reply.strip()


def _refuses(text: str, lang: str) -> bool:
    code = lang if lang in registry.names("languages") else "en"
    return refusal.make()(Item(code, "", "", text)).label == "yes"


# --- reading replies


def _read(reply: Response | None, prompts: Prompts, where: str, done: Augmented) -> list[Row]:
    """Read the rows of a reply; note other parts in `done.bad`, and count a refusal."""
    text = _text(reply)
    done.replies["stereotypes"] += 1
    if not text:
        done.bad.append(f"{where}: no reply")
        return []
    if prompts.halt in text:
        done.halted += 1
        text = text.split(prompts.halt)[0]
    rows = _json(text) if text.lstrip("` \njson").startswith(("[", "{")) else None
    parts: Iterable[Any] = rows if rows is not None else _csv(text)
    found = []
    for number, part in enumerate(parts, 1):
        if isinstance(part, dict) and all(
            part.get(k) for k in ("identity", "attribute", "sentence")
        ):
            found.append({name: part.get(name, "") for name in FIELDS})
        else:
            shown = part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)
            done.bad.append(f"{where}, part {number}: no row: {' '.join(shown.split())[:80]}")
    if not found and _refuses(text, prompts.lang):
        done.refusals["stereotypes"] += 1
    return found


def _json(text: str) -> list[Any] | None:
    inner = re.sub(r"\A\s*```\w*|```\s*\Z", "", text)
    try:
        found = parsed(inner)
    except ValueError:
        return None
    if not isinstance(found, list | dict):
        return None
    if isinstance(found, list):
        return [_known(one) if isinstance(one, dict) else one for one in found]
    lists = {key: value for key, value in found.items() if isinstance(value, list)}
    rows = []
    for key, parts in (lists or {"": [found]}).items():
        # Of several lists, each has the rows of the country that is its key.
        about = {"country": key} if len(lists) > 1 else {}
        rows += [about | _known(one) if isinstance(one, dict) else one for one in parts]
    return rows


def _csv(text: str) -> list[Any]:
    """Read rows of CSV: by their header if there is one, else in the order of `FIELDS`."""
    lines = [
        line for line in text.splitlines() if line.strip() and not line.strip().startswith("```")
    ]
    found: list[Any] = []
    head: Sequence[str] | None = None
    for line in lines:
        try:
            cells = [
                cell.strip()
                for cell in next(csv.reader([line], skipinitialspace=True, strict=True))
            ]
        except (csv.Error, StopIteration):
            found.append(line)
            continue
        known = _known(dict.fromkeys(cells, "x"))
        # Each of several tables in a reply has its own.
        if len(known) >= 3 and len(cells) == len(set(cells)):
            head = cells
            continue
        if len(cells) == len(head or FIELDS):
            found.append(_known(dict(zip(head or FIELDS, cells, strict=True))))
        else:
            found.append(line)
    return found


def _known(row: dict[Any, Any]) -> Row:
    plain = {
        re.sub(r"[\s-]+", "_", str(name).strip().lower()): value for name, value in row.items()
    }
    found = {}
    for name, known in _ALSO.items():
        value = next((plain[other] for other in known if other in plain), None)
        if value is not None:
            found[name] = " ".join(cell_text(value).split())
    return found


def _counter(reply: Response | None, prompts: Prompts, done: Augmented) -> str:
    """Find the positive sentence in a reply; "" if the model refused or the reply is empty."""
    text = _text(reply)
    done.replies["counters"] += 1
    first = next((line for line in text.splitlines() if line.strip()), "")
    # The prompt ends with a label for the sentence ("…:"), which many replies repeat.
    label = re.escape(prompts.counters.split()[-1].rstrip(":"))
    first = re.sub(rf"\A\W*{label}\W*:\s*", "", first.strip(), flags=re.IGNORECASE)
    first = first.strip('"“”«»* ')
    if not first or _refuses(text, prompts.lang):
        done.refusals["counters"] += bool(first)
        return ""
    return first


def _new(rows: Sequence[Row], before: Sequence[Row], done: Augmented) -> list[Row]:
    """Keep the rows that are not near-duplicates of an earlier row of the same identity."""
    kept: list[Row] = []
    for row in rows:
        same = [
            old for old in (*before, *kept) if _plain(old["identity"]) == _plain(row["identity"])
        ]
        if (
            same
            and group.nearest(_bare(row["sentence"]), [_bare(old["sentence"]) for old in same])
            >= ALIKE
        ):
            done.dropped += 1
        else:
            kept.append(row)
    return kept


def _bare(sentence: str) -> str:
    """Remove the punctuation of a sentence, unless nothing else would be left."""
    return " ".join(re.sub(r"[^\w\s]", " ", sentence).split()) or sentence


def _plain(text: object) -> str:
    return " ".join(cell_text(text).casefold().split())
