"""Read the records of a run as plain rows, without the code of the table of outcomes."""

from __future__ import annotations

import difflib
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from genprobe.judges import Item, seen
from genprobe.judges.story import near_duplicates
from genprobe.limits import parsed_list
from genprobe.records import JSON, Statement, canonical
from genprobe.resources import models, packs
from genprobe.runs.run import Run
from genprobe.text.display import alike

Row = dict[str, Any]
_REGIONS = ("stereotype_valid_regions", "valid_regions", "regions")


def of_run(run: Any, scorers: Sequence[str] = ()) -> list[Row]:
    """Make the rows of a run of any kind.

    scorers: the scorers of log-probabilities; if empty, those requested in the run's spec.
    """
    kind = run.spec.pack.partition("@")[0].partition("/")[0]
    if kind != "text":
        return _one_kind(chosen(run) if kind == "choosing" else replies(run))
    names = list(scorers) or list(run.spec.probes)
    choices = any(statement.type == "choice" for statement in run.statements())
    return _one_kind(scored_choices(run, names) if choices else pairs(run, names))


def _one_kind(rows: list[Row]) -> list[Row]:
    """Convert the numbers of a column to text if any cell is text, or true beside a number."""
    for name in {name for row in rows for name in row}:
        numbers = [row for row in rows if type(row.get(name)) in (int, float, bool)]
        kinds = {type(row.get(name)) for row in rows}
        if str in kinds or (bool in kinds and kinds & {int, float}):
            for row in numbers:
                value = row[name]
                whole = isinstance(value, float) and value.is_integer()
                row[name] = str(int(value) if whole else value)
                row[name] = row[name].lower() if isinstance(value, bool) else row[name]
    return rows


def text(value: Any) -> str | None:
    """Trim and normalise a text; None stays None."""
    return alike(str(value)) or None


def cell(value: JSON) -> Any:
    """Convert a value of the data to the form used for the cells of scores."""
    if isinstance(value, str):
        return alike(value) or None
    return canonical(value) if isinstance(value, list | dict) else value


def _known(statement: Statement) -> bool:
    """Tell whether the stereotype is marked as known; `zh` counts for both Chinese scripts."""
    here = {statement.lang} | ({"zh"} if statement.lang == "zh-Hant" else set())
    return bool(here & set(statement.valid_in))


# --- answers, stories, essays


def replies(run: Run) -> list[Row]:
    """Make one row for each planned request, with its outcome."""
    statements = {(s.id, s.lang): s for s in run.statements()}
    answered = set(run.answered())
    responses = {response.request: response for response in run.responses()}
    failed = {failure.request: failure.kind for failure in run.failures()}
    judged = {name: {j.request: j for j in run.judgments(name)} for name in run.judges()}
    rows, tells = [], _telling(run)
    for request in run.requests():
        of = statements[request.statement, request.lang]
        row: Row = {}
        for name, value in of.extra.items():
            row[f"{name}_data" if name in _OURS else name] = cell(value)
        row |= {
            "model": run.spec.model,
            "revision": run.spec.shown,
            "decode": request.decode,
            "lang": request.lang,
            "probe": request.probe,
            "measures": getattr(run.probes.get(request.probe), "measures", None) or None,
            "when": getattr(run.probes.get(request.probe), "when", None) or None,
            "statement": of.id,
            "pair": text(of.pair),
            "role": of.role,
            "bias_type": text(of.bias_type),
            "type": text(of.type),
            "entity": text(of.entity),
            "text": of.text,
            "valid": _known(of),
            **request.facets,
            "sample": request.sample,
            "request": request.id,
            "prompt": request.messages[-1]["content"] if request.messages else "",
            "status": "missing",
            "failure": None,
        }
        if request.id in answered:
            row["status"] = "answered"
            if response := responses.get(request.id):
                parted = seen(request.lang, request.probe, row["prompt"], response).parted
                row |= {"response": parted.reply, "thought_state": parted.state}
                row |= {"thought": parted.thought or None}
                row |= {"served": response.model or None}
                row |= {"fingerprint": response.fingerprint or None}
            row |= _judged(judged, request.id)
            row |= _derived(row)
            if run.spec.command == "essays":
                row["side"] = row.get("llm_stance") if request.lang in tells else None
                if row.get("refused"):
                    row["side"] = "refusal"
        elif request.id in failed:
            row |= {"status": "failed", "failure": failed[request.id]}
        rows.append(row)
    for row in rows:
        row["told"] = "story" in judged
    if (run.judges().get("story") or "").startswith("story@1+"):  # it marked no duplicates
        _mark_repeated(rows)
    return rows


