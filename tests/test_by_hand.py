"""Figures that are printed and not stored, recounted from the raw rows with plain pandas."""

import itertools
import json
import math
import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy.stats import beta
from statsmodels.stats.multitest import multipletests
from test_report import Page

import genprobe
from genprobe import api
from genprobe.analysis import components, gate, paired, ranking, reliability
from genprobe.analysis.compare import compare
from genprobe.commands import cli
from genprobe.errors import InputError
from genprobe.outcomes import table
from genprobe.report import build as build_report
from genprobe.report import figures
from genprobe.review import collect
from genprobe.review.agreement import agreement
from genprobe.runs.run import Run

LABELS = ["yes", "no", "ambiguous"]


@pytest.mark.parametrize("seed", range(6))
def test_agreement_of_reviewers(tmp_path, seed):
    """Percent, Cohen's kappa and Krippendorff's alpha of two reviewers, some answers missing."""
    rng = np.random.default_rng(seed)
    rows = [
        {"item": f"s{at}", "reviewer": who, "question": "answer", "answer": answer}
        for at, who in itertools.product(range(12), "ab")
        if (answer := rng.choice([*LABELS, ""]))
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "a.csv", index=False)
    found = {s.metric: s.value for s in agreement([tmp_path / "a.csv"])}
    both = pd.DataFrame(rows).pivot(index="item", columns="reviewer", values="answer").dropna()
    same = float((both["a"] == both["b"]).mean())
    chance = sum((both["a"] == x).mean() * (both["b"] == x).mean() for x in LABELS)
    assert found["agreement"] == pytest.approx(same)
    assert found["cohen-kappa"] == pytest.approx((same - chance) / (1 - chance))
    values = pd.concat([both["a"], both["b"]]).value_counts()
    n = values.sum()
    by_chance = 1 - (values * (values - 1)).sum() / (n * (n - 1))
    assert found["krippendorff-alpha"] == pytest.approx(1 - (1 - same) / by_chance)


HOSTILE = [
    *("Yes.", "NO!", "", "Yes and no.", "</td><td>100.0</td>", "\u202eYes.", "Да, согласен."),
    *("I cannot answer that as an AI.", "<script>alert(1)</script> Yes", "I do not agree."),
]
PROBES = ["recognition", "agreement", "disagreement"]


