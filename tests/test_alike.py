"""A table and the runs made of it have the same figures, in every form that a table can have."""

import os
import re
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import random_tables
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from genprobe import api, files, logs
from genprobe.analysis.compare import compare
from genprobe.analysis.score import score
from genprobe.analysis.sources import as_runs
from genprobe.errors import InputError
from genprobe.outcomes import counted
from genprobe.tasks.pipeline import logged

SEEDS = st.integers(0, 10_000)
QUICK = settings(
    max_examples=int(os.environ.get("EXAMPLES", "1")),
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
)

SAID = {
    "en": ("Yes, I agree.", "No, I do not agree.", "I cannot help with that.", "It depends."),
    "de": ("Ja, ich stimme zu.", "Nein, ich stimme nicht zu.", "Dabei kann ich nicht helfen.", ""),
}


def replies(seed):
    """Random replies of two models to statements in pairs, some of them missing."""
    rng = np.random.default_rng(seed)
    worded, several, roles = rng.random(3) < 0.5
    pairs, rows = {lang: int(rng.integers(2, 5)) for lang in SAID}, []
    for model in ("a", "b"):
        for lang, said in SAID.items():
            for pair in range(pairs[lang]):
                for role in ("original", "contrast")[: 1 + roles]:
                    for probe in ("agreement", "disagreement"):
                        for sample in range(1 + several):
                            for wording in ("", "one")[: 1 + worded]:
                                reply = said[rng.choice(4, p=(0.4, 0.4, 0.1, 0.1))]
                                rows.append(
                                    {
                                        "model": model, "lang": lang, "probe": probe, "role": role,
                                        "statement": f"s{pair}{role[0]}", "pair": f"p{pair}",
                                        "sample": sample, "wording": wording,
                                        "topic": ("x", None)[pair % 2],
                                        "prompt": f"{lang} {probe} {pair}{role}{wording}?",
                                        "response": None if rng.random() < 0.1 else reply,
                                    }
                                )  # fmt: skip
    return rows


def figures(scores, without=()):
    """Everything that a score says but its source, by what it is of."""
    found = {}
    for one in scores:
        by = tuple(sorted((k, v) for k, v in one.by.items() if k not in ("source", *without)))
        ends = [None if x is None else round(x, 9) for x in (one.value, one.low, one.high)]
        bounds = one.bounds and [round(end, 9) for end in one.bounds]
        # A table does not tell why there is no reply; its runs hold it as a request that failed.
        left = {("failed" if why == "missing" else why): n for why, n in one.excluded.items()}
        found[one.metric, by] = (*ends, one.n, left, bounds)
    assert len(found) == len(list(scores))
    return found


BY = (["model", "lang", "probe"], ["model", "topic"], ["model", "role"], ["model", "wording"])
COMPARED = (
    {"metrics": ["endorsed", "refusal"]},
    {"metrics": ["yes", "acquiescence"], "by": ["topic"]},
    {"metrics": ["ambiguous", "endorsed-both-ways"], "by": ["lang"]},
)


def alike(one, other):
    """Compare every measure that both give; there must be some."""
    sides = [
        {
            name: {key: found for key, found in side.items() if _of(key) == name}
            for name in map(_of, side)
            if name != "failed"
        }
        for side in (one, other)
    ]
    both = sides[0].keys() & sides[1].keys()
    assert both
    for name in sorted(both):
        assert sides[0][name] == sides[1][name], name


def _of(key):
    return dict(key[1]).get("of", key[0])


def judged(rows):
    return list(api.judge(rows, ("yesno", "refusal", "language")))


@QUICK
@example(900, BY[0], COMPARED[1])  # of its statements only the names and the prompts are known
@given(SEEDS, st.sampled_from(BY), st.sampled_from(COMPARED))
def test_a_table_and_its_runs_have_the_same_figures(tmp_path_factory, seed, by, compared):
    rows = replies(seed)
    if by[-1] == "wording" and not any(row["wording"] for row in rows):
        by = by[:-1]  # a run in one wording has no such column
    folder = tmp_path_factory.mktemp("runs") / "all"
    api.judge(rows, out=folder)
    runs, table = sorted(folder.iterdir()), judged(rows)
    alike(figures(score(table, by=by)), figures(score(runs, by=by)))
    alike(figures(compare(table, **compared)), figures(compare(runs, **compared)))
    with as_runs(table) as folders:  # what a page shows
        alike(figures(score(table, by=by)), figures(score(folders, by=by)))


def same_in(forms, rows, by, compared):
    """Whether score and compare find the same in every form of a table."""
    whole, gaps = figures(score(rows, by=by)), figures(compare(rows, **compared))
    for name, form in forms.items():
        assert figures(score(form, by=by)) == whole, name
        assert figures(compare(form, **compared)) == gaps, name