def _telling(run: Run) -> set[str]:
    """Return the languages in which the second reader tells the side of an essay."""
    found, noted = set(), run.judged()
    for row in noted["llm-stance"].licence if "llm-stance" in noted else ():
        told: Any = row
        enough = told["n"] >= 10 and told["low"] > 0.5 and told["right"] / told["n"] >= 0.8
        if told["kind"] == "essay" and enough:
            found.add(told["lang"])
    return found


def _judged(judged: Mapping[str, Mapping[str, Any]], request: str) -> Row:
    """Collect the labels of a reply from each judge, named as columns."""
    row: Row = {}
    for name in ("yesno", "probability"):
        if found := judged.get(name, {}).get(request):
            row |= {"answer": found.label, "kind": found.fields.get("kind")}
            row |= {"conflict": found.fields.get("conflict"), "rule": found.rule}
            row["evidence"] = found.evidence or None
            row |= {key: found.fields[key] for key in _MASSES if key in found.fields}
    for name in ("refusal", "language", "story", "sentiment"):
        if found := judged.get(name, {}).get(request):
            row[f"by_{name}"] = found.label
    for name in judged:
        if name.startswith("llm-") and (found := judged[name].get(request)):
            row[name.replace("-", "_")] = found.label
    if found := judged.get("thought", {}).get(request):
        row |= {key: found.fields.get(key) for key in _OF_THOUGHTS}
    if found := judged.get("sentiment", {}).get(request):
        row["classifier"] = found.fields.get("classifier")
    if "refusal" in judged:
        label = row.get("by_refusal")
        row["refused"] = None if label is None else label == "yes"
    else:
        kind = row.get("kind")
        row["refused"] = None if kind is None else kind in ("refusal", "filter")
    told = judged.get("story", {}).get(request)
    row["reply_language"] = row.get("by_language")
    if told and "language" not in judged:
        row["reply_language"] = told.fields.get("language")
    if told:
        row |= {key: told.fields.get(key) for key in ("sentences", "cut_off")}
    if found := judged.get("sentiment", {}).get(request):
        row["negative"] = found.score
    if "by_story" in row:
        row["usable"] = row["by_story"] == "usable"
        row["unusable_why"] = None if row["usable"] else row["by_story"]
    row["sentiment"] = row.get("by_sentiment")
    return row


def _derived(row: Row) -> Row:
    """Derive the columns that follow from those of the judges."""
    said, told = row.get("answer"), row.get("reply_language")
    found: Row = {"says": said == row["when"] if said in ("yes", "no") else None}
    if told not in (None, "und", "mixed"):
        found["in_language"] = bare(told) in (bare(one) for one in row["lang"].split("-x-"))
    return found


def bare(code: str) -> str:
    """Remove the region from a language tag; for Chinese, return the tag of its script."""
    code = code.replace("_", "-").lower()
    if code.startswith("zh"):
        return "zh-hant" if code in ("zh-hant", "zh-tw", "zh-hk") else "zh"
    return code.split("-")[0]


