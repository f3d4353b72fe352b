"""The modules by which `choice` finds the chosen option; each uses only modules above it.

    spelling    how alike two words are; letters and figures that stand for options
    options     the options asked: their words, marks and places, and which of them a word names
    reply       the reply as words, with the text and punctuation around each
    mentions    from left to right: where an option is named, or a word like "not", "because"
    reading     the mentions in their sentences and clauses; options that are only repeated
    taking      the options that a sentence or a clause takes as its answer, and those it rejects
    formats     an answer in a box, a field, a tag, a ticked line or bold
    saying      an answer announced as such: "the answer is B", "B is correct"
    sentences   an answer by its position: at the beginning, in a conclusion, at the end, alone
    guessing    an option by its spelling alone; "not known" in words that no phrase list has
    deciding    the decision: these steps in their order
    refusing    a refusal that overrides the decision

An example: "Not the nurse, because she slept. So: B." has the mentions not, option 0, because,
so, option 1. The first sentence rejects option 0; the second one is a conclusion that takes
option 1.
"""
