"""Read the SHADES table, from a file or from the hub.

The table has one row per item, three columns per language (`<lang>_biased_sentences`,
`<lang>_templates`, `<lang>_expression`), and annotations as text. Normalisations are listed in
`prompts/statements/shades.toml`; everything that is changed or not understood is noted.

Source: Mitchell et al. 2025 (NAACL), https://huggingface.co/datasets/LanguageShades/BiasShades
"""

from __future__ import annotations

import functools
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from genprobe.errors import InputError
from genprobe.files import SUFFIXES, Row, numbered_rows
from genprobe.files.cells import Notes, cell_list, cell_sentence, cell_text
from genprobe.records import JSON, Statement
from genprobe.resources import packs, registry

REPO = "LanguageShades/BiasShades"
_SENTENCES = "_biased_sentences"
_REGIONS = "stereotype_valid_regions"
_NO_REGION = "(not a region)"
_KNOWN = {"index", "subset", "bias_type", "type", "stereotyped_entity", "stereotype_valid_langs"}


def is_table(columns: Collection[str]) -> bool:
    """Tell whether these are the columns of the SHADES table."""
    return {"index", "subset"} <= set(columns) and any(c.endswith(_SENTENCES) for c in columns)


@dataclass
class _Item:
    """A row of the table: the data that its statements share."""

    row: int
    index: str
    subset: str
    role: str
    bias_type: str
    type: str
    entity: str
    valid_in: tuple[str, ...]
    extra: dict[str, JSON]
    cells: Row
    id: str = ""


