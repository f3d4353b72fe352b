"""Text functions for the judges: normalisation, tokens, phrase matching, removal of echoed prompts.

Every function takes time linear in the length of the text, and none raises on hostile input.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

# Version of the normalisation and matching, in the signature of every judge that compares words. It
# is raised whenever a change here makes two texts equal, or a phrase match, that did not before.
FORM = 2

# Vowel signs, viramas, accents: Python's \w does not include combining marks, so it would cut Indic
# words at every vowel. Ranges: combining diacritics, Cyrillic, Hebrew, Arabic, then the signs of
# the Indic blocks (Devanagari to Malayalam share one layout), Thai.
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u09d7"
    "\u09e2\u09e3\u0a01-\u0a03\u0a3c-\u0a51\u0a81-\u0a83\u0abc-\u0acd\u0b82\u0bbe-\u0bcd"
    "\u0c00-\u0c04\u0c3e-\u0c56\u0d00-\u0d03\u0d3b-\u0d4d\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
)
# Chinese is written without spaces: each ideograph is a token.
HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
# Possessive: a word has one reading, and where it does not fit, no shorter ones are tried.
TOKEN = re.compile(rf"[{HAN}]|[^\W_{HAN}](?:[^\W_{HAN}]++|[{_MARKS}]++|'(?=[^\W\d_]))*+")
# The same in a text of ASCII alone, where it is found in half the time.
_ASCII_TOKEN = re.compile(r"[A-Za-z0-9]+(?:'[A-Za-z][A-Za-z0-9]*)*")
_APART, _ASCII_APART = (re.compile(f"({token.pattern})") for token in (TOKEN, _ASCII_TOKEN))

_MEMO = 50_000  # most words of a `Memo`
_DIGIT = re.compile(r"[^\D0-9]")

# Invisible characters (joiners, soft hyphen, bidi controls, BOM), the Arabic tatweel and short
# vowels, and the replacement character that stands for a cut-off byte sequence.
_INVISIBLE = re.compile(
    "[\u00ad\u061c\u0640\u064b-\u0652\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe0f\ufeff\ufffd]"
)


# No word has more than 30 combining marks in a row (the limit of Unicode's Stream-Safe Text Format,
# UAX 15), and normalisation takes quadratic time to sort them.
# All others with a combining class, which normalisation sorts: those of scripts that no language of
# ours is written in.
_RARE_MARKS = (
    "\u0711\u0730-\u074a\u07eb-\u07f3\u07fd\u0816-\u0819\u081b-\u0823\u0825-\u0827"
    "\u0829-\u082d\u0859-\u085b\u0898-\u089f\u08ca-\u08e1\u08e3-\u08ff\u09fe\u0b3c\u0b4d"
    "\u0c3c\u0cbc\u0ccd\u0dca\u0eb8-\u0eba\u0ec8-\u0ecb\u0f18-\u0f19\u0f35\u0f37\u0f39"
    "\u0f71-\u0f72\u0f74\u0f7a-\u0f7d\u0f80\u0f82-\u0f84\u0f86-\u0f87\u0fc6\u1037"
    "\u1039-\u103a\u108d\u135d-\u135f\u1714-\u1715\u1734\u17d2\u17dd\u18a9\u1939-\u193b"
    "\u1a17-\u1a18\u1a60\u1a75-\u1a7c\u1a7f\u1ab0-\u1abd\u1abf-\u1ace\u1b34\u1b44"
    "\u1b6b-\u1b73\u1baa-\u1bab\u1be6\u1bf2-\u1bf3\u1c37\u1cd0-\u1cd2\u1cd4-\u1ce0"
    "\u1ce2-\u1ce8\u1ced\u1cf4\u1cf8-\u1cf9\u1dc0-\u1dff\u2cef-\u2cf1\u2d7f\u2de0-\u2dff"
    "\u302a-\u302f\u3099-\u309a\ua66f\ua674-\ua67d\ua69e-\ua69f\ua6f0-\ua6f1\ua806\ua82c"
    "\ua8c4\ua8e0-\ua8f1\ua92b-\ua92d\ua953\ua9b3\ua9c0\uaab0\uaab2-\uaab4\uaab7-\uaab8"
    "\uaabe-\uaabf\uaac1\uaaf6\uabed\ufb1e\U000101fd\U000102e0\U00010376-\U0001037a\U00010a0d"
    "\U00010a0f\U00010a38-\U00010a3a\U00010a3f\U00010ae5-\U00010ae6\U00010d24-\U00010d27"
    "\U00010eab-\U00010eac\U00010f46-\U00010f50\U00010f82-\U00010f85\U00011046\U00011070"
    "\U0001107f\U000110b9-\U000110ba\U00011100-\U00011102\U00011133-\U00011134\U00011173"
    "\U000111c0\U000111ca\U00011235-\U00011236\U000112e9-\U000112ea\U0001133b-\U0001133c"
    "\U0001134d\U00011366-\U0001136c\U00011370-\U00011374\U00011442\U00011446\U0001145e"
    "\U000114c2-\U000114c3\U000115bf-\U000115c0\U0001163f\U000116b6-\U000116b7\U0001172b"
    "\U00011839-\U0001183a\U0001193d-\U0001193e\U00011943\U000119e0\U00011a34\U00011a47"
    "\U00011a99\U00011c3f\U00011d42\U00011d44-\U00011d45\U00011d97\U00016af0-\U00016af4"
    "\U00016b30-\U00016b36\U00016ff0-\U00016ff1\U0001bc9e\U0001d165-\U0001d169"
    "\U0001d16d-\U0001d172\U0001d17b-\U0001d182\U0001d185-\U0001d18b\U0001d1aa-\U0001d1ad"
    "\U0001d242-\U0001d244\U0001e000-\U0001e006\U0001e008-\U0001e018\U0001e01b-\U0001e021"
    "\U0001e023-\U0001e024\U0001e026-\U0001e02a\U0001e130-\U0001e136\U0001e2ae"
    "\U0001e2ec-\U0001e2ef\U0001e8d0-\U0001e8d6\U0001e944-\U0001e94a"
)
_IN_A_ROW = f"[{_MARKS}{_RARE_MARKS}\u20d0-\u20ff\ufe20-\ufe2f]"
_TOO_MANY = re.compile(rf"({_IN_A_ROW}{{30}}){_IN_A_ROW}+")
_MARK = re.compile(_IN_A_ROW)


def _few_marks(text: str) -> str:
    """Cut off the marks after the thirtieth in a row; a longer row holds each thirtieth letter."""
    return _TOO_MANY.sub(r"\1", text) if _MARK.search(text[30::30]) else text


def nfc(text: str) -> str:
    """Normalise a text to NFC. Of more than 30 combining marks in a row, the first 30 are kept.

    Elsewhere than in this room, text of any length is normalised by this function or `nfkc`:
    `unicodedata.normalize` takes time quadratic in the number of marks in a row.
    """
    return text if text.isascii() else unicodedata.normalize("NFC", _few_marks(text))


def nfkc(text: str) -> str:
    """Normalise a text to NFKC. Of more than 30 combining marks in a row, the first 30 are kept."""
    return text if text.isascii() else unicodedata.normalize("NFKC", _few_marks(text))


def visible(text: str) -> str:
    """Normalise a text to NFKC, without invisible characters and with one kind of apostrophe.

    The case is kept. Of more than 30 combining marks in a row, only the first 30 are kept.
    """
    if text.isascii():
        return text
    # Replaced before NFKC, which would turn an acute accent into a space and a combining mark.
    text = nfkc(text.replace("´", "'"))
    if _INVISIBLE.search(text):
        text = _INVISIBLE.sub("", text)
    # On short texts, several calls of str.replace are faster than one of str.translate.
    for mark in "’‘ʼʻ":  # the last is the letter of Uzbek and Hawaiian
        if mark in text:
            text = text.replace(mark, "'")
    return text


def normalise(text: str) -> str:
    """Normalise a text as `visible` does, and fold its case."""
    if text.isascii():
        return text.lower()
    text = visible(text)
    folded = text.casefold()
    # The result of case folding is not always in NFKC (U+0390, for example).
    return folded if folded == text else unicodedata.normalize("NFKC", folded)


def origin(source: str, start: int, end: int, fold: Mapping[str, str] | None = None) -> slice:
    """Find the slice of `source` from which a span of the normalised text comes.

    start, end: the span in `normalise(source)`, or in that text after `replace` with `fold`. Takes
    time linear in `source`: call it for the few spans that are shown, not for every match.
    """
    done, first = 0, len(source)
    at = 0
    while at < len(source):
        stop = at + 1
        while stop < len(source) and unicodedata.combining(source[stop]):
            stop += 1
        piece = replace(normalise(source[at:stop]), fold or {})
        if done + len(piece) > start and first == len(source):
            first = at
        done += len(piece)
        at = stop
        if done >= end:
            break
    return slice(first, at)


def natural(name: str) -> list[str | int]:
    """Make a sort key for names by which step-9 comes before step-10."""
    parts = re.split(r"([0-9]+)", name.casefold())
    return [_size(part) if at % 2 else part for at, part in enumerate(parts)]


def _size(digits: str) -> int:
    """Return a number; of more digits than Python converts, one that is larger than all others."""
    return int(digits) if len(digits) <= 4000 else 10**4000 + len(digits)


def whole_number(text: str) -> int | None:
    """Read a whole number of up to 18 digits of any script, without a sign; None for all else."""
    return int(text) if text.isdecimal() and len(text) < 19 else None


def western(text: str) -> str:
    """Write the digits of any script as 0 to 9; the length of the text stays the same."""
    return _DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)


def replace(text: str, fold: Mapping[str, str]) -> str:
    """Apply a language's `[fold]` table, which lists spellings that count as the same."""
    for old, new in fold.items():
        if old in text:
            text = text.replace(old, new)
    return text


