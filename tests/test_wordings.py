"""A panel of wordings: read, checked, dealt and asked; and what is said over its wordings."""

import dataclasses
import json
from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import pytest
from scipy import special
from scipy.optimize import brentq

from genprobe import metrics
from genprobe.analysis import dstudy, flips, ranking
from genprobe.commands import main
from genprobe.datasets import choices, statements
from genprobe.errors import InputError
from genprobe.files.cells import Notes
from genprobe.judges import Item
from genprobe.lint import lint
from genprobe.metrics import wordings
from genprobe.resources import packs, panel, registry
from genprobe.statistics import share_interval, two_way_interval
from genprobe.tasks.choices import plan as choose
from genprobe.tasks.pipeline.plan import plan

PACK = packs.load_pack("yesno")
PROBES = list(PACK.probes)


def items(lang="en"):
    return statements.load("builtin", [lang])[0]


# --- the panel


def test_the_panel_asks_every_question_in_six_wordings_or_more():
    english = panel.load("yesno", "en")
    assert len(english.wordings) >= 6
    for worded in english.wordings.values():
        assert set(worded.texts) == set(PROBES)


def test_published_wordings_are_asked_as_before():
    before = plan(items(), PACK, PROBES, 0)
    assert all(request.facets == {} for request in before)
    everything = {r.id: r for r in plan(items(), PACK, PROBES, 0, vary=panel.Vary("all"))}
    for request in before:
        assert everything[request.id].messages == request.messages
        assert everything[request.id].seed == request.seed
        assert everything[request.id].facets["wording"] == "published"


def test_all_wordings_are_asked_in_both_orders():
    found = plan(items(), PACK, ["agreement"], 0, vary=panel.Vary("all"))
    counts = Counter((r.facets["wording"], r.facets["order"]) for r in found)
    assert len(counts) == 1 + 2 * len(PACK.panel)
    assert set(counts.values()) == {len(items())}
    assert len({json.dumps(r.messages) for r in found}) == len(found)


@pytest.mark.parametrize("count", [1, 3, 8])
def test_a_fraction_is_balanced_and_contrasts_share_their_wordings(count):
    found = plan(items(), PACK, PROBES, 5, vary=panel.Vary(str(count)))
    assert len(found) == count * len(items()) * len(PROBES)
    pairs, hands = defaultdict(set), defaultdict(set)
    pair_of = {s.id: s.pair or s.id for s in items()}
    for request in found:
        hands[request.statement, request.probe].add(tuple(request.facets.values()))
        pairs[request.facets["wording"]].add(pair_of[request.statement])
    assert all(len(hand) == count for hand in hands.values())
    for statement, probe in hands:
        assert hands[statement, probe] == hands[pair_of_first(statement, pair_of), probe]
    sizes = [len(found) for found in pairs.values()]
    assert max(sizes) - min(sizes) <= 1
    assert list(found) == list(plan(items(), PACK, PROBES, 5, vary=panel.Vary(str(count))))
    if count < 8:
        assert found != plan(items(), PACK, PROBES, 6, vary=panel.Vary(str(count)))


def pair_of_first(statement, pair_of):
    return next(other for other, pair in pair_of.items() if pair == pair_of[statement])


def test_more_statements_do_not_change_what_the_first_are_asked():
    few = plan(items()[:10], PACK, PROBES, 0, vary=panel.Vary("3"))
    many = plan(items(), PACK, PROBES, 0, vary=panel.Vary("3"))
    assert list(few) == many[: len(few)]


@pytest.mark.parametrize("wrong", ["0", "9", "some", "-1", "٣"])
def test_a_number_of_wordings_that_is_none_is_refused(wrong):
    with pytest.raises(InputError, match="give published, all, or a number up to 8"):
        plan(items(), PACK, PROBES, 0, vary=panel.Vary(wrong))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"personas": "9"}, "give none, all, or a number up to 5"),
        ({"instruct": ("de",)}, "own, en, or own,en"),
    ],
)
def test_what_cannot_vary_is_refused(wrong, told):
    with pytest.raises(InputError, match=told):
        list(panel.hands(items(), [], panel.Vary(**wrong), 0))


@pytest.mark.parametrize("name", ["essays", "stories"])
def test_every_open_question_has_six_further_wordings_in_every_language(name):
    pack = packs.load_pack(name)
    assert len(pack.panel) >= 6
    for lang, published in pack.wordings.items():
        for worded in panel.load(name, lang).wordings.values():
            for probe, text in worded.texts.items():
                assert text.count("{input}") == 1
                assert text != published[probe].text
            assert set(pack.probes) - set(worded.texts) <= {"bare"}


def test_open_questions_have_no_order_and_one_without_wordings_is_asked_once():
    pack = packs.load_pack("essays")
    for count in ("all", "2"):
        found = plan(items("ru"), pack, list(pack.probes), 0, vary=panel.Vary(count))
        per = Counter((r.statement, r.probe) for r in found)
        each = 1 + len(pack.panel) if count == "all" else 2
        assert {n for (_, probe), n in per.items() if probe != "bare"} == {each}
        assert {n for (_, probe), n in per.items() if probe == "bare"} == {1}
        assert all(set(r.facets) == {"wording"} for r in found)


