"""Does the reply have an exclamation mark?"""

from genprobe.judges import BOOLEAN, Column, Verdict

# Its place among the judges of a list, and what it reads.
PLACE, READS = 80, "replies"
# What it adds to the table of outcomes: name, meaning, the value of a judgment, its type.
COLUMNS = (
    Column("exclaims", "it exclaims", lambda j: j.label == "yes", BOOLEAN, heading="Exclaims"),
)


class ExclaimJudge:
    name = "exclaim"
    column = "exclaiming"  # of a file that `genprobe judge FILE` writes
    reads = frozenset(("free",))  # replies in words, not scores of options
    needs = ("response",)  # a reply that is missing is not judged
    signature = "exclaim@1"  # stands in the signature of each figure; change it with the rule

    def __call__(self, item):
        return Verdict("yes" if "!" in item.response or "！" in item.response else "no", "mark")


def make():
    return ExclaimJudge()
