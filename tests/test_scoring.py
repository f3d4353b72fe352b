"""What scorers say against a plain loop: one text, one token, the whole model at a time."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from genprobe import api
from genprobe.datasets import statements
from genprobe.engines import Options, Sampling, scoring
from genprobe.engines.scoring import _net, causal, masked
from genprobe.errors import EngineError
from genprobe.records import Failure, LogProb, Request
from genprobe.tasks.pipeline.generate import LASTING

SAMPLING = Sampling()
STATEMENTS, _ = statements.load("builtin")
TEXTS = [s.text for s in STATEMENTS]
SIZE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
SIZE |= {"intermediate_size": 64}
WORDS = 2500


def request(text: str, probe: str, context: str = "") -> Request:
    return choice([text], probe, context, keys=["text"])


def choice(options: list[str], probe: str, context: str, keys: list[str] | None = None) -> Request:
    keys = keys or [str(n) for n in range(len(options))]
    messages = [{"role": "context", "content": context}] if context else []
    name = f"{probe}|{context}|{options}"
    found = {key: [option] for key, option in zip(keys, options, strict=True)}
    return Request(name, "s", "en", "text/1", probe, messages, 0, 0, "score", found)


def sample(each: int, seed: int = 0) -> list[str]:
    """So many built-in statements of each of the 18 languages."""
    rng = random.Random(seed)
    langs = sorted({s.lang for s in STATEMENTS})
    assert len(langs) == 18
    found = [rng.sample([s.text for s in STATEMENTS if s.lang == lang], each) for lang in langs]
    return [text for texts in found for text in texts]


# --- tokenizers of real kind ----------------------------------------------------------------


def byte_bpe(**special: str) -> Any:
    """As GPT-2's, Llama 3's and Qwen's: no space before the first word."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=WORDS,
        special_tokens=list(dict.fromkeys(special.values())),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(TEXTS, trainer)
    return raw


def wrap(raw: Tokenizer, template: str = "", **special: str) -> Any:
    """A tokenizer of transformers, which puts the special tokens of `template` around a text."""
    if template:
        ids = [(token, raw.token_to_id(token)) for token in set(template.split()) - {"$A"}]
        raw.post_processor = processors.TemplateProcessing(single=template, special_tokens=ids)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=raw, **special)


def gpt2_words() -> Any:
    special = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}
    return wrap(byte_bpe(**special), **special)


def llama_words() -> Any:
    special = {"bos_token": "<s>", "eos_token": "</s>"}
    return wrap(byte_bpe(**special), "<s> $A", **special)


def qwen_words() -> Any:
    special = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    return wrap(byte_bpe(**special), **special)


def roberta_words() -> Any:
    special = {
        "bos_token": "<s>",
        "pad_token": "<pad>",
        "eos_token": "</s>",
        "mask_token": "<mask>",
    }
    return wrap(byte_bpe(**special), "<s> $A </s>", cls_token="<s>", sep_token="</s>", **special)


def word_pieces() -> Any:
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]"}
    special |= {"sep_token": "[SEP]", "mask_token": "[MASK]"}
    raw = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    raw.normalizer = normalizers.BertNormalizer(lowercase=True)
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=WORDS, special_tokens=list(special.values()), show_progress=False
    )
    raw.train_from_iterator(TEXTS, trainer)
    return wrap(raw, "[CLS] $A [SEP]", **special)


def unigram(template: str, **special: str) -> Any:
    raw = Tokenizer(models.Unigram())
    raw.normalizer = normalizers.NFKC()
    raw.pre_tokenizer = pre_tokenizers.Metaspace()
    raw.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=WORDS,
        special_tokens=list(dict.fromkeys(special.values())),
        unk_token="<unk>",
        show_progress=False,
    )
    raw.train_from_iterator(TEXTS, trainer)
    return wrap(raw, template, **special)


def xlmr_words() -> Any:
    special = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    special |= {"mask_token": "<mask>"}
    more = {"cls_token": "<s>", "sep_token": "</s>"}
    return unigram("<s> $A </s>", **special, **more)


