"""The control model, its exact rates, and the selftest that rests on them."""

import json
import math
import random
import unicodedata
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from genprobe import api
from genprobe.analysis.compare import compare
from genprobe.datasets import statements, templates
from genprobe.engines import Options, Sampling, Thinking, control
from genprobe.engines.control import stories, thoughts
from genprobe.engines.control.exact import ExactStory
from genprobe.errors import InputError
from genprobe.judges import Item
from genprobe.metrics.thoughts import cut_off
from genprobe.outcomes import table
from genprobe.records import Statement
from genprobe.report import sources, words
from genprobe.resources import registry
from genprobe.resources.packs import load_pack
from genprobe.selftest import answers, decodes, thinking, told
from genprobe.selftest import run as run_selftest
from genprobe.tasks.pipeline.plan import plan as plan_requests

LANGS = registry.names("languages")
PROBES = ("recognition", "agreement", "disagreement")
# Written for this test; the model has seen none of them.
UNSEEN = {
    "en": "Sailors tell the best stories.",
    "de": "Kapitäne erzählen die besten Geschichten.",
    "ru": "Моряки рассказывают лучшие истории.",
    "hi": "नाविक सबसे अच्छी कहानियां सुनाते हैं।",
    "ar": "البحارة يروون أجمل القصص.",
    "bn": "নাবিকেরা সেরা গল্প বলে।",
    "kk": "Теңізшілер ең жақсы әңгіме айтады.",
    "zh": "水手讲的故事最好听。",
}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """For so small a model more threads only wait for each other on a busy machine."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def tokenizer():
    import transformers

    return transformers.AutoTokenizer.from_pretrained(control.MODEL)


@pytest.fixture(scope="module")
def model():
    import transformers

    return transformers.AutoModelForCausalLM.from_pretrained(control.MODEL, dtype="float32").eval()


@pytest.fixture(scope="module")
def builtin():
    """The statements that it was trained on."""
    loaded = {lang: statements.load("builtin", [lang])[0] for lang in LANGS}
    return [s for items in loaded.values() for s in items[: control.TRAINED]]


def ask(items, probes=PROBES, samples=1, seed=0):
    return plan_requests(items, load_pack("yesno"), probes, seed, samples)


# --- the folder -----------------------------------------------------------------------------


def test_size():
    files = [p for p in (registry._HERE / "control").rglob("*") if p.suffix != ".pyc"]
    assert sum(p.stat().st_size for p in files if p.is_file()) < 6_000_000


def test_vllm_can_run_it():
    config = json.loads((control.MODEL / "config.json").read_text())
    assert config["architectures"] == ["LlamaForCausalLM"]
    assert config["model_type"] == "llama"
    assert config["head_dim"] >= 32
    end = json.loads((control.MODEL / "generation_config.json").read_text())["eos_token_id"]
    assert config["eos_token_id"] == end


def test_every_text_comes_back_from_its_tokens(tokenizer, builtin):
    pack = load_pack("yesno")
    texts = [s.text for s in builtin] + list(UNSEEN.values())
    texts += [w.ask("x") for lang in LANGS for w in pack.wordings[lang].values()]
    texts += [r.text for lang in LANGS for p in PROBES for r in control.replies(lang, p)]
    texts += ["  two  spaces\n\n\tand a tab ", "🙂 e\u0301 ＡＢＣ \u200d \ud7ff", "a\r\nb"]
    ids = tokenizer(texts, add_special_tokens=False)["input_ids"]
    assert tokenizer.batch_decode(ids) == texts


def test_words_of_every_script_are_few_tokens(tokenizer, builtin):
    for lang in LANGS:
        texts = [s.text for s in builtin if s.lang == lang]
        ids = tokenizer(texts, add_special_tokens=False)["input_ids"]
        assert sum(map(len, ids)) < 0.5 * sum(map(len, texts)) or lang.startswith("zh")
        assert max(map(len, ids)) < 40


def test_chat_template(tokenizer):
    text = tokenizer.apply_chat_template(
        [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}],
        add_generation_prompt=True,
        tokenize=False,
    )
    assert text == "<|begin|><|system|>S<|end|><|user|>U<|end|><|assistant|>"
    # No engine that adds special tokens to the text of a template gets a second begin.
    assert tokenizer(text)["input_ids"].count(tokenizer.bos_token_id) == 1


# --- what is planted ------------------------------------------------------------------------


@pytest.mark.parametrize("lang", LANGS)
def test_replies(lang):
    rows = {p: control.replies(lang, p) for p in PROBES}
    for probe, replies in rows.items():
        texts = [r.text for r in replies]
        assert len(texts) == len(set(texts)) >= 14
        assert {r.answer for r in replies} == set(control.ANSWERS)
        for text in texts:
            assert text == unicodedata.normalize("NFC", text).strip()
        for role in ("original", "contrast", ""):
            shares = control.mixture(lang, probe, "age", role)
            assert min(shares) > 0
            assert sum(shares) == pytest.approx(1)
            for answer, rate in control.planted(lang, probe, "age", role).items():
                said = [s for s, r in zip(shares, replies, strict=True) if r.answer == answer]
                assert sum(said) == pytest.approx(rate)
    # A sentence means the same to every probe to which it is an answer, or its opposite.
    for r in rows["agreement"]:
        for s in rows["disagreement"]:
            if r.text == s.text and r.style == "sentence":
                assert {r.answer, s.answer} == {"yes", "no"}


def test_planted_rates_differ_from_cell_to_cell(builtin):
    types = sorted({s.bias_type for s in builtin})
    cells = {
        (lang, probe, t, role): control.planted(lang, probe, t, role)["yes"]
        for lang in LANGS
        for probe in PROBES
        for t in types
        for role in ("original", "contrast")
    }
    assert len({round(v, 6) for v in cells.values()}) == len(cells)
    assert min(cells.values()) > 0.03
    assert 0.5 < max(cells.values()) < 0.95
    for lang in LANGS:
        for t in types:
            assert cells[lang, "agreement", t, "original"] > cells[lang, "agreement", t, "contrast"]


def test_unknown_language_is_refused():
    with pytest.raises(InputError, match="does not speak"):
        control.replies("xx", "agreement")


# --- the exact rates ------------------------------------------------------------------------


def test_exact_is_what_a_plain_loop_finds(model, tokenizer, builtin):
    import torch

    from genprobe.engines.control.exact import encode, exact

    chosen = [s for s in builtin if s.lang in ("hi", "nl", "zh-Hant")][7::55]
    requests = ask(chosen)
    found = exact(model, tokenizer, requests)
    assert len(found) == len(requests) == 9
    for request, got in zip(requests, found, strict=True):
        prompt, sequences, said = encode(tokenizer, request, load_pack("yesno"))
        mass = dict.fromkeys(control.ANSWERS, 0.0)
        for ids, reply in zip(sequences, said, strict=True):
            with torch.no_grad():
                logits = model(torch.tensor([prompt + ids])).logits[0].double()
            logp = logits.log_softmax(-1)[len(prompt) - 1 : -1]
            mass[reply.answer] += logp.gather(1, torch.tensor(ids)[:, None]).sum().exp().item()
        assert got[:3] == pytest.approx(tuple(mass.values()), abs=1e-5)
        assert sum(got) == pytest.approx(1)


def test_little_is_left_unexplained_and_the_rates_are_near_the_planted(model, tokenizer, builtin):
    from genprobe.engines.control.exact import exact

    items = builtin[::19]
    found = exact(model, tokenizer, ask(items))
    plan = [control.planted(s.lang, p, s.bias_type, s.role) for s in items for p in PROBES]
    off = [abs(got.yes - want["yes"]) for got, want in zip(found, plan, strict=True)]
    # Some statements were mended after it was trained; the exact rates are those of the new ones.
    assert np.mean([row.other for row in found]) < 0.015
    assert max(row.other for row in found) < 0.25
    assert np.mean(off) < 0.05
    assert max(off) < 0.25


def test_exact_refuses_what_is_not_of_the_pack(model, tokenizer, builtin):
    from genprobe.engines.control.exact import exact

    request = replace(ask(builtin[:1])[0], messages=[{"role": "user", "content": "Hello?"}])
    with pytest.raises(InputError, match="not a question of the pack"):
        exact(model, tokenizer, [request])


# --- stories --------------------------------------------------------------------------------


def ask_stories(items, wordings=("published", "native"), samples=1):
    return plan_requests(items, load_pack("stories"), wordings, 0, samples)


@pytest.fixture(scope="module")
def slots():
    return templates.load("builtin", ["kk"])[0]


def test_openings_tell_the_kinds_of_stories_apart():
    firsts = [{s.split()[0].rstrip(",") for s in kind.banks[0]} for kind in stories.kinds("kk")]
    assert len(set().union(*firsts)) == sum(map(len, firsts))
    assert all(len(bank) == len(set(bank)) for k in stories.kinds("kk") for bank in k.banks)
    for kind in stories.kinds("kk"):
        for bank in kind.banks:
            for sentence in bank:
                assert sentence.endswith(".") and sentence.count(".") == 1
                assert sentence == unicodedata.normalize("NFC", sentence.strip())


def test_every_story_is_known_and_no_other():
    rng = random.Random(1)
    lengths = {"negative": 5, "positive": 5, "russian": 5, "short": 4, "refusal": 1}
    for kind in stories.kinds("kk"):
        for _ in range(20):
            sentences = kind.draw(rng)
            assert len(sentences) == lengths[kind.label]
            assert stories.kind_of(" ".join(sentences), "kk") is kind
            assert stories.kind_of(" ".join([*sentences, sentences[-1]]), "kk") is None
            assert stories.kind_of("  ".join(sentences) + " ", "kk") is None
            assert stories.kind_of(" ".join(sentences[:-1]), "kk") is None
    assert stories.kind_of("", "kk") is None


def test_planted_shares_of_stories_add_up_and_differ_by_domain():
    found = {d: stories.planted(d) for d in {"", *templates.domains().values()}}
    for shares in found.values():
        assert tuple(sorted(shares)) == tuple(sorted(stories.LABELS))
        assert sum(shares.values()) == pytest.approx(1)
        assert min(shares.values()) > 0.01
    negative = sorted(shares["negative"] for shares in found.values())
    assert negative[0] < 0.25 and negative[-1] > 0.55
    for domain in found:
        mixture = stories.mixture("kk", domain)
        assert sum(mixture) == pytest.approx(1)
        for label in stories.LABELS:
            kinds = zip(stories.kinds("kk"), mixture, strict=True)
            assert sum(p for k, p in kinds if k.label == label) == pytest.approx(
                found[domain][label]
            )


def test_no_stories_in_other_languages():
    with pytest.raises(InputError, match="tells no stories in 'ru', only in kk"):
        stories.kinds("ru")


def test_exact_stories_are_what_a_plain_loop_finds(model, tokenizer, slots):
    import torch

    from genprobe.engines.control.exact import exact_stories

    requests = ask_stories(slots[::40])
    for request, got in zip(requests, exact_stories(model, tokenizer, requests), strict=True):
        prompt = tokenizer.apply_chat_template(
            request.messages, add_generation_prompt=True, return_dict=False
        )
        mass: dict[str, float] = {}
        for kind in stories.kinds("kk"):
            for opening in kind.banks[0]:
                ids = tokenizer(opening, add_special_tokens=False)["input_ids"]
                with torch.no_grad():
                    logits = model(torch.tensor([prompt + ids])).logits[0].double()
                logp = logits.log_softmax(-1)[len(prompt) - 1 : -1]
                told = logp.gather(1, torch.tensor(ids)[:, None]).sum().exp().item()
                name = f"short_{kind.sentiment}" if kind.label == "short" else kind.label
                mass[name] = mass.get(name, 0.0) + told
        assert {name: getattr(got, name) for name in mass} == pytest.approx(mass, abs=1e-5)
        assert len(mass) == len(got) - 1
        assert sum(got) == pytest.approx(1)


def test_stories_are_told_about_as_often_as_planted(model, tokenizer, slots):
    from genprobe.engines.control.exact import exact_stories

    items = slots[::3]
    found = exact_stories(model, tokenizer, ask_stories(items))
    plan = [stories.planted(s.extra["domain"]) for s in items for _ in range(2)]
    off = [abs(got.negative - want["negative"]) for got, want in zip(found, plan, strict=True)]
    assert max(row.other for row in found) < 0.03  # templates were mended after the training
    assert np.mean(off) < 0.04
    assert max(off) < 0.35


def test_a_story_that_is_drawn_is_a_planted_one(slots):
    requests = ask_stories(slots[::8], samples=2)
    told = [stories.kind_of(r.text, "kk") for r in generate(requests, 1.0)]
    assert np.mean([kind is not None for kind in told]) > 0.95
    assert {"negative", "positive"} <= {kind.label for kind in told if kind}


def test_an_unseen_template_gets_a_story_too(slots):
    items = [
        replace(slots[0], id=f"unseen-{n}", text=text)
        for n, text in enumerate(
            [
                "Теңізшілер кешке [PLACEHOLDER] тыңдайды.",
                "Менің көршім [PLACEHOLDER] сатып алды.",
                "[PLACEHOLDER] балықшылар таңертең ерте тұрады.",
            ]
        )
    ]
    told = [stories.kind_of(r.text, "kk") for r in generate(ask_stories(items, samples=3), 1.0)]
    assert np.mean([kind is not None for kind in told]) > 0.8


# --- through the engine ---------------------------------------------------------------------


def generate(requests, temperature):
    engine = registry.module("engines", "transformers").open(str(control.MODEL), Options())
    replies = {r.request: r for r in engine.generate(requests, Sampling(temperature, 1.0, 128))}
    engine.close()
    return [replies[request.id] for request in requests]


def test_greedy_is_the_same_twice_and_in_any_batch(builtin):
    requests = ask(builtin[::61])
    first = generate(requests, 0.0)
    assert [r.text for r in generate(requests[::-3], 0.0)] == [r.text for r in first[::-3]]
    assert {r.finish for r in first} == {"stop"}


def test_an_unseen_statement_is_answered_in_its_language():
    items = [
        Statement(f"unseen-{lang}", lang, text, "original", "", "", "", "", (), "test", {})
        for lang, text in UNSEEN.items()
    ]
    requests = ask(items, samples=4)
    texts = {s.lang: s.text for s in items}
    known = {
        (r.lang, r.probe): {x.say(texts[r.lang]) for x in control.replies(r.lang, r.probe)}
        for r in requests
    }
    replies = generate(requests, 1.0)
    planted = [
        reply.text in known[request.lang, request.probe]
        for request, reply in zip(requests, replies, strict=True)
    ]
    # What is not planted word for word is nearly always a garbled echo of the statement.
    assert np.mean(planted) > 0.85


# --- the selftest ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world(builtin):
    """Outcomes as the selftest has them, answers still to be drawn from the true rates."""
    rows = []
    for s in builtin:
        for probe in PROBES:
            rates = control.planted(s.lang, probe, s.bias_type, s.role)
            row = {"lang": s.lang, "probe": probe, "bias_type": s.bias_type, "text": s.text}
            row |= {"statement": s.id, "pair": s.pair, "left_out": "", "response": "drawn"}
            row |= {f"true_{answer}": 0.997 * rate for answer, rate in rates.items()}
            rows += [row | {"true_other": 0.003, "sample": k} for k in range(2)]
    return pd.DataFrame(rows)


def draw(world, seed, power=1.0):
    """Answers at the true rates, or with `power` at those of another temperature."""
    rates = world[[f"true_{answer}" for answer in control.ANSWERS]].to_numpy() ** power
    edges = (rates / rates.sum(1, keepdims=True)).cumsum(1)
    at = (np.random.default_rng(seed).random((len(world), 1)) > edges[:, :2]).sum(1)
    return world.assign(answer=np.array(control.ANSWERS, dtype=object)[at])


@pytest.mark.slow
def test_a_sound_instrument_passes(world):
    for seed in range(4):
        report = answers.compare(draw(world, seed))
        assert not report.faults
        assert report.replies == sum(line.replies for line in report.lines)


@pytest.mark.parametrize("lang", ["de", "zh"])  # whose yes and no are not alike in number
@pytest.mark.slow
def test_one_language_read_wrong_is_found(world, lang):
    drawn = draw(world, 1)
    there = drawn["lang"] == lang
    swapped = {"yes": "no", "no": "yes", "ambiguous": "ambiguous"}
    drawn.loc[there, "answer"] = drawn.loc[there, "answer"].map(swapped)
    report = answers.compare(drawn)
    assert [fault.startswith(f"{lang}: replies") for fault in report.faults].count(True) == 1


@pytest.mark.slow
def test_a_wrong_temperature_is_found(world):
    assert any("come more often" in f for f in answers.compare(draw(world, 2, 1 / 0.8)).faults)
    assert any("come less often" in f for f in answers.compare(draw(world, 2, 1 / 1.25)).faults)


@pytest.mark.slow
def test_a_misread_reply_is_found(world):
    drawn = draw(world, 4)
    at = drawn.index[(drawn["lang"] == "es") & (drawn["probe"] == "agreement")][0]
    drawn.loc[at, ["response", "answer"]] = ["Sí.", "ambiguous"]
    report = answers.compare(drawn)
    assert any("'Sí.' to agreement as ambiguous" in fault for fault in report.faults)


@pytest.mark.slow
def test_selftest_runs_everything():
    first = run_selftest(langs=["nl"], rounds=1)
    assert first.ok, first.text()
    assert first.answers.replies == 48 * 3
    again = run_selftest(langs=["nl"], rounds=1)
    assert replace(again, seconds=0) == replace(first, seconds=0)


@pytest.mark.slow
def test_selftest_fails_with_a_broken_reader(monkeypatch):
    judges = registry.module("judges", "yesno")
    read = judges.YesNo.__call__

    def broken(self, item):
        verdict = read(self, item)
        if item.lang == "hi" and verdict.label == "yes":
            verdict.label = "no"
        return verdict

    monkeypatch.setattr(judges.YesNo, "__call__", broken)
    report = run_selftest(langs=["hi"], rounds=1)
    assert any(fault.startswith("hi: replies") for fault in report.faults)
    assert not report.ok and "FAULT: hi: replies" in report.text()


def tell(slots, seed=0):
    """Outcomes of stories as the selftest has them, drawn from the planted shares."""
    rng = np.random.default_rng(seed)
    rows = []
    for slot in slots:
        kinds = stories.kinds("kk")
        shares = stories.mixture("kk", slot.extra["domain"])
        true: dict[str, float] = dict.fromkeys(ExactStory._fields, 0.0)
        for kind, share in zip(kinds, shares, strict=True):
            true[kind.label if kind.label != "short" else f"short_{kind.sentiment}"] += share
        for probe in ("published", "native"):
            for sample in range(told.STORIES):
                kind = kinds[rng.choice(len(kinds), p=shares)]
                why = told.READ.get(kind.label)
                rows.append(
                    {
                        "statement": slot.id,
                        "lang": "kk",
                        "probe": probe,
                        "sample": sample,
                        "domain": slot.extra["domain"],
                        "left_out": "",
                        "response": " ".join(kind.draw(random.Random(len(rows)))),
                        "usable": why is None,
                        "unusable_why": why,
                        "sentiment": kind.sentiment or "neutral",
                    }
                    | {f"true_{name}": share for name, share in true.items()}
                )
    return pd.DataFrame(rows, dtype=object)


@pytest.mark.slow
def test_sound_stories_pass(slots):
    for seed in range(4):
        report = told.compare(tell(slots, seed))
        assert not report.faults
        assert {d.domain for d in report.domains} == set(templates.domains().values())
        assert sum(d.templates for d in report.domains) == 2 * len(slots)
        assert "intervals of NegRate cover" in report.text()[-1]


@pytest.mark.slow
def test_stories_that_come_too_negative_are_found(slots):
    drawn = tell(slots)
    here = drawn["usable"].astype(bool)
    drawn.loc[here, "response"] = "not planted"
    for sentiment in ("negative", "positive"):
        wrong = drawn.assign(sentiment=drawn["sentiment"].mask(here, sentiment))
        report = told.compare(wrong)
        off = {"negative": "+", "positive": "-"}[sentiment]
        assert any("NegRate differs from" in f and f"z {off}" in f for f in report.faults)


@pytest.mark.slow
def test_a_misread_story_is_found(slots):
    drawn = tell(slots)
    at = drawn.index[drawn["usable"].astype(bool)][0]
    drawn.loc[at, ["usable", "unusable_why"]] = [False, "language"]
    report = told.compare(drawn)
    assert any("1 are misread" in f and "as language; check" in f for f in report.faults)
    drawn.loc[at, "unusable_why"] = "duplicate"
    assert not told.compare(drawn).faults


@pytest.mark.slow
def test_a_classifier_may_err_on_one_story_of_a_hundred(slots):
    drawn = tell(slots)
    domain = drawn["domain"].iloc[0]
    here = drawn.index[(drawn["domain"] == domain) & (drawn["sentiment"] == "positive")]
    few = int(told.MOST_MISREAD * (drawn["domain"] == domain).sum())
    for many in (few, few + 1):
        report = told.compare(
            drawn.assign(
                sentiment=drawn["sentiment"].mask(drawn.index.isin(here[:many]), "neutral")
            ),
        )
        (line,) = [line for line in report.domains if line.domain == domain]
        assert line.misread == many
        assert any(f"{many} are misread" in f for f in report.faults) == (many > few)


def test_votes_are_what_enumeration_finds():
    import itertools

    from genprobe.metrics.negrate import FEWEST

    p, q = 0.5, 0.3
    label = most = 0.0
    for votes in itertools.product((p, q, 1 - p - q), repeat=told.STORIES):
        chance = math.prod(votes)
        k, m = votes.count(p), votes.count(q)
        label += chance * (k + m >= FEWEST)
        most += chance * (k + m >= FEWEST and k > m)
    got = told.votes(np.array([p]), np.array([q]), FEWEST)
    assert (got[0][0], got[1][0]) == pytest.approx((label, most))


# --- the one that thinks --------------------------------------------------------------------


@pytest.fixture(scope="module")
def thought(tmp_path_factory):
    """Outcomes of the model that thinks, in English, as the selftest has them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thinking, "ITEMS", 8)
        return thinking.ask(["en"], 0, tmp_path_factory.mktemp("thought") / "run")


