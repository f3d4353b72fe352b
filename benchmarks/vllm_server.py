"""Measure what a run costs beyond a vLLM server: genprobe, a bare loop, Inspect and lm-eval.

    python benchmarks/vllm_server.py --vllm .venv-vllm/bin/python [--prompts 500] [--rounds 3]
        [--inspect PYTHON] [--lm-eval PYTHON]

A real vLLM server with a Llama of about 30 million random weights (float32, no prefix cache)
answers built-in statements with 20 new tokens each, greedy, with 64 requests at a time. Its clients
are, in turn,
  bare      an asyncio loop with httpx and a semaphore, which sends the same bodies
  genprobe  a whole run: plan, folder, engine, every reply stored, judged by `yesno`, read back
and then whole processes, start-up included: `genprobe yesno`, `inspect eval` and `lm_eval`. The
latter two have environments of their own (`pip install inspect_ai==0.3.285 openai`, `pip install
"lm_eval[api]==0.4.13"`); tools that are not given are left out. Exit code 1 if the median of
genprobe / bare is above 1.05, or another tool's process is faster than ours.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import httpx
from engine import NEW_TOKENS, PACK, SAMPLING, make_model, spec

from genprobe.datasets import statements
from genprobe.engines import Options
from genprobe.engines.openai import OpenAIEngine
from genprobe.records import Request, Statement
from genprobe.resources import registry
from genprobe.runs.run import Run
from genprobe.tasks.pipeline.generate import generate
from genprobe.tasks.pipeline.judge import judge
from genprobe.tasks.pipeline.plan import plan

MOST = 1.05
QUESTIONS = 54  # questions about one statement: 18 languages, 3 probes


@contextlib.contextmanager
def serving(python: str, model: Path) -> Iterator[str]:
    """Start a vLLM server with this Python interpreter and yield its address."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    command = [python, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
    command += ["--served-model-name", "bench", "--port", str(port), "--host", "127.0.0.1"]
    command += ["--dtype", "float32", "--max-model-len", "512", "--enforce-eager"]
    command += ["--kv-cache-memory-bytes", "512M", "--no-enable-prefix-caching"]
    environment = {**os.environ, "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1"}
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    environment.setdefault("VLLM_CPU_OMP_THREADS_BIND", cores)
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [*command, "--disable-uvicorn-access-log"],
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            for _ in range(600):
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
                    break
                if process.poll() is not None:
                    log.seek(0)
                    raise SystemExit(
                        f"no vLLM server: {log.read().decode(errors='replace')[-1000:]}"
                    )
                time.sleep(0.25)
            else:
                raise SystemExit("the vLLM server did not answer within 150 s")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


async def bare(url: str, bodies: list[str], most: int) -> list[str]:
    """Return the replies, asked for by a minimal loop."""
    gate = asyncio.Semaphore(most)
    headers = {"Content-Type": "application/json"}
    limits = httpx.Limits(max_connections=most)
    async with httpx.AsyncClient(timeout=600, limits=limits) as client:

        async def one(body: str) -> str:
            async with gate:
                reply = await client.post(f"{url}/chat/completions", content=body, headers=headers)
            return reply.json()["choices"][0]["message"]["content"]  # type: ignore[no-any-return]

        return await asyncio.gather(*map(one, bodies))


def whole(
    engine: OpenAIEngine, found: list[Statement], asked: list[Request], folder: Path
) -> list[str]:
    """Make a run (plan, ask, judge) and return the replies in its folder."""
    requests = plan(found, PACK, list(PACK.probes), 0)
    with Run.start(folder, spec(engine, found), found, requests) as run:
        counts = generate(run, engine, SAMPLING)
        judged = judge(run, [registry.module("judges", "yesno").make()])
        assert counts.done == judged["yesno"] == len(requests), (counts, judged)
        texts = {response.request: response.text for response in run.responses()}
    return [texts[request.id] for request in asked]


