"""Measure what a run costs the client's machine: genprobe, bare loops, Inspect and lm-eval.

    python benchmarks/client.py [--requests 6000] [--concurrency 64] [--rounds 3]
        [--inspect PYTHON] [--lm-eval PYTHON]

A server in a process of its own answers every request at once with "Yes.". These clients ask it in
turn, each in a process of its own, so that its processor time can be measured, start-up included:
  aiohttp   a bare loop of aiohttp, which reads each answer's text and keeps nothing
  httpx     the same with httpx
  genprobe  `genprobe yesno`: plan, folder, every reply stored, judged by all judges, scored
  inspect   `inspect eval` with a solver that generates, and no scorer (`--inspect`)
  lm_eval   `lm_eval` with its own client (`--lm-eval`)
Tools that are not given are left out. Exit code 1 if the median of genprobe's processor time is
more than 4 times that of the aiohttp loop, or Inspect's is less than 20 times genprobe's.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

MOST, LEAST = 4.0, 20.0
ANSWER = json.dumps(
    {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "bench",
        "system_fingerprint": "fp_1",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Yes."},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 40, "completion_tokens": 2, "total_tokens": 42},
    }
).encode()
MODELS = b'{"object": "list", "data": [{"id": "bench", "object": "model"}]}'


class _Answering(asyncio.Protocol):
    """A minimal server of HTTP/1.1 with keep-alive."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self.buffer) < end + 4 + length:
                return
            self.buffer = self.buffer[end + 4 + length :]
            status, body = 200, ANSWER
            if b"/completions" not in head[:80]:
                status, body = (200, MODELS) if b"/models" in head[:80] else (404, b"{}")
            self.transport.write(
                b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                % (status, len(body))
                + body
            )