@dataclass
class _Reader:
    """A reader of rows that collects notes about oddities."""

    notes: Notes
    respelled: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def item(self, number: int, row: Row, shared: Sequence[str]) -> _Item:
        index = _blank(row["index"])
        fixed = _data()["fix"]["index"].get(index)
        if fixed:
            self.notes.add(f"index {index!r} read as {fixed!r}", number)
            index = fixed
        index = re.sub(r"^(\d+)$", r"\1.0", index)
        if not index:
            self.notes.add("no index: not in a pair, named by its row", number)
        subset = _blank(row["subset"])
        extra: dict[str, JSON] = {"row": number}
        for name in shared:
            value = _blank(row.get(name))
            extra[name] = [*cell_list(value)] if value.startswith("[") else value
            if name == _REGIONS:
                extra[name] = self.regions(value, number)
        if "stereotype_origin_langs" in row:
            extra["stereotype_origin_langs"] = list(
                self.langs(row["stereotype_origin_langs"], number)
            )
        return _Item(
            row=number,
            index=index,
            subset=subset,
            role=self.role(subset, _blank(row.get("gold")), number),
            bias_type=self.names("bias_type", row.get("bias_type"), number),
            type=self.names("type", row.get("type"), number),
            entity=_blank(row.get("stereotyped_entity")),
            valid_in=self.valid_in(row.get("stereotype_valid_langs"), number),
            extra=extra,
            cells=row,
        )

    def role(self, subset: str, gold: str, number: int) -> str:
        """Return the role: by `subset`; if it is empty, by `gold` (1 or 0); "" if both are."""
        by_gold = {"1": "original", "0": "contrast"}.get(gold.removesuffix(".0"), "")
        if not subset:
            self.notes.add(
                "no subset: gold says whether it is original or contrast"
                if by_gold
                else "neither subset nor gold says whether it is original or contrast, left out",
                number,
            )
            return by_gold
        role = "original" if subset.lstrip("_") == "original" else "contrast"
        if by_gold and by_gold != role:
            self.notes.add(f"gold says {by_gold}, subset says {role}: subset used", number)
        return role

    def names(self, kind: str, cell: object, number: int) -> str:
        """Return the canonical names of a bias type or form, sorted, joined by `+`."""
        names = set()
        for spelling in cell_list(_blank(cell), separators=",;+"):
            # An item of a list may itself join several names: 'gender+age', 'occupation'.
            for part in filter(None, map(str.strip, spelling.split("+"))):
                name = _spellings(kind).get(_key(part))
                if name is None:
                    self.notes.add(f"{kind} {part!r} is unknown, kept unchanged", number)
                elif name != part:
                    self.respelled[kind, part, name] += 1
                names.add(name or part)
        return "+".join(sorted(names))

    def langs(self, cell: object, number: int) -> tuple[str, ...]:
        """Return the codes of a list of languages, each once, in the order of the list."""
        codes: list[str] = []
        for name in cell_list(_blank(cell)):
            fixed = _data()["fix"]["lang"].get(name)
            if fixed:
                self.notes.add(f"languages {name!r} read as {', '.join(fixed)}", number)
                codes += fixed
                continue
            try:
                codes.append(packs.language_code(name))
            except InputError:
                self.notes.add(
                    f"language {name!r} is not one of genprobe's, kept unchanged", number
                )
                codes.append(name)
        return tuple(dict.fromkeys(codes))

    def regions(self, cell: str, number: int) -> list[JSON]:
        """Return the codes of a list of regions, each once, in the order of the list."""
        codes: dict[str, None] = {}
        for name in cell_list(cell):
            code = _spellings("regions").get(_key(name), name)
            if code == _NO_REGION:
                self.notes.add(f"region {name!r} is none, left out", number)
                continue
            if code != name:
                self.respelled["region", name, code] += 1
            codes[code] = None
        return [*codes]

    def valid_in(self, cell: object, number: int) -> tuple[str, ...]:
        codes: list[str] = []
        for code in self.langs(cell, number):
            also = _data()["valid"].get(code, [code])
            if also != [code]:
                self.notes.add(f"valid in {code!r} read as valid in {', '.join(also)}", number)
            codes += also
        return tuple(dict.fromkeys(codes))

    def fill(self, items: Sequence[_Item]) -> None:
        """Give contrasts without a bias type or form those of their original."""
        originals = {item.index: item for item in items if item.role == "original" and item.index}
        for item in items:
            original = originals.get(item.index)
            if item.role == "contrast" and item.index and original is None:
                self.notes.add("contrast without an original under its index", item.row)
            for name in ("bias_type", "type"):
                if getattr(item, name):
                    continue
                if original is not None and getattr(original, name):
                    setattr(item, name, getattr(original, name))
                    self.notes.add(f"no {name}: taken from the original", item.row)
                else:
                    self.notes.add(f"no {name}: left empty", item.row)

    def name(self, items: Sequence[_Item]) -> None:
        """Set the ids of items: `<index>/<subset>`; the second item with an id gets `-2`."""
        taken: Counter[str] = Counter()
        for item in items:
            subset = "original" if item.role == "original" else item.subset or "contrast"
            item.id = f"{item.index}/{subset}" if item.index else f"row-{item.row}"
            taken[item.id] += 1
            if taken[item.id] > 1:
                self.notes.add("an earlier row has this index and subset: id made unique", item.row)
                item.id = f"{item.id}-{taken[item.id]}"

    def report(self) -> None:
        by_kind: dict[str, list[str]] = defaultdict(list)
        for (kind, spelling, name), n in sorted(self.respelled.items()):
            by_kind[kind].append(f"{spelling!r} as {name!r} ({n})")
        for kind, spellings in by_kind.items():
            self.notes.add(f"{kind} spelled differently: {', '.join(spellings)}")


def read(
    rows: Iterable[tuple[int, Row]], source: str, wanted: Collection[str] | None, notes: Notes
) -> tuple[list[Statement], list[str]]:
    """Read the statements of a table, language by language, and the languages in it.

    rows: (number, row) pairs, as of `files.numbered_rows`. wanted: the languages to read; None
    means all.
    """
    table = list(rows)
    columns = list(table[0][1])
    languages = _languages(columns, table, source, notes)
    own = {name: _own(name, languages) for name in columns}
    shared = [name for name in columns if own[name] is None and name not in _KNOWN]
    reader = _Reader(notes)
    items = [reader.item(number, row, shared) for number, row in table]
    items = [item for item in items if item.role]
    reader.fill(items)
    reader.name(items)
    reader.report()
    statements: list[Statement] = []
    empty: dict[str, int] = {}
    repeated: dict[str, int] = {}
    said: set[int] = set()
    for prefix, code in languages.items():
        parts = {name: part for name in columns if (part := _part(own[name], prefix))}
        texts: Counter[str] = Counter()
        for item in items:
            cell = item.cells.get(prefix + _SENTENCES)
            if cell_text(cell):
                said.add(item.row)
            if wanted is not None and code not in wanted:
                continue
            text = cell_sentence(cell, notes, f"{code} {item.row}")
            if not text:
                empty[code] = empty.get(code, 0) + 1
                continue
            if _slot().search(text):
                notes.add("the text still has a template slot, kept", f"{code} {item.row}")
            texts[text] += 1
            statements.append(_statement(item, code, text, parts, source))
        if twice := sum(n - 1 for n in texts.values() if n > 1):
            repeated[code] = twice
    if empty:
        notes.add(f"empty cells, no statement in that language: {_counts(empty)}")
    if repeated:
        notes.add(f"the same sentence as another item: {_counts(repeated)}")
    for item in items:
        if item.row not in said:
            notes.add("no sentence in any language", item.row)
    return statements, list(languages.values())