def tokens(text: str) -> list[str]:
    """Split a normalised text into words; an ideograph is a token, punctuation is left out."""
    return (_ASCII_TOKEN if text.isascii() else TOKEN).findall(text)


def pieces(text: str) -> list[str]:
    """Split a normalised text into its words (`tokens`) and what stands around each, in turn."""
    return (_ASCII_APART if text.isascii() else _APART).split(text)


class Memo(dict[str, T]):
    """What a function returns for words, kept because words recur: `memo[word]`."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[[str], T]) -> None:
        self._function = function

    def __missing__(self, word: str) -> T:
        if len(self) >= _MEMO:
            self.clear()
        found = self[word] = self._function(word)
        return found


def expand(phrase: str) -> Iterable[str]:
    """Generate the phrases that a pattern stands for: `(a|b)` is a choice, `(a)?` is optional.

    A group may contain other groups.

    >>> sorted(expand("i (do not|don't) (really )?agree"))[:2]
    ['i do not agree', 'i do not really agree']
    """
    return ("".join(chosen) for chosen in itertools.product(*parts(phrase)))


def parts(phrase: str) -> Iterator[list[str]]:
    """Yield the choices at each place of a pattern, in order."""
    if "(" not in phrase:
        yield [phrase]
        return
    for part in _GROUPS.split(phrase):
        if not part.startswith("("):
            yield [part]
            continue
        inside = part.removesuffix("?")[1:-1]
        choices = inside.split("|")
        if "(" in inside:
            choices = [text for choice in _BARS.split(inside) for text in expand(choice)]
        yield ["", *choices] if part.endswith("?") else choices


# A group, which may contain one level of inner groups; and its bars outside of these inner groups.
_GROUPS = re.compile(r"(\((?:[^()]|\([^()]*\)\??)*\)\??)")
_BARS = re.compile(r"\|(?![^()]*\))")


def well_formed(pattern: str) -> bool:
    """Tell whether every bracket and every `?` of a pattern belongs to a group."""
    return not any(set("()?") & set(part) for part in _GROUPS.split(pattern)[::2])


# A pattern whose phrases are words separated by spaces: str.split is ten times faster than TOKEN.
_WORDS = re.compile(rf"(?:[^\W_{HAN}]|[{_MARKS} ()|?])*\Z")


@functools.cache
def plain_phrases(pattern: str) -> list[tuple[str, list[str]]]:
    """List the phrases that a pattern stands for, each normalised and with its tokens."""
    plain = normalise(pattern)
    split = bool(_WORDS.match(plain))
    return [(phrase, phrase.split() if split else tokens(phrase)) for phrase in expand(plain)]


class _Place:
    """A place in a pattern: text that is read, and the choices behind it.

    A pattern may stand for 100,000 phrases, so they are not written out: the tokens that may come
    next, and the place behind each, are found when a text gets there.
    """

    __slots__ = ("begun", "choices", "k", "known", "next", "split")

    def __init__(
        self, begun: str, choices: list[list[str]], k: int, split: bool, known: dict[Any, _Place]
    ) -> None:
        """begun: text of the next token. k: the first choice that follows. split: see `_WORDS`."""
        self.begun, self.choices, self.k, self.split, self.known = begun, choices, k, split, known
        self.next: dict[str, list[_Place]] | None = None

    def follow(self) -> dict[str, list[_Place]]:
        """Return the places behind each token that may come next; "" is the end of a phrase."""
        if self.next is None:
            self.next = {}
            waiting = {(self.begun, self.k): None}
            while waiting:
                (text, k), _ = waiting.popitem()
                last = k == len(self.choices)
                token, rest = self._first(text)
                if token and (last or rest[:1].isspace() or _IDEOGRAPH.match(token)):
                    place = self._at(rest.lstrip(), k)
                    if place not in (behind := self.next.setdefault(token, [])):
                        behind.append(place)
                elif last:
                    self.next[""] = []
                else:
                    waiting.update(((text + choice, k + 1), None) for choice in self.choices[k])
        return self.next

    def _first(self, text: str) -> tuple[str, str]:
        """Part the first token of a text from what follows it."""
        if self.split:
            token = text.split(None, 1)[0] if text.strip() else ""
            return token, text.lstrip()[len(token) :]
        match = TOKEN.search(text)
        return (match.group(), text[match.end() :]) if match else ("", "")

    def _at(self, text: str, k: int) -> _Place:
        place = self.known.get((text, k))
        if place is None:
            place = self.known[text, k] = _Place(text, self.choices, k, self.split, self.known)
        return place


_IDEOGRAPH = re.compile(f"[{HAN}]")


@functools.cache
def _beginning(pattern: str) -> _Place:
    """Return the first place of a normalised and folded pattern."""
    return _Place("", list(parts(pattern)), 0, bool(_WORDS.match(pattern)), {})


# A trie: token -> trie of the tokens that follow; "" and ".", which are no tokens -> the group of
# the phrase that ends here. Until a token is looked up, it has the places of patterns behind it, by
# their groups.
Phrases = dict[str, Any]
_Waiting = list[tuple[str, _Place]]


def compile_phrases(
    groups: Iterable[tuple[str, Iterable[str]]], fold: Mapping[str, str] | None = None
) -> Phrases:
    """Compile phrases for `matches`. If two groups have the same phrase, the first group has it.

    This rule does not hold for a group whose name ends in a full stop: `matches` returns its
    phrases in addition to the same phrases of other groups, and the caller decides if they count.
    """
    fold = fold or {}
    return _grown(
        [
            (group, _beginning(one))
            for group, patterns in groups
            for pattern in patterns
            for one in _folded(normalise(pattern), fold)
        ]
    )


def _folded(pattern: str, fold: Mapping[str, str]) -> Iterable[str]:
    """Fold a normalised pattern; if several letters are folded to one, phrase by phrase."""
    whole = all(len(old) == 1 for old in fold)
    return (replace(phrase, fold) for phrase in ([pattern] if whole else expand(pattern)))


def _grown(waiting: _Waiting) -> Phrases:
    """Build the node of a trie at which patterns are at these places."""
    node: Phrases = {}
    for group, place in dict.fromkeys(waiting):
        for token, behind in place.follow().items():
            if token:
                node.setdefault(token, []).extend((group, one) for one in behind)
            else:
                node.setdefault("." if group.endswith(".") else "", group)
    return node


def matches(phrases: Phrases, words: Sequence[str], start: int) -> list[tuple[str, int]]:
    """Find every phrase that begins at `words[start]`: (group, number of tokens), longest first."""
    found: list[tuple[str, int]] = []
    node = phrases
    for at in range(start, len(words)):
        word = words[at]
        step = node.get(word)
        if step is None:
            break
        if type(step) is list:
            step = node[word] = _grown(step)
        node = step
        if "" in node:
            found.append((node[""], at + 1 - start))
        if "." in node:
            found.append((node["."], at + 1 - start))
    return found[::-1]


# Marks that engines and chat templates put before an echoed prompt.
_WRAPPER = re.compile(
    r"(?:\s|<[^<>\n]{0,40}>|\[/?\w{1,12}\]|#+|\*+|\b(?:user|human|prompt|question|instruction)\b:?)*",
    re.IGNORECASE,
)


def strip_echo(prompt: str, response: str) -> int:
    """Return the offset in `response` at which the reply begins, after any echo of `prompt`.

    The echo may be exact, may follow the marks of a chat template, may differ in white space and
    Unicode normalisation (by a tokenizer), or may be cut off (then the response has no reply).
    """
    if not prompt or not response:
        return 0
    if response.startswith(prompt):
        return len(prompt)
    start = _WRAPPER.match(response).end()  # type: ignore[union-attr]  # matches the empty text
    if start and response.startswith(prompt, start):
        return start + len(prompt)
    return _loose_echo(prompt, response, start)


def _loose_echo(prompt: str, response: str, start: int) -> int:
    """Find the end of an echo letter by letter, ignoring white space and Unicode normalisation."""
    first, second = prompt.lstrip()[:1], response[start : start + 50].lstrip()[:1]
    if unicodedata.normalize("NFKD", first)[:1] != unicodedata.normalize("NFKD", second)[:1]:
        return 0  # the usual case: no echo
    want = [c for c in unicodedata.normalize("NFKD", _few_marks(prompt)) if not c.isspace()]
    if not want:
        return 0
    i, at = 0, start
    while at < len(response) and i < len(want):
        for c in unicodedata.normalize("NFKD", response[at]):
            if c.isspace():
                continue
            if i >= len(want) or c != want[i]:
                # An echo may lack its last letters; an earlier difference means that it is a reply.
                return at if i >= len(want) else 0
            i += 1
        at += 1
    if i < len(want) and i < min(12, len(want)):
        return 0
    return at


# A line that begins with a label: "Statement 3: …", "**Q:** …".
_LABEL = re.compile(
    r"^[^\w\n]{0,6}([^\W\d_]{1,20}(?: [^\W\d_]{1,20})?)[ \d]{0,4}[:：]", re.MULTILINE
)
# A heading that counts: "## Item 2".
_COUNTED = re.compile(
    r"^#{1,6} [*_]{0,3}([^\W\d_]{1,16}(?: [^\W\d_]{1,16})?) ?([2٢২२])\b", re.MULTILINE
)
_ONES = {"2": "1", "٢": "١", "২": "১", "२": "१"}
_TURN = re.compile(
    r"^[^\w\n]{0,6}(?:<\|)?(?:user|human|instruction)(?:\|>)?[^\w\n]{0,3}(?:[:：]|$)",
    re.MULTILINE | re.IGNORECASE,
)


@functools.lru_cache(1 << 12)
def _labels(prompt: str) -> frozenset[str]:
    """Return the labels of a prompt's layout; the last one may announce the answer."""
    labels = [found[1].casefold() for found in _LABEL.finditer(prompt)]
    return frozenset(labels[:-1] if prompt.rstrip().endswith((":", "：")) else labels)


