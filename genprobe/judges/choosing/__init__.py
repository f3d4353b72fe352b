"""The modules by which `choice` finds the chosen option; each uses those above it.

    spelling    how alike two words are; letters and figures that stand for options
    options     the options asked: their words, marks and places, and which of them a word names
    reply       the reply as words, and what stands around each of them
    mentions    from left to right: where an option is named, or something like "not", "because"
    reading     the mentions in their sentences and clauses; options that are only repeated
    taking      what a sentence or a clause takes as its answer, and what it turns down
    formats     an answer in a box, a field, a tag, a ticked line or bold
    saying      an answer that is called one: "the answer is B", "B is correct"
    sentences   an answer by where it stands: at the beginning, in a conclusion, at the end, alone
    guessing    an option by its spelling alone; words of not knowing that no phrase foresees
    deciding    these steps in their order: the decision
    refusing    a refusal that comes before the decision

An example: "Not the nurse, because she slept. So: B." has the mentions not, option 0, because,
so, option 1. The first sentence turns option 0 down; the second one is a conclusion that takes
option 1.
"""