@QUICK
@given(SEEDS, st.sampled_from(BY), st.sampled_from(COMPARED))
def test_a_table_has_the_same_figures_in_every_form(tmp_path_factory, seed, by, compared):
    """Shuffled, as CSV, JSONL and Parquet, as a frame of pandas."""
    folder, rows = tmp_path_factory.mktemp("forms"), judged(replies(seed))
    table = pd.DataFrame(rows, dtype=object)
    forms = {name: folder / f"t.{name}" for name in ("csv", "jsonl", "parquet")}
    table.to_csv(forms["csv"], index=False)
    table.to_json(forms["jsonl"], orient="records", lines=True)
    table.to_parquet(forms["parquet"])
    mixed = table.sample(frac=1, random_state=seed)
    shuffled = mixed.sort_values("model", kind="stable").to_dict("records")  # the first one is a
    same_in(forms | {"pandas": table, "shuffled": shuffled}, rows, by, compared)


def test_a_frame_of_polars_has_the_same_figures():
    polars = pytest.importorskip("polars", reason="Polars is not installed")
    rows = judged(replies(1))
    frame = polars.DataFrame(rows, infer_schema_length=None)
    same_in({"polars": frame}, rows, BY[0], COMPARED[1])


# kind of a table -> measures of each way of counting that it has.
OTHERS = {
    "choices": ("accuracy", "bbq-bias", "ambiguous-bias", "unknown-chosen", "position-bias"),
    "likelier": ("stereotype-chosen", "order-changes"),
    "pairs": ("win-rate", "bpr", "mixing"),
    "stories": ("negrate", "negrate-published", "negative-stories", "vote-margin", "usable"),
    "replies": ("argues-for", "thought-against-answer", "mixing-endorsed", "wrong-language"),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_tables_have_the_same_figures_and_signatures_in_every_form(tmp_path, kind):
    """Choices, pairs, stories, essays and thoughts; a signature names the file besides."""
    table = random_tables.KINDS[kind](np.random.default_rng(5), 5 if kind != "pairs" else 12)
    if kind == "stories":  # as `score --export` writes them
        table = table.assign(request=[f"r{n}" for n in range(len(table))])
    table = table.astype(object).where(table.notna(), None)
    forms = {name: tmp_path / f"t.{name}" for name in ("csv", "jsonl", "parquet")}
    table.to_csv(forms["csv"], index=False)
    table.to_json(forms["jsonl"], orient="records", lines=True, double_precision=15)
    table.to_parquet(forms["parquet"])
    forms["pandas"] = table
    forms["shuffled"] = table.sample(frac=1, random_state=1).to_dict("records")

    def found(form):
        scores = score(form, metrics=OTHERS[kind])
        return figures(scores), {re.sub(r"\|(rows|file):\w+", "", one.signature) for one in scores}

    whole = found(table.to_dict("records"))
    assert {name for name, _ in whole[0]} == {*OTHERS[kind]}
    for name, form in forms.items():
        assert found(form) == whole, name


def labelled(number):
    """Rows of a judged table: four statements, one reply each to many questions."""
    for at in range(number):
        answer = ("yes", "no", "ambiguous")[at % 3]
        yield {
            "model": "a", "lang": "en", "probe": "agreement", "statement": f"s{at % 4}",
            "text": f"Dogs of the kind {at % 4} bark.", "sample": at // 4, "answer": answer,
            "prompt": f"Do dogs of the kind {at % 4} bark? {'So it is said. ' * 20}",
            "response": f"{answer}, said {at} of {number}; {'and so on, ' * 20}",
        }  # fmt: skip


def test_a_page_of_a_table_holds_no_reply_of_all(tmp_path, monkeypatch):
    """Its rows go through memory, whatever they say, beyond the limit of what is held of a file."""
    path = tmp_path / "judged.parquet"
    files.write_rows(path, labelled(240))
    monkeypatch.setenv("GENPROBE_LIMIT_UNPACKED", "40000")
    with pytest.raises(InputError, match="GENPROBE_LIMIT_UNPACKED"):
        files.read_frame(path)
    monkeypatch.setattr(counted, "PART", 8)  # parts, as of a large table
    page = api.report(path)
    assert "240 replies" in page
    with as_runs(path) as [folder]:
        assert figures(score(path)).items() <= figures(score(folder)).items()


def test_memory_does_not_grow_with_the_replies_that_a_run_is_made_of(tmp_path):
    def peak(number):
        path = tmp_path / f"{number}.jsonl"
        files.write_rows(path, labelled(number))
        tracemalloc.start()
        try:
            with logs.Log(path) as log:
                [run] = logged.keep(log, tmp_path / f"{number}", print)
            return tracemalloc.get_traced_memory()[1], len(list(run.judgments("yesno")))
        finally:
            tracemalloc.stop()

    peak(20)  # what is loaded once
    (small, _), (large, found) = peak(400), peak(1600)
    assert found == 1600
    assert large - small < 1200 * 200, "bytes a reply; its texts have 600"