def commands(
    arguments: argparse.Namespace, url: str, asked: list[Request], limit: int, home: Path
) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Return name -> (command, environment) of the given tools, which all ask the same."""
    prompts = [{"prompt": r.messages[-1]["content"]} for r in asked]
    (home / "prompts.jsonl").write_text("".join(json.dumps(p) + "\n" for p in prompts))
    ours = [str(Path(sys.executable).with_name("genprobe")), "yesno", "--base-url", url]
    ours += ["--limit", str(limit), "--max-tokens", str(NEW_TOKENS), "--out", "{}", "-q"]
    ours += ["--concurrency", str(arguments.concurrency)]
    found: dict[str, tuple[list[str], dict[str, str]]] = {"genprobe yesno": (ours, {})}
    if arguments.inspect:
        (home / "task.py").write_text(
            "from inspect_ai import Task, task\n"
            "from inspect_ai.dataset import FieldSpec, json_dataset\n"
            "from inspect_ai.solver import generate\n\n"
            "@task\ndef bench():\n"
            f"    data = json_dataset({str(home / 'prompts.jsonl')!r}, FieldSpec(input='prompt'))\n"
            "    return Task(dataset=data, solver=generate())\n"
        )
        theirs = [str(Path(arguments.inspect).with_name("inspect")), "eval", "task.py"]
        theirs += ["--model", "openai-api/bench/bench", "--temperature", "0", "--display", "none"]
        theirs += ["--max-tokens", str(NEW_TOKENS), "--log-dir", "{}"]
        theirs += ["--max-connections", str(arguments.concurrency), "--max-samples"]
        theirs += [str(arguments.concurrency)]
        found["inspect eval"] = (theirs, {"BENCH_API_KEY": "none", "BENCH_BASE_URL": url})
    if arguments.lm_eval:
        tasks = home / "tasks"
        tasks.mkdir()
        (tasks / "bench.yaml").write_text(
            "task: bench\ndataset_path: json\n"
            f"dataset_kwargs:\n  data_files:\n    test: {home / 'prompts.jsonl'}\n"
            "test_split: test\noutput_type: generate_until\ndoc_to_text: '{{prompt}}'\n"
            "doc_to_target: 'yes'\nmetric_list:\n  - metric: exact_match\n"
            f"generation_kwargs:\n  until: ['<none>']\n  max_gen_toks: {NEW_TOKENS}\n"
            "  temperature: 0\n  do_sample: false\n"
        )
        model = f"model=bench,base_url={url}/chat/completions,max_retries=3,"
        model += f"num_concurrent={arguments.concurrency},tokenized_requests=False"
        theirs = [str(Path(arguments.lm_eval).with_name("lm_eval")), "--model"]
        theirs += ["local-chat-completions", "--model_args", model, "--tasks", "bench"]
        theirs += ["--include_path", str(tasks), "--apply_chat_template", "--output_path", "{}"]
        found["lm_eval"] = (theirs, {"OPENAI_API_KEY": "none", "HF_HOME": str(home / "hf")})
    return found


def answered(name: str, command: str, folder: Path) -> int:
    """Count the replies that a tool has stored in its own files."""
    if name == "genprobe yesno":
        with Run.open(folder) as run:
            return sum(1 for response in run.responses() if response.tokens_out)
    if name == "inspect eval":
        (log,) = folder.glob("*.eval")
        found = json.loads(subprocess.check_output([command, "log", "dump", str(log)]))["samples"]
        return sum(1 for sample in found if sample["output"]["choices"] and not sample.get("error"))
    (log,) = folder.rglob("results_*.json")
    return int(json.loads(log.read_text())["n-samples"]["bench"]["effective"])


def version(python: str, package: str) -> str:
    script = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.check_output([python, "-c", script], text=True).strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompts", type=int, default=500)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--vllm", default=sys.executable, help="Python with vLLM")
    parser.add_argument("--inspect", help="Python with inspect_ai")
    parser.add_argument("--lm-eval", help="Python with lm_eval")
    arguments = parser.parse_args()
    limit = -(-arguments.prompts // QUESTIONS)
    every, _ = statements.load("builtin")
    found = [s for code in PACK.wordings for s in [s for s in every if s.lang == code][:limit]]
    asked = plan(found, PACK, list(PACK.probes), 0)
    with tempfile.TemporaryDirectory() as temporary, contextlib.ExitStack() as stack:
        home = Path(temporary)
        size = make_model(home / "model", [r.messages[-1]["content"] for r in asked])
        url = stack.enter_context(serving(arguments.vllm, home / "model"))
        options = Options(base_url=url, concurrency=arguments.concurrency)
        engine: OpenAIEngine = registry.module("engines", "openai").open("", options)
        print(
            f"{size / 1e6:.1f} M weights, {len(asked)} prompts, {NEW_TOKENS} new tokens, "
            f"{arguments.concurrency} in flight, float32, {engine.identity.engine_version}",
            *(f"inspect_ai {version(p, 'inspect_ai')}" for p in [arguments.inspect] if p),
            *(f"lm_eval {version(p, 'lm_eval')}" for p in [arguments.lm_eval] if p),
            sep=", ",
            flush=True,
        )
        bodies = [json.dumps(engine.server.body(r, SAMPLING)) for r in asked]
        asyncio.run(bare(url, bodies[:100], arguments.concurrency))
        whole(engine, found, asked, home / "warm")  # compiles the word lists, which is done once
        ratios = []
        for n in range(arguments.rounds):
            times, replies = {}, {}
            for name in ("bare", "genprobe") if n % 2 else ("genprobe", "bare"):
                begun = time.perf_counter()
                if name == "bare":
                    replies[name] = asyncio.run(bare(url, bodies, arguments.concurrency))
                else:
                    replies[name] = whole(engine, found, asked, home / f"run{n}")
                times[name] = time.perf_counter() - begun
            pairs = zip(replies["bare"], replies["genprobe"], strict=True)
            differ = sum(one != other for one, other in pairs)
            # Random weights give ties, which another batch may break in another way.
            assert differ <= len(asked) / 100, "the two sides' replies differ"
            ratios.append(times["genprobe"] / times["bare"])
            print(
                f"round {n + 1}: bare {times['bare']:.2f} s, genprobe {times['genprobe']:.2f} s, "
                f"ratio {ratios[-1]:.3f}, {differ} replies differ",
                flush=True,
            )
        middle = statistics.median(ratios)
        print(f"genprobe / bare: median {middle:.3f} (target: at most {MOST})\n", flush=True)

        tools = commands(arguments, url, asked, limit, home)
        seconds: dict[str, list[float]] = {name: [] for name in tools}
        for n in range(arguments.rounds):
            for name, (command, more) in list(tools.items())[:: -1 if n % 2 else 1]:
                folder = home / f"{name.split()[0]}{n}"
                words = [word.replace("{}", str(folder)) for word in command]
                begun = time.perf_counter()
                done = subprocess.run(
                    words, env={**os.environ, **more}, cwd=home, capture_output=True, text=True
                )
                seconds[name].append(time.perf_counter() - begun)
                if done.returncode:
                    raise SystemExit(f"{name}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
                # Some tools exit with 0 even if they failed.
                if (got := answered(name, command[0], folder)) != len(asked):
                    raise SystemExit(f"{name}: {got} replies of {len(asked)}")
            row = ", ".join(f"{name} {times[-1]:.1f} s" for name, times in seconds.items())
            print(f"processes, round {n + 1}: {row}", flush=True)
        medians = {name: statistics.median(times) for name, times in seconds.items()}
        own = medians["genprobe yesno"]
        for name, value in medians.items():
            print(f"{name:16}{value:7.1f} s {value / own:6.2f} x genprobe")
    return 0 if middle <= MOST and own <= min(medians.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