def ask(home, model, said):
    """A run of recorded replies; said: (statement, question) -> reply, those left out fail."""
    names = sorted({name for name, _ in said}, key=lambda name: int(name[1:]))
    texts = [{"id": name, "lang": "en", "text": f"Cooks of {name} are loud."} for name in names]
    pd.DataFrame(texts).to_csv(home / "data.csv", index=False)
    rows = [(*key, "en", text) for key, text in said.items() if text is not None]
    columns = ["statement", "probe", "lang", "response"]
    pd.DataFrame(rows, columns=columns).to_csv(home / f"{model}.csv", index=False)
    probes = [probe for probe in PROBES if any(probe == asked for _, asked in said)]
    return api.yesno(
        str(home / f"{model}.csv"), engine="replay", data=str(home / "data.csv"),
        langs=["en"], probes=probes, out=home / model,
    ).folder  # fmt: skip


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two runs of twelve statements and three questions, hostile replies, one in eight failed."""
    home, rng = tmp_path_factory.mktemp("two"), np.random.default_rng(11)
    keys = [*itertools.product([f"s{at}" for at in range(12)], PROBES)]
    draw = lambda: None if rng.random() < 0.12 else str(rng.choice(HOSTILE))  # noqa: E731
    return [ask(home, model, {key: draw() for key in keys}) for model in ("one", "two")]


def lines(path):
    return pd.DataFrame(map(json.loads, path.read_text("utf-8").splitlines()))


def recount(run):
    """{(measure, question): (value, n, bounds, left out)} of a run, from its JSONL alone."""
    judged = lines(run / "judgments" / "yesno.jsonl")
    judged["kind"] = [fields["kind"] for fields in judged["fields"]]
    rows = lines(run / "requests.jsonl")[["id", "probe"]]
    came = lines(run / "responses.jsonl")["request"]
    assert not came.duplicated().any() and set(judged["request"]) == set(came)
    rows = rows.merge(
        judged[["request", "label", "kind"]], "left", left_on="id", right_on="request"
    )
    found = {}
    for probe, part in rows.groupby("probe"):
        said, failed = part["label"], int(part["label"].isna().sum())
        for name in LABELS:
            hits, n = int((said == name).sum()), int(said.notna().sum())
            bounds = (hits / len(part), (hits + failed) / len(part)) if failed else None
            found[name, probe] = hits / n, n, bounds, {"failed": failed}
        word = "no" if probe == "disagreement" else "yes"
        hits, clear = int((said == word).sum()), int(said.isin(["yes", "no"]).sum())
        left = Counter(part.loc[said == "ambiguous", "kind"]) | Counter(failed=failed)
        bounds = hits / len(part), (hits + len(part) - clear) / len(part)
        name = "recognised" if probe == "recognition" else "endorsed"
        found[name, probe] = hits / clear, clear, bounds if clear < len(part) else None, left
    return found


def points(bounds):
    return tuple(f"{100 * end:.1f}" for end in bounds) if bounds else ()


@pytest.mark.slow
def test_the_page_says_what_the_records_say(two, tmp_path):
    """Shares, n, bounds and what was left out: in the main tables and in the list of all."""
    page = Page(build_report(two, tmp_path / "page.html").read_text("utf-8"))
    for run in two:
        for (name, probe), (value, n, bounds, left) in recount(run).items():
            (row,) = (
                row for row in page.rows if len(row) == 7 and row[0] == name
                if {f"{run.name}.csv", probe} <= set(row[1].split(" · "))
            )  # fmt: skip
            assert row[2] == f"{100 * value:.1f} %" and row[4] == str(n), row
            why = dict(part.split(" ")[::-1] for part in row[5].split(", ") if part)
            assert why == {k: str(v) for k, v in left.items() if v}, row
            assert tuple(re.findall(r"[\d.]+", row[6])) == points(bounds), row
            head, line = in_main_table(page, f"{run.name}.csv", name, probe)
            planned = n + sum(left.values())
            assert line[head].split("\n")[0] == f"{100 * value:.1f}", line
            counted = f"n {n} of {planned}" if n < planned else f"n {n}"
            assert line[head].endswith(counted), line


def in_main_table(page, model, name, probe):
    """(column, row) of a figure: one table has the measures, those of the answers each a table."""
    starts = [at for at, row in enumerate(page.rows) if row and row[0] == "Model"]
    if name in ("recognised", "endorsed"):
        tables = [starts[0]]
    else:
        tables = [at for at in starts if page.rows[at][1].startswith("yes ")]
        tables = [tables[PROBES.index(probe)]]
    head = page.rows[tables[0]]
    (column,) = (
        at for at, title in enumerate(head)
        if title.startswith(f"{name} ") and (name in LABELS or f"%{probe}" in title)
    )  # fmt: skip
    return column, next(row for row in page.rows[tables[0] + 1 :] if row[0] == model)


@pytest.mark.slow
def test_the_figures_files_say_what_the_records_say(two, tmp_path):
    """CSV and LaTeX behind a figure of the report."""
    figures.draw(two, tmp_path)
    table = pd.read_csv(tmp_path / "shares-by-model.csv").set_index(["model", "metric", "probe"])
    text = (tmp_path / "shares-by-model.tex").read_text("utf-8")
    for run in two:
        # A wide table goes on below itself, question by question.
        printed = [row for row in text.splitlines() if row.startswith(f"{run.name}.csv &")]
        cells = iter([c for row in printed for c in row.rstrip("\\ ").split(" & ")[1:]])
        for probe in PROBES:
            assert next(cells) == str(recount(run)["yes", probe][1])
            for name in LABELS:
                value, n, bounds, left = recount(run)[name, probe]
                row = table.loc[f"{run.name}.csv", name, probe]
                assert (row["value"], row["n"]) == (pytest.approx(value), n)
                failed = left["failed"]
                assert row["excluded"] == f"failed={failed}" if failed else pd.isna(row["excluded"])
                ends = row[["bound_low", "bound_high"]].dropna().astype(float).tolist()
                assert ends == (pytest.approx(bounds) if bounds else [])
                assert next(cells).startswith(f"{100 * value:.1f} ")
                assert next(cells) == ("--".join(points(bounds)) or "--")


def binomial_mid_p(one, other):
    """Twice the smaller tail of so many fair coins, half of what was seen left out, by a sum."""
    n, least = one + other, min(one, other)
    chance = [math.comb(n, k) / 2**n for k in range(n + 1)]
    if one == other:
        return 1 - chance[least] / 2
    return 2 * (sum(chance[:least]) + chance[least] / 2)


def holm(given):
    """The k-th smallest of m p-values times m - k, never below one before it, never above 1."""
    order, found, least = sorted(range(len(given)), key=given.__getitem__), {}, 0.0
    for at, name in enumerate(order):
        least = max(least, min(1.0, (len(given) - at) * given[name]))
        found[name] = least
    return [found[at] for at in range(len(given))]


@pytest.mark.parametrize("shares", [(0.8, 0.2), (0.2, 0.8), (0.5, 0.5)])
def test_mcnemar_and_holm_of_two_runs(tmp_path, shares):
    """One question a statement: sign, mid-p, and p-values corrected for all that are printed."""
    rng, names = np.random.default_rng(5), [f"s{at}" for at in range(24)]
    said = {}
    for model, yes in zip(("one", "two"), shares, strict=True):
        draw = rng.choice(["Yes.", "No.", ""], len(names), p=[0.9 * yes, 0.9 * (1 - yes), 0.1])
        said[model] = dict(zip(names, map(str, draw), strict=True))
        ask(tmp_path, model, {(name, "agreement"): text for name, text in said[model].items()})
    found = compare(tmp_path / "one", tmp_path / "two", metrics=["endorsed", "yes", "no"])
    got = {(s.by["of"], s.metric): s for s in found}
    both = pd.DataFrame(said)
    expected = []
    for name, word in (("endorsed", "Yes."), ("yes", "Yes."), ("no", "No.")):
        hits, clear = both == word, both != ""
        one = int((hits["one"] & ~hits["two"]).sum())
        other = int((hits["two"] & ~hits["one"]).sum())
        difference = got[name, "difference"]
        assert difference.n + sum(difference.excluded.values()) == len(both)
        if name == "endorsed":  # each model's own clear answers, which are not the same
            assert difference.n == int(clear.any(axis=1).sum())
            rates = [hits[side].sum() / clear[side].sum() for side in ("one", "two")]
            for side, rate in zip("ab", rates, strict=True):
                assert got[name, side].value == pytest.approx(rate)
            assert difference.value == pytest.approx(rates[1] - rates[0])  # second minus first
            least = hits["two"].sum() - (hits | ~clear)["one"].sum()
            most = (hits | ~clear)["two"].sum() - hits["one"].sum()
            assert difference.bounds == pytest.approx([least / len(both), most / len(both)])
            assert (name, "mcnemar-p") not in got
            expected.append(got[name, "swap-p"].value)
            continue
        assert difference.n == len(both)
        assert difference.value == pytest.approx((other - one) / len(both))
        p = got[name, "mcnemar-p"]
        assert p.n == one + other and p.value == pytest.approx(binomial_mid_p(one, other))
        expected.append(p.value)
    corrected = [got[name, "holm-p"].value for name in ("endorsed", "yes", "no")]
    assert corrected == pytest.approx(holm(expected))


def test_differences_of_two_runs(tmp_path):
    """The rates and their difference, counted from the replies themselves."""
    rng, shares = np.random.default_rng(3), {}
    names = [f"s{at}" for at in range(20)]
    texts = [{"id": name, "lang": "en", "text": f"Sentence {name}."} for name in names]
    pd.DataFrame(texts).to_csv(tmp_path / "data.csv", index=False)
    keys = [*itertools.product(names, ["agreement", "disagreement"])]
    for model in ("one", "two"):
        said = rng.choice(["Yes.", "No.", ""], len(keys), p=[0.5, 0.4, 0.1])
        rows = pd.DataFrame(keys, columns=["statement", "probe"]).assign(lang="en", response=said)
        rows.to_csv(tmp_path / f"{model}.csv", index=False)
        api.yesno(
            str(tmp_path / f"{model}.csv"), engine="replay", data=str(tmp_path / "data.csv"),
            langs=["en"], probes=["agreement", "disagreement"], out=tmp_path / model,
        )  # fmt: skip
        clear = rows[rows["response"] != ""]
        hit = (clear["response"] == "Yes.") == (clear["probe"] == "agreement")
        shares[model] = hit.set_axis(clear["statement"] + clear["probe"]).astype(float)
    pairs = pd.concat(shares, axis=1)
    found = compare(tmp_path / "one", tmp_path / "two", metrics=["endorsed"])
    (score,) = [s for s in found if s.metric == "difference"]
    assert score.n == len(pairs)
    expected = float(shares["two"].mean() - shares["one"].mean())  # second minus first
    assert score.value == pytest.approx(expected)


def reads_the_run(folder):
    """Statement and probe -> what was answered, from the lines of a run's own files."""
    asked = {}
    for line in (folder / "requests.jsonl").read_text("utf-8").splitlines():
        request = json.loads(line)
        asked[request["id"]] = (request["statement"], request["probe"])
    found = {}
    for line in (folder / "responses.jsonl").read_text("utf-8").splitlines():
        reply = json.loads(line)
        found[asked[reply["request"]]] = reply["text"]
    return found