def serve() -> None:
    """Answer requests until the process is killed; prints the port as the first line."""

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(_Answering, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    asyncio.run(main())


@contextlib.contextmanager
def serving() -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
    finally:
        process.kill()
        process.wait()


def body(n: int) -> bytes:
    text = f"Do you agree with the following statement? Answer yes or no. Neighbours {n} are kind."
    message = {"role": "user", "content": text}
    return json.dumps(
        {"model": "bench", "messages": [message], "max_tokens": 64, "temperature": 0.0, "seed": n}
    ).encode()


async def loop_of_aiohttp(url: str, requests: int, most: int) -> None:
    import aiohttp

    left = iter(range(requests))
    headers = {"Content-Type": "application/json"}
    connector = aiohttp.TCPConnector(limit=most)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def worker() -> None:
            for n in left:
                async with session.post(
                    f"{url}/chat/completions", data=body(n), headers=headers
                ) as reply:
                    found = json.loads(await reply.read())
                    assert found["choices"][0]["message"]["content"]

        await asyncio.gather(*(worker() for _ in range(most)))


async def loop_of_httpx(url: str, requests: int, most: int) -> None:
    import httpx

    left = iter(range(requests))
    headers = {"Content-Type": "application/json"}
    limits = httpx.Limits(max_connections=most)
    async with httpx.AsyncClient(timeout=600, limits=limits) as client:

        async def worker() -> None:
            for n in left:
                reply = await client.post(
                    f"{url}/chat/completions", content=body(n), headers=headers
                )
                assert reply.json()["choices"][0]["message"]["content"]

        await asyncio.gather(*(worker() for _ in range(most)))


def commands(
    arguments: argparse.Namespace, url: str, home: Path
) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Return name -> (command, environment); `{}` in a command stands for a fresh folder."""
    n, most = str(arguments.requests), str(arguments.concurrency)
    own = [sys.executable, __file__, "--requests", n, "--concurrency", most]
    found: dict[str, tuple[list[str], dict[str, str]]] = {
        "aiohttp": ([*own, "--loop", "aiohttp", "--url", url], {}),
        "httpx": ([*own, "--loop", "httpx", "--url", url], {}),
    }
    texts = [f"Neighbours of house {i} are kind." for i in range(-(-arguments.requests // 3))]
    with (home / "statements.jsonl").open("w") as file:
        for i, text in enumerate(texts):
            file.write(json.dumps({"id": f"s{i}", "lang": "en", "text": text}) + "\n")
    script = "from genprobe.commands import main; main()"
    ours = [sys.executable, "-c", script, "yesno", "--base-url", url, "-q"]
    ours += ["--data", str(home / "statements.jsonl"), "--concurrency", most, "--out", "{}"]
    found["genprobe"] = (ours, {})
    prompts = [json.loads(body(i))["messages"][0]["content"] for i in range(arguments.requests)]
    (home / "prompts.jsonl").write_text("".join(json.dumps({"prompt": p}) + "\n" for p in prompts))
    if arguments.inspect:
        (home / "task.py").write_text(
            "from inspect_ai import Task, task\n"
            "from inspect_ai.dataset import FieldSpec, json_dataset\n"
            "from inspect_ai.solver import generate\n\n"
            "@task\ndef bench():\n"
            f"    data = json_dataset({str(home / 'prompts.jsonl')!r}, FieldSpec(input='prompt'))\n"
            "    return Task(dataset=data, solver=generate())\n"
        )
        theirs = [str(Path(arguments.inspect).absolute().with_name("inspect")), "eval", "task.py"]
        theirs += ["--model", "openai-api/bench/bench", "--temperature", "0", "--display", "none"]
        theirs += ["--max-tokens", "64", "--log-dir", "{}", "--max-connections", most]
        theirs += ["--max-samples", most]
        found["inspect"] = (theirs, {"BENCH_API_KEY": "none", "BENCH_BASE_URL": url})
    if arguments.lm_eval:
        tasks = home / "tasks"
        tasks.mkdir()
        (tasks / "bench.yaml").write_text(
            "task: bench\ndataset_path: json\n"
            f"dataset_kwargs:\n  data_files:\n    test: {home / 'prompts.jsonl'}\n"
            "test_split: test\noutput_type: generate_until\ndoc_to_text: '{{prompt}}'\n"
            "doc_to_target: 'yes'\nmetric_list:\n  - metric: exact_match\n"
            "generation_kwargs:\n  until: ['<none>']\n  max_gen_toks: 64\n"
            "  temperature: 0\n  do_sample: false\n"
        )
        model = f"model=bench,base_url={url}/chat/completions,max_retries=3,"
        model += f"num_concurrent={most},tokenized_requests=False"
        theirs = [str(Path(arguments.lm_eval).with_name("lm_eval")), "--model"]
        theirs += ["local-chat-completions", "--model_args", model, "--tasks", "bench"]
        theirs += ["--include_path", str(tasks), "--apply_chat_template", "--output_path", "{}"]
        found["lm_eval"] = (theirs, {"OPENAI_API_KEY": "none", "HF_HOME": str(home / "hf")})
    return found


def measured(
    command: list[str], more: dict[str, str], folder: Path, at: Path | None
) -> tuple[float, float]:
    """Run a command; return its seconds of wall time and of processor time.

    Processes that it starts are included. more: further environment variables. folder: replaces
    `{}`. at: folder in which to run; None for the current one.
    """
    filled = [word.replace("{}", str(folder)) for word in command]
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    there = {**os.environ, **more}
    done = subprocess.run(filled, env=there, cwd=at, capture_output=True, text=True)
    seconds = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{' '.join(filled)}\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, used


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=6000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--inspect", help="Python with inspect_ai")
    parser.add_argument("--lm-eval", help="Python with lm_eval")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--loop", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve()
        return 0
    if arguments.loop:
        loop = {"aiohttp": loop_of_aiohttp, "httpx": loop_of_httpx}[arguments.loop]
        asyncio.run(loop(arguments.url, arguments.requests, arguments.concurrency))
        return 0
    times: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as temporary, serving() as url:
        home = Path(temporary)
        for turn in range(arguments.rounds):
            for name, (command, more) in commands(arguments, url, home).items():
                at = home if name == "inspect" else None  # finds tasks only below its folder
                used = measured(command, more, home / f"{name}-{turn}", at)
                times.setdefault(name, []).append(used)
    medians = {
        n: [statistics.median(c) for c in zip(*rows, strict=True)] for n, rows in times.items()
    }
    print(
        f"{arguments.requests} requests, {arguments.concurrency} in flight, "
        f"median of {arguments.rounds}"
    )
    print(f"{'':10}{'seconds':>9}{'processor':>11}{'ms a reply':>12}{'of aiohttp':>12}")
    for name, (seconds, used) in medians.items():
        each, share = 1000 * used / arguments.requests, used / medians["aiohttp"][1]
        print(f"{name:10}{seconds:9.1f}{used:11.1f}{each:12.2f}{share:12.1f}")
    good = medians["genprobe"][1] <= MOST * medians["aiohttp"][1]
    if "inspect" in medians:
        good &= medians["inspect"][1] >= LEAST * medians["genprobe"][1]
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