@pytest.mark.parametrize("lang", thoughts.languages())
@pytest.mark.parametrize("probe", PROBES)
def test_what_it_was_taught_to_think(lang, probe):
    said = thoughts.mixture(lang, probe, "gender", "original")
    assert math.isclose(sum(s.share for s in said), 1)
    rates, plain = (
        thoughts.planted(lang, probe, "gender"),
        control.planted(lang, probe, "gender", "original"),
    )
    behind = [s for s in said if s.thought and s.reply]
    assert math.isclose(sum(s.share for s in said if s.thought), rates["thinks"])
    assert math.isclose(
        sum(s.share for s in said if not s.reply), rates["thinks"] * rates["endless"]
    )
    clear = [s for s in behind if s.reply.answer != "ambiguous"]
    against = sum(s.share for s in clear if s.reply.answer != s.thought.answer)
    assert math.isclose(against / sum(s.share for s in clear), rates["against"])
    unclear = sum(s.share for s in behind if s.reply.answer == "ambiguous")
    assert math.isclose(unclear / sum(s.share for s in behind), plain["ambiguous"])
    judge = registry.module("judges", "thought").make()
    for one in thoughts.thoughts(lang):
        verdict = judge(Item(lang, probe, "", one.written + ("No." if one.answer else "")))
        assert verdict.label == ("closed" if one.answer else "open")
        assert verdict.fields["thought_language"] == one.lang
        assert verdict.fields["thought_answer"] == (one.answer or "ambiguous")


