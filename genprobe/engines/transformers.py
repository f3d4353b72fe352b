"""Models of the transformers library, on this machine: decoder-only and encoder-decoder.

A reply depends on its request alone, not on the order or the batch that it ran in (up to the
rounding of the arithmetic: none seen in float32, now and then a near-tie in half precision).
Greedy replies see their padding masked; a draw uses noise computed from the request's own seed.

`generation_config.json` of a model may hold penalties, temperatures and forced tokens, with
which two models would no longer be asked under the same conditions: only its end tokens count.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import huggingface_hub
import torch
import transformers
from huggingface_hub import errors as hub
from transformers.models.auto import modeling_auto

from genprobe.engines import Identity, Options, Sampling
from genprobe.errors import EngineError
from genprobe.records import Failure, Request, Response, digest

WINDOW = 4096  # requests tokenised and sorted at a time, so that memory stays flat
CPU_TOKENS = 4096  # default padded tokens of a batch; with more, activations outgrow the caches
GPU_TOKENS = 65536
# Llama 3 templates print today's date, so that a run resumed tomorrow would send other prompts.
# This is the date that Llama 3.1 falls back to.
TEMPLATE_DATE = "26 Jul 2024"

DTYPES = {
    "float32": torch.float32,
    "fp32": torch.float32,
    "float16": torch.float16,
    "fp16": torch.float16,
    "bfloat16": torch.bfloat16,
    "bf16": torch.bfloat16,
}
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "vocab.json",
    "vocab.txt",
    "tekken.json",
)
# A hub repository may hold the same weights three times; these are what transformers reads.
SMALL_FILES = ["*.json", "*.jinja", "*.txt", "*.model"]
SAFETENSORS = ["model.safetensors", "model-*-of-*.safetensors"]
PICKLES = ["pytorch_model.bin", "pytorch_model-*-of-*.bin"]


def open(model: str, options: Options) -> TransformersEngine:
    """Load a model and its tokenizer from a folder or, by its id, from the hub or its cache.

    Runs in bfloat16 on a GPU that has it, float16 on other GPUs, float32 on a CPU, unless
    `options` says else. EngineError where the model cannot be used as it is.
    """
    path = Path(model).expanduser()
    if path.is_dir():
        if options.revision:
            raise EngineError(f"{model}: a folder has no revisions; leave the revision out")
        name, folder, revision = path.resolve().name, path, None
    else:
        folder = _fetch(model, options.revision)
        name, revision = model, folder.name  # the hub's cache: …/snapshots/<commit>
    _check_files(model, folder)
    device = _device(options.device)
    dtype = _dtype(options.dtype, device)
    with _quiet():
        config = _load_config(model, folder)
        with _refusing(f"{model}: the tokenizer cannot be read"):
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        net = _load_model(model, folder, config, dtype, device)
        with _refusing(f"{model}: the chat template cannot be used"):
            template = tokenizer.get_chat_template() if tokenizer.chat_template else None
            # Better now than after the run's folder has been made.
            Prompts(tokenizer).text([{"role": "user", "content": "?"}])
    identity = Identity(
        model=name,
        revision=revision or folder_hash(folder),
        engine="transformers",
        engine_version=transformers.__version__,
        dtype=str(net.dtype).removeprefix("torch."),
        chat_template=digest(template, 12) if template else "none",
    )
    budget = options.batch_tokens or _default_budget(net, device)
    return TransformersEngine(model, net, tokenizer, identity, budget)


# --- finding and loading --------------------------------------------------------------------


def _fetch(model: str, revision: str | None) -> Path:
    """The folder of a hub model in the local cache, downloaded if need be."""
    # The one global setting: the hub is told no more than the name of the model.
    huggingface_hub.constants.HF_HUB_DISABLE_TELEMETRY = True

    class Bar(huggingface_hub.utils.tqdm):
        """Shown while files arrive, gone afterwards."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **{**kwargs, "leave": False})

    def download(patterns: list[str]) -> Path:
        return Path(
            huggingface_hub.snapshot_download(
                model,
                revision=revision,
                allow_patterns=patterns,
                ignore_patterns=["*/*"],
                tqdm_class=Bar,
            )
        )

    try:
        with _quiet(bars=True):
            folder = download(SMALL_FILES + SAFETENSORS)
            if not any(folder.glob("*.safetensors")):
                folder = download(SMALL_FILES + PICKLES)
            return folder
    except hub.GatedRepoError:
        reason = (
            f"the authors want to be asked first; accept the terms at https://huggingface.co/{model}"
            " and log in with `hf auth login`"
        )
    except hub.RevisionNotFoundError:
        reason = f"no revision {revision!r} on the hub"
    except hub.RepositoryNotFoundError:
        reason = (
            "neither a folder here nor a model of the hub; check the name"
            " (a private model needs `hf auth login`)"
        )
    except hub.HFValidationError:
        reason = "no such folder, and not a hub id, which reads owner/name"
    except (hub.LocalEntryNotFoundError, hub.OfflineModeIsEnabled):
        reason = (
            "neither a folder here nor in the local hub cache, and the hub cannot be reached;"
            " go online (unset HF_HUB_OFFLINE) or give a folder"
        )
    except Exception as error:  # every HTTP client has its own
        reason = f"cannot be fetched from the hub ({_line(error)})"
    raise EngineError(f"{model}: {reason}")