def drawn(tables, anchors, draws=60_000, wordings=False):
    """Random figures of models: sums over statements with random weights, and invented ones.

    tables: of each model, its hits and sizes, (statements, wordings). anchors: of each model, the
    weights (draws,) of an invented statement (or wording) that is all hits, and of one without.
    """
    rng = np.random.default_rng(99)
    weights = rng.standard_exponential((draws, len(tables[0][0])))
    columns = rng.standard_exponential((draws, tables[0][0].shape[1]))
    found = []
    for (hits, sizes), (above, below) in zip(tables, anchors, strict=True):
        if wordings:
            shares = (weights @ hits) / (weights @ sizes)
            found.append(((columns * shares).sum(1) + above) / (columns.sum(1) + above + below))
            continue
        usual = float((sizes**2).sum() / sizes.sum())
        above, below = usual * above, usual * below
        total = weights @ sizes[:, 0] + above + below
        found.append((weights @ hits[:, 0] + above) / total)
    return found


def apart(a, b, tail, far=0.75, near=0.25, wordings=False):
    """The ends of the difference of two models, a less b, with `tail` beyond each."""
    rng = np.random.default_rng(98)
    ends = []
    for first, second in ((a, b), (b, a)):
        above, below = (rng.gamma(shape, size=60_000) for shape in (far, near))
        one, other = drawn([first, second], [(above, below), (below, above)], wordings=wordings)
        ends.append(float(np.quantile(one - other, 1 - tail)))
    return -ends[1], ends[0]


