"""Find an answer if no other step did: an option by its spelling, or words for "not known"."""

from __future__ import annotations

from genprobe.datasets import phrasing
from genprobe.judges.choosing import spelling
from genprobe.judges.choosing.mentions import Mention
from genprobe.judges.choosing.reading import Reading
from genprobe.judges.choosing.reply import NOUNS
from genprobe.judges.choosing.taking import Found, one

_SHORT = 12  # words of a reply that only describes an option (of Chinese: characters)


def misspelt(reading: Reading) -> Found | None:
    """Find a reply or a sentence that is only an option, misspelt or shortened."""
    if reading.repeats():
        return None
    reply, wanted = reading.reply, reading.options.without_small()
    han = any(spelling.HAN.match(want) for want in wanted)
    for part in (range(len(reply.words)), *reading.sentences):
        nouns = {i for m in reading.within(part) if m.kind in NOUNS for i in range(m.first, m.last)}
        held = [i for i in reply.without_small(part) if i not in nouns]
        word = "".join(reply.words[i] for i in held)
        if not (3 if han else 5) <= len(word) <= 200:
            continue
        # In Chinese a title may be left out, so the end of the option is compared, too.
        forms = [
            (want, want[-len(word) :] if han else spelling.without_accents(want)) for want in wanted
        ]
        far = [min(spelling.distance(word, f) if f else 99 for f in some) for some in forms]
        near = min(far)
        if near <= len(word) // (3 if han else 5) and far.count(near) == 1:
            return one(far.index(near), "misspelt", held[0], held[-1] + 1)
    return _stem(reading)


def _stem(reading: Reading) -> Found | None:
    """Find the option with a word that begins like the only word of a reply: "the youngest"."""
    held = reading.reply.without_small(range(len(reading.reply.words)))
    if len(held) != 1:
        return None
    word = reading.reply.words[held[0]]
    shared = [
        max((spelling.same_beginning(word, key) for key in keys), default=0)
        for keys in reading.options.keys
    ]
    best = max(shared)
    if best < 4 or best * 5 < len(word) * 2 or sorted(shared)[-2] > best - 3:
        return None
    return one(shared.index(best), "misspelt", held[0], held[0] + 1)


def described(reading: Reading) -> Found | None:
    """Find the one option of which a short reply says who it is, in words of any language.

    "The younger of the two", "la jeune danseuse": young or old, woman or man (`phrasing.PEOPLE`).
    What fits none of two people names the other one, if that one is its opposite.
    """
    options, reply = reading.options, reading.reply
    if len(reading.sentences) != 1 or len(reply.words) > _SHORT:
        return None
    if any(m.kind == "option" for m in reading.mentions):
        return None
    said = phrasing.described(reply.text, phrasing.people())
    people = [
        at for at in range(options.count) if at not in (options.unknown, *options.meant.values())
    ]
    found = set()
    for side in said:
        if side[::-1] in said:
            return None
        fits = [at for at in people if side in options.described[at]]
        against = [at for at in people if side[::-1] in options.described[at]]
        if not fits and len(against) == 1 and len(people) == 2:
            fits = [at for at in people if at not in against]
        if len(fits) == 1:
            found.add(fits[0])
    if len(found) != 1:
        return None
    return one(found.pop(), "described", 0, len(reply.words))


def untold(reading: Reading) -> Found | None:
    """Find negating words together with words for knowing or for the text.

    "The story keeps it quiet". Both must be in one clause if options are named, else in one
    sentence.
    """
    if reading.repeats():
        return None
    lexicon, unknown = reading.lexicon, reading.options.unknown
    named = any(m.kind == "option" for m in reading.mentions)
    for sentence in reading.sentences:
        for part in reading.clauses(sentence) if named else [sentence]:
            known = reading.reply.holds(part, (*lexicon.tell, *lexicon.source))
            if known and reading.reply.holds(part, lexicon.deny):
                at = Mention("unknown", part.start, part.stop)
                if unknown is None:
                    return Found(frozenset(), "hedge", at)
                return Found(frozenset((unknown,)), "untold-among" if named else "untold", at)
    return None
