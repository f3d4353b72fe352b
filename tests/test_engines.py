"""The transformers engine on tiny models with random weights, and the replay engine."""

from __future__ import annotations

import contextlib
import dataclasses
import http.server
import json
import random
import shutil
import threading
import types
from collections import Counter
from pathlib import Path

import huggingface_hub
import pytest
import torch
import transformers
from sample import SPEC
from scipy import stats
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from genprobe import files
from genprobe.engines import Options, Sampling, _local, _vllm, replay
from genprobe.engines import transformers as engine_module
from genprobe.engines.transformers import Draw, TransformersEngine, batches, gumbel
from genprobe.errors import EngineError, GenprobeError, InputError
from genprobe.records import Failure, Request, Response, derive_seed

WORDS = [
    "is",
    "it",
    "true",
    "that",
    "people",
    "of",
    "this",
    "town",
    "are",
    "kind",
    "to",
    "the",
    "old",
]
TEMPLATE = (
    "{% for m in messages %}<s>{{ m['role'] }}: {{ m['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant:{% endif %}"
)
KINDS = ("llama", "gpt2", "qwen2", "t5")


def request(text: str, *, seed: int = 0, sample: int = 0, system: str = "") -> Request:
    messages = [{"role": "user", "content": text}]
    if system:
        messages.insert(0, {"role": "system", "content": system})
    name = f"{text}#{sample}#{seed}"
    return Request(name, "s", "en", "p@1", "agreement", messages, sample, seed)


def questions(n: int) -> list[Request]:
    """n requests of very different lengths."""
    rng = random.Random(7)
    texts = [f"{i} " + " ".join(rng.choices(WORDS, k=rng.randint(1, 30))) for i in range(n)]
    return [request(text, seed=derive_seed(0, text, 0)) for text in texts]