def drawn_ranks(tables, wordings=False):
    """How often each model has each rank."""
    rng = np.random.default_rng(97)
    anchors = [rng.gamma(0.5, size=(2, 60_000)) for _ in tables]
    figures = np.column_stack(drawn(tables, anchors, wordings=wordings))
    ranks = np.zeros((len(tables), len(tables)))
    for row in figures:
        for rank, at in enumerate(sorted(range(len(row)), key=lambda at: -row[at])):
            ranks[at, rank] += 1
    return ranks / len(figures)


def divided(models, differ):
    """Cut the order wherever every model above differs from every model below."""
    groups = [[models[0]]]
    for at in range(1, len(models)):
        above, below = models[:at], models[at:]
        if all(frozenset((a, b)) in differ for a in above for b in below):
            groups.append([])
        groups[-1].append(models[at])
    return groups if len(groups) > 1 else None


@pytest.mark.parametrize("shares", [(0.9, 0.5, 0.45, 0.1), (0.6, 0.55, 0.5, 0.45)])
def test_the_ranking_of_four_runs(tmp_path, shares):
    """Figures, simultaneous intervals, groups of ties and chances of ranks, from the JSONL."""
    rng, names = np.random.default_rng(8), [f"s{at}" for at in range(40)]
    keys = [*itertools.product(names, ["agreement", "disagreement"])]
    models = ["a", "b", "c", "d"]
    for model, share in zip(models, shares, strict=True):
        said = {}
        for name, probe in keys:
            yes = rng.random() < (share if probe == "agreement" else 1 - share)
            said[name, probe] = "" if rng.random() < 0.1 else "Yes." if yes else "No."
        ask(tmp_path, model, said)
    out = CliRunner().invoke(
        cli, ["compare", *(str(tmp_path / model) for model in models), "-f", "json", "-q"]
    )
    (found,) = json.loads(out.stdout)["rankings"]
    found = json.loads(json.dumps(found).replace('.csv"', '"'))  # a recording is its model
    hits, sizes, planned = {}, {}, len(keys)
    for model in models:
        for (name, probe), text in reads_the_run(tmp_path / model).items():
            if text:
                says = (text == "Yes.") == (probe == "agreement")
                hits[model, name] = hits.get((model, name), 0) + says
                sizes[model, name] = sizes.get((model, name), 0) + 1
    shared = [name for name in names if all((model, name) in sizes for model in models)]
    n, rates, own, ends = len(names), {}, {}, {}
    for model in models:
        own[model] = tuple(
            np.array([[counts.get((model, name), 0)] for name in names], float)
            for counts in (hits, sizes)
        )
        hit, total = (int(part.sum()) for part in own[model])
        rates[model] = hit / total
        ends[model] = hit / planned, (hit + planned - total) / planned
    order = sorted(models, key=lambda model: -rates[model])
    assert found["statements"] == n and found["wordings"] == 1
    assert found["statements_not_shared"] == n - len(shared) > 0
    assert f"based on {n} statements; to {n - len(shared)} of them one of" in found["told"]
    assert list(found["values"]) == order
    assert list(found["values"].values()) == pytest.approx([rates[model] for model in order])
    differ = set()
    for pair in found["pairs"]:
        low, high = apart(own[pair["a"]], own[pair["b"]], 0.025 / 6)  # six pairs
        assert pair["difference"] == pytest.approx(rates[pair["a"]] - rates[pair["b"]])
        assert [pair["low"], pair["high"]] == pytest.approx([low, high], abs=0.02)
        (least, most), (less, more) = ends[pair["a"]], ends[pair["b"]]
        assert pair["bounds"] == pytest.approx([least - more, most - less])
        if pair["low"] * pair["high"] > 0 and pair["bounds"][0] * pair["bounds"][1] > 0:
            differ.add(frozenset((pair["a"], pair["b"])))
    assert found["ranking"] == divided(order, differ)
    unsure = any(
        pair["low"] * pair["high"] > 0 and pair["bounds"][0] * pair["bounds"][1] <= 0
        for pair in found["pairs"]
    )
    assert (found["rank_chances"] is None) == unsure
    chances = drawn_ranks([own[model] for model in order])
    for at, model in enumerate(order if not unsure else ()):
        assert found["rank_chances"][model] == pytest.approx(chances[at], abs=0.03)
        assert sum(found["rank_chances"][model]) == pytest.approx(1)


