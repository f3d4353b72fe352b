"""One real vLLM in this process, and one real vLLM server, on the control model in float32."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from genprobe.datasets import statements
from genprobe.engines import Options
from genprobe.engines.control import MODEL
from genprobe.records import Request
from genprobe.resources import packs
from genprobe.tasks.pipeline.plan import plan as plan_requests

sys.path.insert(0, str(Path(__file__).parents[1]))  # for faulty.py

FLOAT = Options(dtype="float32", device="cpu")


def plan(langs: tuple[str, ...], limit: int, **more: object) -> list[Request]:
    """Requests about the first statements of each language."""
    items, _ = statements.load("builtin", list(langs))
    few = [s for lang in langs for s in [s for s in items if s.lang == lang][:limit]]
    pack = packs.load_pack()
    return list(plan_requests(few, pack, list(pack.probes), 0, **more))  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def control() -> str:
    return str(MODEL)


@pytest.fixture(scope="session")
def transformers_engine(control):
    from genprobe.engines import transformers

    return transformers.open(control, FLOAT)


@pytest.fixture(scope="session")
def vllm_engine(control):
    from genprobe.engines import vllm

    engine = vllm.open(control, FLOAT)
    yield engine
    engine.close()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def serving(model: str, *arguments: str, name: str = "control") -> Iterator[str]:
    """The address of a vLLM server, which is gone afterwards."""
    port = free_port()
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", model]
    command += ["--served-model-name", name, "--port", str(port), "--host", "127.0.0.1"]
    # A prompt in two chunks breaks seeded draws on a CPU, and the server with them.
    command += [
        "--no-enable-chunked-prefill",
        "--enforce-eager",
        "--dtype",
        "float32",
        "--kv-cache-memory-bytes",
        "256M",
    ]
    environment = {
        **os.environ,
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_NO_USAGE_STATS": "1",
        # As on a GPU: no process more for each worker, which would import all of vLLM.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    }
    # A file, not a pipe: a server whose log nobody reads stops at the pipe's 64 KB.
    with tempfile.TemporaryFile() as log:
        # Its own session, so that it and the processes that it starts can be ended together.
        process = subprocess.Popen(
            [*command, *arguments],
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            for _ in range(600):
                if process.poll() is not None:
                    log.seek(0)
                    raise RuntimeError(log.read().decode(errors="replace")[-2000:])
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"{url}/health", timeout=1)
                    break
                time.sleep(0.25)
            yield f"{url}/v1"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="session")
def server(control):
    with serving(control, "--max-model-len", "512") as url:
        yield url
