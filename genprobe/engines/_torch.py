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
    """Find a number format by name; None: the best one for the device."""
    if name is not None:
        if name not in DTYPES:
            raise EngineError(f"unknown dtype {name!r}; known: {', '.join(DTYPES)}")
        return DTYPES[name]
    if device.type == "cuda":
        # Older cards emulate bfloat16, slowly.
        modern = torch.cuda.get_device_capability(device) >= (8, 0)
        return torch.bfloat16 if modern else torch.float16
    return torch.float16 if device.type == "mps" else torch.float32


# Engine argument -> name of the number format in a run: 4-bit NormalFloat, 8-bit integers.
QUANTISED = {"4bit": "nf4", "8bit": "int8"}


def quantised(
    given: Mapping[str, Any], dtype: torch.dtype, device: torch.device
) -> tuple[dict[str, Any], str]:
    """Return the arguments that load weights in 4 or 8 bits (bitsandbytes), and the format's name.

    given: the engine's own arguments; `quantization` is 4bit or 8bit. Without it there are no
    arguments and the name is that of `dtype`. Computations use `dtype` in any case. Raises
    EngineError for another value, or if the packages are not installed.
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
    """Estimate how many padded tokens (prompt and reply) fit into a batch.

    On a GPU, a batch may use half of the memory that is free after the model is loaded. A batch
    that still runs out of memory is halved.
    """
    if device.type != "cuda":
        return CPU_TOKENS
    config = net.config.get_text_config()
    layers, width = config.num_hidden_layers, config.hidden_size
    # Bytes per token: keys and values (as if every head had its own), activations of one layer,
    # and a share of the float32 logits and noise (40 bytes per logit, for one token in 40).
    per_token = net.dtype.itemsize * width * (2 * layers + 24) + config.vocab_size
    free, _ = torch.cuda.mem_get_info(device)
    return max(1, min(GPU_TOKENS, free // 2 // per_token))


def out_of_memory(error: BaseException) -> bool:
    """Tell whether an error means that memory ran out."""
    if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError):
        return True
    # On a CPU and on Apple's GPUs the error is a plain RuntimeError.
    return "out of memory" in str(error) or "can't allocate memory" in str(error)