def _check_files(model: str, folder: Path) -> None:
    """EngineError unless config, weights and tokenizer lie in the folder.

    transformers makes up an empty tokenizer, without a word, where there are no files for it.
    """
    if not (folder / "config.json").is_file():
        raise EngineError(f"{model}: no config.json; this is not the folder of a saved model")
    if not any(any(folder.glob(p)) for p in SAFETENSORS + PICKLES):
        raise EngineError(
            f"{model}: no weights (model.safetensors); save the model into the folder"
        )
    if not any((folder / f).is_file() for f in TOKENIZER_FILES):
        raise EngineError(
            f"{model}: no tokenizer files (tokenizer.json, …); save the tokenizer into the folder"
        )


def _load_config(model: str, folder: Path) -> Any:
    """The model's configuration, of a kind that can write a reply."""
    with _refusing(f"{model}: config.json cannot be used"):
        config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
    if config.is_encoder_decoder:
        family = modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
    else:
        family = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    # The saved class counts, not only the family: transformers would load a masked model such as
    # BERT as a decoder, and give a headless one a head of random numbers.
    saved = list(config.architectures or [])
    if not set(saved) & set(family.values()):
        what = ", ".join(saved) or config.model_type
        raise EngineError(
            f"{model}: {what} writes no replies; give a causal or encoder-decoder language model"
        )
    return config


def _load_model(
    model: str, folder: Path, config: Any, dtype: torch.dtype, device: torch.device
) -> Any:
    loader: Any = (
        transformers.AutoModelForSeq2SeqLM
        if config.is_encoder_decoder
        else transformers.AutoModelForCausalLM
    )
    with _refusing(f"{model}: the weights cannot be loaded"):
        net, info = loader.from_pretrained(
            folder, config=config, dtype=dtype, output_loading_info=True, trust_remote_code=False
        )
    if info["missing_keys"]:
        raise EngineError(
            f"{model}: {len(info['missing_keys'])} weights are missing"
            f" ({min(info['missing_keys'])}, …) and would be random; get the whole model"
        )
    with _refusing(f"{model}: does not fit on {device}; try a smaller dtype or another device"):
        return net.to(device).eval()


def _device(name: str | None) -> torch.device:
    if name is None:
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    with _refusing(f"device {name!r} cannot be used; leave it out, or give cpu, cuda or mps"):
        device = torch.device(name)
        torch.empty(1, device=device)
        return device


def _dtype(name: str | None, device: torch.device) -> torch.dtype:
    if name is not None:
        if name not in DTYPES:
            raise EngineError(f"unknown dtype {name!r}; known: {', '.join(DTYPES)}")
        return DTYPES[name]
    if device.type == "cuda":
        # Older cards emulate bfloat16, slowly.
        modern = torch.cuda.get_device_capability(device) >= (8, 0)
        return torch.bfloat16 if modern else torch.float16
    return torch.float16 if device.type == "mps" else torch.float32


