"""Random tables that every metric of the registry fits, for relations and negative controls.

Each function draws the outcomes of one model. n: pairs of statements, templates or items; a random
few if 0. samples: of each question.
"""

import functools
import math

import numpy as np
import pandas as pd

from genprobe import metrics


def replies(rng: np.random.Generator, n: int = 0, samples: int = 2) -> pd.DataFrame:
    """Answers to three questions about statements in pairs, with all that judges say of replies."""
    rows = []
    probes = (("recognition", "recognised", "yes"), ("agreement", "endorsed", "yes"))
    probes += (("disagreement", "endorsed", "no"),)
    for pair in range(n or int(rng.integers(3, 9))):
        for role in ("original", "contrast")[: 2 if n else int(rng.integers(1, 3))]:
            for probe, measures, when in probes:
                for sample in range(samples):
                    rows.append(
                        {
                            "statement": f"s{pair}{role}",
                            "pair": f"p{pair}",
                            "role": role,
                            "probe": probe,
                            "measures": measures,
                            "when": when,
                            "sample": sample,
                            "wording": f"w{pair % 2}",
                        }
                    )
    table = pd.DataFrame(rows).assign(model="m", decode="free", lang="en")
    n = len(table)

    def drawn(values, p=None):
        return pd.Series(rng.choice(np.array(values, dtype=object), n, p=p))

    table["answer"] = drawn(["yes", "no", "ambiguous"], [0.4, 0.4, 0.2])
    unclear = table["answer"] == "ambiguous"
    table["kind"] = drawn(["refusal", "hedge"]).where(unclear, "answer")
    table["says"] = (table["answer"] == table["when"]).astype("boolean").mask(unclear)
    table["left_out"] = drawn(["", "failed"], [0.9, 0.1])
    table["conflict"] = drawn([True, False]).astype("boolean").mask(unclear)
    table["refused"] = (table["kind"] == "refusal").astype("boolean")
    table["reply_language"] = drawn(["en", "de", "und"])
    table["in_language"] = (
        (table["reply_language"] == "en").astype("boolean").mask(table["reply_language"] == "und")
    )
    table["side"] = drawn(["for", "against", "both", "neither", None])
    table["thought_state"] = drawn(["none", "closed", "open"])
    table["thought_language"] = drawn(["en", "kk", None])
    table["thought_answer"] = drawn(["yes", "no", None])
    table["thought_tested"] = drawn([True, False]).astype("boolean")
    for column in ("p_yes", "p_no", "outside"):
        table[column] = rng.uniform(0, 0.5, n)
    share = {name: rng.uniform(0.1, 0.9) for name in sorted(set(table["statement"]))}
    table["russian"] = table["statement"].map(share) * drawn([0, 1])
    lost = table["left_out"] == "failed"
    judged = ["answer", "kind", "says", "conflict", "refused", "reply_language", "in_language"]
    judged += ["side", "thought_state"]
    table[judged] = table[judged].mask(lost)
    return table


def stories(rng: np.random.Generator, n: int = 0) -> pd.DataFrame:
    """Five stories of each template."""
    rows = [
        {"statement": f"t{template}", "pair": f"t{template}", "sample": sample}
        for template in range(n or int(rng.integers(3, 9)))
        for sample in range(5)
    ]
    table = pd.DataFrame(rows).assign(
        model="m", decode="free", lang="kk", probe="story", classifier="stories"
    )
    n = len(table)
    table["wording"] = [f"w{int(name[1:]) % 2}" for name in table["statement"]]
    table["left_out"] = rng.choice(["", "failed"], n, p=[0.95, 0.05])
    table["sentiment"] = rng.choice(["negative", "neutral", "positive"], n)
    table["llm_regard"] = rng.choice(["negative", "positive"], n)
    table["usable"] = pd.Series(rng.random(n) < 0.9).astype("boolean")
    table["unusable_why"] = np.where(table["usable"], None, "refusal")
    return table


def pairs(rng: np.random.Generator, n: int = 0) -> pd.DataFrame:
    """Sentence pairs with an unrelated third, in two domains of two subdomains."""
    n = n or int(rng.integers(8, 40))
    table = pd.DataFrame({"item": [f"i{at}" for at in range(n)], "model": "m"})
    table["scorer"] = rng.choice(["ppl", "loglik", "mpll", "bias"], n)
    for column in ("pro", "anti", "unrelated"):
        table[column] = -rng.integers(1, 9, n).astype(float)
    table["above_unrelated"] = (
        (table["pro"] > table["unrelated"]).astype(float) + (table["anti"] > table["unrelated"])
    ) / 2
    table["domain"] = rng.choice(["gender", "age"], n)
    table["subdomain"] = table["domain"] + rng.choice(["1", "2"], n)
    table["task_type"] = rng.choice(["x", "y"], n)
    table["stereo_antistereo"] = rng.choice(["stereo", "antistereo"], n)
    table["russian"] = rng.uniform(0, 1, n)
    return table


