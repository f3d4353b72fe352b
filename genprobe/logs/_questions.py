"""Recognise the question that a prompt asks: pack, probe, wording, language, statement."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from genprobe.errors import InputError
from genprobe.resources import packs, panel, registry
from genprobe.text import nfc, normalise, tokens


class Question(NamedTuple):
    """A question as it was asked.

    pack: its name. order: of the answers (`panel.ORDERS`), or "". text: the statement, as it stands
    in the prompt. clause: whether it stands there as a part of a sentence (`packs.clause`).
    """

    pack: str
    lang: str
    probe: str
    wording: str
    order: str
    text: str
    clause: bool


class _Wording(NamedTuple):
    """A wording: its words before and after the statement, and where it is from."""

    before: str
    after: str
    asked: Question  # without a statement


_SLOT = re.compile(r"\{(?:input|clause)\}")
_FEWEST = 8  # letters of a wording, below which anything could be one


@functools.lru_cache(4096)
def recognised(prompt: str, lang: str = "") -> Question | None:
    """Return the question of a prompt; None if no pack has its words, or two with other meanings.

    lang: the language, if it is known, of wordings that several languages share. The wording must
    stand in the prompt word for word (line ends and spaces aside); of several, such as those of
    examples, the last counts, and of several in its place the one with most words. A statement may
    have several lines: those that stand with it, but for marks and words of a template.
    """
    prompt = nfc(prompt).replace("\r\n", "\n").replace("\r", "\n")
    line = " ".join(prompt.split())
    found: list[tuple[int, int, int, re.Match[str], _Wording]] = []  # first, last place, words
    by_word = _by_word()
    words = sorted(by_word.keys() & {*line, *line.split()})
    for one in itertools.chain.from_iterable(map(by_word.__getitem__, words)):
        if one.before in line and one.after in line:
            for match in _pattern(one.before, one.after).finditer(prompt):
                found.append((*match.span(), len(one.before) + len(one.after), match, one))
    begins, *_ = max(found, key=lambda one: one[1:3], default=(0, 0, 0, None, None))
    there = [one for one in found if one[1] > begins]
    most = max((size for _, _, size, _, _ in there), default=0)
    best = [one for one in there if one[2] == most]
    best = [one for one in best if one[4].asked.lang == _code(lang)] or best
    if len({(one.asked.pack, one.asked.probe) for *_, one in best}) != 1:
        return None
    start, _, _, match, wording = best[-1]
    earlier = max((end for _, end, *_ in found if end <= start), default=0)
    return wording.asked._replace(text=_statement(prompt, earlier, match, wording))


# Where the text of a message ends, or the next begins, in the templates of models.
_MARK = r"<\||</?s>|<(?:start|end)_of_turn>|\[/?INST\]"


def _statement(prompt: str, earlier: int, match: re.Match[str], wording: _Wording) -> str:
    """Return a whole statement, of which a wording was found at one of its lines.

    earlier: where the question before this one ends; on its line, or the next, is its answer.
    """
    text = match["text"].strip()
    if not wording.after:
        rest = re.split(_MARK, prompt[match.end() :], maxsplit=1)[0].split("\n")
        while rest and _is_cue(rest[-1], wording.asked):
            rest.pop()
        text += "\n".join(rest)
    elif not wording.before:
        lead = re.split(_MARK, prompt[earlier : match.start()])[-1]
        if earlier:
            lead = lead.lstrip().partition("\n")[2]
        text = re.split(r"\n[ \t]*\n", lead)[-1] + text
    return text.strip()


def _is_cue(line: str, asked: Question) -> bool:
    """Tell whether a line at the end of a prompt only asks for the answer: "Say yes or no."."""
    line = line.strip()
    if not line or line.endswith((":", "：")):
        return True
    answers, words = _answers(asked.pack, asked.lang), set(tokens(normalise(line)))
    return bool(answers) and all(one <= words for one in answers)


@functools.cache
def _answers(pack: str, lang: str) -> list[set[str]]:
    """Return the words of each answer that a pack offers in a language."""
    answers = packs.load_pack(pack).answers.get(lang, {})
    return [set(tokens(normalise(answer))) for answer in answers.values()]


def _code(lang: str) -> str:
    try:
        return packs.language_code(lang) if lang else ""
    except InputError:
        return ""


@functools.cache
def _by_word() -> dict[str, list[_Wording]]:
    """Return the wordings by their longest word that nothing can stand close to, else a letter."""
    found: dict[str, list[_Wording]] = {}
    for one in filter(None, map(_parted, _texts())):
        inner = [word for part in one[:2] for word in part.split(" ")[1:-1]]
        found.setdefault(max(inner, key=len, default=max(one.before + one.after)), []).append(one)
    return found


def _texts() -> Iterator[tuple[str, Question]]:
    """Yield the text of each wording of each pack, in each language, with what it asks."""
    for name in registry.names("packs"):
        pack = packs.load_pack(name)
        for lang, asked in pack.wordings.items():
            for probe, wording in asked.items():
                published = Question(name, lang, probe, panel.PUBLISHED, "", "", False)
                order = panel.order_of(wording.text, pack.answers[lang])
                yield wording.text, published._replace(order=order)
            if pack.panel and lang in registry.names(f"{name}/{panel.FOLDER}"):
                known = panel.load(name, lang)
                for worded in known.wordings.values():
                    for probe in worded.texts:
                        closed = bool(pack.probes[probe].when)
                        for order in panel.ORDERS if closed else ("",):
                            text = worded.wording(probe, order, pack, known).text
                            yield text, Question(name, lang, probe, worded.name, order, "", False)


def _parted(found: tuple[str, Question]) -> _Wording | None:
    text, asked = found
    before, _, after = _SLOT.sub("\0", nfc(text)).partition("\0")
    before, after = " ".join(before.split()), " ".join(after.split())
    if sum(map(str.isalpha, before + after)) < _FEWEST:
        return None
    return _Wording(before, after, asked._replace(clause="{clause}" in text))


@functools.lru_cache(1000)
def _pattern(before: str, after: str) -> re.Pattern[str]:
    """Compile a pattern for a statement between these words."""
    # What stands behind a statement that ends the wording is another line, or a mark of a template.
    end = rf"\s*{_spaced(after)}" if after else rf"(?=[ \t]*(?:{_MARK}|\n|\Z))"
    start = rf"{_spaced(before)}\s*" if before else ""
    if not any(map(str.isalpha, before)):  # a quotation mark, which may stand in a statement, too
        start = rf"(?:\A|(?<=[\n>\]]))[ \t]*{start}"
    # Between words, a statement may have several lines; it ends before the next of its kind.
    several = rf"|(?:(?!{_spaced(before)})[\s\S])+?" if before and after else ""
    return re.compile(rf"{start}(?P<text>[^\n]+?{several}){end}")


def _spaced(words: str) -> str:
    return r"\s+".join(map(re.escape, words.split(" ")))