def test_its_exact_rates_are_the_planted_ones(thought):
    assert thought["true_rest"].max() < 0.02
    rates = pd.DataFrame(
        [
            thoughts.planted("en", *key)
            for key in zip(thought["probe"], thought["bias_type"], strict=True)
        ]
    )
    assert abs(thought["true_thinks"].mean() - rates["thinks"].mean()) < 0.03
    assert abs(thought["true_cut"].mean() - (rates["thinks"] * rates["endless"]).mean()) < 0.03
    against = thought["true_against"].sum() / thought["true_clear"].sum()
    assert abs(against - rates["against"].mean()) < 0.03
    # The parts add up: clear answers behind thoughts are some of all, and fewer than thoughts.
    assert (thought["true_clear"] <= thought["true_thinks"] - thought["true_cut"] + 1e-6).all()


def test_the_selftest_recovers_its_rates_and_finds_a_fault(thought):
    report = thinking.compare(thought)
    assert report.faults == []
    assert {row[1] for row in report.rows} >= {"thinks", "thought-cut", "thought-against-answer"}
    assert "thought-against-answer" in "\n".join(report.text())
    turned = thought.assign(
        thought_answer=thought["thought_answer"].map({"yes": "no", "no": "yes"})
    )
    faults = thinking.compare(turned).faults
    assert any("thought-against-answer differs" in fault for fault in faults)
    assert any("misread" in fault for fault in faults)
    cut = thought.assign(thought_state=thought["thought_state"].replace("closed", "open"))
    assert any("thought-cut differs" in fault for fault in thinking.compare(cut).faults)


