"""Run a transformers model in two parts, body and output layer; code shared by its scorers.

The output layer takes nearly all of the memory, and of a small model's time: with a vocabulary of
250,000 each position needs a megabyte of logits. Here it is computed only at the positions needed,
a limited number at a time.
"""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
import transformers
from transformers.activations import GELUActivation, NewGELUActivation
from transformers.models.auto import modeling_auto
from transformers.pytorch_utils import Conv1D

from genprobe.engines import Identity, Options, Sampling
from genprobe.engines._local import Local, line, quiet, refusing
from genprobe.engines._local import load as load_files
from genprobe.engines._torch import device_of, dtype_of, out_of_memory, quantised, token_budget
from genprobe.engines.scoring import _texts
from genprobe.errors import EngineError
from genprobe.records import Failure, LogProb, Request

WINDOW = 4096  # requests tokenised and sorted at a time, so that memory stays flat
CPU_TOKENS = 1024  # default padded tokens of a batch; more do not fit into the processor's cache
CPU_LOGITS = 1 << 24  # logits computed at a time: 64 MB of float32
GPU_LOGITS = 1 << 27
# Logits turned into probabilities at a time on a CPU: 4 MB of float32 stay in its cache, which is
# 7 times as fast as allocating memory for all of them.
PIECE = 1 << 20

_FAMILIES = {
    "seq2seq": (modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES, "Seq2SeqLM"),
    "causal": (modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, "CausalLM"),
    "masked": (modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES, "MaskedLM"),
}


# --- loading --------------------------------------------------------------------------------


class Loaded(NamedTuple):
    """A loaded model and its settings for scoring."""

    name: str  # as the user gave it
    kind: str  # causal, masked or seq2seq
    net: Any
    local: Local
    identity: Identity
    budget: int  # padded tokens of a batch
    logits: int  # logits computed at a time
    packed: bool  # whether its linear layers are `Packed`


def kind_of(model: str, config: Any) -> str:
    """Return causal, masked or seq2seq. Raises EngineError if the model predicts no tokens."""
    saved = set(config.architectures or [])
    for kind, (family, _) in _FAMILIES.items():
        if saved & set(family.values()) and config.is_encoder_decoder == (kind == "seq2seq"):
            return kind
    # For example BertForPreTraining, which has an output layer, or an old configuration that names
    # no class. `load` refuses missing weights.
    for kind in ("masked", "seq2seq", "causal"):
        known = config.model_type in _FAMILIES[kind][0] and (kind == "masked" or not saved)
        if known and config.is_encoder_decoder == (kind == "seq2seq"):
            return kind
    what = ", ".join(sorted(saved)) or config.model_type
    raise EngineError(
        f"{model}: {what} predicts no tokens; give a causal, masked or encoder-decoder language "
        "model"
    )


def load(model: str, options: Options, pack: bool = True) -> Loaded:
    """Load a model and its tokenizer for scoring. Raises EngineError if it cannot be used.

    pack: make its linear layers `Packed` if this machine can.
    """
    for name in options.more.keys() - {"quantization"}:
        raise EngineError(
            f"scoring has no argument {name!r}; it has dtype, device, revision, "
            "batch_tokens and quantization"
        )
    device = device_of(options.device)
    dtype = dtype_of(options.dtype or "float32", device)
    how, numbers = quantised(options.more, dtype, device)
    local = load_files(model, options.revision, kind_of)
    kind = kind_of(model, local.config)
    auto = getattr(transformers, f"AutoModelFor{_FAMILIES[kind][1]}")
    with quiet(), refusing(f"{model}: the weights cannot be loaded"):
        net, info = auto.from_pretrained(
            local.folder,
            config=local.config,
            dtype=dtype,
            output_loading_info=True,
            trust_remote_code=False,
            **how,
        )
    if missing := sorted(info["missing_keys"]):
        names = missing[0] + ", …" * (len(missing) > 1)
        raise EngineError(
            f"{model}: weights are missing ({names}) and would be random, so that its values would "
            "be noise; give a model that was trained to predict tokens"
        )
    with quiet(), refusing(f"{model}: does not fit on {device}; try a smaller dtype"):
        net = (net if how else net.to(device)).eval()
        pack = pack and not how and device.type == "cpu" and _packs(dtype)
        hasten(net, pack)
    identity = Identity(
        model=local.name,
        revision=local.revision,
        engine="transformers",
        engine_version=transformers.__version__,
        dtype=numbers,
        chat_template=local.template,
        checkpoint=local.checkpoint,
    )
    cpu = device.type != "cuda"
    return Loaded(
        name=model,
        kind=kind,
        net=net,
        local=local,
        identity=identity,
        budget=options.batch_tokens or (CPU_TOKENS if cpu else token_budget(net, device)),
        logits=CPU_LOGITS if cpu else GPU_LOGITS,
        packed=pack,
    )