def _statement(item: _Item, code: str, text: str, parts: dict[str, str], source: str) -> Statement:
    extra = dict(item.extra)
    for column, part in parts.items():
        value = _blank(item.cells.get(column))
        extra[part] = {"true": True, "false": False}.get(value.lower(), value)
    return Statement(
        id=item.id,
        lang=code,
        text=text,
        role=item.role,
        pair=item.index,
        bias_type=item.bias_type,
        type=item.type,
        entity=item.entity,
        valid_in=item.valid_in,
        source=source,
        extra=extra,
    )


def _languages(
    columns: Sequence[str], table: Sequence[tuple[int, Row]], source: str, notes: Notes
) -> dict[str, str]:
    """Map the prefix of each language's columns to its code."""
    found: dict[str, str] = {}
    for column in columns:
        if not column.endswith(_SENTENCES):
            continue
        prefix = column.removesuffix(_SENTENCES)
        try:
            code = packs.language_code(prefix)
        except InputError:
            n = sum(bool(cell_text(row.get(column))) for _, row in table)
            notes.add(f"language {prefix!r} is not one of genprobe's, left out: {n} sentences")
            continue
        if code in found.values():
            raise InputError(
                f"{source}: two columns of sentences for {code!r}, the second is {column!r}"
            )
        found[prefix] = code
    return found


def _own(column: str, languages: dict[str, str]) -> tuple[str, str] | None:
    """Split the name of a language's column into (prefix, rest); None for other columns.

    The longest prefix wins: `zh_hant_templates` is not a column of `zh`.
    """
    prefixes = [prefix for prefix in languages if column.startswith(prefix + "_")]
    prefix = max(prefixes, key=len, default=None)
    return None if prefix is None else (prefix, column.removeprefix(prefix + "_"))


def _part(own: tuple[str, str] | None, prefix: str) -> str:
    """Return the name in `extra` of a language's column; "" for sentences and other languages."""
    return own[1] if own and own[0] == prefix and "_" + own[1] != _SENTENCES else ""


def _counts(by_lang: dict[str, int]) -> str:
    return ", ".join(f"{lang} {n}" for lang, n in sorted(by_lang.items()))


def _blank(value: object) -> str:
    """Read a cell of an annotation; "" also for `nan`, `none` and `null`."""
    text = cell_text(value)
    return "" if text.lower() in ("nan", "none", "null") else text


def _key(spelling: str) -> str:
    return re.sub(r"[\s_-]+", " ", spelling).strip().casefold()


@functools.cache
def _data() -> dict[str, Any]:
    return packs.read_toml(registry.path("statements", "shades.toml"))


@functools.cache
def _spellings(kind: str) -> dict[str, str]:
    return {_key(s): name for name, ways in _data()[kind].items() for s in (name, *ways)}


@functools.cache
def _slot() -> re.Pattern[str]:
    names = "|".join(sorted(_data()["slots"]["names"], key=len, reverse=True))
    return re.compile(rf"\b(?:{names})(?:[-+:](?:[A-Z_]+|\d))*\b")


# --- the hub

_WAIT = 0.5  # most seconds before the second attempt; doubled before each further one
_ATTEMPTS = 4
_CURE = "or download the table there and name the file in --data"