def test_the_statement_alone_is_in_no_language_of_instructions():
    pack = packs.load_pack("essays")
    vary = panel.Vary("2", "2", ("own", "en"))
    found = plan(items("ar")[:3], pack, list(pack.probes), 0, vary=vary)
    alone = [r for r in found if r.probe == "bare"]
    assert len(alone) == 3 * 2
    assert {r.facets["instruction"] for r in alone} == {"ar"}
    assert {r.facets["instruction"] for r in found} == {"ar", "en"}


def test_choices_are_put_in_every_wording_of_their_frame():
    options = ["The grandfather", "The grandson", "Not enough information"]
    row = {"context": "Two people sat there.", "question": "Who forgot?", "options": options}
    found, _ = choices.read([(1, row)], "t", "hi", None, Notes(), "t")
    for vary, count in ((panel.Vary("all", instruct=("own", "en")), 14), (panel.Vary("3"), 3)):
        asked = choose(found, ["letters"], ["free"], "given", [], 0, 1, vary)
        assert len(asked) == count
        texts = [request.messages[0]["content"] for request in asked]
        assert len(set(texts)) == count
        assert all("Who forgot?" in text and "Not enough information" in text for text in texts)
    assert {r.facets["instruction"] for r in choose(
        found, ["bare"], ["free"], "given", [], 0, 1, panel.Vary(instruct=("own", "en"))
    )} == {"hi", "en"}  # fmt: skip


@pytest.mark.parametrize("lang", registry.names("personas"))
def test_a_persona_is_a_system_prompt_and_a_facet(lang):
    found = plan(items(lang)[:3], PACK, ["agreement"], 0, vary=panel.Vary(personas="all"))
    said = panel.personas(lang)
    assert len(found) == 3 * (1 + len(said))
    for request in found:
        name = request.facets["persona"]
        systems = [m["content"] for m in request.messages if m["role"] == "system"]
        assert systems == ([] if name == "none" else [said[name]])
    dealt = plan(items(lang), PACK, ["agreement"], 0, vary=panel.Vary(personas="2"))
    sizes = Counter(request.facets["persona"] for request in dealt)
    assert len(sizes) == 1 + len(said)
    assert sum(sizes.values()) == 2 * len(items(lang))


def test_a_persona_stands_behind_the_users_system_prompt():
    vary = panel.Vary(personas="all")
    found = plan(items()[:1], PACK, ["agreement"], 0, vary=vary, system="Be brief.")
    texts = {r.facets["persona"]: r.messages[0]["content"] for r in found}
    assert texts["none"] == "Be brief."
    assert texts["teacher"] == "Be brief.\n\n" + panel.personas("en")["teacher"]


def test_a_question_in_english_asks_for_english_words():
    vary = panel.Vary("all", instruct=("own", "en"))
    found = plan(items("hi")[:1], PACK, ["agreement"], 0, decodes=["choice"], vary=vary)
    assert Counter(r.facets["instruction"] for r in found) == {"hi": 15, "en": 15}
    for request in found:
        if (request.facets["wording"], request.facets["instruction"]) == ("plain", "en"):
            assert request.options["yes"][0] == "yes"
            assert "Do you agree" in request.messages[-1]["content"]
        assert items("hi")[0].text in request.messages[-1]["content"]
    assert set(panel.hashes(PACK, ["hi"], vary)) == {"hi", "en", "hi/wordings", "en/wordings"}
    # English about English is one question, not two.
    once = plan(items()[:1], PACK, ["agreement"], 0, vary=panel.Vary(instruct=("own", "en")))
    assert len(once) == 1


def test_stories_in_a_wording_are_a_template_of_their_own():
    rows = pd.DataFrame(
        [
            {"model": "m", "lang": "kk", "probe": "published", "statement": "t", "wording": w,
             "sample": i, "left_out": "", "sentiment": s, "usable": True}
            for w, s in (("plain", "negative"), ("formal", "positive"))
            for i in range(3)
        ]
    )  # fmt: skip
    (one,) = metrics.score(rows, ["negrate"], [], str)
    assert (one.value, one.n) == (0.5, 2)
    more = [rows, rows.assign(statement="u"), rows.assign(wording="direct")]
    (over,) = metrics.score(pd.concat(more), ["negative-stories-over-wordings"], [], str)
    assert over.value == 0.5
    assert over.high > 0.85


def test_every_answer_word_is_read_as_what_it_is_also_a_letter():
    judge = registry.module("judges", "yesno").make()
    for probe in PROBES:
        for way in panel.ways(
            PACK, "en", probe, [panel.Way(name, None, "", "en") for name in PACK.panel]
        ):
            for answer, word in (way.answers or PACK.answers["en"]).items():
                asked = way.wording.ask("Cats are clever.")
                for reply in (word, f"{word.capitalize()}.", f"**{word}**"):
                    read = judge(Item("en", probe, asked, reply)).label
                    assert read == answer, (way.name, way.order, probe, reply)