def t5_words() -> Any:
    return unigram("$A </s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>")


# --- models ---------------------------------------------------------------------------------

_T5 = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
KINDS: dict[str, tuple[Callable[[], Any], type, type, dict[str, Any]]] = {
    "gpt2": (
        gpt2_words,
        transformers.GPT2LMHeadModel,
        transformers.GPT2Config,
        {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128},
    ),
    "llama": (llama_words, transformers.LlamaForCausalLM, transformers.LlamaConfig, SIZE),
    "qwen2": (
        qwen_words,
        transformers.Qwen2ForCausalLM,
        transformers.Qwen2Config,
        {**SIZE, "num_key_value_heads": 2, "tie_word_embeddings": True},
    ),
    "bert": (word_pieces, transformers.BertForMaskedLM, transformers.BertConfig, SIZE),
    "roberta": (
        roberta_words,
        transformers.RobertaForMaskedLM,
        transformers.RobertaConfig,
        {**SIZE, "pad_token_id": 1, "max_position_embeddings": 130},
    ),
    "xlmr": (
        xlmr_words,
        transformers.XLMRobertaForMaskedLM,
        transformers.XLMRobertaConfig,
        {**SIZE, "pad_token_id": 1, "max_position_embeddings": 514},
    ),
    "t5": (
        t5_words,
        transformers.T5ForConditionalGeneration,
        transformers.T5Config,
        {**_T5, "decoder_start_token_id": 0, "pad_token_id": 0},
    ),
}


def make(kind: str, folder: Path, **more: Any) -> str:
    """A random model, far from uniform, so that every token it sees changes its values."""
    words, net, config, size = KINDS[kind]
    tokenizer = words()
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    found = net(config(vocab_size=len(tokenizer), **{**size, **more}))
    with torch.no_grad():
        for name, weight in found.named_parameters():
            if weight.ndim == 2:
                weight.normal_(0, 0.3 if "embed" in name or "wte" in name else 0.2)
    found.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Models as small as these lose more by waiting for a second thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    made: dict[str, str] = {}

    def one(kind: str) -> str:
        if kind not in made:
            made[kind] = make(kind, tmp_path_factory.mktemp(kind))
        return made[kind]

    return one


@pytest.fixture(scope="module")
def scorer(model):
    opened: dict[str, Any] = {}

    def one(kind: str) -> Any:
        if kind not in opened:
            opened[kind] = scoring.open(model(kind), Options(device="cpu"))
        return opened[kind]

    return one


def ask(scorer: Any, requests: list[Request]) -> dict[str, Any]:
    records = list(scorer.generate(requests, SAMPLING))
    assert len(records) == len(requests) == len({r.request for r in records})
    return {r.request: r for r in records}


# --- the plain loop -------------------------------------------------------------------------