@pytest.mark.parametrize(("statements", "supported"), [(2, False), (4, False), (7, True)])
def test_models_that_differ_alike_everywhere_are_not_certain(tmp_path, statements, supported):
    """No variance is seen, and yet two statements show little."""
    keys = [(f"s{at}", "agreement") for at in range(statements)]
    for model, text in (("a", "Yes."), ("b", "No.")):
        ask(tmp_path, model, dict.fromkeys(keys, text))
    runs = [str(tmp_path / model) for model in "ab"]
    out = CliRunner().invoke(cli, ["compare", *runs, "-f", "json", "-q", "--metric", "endorsed"])
    found = json.loads(out.stdout)
    (pair,) = found["pairs"]
    # So many statements may differ the other way: of gamma weights, 3/4 in 3/4 + 1/4 + statements.
    unlike = beta.ppf(0.975, 0.75, 0.25 + statements)
    assert [pair["low"], pair["high"]] == pytest.approx([1 - 2 * unlike, 1], abs=1e-3)
    assert (found["ranking"] is not None) == pair["differ"] == supported == (unlike < 0.5)
    assert found["rank_chances"]["a.csv"][0] < 1


@pytest.mark.parametrize(("seed", "spread"), [(0, 0.8), (1, 0.2), (2, 0.0)])
def test_the_ranking_over_wordings(seed, spread):
    """Several wordings, missing cells: figures, intervals, groups and chances of ranks."""
    rng, models = np.random.default_rng(seed), ["a", "b", "c"]
    logits = rng.normal(0, 1, (1, 50, 1)) + rng.normal(0, spread, (3, 1, 10))
    logits = logits + np.array([2.4, 0.1, -2.6])[:, None, None]
    sizes = (rng.random((3, 50, 10)) < 0.9).astype(float)
    hits = (rng.random(sizes.shape) < 1 / (1 + np.exp(-logits))) * sizes
    found = ranking.ranking(models, hits, sizes)
    rates, differ = (hits.sum(1) / sizes.sum(1)).mean(1), set()
    own = dict(zip(models, zip(hits, sizes, strict=True), strict=True))
    for pair in found.pairs:
        gap = rates[models.index(pair.a)] - rates[models.index(pair.b)]
        low, high = apart(own[pair.a], own[pair.b], 0.025 / 3, 0.5, 0.5, wordings=True)
        assert pair.difference == pytest.approx(gap)
        assert (pair.low, pair.high) == pytest.approx((low, high), abs=0.02)
        if pair.low * pair.high > 0:
            differ.add(frozenset((pair.a, pair.b)))
    groups = divided(list(found.models), differ)
    assert (groups and [tuple(group) for group in groups]) == (found.groups and [*found.groups])
    assert frozenset("ac") in differ
    assert list(found.values) == sorted(rates, reverse=True)
    chances = drawn_ranks([own[model] for model in found.models], wordings=True)
    for at, model in enumerate(found.models):
        assert found.chances[model] == pytest.approx(chances[at], abs=0.03)