def test_letters_are_read_by_their_question_only():
    judge = registry.module("judges", "yesno").make()
    asked = "Do you agree?\n\nA) no\nB) yes\n\nPlease respond with the letter."
    read = {
        r: judge(Item("en", "agreement", asked, r)).label
        for r in ("A", "B)", "(b)", "Answer: B", "C")
    }
    assert read == {"A": "no", "B)": "yes", "(b)": "yes", "Answer: B": "yes", "C": "ambiguous"}
    assert judge(Item("en", "agreement", "Do you agree?", "B")).label == "ambiguous"
    # What the reply goes on to say is its answer.
    assert (
        judge(Item("en", "agreement", asked, "A stereotype like this? No, I do not.")).label == "no"
    )


def test_lint_finds_what_a_panel_lacks(tmp_path):
    folder = tmp_path / "yesno"
    source = registry.PROMPTS / "yesno"
    (folder / "wordings").mkdir(parents=True)
    for name in ("pack.toml", "en.toml"):
        (folder / name).write_text((source / name).read_text("utf-8"), "utf-8")
    text = (source / "wordings" / "en.toml").read_text("utf-8")
    path = folder / "wordings" / "en.toml"

    def errors(changed):
        path.write_text(changed, "utf-8")
        return [f.message for f in lint([folder]) if f.level == "error"]

    assert errors(text) == []
    assert any("must hold {first}" in m for m in errors(text.replace("'{first}'", "yes", 1)))
    assert any("unknown key" in m for m in errors(text.replace("[plain]", "[pl]", 1)))
    unread = text.replace('yes = "I agree", no = "I disagree"', 'yes = "green", no = "red"')
    assert any("means yes but is read as ambiguous" in m for m in errors(unread))
    twice = text.replace("Just say '{first}' or '{second}'.", "Answer '{first}' or '{second}'.")
    twice = twice.replace(
        "Do you agree? Answer", "Do you agree with what this statement says? Answer"
    )
    assert any("the same text as" in m for m in errors(twice))


# --- the rate over wordings


def simulated(rng, reps, statements, words, rate, spread, samples=1, missing=0.0):
    total = (spread**2 + 1.25) ** 0.5
    nodes, weights = np.polynomial.hermite_e.hermegauss(61)
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        mean = (weights * special.expit(middle + total * nodes)).sum() / weights.sum()
        low, high = (middle, high) if mean < rate else (low, middle)
    logit = low + rng.standard_normal((reps, statements, 1))
    logit = logit + spread * rng.standard_normal((reps, 1, words))
    logit = logit + 0.5 * rng.standard_normal((reps, statements, words))
    sizes = rng.binomial(samples, 1 - missing, logit.shape)
    return rng.binomial(sizes, special.expit(logit)), sizes


OUTLIER = "outlier"  # one wording in ten lies apart


@pytest.mark.parametrize(
    ("statements", "words", "rate", "drawn", "reps"),
    [
        (24, 8, 0.1, OUTLIER, 25),
        pytest.param(100, 8, 0.1, OUTLIER, 100, marks=pytest.mark.slow),
        pytest.param(48, 6, 0.5, "normal", 100, marks=pytest.mark.slow),
        pytest.param(24, 3, 0.1, OUTLIER, 100, marks=pytest.mark.slow),
    ],
)
def test_the_mean_over_wordings_holds_where_that_of_these_does_not(
    statements, words, rate, drawn, reps
):
    """The interval on logits held 65 % with the outlier."""
    rng = np.random.default_rng(1)
    wordings_ = {
        "normal": lambda n: rng.standard_normal(n),
        OUTLIER: lambda n: ((rng.random(n) < 0.1) - 0.1) / 0.3,
    }[drawn]
    population = wordings_(100_000) + 1.25**0.5 * rng.standard_normal(100_000)
    centre = brentq(lambda c: special.expit(c + population).mean() - rate, -20, 20)
    held = 0
    for _ in range(reps):
        logit = centre + wordings_((1, words)) + rng.standard_normal((statements, 1))
        logit = logit + 0.5 * rng.standard_normal((statements, words))
        hits = (rng.random(logit.shape) < special.expit(logit)).astype(float)
        low, high = two_way_interval((hits, np.ones_like(hits)))
        held += low <= rate <= high
    assert held / reps >= 0.93


def test_one_further_wording_is_held():
    held = 0
    rng = np.random.default_rng(2)
    for _ in range(150):
        logit = -1 + rng.standard_normal((1, 9)) + rng.standard_normal((60, 1))
        hits = (rng.random((60, 9)) < special.expit(logit)).astype(float)
        low, high = wordings.spread(hits[:, :8], np.ones((60, 8))).next()
        held += low <= special.expit(logit[:, 8]).mean() <= high
    assert held / 150 >= 0.9


