"""Find the likeliest option, by the probability that the reply begins with a name of it.

P(option) is the probability that the reply begins with one of the names of the option, computed as
the judge `probability` computes it for yes and no. `outside` is the probability of all other
replies.

label: the number of the likeliest option, from 0 in the order of the list; empty if two are equally
likely.
"""

from __future__ import annotations

from genprobe.judges import LABEL, Column, Item, Verdict, field_of
from genprobe.judges.probability import masses

VERSION = 1

PLACE, READS = 45, "probabilities of options"
COLUMNS = (
    Column("chosen", "number of the likeliest option in the list, from 0", LABEL),
    Column("kind", "kind of reply", field_of("kind")),
)


def make() -> LikeliestJudge:
    """Make the judge; it takes no options."""
    return LikeliestJudge()


class LikeliestJudge:
    """The judge `likeliest`: see the module's docstring.

    fields: `kind`; `p`, the probability of each option in the order in which they were listed;
    `outside`.
    """

    name = "likeliest"
    column = "chosen"
    reads = frozenset(("logprob",))
    needs = ("lang",)
    signature = f"likeliest@{VERSION}"

    def __call__(self, item: Item) -> Verdict:
        names = list(dict.fromkeys(str(c["answer"]) for c in item.continuations))
        found = masses(item.continuations, names)
        p = [found[name] for name in names]
        best = [at for at, mass in enumerate(p) if mass == max(p)]
        return Verdict(
            str(best[0]) if len(best) == 1 else "",
            "likelier",
            "",
            None,
            {
                "kind": "answer" if len(best) == 1 else "tie",
                "p": list(p),
                "outside": max(0.0, 1.0 - sum(p)),
            },
        )