class Packed(torch.nn.Module):
    """A linear layer with its weights in the order that oneDNN uses, as torch's compiler makes it.

    torch itself computes float32 products with MKL, at a third of oneDNN's speed on processors
    not made by Intel, and reorders half-precision weights at every call.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        """Pack the weight, (out, in), and the bias of a linear layer."""
        super().__init__()
        packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), None)
        self.register_buffer("weight", packed, persistent=False)
        self.bias = bias
        self.gelu: str | None = None  # activation computed in the same pass

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        then: tuple[str, list[Any], str] = ("none", [], "")
        if self.gelu is not None:
            then = ("gelu", [], self.gelu)
        out: torch.Tensor = torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, *then)
        return out


# A linear layer and the activation after it: in GPT-2; in models like BERT.
_ACTIVATED = (("c_fc", "act"), ("dense", "intermediate_act_fn"))


def _packs(dtype: torch.dtype) -> bool:
    """Tell whether this build of torch can use `Packed` on this processor."""
    x = torch.eye(64, dtype=dtype)
    try:
        with torch.inference_mode():
            return close(Packed(x, None)(x), x)
    except Exception:
        return False


def hasten(net: Any, packs: bool) -> None:
    """Give a model faster layers, equal up to rounding: `Packed`; GELU in one pass or none."""
    for name in [name for name, _ in net.named_modules()]:
        layer = net.get_submodule(name)  # by name, so that old weights are freed
        if isinstance(layer, NewGELUActivation):
            net.set_submodule(name, torch.nn.GELU(approximate="tanh"))
        elif packs and type(layer) is torch.nn.Linear:
            net.set_submodule(name, Packed(layer.weight, layer.bias))
        elif packs and type(layer) is Conv1D:  # GPT-2's: (in, out)
            net.set_submodule(name, Packed(layer.weight.T, layer.bias))
    for module in net.modules():
        for linear, activation in _ACTIVATED:
            packed, gelu = (getattr(module, name, None) for name in (linear, activation))
            if isinstance(packed, Packed) and isinstance(gelu, GELUActivation | torch.nn.GELU):
                packed.gelu = getattr(gelu, "approximate", "none")
                setattr(module, activation, torch.nn.Identity())


# --- body and output layer ------------------------------------------------------------------


class Net:
    """Compute a model's body (token ids to hidden states) and output layer (to logits) separately.

    body: the module that computes the last hidden states, the output layer's input.
    """

    def __init__(self, loaded: Loaded, body: Any, **dummy: Any) -> None:
        """Prepare the body of a model.

        dummy: arguments that make the whole model call its body; their values are not used.
        """
        self.net, self.body, self.dummy = loaded.net, body, dummy
        self.name = loaded.name
        self.device = loaded.net.device
        self.dtype = loaded.net.dtype
        weight = loaded.net.get_input_embeddings().weight
        self.vocabulary: int = weight.shape[0]
        self.width: int = weight.shape[1]
        self.rows = max(1, loaded.logits // self.vocabulary)
        piece = loaded.logits if self.device.type == "cuda" else PIECE
        self.piece = max(1, piece // self.vocabulary)

    def hidden(self, **inputs: Any) -> torch.Tensor:
        """Return the last hidden states, (rows, length, width)."""
        self.out = self.body(**inputs)
        hidden: torch.Tensor = self.out.last_hidden_state
        return hidden

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Compute logits (n, vocabulary) from hidden states (n, width).

        The whole model is called with its body replaced by these states, so that any kind of
        output layer works.
        """
        self.out.last_hidden_state = hidden[None]
        self.body.forward = lambda *args, **kwargs: self.out
        try:
            logits: torch.Tensor = self.net(**self.dummy).logits[0]
        finally:
            del self.body.forward
        return logits

    def logprobs(self, hidden: torch.Tensor, targets: Sequence[Sequence[int]]) -> list[list[float]]:
        """Compute natural log P of each row's target tokens, in float32. hidden: (n, width)."""
        values: list[float] = []
        for start in range(0, len(targets), self.rows):
            end = min(start + self.rows, len(targets))
            logits = self.logits(hidden[start:end])
            for at in range(start, end, self.piece):
                part = targets[at : min(at + self.piece, end)]
                lines = torch.tensor([n for n, row in enumerate(part) for _ in row])
                tokens = torch.tensor([token for row in part for token in row])
                # Twice as fast on a CPU as logsumexp, which needs less memory.
                all_ = logits[at - start :][: len(part)].float().log_softmax(-1)
                values += all_[lines.to(self.device), tokens.to(self.device)].tolist()
        found = iter(values)
        return [[next(found) for _ in row] for row in targets]

    def check(self, whole: torch.Tensor, hidden: torch.Tensor) -> None:
        """Raise EngineError unless body and output layer together give the whole model's logits.

        whole: logits of the undivided model; hidden: hidden states of the same tokens.
        """
        ours = self.logits(hidden.flatten(0, -2)).view_as(whole)
        if not close(ours, whole):
            raise EngineError(
                f"{self.name}: {type(self.net).__name__} cannot be divided into a body and an "
                "output layer, which scoring needs"
            )