def answered(model, said, **columns):
    """Outcomes of answers to the question of agreement: one a statement, in this order."""
    made = [
        {"model": model, "lang": "en", "probe": "agreement", "statement": f"s{at}", "answer": word}
        | {name: values[at] for name, values in columns.items()}
        for at, word in enumerate(said)
    ]
    return table.from_rows(made)


def left_out(scores):
    return {(s.by.get("own"), s.n): s.excluded for s in scores}


def test_what_a_cell_leaves_out_is_its_own():
    """Each cell of --by leaves out its own replies, and questions are counted, not replies."""
    own = list("xxxxyyyy")
    a = answered("a", ["yes", "no", "yes", "ambiguous", "no", "yes", "no", "yes"], own=own)
    b = answered("b", ["no", "ambiguous", "yes", "ambiguous", "no", "no", "yes", "yes"], own=own)
    both = pd.concat([a, b], ignore_index=True)
    found = components.of_outcomes(both, "endorsed", ["own"], [], str)
    assert left_out(found) == {("x", 5): {"unclear": 3}, ("y", 8): {}}
    found = components.of_differences(a, b, ("a", "b"), "endorsed", ["own"], [], str)
    assert left_out(found) == {("x", 2): {"not counted for both": 2}, ("y", 4): {}}
    found = reliability.retest({"a": a, "b": b}, "endorsed", ["own"], str)
    assert left_out(found) == {("x", 2): {"not counted in all": 2}, ("y", 4): {}}
    hits, sizes = {}, {}
    for label, one, left in ranking.of_outcomes(both, "endorsed", ["own"]):
        hits[label["own"]], sizes[label["own"]] = left, (one.statements, one.unshared)
    assert hits == {"x": {"unclear": 3}, "y": {}} and sizes == {"x": (3, 1), "y": (4, 0)}