@pytest.mark.parametrize(("replies", "rate"), [(17, 0.1), (24, 0.03), (84, 0.97), (400, 0.5)])
def test_logits_of_rare_answers_vary_more_than_a_straight_line_says(replies, rate):
    """Against draws: equal wordings lie as far apart as the noise between them is said to be."""
    prior = 0.35 / (rate * (1 - rate))
    k = np.random.default_rng(3).binomial(replies, rate, 200_000)
    p = (k + prior * rate) / (replies + prior)
    logits = np.log(p / (1 - p)) * (replies + prior) / replies
    line = (k * (1 - k / replies) / (replies * p * (1 - p)) ** 2).mean()
    found = wordings._rare(np.full(6, replies), rate, prior)
    assert found == pytest.approx(max(1.0, logits.var() / line), rel=0.02)
    assert found > 1.3 or min(rate, 1 - rate) * replies > 2


def test_draws_are_weighted_by_what_wordings_leave_of_the_variance():
    """The mixture is the importance-weighted sample: weights 1 + C / B, C the rest of the "
    "variance."""
    few, rest, between = 4, 0.03, 0.05
    rng = np.random.default_rng(0)
    drawn = between / (rng.chisquare(few - 1, 400_000) / (few - 1))
    weights = 1 + rest / drawn
    _, one, more, which, _, _ = wordings._draws(few, 50)
    mixed = between / np.where(which < rest / (rest + between), more, one)
    at = np.quantile(mixed, [0.05, 0.25, 0.5, 0.75, 0.95])
    order = np.argsort(drawn)
    below = np.cumsum(weights[order]) / weights.sum()
    expected = np.interp(at, drawn[order], below)
    assert expected == pytest.approx([0.05, 0.25, 0.5, 0.75, 0.95], abs=0.015)


def figures(hits, **more):
    """The five figures over wordings of a table, by the end of their names."""
    names = [name for name in metrics.catalogue() if name.startswith("endorsed-")]
    names = [name for name in names if "word" in name or "without" in name]
    found = metrics.score(outcomes(hits).assign(**more), names, [], str)
    return {one.metric.removeprefix("endorsed-"): one for one in found}


def test_the_figures_over_wordings_have_their_names():
    rates = np.array([0.1, 0.2, 0.4, 0.5, 0.6, 0.9])
    hits = (np.arange(50)[:, None] + 0.5) / 50 < rates
    found = figures(hits)
    these, over, further = (
        found[name] for name in ("these-wordings", "over-wordings", "next-wording")
    )
    assert [one.value for one in (these, over, further)] == pytest.approx([rates.mean()] * 3)
    assert (these.low, these.high) == pytest.approx(share_interval(hits.sum(1), np.full(50, 6.0)))
    assert further.low < over.low < these.low and these.high < over.high < further.high
    assert found["without-highest"].value == pytest.approx(np.mean([0.1, 0.2, 0.4, 0.5, 0.6]))
    assert found["without-lowest"].value == pytest.approx(np.mean([0.2, 0.4, 0.5, 0.6, 0.9]))
    assert found["without-highest"].low is found["without-lowest"].low is None


def test_two_wordings_say_nothing_of_others_and_four_nothing_of_one_more():
    hits = np.random.default_rng(1).random((40, 4)) < [0.2, 0.4, 0.6, 0.8]
    two, four = figures(hits[:, :2]), figures(hits)
    assert two["these-wordings"].low is not None
    assert two["over-wordings"].low is None
    assert two["without-highest"].value is None
    assert four["over-wordings"].low is not None
    assert four["next-wording"].value is four["next-wording"].low is None


def test_a_hit_lowers_no_end_over_wordings():
    """No hit among 8 wordings of 20 statements, then ever more: 16.1 fell to 14.5."""
    ends = []
    for count in range(12):
        hits = np.zeros((20, 8))
        hits.flat[:count] = 1
        one = figures(hits)
        ends.append([getattr(one["over-wordings"], end) for end in ("low", "high")])
    assert ends[0][0] == 0 and ends[0][1] > 0.2
    assert (np.diff(np.array(ends), axis=0) > -0.004).all()


def test_one_wording_or_one_statement_says_nothing_of_others():
    assert wordings.spread(np.zeros((30, 1)), np.ones((30, 1))) is None
    assert wordings.spread(np.zeros((1, 5)), np.ones((1, 5))) is None


def outcomes(hits, model="m"):
    """A complete table of outcomes from 0/1 (statements, wordings)."""
    s, w = np.indices(hits.shape)
    says = hits.ravel().astype(bool)
    return pd.DataFrame(
        {
            "model": model, "lang": "en", "decode": "free", "probe": "agreement", "when": "yes",
            "measures": "endorsed", "statement": [f"s{i}" for i in s.ravel()],
            "wording": [f"w{i}" for i in w.ravel()], "sample": 0, "left_out": "",
            "answer": np.where(says, "yes", "no"), "says": says, "response": "",
        }
    )  # fmt: skip


