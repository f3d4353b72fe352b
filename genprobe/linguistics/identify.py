"""Identify the language of a text: a BCP 47 code, `mixed`, or `und` if unknown.

Only the first 2,000 characters of the text are read. "The asked language" is the language in which
the text should be. The steps:

1. Words are sorted by script; two ideographs count as one word. A script that belongs to one
   language (Bengali, Greek, Thai, …) identifies it from a single word; any other script needs two
   different words.
2. Within a script each word counts for one or more languages: 1 for a frequent word, 0.5 for an
   ending, 1 for a distinctive letter (`[text]` in prompts/languages/, and prompts/neighbours.toml),
   divided by the number of languages that share it. A clear lead decides (rule `words`).
3. Without a clear lead, langdetect's n-gram profiles decide among the languages of that script,
   with the evidence of step 2 as the prior (rule `langdetect`). In texts of fewer than 10 words the
   asked language, if it is known, and English start 3 times as likely; this only breaks ties. Texts
   of fewer than 3 different words stay `und`, and so do texts of fewer than 5 unless the
   probability reaches 0.9. A language that langdetect does not know (mainly Kazakh) needs only to
   lead the evidence.
   If the asked language is described neither in prompts/ nor by langdetect, a related language
   would be reported with great certainty. Then this step is skipped, and step 2 needs at least
   three different frequent words of one language, a quarter of all words; else the text is `und`
   (rule `undescribed`).
4. Characters that only GB 2312 or only Big5 has decide whether Chinese is Simplified or
   Traditional. If there are none, the text is in the asked one of the two, else in Simplified.
5. Words are counted by script, and within a script by sentence: a sentence of at least 4 words that
   step 2 clearly gives to another language counts for that one. Latin words inside another script
   count only if step 2 identifies their language, so that names and option letters do not count.
   Shares are reported if more than one language has words. The text is `mixed` if a second
   language has at least 3 words and 20 %.
6. Kazakh and Russian are often mixed within a sentence, so they are identified word by word. A word
   without evidence is taken for Russian (or for Kazakh if that is the main language) if its letters
   are typical of that language's frequent words. The rest, loanwords and short words that both
   languages share (телефон, минут, да, не), takes the language of the identified words around it
   if they agree, else the main language.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any, NamedTuple

from genprobe.errors import InputError
from genprobe.records import digest
from genprobe.resources import packs, registry
from genprobe.text import FORM, Memo, normalise, tokens

VERSION = "2.2"

LIMIT = 2000  # number of characters of a text that are read
MIXED_SHARE, MIXED_WORDS = 0.2, 3
SHORT, TIE = 10, 3.0  # below SHORT words, the asked language and English start TIE times as likely
BRIEF, SURE = 5, 0.9  # below BRIEF different words, langdetect must be this sure
WEIGHT = 1.5  # weight of the evidence of step 2 in the log odds
GROUPS = ("frequent", "letters", "endings")
LIKE = 1.0  # nats per letter by which a word's n-grams must favour Russian or Kazakh
LONGEST = 40  # letters of a word that are read
FLOOR = 5e-5  # probability of an n-gram that a profile lacks, as in langdetect
ALONE = 0.6  # evidence needed for a language that langdetect does not know
ENOUGH = 3  # least number of different words for langdetect
OTHER = 1.5  # least evidence for a language that was not asked for
_SHARE = 0.12  # least evidence for a language, of the number of words
SENTENCE = 4  # least number of words of a sentence that counts for a language of its own

# Scripts, named by the first word of their characters' Unicode names. Those of one language:
_ONE = {
    "ARMENIAN": "hy", "BENGALI": "bn", "ETHIOPIC": "am", "GEORGIAN": "ka", "GREEK": "el",
    "GUJARATI": "gu", "GURMUKHI": "pa", "HANGUL": "ko", "HEBREW": "he", "HIRAGANA": "ja",
    "KANNADA": "kn", "KATAKANA": "ja", "KHMER": "km", "LAO": "lo", "MALAYALAM": "ml",
    "MYANMAR": "my", "ORIYA": "or", "SINHALA": "si", "TAMIL": "ta", "TELUGU": "te",
    "THAI": "th", "TIBETAN": "bo",
}  # fmt: skip
# Scripts of several languages -> those that langdetect knows; LATIN has the rest of its 55.
_SEVERAL: dict[str, tuple[str, ...]] = {
    "ARABIC": ("ar", "fa", "ur"),
    "CYRILLIC": ("bg", "mk", "ru", "uk"),
    "DEVANAGARI": ("hi", "mr", "ne"),
    "LATIN": (),
}
_HAN = ("zh", "zh-Hant")
_OURS = {"pt": "pt-BR"}  # langdetect's code -> genprobe's code
_BY_WORD = frozenset({"kk", "ru"})  # the two languages that people mix within a sentence

_URL = re.compile(r"https?://\S+|www\.\S+|\S+@\S+")
_SENTENCE_END = re.compile(r"[.!?:;\n।؟۔。]+")

Voices = tuple[tuple[str, float], ...]  # language -> how much a word counts for it


@functools.lru_cache(1 << 14)
def _script(char: str) -> str:
    """Return the name of a letter's script, or `HAN`; "" if it does not identify a language."""
    name = unicodedata.name(char, "").split(" ", 1)[0] if char.isalpha() else ""
    if name == "CJK":
        return "HAN"
    return name if name in _ONE or name in _SEVERAL else ""