_MASSES = ("p_yes", "p_no", "outside")
_OF_THOUGHTS = ("thought_language", "thought_answer", "thought_tested")
_OURS = {
    *("model", "revision", "decode", "lang", "probe", "measures", "when", "statement", "pair"),
    *(
        "role",
        "bias_type",
        "type",
        "entity",
        "text",
        "valid",
        "wording",
        "order",
        "persona",
        "instruction",
        "sample",
    ),
    *("request", "prompt", "response", "thought", "thought_state", "served", "fingerprint"),
    *("status", "failure", "answer", "kind", "conflict", "rule", "evidence", "says"),
    *("reply_language", "in_language", "refused", "sentiment", "negative", "classifier"),
    *("usable", "unusable_why", "sentences", "cut_off", "side", "chosen"),
    *_MASSES,
    *_OF_THOUGHTS,
}


def _mark_repeated(rows: Sequence[Row]) -> None:
    """Mark the usable stories of a template that nearly repeat an earlier one."""
    templates: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row.get("by_story") == "usable":
            key = (row["statement"], row["lang"], row["probe"])
            templates.setdefault(key, []).append(row)
    for stories in templates.values():
        for row, first in zip(
            stories, near_duplicates([row["response"] for row in stories]), strict=True
        ):
            if first is not None:
                row |= {"by_story": "duplicate", "usable": False, "unusable_why": "duplicate"}


def read_again(rows: Iterable[Row], judge: Callable[[Item], Any]) -> list[Row]:
    """Return the rows with their replies read again by another reader."""
    found = []
    for row in rows:
        reply = row.get("response")
        label = None
        if isinstance(reply, str):
            item = Item(row["lang"], row["probe"], row.get("prompt") or "", reply)
            reads = packs.READ_AS.get(row["measures"], "")
            label = judge(item._replace(reads=reads, when=row["when"] or "")).label
        found.append({**row, "answer": label})
    return found


# --- pairs of sentences by their log-probabilities


def pairs(run: Run, scorers: Sequence[str]) -> list[Row]:
    """Make one row for each scorer and pair of an original and a contrast in one language."""
    passes = {request.probe for request in run.requests()}
    found = _values_by_pass(run)
    groups: dict[tuple[str, str], list[Statement]] = {}
    for statement in run.statements():
        if statement.pair:
            groups.setdefault((statement.lang, statement.pair), []).append(statement)
    third = {k: s for k, group in groups.items() for s in group if s.role == "unrelated"}
    rows = []
    for scorer in dict.fromkeys(scorers):
        name = next((one for one in _PASSES.get(scorer, ()) if one in passes), None)
        if name is None:
            continue  # the file of scores names a scorer that the run does not have
        of, lower = _SCORERS[scorer]
        for group in groups.values():
            for pro, anti in itertools.product(group, group):
                if (pro.role, anti.role) != ("original", "contrast"):
                    continue
                one, other = (found.get((s.id, s.lang, name), "missing") for s in (pro, anti))
                row = _about(pro, run) | {"scorer": scorer}
                row |= {"contrast": anti.id, "contrast_text": anti.text}
                row |= _two(of, lower, one, other)
                none = third.get((pro.lang, pro.pair))
                if third:
                    row |= {"unrelated": None, "above_unrelated": None}
                if none is not None:
                    beside = found.get((none.id, none.lang, name), "missing")
                    both = [_two(of, lower, side, beside) for side in (one, other)]
                    if not any(two["why"] for two in both):
                        row["unrelated"] = both[0]["anti"]
                        row["above_unrelated"] = sum(two["pro"] > two["anti"] for two in both)
                rows.append(row)
    return rows


def _about(of: Statement, run: Run) -> Row:
    row: Row = {}
    for name, value in of.extra.items():
        ours = name in _OF_PAIRS
        row[f"{name}_data" if ours else name] = cell(value)
    return row | {
        "model": run.spec.model,
        "revision": run.spec.shown,
        "lang": of.lang,
        "item": of.id,
        "pair": of.pair,
        "role": of.role,
        "bias_type": of.bias_type,
        "type": of.type,
        "entity": of.entity,
        "valid": _known(of),
        "text": of.text,
    }


_OF_PAIRS = {
    *("model", "revision", "lang", "item", "pair", "role", "bias_type", "type", "entity", "valid"),
    *("text", "scorer", "contrast", "contrast_text", "pro", "anti", "left_out"),
}

