"""What a run costs beyond vLLM: genprobe beside `LLM.generate` on the same engine.

    python benchmarks/vllm_offline.py [--prompts 500] [--rounds 3]

In an environment with vLLM (`make .venv-vllm/ready`). A Llama of about 30 million random weights
answers built-in statements with 20 new tokens each, greedy, by turns in
  bare      `LLM.generate` of the same token ids with equal SamplingParams, all handed over at once,
            and its texts
  genprobe  a whole run: plan, folder, engine, every reply stored, judged by `yesno`, read back
The replies are compared. The prefix cache is emptied before each turn. Exit code 1 if the median
of genprobe / bare is above 1.03.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from engine import NEW_TOKENS, PACK, SAMPLING, make_model, spec

from genprobe import registry, statements
from genprobe.engines import Options
from genprobe.engines.vllm import VllmEngine
from genprobe.pipeline import generate, judge, plan
from genprobe.records import Request, Statement
from genprobe.store import Run

MOST = 1.03


def bare(engine: VllmEngine, asked: list[Request]) -> dict[str, list[int]]:
    """Request id -> tokens of the reply (and, in vLLM's output, its text), in the least that can
    be written."""
    from vllm import SamplingParams

    prompts = [
        engine.tokenizer.apply_chat_template(r.messages, add_generation_prompt=True, tokenize=False)
        for r in asked
    ]
    ids = engine.tokenizer(prompts, add_special_tokens=False)["input_ids"]
    params = SamplingParams(
        temperature=0.0, max_tokens=NEW_TOKENS, stop_token_ids=engine.stop_ids, seed=0
    )
    outputs = engine.llm.generate(
        [{"prompt_token_ids": row} for row in ids], params, use_tqdm=False
    )
    return {r.id: list(o.outputs[0].token_ids) for r, o in zip(asked, outputs, strict=True)}


def whole(engine: VllmEngine, found: list[Statement], samples: int, folder: Path) -> dict[str, str]:
    """Request id -> reply, out of a run folder that is planned, asked and judged here."""
    requests = plan(found, PACK, list(PACK.probes), 0, samples)
    with Run.start(folder, spec(engine, found, samples), found, requests) as run:
        counts = generate(run, engine, SAMPLING)
        judged = judge(run, [registry.module("judges", "yesno").make()])
        assert counts.done == judged["yesno"] == len(requests), (counts, judged)
        return {response.request: response.text for response in run.responses()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompts", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    every, _ = statements.load("builtin")
    samples = -(-arguments.prompts // (len(every) * len(PACK.probes)))
    found = every[: -(-arguments.prompts // (len(PACK.probes) * samples))]
    asked = plan(found, PACK, list(PACK.probes), 0, samples)
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        size = make_model(home / "model", [r.messages[-1]["content"] for r in asked])
        more = {"max_model_len": 512}
        engine = registry.module("engines", "vllm").open(
            str(home / "model"), Options(dtype="float32", more=more)
        )
        print(
            f"{size / 1e6:.1f} M weights, {len(asked)} prompts, {NEW_TOKENS} new tokens, "
            f"float32, vLLM {engine.identity.engine_version}",
            flush=True,
        )
        bare(engine, asked[:64])
        whole(engine, found, samples, home / "warm")  # the word lists compile once
        ratios = []
        for n in range(arguments.rounds):
            times: dict[str, float] = {}
            replies: dict[str, Any] = {}
            for name in ("bare", "genprobe") if n % 2 else ("genprobe", "bare"):
                engine.llm.reset_prefix_cache()
                begun = time.perf_counter()
                if name == "bare":
                    replies[name] = bare(engine, asked)
                else:
                    replies[name] = whole(engine, found, samples, home / f"run{n}")
                times[name] = time.perf_counter() - begun
            # Random weights write broken characters, which vLLM's own texts drop at the end.
            for name, ids in replies["bare"].items():
                text = engine.tokenizer.decode(ids, skip_special_tokens=True)
                assert text == replies["genprobe"][name], "the two sides' replies differ"
            ratios.append(times["genprobe"] / times["bare"])
            print(
                f"round {n + 1}: bare {times['bare']:.2f} s, genprobe {times['genprobe']:.2f} s, "
                f"ratio {ratios[-1]:.3f}",
                flush=True,
            )
        engine.close()
    middle = statistics.median(ratios)
    print(f"genprobe / bare: median {middle:.3f} (target: at most {MOST})")
    return 0 if middle <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
