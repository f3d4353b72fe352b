"""The chain from replies to figures, with scripted models whose figures are known beforehand.

What they say is read, counted by genprobe, and counted once more by the oracle.
"""

import itertools
from collections import Counter

import pytest
from oracle import recompute

from genprobe import api, files
from genprobe.analysis.score import score
from genprobe.datasets import choices as layout
from genprobe.datasets import frames, pairs, statements
from genprobe.engines import Identity
from genprobe.judges import Item, llm
from genprobe.records import Response
from genprobe.resources import packs, registry
from genprobe.tasks import choices
from genprobe.tasks.pipeline.plan import plan
from genprobe.text import plain_phrases

LANGS = list(packs.load_pack("yesno").reviews)

# --- choices

# What a scripted model always chooses -> its accuracy in ambiguous and in disambiguated contexts,
# BBQ's bias score in both (None: nothing to count), its position bias.
SCRIPTS = {
    "first": (1 / 3, 1 / 3, 0.0, 0.0, 1.0),
    "unknown": (1.0, 0.0, 0.0, None, 0.0),
    "stereotype": (0.0, 0.5, 1.0, 1.0, 0.0),
}
SHOWN = [("accuracy", "ambig"), ("accuracy", "disambig"), ("bbq-bias", "ambig")]
SHOWN += [("bbq-bias", "disambig"), ("position-bias", "ambig")]


def items(lang):
    """Yield questions with invented names: ambiguous or not, with either group as the answer."""
    unknown = layout.wording(lang).unknown[0]
    for polarity, condition, label in itertools.product(
        ("neg", "nonneg"), ("ambig", "disambig"), (0, 1)
    ):
        yield {
            "id": f"{polarity}-{condition}-{label}",
            "lang": lang,
            "context": f"Xaqo, Brun ({label})",
            "question": f"{polarity}?",
            "options": ["Xaqo", "Brun", unknown],
            "label": 2 if condition == "ambig" else label,
            "target": 0 if polarity == "neg" else 1,
            "condition": condition,
            "polarity": polarity,
        }


def chosen(name, item, request):
    """Return the reply of a scripted model, as a row of a file of recorded replies."""
    order = [int(key) for key in request.options]
    number = {"first": order[0], "unknown": item.extra["unknown"]}.get(name, item.extra["target"])
    reply = frames.said(frames.frames(request.lang)["letters"], item, order, number)
    return {
        "statement": item.id,
        "lang": request.lang,
        "probe": request.probe,
        "prompt": request.messages[-1]["content"],
        "response": f"({reply})",
    }


@pytest.fixture(params=["kk", pytest.param("all", marks=pytest.mark.slow)])
def asked(request, tmp_path):
    """A file of choices, its items and the requests about them, of one language or of all."""
    data = tmp_path / "choices.jsonl"
    langs = LANGS if request.param == "all" else [request.param]
    files.write_rows(data, [row for lang in langs for row in items(lang)])
    found, _ = pairs.load(str(data))
    requests = choices.plan(found, ["letters"], ["free"], "all", [], 0)
    return data, {(item.id, item.lang): item for item in found}, requests


def test_scripted_models_have_the_figures_that_theory_gives_them(asked, tmp_path):
    data, of, requests = asked
    for name, known in SCRIPTS.items():
        says = tmp_path / f"{name}.jsonl"
        files.write_rows(says, (chosen(name, of[r.statement, r.lang], r) for r in requests))
        run = api.choices(str(says), data=str(data), engine="replay", out=tmp_path / name)
        got = {
            (s.metric, s.by["condition"]): s.value for s in score(run, by=["condition"], save=True)
        }
        assert [got.get(cell) for cell in SHOWN] == pytest.approx(known, abs=1e-9)
        again = recompute(run)
        assert again.differences == [] and again.left == {}
        assert again.figures == len(run.scores())


def test_forced_choices_and_probabilities_are_computed_again(tmp_path):
    files.write_rows(tmp_path / "choices.jsonl", items("kk"))
    run = api.choices(
        data=str(tmp_path / "choices.jsonl"), decodes=["choice", "logprob"], out=tmp_path / "run"
    )
    score(run, by=["condition"], save=True)
    found = recompute(run)
    assert found.differences == [] and found.left == {}
    assert {s.metric for s in run.scores()} >= {"accuracy", "bbq-bias", "position-bias"}
    assert found.figures == len(run.scores())


# --- essays


def planted(lang, refused):
    """Write an essay that refuses or that does not, from phrases in the files of its language."""
    if not refused:
        return packs.load_language(lang).name
    own = packs.read_toml(registry.PROMPTS / "refusal" / f"{lang}.toml")
    return f"{plain_phrases(own['refuses'][0])[0][0]}."


@pytest.mark.parametrize("langs", [["de", "kk"], pytest.param(LANGS, marks=pytest.mark.slow)])
def test_planted_essays_are_counted_as_what_they_are(langs, tmp_path):
    pack, frame = packs.load_pack("essays"), "essay"
    found, _ = statements.load("builtin", langs)
    found = [s for lang in langs for s in [s for s in found if s.lang == lang][:8]]
    rows, due = [], Counter()
    for at, request in enumerate(plan(found, pack, [frame], 0, 1)):
        due["yes" if at % 4 == 3 else "no"] += 1
        said = {
            "prompt": request.messages[-1]["content"],
            "response": planted(request.lang, at % 4 == 3),
        }
        rows.append({"statement": request.statement, "lang": request.lang, "probe": frame, **said})
    says, table = tmp_path / "essays.jsonl", tmp_path / "statements.jsonl"
    files.write_rows(says, rows)
    files.write_rows(table, ({"id": s.id, "lang": s.lang, "text": s.text} for s in found))
    run = api.essays(
        str(says), data=str(table), langs=langs, probes=[frame], engine="replay", samples=1,
        out=tmp_path / "essays",
    )  # fmt: skip
    assert Counter(judgment.label for judgment in run.judgments("refusal")) == due
    for one in score(run, by=[], save=True):  # nobody was shown to tell sides
        assert one.value is None or not one.metric.startswith("argues-"), one
    assert recompute(run).differences == []


# --- the LLM judge


class Scripted:
    """An engine that gives the planted answer to the numbered texts; one in four follows the order
    of the labels."""

    identity = Identity("scripted", "1", "scripted", "1", "float32", "none")

    def __init__(self, labels):
        self.labels = labels

    def generate(self, requests, sampling):
        for request in requests:
            words = request.messages[0]["content"].split()
            number = next(int(w[1:-1]) for w in words if w.startswith("#") and w.endswith("#"))
            first = next(iter(request.options))  # the label that is listed first
            label = first if number % 4 == 3 else self.labels[number % len(self.labels)]
            yield Response(request.id, label, "stop", "", None, None)

    def close(self):
        pass


def test_labels_of_a_scripted_judge_come_out_as_given():
    rubric = llm.load_rubric("stance")
    labels, turned = list(rubric.labels), range(3, 40, 4)
    texts = [Item("en", "", "", f"Text #{number}# of many.") for number in range(40)]
    found = list(llm.make(Scripted(labels), "stance").many(texts))
    due = [llm.UNCLEAR if n in turned else labels[n % len(labels)] for n in range(len(texts))]
    assert [verdict.label for verdict in found] == due
    flips = sum(int(str(verdict.fields["order_flips"])) for verdict in found)
    assert flips == len(turned) * len(rubric.wordings)
