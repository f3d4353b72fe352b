"""A model of transformers in two halves, body and output layer, and what its scorers share.

Nearly all of the memory, and of a small model's time, is the output layer's: with 250,000 words
each position costs a million bytes of logits. Here it sees only the positions that are asked for,
a bounded number at a time.
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
CPU_TOKENS = 1024  # default padded tokens of a batch; with more, activations outgrow the caches
CPU_LOGITS = 1 << 24  # logits computed at a time: 64 MB of float32
GPU_LOGITS = 1 << 27
# Of those, turned into probabilities at a time on a CPU. 4 MB of float32 stay in its cache and in
# memory that is there: 7 times as fast as new pages for all.
PIECE = 1 << 20

_FAMILIES = {
    "seq2seq": (modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES, "Seq2SeqLM"),
    "causal": (modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, "CausalLM"),
    "masked": (modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES, "MaskedLM"),
}


# --- loading --------------------------------------------------------------------------------


class Loaded(NamedTuple):
    name: str  # as it was asked for
    kind: str  # causal, masked or seq2seq
    net: Any
    local: Local
    identity: Identity
    budget: int  # padded tokens of a batch
    logits: int  # logits computed at a time
    packed: bool  # are its linear layers `Packed`?


def kind_of(model: str, config: Any) -> str:
    """causal, masked or seq2seq. EngineError for a model that predicts no tokens."""
    saved = set(config.architectures or [])
    for kind, (family, _) in _FAMILIES.items():
        if saved & set(family.values()) and config.is_encoder_decoder == (kind == "seq2seq"):
            return kind
    # Such as BertForPreTraining, which holds the output layer, or an old configuration that names
    # no class: what is missing is seen later.
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
    """Load a model and its tokenizer, ready to score. EngineError, in one line, where it is not.

    pack: make its linear layers `Packed`, if that is possible here.
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
    """A linear layer with its weights as oneDNN wants them; what torch's compiler makes of one.

    torch hands float32 products to MKL, which runs at a third of oneDNN's rate on a processor
    that is not Intel's; and reorders the weights of half precision at every call.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        """Pack the weight, (out, in), and the bias of a linear layer."""
        super().__init__()
        packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), None)
        self.register_buffer("weight", packed, persistent=False)
        self.bias = bias
        self.gelu: str | None = None  # done on the way, without another look at the result

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        then: tuple[str, list[Any], str] = ("none", [], "")
        if self.gelu is not None:
            then = ("gelu", [], self.gelu)
        out: torch.Tensor = torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, *then)
        return out


# A linear layer and what follows it: of GPT-2; of BERT and its kin.
_ACTIVATED = (("c_fc", "act"), ("dense", "intermediate_act_fn"))


def _packs(dtype: torch.dtype) -> bool:
    """Can this build of torch, on this processor?"""
    x = torch.eye(64, dtype=dtype)
    try:
        with torch.inference_mode():
            return close(Packed(x, None)(x), x)
    except Exception:
        return False


def hasten(net: Any, packs: bool) -> None:
    """Give a model faster layers, equal up to rounding: `Packed`; GELU in one pass or none."""
    for name in [name for name, _ in net.named_modules()]:
        layer = net.get_submodule(name)  # by name: no old weights are held on to
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
    """A model's body (token ids to hidden states) and its output layer (to logits), apart.

    body: the module of the model whose last hidden states its output layer reads.
    """

    def __init__(self, loaded: Loaded, body: Any, **dummy: Any) -> None:
        """Prepare the body of a model.

        dummy: arguments with which the whole model calls its body; what it says is not read.
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
        """(rows, length, width)"""
        self.out = self.body(**inputs)
        hidden: torch.Tensor = self.out.last_hidden_state
        return hidden

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """(n, width) -> (n, vocabulary): the whole model, its body replaced by what it has said.

        So every model's own output layer is used, whatever it is made of.
        """
        self.out.last_hidden_state = hidden[None]
        self.body.forward = lambda *args, **kwargs: self.out
        try:
            logits: torch.Tensor = self.net(**self.dummy).logits[0]
        finally:
            del self.body.forward
        return logits

    def logprobs(self, hidden: torch.Tensor, targets: Sequence[Sequence[int]]) -> list[list[float]]:
        """For each row of hidden (n, width), log P of each of its target tokens. Float32."""
        values: list[float] = []
        for start in range(0, len(targets), self.rows):
            end = min(start + self.rows, len(targets))
            logits = self.logits(hidden[start:end])
            for at in range(start, end, self.piece):
                part = targets[at : min(at + self.piece, end)]
                lines = torch.tensor([n for n, row in enumerate(part) for _ in row])
                tokens = torch.tensor([token for row in part for token in row])
                # In one pass, and twice as fast on a CPU as logsumexp, which needs less memory.
                all_ = logits[at - start :][: len(part)].float().log_softmax(-1)
                values += all_[lines.to(self.device), tokens.to(self.device)].tolist()
        found = iter(values)
        return [[next(found) for _ in row] for row in targets]

    def check(self, whole: torch.Tensor, hidden: torch.Tensor) -> None:
        """EngineError unless the halves together are the whole.

        whole: logits of the undivided model; hidden: of its body, both for the same tokens.
        """
        ours = self.logits(hidden.flatten(0, -2)).view_as(whole)
        if not close(ours, whole):
            raise EngineError(
                f"{self.name}: {type(self.net).__name__} cannot be divided into a body and an "
                "output layer, which scoring needs"
            )


def close(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Equal up to the rounding of their type."""
    bound = 1e-3 if one.dtype == torch.float32 else 5e-2
    return bool((one - two).float().norm() <= bound * two.float().norm())


@contextlib.contextmanager
def working(name: str) -> Iterator[None]:
    """No gradients, no advice; whatever a model raises becomes one line."""
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
    """How many tokens the model can take in a row, special ones included; None: any number."""
    limits = [getattr(loaded.local.config.get_text_config(), "max_position_embeddings", None)]
    for name, layer in loaded.net.named_modules():
        # RoBERTa counts its positions from behind that of the padding.
        if name.endswith("position_embeddings") and isinstance(layer, torch.nn.Embedding):
            used = 0 if layer.padding_idx is None else layer.padding_idx + 1
            limits.append(layer.num_embeddings - used)
    known = [n for n in limits if isinstance(n, int) and n > 0]
    return min(known, default=None)


def batches(lengths: Sequence[int], budget: int, pads: bool = True) -> Iterator[list[int]]:
    """Return indices of rows, longest first, cut so that a batch pads to `budget` tokens at most.

    One row alone may exceed the budget. pads: a batch may hold rows of several lengths.
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
    """Ids padded on the right, (rows, width), and the mask of what is no padding."""
    width = max(map(len, rows))
    ids = torch.tensor([[*row, *[pad] * (width - len(row))] for row in rows])
    mask = torch.arange(width) < torch.tensor([len(row) for row in rows])[:, None]
    return ids.to(device), mask.long().to(device)


def as_found(
    needs: Sequence[Collection[Hashable]], found: Iterable[Collection[Hashable]]
) -> Iterator[int]:
    """Yield the places in `needs`, each as soon as all that is needed there was found.

    found: what each batch brings, once. So a run keeps what was computed, whatever stops it.
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


# --- what the three kinds share -----------------------------------------------------------------


class Scorer(abc.ABC):
    """See `genprobe.engines.scoring.Scorer`."""

    passes: tuple[str, ...]
    first: str
    unknown: int | None
    net: Net
    around: int  # special tokens beside a text
    apart = False  # context and text are never one sequence

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
        """Score what can be scored, each once, in any order."""
