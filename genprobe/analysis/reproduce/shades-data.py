"""SHADES: counts of its statements, by role, form and region, from the public table.

Section 2 and Tables 4 and 6. A form counts every row that has it; "declaration" and
"conversational" include the annotated forms that Table 4 does not list. Table 6 is headed
"stereotypes recognized by at least 2 regions", but its figures exceed the number of stereotypes.
They are close to the number of pairs of such a stereotype and a region where it is known, which is
counted here. Table 13 (F statistics) needs the scores of base models, which are not public.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from genprobe.analysis.reproduce import Cell, File, Folder, Printed
from genprobe.outcomes.facts import listed

STATEMENTS = File(
    "statements.csv",
    "https://github.com/bigscience-workshop/ShadesofBias (the statements, one row an original or "
    "contrast)",
    ("subset", "bias_type", "type", "stereotype_valid_regions"),
)
FILES = (STATEMENTS,)
# Forms that Table 4 counts together, and the forms it names in brackets.
_FORMS = {
    "declaration": ("declaration", "obligation", "aspiration"),
    "conversational": ("conversational", "question"),
}
_NAMES = {"region person": "regional person"}


def cells(folder: Folder, printed: Printed) -> Iterator[Cell]:
    """Yield the counts, from the table in the folder."""
    rows = folder.read(STATEMENTS)
    originals = rows[rows["subset"] == "_original"]
    marked = int((rows["subset"].fillna("") != "").sum())  # six rows have neither value
    ours = {"stereotypes": len(originals), "contrasts": marked - len(originals)}
    for row in printed.rows("counts"):
        yield printed.cell(printed.where("counts"), row["what"], row["figure"], ours[row["what"]])
    forms = Counter(form for cell in rows["type"] for form in listed(cell))
    for row in printed.rows("forms"):
        count = sum(forms[form] for form in _FORMS.get(row["form"], (row["form"],)))
        yield printed.cell(printed.where("forms"), row["form"], row["figure"], count)
    known: Counter[str] = Counter()
    pairs = zip(originals["bias_type"], originals["stereotype_valid_regions"], strict=True)
    for types, regions in pairs:
        names = listed(regions)
        for name in (
            listed(types) if len(names) > 1 else ()
        ):  # a mixed type counts as a separate type
            known[_NAMES.get(name, name.replace("-", " "))] += len(names)
    for row in printed.rows("regions"):
        yield printed.cell(printed.where("regions"), row["bias"], row["figure"], known[row["bias"]])