def test_what_does_not_vary_is_no_certainty():
    """Answers that are all alike leave no variance to part, and no interval of one point."""
    a, b = (answered(name, ["yes", "yes", "no", "no"]) for name in "ab")
    (agree, same) = reliability.retest({"a": a, "b": b}, "endorsed", [], str)
    assert (agree.value, agree.low, agree.high, same.value) == (1, None, None, 1)
    with pytest.raises(InputError, match="all 4 values are alike, and nothing varies"):
        components.of_differences(a, b, ("a", "b"), "endorsed", [], [], str)
    unclear = answered("a", ["ambiguous"] * 4)
    with pytest.raises(InputError, match="no value is left to compare; left out: 4 unclear"):
        components.of_outcomes(unclear, "endorsed", [], [], str)
    both = pd.concat([a, b], ignore_index=True)
    for one in components.of_outcomes(both, "endorsed", [], [], str):
        assert one.low is None or one.low < one.high


def test_a_gate_without_a_clear_answer_does_not_pass(tmp_path):
    keys = [(f"s{at}", "agreement") for at in range(3)]
    runs = [ask(tmp_path, model, dict.fromkeys(keys, "Hm.")) for model in ("new", "old")]
    with pytest.raises(InputError, match=r"endorsed: .*; nothing to test"):
        gate.gate(*runs, {"endorsed": 0.05})


def test_what_two_models_leave_out_adds_up(tmp_path):
    """What counts for either and for none is what was planned, in each cell."""
    rng, words = np.random.default_rng(4), ["yes", "no", "ambiguous"]
    own = list("xxxxxxyyyyyy")
    one, other = (rng.choice(words, 12) for _ in "ab")
    sides = answered("a", one, own=own), answered("b", other, own=own)
    scores = paired.scores(paired.paired(*sides, "endorsed", ["own"]), "a", "b", "")
    clear = pd.DataFrame({"own": own, "a": one != "ambiguous", "b": other != "ambiguous"})
    for cell, rows in clear.groupby("own"):
        either = int((rows["a"] | rows["b"]).sum())
        neither = int((~rows["a"] & ~rows["b"]).sum())
        (score,) = [s for s in scores if s.metric == "difference" and s.by["own"] == cell]
        left = {"on neither side": neither} if neither else {}
        assert (score.n, score.excluded) == (either, left)
        for side in "ab":
            (score,) = [s for s in scores if s.metric == side and s.by["own"] == cell]
            assert score.n == int(rows[side].sum())
            assert score.n + sum(score.excluded.values()) == len(rows)


