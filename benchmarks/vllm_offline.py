"""Measure what a run costs beyond vLLM: genprobe and `LLM.generate` on the same engine.

    python benchmarks/vllm_offline.py [--prompts 500] [--rounds 3]

It needs an environment with vLLM (`make .venv-vllm/ready`). A Llama of about 30 million random
weights answers built-in statements with 20 new tokens each, greedy, in turn by
  bare      a minimal loop: template, tokenise, `LLM.generate` with equal SamplingParams, all
            prompts at once, and the texts decoded in one batch
  genprobe  a whole run: plan, folder, engine, every reply stored, judged by `yesno`, read back
The replies are compared. The prefix cache is emptied before each turn. The statements are drawn at
random over all languages. `outside` is the time outside the model's passes, which other work on the
machine disturbs less than the total time. Exit code 1 if the median of genprobe / bare is above
1.03.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine import NEW_TOKENS, PACK, SAMPLING, make_model, spec

from genprobe.datasets import statements
from genprobe.engines import Options
from genprobe.engines.vllm import VllmEngine
from genprobe.records import Request, Statement
from genprobe.resources import registry
from genprobe.runs.run import Run
from genprobe.tasks.pipeline.generate import generate
from genprobe.tasks.pipeline.judge import judge
from genprobe.tasks.pipeline.plan import plan

MOST = 1.03


def bare(engine: VllmEngine, asked: list[Request]) -> dict[str, str]:
    """Generate the replies with a minimal loop: request id -> reply."""
    from vllm import SamplingParams

    prompts = [
        engine.tokenizer.apply_chat_template(r.messages, add_generation_prompt=True, tokenize=False)
        for r in asked
    ]
    ids = engine.tokenizer(prompts, add_special_tokens=False)["input_ids"]
    params = [
        SamplingParams(
            temperature=0.0,
            max_tokens=NEW_TOKENS,
            stop_token_ids=engine.stop_ids,
            seed=r.seed,
            detokenize=False,
        )
        for r in asked
    ]
    outputs = engine.llm.generate(
        [{"prompt_token_ids": row} for row in ids], params, use_tqdm=False
    )
    new = [list(o.outputs[0].token_ids) for o in outputs]
    texts = engine.tokenizer.batch_decode(new, skip_special_tokens=True)
    return dict(zip((r.id for r in asked), texts, strict=True))


def whole(engine: VllmEngine, found: list[Statement], samples: int, folder: Path) -> dict[str, str]:
    """Make a run (plan, ask, judge); return the replies in its folder: request id -> reply."""
    requests = plan(found, PACK, list(PACK.probes), 0, samples)
    with Run.start(folder, spec(engine, found, samples), found, requests) as run:
        counts = generate(run, engine, SAMPLING)
        judged = judge(run, [registry.module("judges", "yesno").make()])
        assert counts.done == judged["yesno"] == len(requests), (counts, judged)
        return {response.request: response.text for response in run.responses()}


class Passes:
    """A counter of the seconds that an engine spends in the model's passes."""

    def __init__(self, engine: VllmEngine) -> None:
        self.inside = 0.0
        executor = engine.llm.llm_engine.engine_core.engine_core.model_executor
        for name in ("execute_model", "sample_tokens"):
            setattr(executor, name, self._counted(getattr(executor, name)))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            begun = time.perf_counter()
            try:
                return call(*args, **kwargs)
            finally:
                self.inside += time.perf_counter() - begun

        return counted


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompts", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    every, _ = statements.load("builtin")
    samples = -(-arguments.prompts // (len(every) * len(PACK.probes)))
    random.Random(0).shuffle(every)
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
        whole(engine, found, samples, home / "warm")  # compiles the word lists, which is done once
        passes = Passes(engine)
        ratios = []
        outside: dict[str, list[float]] = {"bare": [], "genprobe": []}
        for n in range(arguments.rounds):
            times: dict[str, float] = {}
            replies: dict[str, dict[str, str]] = {}
            for name in ("bare", "genprobe") if n % 2 else ("genprobe", "bare"):
                engine.llm.reset_prefix_cache()
                passes.inside = 0.0
                begun = time.perf_counter()
                if name == "bare":
                    replies[name] = bare(engine, asked)
                else:
                    replies[name] = whole(engine, found, samples, home / f"run{n}")
                times[name] = time.perf_counter() - begun
                outside[name].append(times[name] - passes.inside)
            assert replies["bare"] == replies["genprobe"], "the two sides' replies differ"
            ratios.append(times["genprobe"] / times["bare"])
            print(
                f"round {n + 1}: bare {times['bare']:.2f} s, genprobe {times['genprobe']:.2f} s, "
                f"ratio {ratios[-1]:.3f}",
                flush=True,
            )
        engine.close()
    middle = statistics.median(ratios)
    print(
        "outside the model, medians: "
        + ", ".join(f"{name} {statistics.median(t):.2f} s" for name, t in outside.items())
    )
    print(f"genprobe / bare: median {middle:.3f} (target: at most {MOST})")
    return 0 if middle <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
