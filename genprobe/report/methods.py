"""Write what a paper says of runs: a paragraph about the methods, and wide tables of the figures.

The sentences are those of the page (words.py, first.py), the references are in docs/references.md.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from genprobe._version import __version__
from genprobe.errors import InputError
from genprobe.files import disk
from genprobe.metrics import find
from genprobe.records import Score
from genprobe.render import wide
from genprobe.render.findings import joined
from genprobe.render.formats import marked
from genprobe.render.grid import titled
from genprobe.render.latex import breakable, comments, short, slug, tex
from genprobe.report import words
from genprobe.report.sources import Source, first_reading, without_folders
from genprobe.resources.page import ENGLISH, Words, load
from genprobe.runs.run import OTHERS
from genprobe.statistics import ALPHA
from genprobe.text.display import clean

# Beginnings of `Metric.method`, which prompts/page/ has in words -> their sources.
_INTERVALS = {
    "anchored": "Rubin 1981; Gaffke 2005",
    "bootstrap": "Hesterberg 2015",
    "twoway": "Owen and Eckles 2012",
}


def main_scores(sources: Sequence[Source], by: Sequence[str] = ()) -> list[Score]:
    """Return the headline measure of each run; in a redacted page, signed without folders."""
    found: list[Score] = []
    for source in sources:
        for one in source.score(source.table.ranked[:1], by, first_reading(source)):
            sign = without_folders(one.signature) if source.salt else one.signature
            found.append(dataclasses.replace(one, signature=sign))
    return found


def paragraph(sources: Sequence[Source], notes: Mapping[str, str], said: Words) -> list[str]:
    """Write the methods of runs as sentences, without signatures.

    notes: those of the page's finding (`first.finding`, `local.finding`). said: its language.
    """
    facts = [words.fact(source) for source in sources]
    lines = [
        f"{joined(names)} {'was' if len(names) == 1 else 'were each'} {text}"
        for names, text in words.told([] if said.translated else facts)
    ]
    for fact in facts if said.translated else ():
        told = (f"{said.phrase(name) or name}: {value}" for name, value in fact.asked)
        lines.append(f"{fact.title}: {'; '.join(told)}.")
    packs = {pack.id: pack for pack in map(words.cited, sources) if pack}
    for pack in packs.values():
        if pack.citation:
            lines.append(said("methods.wordings", pack=pack.id, citation=pack.citation))
    lines += _readers(sources, said)
    measures = [find(name) for name in dict.fromkeys(s.metric for s in main_scores(sources))]
    for one in measures:
        name = f"{one.name}: {said.measure(one.name)}" if said.translated else titled(one.name)
        lines.append(said("methods.main", measure=name))
    kinds = [m for m in _INTERVALS if any(one.method.startswith(m) for one in measures)]
    if kinds:
        how = (said(f"methods.{kind}", sources=_INTERVALS[kind]) for kind in kinds)
        lines.append(said("methods.intervals", measure="; ".join(how)))
    for name in (said(f"notes.{key}") for key in ("sure", "left_out", "checked")):
        if text := notes.get(name):
            text = text.replace("Holm's correction", "Holm's correction (Holm 1979)")
            text += " (Holm 1979)" if said.translated and f"{ALPHA:g}" in text else ""
            lines.append(f"{name}: {text}")
    return [clean(re.sub("[\u2068\u2069]", "", line)) for line in lines]


def _readers(sources: Sequence[Source], said: Words) -> Iterator[str]:
    """Yield who read the replies: rules, a language model, or whoever labelled the data."""
    found: dict[str, set[str]] = {"given": set(), "llm": set(), "rules": set()}
    for name, sign in (pair for s in sources for pair in s.judges.items()):
        kind = sign.partition("@")[0]
        if name.startswith(OTHERS):
            continue
        if name == kind:
            found["rules"].add(name)
        else:
            found["llm" if name.startswith(f"{kind}-") else "given"].add(f"{name} ({sign})")
    given, llm, rules = (joined(sorted(one)) for one in found.values())
    if given:
        yield said("methods.given", names=given)
    if llm:
        yield said("methods.model", names=llm)
    if rules and (given or llm):
        yield said("methods.also", version=__version__, names=rules)
    elif rules:
        yield said("methods.rules", version=__version__)


def references(sentences: Sequence[str]) -> list[str]:
    """Return the entries of docs/references.md whose author and year a sentence names."""
    entries = re.split(r"^- ", (words.DOCS / "references.md").read_text("utf-8"), flags=re.M)[1:]
    text, found = " ".join(sentences), []
    for entry in (" ".join(one.split()) for one in entries):
        known = re.match(r"\*\*[^*]*\*\* (\w+), .*?(\d{4})\.", entry)
        if known and re.search(rf"{known[1]}\b[^;)]*\b{known[2]}\b", text):
            found.append(re.sub(r"^\*\*[^*]*\*\* ", "", entry).replace("*", ""))
    return found


def markdown(sentences: Sequence[str], scores: Sequence[Score], sign: str = "Signature") -> str:
    """Write the paragraph in Markdown, with references and whole signatures, that `sign` names."""
    signatures = dict.fromkeys(clean(score.signature).replace("`", "?") for score in scores)
    listed = [marked(one) for one in references(sentences)]
    listed += [f"{sign}: `{text}`" for text in signatures]
    return "\n".join([" ".join(map(marked, sentences)), "", *(f"- {one}" for one in listed), ""])


def latex(sentences: Sequence[str], scores: Sequence[Score]) -> str:
    """Write the same in LaTeX; the signatures are short, the whole ones are in comments."""
    short_ones = dict.fromkeys(short(clean(score.signature)) for score in scores)
    items = [tex(one) for one in references(sentences)]
    items += [rf"Signature: \texttt{{{breakable(text)}}}." for text in short_ones]
    listed = [r"\begin{itemize}", *(rf"\item {one}" for one in items), r"\end{itemize}"]
    paragraph = [r"\paragraph{Methods.}", *map(tex, sentences)]
    return "\n".join([*comments(scores), *paragraph, *listed, ""])


def write(folder: Path, sources: Sequence[Source], notes: Mapping[str, str]) -> Iterator[Path]:
    """Write methods and wide tables, in Markdown and LaTeX, into a folder; yield the files.

    The other arguments are those of `paragraph`.
    """
    scores = main_scores(sources, ["lang"])
    sentences = paragraph(sources, notes, load(ENGLISH))
    texts = {"methods.md": markdown(sentences, scores), "methods.tex": latex(sentences, scores)}
    for name in dict.fromkeys(score.metric for score in scores):
        mine = [score for score in scores if score.metric == name]
        with contextlib.suppress(InputError):  # one model in one language is no table
            texts[f"table-{slug([name])}.md"] = wide.markdown(mine)
            texts[f"table-{slug([name])}.tex"] = wide.latex(mine)
    with disk.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        disk.replace_bytes(folder / name, [text.encode("utf-8", "replace")])
        yield folder / name
