"""Further columns by which scores can be grouped: facts about models, and regions.

The facts come from the catalogue of models (`resources/models.toml`, and your own file), the size
also from a model's name; a fact that is not known is empty. Regions are those of SHADES (3.2,
`stereotype_valid_regions`, a list). A row with several regions counts in the cell of each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from genprobe.errors import InputError
from genprobe.limits import parsed_list
from genprobe.resources import models

if TYPE_CHECKING:
    import pandas as pd

MODEL = {
    "model_kind": "base, instruct, reasoning or masked",
    "model_family": "family of the model",
    "model_size": "size of the model, in billions of parameters",
    "model_languages": "languages that the model's authors name",
    "model_weights": "open or hosted",
}
COLUMNS = {
    **MODEL,
    "region": "region in which the stereotype is known, if the data have regions",
    "inside": "yes if the stereotype is known in a region of --region, else no",
}
_REGIONS = ("stereotype_valid_regions", "valid_regions", "regions")
# `7B`, `1.5b`, `560m`; a point is also written `_` (1_6b) or as the unit (1b1).
_SIZE = re.compile(
    r"(?<![a-z0-9.])((?<!_)\d+_\d+|\d+(?:\.\d+)?)(b|m)(\d)?(?![a-z0-9])", re.IGNORECASE
)


def beside(outcomes: pd.DataFrame, by: Sequence[str], regions: Sequence[str]) -> pd.DataFrame:
    """Add those columns of this module that `by` names.

    If `regions` are given, and `by` does not contain `inside`, only rows known in one of them are
    kept. Raises InputError if the annotation is missing.
    """
    if "model" in outcomes and set(by) & set(MODEL):
        known = {name: of_model(str(name)) for name in outcomes["model"].unique()}
        for column in MODEL:
            if column in by:
                outcomes = outcomes.assign(
                    **{
                        column: outcomes["model"].map(
                            {name: facts[column] for name, facts in known.items()}
                        )
                    }
                )
    if not regions and not {"region", "inside"} & set(by):
        return outcomes
    annotated = next((c for c in _REGIONS if c in outcomes), None)
    if annotated is None:
        raise InputError(f"regions need a column {_REGIONS[0]!r}; the data do not have it")
    if "inside" in by and not regions:
        raise InputError("--by inside needs --region")
    sets = outcomes[annotated].astype(object).map(listed)
    wanted = {name.casefold() for name in regions}
    there = {name.casefold() for of in sets for name in of}
    if missing := sorted(wanted - there):
        raise InputError(
            f"no stereotype of the data is known in {', '.join(missing)}; regions: "
            f"{', '.join(sorted({name for of in sets for name in of}))[:400]}"
        )
    inside = sets.map(lambda of: any(name.casefold() in wanted for name in of))
    if "inside" in by:
        outcomes = outcomes.assign(inside=inside.map({True: "yes", False: "no"}))
        outcomes, sets = outcomes[sets.map(bool)], sets[sets.map(bool)]
    elif wanted:
        outcomes, sets = outcomes[inside], sets[inside]
    if "region" in by:
        # KZ and kz are one region, as for --region.
        spelt: dict[str, str] = {}
        for name in sorted({name for of in sets for name in of}):
            spelt.setdefault(name.casefold(), name)
        sets = sets.map(lambda of: tuple(dict.fromkeys(spelt[name.casefold()] for name in of)))
        outcomes = outcomes.assign(region=sets).explode("region")
        outcomes = outcomes[outcomes["region"].notna()].reset_index(drop=True)
    if not len(outcomes):
        raise InputError("no row has a region")
    return outcomes


def listed(cell: Any) -> tuple[str, ...]:
    """Return the regions of a cell.

    The cell is a list, a list as JSON or Python writes it, or names separated by commas.
    """
    if isinstance(cell, str):
        text = cell.strip()
        try:
            cell = parsed_list(text)
        except ValueError:
            cell = text.split(",")
    if not isinstance(cell, list | tuple):
        return ()
    return tuple(dict.fromkeys(name for part in cell if (name := str(part).strip())))


def of_model(name: str) -> dict[str, Any]:
    """Return the facts about a model, by its name in a run or a file."""
    known = {m.id.lower(): m for m in models.catalogue().values()} | models.catalogue()
    found = known.get(name.lower())
    size = found.size if found is not None and found.size else _named_size(name)
    facts: dict[str, Any] = dict.fromkeys(MODEL)
    facts["model_size"] = size
    if found is not None:
        facts |= {
            "model_kind": found.kind or None,
            "model_family": found.family or None,
            "model_languages": "+".join(found.languages) or None,
            "model_weights": "hosted" if found.base_url else "open",
        }
    return facts


def _named_size(name: str) -> str | None:
    """Read billions of parameters from a model's name: `7B`, `1.5b`, `560m`, `1_6b`, `1b1`."""
    match = _SIZE.search(name.rsplit("/", 1)[-1])
    if match is None:
        return None
    whole = match[1].replace("_", ".") + (f".{match[3]}" if match[3] else "")
    number = float(whole) / (1000 if match[2].lower() == "m" else 1)
    return f"{number:g}B"
