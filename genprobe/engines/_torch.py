"""Devices, number formats and memory of PyTorch."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

import torch

from genprobe.engines._local import refusing
from genprobe.errors import EngineError

CPU_TOKENS = 4096  # default padded tokens of a batch; more do not fit into the processor's cache
GPU_TOKENS = 65536
DTYPES = {
    "float32": torch.float32,
    "fp32": torch.float32,
    "float16": torch.float16,
    "fp16": torch.float16,
    "bfloat16": torch.bfloat16,
    "bf16": torch.bfloat16,
}


def device_of(name: str | None) -> torch.device:
    """Find a device by name; None: the best available. Raises EngineError if it is unusable."""
    if name is None:
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    with refusing(f"device {name!r} cannot be used; leave it out, or give cpu, cuda or mps"):
        device = torch.device(name)
        torch.empty(1, device=device)
        return device


def dtype_of(name: str | None, device: torch.device) -> torch.dtype:
    """Find a number format by name; None: the one that suits the device."""
    if name is not None:
        if name not in DTYPES:
            raise EngineError(f"unknown dtype {name!r}; known: {', '.join(DTYPES)}")
        return DTYPES[name]
    if device.type == "cuda":
        # Older cards emulate bfloat16, slowly.
        modern = torch.cuda.get_device_capability(device) >= (8, 0)
        return torch.bfloat16 if modern else torch.float16
    return torch.float16 if device.type == "mps" else torch.float32


# Engine argument -> what a run calls the numbers: NormalFloat of four bits, integers of eight.
QUANTISED = {"4bit": "nf4", "8bit": "int8"}


def quantised(
    given: Mapping[str, Any], dtype: torch.dtype, device: torch.device
) -> tuple[dict[str, Any], str]:
    """Return how to load weights in 4 or 8 bits (bitsandbytes), and what to call the numbers.

    given: the engine's own arguments; `quantization` is 4bit or 8bit. Without it there is nothing
    to say and the numbers are `dtype`, in which everything is computed in any case. EngineError for
    another value, or where the packages are not installed.
    """
    plain, kind = str(dtype).removeprefix("torch."), given.get("quantization")
    if kind is None:
        return {}, plain
    if kind not in QUANTISED:
        raise EngineError(f"unknown quantization {kind!r}; known: {', '.join(QUANTISED)}")
    for package in ("bitsandbytes", "accelerate"):
        if importlib.util.find_spec(package) is None:
            raise EngineError(
                f"quantization={kind} needs {package}: pip install bitsandbytes accelerate"
            )
    import transformers

    config = (
        transformers.BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=dtype
        )
        if kind == "4bit"
        else transformers.BitsAndBytesConfig(load_in_8bit=True)
    )
    how = {"quantization_config": config, "device_map": {"": device}}
    return how, f"{plain}+{QUANTISED[kind]}"


def token_budget(net: Any, device: torch.device) -> int:
    """Count the padded tokens (prompt and reply) that a batch may hold.

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


def out_of_memory(error: BaseException) -> bool:
    """Tell whether an error means that memory ran out."""
    if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError):
        return True
    # A CPU and Apple's GPUs raise a plain RuntimeError.
    return "out of memory" in str(error) or "can't allocate memory" in str(error)