def tokenizer(chat: bool) -> transformers.PreTrainedTokenizerFast:
    """Byte-level BPE that puts a BOS before plain text, as Llama's does."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<pad>", "</s>", "<s>", "<end>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator([" ".join(WORDS)] * 5, trainer)
    raw.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", raw.token_to_id("<s>"))]
    )
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )
    if chat:
        fast.chat_template = TEMPLATE
    return fast


def network(kind: str) -> transformers.PreTrainedModel:
    """Random weights, drawn wide so that the greedy choice is clear of near-ties."""
    torch.manual_seed(3)
    ids = {"bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0}
    wide = {"initializer_range": 0.5, "vocab_size": 320, **ids}
    sizes = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "max_position_embeddings": 512,
    }
    if kind == "llama":
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, **wide))
    if kind == "qwen2":
        return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**sizes, **wide))
    if kind == "gpt2":
        return transformers.GPT2LMHeadModel(
            transformers.GPT2Config(n_embd=32, n_layer=2, n_head=2, n_positions=256, **wide)
        )
    return transformers.T5ForConditionalGeneration(
        transformers.T5Config(
            d_model=32, d_kv=16, d_ff=48, num_layers=2, num_heads=2, vocab_size=320,
            initializer_factor=3.0, decoder_start_token_id=0, pad_token_id=0, eos_token_id=1,
        )
    )  # fmt: skip


@pytest.fixture(scope="session")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """kind -> folder. The Llama and the Qwen2 have a chat template, the others do not."""
    folders = {}
    for kind in KINDS:
        folders[kind] = tmp_path_factory.mktemp("zoo") / kind
        network(kind).save_pretrained(folders[kind])
        tokenizer(chat=kind in ("llama", "qwen2")).save_pretrained(folders[kind])
    return folders


@pytest.fixture(scope="session")
def engines(zoo: dict[str, Path]) -> dict[str, TransformersEngine]:
    return {kind: load(folder) for kind, folder in zoo.items()}


@pytest.fixture
def copy(zoo: dict[str, Path], tmp_path: Path) -> Path:
    """A copy of the Llama to break."""
    return Path(shutil.copytree(zoo["llama"], tmp_path / "copy"))


def load(folder: Path | str, **options: object) -> TransformersEngine:
    return engine_module.open(str(folder), Options(device="cpu", **options))  # type: ignore[arg-type]


def ask(engine: object, requests: list[Request], **sampling: object) -> dict[str, Response]:
    """id -> response; each request answered once, and by a response."""
    records = list(engine.generate(requests, Sampling(**sampling)))  # type: ignore[attr-defined]
    assert Counter(r.request for r in records) == Counter(r.id for r in requests)
    assert all(isinstance(r, Response) for r in records), records
    return {r.request: r for r in records}


@contextlib.contextmanager
def one_line(error: type[GenprobeError], *needles: str):
    with pytest.raises(error) as caught:
        yield
    message = str(caught.value)
    assert "\n" not in message
    for needle in needles:
        assert needle in message


# --- greedy -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_is_what_generate_says_one_by_one(kind, engines, zoo):
    asked = questions(12)
    got = ask(engines[kind], asked, max_tokens=9)
    auto = transformers.AutoModelForSeq2SeqLM if kind == "t5" else transformers.AutoModelForCausalLM
    net = auto.from_pretrained(zoo[kind])
    tok = transformers.AutoTokenizer.from_pretrained(zoo[kind])
    for r in asked:
        if tok.chat_template:
            encoded = tok.apply_chat_template(
                r.messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
            )
        else:
            encoded = tok(r.messages[0]["content"], return_tensors="pt")
        encoded.pop("token_type_ids", None)
        out = net.generate(**encoded, max_new_tokens=9, do_sample=False)
        new = out[0, 1 if kind == "t5" else encoded["input_ids"].shape[1] :]
        assert got[r.id].text == tok.decode(new, skip_special_tokens=True)
        assert got[r.id].tokens_in == encoded["input_ids"].shape[1]
    assert len({r.text for r in got.values()}) > 6  # the models do tell prompts apart


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "sampling", [{}, {"temperature": 1.3, "top_p": 0.9}], ids=["greedy", "drawn"]
)
def test_a_reply_does_not_depend_on_its_batch(kind, sampling, engines, zoo):
    asked = questions(30)
    alone = load(zoo[kind], batch_tokens=1)
    together = ask(engines[kind], asked, max_tokens=8, **sampling)
    assert max(len(b) for b in batches(alone.prompts.rows(asked), 8, alone.budget)) == 1
    assert len(batches(alone.prompts.rows(asked), 8, engines[kind].budget)) == 1
    shuffled = random.Random(1).sample(asked, 30)
    assert ask(alone, shuffled[:12], max_tokens=8, **sampling) == {
        r.id: together[r.id] for r in shuffled[:12]
    }
    halves = [ask(engines[kind], shuffled[i::2], max_tokens=8, **sampling) for i in (0, 1)]
    assert halves[0] | halves[1] == together


def test_windows_of_a_long_run_change_nothing(engines, monkeypatch):
    asked = questions(30)
    whole = ask(engines["llama"], asked, max_tokens=4)
    monkeypatch.setattr(engine_module, "WINDOW", 7)
    assert ask(engines["llama"], asked, max_tokens=4) == whole


def test_batches_hold_all_rows_within_the_budget(engines):
    rows = engines["llama"].prompts.rows(questions(50))
    cut = batches(rows, 10, 400)
    assert sorted(r.request.id for b in cut for r in b) == sorted(r.request.id for r in rows)
    assert len(cut) > 1
    for batch in cut:
        assert len(batch) * (max(len(r.ids) for r in batch) + 10) <= 400
    assert [len(b) for b in batches(rows, 10, 1)] == [1] * 50
    assert batches([], 10, 400) == []


# --- drawn --------------------------------------------------------------------------------


def first_texts(
    engine: TransformersEngine, r: Request, temperature: float, top_p: float
) -> Counter:
    """Exact probability of each text that one drawn token can be."""
    row = engine.prompts.rows([r])[0]
    with torch.inference_mode():
        logits = engine.net(torch.tensor([row.ids])).logits[0, -1].double()
    order = (logits / temperature).softmax(-1).sort(descending=True)
    keep = int((order.values.cumsum(0) < top_p).sum()) + 1  # the fewest that hold top_p
    kept = order.values[:keep] / order.values[:keep].sum()
    shares: Counter = Counter()
    for token, share in zip(order.indices[:keep].tolist(), kept.tolist(), strict=True):
        shares[engine.tokenizer.decode([token], skip_special_tokens=True)] += share
    return shares


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (4.0, 1.0), (6.0, 0.6)])
def test_draws_follow_the_model(temperature, top_p, engines):
    """Chi-square of the first token of 4000 replies against the exact probabilities."""
    engine, n = engines["llama"], 4000
    asked = [request("is it true", seed=derive_seed(5, "x", i), sample=i) for i in range(n)]
    exact = first_texts(engine, asked[0], temperature, top_p)
    got = ask(engine, asked, temperature=temperature, top_p=top_p, max_tokens=1)
    drawn = Counter(r.text for r in got.values())
    assert drawn.keys() <= exact.keys()
    often = [text for text, share in exact.items() if share * n >= 5]
    assert len(often) >= 3
    observed = [drawn[t] for t in often] + [sum(drawn[t] for t in exact.keys() - set(often))]
    expected = [exact[t] * n for t in often] + [
        sum(exact[t] for t in exact.keys() - set(often)) * n
    ]
    cells = [(o, e) for o, e in zip(observed, expected, strict=True) if e > 0]
    statistic = sum((o - e) ** 2 / e for o, e in cells)
    assert stats.chi2.sf(statistic, len(cells) - 1) > 0.001


def test_seeds_decide_the_draw(engines):
    engine = engines["qwen2"]
    asked = [request("is it true", seed=seed, sample=seed) for seed in range(30)]
    hot = {"temperature": 3.0, "max_tokens": 6}
    first = ask(engine, asked, **hot)
    torch.manual_seed(99)
    assert ask(engine, asked, **hot) == first
    assert len({r.text for r in first.values()}) > 25
    same = [request("is it true", seed=1, sample=i) for i in range(5)]
    assert len({r.text for r in ask(engine, same, **hot).values()}) == 1


def test_engine_leaves_the_global_generator_alone(engines):
    state = torch.get_rng_state()
    ask(engines["llama"], questions(3), temperature=1.0, max_tokens=3)
    assert torch.equal(state, torch.get_rng_state())


def test_noise_is_gumbel_and_a_pure_function_of_its_state():
    states = torch.arange(400)
    noise = gumbel(states[:, None], torch.arange(500))
    assert stats.kstest(noise.flatten().numpy(), stats.gumbel_r.cdf).pvalue > 0.001
    assert torch.equal(gumbel(states[7], torch.arange(500)), noise[7])
    assert torch.equal(gumbel(states[:, None], torch.arange(20)), noise[:, :20])
    # Neither neighbouring rows nor neighbouring tokens go together.
    for a, b in ((noise[1:], noise[:-1]), (noise[:, 1:], noise[:, :-1])):
        assert abs(torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1]) < 0.01
    # SplitMix64 seeded with 0, as published: its first output.
    assert engine_module._mix(torch.tensor([engine_module._signed(0x9E3779B97F4A7C15)])).item() == (
        engine_module._signed(0xE220A8397B1DCDAF)
    )


def test_noise_of_a_token_does_not_depend_on_how_many_tokens_are_left_out():
    scores = torch.randn(3, 1000, generator=torch.Generator().manual_seed(0))
    noisy = Draw([5, 6, 7])(None, scores)
    few = scores.masked_fill(scores < scores.topk(9).values[:, -1:], float("-inf"))
    got = Draw([5, 6, 7])(None, few)
    assert torch.equal(got, noisy.masked_fill(few == float("-inf"), float("-inf")))


# --- what is sent and what comes back -----------------------------------------------------


def test_chat_template_is_used_and_recorded(engines):
    got = ask(engines["llama"], [request("is it true", system="be kind")], max_tokens=2)
    (response,) = got.values()
    assert response.sent == "<s>system: be kind</s><s>user: is it true</s><s>assistant:"
    # The template writes its own BOS; the tokenizer must not add another.
    (row,) = engines["llama"].prompts.rows([request("is it true", system="be kind")])
    assert row.ids.count(2) == 3 and response.tokens_in == len(row.ids)
    assert engines["llama"].identity.chat_template not in ("none", "")


def test_without_template_the_plain_text_is_sent(engines):
    asked = request("is it true", system="be kind")
    (response,) = ask(engines["gpt2"], [asked], max_tokens=2).values()
    assert response.sent == "be kind\nis it true"
    assert engines["gpt2"].prompts.rows([asked])[0].ids[0] == 2  # BOS by the tokenizer
    assert engines["gpt2"].identity.chat_template == "none"


def edit_template(folder: Path, template: str) -> TransformersEngine:
    (folder / "chat_template.jinja").write_text(template)
    return load(folder)


def test_system_message_joins_the_user_turn_where_there_is_no_system_role(copy):
    engine = edit_template(
        copy,
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no') }}{% endif %}" + TEMPLATE,
    )
    (response,) = ask(engine, [request("is it true", system="be kind")], max_tokens=1).values()
    assert response.sent == "<s>user: be kind\n\nis it true</s><s>assistant:"


def test_template_that_refuses_is_one_line(copy):
    with one_line(EngineError, str(copy), "chat template", "never"):
        edit_template(copy, "{{ raise_exception('never') }}")
    engine = edit_template(copy, "{% if messages[1] %}{{ raise_exception('no') }}{% endif %}hm")
    two = dataclasses.replace(request("a"), messages=request("a").messages * 2)
    with one_line(EngineError, "chat template", "no"):
        list(engine.generate([two], Sampling()))


def test_template_that_prints_the_date_prints_the_same_one_tomorrow(copy):
    engine = edit_template(
        copy,
        "{% if not date_string is defined %}{% set date_string = strftime_now('%d %b %Y') %}{% endif %}"
        "{{ date_string }}: {{ messages[0]['content'] }}",
    )
    assert engine.prompts.text(request("hm").messages) == "26 Jul 2024: hm"


def test_finish_and_token_counts(engines, copy, zoo):
    engine = engines["llama"]
    asked = questions(25)
    got = ask(engine, asked, temperature=2.0, max_tokens=60)
    assert {r.finish for r in got.values()} == {"stop", "length"}
    for r in got.values():
        assert (r.tokens_out == 60) == (r.finish == "length")
        assert not r.text.startswith(r.sent) and "</s>" not in r.text
    shorter = ask(engine, asked, temperature=2.0, max_tokens=10)
    for r in asked:  # the same draws, cut sooner
        assert got[r.id].text.startswith(shorter[r.id].text.rstrip("\ufffd"))


def test_all_end_tokens_of_the_model_stop_it(zoo, copy, engines):
    engine = engines["llama"]
    (row,) = engine.prompts.rows([request("is it true")])
    with torch.inference_mode():
        ids = torch.tensor([row.ids])
        reply = engine.net.generate(input_ids=ids, max_new_tokens=8)[0, ids.shape[1] :].tolist()
    end = reply[4]
    at = reply.index(end)
    edit_json(copy / "generation_config.json", eos_token_id=[1, end])
    (response,) = ask(load(copy), [request("is it true")], max_tokens=8).values()
    assert (response.finish, response.tokens_out) == ("stop", at)
    assert response.text == engine.tokenizer.decode(reply[:at], skip_special_tokens=True)


def edit_json(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_generation_config_of_the_model_does_not_leak(copy, engines):
    asked = questions(10)
    edit_json(
        copy / "generation_config.json",
        repetition_penalty=5.0,
        no_repeat_ngram_size=1,
        do_sample=True,
        temperature=9.0,
        top_k=2,
        top_p=0.1,
        num_beams=3,
        forced_eos_token_id=1,
        suppress_tokens=list(range(20, 200)),
        min_new_tokens=9,
        max_length=3,
    )
    for sampling in ({}, {"temperature": 2.0}):
        plain = ask(engines["llama"], asked, max_tokens=9, **sampling)
        assert ask(load(copy), asked, max_tokens=9, **sampling) == plain
    # The control: transformers itself does heed these settings.
    net = transformers.AutoModelForCausalLM.from_pretrained(copy)
    ids = torch.tensor([engines["llama"].prompts.rows(asked)[0].ids])
    out = net.generate(ids, max_new_tokens=9, do_sample=False)[0, ids.shape[1] :]
    assert engines["llama"].tokenizer.decode(out, skip_special_tokens=True) != ask(
        engines["llama"], asked, max_tokens=9
    )[asked[0].id].text  # fmt: skip


def test_tokenizer_without_pad_token(copy, engines):
    asked = questions(10)
    edit_json(copy / "tokenizer_config.json", pad_token=None)
    engine = load(copy)
    assert engine.tokenizer.pad_token_id is None
    assert ask(engine, asked, max_tokens=5) == ask(engines["llama"], asked, max_tokens=5)


# --- failures -----------------------------------------------------------------------------


def test_too_long_is_a_failure_and_the_rest_goes_on(engines):
    long, short = request("true " * 300), request("is it true")
    records = {
        r.request: r for r in engines["gpt2"].generate([long, short], Sampling(max_tokens=8))
    }
    failure = records[long.id]
    assert isinstance(failure, Failure) and failure.kind == "too-long" and "256" in failure.detail
    assert isinstance(records[short.id], Response)
    # One token fewer than the limit allows, and one more.
    n = len(engines["gpt2"].prompts.rows([short])[0].ids)
    for new, kind in ((256 - n, Response), (257 - n, Failure)):
        (record,) = engines["gpt2"].generate([short], Sampling(max_tokens=new))
        assert isinstance(record, kind)
    assert engines["t5"].positions is None


def test_prompt_that_the_model_cannot_read_is_a_failure(engines, monkeypatch):
    engine = engines["llama"]
    monkeypatch.setattr(engine.tokenizer, "chat_template", "{{ messages[0]['content'] }}")
    (record,) = engine.generate([request("")], Sampling())
    assert isinstance(record, Failure) and record.kind == "engine"
    few = types.SimpleNamespace(weight=torch.zeros(5, 1))
    monkeypatch.setattr(engine.net, "get_input_embeddings", lambda: few)
    (record,) = engine.generate([request("is it true")], Sampling())
    assert isinstance(record, Failure) and record.kind == "engine"


def test_batch_that_does_not_fit_into_memory_is_halved(zoo, monkeypatch):
    engine = load(zoo["llama"])
    asked = questions(24)
    expected = ask(engine, asked, max_tokens=5)
    sizes, generate = [], engine.net.generate

    def tight(**kwargs):
        sizes.append(len(kwargs["input_ids"]))
        if sizes[-1] > 4:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 TiB")
        return generate(**kwargs)

    monkeypatch.setattr(engine.net, "generate", tight)
    assert ask(engine, asked, max_tokens=5) == expected
    assert sizes[:4] == [24, 12, 6, 3] and sum(s <= 4 for s in sizes) == 8
    sizes.clear()
    ask(engine, asked, max_tokens=5)
    assert max(sizes) < 24  # it remembers


def test_single_request_that_does_not_fit_is_a_failure(zoo, monkeypatch):
    engine = load(zoo["llama"])

    def full(**kwargs):
        raise RuntimeError(
            "DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"
        )

    monkeypatch.setattr(engine.net, "generate", full)
    records = list(engine.generate(questions(3), Sampling()))
    assert [r.kind for r in records if isinstance(r, Failure)] == ["out-of-memory"] * 3


def test_model_that_breaks_down_is_one_line(zoo, monkeypatch):
    engine = load(zoo["llama"])

    def broken(**kwargs):
        raise RuntimeError("CUDA error: device-side assert triggered\nCompile with ...")

    monkeypatch.setattr(engine.net, "generate", broken)
    with one_line(EngineError, "device-side assert", str(zoo["llama"])):
        list(engine.generate(questions(3), Sampling()))


# --- loading ------------------------------------------------------------------------------


def test_identity(zoo, engines, copy):
    identity = engines["llama"].identity
    assert (identity.model, identity.engine, identity.dtype) == ("llama", "transformers", "float32")
    assert identity.engine_version == transformers.__version__
    assert load(copy).identity.revision == identity.revision  # where the folder lies is no matter
    weights = copy / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert load(copy).identity.revision != identity.revision
    assert load(zoo["llama"], dtype="bfloat16").identity.dtype == "bfloat16"


def test_long_weight_files_are_hashed_by_blocks(tmp_path):
    path = tmp_path / "model.safetensors"
    with path.open("wb") as file:
        file.truncate(300_000_000)  # a sparse file
    hashes = {_local.folder_hash(tmp_path)}
    for place in (0, (300_000_000 - (1 << 20)) * 30 // 63, 299_999_999):
        with path.open("r+b") as file:
            file.seek(place)
            file.write(b"x")
        hashes.add(_local.folder_hash(tmp_path))
    assert len(hashes) == 4


def test_seq2seq_pads_on_the_right_and_other_models_on_the_left(engines, monkeypatch):
    asked = [request("is"), request("is it true that people are kind")]
    for kind, column in (("t5", 0), ("gpt2", -1)):
        masks, generate = [], engines[kind].net.generate
        monkeypatch.setattr(
            engines[kind].net,
            "generate",
            lambda masks=masks, generate=generate, **k: (
                masks.append(k["attention_mask"]),
                generate(**k),
            )[1],
        )
        ask(engines[kind], asked, max_tokens=2)
        assert masks[0].shape[0] == 2 and masks[0].min() == 0
        assert masks[0][:, column].tolist() == [1, 1]


def test_nothing_is_printed_and_nothing_global_changes(zoo, capfd, recwarn):
    before = transformers.utils.logging.get_verbosity(), torch.get_num_threads()
    ask(load(zoo["gpt2"]), questions(3), temperature=0.7, max_tokens=2)
    out, err = capfd.readouterr()
    assert (out, err) == ("", "") and not recwarn.list
    assert (transformers.utils.logging.get_verbosity(), torch.get_num_threads()) == before
    assert transformers.utils.logging.is_progress_bar_enabled()


@pytest.mark.parametrize(
    ("remove", "needle"),
    [
        ("config.json", "config.json"),
        ("model.safetensors", "weights"),
        ("tokenizer.json", "tokenizer"),
    ],
)
def test_folder_that_lacks_something(remove, needle, copy):
    (copy / remove).unlink()
    with one_line(EngineError, str(copy), f"no {needle}"):
        load(copy)


@pytest.mark.parametrize(
    ("name", "content", "needle"),
    [
        ("config.json", "{", "config.json cannot be used"),
        ("config.json", '{"model_type": "nonesuch"}', "nonesuch"),
        ("tokenizer.json", "{", "tokenizer cannot be read"),
        (
            "model.safetensors",
            "version https://git-lfs.github.com/spec/v1",
            "weights cannot be loaded",
        ),
        ("chat_template.jinja", "{% if %}", "chat template"),
    ],
)
def test_folder_with_a_broken_file(name, content, needle, copy):
    (copy / name).write_text(content)
    with one_line(EngineError, str(copy), needle):
        load(copy)


def test_masked_and_headless_models_are_refused(tmp_path, zoo):
    small = {"vocab_size": 320, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1,
             "num_attention_heads": 2}  # fmt: skip
    for net in (
        transformers.BertForMaskedLM(transformers.BertConfig(**small)),
        transformers.LlamaModel(transformers.LlamaConfig(**small)),
    ):
        folder = tmp_path / type(net).__name__
        net.save_pretrained(folder)
        tokenizer(chat=False).save_pretrained(folder)
        with one_line(EngineError, type(net).__name__, "cannot write replies"):
            load(folder)


def test_missing_weights_are_not_made_up(copy):
    from safetensors.torch import load_file, save_file

    path = copy / "model.safetensors"
    tensors = load_file(path)
    del tensors["lm_head.weight"]
    save_file(tensors, path, metadata={"format": "pt"})
    with one_line(EngineError, "lm_head.weight", "missing"):
        load(copy)


def test_options_that_cannot_be_used(zoo):
    folder = str(zoo["llama"])
    with one_line(EngineError, "dtype", "float31", "bfloat16"):
        load(folder, dtype="float31")
    for device in ("toaster", "meta:x", "cuda:99"):
        with one_line(EngineError, device):
            engine_module.open(folder, Options(device=device))
    with one_line(EngineError, "revision"):
        load(folder, revision="main")


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty hub cache, and a hub that is not to be asked."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    return tmp_path


def test_hub_model_offline(cache, zoo, engines):
    with one_line(EngineError, "tests/tiny", "HF_HUB_OFFLINE"):
        load("tests/tiny")
    commit = "0123456789abcdef0123456789abcdef01234567"
    repo = cache / "models--tests--tiny"
    shutil.copytree(zoo["llama"], repo / "snapshots" / commit)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(commit)
    for revision in (None, "main", commit):
        engine = load("tests/tiny", revision=revision)
        assert (engine.identity.model, engine.identity.revision) == ("tests/tiny", commit)
    asked = questions(3)
    assert ask(engine, asked, max_tokens=3) == ask(engines["llama"], asked, max_tokens=3)


def test_name_that_is_neither_a_folder_nor_a_hub_id(cache):
    for name in ("models/deep/down", "./nowhere", "/no/such/folder", "two words"):
        with one_line(EngineError, name, "no such folder"):
            load(name)


@pytest.mark.parametrize(
    ("status", "code", "needle"),
    [
        (404, "RepoNotFound", "check the name"),
        (401, "RepoNotFound", "check the name"),
        (403, "GatedRepo", "https://huggingface.co/tests/tiny"),
        (404, "RevisionNotFound", "no revision 'v9'"),
        (400, "Whatever", "cannot be"),
    ],
)
def test_what_the_hub_may_answer(status, code, needle, cache, monkeypatch):
    class Hub(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("X-Error-Code", code)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        constants = huggingface_hub.constants
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        huggingface_hub.close_session()
        try:
            with one_line(EngineError, "tests/tiny", needle):
                load("tests/tiny", revision="v9")
        finally:
            server.shutdown()
            huggingface_hub.close_session()


# --- replay -------------------------------------------------------------------------------

ASKED = [request("is it true"), request("are people kind"), request("is it true", sample=1)]
REPLIES = ["Yes, “it” is.\n\nReally", "=No", ""]


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    files.write_rows(path, rows)
    return path


def replayed(path: Path | str, requests: list[Request] = ASKED) -> list[str | None]:
    """Texts, None for a missing one."""
    engine = replay.open(str(path), Options())
    records = list(engine.generate(requests, Sampling()))
    assert [r.request for r in records] == [r.id for r in requests]
    assert all(r.kind == "missing" for r in records if isinstance(r, Failure))
    return [r.text if isinstance(r, Response) else None for r in records]


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize(("key", "value"), [("request", "response"), ("id", "text")])
def test_replay_by_request_id(suffix, key, value, tmp_path):
    rows = [{key: r.id, value: t, "more": 1} for r, t in zip(ASKED, REPLIES, strict=True)]
    path = write(tmp_path / f"said.{suffix}", rows[::-1])
    assert replayed(path) == REPLIES
    assert replayed(path, [request("never asked"), ASKED[1]]) == [None, "=No"]


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_replay_by_prompt_gives_samples_in_order(suffix, tmp_path):
    rows = [
        {"id": 1, "prompt": "is it true", "response": "Yes"},
        {"id": 1, "prompt": "are people kind", "response": "No"},
        {"id": 2, "prompt": "is it true", "response": "Maybe"},
    ]
    asked = [*ASKED, request("is it true", sample=2), request("is it true ")]
    assert replayed(write(tmp_path / f"said.{suffix}", rows), asked) == [
        "Yes", "No", "Maybe", None, None,
    ]  # fmt: skip
    (response,) = replay.open(str(tmp_path / f"said.{suffix}"), Options()).generate(
        [request("is it true", system="be kind")], Sampling()
    )
    assert response == Response(response.request, "Yes", "recorded", "is it true", None, None)


def test_replay_by_statement_language_and_probe(tmp_path):
    asked = [request("a"), request("b"), request("c", sample=1)]
    item = {"statement": asked[0].statement, "lang": asked[0].lang, "probe": asked[0].probe}
    rows = [{**item, "lang": "English", "response": "Yes"}, {**item, "response": "No"}]
    path = write(tmp_path / "said.csv", rows)
    assert replayed(path, asked) == ["Yes", "Yes", "No"]
    other = dataclasses.replace(asked[0], probe="recognition2")
    assert replayed(path, [other]) == [None]
    # A prompt says what was asked; the three must not stand in for another.
    path = write(tmp_path / "asked.csv", [{**item, "prompt": "b", "response": "No"}])
    assert replayed(path, asked[:2]) == [None, "No"]
    for bad, says in (
        ({"lang": "xx"}, "row 2: unknown language"),
        ({"probe": None}, "to match by"),
    ):
        with one_line(InputError, says):
            replayed(write(tmp_path / "bad.csv", [{**rows[0], **bad}]))


def test_replay_of_one_model_among_several(tmp_path):
    rows = [{"prompt": "is it true", "response": f"{m} says", "model": m} for m in ("aya", "qwen")]
    path = write(tmp_path / "said.parquet", rows)
    assert replayed(f"{path}#qwen", ASKED[:1]) == ["qwen says"]
    assert replay.open(f"{path}#qwen", Options()).identity.model == "qwen"
    with one_line(InputError, "2 models (aya, qwen)", "said.parquet#aya"):
        replayed(path)
    with one_line(InputError, "'gemma'", "aya, qwen"):
        replayed(f"{path}#gemma")
    alone = write(tmp_path / "one.jsonl", rows[:1])
    assert replay.open(str(alone), Options()).identity.model == "aya"
    nameless = write(tmp_path / "none.jsonl", [{"prompt": "a", "response": "b"}])
    assert replay.open(str(nameless), Options()).identity.model == "none.jsonl"
    with one_line(InputError, "no column 'model'"):
        replayed(f"{nameless}#aya")


def test_null_is_no_reply_and_empty_text_is_one(tmp_path):
    path = tmp_path / "said.jsonl"
    write(path, [{"id": ASKED[0].id, "response": None}, {"id": ASKED[1].id, "response": ""}])
    assert replayed(path) == [None, "", None]


def test_replay_identity_changes_with_the_file(tmp_path):
    path = write(tmp_path / "said.jsonl", [{"prompt": "a", "response": "b"}])
    before = replay.open(str(path), Options()).identity
    write(path, [{"prompt": "a", "response": "c"}])
    after = replay.open(str(path), Options()).identity
    assert before.engine == "replay" and before.revision != after.revision


def test_replay_of_a_run_folder(tmp_path, engines):
    asked = [request("is it true", sample=i, seed=i) for i in range(3)] + questions(5)
    said = ask(engines["llama"], asked, max_tokens=4, temperature=2.0)
    spec = dataclasses.replace(SPEC, model="tiny", dtype="float32")
    (tmp_path / "run.json").write_text(spec.to_json())
    (tmp_path / "requests.jsonl").write_text("".join(r.to_json() + "\n" for r in asked))
    lines = [said[r.id].to_json() + "\n" for r in reversed(asked)]
    (tmp_path / "responses.jsonl").write_text("".join(lines) + '{"request": "cut o')
    engine = replay.open(str(tmp_path), Options())
    assert engine.identity.model == "tiny" and engine.identity.dtype == "float32"
    assert ask(engine, asked) == said
    # The same questions under other ids, as of a later version of the pack.
    later = [dataclasses.replace(r, id=f"new-{r.id}") for r in asked]
    assert [r.text for r in engine.generate(later, Sampling())] == [said[r.id].text for r in asked]
    (tmp_path / "responses.jsonl").write_text('{"request": "x", "texts": ""}\n' + lines[0])
    with one_line(GenprobeError, "responses.jsonl:1", "texts"):
        replay.open(str(tmp_path), Options())
    (tmp_path / "requests.jsonl").unlink()
    with one_line(InputError, "no requests.jsonl"):
        replay.open(str(tmp_path), Options())


@pytest.mark.parametrize(
    ("name", "content", "needle"),
    [
        ("a.jsonl", '{"id": "1"}\n', "'response'"),
        ("a.jsonl", '{"response": "Yes"}\n', "'prompt'"),
        ("a.jsonl", '{"id": "1", "response": "Yes"}\n{"id": "1", "response": "No"}\n', "twice"),
        ("a.jsonl", '{"id": "1", "response": 7}\n', "texts"),
        ("a.jsonl", '{"id": "1", "response": null}\n', "no replies"),
        ("a.jsonl", '{"id": "1", "resp', "line 1"),
        ("a.jsonl", "", "empty"),
        ("a.csv", "id,response\n1,Yes,No\n", "line 2"),
        ("a.csv", "id;answer\n1;Yes\n", "'response'"),
        ("a.parquet", "PAR1", "Parquet"),
        ("a.xlsx", "", "empty"),
        ("a.pdf", "", "suffix"),
    ],
)
def test_recordings_that_cannot_be_used(name, content, needle, tmp_path):
    (tmp_path / name).write_text(content)
    with one_line(InputError, name, needle):
        replay.open(str(tmp_path / name), Options())


def test_recordings_that_are_not_there(tmp_path):
    with one_line(InputError, "nowhere.jsonl", "no such file"):
        replay.open(str(tmp_path / "nowhere.jsonl"), Options())


# --- what the engines of vLLM share, without vLLM


def test_memory_is_told_from_bloom():
    assert "gpu_memory_utilization" in _vllm.memory("CUDA out of memory. Tried to allocate 2 GiB")
    assert "max_model_len" in _vllm.memory("No available memory for the cache blocks")
    assert _vllm.memory("Model architectures ['BloomForCausalLM'] are not supported: no room") == ""


def test_a_reply_that_vllm_broke_off_is_a_failure(engines):
    engine = engines["llama"]
    (row,) = engine.prompts.rows([request("is it true")])
    ids = engine.tokenizer("yes", add_special_tokens=False)["input_ids"]
    good = _vllm.said(engine.tokenizer, row, [*ids, *engine.stop_ids], "stop", engine.stop_ids)
    assert isinstance(good, Response) and (good.text, good.finish) == ("yes", "stop")
    for finish in ("abort", "error", None):
        bad = _vllm.said(engine.tokenizer, row, ids, finish, engine.stop_ids)
        assert isinstance(bad, Failure) and bad.kind == "engine"
    chosen = row._replace(
        request=dataclasses.replace(row.request, decode="choice", options={"no": ["no"]})
    )
    other = _vllm.said(engine.tokenizer, chosen, ids, "stop", engine.stop_ids)
    assert isinstance(other, Failure) and other.kind == "unconstrained"


def test_a_missing_sample_moves_no_other(tmp_path):
    """Whether it is null or not in the file, and by whatever the replies are matched."""
    of = [request("is it true", sample=n) for n in range(3)]
    ids = [{"id": one.id} for one in of]
    items = [{"statement": of[0].statement, "lang": of[0].lang, "probe": of[0].probe}] * 3
    for keys in ([{"prompt": "is it true"}] * 3, items, ids):
        said = [
            key | {"sample": n, "response": t}
            for n, (key, t) in enumerate(zip(keys, (None, "Yes", "No"), strict=True))
        ]
        path = write(tmp_path / "said.jsonl", said)
        assert replayed(path, of) == [None, "Yes", "No"]
        assert replayed(write(path, said[::-1]), of) == [None, "Yes", "No"]
        if keys is not ids:
            unnumbered = [{k: v for k, v in row.items() if k != "sample"} for row in said]
            assert replayed(write(path, unnumbered), of) == [None, "Yes", "No"]
            others = {"prompt": "are people kind", "sample": 0, "response": "Maybe"}
            assert replayed(write(path, [others, *said[1:]]), of) == [None, "Yes", "No"]
            again = said[0] | {"response": "Yes, yes"}  # asked again
            assert replayed(write(path, [*said, again]), of) == ["Yes, yes", "Yes", "No"]
            from_one = [row | {"sample": row["sample"] + 1} for row in [*said, again]]
            assert replayed(write(path, from_one), of) == ["Yes, yes", "Yes", "No"]


def test_a_missing_sample_of_a_run_moves_no_other(tmp_path):
    of = [request("is it true", sample=n) for n in range(3)]
    same = dataclasses.replace(of[0], id="s2", statement="s2")  # asked with the same prompt
    (tmp_path / "run.json").write_text(SPEC.to_json())
    for asked in (of, [*of, same]):
        (tmp_path / "requests.jsonl").write_text("".join(r.to_json() + "\n" for r in asked))
        said = [Response(r.id, r.id, "stop", "", None, None) for r in asked[1:]]
        (tmp_path / "responses.jsonl").write_text("".join(r.to_json() + "\n" for r in said))
        assert replayed(tmp_path, of) == [None, of[1].id, of[2].id]
        later = [dataclasses.replace(r, id=f"new-{r.id}") for r in of]
        if asked is of:
            assert replayed(tmp_path, later) == [None, of[1].id, of[2].id]
