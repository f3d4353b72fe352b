"""What scorers say against a plain loop: one text, one token, the whole model at a time."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from genprobe import scoring, statements
from genprobe.engines import Options, Sampling
from genprobe.errors import EngineError
from genprobe.records import Failure, LogProb, Request
from genprobe.scoring import causal

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
    special = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "mask_token": "<mask>"}
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
    return max(
        abs(a - b) for one, two in pairs for a, b in zip(one["logprobs"], two, strict=True)
    )


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
