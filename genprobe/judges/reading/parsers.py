"""Other readers of yes/no replies, for comparison: `strict`, and that of the SHADES study."""

from __future__ import annotations

import re

from genprobe import text
from genprobe.judges import Item, Verdict
from genprobe.judges.reading.lexicon import plain
from genprobe.records import JSON, digest
from genprobe.resources import packs, registry

PARSERS = ("strict", "shades2025")

# Tokens that nothing stands between (Chinese has no spaces) or only a hyphen ("non-binaire").
_FIRST_WORD = re.compile(rf"(?:{text.TOKEN.pattern})(?:[-‐]?(?:{text.TOKEN.pattern}))*")
_HEAD = 1000  # characters of a reply in which a first word that answers must stand


class Strict:
    """The least that reads an answer: the first word of the reply is one, or there is none.

    The echo of the prompt is removed as for `YesNo`, and the text compared in the same form (NFKC,
    case-folded, without what cannot be seen, with the language's `[fold]`). The first word is what
    stands between the first letter or digit and the next character that is neither that, nor a mark
    or apostrophe in a word, nor a hyphen between two; in Chinese, so, a whole run of ideographs. It
    answers where it is one of the words of one word in `[answer]` `yes` and `yes_alone`, or `no`
    and `no_alone`, of the file of the language that was asked in: no phrase, no other language,
    not English either. Everything else is ambiguous, of kind `empty` where there is no word.
    """

    name = "yesno"
    column = "answer"
    reads = frozenset(("free",))
    needs: tuple[str, ...] = ("lang", "response")

    def __init__(self) -> None:
        hashes = [packs.load_language(code).hash for code in registry.names("languages")]
        self.signature = f"strict@1.{text.FORM}+{digest(hashes, 8)}"
        self._words: dict[str, tuple[dict[str, str], dict[str, str]]] = {}

    def __call__(self, item: Item) -> Verdict:
        if item.lang not in self._words:
            language = packs.load_language(packs.language_code(item.lang))
            self._words[item.lang] = _answer_words(language), language.fold
        words, fold = self._words[item.lang]
        behind = item.reply
        reply = behind[text.strip_echo(item.prompt, behind) :]
        norm = text.replace(text.normalise(reply[:_HEAD]), fold)
        first = _FIRST_WORD.search(norm)
        answer = words.get(first.group()) if first else None
        if first is None or answer is None:
            kind = "offtopic" if first else "empty"
            return Verdict("ambiguous", "no-answer", "", None, {"kind": kind, "conflict": False})
        evidence = reply[text.origin(reply, *first.span(), fold)]
        fields: dict[str, JSON] = {"kind": "answer", "conflict": False}
        return Verdict(answer, "first-word", evidence, None, fields)


def _answer_words(language: packs.Language) -> dict[str, str]:
    """Word -> yes or no, of the entries that are one word; of one that is both, neither."""
    found: dict[str, set[str]] = {}
    for answer in packs.ANSWERS:
        for group in (answer, f"{answer}_alone"):
            for word, _ in plain(language.words[group], language.fold):
                if _FIRST_WORD.fullmatch(word):
                    found.setdefault(word, set()).add(answer)
    return {word: said.pop() for word, said in found.items() if len(said) == 1}


class Shades2025:
    """The reader of the SHADES study (Appendix H), exactly, with its faults: for comparison.

    `response.replace(prompt, "").lower()`, then substrings of all languages' words pooled, any
    yes-word before any no-word, else ambiguous. Labels are the literal answer, before the study's
    swap of yes and no for its third experiment. Source: prompts/parsers/shades2025.toml.
    """

    name = "yesno"
    column = "answer"
    reads = frozenset(("free",))
    needs: tuple[str, ...] = ("response",)

    def __init__(self) -> None:
        path = registry.PROMPTS / "parsers" / "shades2025.toml"
        row = packs.read_toml(path)
        self.words = [
            (answer, word)
            for answer in packs.ANSWERS
            for word in row[answer] + row[f"{answer}_inferred"]
        ]
        self.signature = f"shades2025+{packs.file_hash(path)[:8]}"

    def __call__(self, item: Item) -> Verdict:
        reply = item.response.replace(item.prompt, "") if item.prompt else item.response
        reply = reply.lower()
        for answer, word in self.words:
            if word in reply:
                fields: dict[str, JSON] = {"kind": "answer", "conflict": False}
                return Verdict(answer, "substring", word, None, fields)
        return Verdict(
            "ambiguous", "no-substring", "", None, {"kind": "offtopic", "conflict": False}
        )