def _default_budget(net: Any, device: torch.device) -> int:
    """Padded tokens (prompt and reply) that a batch may hold.

    On a GPU at most half of what is free once the model is there; a batch that runs out of
    memory all the same is halved.
    """
    if device.type != "cuda":
        return CPU_TOKENS
    config = net.config.get_text_config()
    layers, width = config.num_hidden_layers, config.hidden_size
    # Bytes a token: keys and values (as if every head had its own), activations of one layer,
    # and its part of the float32 logits and their noise (40 bytes a logit, one of 40 tokens).
    per_token = net.dtype.itemsize * width * (2 * layers + 24) + config.vocab_size
    free, _ = torch.cuda.mem_get_info(device)
    return max(1, min(GPU_TOKENS, free // 2 // per_token))


def folder_hash(folder: Path) -> str:
    """16 hex digits of the SHA-256 over names, sizes and contents of a model folder's files.

    Counted are the top-level configuration, tokenizer, template and weight files. A file of up
    to 200 MB counts whole, a longer one by 64 blocks of 1 MiB spread evenly from its first to
    its last byte: fast for any model, and two fine-tunings of one model still differ.
    """
    block, blocks = 1 << 20, 64
    state = hashlib.sha256()
    patterns = [*SMALL_FILES, *SAFETENSORS, *PICKLES]
    for path in sorted({p for pattern in patterns for p in folder.glob(pattern)}):
        size = path.stat().st_size
        state.update(f"{path.name}\0{size}\0".encode())
        with path.open("rb") as file:
            if size <= 200_000_000:
                while part := file.read(block):
                    state.update(part)
            else:
                for i in range(blocks):
                    file.seek((size - block) * i // (blocks - 1))
                    state.update(file.read(block))
    return state.hexdigest()[:16]


# --- answering ------------------------------------------------------------------------------


class Row(NamedTuple):
    """A request made ready: the text that is sent and its token ids."""

    request: Request
    sent: str
    ids: list[int]


class Prompts:
    """Turns messages into the text and tokens that a model expects."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.chat = bool(tokenizer.chat_template)

    def rows(self, requests: Sequence[Request]) -> list[Row]:
        """One row a request. EngineError where the chat template refuses the messages."""
        if not requests:
            return []
        sent = [self.text(r.messages) for r in requests]
        # A chat template writes the special tokens itself; a second BOS would shift everything.
        ids = self.tokenizer(sent, add_special_tokens=not self.chat, padding=False)["input_ids"]
        return [Row(*parts) for parts in zip(requests, sent, ids, strict=True)]

    def text(self, messages: list[dict[str, str]]) -> str:
        if not self.chat:
            return "\n".join(m["content"] for m in messages)
        try:
            return self._render(messages)
        except Exception as error:  # a template is a program of the model's authors
            if len(messages) > 1 and messages[0]["role"] == "system":
                # Gemma and the first Mistrals know no system role: say it to the user's turn.
                first, second, *rest = messages
                joined = f"{first['content']}\n\n{second['content']}"
                return self.text([{**second, "content": joined}, *rest])
            raise EngineError(f"the chat template refuses the messages ({_line(error)})") from error

    def _render(self, messages: list[dict[str, str]]) -> str:
        return self.tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=False, date_string=TEMPLATE_DATE
        )


def batches(rows: Sequence[Row], new: int, budget: int) -> list[list[Row]]:
    """Rows sorted by length, longest first, cut so that a batch pads to `budget` tokens at most.

    `new` tokens of reply are counted for every row. One row alone may exceed the budget.
    """
    ordered = sorted(rows, key=lambda row: -len(row.ids))  # stable
    result = []
    start = 0
    while start < len(ordered):
        end = start + max(1, budget // (len(ordered[start].ids) + new))
        result.append(ordered[start:end])
        start = end
    return result


class TransformersEngine:
    """See `genprobe.engines.Engine`. `net` and `tokenizer` are the loaded objects."""

    def __init__(self, name: str, net: Any, tokenizer: Any, identity: Identity, budget: int):
        self.name = name
        self.net = net
        self.tokenizer = tokenizer
        self.identity = identity
        self.budget = budget
        self.prompts = Prompts(tokenizer)
        self._too_big: float = float("inf")  # padded tokens of a batch that ran out of memory
        own, config = net.generation_config, net.config
        ends = own.eos_token_id
        if ends is None:
            ends = getattr(config, "eos_token_id", None)
        ends = [*(ends if isinstance(ends, list) else [ends]), tokenizer.eos_token_id]
        self.stop_ids: list[int] = sorted({i for i in ends if i is not None})
        pads = [tokenizer.pad_token_id, *self.stop_ids, tokenizer.unk_token_id, 0]
        self.pad_id: int = next(i for i in pads if i is not None)
        self.decoder_start = own.decoder_start_token_id
        if self.decoder_start is None:
            self.decoder_start = getattr(config, "decoder_start_token_id", None)
        # generate() falls back on the model's own settings wherever ours are silent.
        net.generation_config = self._settings(1)
        limit = getattr(config.get_text_config(), "max_position_embeddings", None)
        self.positions = limit if isinstance(limit, int) and limit > 0 else None

    def generate(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[Response | Failure]:
        """Answer every request once, batch by batch. EngineError if the model breaks down."""
        for start in range(0, len(requests), WINDOW):
            rows = []
            for row in self.prompts.rows(requests[start : start + WINDOW]):
                if failure := self._unusable(row, sampling.max_tokens):
                    yield failure
                else:
                    rows.append(row)
            for batch in batches(rows, sampling.max_tokens, self.budget):
                yield from self._answer(batch, sampling)

    def close(self) -> None:
        """Free the model's memory."""
        self.net = None
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _unusable(self, row: Row, new: int) -> Failure | None:
        """The failure of a request that the model cannot take, found before its batch runs."""
        n = len(row.ids)
        if not n:
            return Failure(row.request.id, "engine", "the prompt has no tokens", 1)
        vocabulary = self.net.get_input_embeddings().weight.shape[0]
        if max(row.ids) >= vocabulary:
            detail = f"token {max(row.ids)} is not among the model's {vocabulary}"
            return Failure(row.request.id, "engine", detail, 1)
        if self.positions is not None:
            # An encoder-decoder model counts the reply apart from the prompt.
            apart = self.net.config.is_encoder_decoder
            needed = max(n, new) if apart else n + new
            if needed > self.positions:
                detail = f"{n} tokens of prompt and {new} of reply; the model has {self.positions}"
                return Failure(row.request.id, "too-long", detail, 1)
        return None

    def _answer(self, batch: list[Row], sampling: Sampling) -> Iterator[Response | Failure]:
        """Answer a batch; in halves where it does not fit into memory."""
        padded = len(batch) * (len(batch[0].ids) + sampling.max_tokens)
        if len(batch) == 1 or padded < self._too_big:
            replies = self._run(batch, sampling)
            if replies is not None:
                yield from self._responses(batch, replies)
                return
            # Outside the except clause, whose traceback would hold on to the tensors.
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            if len(batch) == 1:
                detail = f"one request of {len(batch[0].ids)} tokens does not fit into memory"
                yield Failure(batch[0].request.id, "out-of-memory", detail, 1)
                return
            self._too_big = min(self._too_big, padded)
        half = (len(batch) + 1) // 2
        yield from self._answer(batch[:half], sampling)
        yield from self._answer(batch[half:], sampling)

    def _run(self, batch: list[Row], sampling: Sampling) -> list[list[int]] | None:
        """The new token ids of each row, or None if memory ran out."""
        width = max(len(row.ids) for row in batch)
        ids = torch.full((len(batch), width), self.pad_id)
        mask = torch.zeros((len(batch), width), dtype=torch.long)
        for i, row in enumerate(batch):
            # Decoders continue at the right edge; encoders were trained with padding there.
            n = len(row.ids)
            span = slice(0, n) if self.net.config.is_encoder_decoder else slice(width - n, width)
            ids[i, span] = torch.tensor(row.ids)
            mask[i, span] = 1
        steps = transformers.LogitsProcessorList()
        if sampling.temperature > 0:
            if sampling.temperature != 1:
                steps.append(transformers.TemperatureLogitsWarper(sampling.temperature))
            if sampling.top_p < 1:
                steps.append(transformers.TopPLogitsWarper(sampling.top_p))
            steps.append(Draw([row.request.seed for row in batch]))
        try:
            with torch.inference_mode(), _quiet():
                out = self.net.generate(
                    input_ids=ids.to(self.net.device),
                    attention_mask=mask.to(self.net.device),
                    generation_config=self._settings(sampling.max_tokens),
                    logits_processor=steps,
                )
        except (RuntimeError, MemoryError) as error:
            if _out_of_memory(error):
                return None
            raise EngineError(f"{self.name}: the model broke down ({_line(error)})") from error
        start = 1 if self.net.config.is_encoder_decoder else width
        return out[:, start:].tolist()

    def _settings(self, new: int) -> transformers.GenerationConfig:
        return transformers.GenerationConfig(
            max_new_tokens=new,
            do_sample=False,  # Draw has drawn already; what is left is to take the highest
            num_beams=1,
            eos_token_id=self.stop_ids or None,
            pad_token_id=self.pad_id,
            bos_token_id=self.tokenizer.bos_token_id,
            decoder_start_token_id=self.decoder_start,
        )

    def _responses(self, batch: list[Row], replies: list[list[int]]) -> Iterator[Response]:
        stops = set(self.stop_ids)
        ends = [next((i for i, t in enumerate(r) if t in stops), None) for r in replies]
        kept = [reply[:end] for reply, end in zip(replies, ends, strict=True)]
        texts = self.tokenizer.batch_decode(
            kept, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        for row, tokens, end, text in zip(batch, kept, ends, texts, strict=True):
            yield Response(
                request=row.request.id,
                text=text,
                finish="length" if end is None else "stop",
                sent=row.sent,
                tokens_in=len(row.ids),
                tokens_out=len(tokens),
            )


class Draw(transformers.LogitsProcessor):
    """Draws each row's next token by that row's seed: Gumbel noise on the logits, then the highest.

    argmax(logits + Gumbel noise) is a draw from softmax(logits) (Gumbel 1954; Maddison et al.
    2014, https://arxiv.org/abs/1411.0030). The noise is a function of (seed, step, token id), so
    that neither the batch nor the device changes it, and rounding of the logits almost never
    changes the token drawn. transformers' own sampling shares one generator among all rows.
    """

    def __init__(self, seeds: Sequence[int]) -> None:
        self.seeds = seeds  # one of 31 bits for each row
        self.step = 0

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """scores: [rows, vocabulary] logits, -inf where a token is out of the question."""
        states = torch.tensor(self.seeds, device=scores.device) * 2**32 + self.step
        self.step += 1
        return scores + gumbel(states, scores.shape[-1])


def gumbel(states: torch.Tensor, n: int) -> torch.Tensor:
    """[rows, n] float32 of standard Gumbel noise, a pure function of the int64 `states` [rows].

    SplitMix64 (Steele, Lea, Flood 2014), counter-based: the same numbers on every device.
    """
    tokens = torch.arange(n, device=states.device) * _signed(0x9E3779B97F4A7C15)
    bits = _shift(_mix(_mix(states)[:, None] + tokens), 11)  # 53 random bits
    # Tiny values keep their precision here: they decide how often rare tokens win.
    uniform = ((bits.to(torch.float32) + 0.5) * 2.0**-53).clamp_(max=1 - 2.0**-24)
    return uniform.neg_().log1p_().neg_().log_().neg_()


def _mix(z: torch.Tensor) -> torch.Tensor:
    z = (z ^ _shift(z, 30)) * _signed(0xBF58476D1CE4E5B9)
    z = (z ^ _shift(z, 27)) * _signed(0x94D049BB133111EB)
    return z ^ _shift(z, 31)


def _shift(z: torch.Tensor, by: int) -> torch.Tensor:
    """Logical right shift; torch's own copies the sign."""
    return (z >> by) & ((1 << (64 - by)) - 1)


def _signed(word: int) -> int:
    return word - 2**64 if word >= 2**63 else word


# --- manners --------------------------------------------------------------------------------


@contextlib.contextmanager
def _quiet(bars: bool = False) -> Iterator[None]:
    """No advice, warnings or (unless `bars`) progress bars from the libraries, for a while."""
    loggers = [logging.getLogger(name) for name in ("transformers", "huggingface_hub")]
    levels = [logger.level for logger in loggers]
    hide = not bars and transformers.utils.logging.is_progress_bar_enabled()
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        if hide:
            transformers.utils.logging.disable_progress_bar()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if hide:
            transformers.utils.logging.enable_progress_bar()


@contextlib.contextmanager
def _refusing(what: str) -> Iterator[None]:
    """Whatever a library raises inside becomes one line.

    Broken model folders raise nearly every exception that there is, hence the wide net.
    """
    try:
        yield
    except Exception as error:
        raise EngineError(f"{what} ({_line(error)})") from error


def _line(error: BaseException) -> str:
    """The first line of an exception's message, cut to a readable length."""
    lines = str(error).strip().splitlines() or [""]
    text = lines[0].strip() or type(error).__name__
    return text if len(text) <= 200 else text[:199] + "…"


def _out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError):
        return True
    # A CPU and Apple's GPUs raise a plain RuntimeError.
    return "out of memory" in str(error) or "can't allocate memory" in str(error)