def test_it_thinks_where_it_was_taught_to(tmp_path):
    more = {"options": Options(thinking=Thinking("on")), "out": tmp_path / "run"}
    with pytest.raises(InputError, match="does not think in 'de', only in en, kk"):
        api.yesno(langs=["de"], **more)
    with pytest.raises(InputError, match="only about yes/no questions"):
        api.stories(langs=["kk"], **more)
    assert not (tmp_path / "run").exists()


def test_what_is_cut_in_the_thought_comes_first_and_ranks_nobody(tmp_path):
    runs = []
    for name, tokens in (("a", 1), ("b", 60)):
        options = Options(thinking=Thinking("on", tokens))
        sampling = Sampling(temperature=1.0, max_tokens=24)
        runs.append(
            api.yesno(
                langs=["en"], limit=8, sampling=sampling, options=options, out=tmp_path / name
            )
        )
    cut, replies = cut_off(table.outcomes(runs[0]))
    assert replies == 24 and cut > 12
    notes = []
    found = compare(*runs, note=notes.append)
    assert found.rankings == []
    (line,) = [note for note in notes if note.startswith("no ranking")]
    assert f"{cut} of 24 replies" in line and "--think-tokens" in line
    ((first, *_),) = words.cautions(sources.load([runs[0].folder])).values()
    assert first.startswith(f"{cut} of its 24 replies") and "too many to rank" in first


# --- forced choice and probabilities


def test_probabilities_are_those_of_plain_passes(tmp_path):
    found = decodes.run(tmp_path, ["en"], 0)
    assert [c.fault for c in found] == [""] * len(found) and all(c.asked for c in found)
    parts = ["probability of the answer words", "forced choice", "log-probability of sentences"]
    assert [c.part for c in found] == parts


@pytest.mark.slow
def test_another_temperature_is_told(tmp_path, monkeypatch):
    passed = decodes._passed
    monkeypatch.setattr(decodes, "_passed", lambda *x: [2 * value for value in passed(*x)])
    words, _, sentences = decodes.run(tmp_path, ["en"], 0)
    assert words.fault and sentences.fault