def download(notes: Notes) -> list[Path]:
    """Download the gated data set into the hub's cache; return its files with SHADES columns.

    The user's own token (HF_TOKEN, or the one of `hf auth login`) gives access; it appears in no
    message. Raises InputError if there is no access, no connection, or no such table.
    """
    import huggingface_hub as hub

    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    page = f"{endpoint}/datasets/{REPO}"
    api = hub.HfApi(endpoint=endpoint)
    info = _ask(lambda: api.dataset_info(REPO, timeout=20), page)
    names = [file.rfilename for file in info.siblings or ()]
    tables = [name for name in names if Path(name).suffix.lower() in SUFFIXES]
    # The whole table is all/all.csv; other files have its parts by language.
    tables.sort(key=lambda name: (Path(name).stem != "all", name.count("/"), name))
    parts: list[Path] = []
    for name in tables:
        fetch = functools.partial(
            hub.hf_hub_download,
            REPO,
            name,
            repo_type="dataset",
            revision=info.sha,
            endpoint=endpoint,
        )
        path = Path(_ask(fetch, page))
        sentences = [column for column in _columns(path) if column.endswith(_SENTENCES)]
        if len(sentences) > 1:
            parts = [path]
            break
        parts += [path] * len(sentences)
    if not parts:
        listed = ", ".join(names[:8]) or "nothing"
        raise InputError(
            f"{page}: no table with the columns of SHADES among its files ({listed}); "
            "download the right one and name the file in --data"
        )
    files = ", ".join(path.name for path in parts)
    notes.add(f"read {files} of {REPO} at commit {(info.sha or 'unknown')[:12]}")
    return parts


def _columns(path: Path) -> list[str]:
    """Return the columns of a file; none if it is not a SHADES table."""
    try:
        columns = list(next(iter(numbered_rows(path)))[1])
    except InputError:
        return []
    return columns if is_table(columns) else []


def _ask(call: Callable[[], Any], page: str) -> Any:
    """Send a request to the hub, and repeat it after a temporary fault."""
    import tenacity

    retrying = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(_ATTEMPTS),
        wait=tenacity.wait_random_exponential(multiplier=_WAIT, max=8),
        retry=tenacity.retry_if_exception(_may_pass),
        reraise=True,
    )
    try:
        return retrying(call)
    except Exception as error:
        # `from None`, because the hub's own messages may contain request headers.
        raise _explain(error, page) from None


def _kinds(error: BaseException) -> set[str]:
    """Return the names of the classes of an error and of its causes.

    The hub's client has changed its HTTP library more than once, but the names stayed the same.
    """
    names = {c.__name__ for c in type(error).__mro__}
    return names | (_kinds(error.__cause__) if error.__cause__ else set())


def _status(error: BaseException) -> int | None:
    return getattr(getattr(error, "response", None), "status_code", None)


def _may_pass(error: BaseException) -> bool:
    status = _status(error)
    if status is not None:
        return status in (408, 429) or status >= 500
    network = {"TransportError", "ConnectionError", "Timeout", "LocalEntryNotFoundError"}
    return bool(_kinds(error) & network) and "OfflineModeIsEnabled" not in _kinds(error)


def _explain(error: Exception, page: str) -> InputError:
    import huggingface_hub as hub

    kinds, status, token = _kinds(error), _status(error), hub.get_token() is not None
    if "OfflineModeIsEnabled" in kinds:
        return InputError(f"{page}: HF_HUB_OFFLINE is set; unset it, {_CURE}")
    if not token and status in (401, 403, 404):
        return InputError(
            f"{page}: a gated data set, and there is no token; accept its licence on that page, "
            "then `hf auth login` or set HF_TOKEN"
        )
    if "GatedRepoError" in kinds:
        return InputError(
            f"{page}: its licence is not accepted for this token's account; accept it on that "
            "page (and wait for approval where it asks for that)"
        )
    if status == 401:
        return InputError(f"{page}: the token is not valid; `hf auth login` or set HF_TOKEN anew")
    if status == 403:
        return InputError(f"{page}: the token may not read it; give it read access to gated repos")
    if status == 404:
        return InputError(f"{page}: not found with this token; {_CURE.removeprefix('or ')}")
    if status is not None:
        return InputError(f"{page}: the hub answers with HTTP {status}; try later, {_CURE}")
    if _may_pass(error):
        return InputError(f"{page}: cannot be reached; check the network, {_CURE}")
    return InputError(f"{page}: cannot be loaded ({type(error).__name__}); {_CURE[3:]}")