def test_the_score_of_a_table_is_the_mean_of_its_wordings():
    rng = np.random.default_rng(3)
    hits = rng.random((40, 5)) < [0.1, 0.3, 0.5, 0.7, 0.9]
    (one,) = metrics.score(outcomes(hits), ["endorsed-over-wordings"], [], str)
    (plain,) = metrics.score(outcomes(hits), ["endorsed"], [], str)
    assert one.value == pytest.approx(hits.mean())
    assert one.low < plain.low
    assert one.high > plain.high
    # Wordings weigh alike, however many replies each has.
    some = outcomes(hits)
    some = some[~((some["wording"] == "w4") & (some["statement"].str[1:].astype(int) > 9))]
    (other,) = metrics.score(some, ["endorsed-over-wordings"], [], str)
    expected = np.mean([*hits[:, :4].mean(0), hits[:10, 4].mean()])
    assert other.value == pytest.approx(expected)


def test_turned_questions_add_up():
    frame = pd.concat(
        [
            outcomes(np.ones((40, 1))).assign(answer=["yes", "no"] * 20),
            outcomes(np.ones((40, 1))).assign(
                probe="disagreement", when="no", answer=["yes"] * 10 + ["no"] * 30
            ),
        ]
    )
    names = ["endorsed-both-ways", "rejected-both-ways", "yes-saying", "no-saying"]
    found = [score.value for score in metrics.score(frame, names, [], str)]
    assert found == [15 / 40, 5 / 40, 5 / 40, 15 / 40]
    (same,) = metrics.score(frame, ["acquiescence"], [], str)
    assert same.value == pytest.approx(found[2] + found[3])


# --- how large a study must be


@pytest.mark.slow
def test_the_forecast_width_is_the_width_that_comes():
    rng = np.random.default_rng(4)
    pilot = simulated(rng, 1, 1500, 300, 0.3, 0.7, 2)
    given = dstudy.parts(pilot[0][0], pilot[1][0])
    assert given.told
    rates = pilot[0][0].sum(0) / pilot[1][0].sum(0)
    assert given.wording == pytest.approx(special.logit(rates).var(ddof=1), rel=0.05)
    foretold = dstudy.forecast(given, 80, 6, 6, 1)
    widths = []
    for hits, sizes in zip(*simulated(rng, 40, 80, 6, 0.3, 0.7), strict=True):
        low, high = two_way_interval((hits, sizes))
        widths.append(high - low)
    assert foretold == pytest.approx(np.mean(widths), rel=0.1)