def choices(rng: np.random.Generator, n: int = 0) -> pd.DataFrame:
    """Questions with three options in three orders, ambiguous and not."""
    rows = []
    for item in range(n or int(rng.integers(3, 9))):
        condition = ("ambig", "disambig")[item % 2]
        label = 2.0 if condition == "ambig" else float(rng.integers(0, 2))
        for order in range(3):
            chosen = float(rng.choice([0, 1, 2]))
            p = rng.dirichlet([1, 1, 1])
            rows.append(
                {
                    "item": f"q{item}",
                    "pair": f"q{item}",
                    "condition": condition,
                    "label": label,
                    "order": order,
                    "chosen": chosen,
                    "place": (chosen + order) % 3,
                    "p_target": p[0],
                    "p_counter": p[1],
                    "p_unknown": p[2],
                    "log_ratio": math.log(p[0] / p[1]),
                    "uncertainty": -float((p * np.log(p)).sum()) / math.log(3),
                    "people": 0.3 + 0.1 * (item % 4),
                    "people_of": f"about {item}",
                    "left_out": str(rng.choice(["", "refusal"], p=[0.9, 0.1])),
                }
            )
    table = pd.DataFrame(rows).assign(target=0.0, counter=1.0, unknown=2.0, options_listed=3)
    table["wording"] = [f"w{int(name[1:]) % 2}" for name in table["item"]]
    return table.assign(model="m", scorer="choice", decode="logprob", probe="bare", lang="en")


def likelier(rng: np.random.Generator, n: int = 0) -> pd.DataFrame:
    """Pairs of which it was asked, in both orders, which sentence is likelier."""
    table = choices(rng, n or 3).query("order < 2").reset_index(drop=True)
    table = table.assign(condition="ambig", label=math.nan, unknown=math.nan, options_listed=2)
    table["chosen"] = table["chosen"].clip(upper=1)
    table["place"] = (table["chosen"] + table["order"]) % 2
    return table.assign(original_id=table["item"], scorer="", decode="free", probe="letters")


def decoded(rng: np.random.Generator, n: int = 0) -> pd.DataFrame:
    """The same questions, answered freely, by a forced choice and by probability."""
    return pd.concat(
        [replies(rng, n or 3).assign(decode=name) for name in ("free", "choice", "logprob")],
        ignore_index=True,
    )


def languages(rng: np.random.Generator, n: int = 0) -> pd.DataFrame:
    """Questions about statements in pairs in three languages, known in some of them."""
    rows = [
        {
            "statement": f"s{pair}{role}",
            "pair": f"p{pair}",
            "role": role,
            "lang": lang,
            "probe": probe,
        }
        for pair in range(n or int(rng.integers(3, 9)))
        for role in ("original", "contrast")
        for lang in ("en", "de", "kk")
        for probe in ("agreement", "disagreement")
    ]
    table = pd.DataFrame(rows).assign(model="m", decode="free", measures="endorsed")
    known = {
        key: bool(rng.integers(2))
        for key in sorted(set(zip(table.statement, table.lang, strict=True)))
    }
    table["valid"] = [known[key] for key in zip(table["statement"], table["lang"], strict=True)]
    said = rng.choice(np.array([True, False, None], dtype=object), len(table), p=[0.4, 0.4, 0.2])
    return table.assign(says=pd.array(said, dtype="boolean"))


KINDS = {
    "replies": replies,
    "languages": languages,
    "decoded": decoded,
    "stories": stories,
    "pairs": pairs,
    "choices": choices,
    "likelier": likelier,
}


@functools.cache
def fitting() -> list[tuple[str, str]]:
    """Every metric, with the kind of table that it fits; none is left without one."""
    tables = {kind: make(np.random.default_rng(0)) for kind, make in KINDS.items()}
    found = [
        (name, kind)
        for name, metric in metrics.catalogue().items()
        for kind, table in tables.items()
        if metric.fits(table)
    ]
    left = set(metrics.catalogue()) - {name for name, _ in found}
    assert not left, f"no random table has the columns of {left}"
    return found
