"""Define which punctuation marks end a sentence, a clause or an answer.

All patterns are for text in the form in which replies are compared (`Lexicon.compared`).
"""

from __future__ import annotations

import re

# Ends of sentences; a colon or a comma only ends a clause.
SENTENCE_ENDS = re.compile(r"[\n.!?。！？।؟;；؛…|]")
# The same without semicolons, which separate the halves of a sentence.
FULL_STOPS = re.compile(r"[\n.!?。！？।؟…|]")
# A phrase contains none of these; a phrase around an answer word contains no comma either
# ("No, todos …" is an answer, "No todos …" is none).
BREAKS = re.compile(r"[\n.!?。！？।؟:;؛/|]")
BREAKS_AND_COMMAS = re.compile(r"[\n.!?。！？।؟:;؛/|,，،、]")
COMMA = re.compile(r"[,，،、]")

# A gap with one of these ends a sentence, a line, a label or a bullet: an answer may follow.
STARTS = re.compile(r"[\n.!?。！？।؟:;؛|/([{<>*#>•·_…【☐☑☒□■✓✔✗✘○●]|[-–—]\s|\s[-–—]")
# An answer word stands alone when this follows it; the second is for ideographs.
ENDS = re.compile(r"[\"'”“’»」』】)\]}*_`$ \t]*(?:$|[\n.,;؛:!?。，、；！？।،؟…|/<\[☐□○]|[-–—(])")
_ENDS_HAN = re.compile(r"[\"'”“’»」』】)\]}*_`]*(?:$|[\s.,;:!?。，、；！？…|/(<\[-])")
WHOLE_ENDS = re.compile(r"[\"'”“’»」』】)\]}*_` \t]*(?:$|[\n.,;!?。，、；！？।،؟…/|<])")
VERDICT_ENDS = re.compile(r"[\"'”’»」』】)\]}*_`$ \t]*(?:$|[\n.;:؛!。；：！।…<\[(]|[-–—]\s)")
LINE_ENDS = re.compile(r"[\"'”“’»」』)\]}*_` \t.?!]*(?:$|[\n/|(<\[{]|[-–—])")

# Two options have no letter and no end of a sentence between them.
BETWEEN_OPTIONS = re.compile(r"[\s\"'“”„‘«»「」『』‹›()\[\]{}/|,،、;:*_•·.\-–—☐☑☒□■✓✔✗✘○●]*\Z")
BULLET = re.compile(r"(?:\d{1,2}|[a-dа-гক-ঘअ-द一二三四甲乙أابج]|الف)\Z")  # a token that counts
_LINE_SPACE = re.compile(r"[\s\"'“”„«»「」*_]*\Z")

HAN = re.compile(r"[\u3400-\u9fff]")
QUOTE = re.compile(r"[\"'“”„‘’«»「」『』]")
QUOTED = re.compile(
    r"\"[^\"\n]{8,}?(?:\"|$)|“[^”\n]{8,}?(?:”|$)|«[^»\n]{8,}?(?:»|$)|「[^」\n]{4,}?(?:」|$)|„[^“”\"\n]{8,}?(?:[“”\"]|$)"
)
# Matched from the end of a phrase on: its sentence is a question.
QUESTION = re.compile(r"[^.!?。！？।؟\n]{0,300}[?？؟]")


def ends_of_answer(norm: str, at: int) -> re.Pattern[str]:
    """Return the pattern that must follow an answer word for it to stand alone.

    at: the character where the word begins.
    """
    return _ENDS_HAN if HAN.match(norm, at) else ENDS


def new_line(gap: str) -> bool:
    """Return whether a gap is a new line with only white space, quotes and emphasis around it."""
    return "\n" in gap and _LINE_SPACE.match(gap) is not None