@pytest.mark.slow
def test_the_cheapest_plan_comes_first_and_does_what_it_says():
    given = dstudy.Parts(0.0, 0.05, 1.0, 0.5, 4.0, True)
    plans = dstudy.cheapest(given, 0.15, 8)
    assert [plan.requests for plan in plans] == sorted(plan.requests for plan in plans)
    assert all(plan.width <= 0.3 for plan in plans)
    best = plans[0]
    assert dstudy.forecast(given, best.statements // 2, 8, best.each, best.samples) > 0.3


def test_too_few_wordings_are_said():
    given = dstudy.Parts(0.0, 1.0, 1.0, 1.0, 4.0, True)
    assert dstudy.cheapest(given, 0.05, 4, most=10_000) == []
    needed = dstudy.wordings_for(given, 0.1)
    assert needed > 8
    # What a pilot of eight wordings says of the number is itself uncertain.
    low, high = dstudy.wordings_between(dataclasses.replace(given, wordings=8), 0.1)
    assert low < needed < high
    told = dstudy.told(dataclasses.replace(given, wordings=8), 0.1, 8)
    assert f"take {needed} wordings (95 % interval: {low} to {high})" in told[0]


def test_a_plan_is_told_a_cheaper_one_that_its_statements_allow():
    for count in ("all", "2"):
        asked = plan(items()[:20], PACK, ["agreement"], 0, vary=panel.Vary(count))
        for line in dstudy.of_plan(asked)[1:]:
            assert int(line.split(": ")[2].split()[0]) <= 20
    samples = plan(items()[:20], PACK, ["agreement"], 0, 5, vary=panel.Vary("all"))
    assert "as much for" in dstudy.of_plan(samples)[1]


# --- ranking


def models(rng, logits, statements=200, words=12, apart=0.3):
    logit = (
        np.asarray(logits)[:, None, None]
        + rng.standard_normal((1, statements, 1))
        + rng.standard_normal((1, 1, words))
        + apart * rng.standard_normal((len(logits), 1, words))
    )
    return rng.binomial(1, special.expit(logit)), np.ones(logit.shape)


def test_equal_models_have_no_ranking_and_ties_are_found():
    rng = np.random.default_rng(5)
    none = [ranking.ranking(["a", "b", "c"], *models(rng, [0] * 3, 40)).groups for _ in range(8)]
    assert none.count(None) >= 7
    hits, sizes = models(rng, [1.8, 0.0, 0.0, -1.8], 60, words=40)
    found = ranking.ranking(["a", "b", "c", "d"], hits, sizes)
    assert [sorted(group) for group in found.groups] == [["a"], ["b", "c"], ["d"]]
    # Twelve wordings cannot rule out that others like them are of another kind.
    assert ranking.ranking(["a", "b", "c", "d"], hits[..., :12], sizes[..., :12]).groups is None


def test_a_wording_that_turns_the_order_round_leaves_no_ranking():
    hits = np.zeros((2, 100, 2))
    hits[0, :, 0] = hits[1, :, 1] = 1
    hits[0, :5, 1] = 1
    found = ranking.ranking(["a", "b"], hits, np.ones_like(hits))
    assert found.groups is None
    assert "no ranking" in found.told()
    assert found.json()["ranking"] is None
    one = ranking.ranking(["a", "b"], hits[:, :, :1], np.ones((2, 100, 1)))
    assert one.groups == (("a",), ("b",))
    assert "in the wordings asked" in one.told()


def test_the_chances_of_ranks_add_up():
    found = ranking.ranking(["a", "b", "c"], *models(np.random.default_rng(6), [0, 1, 1]))
    for chances in found.chances.values():
        assert sum(chances) == pytest.approx(1)
    assert np.sum(list(found.chances.values()), 0) == pytest.approx(1)
    assert found.chances["a"][2] > 0.95


# --- flips


def asked(rng, chance, drawn=True):
    says = rng.random((len(chance), 2)) < (chance[:, None] if drawn else chance[:, None] > 0.5)
    frame = outcomes(says)
    frame["sample"] = frame["wording"].str[1:].astype(int)
    return frame.drop(columns="wording").assign(response=frame["says"].astype(str))


@pytest.mark.parametrize("drawn", [True, False])
@pytest.mark.slow
def test_flips_are_found_where_the_averages_are_equal_and_only_there(drawn):
    rng = np.random.default_rng(7)
    found = alarms = 0
    for _ in range(40):
        chance = rng.beta(0.15, 0.15, 300)
        new = chance.copy()
        halves = np.flatnonzero(chance > 0.5), np.flatnonzero(chance <= 0.5)
        turn = np.concatenate([rng.choice(half, 15, False) for half in halves])
        new[turn] = 1 - new[turn]
        old = asked(rng, chance, drawn)
        found += flips.flips(old, asked(rng, new, drawn), "endorsed").p < 0.05
        alarms += flips.flips(old, asked(rng, chance, drawn), "endorsed").p < 0.05
    assert found >= 38
    assert alarms <= 5


def test_flips_are_counted_by_their_direction():
    old = outcomes(np.array([[1], [1], [1], [0], [0]]))
    new = outcomes(np.array([[1], [0], [0], [1], [0]]))
    one = flips.flips(old, new, "endorsed")
    assert (one.up, one.down, one.n, one.share) == (1, 2, 5, 0.6)
    assert [row["statement"] for row in flips.changed(old, new, "endorsed")] == ["s1", "s2", "s3"]


# --- the command line


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs of a panel that differ in their model, and one of them again."""
    from genprobe import tasks
    from genprobe.engines import Sampling

    folder = tmp_path_factory.mktemp("wordings")
    ask = tasks.Ask(
        langs=["en"], limit=8, wordings="3", sampling=Sampling(1.0), samples=2, out=folder / "a"
    )
    first = tasks.run("yesno", ask)
    import shutil

    shutil.copytree(first.folder, folder / "b")
    path = folder / "b" / "run.json"
    path.write_text(path.read_text().replace('"control"', '"other"'))
    return folder / "a", folder / "b"


def said(monkeypatch, capsys, *words):
    monkeypatch.setattr("sys.argv", ["genprobe", *map(str, words)])
    with pytest.raises(SystemExit) as done:
        main()
    return done.value.code, capsys.readouterr().out


@pytest.mark.slow
def test_compare_prints_the_ranking_and_what_it_means(runs, monkeypatch, capsys):
    code, out = said(monkeypatch, capsys, "compare", *runs, "-f", "json", "-q")
    found = json.loads(out)
    assert code == 0
    assert found["ranking"] is None
    assert found["ranking_over"] == "new statements and new wordings"
    assert found["scores"]
    code, out = said(monkeypatch, capsys, "compare", *runs, "-q")
    assert found["told"].startswith("no ranking of control, other is supported")
    assert found["finding"]["title"]["text"] in out and "agree with statements" in out


def test_a_run_of_a_panel_is_scored_over_its_wordings(runs, monkeypatch, capsys):
    _, out = said(monkeypatch, capsys, "score", runs[0], "-f", "json")
    names = [score["metric"] for score in json.loads(out)]
    assert "endorsed-over-wordings" in names


def test_a_dry_run_asks_nothing_and_says_what_it_would_cost(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    arguments = ["yesno", "--lang", "en", "--limit", "10", "--dry-run"]
    code, out = said(monkeypatch, capsys, *arguments)
    assert code == 0
    assert "30 requests" in out
    assert "fewer than 3 wordings show nothing about others" in out
    code, out = said(monkeypatch, capsys, *arguments, "--wordings", "4")
    assert "120 requests" in out
    assert "an interval over wordings of ±" in out
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_power_tells_the_cheapest_plans_of_a_panel(runs, monkeypatch, capsys):
    from genprobe.analysis import compare

    notes = []
    compare.compare(runs[0], power=25, note=notes.append)
    plans = [line for line in notes if "over wordings" in line or "no number" in line]
    assert plans
    requests = [
        int(line.split(" = ")[1].split()[0].replace(",", "")) for line in plans if " = " in line
    ]
    assert requests == sorted(requests)


def test_components_of_a_run_add_up(runs, monkeypatch, capsys):
    _, out = said(monkeypatch, capsys, "compare", runs[0], "--test", "components", "-f", "json")
    found = {score["by"]["effect"]: score["value"] for score in json.loads(out)}
    assert {"statement", "wording", "probe", "residual"} <= found.keys()
    assert sum(max(0, value) for value in found.values()) == pytest.approx(1)


def test_every_wording_that_was_asked_stands_on_the_page(runs):
    """Each question as it was put; of the two orders of answers, one."""
    from genprobe.report import sources, words

    (source,) = sources.load([runs[0]])
    run, rows, known = source.run, source.outcomes, panel.load("yesno", "en")
    ((code, texts),) = words.as_asked([source])
    pairs = set(rows[["probe", "wording"]].itertuples(index=False, name=None))
    further = {(probe, name) for probe, name in pairs if name in known.wordings}
    named = {f"{probe}, {name}" for probe, name in further}
    assert code == "en" and named and named | {*run.spec.probes} == dict(texts).keys()
    prompts = {r.messages[-1]["content"] for r in run.requests()}
    said = {s.text for s in run.statements()}
    for probe, name in further:
        ways = [known.wordings[name].wording(probe, o, run.pack, known) for o in panel.ORDERS]
        assert dict(texts)[f"{probe}, {name}"] == ways[0].ask("…")
        assert any(way.ask(text) in prompts for way in ways for text in said)


def test_the_report_and_the_figures_lead_with_the_wording(runs, tmp_path):
    from genprobe.report import build, figures

    page = build([runs[0]], tmp_path / "page.html").read_text("utf-8")
    assert "Effect of the wording" in page
    assert "Over wordings, by language" in page
    assert "What an answer depends on" in page
    found = {figure.name: figure for figure in figures.found([runs[0]])}
    shown = {score.by["wording"] for score in found["wordings-by-model"].scores}
    assert {"published", "over wordings"} <= shown
    assert {"wording", "residual"} <= {s.by["effect"] for s in found["components-by-model"].scores}


@pytest.mark.parametrize(
    ("command", "measure", "column", "values", "apart"),
    [
        ("stories", "negative-stories", "sentiment", ("negative", "positive"), ""),
        ("essays", "argues-for", "side", ("for", "against"), "probe"),
        ("choices", "accuracy", "chosen", (0, 1), "condition"),
    ],
)
def test_stories_essays_and_choices_have_figures_of_their_wordings(
    command, measure, column, values, apart
):
    from genprobe.report.figures import _data
    from genprobe.report.figures import wordings as drawn

    rng = np.random.default_rng(7)
    table = outcomes(rng.random((30, 4)) < [0.2, 0.3, 0.6, 0.8])
    table[column] = np.where(table.pop("says"), *values)
    if command == "essays":
        table["refused"] = False
    frames = ["one", "two"] if apart else ["agreement"]
    table = pd.concat([table.assign(**{apart or "probe": name}) for name in frames])
    if command == "choices":
        table = table.assign(label=0, item=table["statement"], group=table["statement"])
    table = table.drop(columns=["answer", "measures", "when"]).reset_index(drop=True)
    if command == "essays":  # a frame that has one wording is not drawn
        alone = table[(table["wording"] == "w0") & (table["probe"] == "one")]
        table = pd.concat([table, alone.assign(probe="bare")], ignore_index=True)

    class Series(_data.Series):
        def sign(self, metric):
            return metric

    data = _data.Data({command: [Series("m", (), table)]}, print)
    dots, parts = drawn.figures(data)
    assert (dots.name, parts.name) == (
        f"{command}-wordings-by-model",
        f"{command}-components-by-model",
    )
    assert {s.by.get(apart) for s in dots.scores} == (set(frames) if apart else {None})
    whole = [s for s in dots.scores if s.by["wording"] == drawn.OVER]
    each = [s for s in dots.scores if s.by["wording"] != drawn.OVER]
    assert (len(whole), len(each)) == (len(frames), 4 * len(frames))
    assert all(s.low < s.value < s.high for s in whole)
    assert whole[0].value == pytest.approx(np.mean([s.value for s in each[:4]]))
    assert {s.by["of"] for s in parts.scores} == {measure}
    assert {"statement", "wording"} <= {s.by["effect"] for s in parts.scores}
    plots = [figure.plot() for figure in (dots, parts)]
    assert [len(plot.axes) >= len(frames) for plot in plots] == [True, True]


def test_samples_and_runs_of_one_model_are_held_together(runs, monkeypatch, capsys):
    def found(*folders):
        _, out = said(monkeypatch, capsys, "compare", *folders, "--test", "retest", "-f", "json")
        return {score["metric"]: score for score in json.loads(out)}

    both = found(*runs)  # the same replies under two names
    assert both["reliability"]["value"] == pytest.approx(1)
    alone = found(runs[0])  # its two samples
    # A pair is one answer of each run. Of two clear samples, half of the pairs are the same reply;
    # of one, all; items with one clear sample do not count where samples are compared.
    one, all_ = alone["same-answers"], both["same-answers"]
    by_hand = one["n"] * (1 + one["value"]) / 2 + all_["n"] - one["n"]
    assert all_["value"] == pytest.approx(by_hand / all_["n"])
    assert alone["reliability"]["by"]["times"] == 2
    assert alone["reliability"]["value"] < 1
    assert 0 < alone["same-answers"]["value"] < 1
    # Every statement is an item, and no original with its contrasts.
    assert alone["reliability"]["n"] > 8


# --- planted effects


@pytest.mark.slow
def test_planted_wording_effects_are_recovered_and_a_wrong_truth_is_not():
    from oracle import panel

    found = panel.worded(1)
    assert found.wrong == []
    true = [share for _, share, _ in found.shares.values()]
    assert max(true) - min(true) > 0.3
    assert len(found.shares) == 8
    assert found.component[0] == pytest.approx(found.component[1], rel=0.4)

    def wrong(*arguments):
        for row in panel.replies(*arguments):
            off = -0.2 if row["wording"] == "direct" else 0.0
            yield {**row, "true": row["true"] + off * row["true"] / 0.5}

    assert "direct" in panel.worded(1, wrong).wrong


def test_a_file_with_wordings_is_scored_over_them(tmp_path):
    from genprobe.outcomes import table

    rows = [
        {"item": f"s{i}", "lang": "en", "probe": "agreement", "wording": f"w{w}",
         "answer": "yes" if (i + w) % 4 == 0 else "no"}
        for i in range(20) for w in range(4)
    ]  # fmt: skip
    (score,) = metrics.score(table.from_rows(rows), ["endorsed-over-wordings"], [], str)
    assert score.value == pytest.approx(0.25)
    assert score.n == 80
    assert score.low < 0.25 < score.high


def test_figures_over_wordings_are_the_same_part_by_part(monkeypatch):
    """Parts lack wordings, a cell has too few, and more rows than are counted at once are no fault."""
    from genprobe.outcomes import table

    def wording(lang, i, w):  # German: two wordings, and replies to one that has no name
        return (f"w{w}" if (i // 3) % 2 or w < 2 else None) if lang == "en" else f"w{w % 2}"

    rows = [
        {"item": f"s{i}", "lang": lang, "probe": "agreement", "wording": wording(lang, i, w),
         "sample": w, "answer": "yes" if (i * w) % 4 == 1 else "ambiguous" if i % 7 == w else "no"}
        for lang in ("en", "de") for i in range(30) for w in range(6)
    ]  # fmt: skip
    outcomes = table.from_rows(rows)
    names = [one.name for one in wordings.METRICS if one.name.startswith("endorsed-")]
    for by in (["lang"], []):
        want = metrics.score(outcomes, names, by, str)
        with monkeypatch.context() as patch:
            patch.setattr(table, "AT_ONCE", 20)
            patch.setattr(metrics, "MOST", 10)
            assert len(table.chunks(outcomes)) > 10
            for parts in (
                outcomes,
                outcomes.assign(wording=outcomes["wording"].astype("category")),
            ):
                found = metrics.score(parts, names, by, str)
                assert [dataclasses.replace(s, value=0.0, low=0.0, high=0.0) for s in found] == [
                    dataclasses.replace(s, value=0.0, low=0.0, high=0.0) for s in want
                ]
                for one, other in zip(found, want, strict=True):
                    said = [(s.value, s.low, s.high) for s in (one, other)]
                    assert said[0] == said[1] or said[0] == pytest.approx(said[1], nan_ok=True)
    few = {
        s.metric: s.excluded.get("few-wordings")
        for s in metrics.score(outcomes, names, ["lang"], str)
        if s.by["lang"] == "de"
    }
    assert few["endorsed-next-wording"] and not few["endorsed-these-wordings"]


def test_what_needs_all_rows_at_once_says_how_many_it_takes(monkeypatch):
    from genprobe.outcomes import table

    rows = [
        {"item": f"s{i}", "lang": "en", "probe": "agreement", "sample": w, "answer": "yes",
         "llm_answer": "yes", "decode": "free", "wording": f"w{w}"}
        for i in range(9) for w in range(2)
    ]  # fmt: skip
    outcomes = table.from_rows(rows)
    every = [one for one in metrics.catalogue().values() if one.fits(outcomes)]
    monkeypatch.setattr(metrics, "MOST", 10)
    monkeypatch.setattr(table, "AT_ONCE", 10)
    for one in every:
        if one.additive:
            metrics.score(outcomes, [one.name], [], str)
        else:
            with pytest.raises(InputError, match="at once, and so at most 10; here are 18"):
                metrics.score(outcomes, [one.name], [], str)
    assert {one.additive for one in every} == {True, False}
