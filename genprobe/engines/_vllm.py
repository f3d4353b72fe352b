"""Code shared by engines that run vLLM: its arguments, sampling parameters and errors."""

from __future__ import annotations

import dataclasses
import difflib
import importlib.util
import os
from collections.abc import Collection, Sequence
from typing import Any

from genprobe.engines import Options, Sampling
from genprobe.engines._local import Form, Row, line, reply
from genprobe.errors import EngineError
from genprobe.records import Failure, Response

# Arguments that change how memory is used, but not the replies.
PLACE_ONLY = ("gpu_memory_utilization", "kv_cache_memory_bytes", "swap_space", "cpu_offload_gb")
# On a CPU: bytes for keys and values, because vLLM by default takes nearly all memory. Prompts are
# not split into chunks, because that breaks seeded sampling ("CPU Generator does not use offset").
CPU_CACHE = 1 << 30
ON_CPU: dict[str, Any] = {"enforce_eager": True, "enable_chunked_prefill": False}

# SamplingParams that are the same for all requests, so that no default of vLLM or a model counts.
NEUTRAL: dict[str, Any] = {
    "n": 1,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "seed": None,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "repetition_penalty": 1.0,
    "min_tokens": 0,
    "stop_token_ids": [],
    "logprob_token_ids": None,
    "structured_outputs": None,
    "ignore_eos": False,
    "detokenize": False,
    "skip_special_tokens": True,
}


# Arguments of EngineArgs that nobody else gives. A model's own code is never run.
SET = ("model", "tokenizer", "revision", "generation_config", "trust_remote_code")


def arguments(options: Options, own: Collection[str] = ()) -> dict[str, Any]:
    """Collect the arguments of vLLM's EngineArgs, with those of `Options.more` except `own`.

    Raises EngineError if vLLM is not installed or does not know an argument.
    """
    if importlib.util.find_spec("vllm") is None:
        raise EngineError(
            "vLLM is not installed; `pip install 'genprobe[vllm]'` (on a CPU: docs/engines.md), "
            "or use --engine transformers"
        )
    if options.batch_tokens is not None:
        raise EngineError("batch_tokens is for transformers; vLLM has max_num_batched_tokens")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    try:
        from vllm.engine.arg_utils import EngineArgs
    except Exception as error:  # for example, a CUDA library that is missing or of another version
        raise EngineError(f"vLLM is installed and cannot be imported ({line(error)})") from error

    known = {f.name for f in dataclasses.fields(EngineArgs)}
    given = {name: value for name, value in options.more.items() if name not in own}
    for name in given:
        if name in SET:
            raise EngineError(f"vLLM's {name!r} is no engine argument here: genprobe sets it")
        if name not in known:
            near = difflib.get_close_matches(name, [*known, *own], n=1)
            hint = f"did you mean {near[0]!r}?" if near else "see EngineArgs in vLLM's manual"
            raise EngineError(f"vLLM has no engine argument {name!r}; {hint}")
    ours: dict[str, Any] = {
        "generation_config": "vllm",  # not the model's own penalties and temperatures
        "disable_log_stats": True,
        "seed": 0,
    }
    return {**ours, **({"dtype": options.dtype} if options.dtype else {}), **given}


def built_for_cpu(device: str | None) -> bool:
    """Return whether this vLLM is built for a CPU. Raises EngineError if `device` is another."""
    from vllm.platforms import current_platform

    cpu: bool = current_platform.is_cpu()
    if device not in (None, "cpu" if cpu else "cuda"):
        raise EngineError(
            f"device {device!r}: vLLM is built for {'a CPU' if cpu else 'GPUs'} here; "
            "leave the device out"
        )
    return cpu


def saying(
    row: Row, forms: Sequence[Form], sampling: Sampling, stop_ids: list[int]
) -> dict[str, Any]:
    """Make the SamplingParams of a free reply or, with forms, of one of the request's options."""
    params = {
        **NEUTRAL,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p if sampling.temperature else 1.0,
        "max_tokens": sampling.max_tokens,
        "seed": row.request.seed,
        "stop_token_ids": list(stop_ids),
    }
    if forms:
        texts = [text for options in row.request.options.values() for text in options]
        # vLLM allows any tokens that spell an option: one per byte at most, and the end token.
        params["max_tokens"] = max(len(t.encode("utf-8")) for t in texts) + 1
        params["structured_outputs"] = {"choice": texts}
    return params


def reading(follow: list[int]) -> dict[str, Any]:
    """Make SamplingParams that return the log-probabilities of the tokens after a prompt."""
    return {**NEUTRAL, "temperature": 0.0, "max_tokens": 1, "logprob_token_ids": follow}


def said(
    tokenizer: Any,
    row: Row,
    ids: list[int],
    finish: str | None,
    stop_ids: list[int],
    marks: frozenset[int] = frozenset(),
) -> Response | Failure:
    """Turn vLLM's answer into a record. finish: why it ended, in vLLM's words."""
    if finish not in ("stop", "length"):
        return Failure(row.request.id, "engine", f"vLLM ended it with {finish!r}", 1)
    record = reply(tokenizer, row, ids, stop_ids, marks)
    options = row.request.options.values()
    if row.request.decode == "choice" and all(record.text not in texts for texts in options):
        detail = f"the reply is no option: {record.text[:80]!r}"
        return Failure(row.request.id, "unconstrained", detail, 1)
    return record


def chain(error: BaseException) -> list[BaseException]:
    """List an exception and its causes, the deepest last."""
    found = [error]
    while (deeper := found[-1].__cause__ or found[-1].__context__) and deeper not in found:
        found.append(deeper)
    return found


_TOO_BIG = ("out of memory", "free memory on device", "cannot allocate memory", "than desired")
_NO_CACHE = ("cache blocks", "kv cache", "enough gpu memory")


def memory(words: str) -> str:
    """Return a line that explains that vLLM ran out of memory, if `words` say so; else ""."""
    low = words.lower()
    if any(word in low for word in _TOO_BIG):
        return (
            "does not fit into memory; free some, or give --engine-arg gpu_memory_utilization=0.8, "
            "a smaller max_model_len, or tensor_parallel_size for several GPUs"
        )
    if any(word in low for word in _NO_CACHE):
        return (
            "no memory is left for keys and values; give --engine-arg max_model_len=2048, or more "
            "by gpu_memory_utilization or kv_cache_memory_bytes"
        )
    return ""
