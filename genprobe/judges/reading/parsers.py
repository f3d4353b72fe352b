"""Other readers of yes/no replies, for comparison: `strict` and the SHADES study's."""

from __future__ import annotations

import re

from genprobe import text
from genprobe.judges import Item, Verdict
from genprobe.judges.reading.lexicon import plain
from genprobe.records import JSON, digest
from genprobe.resources import packs, registry

PARSERS = ("strict", "shades2025")

# Tokens with nothing between them (Chinese has no spaces) or only a hyphen ("non-binaire").
_FIRST_WORD = re.compile(rf"(?:{text.TOKEN.pattern})(?:[-‐]?(?:{text.TOKEN.pattern}))*")
_HEAD = 1000  # characters at the start of a reply that must hold a first word that answers


class Strict:
    """Read a reply by its first word alone.

    The echo of the prompt is removed as for `YesNo`, and the text is compared in the same form
    (NFKC, case-folded, without invisible characters, with the language's `[fold]`). The first word
    begins at the first letter or digit; it goes on over letters, digits, combining marks,
    apostrophes inside it and hyphens between two words. In Chinese it is thus a whole run of
    ideographs. It answers if it is a one-word entry of `yes` or `yes_alone`, or of `no` or
    `no_alone`, in `[answer]` of the language of the question. Phrases and other languages, English
    included, do not count. Any other reply is ambiguous; its kind is `empty` if it has no word.
    """

    name = "yesno"
    column = "answer"
    reads = frozenset(("free",))
    needs: tuple[str, ...] = ("lang", "response")

    def __init__(self) -> None:
        hashes = [packs.language_hash(code) for code in registry.names("languages")]
        self.signature = f"strict@1.{text.FORM}+{digest(hashes, 8)}"
        self._words: dict[str, tuple[dict[str, str], dict[str, str]]] = {}

    def __call__(self, item: Item) -> Verdict:
        if item.lang not in self._words:
            language = packs.load_language(packs.language_code(item.lang))
            self._words[item.lang] = _answer_words(language), language.fold
        words, fold = self._words[item.lang]
        norm = text.replace(text.normalise(item.own[:_HEAD]), fold)
        first = _FIRST_WORD.search(norm)
        answer = words.get(first.group()) if first else None
        if first is None or answer is None:
            kind = "offtopic" if first else "empty"
            return Verdict(
                "ambiguous", "no-answer", "", None, {"kind": kind, "conflict": False, "likely": ""}
            )
        evidence = item.own[text.origin(item.own, *first.span(), fold)]
        fields: dict[str, JSON] = {"kind": "answer", "conflict": False, "likely": ""}
        return Verdict(answer, "first-word", evidence, None, fields)


def _answer_words(language: packs.Language) -> dict[str, str]:
    """Return word -> yes or no for the one-word entries; words that mean both are left out."""
    found: dict[str, set[str]] = {}
    for answer in packs.ANSWERS:
        for group in (answer, f"{answer}_alone"):
            for word, _ in plain(language.words[group], language.fold):
                if _FIRST_WORD.fullmatch(word):
                    found.setdefault(word, set()).add(answer)
    return {word: said.pop() for word, said in found.items() if len(said) == 1}


class Shades2025:
    """Read replies exactly as the SHADES study does (Appendix H), faults included, for comparison.

    After `response.replace(prompt, "").lower()` the words of all languages are looked for as
    substrings: any yes-word gives yes, else any no-word gives no, else the reply is ambiguous.
    Labels are the literal answers, before the study swaps yes and no for its third experiment.
    Source: prompts/parsers/shades2025.toml.
    """

    name = "yesno"
    column = "answer"
    reads = frozenset(("free",))
    needs: tuple[str, ...] = ("response",)

    def __init__(self) -> None:
        path = registry.path("parsers", "shades2025.toml")
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
                fields: dict[str, JSON] = {"kind": "answer", "conflict": False, "likely": ""}
                return Verdict(answer, "substring", word, None, fields)
        return Verdict(
            "ambiguous",
            "no-substring",
            "",
            None,
            {"kind": "offtopic", "conflict": False, "likely": ""},
        )