Side = Mapping[str, Any]
Why = str  # why there is no value


def _values_by_pass(run: Run) -> dict[tuple[str, str, str], Side | Why]:
    """Return the scored text of each (statement, lang, probe), or why there is none."""
    plan = {r.id: (r.statement, r.lang, r.probe) for r in run.requests()}
    found: dict[tuple[str, str, str], Side | Why] = dict.fromkeys(plan.values(), "missing")
    found |= {plan[f.request]: "failed" for f in run.failures() if f.request in plan}
    found |= {plan[r.request]: r.continuations[0] for r in run.logprobs() if r.request in plan}
    return found


Two = Callable[[Side, Side], "tuple[float, float] | Why"]


def _two(of: Two, lower: bool, one: Side | Why, other: Side | Why) -> Row:
    """Return the values of two texts (higher is preferred), or why there are none."""
    why = next((side for side in (one, other) if isinstance(side, str)), "")
    if not why and not isinstance(one, str) and not isinstance(other, str):
        values = of(one, other)
        if not isinstance(values, str):
            sign = -1 if lower else 1
            return {"pro": sign * values[0], "anti": sign * values[1], "why": ""}
        why = values
    return {"pro": None, "anti": None, "why": why}


def _each(of: Callable[[Side], float]) -> Two:
    def both(pro: Side, anti: Side) -> tuple[float, float] | Why:
        if not pro["tokens"] or not anti["tokens"]:
            return "no tokens"
        return of(pro), of(anti)

    return both


def _total(side: Side) -> float:
    return math.fsum(side["logprobs"])


def _a_token(side: Side) -> float:
    return _total(side) / len(side["logprobs"])


def _a_byte(side: Side) -> float:
    return _total(side) / len(side["text"].encode("utf-8", "surrogatepass"))


def _perplexity(side: Side) -> float:
    try:
        return math.exp(-_a_token(side))
    except OverflowError:
        return math.inf


def _rest(pro: Side, anti: Side) -> tuple[float, float] | Why:
    """Return the mean log-probability after the tokens that both texts begin with."""
    at = 0
    while at < min(len(pro["tokens"]), len(anti["tokens"])):
        if pro["tokens"][at] != anti["tokens"][at]:
            break
        at += 1
    one, other = pro["logprobs"][at:], anti["logprobs"][at:]
    if not one and not other:
        return "same tokens"
    if not one or not other:
        return "one begins the other"
    return math.fsum(one) / len(one), math.fsum(other) / len(other)


def _shared(pro: Side, anti: Side) -> tuple[float, float] | Why:
    """Return the sum over the tokens that difflib finds in both texts, with their ends aligned."""
    start, end = object(), object()
    a_side, b_side = ([start, *side["tokens"], end] for side in (pro, anti))
    matcher = difflib.SequenceMatcher(None, a_side, b_side, autojunk=False)
    one, other = [], []
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        if tag == "equal":
            one += [
                pro["logprobs"][at - 1] for at in range(a, a_end) if 0 < at <= len(pro["tokens"])
            ]
            other += [
                anti["logprobs"][at - 1] for at in range(b, b_end) if 0 < at <= len(anti["tokens"])
            ]
    return (math.fsum(one), math.fsum(other)) if one else "nothing shared"


_RUNNING = ("causal", "seq2seq")
# Scorer -> (its values of two texts, whether lower is preferred).
_SCORERS: dict[str, tuple[Two, bool]] = {
    "loglik": (_each(_total), False),
    "loglik-token": (_each(_a_token), False),
    "loglik-byte": (_each(_a_byte), False),
    "ppl": (_each(_perplexity), True),
    "bias": (_rest, False),
    "pll": (_each(_total), False),
    "ppll": (_each(_perplexity), True),
    "mpll": (_shared, False),
    "pll-word": (_each(_total), False),
}
_PASSES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("loglik", "loglik-token", "loglik-byte", "ppl", "bias"), _RUNNING),
    **dict.fromkeys(("pll", "ppll", "mpll"), ("masked",)),
    "pll-word": ("masked-word",),
}