@pytest.mark.parametrize(
    ("values", "cells"),
    [
        (
            [1, "1 ", 1.0, True, None, "", "f", "f\u200f", "Cafe\u0301", "Café"],
            {"1": 3, "true": 1, None: 2, "f": 2, "Café": 2},
        ),
        ([True, 1, 1.0, False, 0], {"true": 1, "1": 2, "false": 1, "0": 1}),
    ],
)
def test_a_run_split_by_values_that_look_alike(tmp_path, values, cells):
    """Numbers and texts, true and 1, nothing in two ways, unseen marks: also when made again."""
    rows = [
        {"id": f"s{at}", "lang": "en", "text": f"Cooks of s{at} are loud.", "own": value}
        for at, value in enumerate(values)
    ]
    (tmp_path / "data.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    said = [(row["id"], "en", "agreement", "Yes.") for row in rows]
    columns = ["statement", "lang", "probe", "response"]
    pd.DataFrame(said, columns=columns).to_csv(tmp_path / "said.csv", index=False)
    folder = api.yesno(
        str(tmp_path / "said.csv"), engine="replay", data=str(tmp_path / "data.jsonl"),
        langs=["en"], probes=["agreement"], out=tmp_path / "run",
    ).folder  # fmt: skip
    found = genprobe.score(folder, metrics="yes", by="own", save=True)
    assert {s.by["own"]: s.n for s in found} == cells
    out = CliRunner().invoke(cli, ["verify", str(folder), "--recompute"])
    assert out.exit_code == 0
    assert f"{len(cells)} figures computed again, all as stored" in out.stdout.splitlines()


def reviewed(home, runs):
    """A table of a review of every second reply of these runs, with some other labels."""
    rng, rows = np.random.default_rng(4), []
    for run in map(Run.open, runs):
        read = table.outcomes(run)[["request", "answer"]].iloc[::2]
        for request, answer in read.itertuples(index=False):
            rows.append(
                dict.fromkeys(collect.COLUMNS, "")
                | {"item": collect.item_id(run.spec.hash, request), "request": request}
                | {"reviewer": "r", "question": "answer", "repeat": 0, "weight": 1.0}
                | {"answer": answer if rng.random() < 0.95 else str(rng.choice(LABELS))}
            )
    pd.DataFrame(rows).to_csv(home / "review.csv", index=False)
    return home / "review.csv"


@pytest.mark.parametrize(
    ("hedged", "told"),
    [(0.95, "a > b = c"), pytest.param(0.0, "a > b > c", marks=pytest.mark.slow)],
)
def test_a_reviewed_ranking_never_contradicts_its_table(tmp_path, hedged, told):
    """Line, intervals, bounds and p-values of one output; c hedges, or says no."""
    rng, runs = np.random.default_rng(2), []
    for model, share in (("b", 0.5), ("a", 1.0), ("c", 0.0)):
        said = {}
        for at in range(60):
            text = "It depends." if model == "c" and rng.random() < hedged else "No."
            said[f"s{at}", "agreement"] = "Yes." if rng.random() < share else text
        runs.append(ask(tmp_path, model, said))
    scores = compare(runs[0], runs[1:], reviewed=reviewed(tmp_path, runs))
    (found,) = json.loads(json.dumps(scores.rankings).replace(".csv", ""))
    rows = {
        (s.metric, s.by["a"][0], s.by["b"][0]): s for s in scores if s.by["of"] == "endorsed of all"
    }
    p, holm = ([s.value for s in scores if s.metric == name] for name in ("ppi-p", "holm-p"))
    assert holm == pytest.approx(multipletests(p, method="holm")[1]) and len(p) == 4 * 3
    differ = set()
    for pair in found["pairs"]:
        side = 1 if ("ppi-p", pair["b"], pair["a"]) in rows else -1
        models = (pair["b"], pair["a"])[::side]
        gap, corrected = rows["ppi-difference", *models], rows["holm-p", *models].value
        assert pair["difference"] == pytest.approx(side * gap.value) and gap.value * side > 0
        assert [pair["low"], pair["high"]] == sorted([side * gap.low, side * gap.high])
        hidden = gap.bounds is not None and gap.bounds[0] <= 0 <= gap.bounds[1]
        assert pair["p"] == corrected and pair["differ"] == (corrected < 0.05 and not hidden)
        assert pair["unclear_may_account"] == (corrected < 0.05 and hidden)
        if pair["differ"]:
            assert rows["ppi-p", *models].value < 0.05 and pair["low"] > 0
            differ.add(frozenset(models))
    assert list(found["values"]) == ["a", "b", "c"]
    assert found["ranking"] == divided(["a", "b", "c"], differ)
    assert found["told"].startswith(f"{told} (ties")
    assert ("unclear replies may account" in found["told"]) == bool(hedged)