def plain(folder: str, record: LogProb, probe: str, context: str = "") -> list[list[float]]:
    """The values of a record, from its own tokens, with the whole model and no batch."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    found = []
    for one in record.continuations:
        ids = one["tokens"]
        if probe == "causal":
            found.append(_causal(folder, tokenizer, ids, context))
        elif probe == "seq2seq":
            found.append(_seq2seq(folder, tokenizer, ids, context))
        else:
            found.append(_masked(folder, tokenizer, ids, one["text"], probe))
    return found


_NETS: dict[str, Any] = {}


def net(folder: str) -> Any:
    if folder not in _NETS:
        kind = transformers.AutoConfig.from_pretrained(folder).architectures[0]
        _NETS[folder] = getattr(transformers, kind).from_pretrained(folder).double().eval()
    return _NETS[folder]


@torch.no_grad()
def _causal(folder: str, tokenizer: Any, ids: list[int], context: str) -> list[float]:
    bos = tokenizer.bos_token_id
    row = [tokenizer.eos_token_id if bos is None else bos]
    if context:
        row += tokenizer(context, add_special_tokens=False)["input_ids"]
    found = []
    for token in ids:
        logits = net(folder)(torch.tensor([row])).logits[0, -1]
        found.append(float(logits.log_softmax(-1)[token]))
        row.append(token)
    return found


@torch.no_grad()
def _masked(folder: str, tokenizer: Any, ids: list[int], text: str, probe: str) -> list[float]:
    encoded = tokenizer(text)
    row, words = encoded["input_ids"], encoded.word_ids()
    assert row[1:-1] == ids
    found = []
    for at in range(1, len(row) - 1):
        hidden = list(row)
        hidden[at] = tokenizer.mask_token_id
        if probe == "masked-word":
            for later in range(at + 1, len(row)):
                if words[later] == words[at]:
                    hidden[later] = tokenizer.mask_token_id
        logits = net(folder)(torch.tensor([hidden])).logits[0, at]
        found.append(float(logits.log_softmax(-1)[row[at]]))
    return found


@torch.no_grad()
def _seq2seq(folder: str, tokenizer: Any, ids: list[int], context: str) -> list[float]:
    prompt = torch.tensor([tokenizer(context)["input_ids"]])
    found = []
    for at, token in enumerate(ids):
        said = torch.tensor([[0, *ids[:at]]])
        logits = net(folder)(input_ids=prompt, decoder_input_ids=said).logits[0, -1]
        found.append(float(logits.log_softmax(-1)[token]))
    return found


def worst(record: LogProb, theirs: list[list[float]]) -> float:
    pairs = zip(record.continuations, theirs, strict=True)
    return max(abs(a - b) for one, two in pairs for a, b in zip(one["logprobs"], two, strict=True))


# --- values ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "probe"),
    [
        ("gpt2", "causal"),
        ("llama", "causal"),
        ("qwen2", "causal"),
        ("bert", "masked"),
        ("bert", "masked-word"),
        ("roberta", "masked"),
        ("roberta", "masked-word"),
        ("xlmr", "masked"),
        ("xlmr", "masked-word"),
        ("t5", "seq2seq"),
    ],
)
@pytest.mark.slow
def test_every_value_is_that_of_a_plain_loop(kind, probe, model, scorer):
    texts = sample(1)
    found = ask(scorer(kind), [request(text, probe) for text in texts])
    sizes = set()
    for text in texts:
        record = found[request(text, probe).id]
        one = record.continuations[0]
        assert one["answer"] == "text" and one["text"] == text
        assert len(one["tokens"]) == len(one["logprobs"]) > 1
        assert worst(record, plain(model(kind), record, probe)) < 1e-4
        sizes |= {round(v, 1) for v in one["logprobs"]}
    assert len(sizes) > 10  # far from uniform: what a model sees changes them


def test_which_token_stands_before_the_first(scorer):
    says = {
        "gpt2": "bos <|endoftext|>",
        "llama": "bos <s>",
        "qwen2": "eos <|im_end|>",
        "bert": "own [CLS]",
        "t5": "start <pad>",
    }
    for kind, first in says.items():
        assert scorer(kind).first == first
    (text,) = ask(scorer("qwen2"), [request("Old people.", "causal")]).values()
    assert text.sent == "<|im_end|>" and text.tokens_in == 1
    (text,) = ask(scorer("bert"), [request("Old people.", "masked")]).values()
    assert text.sent == "[CLS]…[SEP]" and text.tokens_in == 2


@pytest.mark.parametrize(
    ("kind", "probes"),
    [
        ("gpt2", ["causal"]),
        ("qwen2", ["causal"]),
        ("roberta", ["masked", "masked-word"]),
        ("bert", ["masked", "masked-word"]),
        ("t5", ["seq2seq"]),
    ],
)
def test_neither_batch_nor_order_changes_a_value(kind, probes, scorer, monkeypatch):
    requests = [request(text, probe) for text in sample(3, seed=1) for probe in probes]
    together = ask(scorer(kind), requests)
    for budget, asked in ((60, requests[::-1]), (10**6, requests[5:])):
        monkeypatch.setattr(scorer(kind), "budget", budget)
        for name, record in ask(scorer(kind), asked).items():
            values = [c["logprobs"] for c in together[name].continuations]
            assert worst(record, values) < 1e-5
    (alone,) = scorer(kind).generate(requests[7:8], SAMPLING)
    values = [c["logprobs"] for c in together[alone.request].continuations]
    assert worst(alone, values) < 1e-5
    # Nor how many positions are given to the output layer, and made probabilities, at a time.
    monkeypatch.setattr(scorer(kind).net, "rows", 7)
    monkeypatch.setattr(scorer(kind).net, "piece", 3)
    for name, record in ask(scorer(kind), requests[:9]).items():
        assert worst(record, [c["logprobs"] for c in together[name].continuations]) < 1e-5


def test_batches_hold_what_fits():
    lengths = [3, 5, 5, 2, 5, 3]
    assert list(_net.batches(lengths, 10)) == [[1, 2], [4, 0], [5, 3]]
    assert list(_net.batches(lengths, 10, pads=False)) == [[1, 2], [4], [0, 5], [3]]
    assert list(_net.batches(lengths, 1)) == [[1], [2], [4], [0], [5], [3]]


def test_texts_that_begin_alike_are_computed_once(scorer):
    texts = ["The old man reads.", "The old man writes.", "The old woman reads.", "A boy."]
    found = scorer("llama").texts.asked([request(t, "causal") for t in texts], ("causal",))
    ids = {(*scorer("llama").before, *one.items[0].ids): 1 for one in found}
    assert scorer("llama").shares and scorer("gpt2").shares and scorer("qwen2").shares
    (tree,) = causal.plant(ids, width=1000, share=True)
    beginnings = {row[:n] for row in ids for n in range(1, len(row))}
    assert len(tree.tokens) == len(beginnings) < sum(map(len, ids)) - len(ids)
    assert len(causal.plant(ids, width=1000, share=False)) == len(ids)
    # Where nothing is wide, attention to strangers costs more than a token.
    assert len(causal.plant(ids, width=1, share=True)) > 1


def test_the_last_layer_is_computed_where_it_is_read(scorer, tmp_path, monkeypatch):
    texts = [request(text, "masked") for text in sample(1)]
    for kind in ("bert", "roberta", "xlmr"):
        one = scorer(kind)
        pruned = ask(one, texts)
        assert isinstance(one.last, masked.Last)
        seen: list[tuple[int, ...]] = []
        one.last.layer.output.register_forward_hook(lambda *a, seen=seen: seen.append(a[2].shape))
        ask(one, texts[:1])
        assert seen and all(shape[1] == 1 for shape in seen)
        # What goes into the first layer's attention: each token, and the mask, at each place.
        before: list[int] = []
        one.once[0].linear.register_forward_hook(lambda *a, n=before: n.append(len(a[1][0])))
        (record,) = ask(one, texts[:1]).values()
        n = len(record.continuations[0]["tokens"])
        assert sum(before) == 2 * n + one.around < n * (n + one.around)
        monkeypatch.setattr(one, "last", None)
        for name, record in ask(one, texts).items():
            assert worst(record, [c["logprobs"] for c in pruned[name].continuations]) < 1e-5
    # Layers that are made otherwise are left alone.
    monkeypatch.setitem(KINDS, "distilbert", (word_pieces, *DISTILBERT))
    monkeypatch.setitem(KINDS, "rembert", (word_pieces, *REMBERT))
    for kind in ("distilbert", "rembert"):
        folder = make(kind, tmp_path / kind)
        one = scoring.open(folder, Options(device="cpu"))
        assert one.last is None and one.once == []
        for record in ask(one, texts[:3]).values():
            assert worst(record, plain(folder, record, "masked")) < 1e-4


@pytest.mark.parametrize("length", [1, 7, masked.SHORT, masked.SHORT + 1])
def test_attention_of_short_texts_is_torchs_own(length):
    rng = torch.Generator().manual_seed(length)
    query, key, value = torch.randn(3, 5, 4, length, 16, generator=rng)
    lengths = torch.tensor([length, *torch.randint(1, length + 1, (4,), generator=rng)])
    seen = (torch.arange(length) < lengths[:, None])[:, None, None]
    added = torch.zeros(5, 1, length, length).masked_fill(~seen, torch.finfo(torch.float32).min)
    module = torch.nn.Module()
    module.is_causal = False
    for mask in (None, seen, added):
        for scale in (None, 0.3):
            found, _ = masked.attention(module, query, key, value, mask, scaling=scale)
            own = torch.nn.functional.scaled_dot_product_attention(
                query, key, value, mask, scale=scale
            )
            torch.testing.assert_close(found, own.transpose(1, 2), atol=1e-5, rtol=1e-5)


DISTILBERT = (
    transformers.DistilBertForMaskedLM,
    transformers.DistilBertConfig,
    {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
)
REMBERT = (
    transformers.RemBertForMaskedLM,
    transformers.RemBertConfig,
    {**SIZE, "input_embedding_size": 16, "output_embedding_size": 24},
)
OTHERS: dict[str, tuple[type, type, dict[str, Any]]] = {
    # Positions by the distance of the columns: its rows cannot be trees.
    "bloom": (
        transformers.BloomForCausalLM,
        transformers.BloomConfig,
        {"hidden_size": 32, "n_layer": 2, "n_head": 4},
    ),
    # Sees 16 tokens back in every other layer; bends its logits.
    "gemma2": (
        transformers.Gemma2ForCausalLM,
        transformers.Gemma2Config,
        {**SIZE, "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 16},
    ),
    # Sees 16 places back in every other layer, whatever its mask says.
    "gpt-neo": (
        transformers.GPTNeoForCausalLM,
        transformers.GPTNeoConfig,
        {"hidden_size": 32, "num_layers": 2, "num_heads": 4, "window_size": 16}
        | {"attention_types": [[["global", "local"], 1]], "max_position_embeddings": 256},
    ),
    # Its output layer goes around the module that most models have.
    "opt": (
        transformers.OPTForCausalLM,
        transformers.OPTConfig,
        {"hidden_size": 32, "ffn_dim": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
        | {"word_embed_proj_dim": 32},
    ),
    # Has no attention, and reaches for the weights of its linear layers.
    "mamba": (
        transformers.MambaForCausalLM,
        transformers.MambaConfig,
        {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4},
    ),
}


@pytest.mark.parametrize("kind", list(OTHERS))
def test_models_that_are_made_otherwise(kind, tmp_path, monkeypatch):
    monkeypatch.setitem(KINDS, kind, (llama_words, *OTHERS[kind]))
    folder = make(kind, tmp_path)
    scorer = scoring.open(folder, Options(device="cpu"))
    assert scorer.shares == (kind in ("gemma2", "gpt-neo", "opt"))
    texts = [*sample(1)[:8], "The old man.", "The old boy.", "The old men and the old boys."]
    for record in ask(scorer, [request(text, "causal") for text in texts]).values():
        assert worst(record, plain(folder, record, "causal")) < 1e-4


def test_a_model_that_sees_its_padding_is_given_none(tmp_path, monkeypatch):
    convbert = (transformers.ConvBertForMaskedLM, transformers.ConvBertConfig)
    monkeypatch.setitem(KINDS, "convbert", (word_pieces, *convbert, {**SIZE, "embedding_size": 32}))
    folder = make("convbert", tmp_path)
    scorer = scoring.open(folder, Options(device="cpu"))
    assert not scorer.pads
    asked = [request(text, "masked") for text in ["The old man.", "Old people and the old boys."]]
    for record in ask(scorer, asked).values():
        assert worst(record, plain(folder, record, "masked")) < 1e-4


@pytest.mark.parametrize("kind", ["gpt2", "llama", "qwen2", "t5"])
def test_options_behind_a_context(kind, model, scorer):
    probe = "seq2seq" if kind == "t5" else "causal"
    context = "My grandmother and my boss were late. Who was late?"
    options = [" My boss", " Not known", " My grandmother"]
    asked = [choice(options, probe, context), choice(options[::-1], probe, context)]
    one, two = (ask(scorer(kind), asked)[r.id] for r in asked)
    assert [c["answer"] for c in one.continuations] == ["0", "1", "2"]
    assert worst(one, plain(model(kind), one, probe, context)) < 1e-4
    backwards = [c["logprobs"] for c in two.continuations[::-1]]
    assert worst(one, backwards) < 1e-5
    assert context in one.sent
    # The context counts.
    (other,) = ask(scorer(kind), [choice(options, probe, "It rained.")]).values()
    assert worst(other, [c["logprobs"] for c in one.continuations]) > 1e-3


def test_a_masked_text_behind_a_context(model, scorer):
    context, text = "My grandmother was late.", " She is slow."
    (record,) = ask(scorer("roberta"), [request(text, "masked", context)]).values()
    (whole,) = ask(scorer("roberta"), [request(context + text, "masked")]).values()
    (one,), (all_,) = record.continuations, whole.continuations
    assert all_["tokens"][-len(one["tokens"]) :] == one["tokens"]
    assert worst(record, [all_["logprobs"][-len(one["tokens"]) :]]) < 1e-5


def test_the_seam_of_context_and_text(scorer):
    texts, tokenizer = scorer("llama").texts, scorer("llama").texts.tokenizer
    words = lambda seam: [tokenizer.decode(ids) for ids in (seam.before, seam.ids)]  # noqa: E731
    # A token of the joined text ends at the seam: the joined tokens, cut there.
    (seam,) = texts.seams([("The people", " are old.")], False)
    assert words(seam) == ["The people", " are old."]
    assert seam.before + seam.ids == tokenizer("The people are old.")["input_ids"][1:]
    # A space at the end of the context belongs to the first token of the text.
    (seam,) = texts.seams([("The people ", "are old.")], False)
    assert words(seam) == ["The people", " are old."]
    # One lies across it: both by themselves.
    (seam,) = texts.seams([("The peo", "ple are old.")], False)
    assert words(seam) == ["The peo", "ple are old."]


def test_what_cannot_be_scored_fails_alone(scorer):
    for kind, probe in (("gpt2", "causal"), ("roberta", "masked"), ("bert", "masked")):
        good, empty = request("Old people.", probe), request("", probe)
        long = request("viel " * 1000, probe)
        found = ask(scorer(kind), [empty, good, long])
        assert isinstance(found[good.id], LogProb)
        assert isinstance(found[empty.id], Failure) and "no tokens" in found[empty.id].detail
        assert found[empty.id].kind in LASTING  # nobody is told to ask again
        assert found[long.id].kind == "too-long"


def test_masks_and_padding_in_a_masked_text_are_no_words(scorer):
    for kind, texts in (("roberta", ["Old <pad> people.", "<mask> people."]), ("bert", ["[MASK]"])):
        requests = [request(text, "masked") for text in [*texts, "Old and people."]]
        found = [*ask(scorer(kind), requests).values()]
        assert all(isinstance(one, Failure) and "own" in one.detail for one in found[:-1])
        assert isinstance(found[-1], LogProb)


def test_what_the_model_has_no_token_for_is_told(model, tmp_path):
    path = tmp_path / "mine.csv"
    rows = [
        "en,1,Old people.,Young people.",
        "en,2,Old \u16a0 people.,Young people.",
        "ru,1,Да.,Нет.",
    ]
    path.write_text("lang,pair,pro,anti\n" + "\n".join(rows) + "\n")
    for kind, told in (("bert", True), ("gpt2", False)):  # bytes have tokens all
        notes: list[str] = []
        api.logprob(model(kind), data=str(path), out=tmp_path / kind, scorers=[], note=notes.append)
        lines = [line for line in notes if "has no token for" in line]
        assert [line.rpartition(": ")[2] for line in lines] == ["en 1 of 4"] * told


def test_roberta_takes_exactly_the_positions_it_has(scorer):
    word = scorer("roberta").tokenizer(" are", add_special_tokens=False)["input_ids"]
    assert len(word) == 1 and scorer("roberta").positions == 128
    fits, long = (request(" are" * n, "masked") for n in (126, 127))
    found = ask(scorer("roberta"), [fits, long])
    assert isinstance(found[fits.id], LogProb) and found[long.id].kind == "too-long"


def test_another_decode_or_pass_is_an_error(scorer):
    with pytest.raises(EngineError, match="it scores causal"):
        ask(scorer("gpt2"), [request("Old people.", "masked")])
    free = Request(**{**vars(request("Old people.", "causal")), "decode": "free"})
    with pytest.raises(EngineError, match="'free'"):
        ask(scorer("gpt2"), [free])


def test_half_precision_is_near(model, scorer):
    half = scoring.open(model("gpt2"), Options(device="cpu", dtype="bfloat16"))
    assert half.identity.dtype == "bfloat16" and scorer("gpt2").identity.dtype == "float32"
    requests = [request(text, "causal") for text in sample(1)]
    full = ask(scorer("gpt2"), requests)
    for name, record in ask(half, requests).items():
        assert worst(record, [c["logprobs"] for c in full[name].continuations]) < 0.5


# --- what would give noise ------------------------------------------------------------------

_SMALL = {**SIZE, "vocab_size": WORDS}


@pytest.mark.parametrize(
    ("net", "config", "says"),
    [
        # FinBERT's kind: a classifier, whose words transformers would draw at random.
        (transformers.BertForSequenceClassification, transformers.BertConfig, "would be random"),
        (transformers.BertModel, transformers.BertConfig, "would be random"),
        (transformers.ElectraForPreTraining, transformers.ElectraConfig, "would be random"),
        (transformers.BertLMHeadModel, transformers.BertConfig, "sees the tokens"),
        (transformers.ViTForImageClassification, transformers.ViTConfig, "predicts no tokens"),
    ],
)
def test_models_that_would_give_noise_are_refused(net, config, says, tmp_path):
    word_pieces().save_pretrained(tmp_path)
    more = {} if config is transformers.ViTConfig else {"vocab_size": WORDS}
    net(config(**SIZE, **more)).save_pretrained(tmp_path)
    with pytest.raises(EngineError, match=says) as error:
        scoring.open(str(tmp_path), Options(device="cpu"))
    assert "\n" not in str(error.value)


def test_a_head_beside_others_is_used(tmp_path):
    tokenizer = word_pieces()
    tokenizer.save_pretrained(tmp_path)
    config = transformers.BertConfig(**{**SIZE, "vocab_size": len(tokenizer)})
    transformers.BertForPreTraining(config).save_pretrained(tmp_path)
    scorer = scoring.open(str(tmp_path), Options(device="cpu"))
    (record,) = ask(scorer, [request("Old people.", "masked")]).values()
    assert isinstance(record, LogProb)


def test_a_configuration_that_names_no_class_is_known_by_its_type(model):
    for kind, found in (("gpt2", "causal"), ("bert", "masked"), ("t5", "seq2seq")):
        config = transformers.AutoConfig.from_pretrained(model(kind))
        config.architectures = None
        assert _net.kind_of(kind, config) == found


def test_a_tokenizer_that_lacks_what_is_needed_is_refused(model, tmp_path):
    cases = {
        "bert": ("no mask token", word_pieces, "mask_token"),
        "qwen2": ("no token to put before", qwen_words, "eos_token"),
    }
    for kind, (says, words, token) in cases.items():
        folder = tmp_path / kind
        make(kind, folder)
        tokenizer = words()
        setattr(tokenizer, token, None)
        tokenizer.save_pretrained(folder)
        with pytest.raises(EngineError, match=says):
            scoring.open(str(folder), Options(device="cpu"))
    (tmp_path / "bert" / "tokenizer.json").unlink()
    with pytest.raises(EngineError, match="no tokenizer files"):
        scoring.open(str(tmp_path / "bert"), Options(device="cpu"))
    with pytest.raises(EngineError, match="no argument 'speed'"):
        scoring.open(model("bert"), Options(device="cpu", more={"speed": 1}))