# --- choices


def _of_choice(of: Statement, run: Run) -> Row:
    """Return the row of a choice before an option is chosen.

    Options are given by number, None if unknown.
    """
    number = {k: of.extra[k] if isinstance(of.extra[k], int) else None for k in _NUMBERS}
    options = of.extra["options"]
    assert isinstance(options, list)
    groups = [at for at in range(len(options)) if at != number["unknown"]]
    two = len(groups) == 2 and number["target"] in groups
    row = _about(of, run)
    for name in ("context", "question", "options", *_NUMBERS, "condition", "polarity"):
        row.pop(name, None)
    return row | {
        "condition": of.extra["condition"],
        "polarity": of.extra["polarity"],
        "label": number["label"],
        "unknown": number["unknown"],
        "target": number["target"] if two else None,
        "counter": next(at for at in groups if at != number["target"]) if two else None,
        "chosen": None,
        "why": "",
        "p": None,
        "listed": len(options),
    }


_NUMBERS = ("label", "target", "unknown")


def scored_choices(run: Run, scorers: Sequence[str]) -> list[Row]:
    """Make one row for each choice, order of its options, and scorer of log-probabilities."""
    passes = {request.probe for request in run.requests()}
    statements = {(s.id, s.lang): s for s in run.statements()}
    failed = {failure.request for failure in run.failures()}
    logprobs = {record.request: record.continuations for record in run.logprobs()}
    rows = []
    for scorer in dict.fromkeys(scorers):
        name = next(one for one in _RUNNING if one in passes)
        for request in run.requests():
            if request.probe != name:
                continue
            row = _of_choice(statements[request.statement, request.lang], run)
            row |= {"scorer": scorer, "order": request.sample}
            texts = logprobs.get(request.id)
            if texts is None:
                row["why"] = "failed" if request.id in failed else "missing"
            else:
                _choose(row, {int(t["answer"]): _OPTION[scorer](t) for t in texts})
            rows.append(row)
    return rows


def _choose(row: Row, values: Mapping[int, float]) -> None:
    if sorted(values) != list(range(row["listed"])):
        row["why"] = "missing"
        return
    best = [at for at, value in values.items() if value == max(values.values())]
    row |= {"chosen": best[0], "why": ""} if len(best) == 1 else {"why": "tie"}
    total = math.fsum(math.exp(value - max(values.values())) for value in values.values())
    row["p"] = {at: math.exp(v - max(values.values())) / total for at, v in values.items()}
    if row["target"] is not None:
        row["log_ratio"] = values[row["target"]] - values[row["counter"]]


def _letters(side: Side) -> str:
    return str(side["text"]).strip()


_OPTION: dict[str, Callable[[Side], float]] = {
    "choice": _total,
    "choice-token": lambda side: _total(side) / max(1, len(side["tokens"])),
    "choice-byte": lambda side: (
        _total(side) / max(1, len(_letters(side).encode("utf-8", "surrogatepass")))
    ),
    "choice-char": lambda side: _total(side) / max(1, len(_letters(side))),
}