class _Lexicon:
    """The evidence that words give for languages, from `prompts/`."""

    def __init__(self, tables: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
        self.hash = digest(tables)
        self.words = self._voices(tables, "frequent", 1.0)
        self.letters = self._voices(tables, "letters", 1.0)
        self.endings = self._voices(tables, "endings", 0.5)
        self.longest = max(map(len, self.endings), default=0)
        self.speak = functools.lru_cache(1 << 16)(self._speak)
        self.sounds = functools.lru_cache(1 << 16)(self._sounds)

    @staticmethod
    def _voices(
        tables: Mapping[str, Mapping[str, Sequence[str]]], group: str, loud: float
    ) -> dict[str, Voices]:
        claims: dict[str, list[str]] = {}
        for code, table in tables.items():
            for word in sorted({normalise(w) for w in table.get(group, ())}):
                claims.setdefault(word, []).append(code)
        return {w: tuple((c, loud / len(codes)) for c in codes) for w, codes in claims.items()}

    def _speak(self, word: str) -> Voices:
        """Return the languages that a normalised word counts for, with weights of at most 1."""
        voices = dict(self.words.get(word, ()))
        if not voices:
            for size in range(min(self.longest, len(word) - 2), 1, -1):
                if found := self.endings.get(word[-size:]):
                    voices = dict(found)
                    break
        if not word.isascii():
            for code, loud in self._spelled(word):
                voices[code] = max(voices.get(code, 0.0), loud)
        return tuple(sorted(voices.items()))

    def _spelled(self, word: str) -> Iterator[tuple[str, float]]:
        """Yield the languages that have all of the word's distinctive letters, else any of them."""
        found = [self.letters[char] for char in sorted(set(word)) if char in self.letters]
        claims = [{code for code, _ in voices} for voices in found]
        if common := set.intersection(*claims) if claims else set():
            return iter([(code, 1 / len(common)) for code in common])
        return itertools.chain.from_iterable(found)

    def _sounds(self, word: str) -> float:
        """Return how much likelier a word's n-grams are in Russian words than in Kazakh ones.

        In nats per letter; the n-grams are those of the frequent words of both languages.
        """
        odds = self._odds
        return sum(odds.get(gram, 0.0) for gram in _ngrams(f" {word} ", 2, 4)) / len(word)

    @functools.cached_property
    def _odds(self) -> dict[str, float]:
        counts = {
            code: Counter(
                gram
                for word, voices in self.words.items()
                if code in dict(voices) and _script(word[0]) == "CYRILLIC"
                for gram in _ngrams(f" {word} ", 2, 4)
            )
            for code in _BY_WORD
        }
        ru, kk = counts["ru"], counts["kk"]
        known = ru.keys() | kk.keys()
        total = {code: n.total() + 0.5 * len(known) for code, n in counts.items()}
        return {
            gram: math.log((ru[gram] + 0.5) / total["ru"] * total["kk"] / (kk[gram] + 0.5))
            for gram in known
        }

    def common(self, words: Collection[str]) -> str:
        """Return the language that clearly has many of these words as frequent words, else "".

        At least three words and a quarter of all are needed. Letters and endings do not count,
        because related languages share them.
        """
        total: dict[str, float] = {}
        heard: Counter[str] = Counter()
        for word in words:
            for code, loud in self.words.get(word, ()):
                total[code] = total.get(code, 0.0) + loud
                heard[code] += 1
        code = _clear(_ranked(total), len(words), least=2.0)
        return code if heard[code] >= max(ENOUGH, len(words) / 4) else ""

    def evidence(self, words: Iterable[str]) -> list[tuple[str, float]]:
        """Sum up the evidence of the words by language, the strongest first."""
        total: dict[str, float] = {}
        for word in words:
            for code, loud in self.speak(word):
                total[code] = total.get(code, 0.0) + loud
        return _ranked(total)


def _ranked(amounts: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(amounts.items(), key=lambda pair: (-pair[1], pair[0]))


def _clear(
    evidence: Sequence[tuple[str, float]], n: int, least: float = 1.4, lead: float = 1.6
) -> str:
    """Return the language that clearly leads the evidence of `n` words, or an empty string."""
    (code, best), (_, second) = [*evidence[:2], ("", 0.0), ("", 0.0)][:2]
    return code if best >= max(least, _SHARE * n) and best >= lead * second else ""


@functools.cache
def _profiles() -> Any:
    """Load langdetect's profiles, once and only when needed, because it takes 0.3 s."""
    from langdetect.detector_factory import PROFILES_DIRECTORY, DetectorFactory

    factory = DetectorFactory()
    factory.load_profile(PROFILES_DIRECTORY)
    return factory


class _Detector:
    """langdetect's n-gram profiles.

    langdetect itself draws n-grams at random, with replacement, until it is sure. Here every n-gram
    of the words counts once, and each letter once for its three n-grams. This needs no seed, is
    faster, and leaves probabilities that a prior can still change.
    """

    def codes(self, script: str) -> tuple[str, ...]:
        """Return genprobe's codes of the script's languages that langdetect knows."""
        return tuple(_OURS.get(c, c) for c in self._columns(script))

    @functools.cache  # noqa: B019  # one detector lives as long as its judge
    def _columns(self, script: str) -> dict[str, int]:
        known = {code: i for i, code in enumerate(_profiles().langlist)}
        if codes := _SEVERAL[script]:
            return {c: known[c] for c in codes}
        others = {*_ONE.values(), "zh-cn", "zh-tw", *(c for cs in _SEVERAL.values() for c in cs)}
        return {c: known[c] for c in sorted(known.keys() - others)}

    def __call__(
        self, words: Sequence[str], script: str, prior: Mapping[str, float]
    ) -> tuple[str, float]:
        """Return the likeliest language and its probability; `prior`: log odds by language."""
        codes, profiles = self.codes(script), _profiles().word_lang_prob_map
        pick = operator.itemgetter(*self._columns(script).values())
        scores = [prior.get(code, 0.0) for code in codes]
        for word in words:
            for row in filter(None, map(profiles.get, _ngrams(f" {word} "))):
                logs = (math.log(p + FLOOR) / 3 for p in pick(row))
                scores = [s + p for s, p in zip(scores, logs, strict=True)]
        top = max(scores)
        likely = [math.exp(s - top) for s in scores]
        best = likely.index(1.0)
        return codes[best], 1 / sum(likely)


def _ngrams(padded: str, least: int = 1, most: int = 3) -> Iterator[str]:
    for size in range(least, most + 1):
        for at in range(len(padded) - size + 1):
            yield padded[at : at + size]


class _Told(NamedTuple):
    """The languages of one script's words: words by language ("" if unknown), and the rule."""

    shares: dict[str, float]
    rule: str
    sure: float | None = None


_UNTOLD = _Told({}, "too-short")


class Identified(NamedTuple):
    """The language of a text.

    A code, `mixed` or `und`; the rule that decided; the words that it is based on; langdetect's
    probability if it decided; and the shares of words by language if there are several.
    """

    code: str
    rule: str
    evidence: str = ""
    sure: float | None = None
    shares: dict[str, float] | None = None


class Identifier:
    """Identifier of the language of texts, by the steps in the docstring of the module."""

    def __init__(self, lexicon: _Lexicon) -> None:
        self._lexicon = lexicon
        self._detect = _Detector()
        detector = metadata.version("langdetect")
        self.signature = f"{VERSION}.{FORM}+{lexicon.hash[:8]}+langdetect-{detector}"

    def __call__(self, text: str, asked: str = "") -> Identified:
        """Identify the language of a text.

        asked: the language in which it should be, which breaks ties in short texts; may be "".
        """
        asked = code_of(asked)
        text = normalise(_URL.sub(" ", text[:LIMIT]))
        scripts = _by_script(text)
        if not scripts:
            return Identified("und", "no-words")
        total = sum(map(len, scripts.values()))
        told = {
            script: self._tell(script, words, text, asked, len(words) * 2 >= total)
            for script, words in scripts.items()
        }
        shares: dict[str, float] = {}
        for one in told.values():
            for code, n in one.shares.items():
                shares[code] = shares.get(code, 0.0) + n
        if not shares:
            rules = {one.rule for one in told.values()}
            return Identified("und", "undescribed" if "undescribed" in rules else "too-short")
        (code, _), *others = ranked = _ranked(shares)
        whole = sum(shares.values())
        parts = {c: round(n / whole, 3) for c, n in ranked} if others else None
        if others and others[0][1] >= max(MIXED_WORDS, MIXED_SHARE * whole):
            return Identified("mixed", "shares", shares=parts)
        script = max((s for s in told if code in told[s].shares), key=lambda s: len(scripts[s]))
        spoken = self._speaking(scripts[script], code)
        return Identified(code, told[script].rule, spoken, told[script].sure, parts)

    def other(self, words: Sequence[str], own: frozenset[str]) -> str:
        """Return the language that words are clearly in, if it is none of `own`; else "".

        words: normalised words, some of the first. A quick test: frequent words, letters and
        endings alone.
        """
        chinese = [word for word in words if len(word) == 1 and _script(word) == "HAN"]
        if 2 * len(chinese) > len(words):
            (told, *_) = [*_chinese(chinese, "").shares, ""]
            return "" if told in own else told
        if len(words) == 1 and words[0].isascii():
            return ""
        least = OTHER if len(words) > 1 else ALONE
        loudest = self._others(own).__getitem__
        if sum(map(loudest, words)) < max(least, _SHARE * len(words)) - 1e-6:
            return ""  # enough for no language
        code = _clear(self._lexicon.evidence(words), len(words), least=least)
        return "" if code in own else code

    @functools.cache  # noqa: B019  # one identifier lives as long as its judge
    def _others(self, own: frozenset[str]) -> Memo[float]:
        """Return word -> the weight of the language that it counts for most, if none of `own`."""
        speak = self._lexicon.speak
        return Memo(lambda word: max((w for code, w in speak(word) if code not in own), default=0))

    def _knows(self, asked: str, script: str) -> bool:
        """Tell whether a text in this language and script could be identified.

        True if no language is named. A language with words in its own file is known in every
        script; any other only in scripts for which genprobe or langdetect describes it.
        """
        return not asked or asked in _own() or (asked, script) in self._known

    @functools.cached_property
    def _known(self) -> frozenset[tuple[str, str]]:
        tables = (self._lexicon.words, self._lexicon.letters, self._lexicon.endings)
        described = {
            (code, _script(word[0]))
            for table in tables
            for word, said in table.items()
            for code, _ in said
        }
        detected = {(code, script) for script in _SEVERAL for code in self._detect.codes(script)}
        return frozenset(described | detected)

    def _speaking(self, words: list[str], code: str) -> str:
        """Return the first five words that count for the language."""
        heard = (
            w for w in dict.fromkeys(words) if any(c == code for c, _ in self._lexicon.speak(w))
        )
        return " ".join(itertools.islice(heard, 5))

    def _tell(self, script: str, words: list[str], text: str, asked: str, most: bool) -> _Told:
        """Return the languages of words of one script. most: they are at least half of the text."""
        n = len(words)
        if script == "HAN":
            return _chinese(words, asked)
        if script in _ONE:
            return _Told({_ONE[script]: n}, "script")
        if len(set(words)) < 2:
            return _UNTOLD
        if not self._knows(asked, script):
            code = self._lexicon.common(set(words))
            return _Told({code: n}, "words") if code else _Told({}, "undescribed")
        evidence = self._lexicon.evidence(words)
        code, rule, sure = _clear(evidence, n), "words", None
        if not code and {code for code, _ in evidence[:2]} == _BY_WORD:  # added up
            both = (evidence[0][0], evidence[0][1] + evidence[1][1])
            code = _clear([both, *evidence[2:]], n)
        if not code and most:
            code, rule, sure = self._weigh(script, words, evidence, asked)
        if not code:
            return _Told({}, rule)
        if code in _BY_WORD and script == "CYRILLIC":
            return _Told(self._word_by_word(words, code), rule, sure)
        return _Told(self._by_sentence(script, n, text, code), rule, sure)

    def _weigh(
        self, script: str, words: list[str], evidence: Sequence[tuple[str, float]], asked: str
    ) -> tuple[str, str, float | None]:
        """Return (code or "", rule, probability), with unclear evidence as langdetect's prior."""
        known = self._detect.codes(script)
        heard = max((loud for code, loud in evidence if code in known), default=0.0)
        if evidence and evidence[0][1] > max(ALONE, heard) and evidence[0][0] not in known:
            return evidence[0][0], "words", None
        if len(set(words)) < ENOUGH:
            return "", "too-short", None
        if not self._knows(asked, script):
            return "", "undescribed", None
        prior = {code: WEIGHT * loud for code, loud in evidence}
        if len(words) < SHORT:
            for code in {asked, "en"}:
                prior[code] = prior.get(code, 0.0) + math.log(TIE)
        code, sure = self._detect(words, script, prior)
        return code if len(words) >= BRIEF or sure >= SURE else "", "langdetect", round(sure, 4)

    def _by_sentence(self, script: str, n: int, text: str, main: str) -> dict[str, float]:
        """Count words by language; a sentence clearly in another language counts for that one."""
        counts: dict[str, float] = {main: n}
        for sentence in _SENTENCE_END.split(text):
            part = _by_script(sentence).get(script, [])
            if SENTENCE <= len(part) < n:
                code = _clear(self._lexicon.evidence(part), len(part), least=2, lead=2) or main
                counts[main] -= len(part)
                counts[code] = counts.get(code, 0) + len(part)
        return counts

    def _word_by_word(self, words: list[str], main: str) -> dict[str, float]:
        """Count Kazakh and Russian words; one without evidence is counted like its neighbours."""
        told = [self._of_two(word, main) for word in words]
        counts: dict[str, float] = {}
        for code in _between(told, main):
            counts[code] = counts.get(code, 0) + 1
        return counts

    def share(self, code: str, texts: Iterable[str]) -> float | None:
        """Return the share of words of `code`, from 0 to 1, in texts that mix Kazakh and Russian.

        The language of each word is identified, with Kazakh as the main language. Returns None if
        there is no Cyrillic word.
        """
        told = [
            word
            for text in texts
            for word in _between(
                [self._of_two(w, "kk") for w in _by_script(normalise(text)).get("CYRILLIC", [])],
                "kk",
            )
        ]
        return told.count(code) / len(told) if told else None

    def _of_two(self, word: str, main: str) -> str:
        """Return the code of Kazakh or Russian; "" if the word is not clearly one of them."""
        voices = {c: loud for c, loud in self._lexicon.speak(word) if c in _BY_WORD}
        if voices:
            (code, loud), (_, other) = [*_ranked(voices), ("", 0.0)][:2]
            return code if loud > other else ""
        # Letters and endings usually identify Kazakh words. In a Russian text, n-grams alone are
        # therefore not enough to call a word Kazakh.
        odds = self._lexicon.sounds(word)
        return "ru" if odds > LIKE else main if main == "kk" and odds < -LIKE else ""


def _between(told: Sequence[str], main: str) -> Iterator[str]:
    """Yield each word's language; an unknown one is that of both neighbours, if they agree."""
    after = [""] * len(told)
    for at in range(len(told) - 2, -1, -1):
        after[at] = told[at + 1] or after[at + 1]
    before = ""
    for at, code in enumerate(told):
        yield code or (before if before == after[at] else "") or main
        before = code or before


def _by_script(text: str) -> dict[str, list[str]]:
    """Return the words of a normalised text by script; each Chinese character is a word."""
    scripts: dict[str, list[str]] = {}
    for token in tokens(text):
        for word in token.split("'") if "'" in token else (token,):
            if not word or not (script := _script(word[0])):
                continue
            if script in _ONE and len(word) < 2:  # a symbol such as π or ㄱ
                continue
            scripts.setdefault(script, []).append(word[:LONGEST])
    kana = scripts.keys() & {"HIRAGANA", "KATAKANA"}
    if kana and "HAN" in scripts:  # Japanese uses both; its ideographs are not Chinese
        scripts[min(kana)].extend(scripts.pop("HAN"))
    return scripts


@functools.lru_cache(1 << 10)
def code_of(lang: str) -> str:
    """Return the code of the asked language, unchanged if no language file has it."""
    try:
        return packs.language_code(lang)
    except InputError:
        return lang


@functools.lru_cache(1 << 14)
def _only_in(char: str) -> str:
    """Return `zh` for a character only in GB 2312, `zh-Hant` for one only in Big5, else ""."""
    simplified, traditional = (bool(char.encode(c, "ignore")) for c in ("gb2312", "big5"))
    if simplified == traditional:
        return ""
    return "zh" if simplified else "zh-Hant"


def _chinese(chars: Sequence[str], asked: str) -> _Told:
    """Tell Simplified from Traditional Chinese, or both; two characters count as one word."""
    n = len(chars) / 2
    if n < 2:
        return _UNTOLD
    only = Counter(filter(None, map(_only_in, chars)))
    if not only:
        return _Told({asked if asked in _HAN else "zh": n}, "characters")
    # One or two characters of the other kind are a slip, not a second language.
    if min(only[c] for c in _HAN) < MIXED_WORDS:
        return _Told({max(_HAN, key=lambda c: (only[c], c == asked)): n}, "characters")
    return _Told({c: n * only[c] / only.total() for c in _HAN}, "characters")


@functools.cache
def _lexicon() -> _Lexicon:
    """Return the words of the languages in `prompts/` and of their neighbours."""
    tables = {
        code: {group: packs.load_language(code).words[group] for group in GROUPS}
        for code in registry.names("languages")
    }
    return _Lexicon({**tables, **packs.load_neighbours()})


@functools.cache
def _own() -> frozenset[str]:
    """Return the languages whose files describe their words, and Chinese (by its characters)."""
    languages = map(packs.load_language, registry.names("languages"))
    described = {one.code for one in languages if any(one.words[group] for group in GROUPS)}
    return frozenset(described | set(_HAN))


def make() -> Identifier:
    """Make the identifier for the languages in `prompts/`.

    Raises InputError if a language file is malformed.
    """
    return Identifier(_lexicon())