def next_item(prompt: str, reply: str) -> int:
    """Return the offset at which a reply goes on to an item that nobody asked about.

    It begins with a line that has a label of the prompt's own layout ("Statement: …"), a heading
    that counts a second item without a first one ("## Item 2"), or opens a turn of the user. The
    first line of the reply is kept, unless it is such a label before other words than the prompt's.
    """
    asked, first = _labels(prompt), len(reply) - len(reply.lstrip())
    label = _LABEL.match(reply, first) if asked else None
    first = reply.find("\n", first)
    if label and label[1].casefold() in asked:
        said = tokens(normalise(reply[label.end() : first if first > 0 else len(reply)]))
        known = set(tokens(normalise(prompt)))
        if said and 2 * sum(word in known for word in said) < len(said):
            return 0
    if first < 0:
        return len(reply)
    end = len(reply)
    if turn := _TURN.search(reply, first):
        end = turn.start()
    for counted in _COUNTED.finditer(reply, first, end):
        one = re.compile(rf"{re.escape(counted[1])} ?{_ONES[counted[2]]}(?!\d)")
        if not one.search(reply, 0, counted.start()):
            end = counted.start()
            break
    for found in _LABEL.finditer(reply, first, end) if asked else ():
        if found[1].casefold() in asked:
            return found.start()
    return end


_PLURALS = {
    "reply": "replies",
    "planned reply": "planned replies",
    "pass": "passes",
    "stratum": "strata",
}


def many(count: int, what: str) -> str:
    """Write a count with its noun: `1 statement`, `2,592 replies`."""
    return f"{count:,} {what if count == 1 else _PLURALS.get(what, what + 's')}"


# Half of a surrogate pair, which models do produce and Arrow cannot store.
_SURROGATE = re.compile("[\ud800-\udfff]")


def whole(value: Any) -> Any:
    """Replace each half of a surrogate pair in a text by U+FFFD; return other values unchanged."""
    return _SURROGATE.sub("\ufffd", value) if isinstance(value, str) else value