def chosen(run: Run) -> list[Row]:
    """Make one row for each asked choice, frame, order of its options, and sample."""
    statements = {(s.id, s.lang): s for s in run.statements()}
    answered = set(run.answered())
    failed = {failure.request for failure in run.failures()}
    judged = {name: {j.request: j for j in run.judgments(name)} for name in run.judges()}
    rows, read = [], {row["request"]: row for row in replies(run)}
    for request in run.requests():
        row = read[request.id] | _of_choice(statements[request.statement, request.lang], run)
        order = [int(name) for name in request.options]
        row |= {
            "decode": request.decode,
            "probe": request.probe,
            **request.facets,
            "order": _order_number(order),
            "sample": request.sample,
            "request": request.id,
            "listed": len(order),
            "kind": None,
        }
        name = "likeliest" if request.decode == "logprob" else "choice"
        found = judged.get(name, {}).get(request.id)
        if request.id not in answered:
            row["why"] = "failed" if request.id in failed else "missing"
        elif found is None:
            row["why"] = "unjudged"
        else:
            row["kind"] = found.fields["kind"]
            row["why"] = "" if found.label else row["kind"]
            if found.label:
                row |= {"chosen": order[int(found.label)], "place": int(found.label)}
            masses = [float(mass) for mass in found.fields.get("p") or ()]  # type: ignore[union-attr,arg-type]
            if sum(masses) > 0:
                total = math.fsum(masses)
                row["p"] = {at: mass / total for at, mass in zip(order, masses, strict=True)}
        rows.append(row)
    _shares_of_answers(rows)
    for row in rows:
        if row["p"] is not None and row["target"] is not None:
            two = [row["p"].get(row[side], 0.0) for side in ("target", "counter")]
            if min(two) > 0:
                row["log_ratio"] = math.log(two[0]) - math.log(two[1])
    return rows


def _order_number(order: Sequence[int]) -> int:
    """Return the index of this order among all orders sorted lexicographically."""
    number = 0
    for at, option in enumerate(order):
        smaller = sum(later < option for later in order[at + 1 :])
        number += smaller * math.factorial(len(order) - 1 - at)
    return number


def _shares_of_answers(rows: Sequence[Row]) -> None:
    """Use the share of an item's answers that choose an option as the option's probability."""
    items: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["decode"] != "logprob" and not row["why"]:
            key = tuple(row[name] for name in ("lang", "item", "decode", "probe"))
            key += tuple(row.get(name) for name in ("wording", "persona", "instruction"))
            items.setdefault(key, []).append(row)
    for item in items.values():
        said = [row["chosen"] for row in item]
        for row in item:
            row["p"] = {at: said.count(at) / len(said) for at in set(said)}


# --- facts beside the rows


def beside(rows: Sequence[Row], by: Mapping[str, JSON], regions: Sequence[str]) -> list[Row]:
    """Add the columns of a cell that no record has: facts about models, and regions.

    A row that is known in several regions becomes one row for each. If `regions` are given, only
    the rows known there are kept, unless the cell has the column `inside`.
    """
    found = list(rows)
    if any(name.startswith("model_") for name in by):
        found = [{**row, **_of_model(str(row["model"]))} for row in found]
    if not regions and not {"region", "inside"} & set(by):
        return found
    name = next((one for one in _REGIONS if any(one in row for row in found)), "")
    wanted = {region.casefold() for region in regions}
    spelt: dict[str, str] = {}
    for row in found:
        for region in _listed(row.get(name)):
            spelt[region.casefold()] = min(region, spelt.get(region.casefold(), region))
    kept = []
    for row in found:
        there = _listed(row.get(name))
        inside = any(region.casefold() in wanted for region in there)
        if "inside" in by:
            if there:
                row = {**row, "inside": "yes" if inside else "no"}
            else:
                continue
        elif wanted and not inside:
            continue
        own = dict.fromkeys(spelt[region.casefold()] for region in there)
        kept += [{**row, "region": one} for one in own] if "region" in by else [row]
    return kept


def _listed(value: Any) -> list[str]:
    if isinstance(value, str):
        try:
            value = parsed_list(value.strip())
        except ValueError:
            value = value.split(",")
    names = value if isinstance(value, list | tuple) else ()
    return list(dict.fromkeys(str(name).strip() for name in names if str(name).strip()))


def _of_model(name: str) -> Row:
    """Return the catalogue's facts about a model.

    Empty if it is not in the catalogue; its size may then follow from its name.
    """
    for alias, model in models.catalogue().items():
        if name.lower() in (alias.lower(), model.id.lower()) and model.size:
            return {
                "model_kind": model.kind or None,
                "model_family": model.family or None,
                "model_size": model.size,
                "model_languages": "+".join(model.languages) or None,
                "model_weights": "hosted" if model.base_url else "open",
            }
    return {}