def close(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Tell whether two tensors are equal up to the rounding of their type."""
    bound = 1e-3 if one.dtype == torch.float32 else 5e-2
    return bool((one - two).float().norm() <= bound * two.float().norm())


@contextlib.contextmanager
def working(name: str) -> Iterator[None]:
    """Run a block without gradients and warnings; turn any exception into an EngineError."""
    try:
        with torch.inference_mode(), quiet():
            yield
    except EngineError:
        raise
    except Exception as error:
        if out_of_memory(error):
            raise EngineError(
                f"{name}: a batch does not fit into memory; give fewer batch_tokens"
            ) from error
        raise EngineError(f"{name}: the model failed ({line(error)})") from error


# --- batches ----------------------------------------------------------------------------------


def positions(loaded: Loaded) -> int | None:
    """Return how many tokens the model takes, with special tokens; None if there is no limit."""
    limits = [getattr(loaded.local.config.get_text_config(), "max_position_embeddings", None)]
    for name, layer in loaded.net.named_modules():
        # RoBERTa numbers its positions from the one after padding's.
        if name.endswith("position_embeddings") and isinstance(layer, torch.nn.Embedding):
            used = 0 if layer.padding_idx is None else layer.padding_idx + 1
            limits.append(layer.num_embeddings - used)
    known = [n for n in limits if isinstance(n, int) and n > 0]
    return min(known, default=None)


def batches(lengths: Sequence[int], budget: int, pads: bool = True) -> Iterator[list[int]]:
    """Yield batches of row indices, longest first, of at most `budget` tokens with padding.

    A single row may exceed the budget. pads: a batch may hold rows of several lengths.
    """
    order = sorted(range(len(lengths)), key=lambda n: -lengths[n])
    start = 0
    while start < len(order):
        longest = lengths[order[start]]
        batch = order[start : start + max(1, budget // longest)]
        if not pads:
            batch = [n for n in batch if lengths[n] == longest]
        yield batch
        start += len(batch)


def padded(rows: Sequence[Sequence[int]], pad: int, device: Any) -> tuple[torch.Tensor, Any]:
    """Pad ids on the right. Returns ids and mask, both (rows, width); the mask is 0 for padding."""
    width = max(map(len, rows))
    ids = torch.tensor([[*row, *[pad] * (width - len(row))] for row in rows])
    mask = torch.arange(width) < torch.tensor([len(row) for row in rows])[:, None]
    return ids.to(device), mask.long().to(device)


def as_found(
    needs: Sequence[Collection[Hashable]], found: Iterable[Collection[Hashable]]
) -> Iterator[int]:
    """Yield each index of `needs` as soon as all of its keys were found.

    found: the keys that each batch computes, each once. Finished requests are thus stored early
    and kept if the run is interrupted.
    """
    missing = [len(set(keys)) for keys in needs]
    waiting: dict[Hashable, list[int]] = {}
    for at, keys in enumerate(needs):
        for key in set(keys):
            waiting.setdefault(key, []).append(at)
    yield from (at for at, count in enumerate(missing) if not count)
    for batch in found:
        for key in batch:
            for at in waiting.pop(key, ()):
                missing[at] -= 1
                if not missing[at]:
                    yield at


# --- shared by the three kinds -------------------------------------------------------------------


class Scorer(abc.ABC):
    """The common part of the scorers: see `genprobe.engines.scoring.Scorer`."""

    passes: tuple[str, ...]
    first: str
    unknown: int | None
    net: Net
    around: int  # number of special tokens around a text
    apart = False  # True: context and text are never one sequence

    def __init__(self, loaded: Loaded) -> None:
        self.identity, self.budget = loaded.identity, loaded.budget
        self.texts = _texts.Texts(loaded.name, loaded.local.tokenizer)
        self.unknown = self.texts.unknown
        self.positions = positions(loaded)

    def generate(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[LogProb | Failure]:
        for start in range(0, len(requests), WINDOW):
            usable = []
            window = requests[start : start + WINDOW]
            for asked in self.texts.asked(window, self.passes, self.apart):
                if failure := self.unusable(asked):
                    yield failure
                else:
                    usable.append(asked)
            yield from self.score(usable)

    def close(self) -> None:
        del self.net
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def unusable(self, asked: _texts.Asked) -> Failure | None:
        return _texts.unusable(asked, self.around, self.positions, self.net.vocabulary)

    @abc.abstractmethod
    def score(self, window: Sequence[_texts.Asked]) -> Iterator[LogProb | Failure]:
        """Score each request once, in any order."""
