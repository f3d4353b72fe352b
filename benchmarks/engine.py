"""Measure what a run costs beyond the model: genprobe and a bare loop of transformers.

    python benchmarks/engine.py [--prompts 500] [--rounds 3] [--threads 2]

A Llama of about 30 million random weights (float32, CPU) answers built-in statements with 20 new
tokens each, in turn by
  bare     a minimal loop: template, tokenise, pad, `model.generate`, decode
  genprobe the same prompts as a run: plan, folder, engine, every reply stored, judged by `yesno`
  single   the bare loop with batches of one, on a part of the prompts, scaled up
bare and genprobe form the same batches, and their replies are compared. The last column is the
time outside `model.generate`, which other work on the machine disturbs less than the total time.
Exit code 1 if a target is missed: genprobe / bare at most 1.03, single / genprobe at least 5.
"""

from __future__ import annotations

import argparse
import functools
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from genprobe import __version__
from genprobe.datasets import statements
from genprobe.engines import Engine, Options, Sampling
from genprobe.engines.transformers import TransformersEngine, batches
from genprobe.records import Request, Statement
from genprobe.resources import registry
from genprobe.resources.packs import load_pack
from genprobe.runs.run import Run
from genprobe.runs.spec import Spec, statements_hash, versions
from genprobe.tasks.pipeline.generate import generate
from genprobe.tasks.pipeline.judge import judge
from genprobe.tasks.pipeline.plan import plan

NEW_TOKENS = 20  # as in the SHADES study
MOST_OVERHEAD, LEAST_GAIN = 1.03, 5.0
TEMPLATE = (
    "{% for m in messages %}<s>{{ m['role'] }}\n{{ m['content'] }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant\n{% endif %}"
)
PACK = load_pack()
SAMPLING = Sampling(max_tokens=NEW_TOKENS)


def make_tokenizer(texts: Iterable[str]) -> transformers.PreTrainedTokenizerFast:
    """Train a tokenizer of 8,000 tokens, with a chat template, on `texts`."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=8000,
        special_tokens=["<pad>", "</s>", "<s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(texts, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def make_model(folder: Path, texts: Iterable[str]) -> int:
    """Save a random Llama and a tokenizer trained on `texts`; return the number of weights."""
    make_tokenizer(texts).save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=8000,
        hidden_size=512,
        intermediate_size=1536,
        num_hidden_layers=6,
        num_attention_heads=8,
        bos_token_id=2,
        eos_token_id=1,
        pad_token_id=0,
    )
    model = transformers.LlamaForCausalLM(config)
    model.save_pretrained(folder)
    return int(model.num_parameters())


def bare(engine: TransformersEngine, cut: Sequence[Sequence[Request]]) -> dict[str, str]:
    """Generate the replies with a minimal loop: request id -> reply."""
    tokenizer, model = engine.tokenizer, engine.net
    tokenizer.padding_side = "left"
    replies: dict[str, str] = {}
    for batch in cut:
        encoded = tokenizer.apply_chat_template(
            [r.messages for r in batch],
            add_generation_prompt=True,
            padding=True,
            return_tensors="pt",
            return_dict=True,
        )
        with torch.inference_mode():
            out = model.generate(
                input_ids=encoded["input_ids"],
                attention_mask=encoded["attention_mask"],
                max_new_tokens=NEW_TOKENS,
                do_sample=False,
            )
        new = out[:, encoded["input_ids"].shape[1] :]
        texts = tokenizer.batch_decode(new, skip_special_tokens=True)
        replies.update(zip((r.id for r in batch), texts, strict=True))
    return replies


def whole(engine: TransformersEngine, found: Sequence[Statement], folder: Path) -> dict[str, str]:
    """Make a run (plan, ask, judge); return the replies in its folder: request id -> reply."""
    requests = plan(found, PACK, list(PACK.probes), seed=0)
    with Run.start(folder, spec(engine, found), found, requests) as run:
        counts = generate(run, engine, SAMPLING)
        judged = judge(run, [registry.module("judges", "yesno").make()])
        assert counts.done == judged["yesno"] == len(requests), (counts, judged)
        return {response.request: response.text for response in run.responses()}


def spec(engine: Engine, found: Sequence[Statement], samples: int = 1) -> Spec:
    return Spec(
        command="yesno",
        **vars(engine.identity),
        pack=PACK.id,
        pack_hashes=PACK.hashes,
        data="builtin",
        statements=statements_hash(found),
        languages=tuple(sorted({s.lang for s in found})),
        probes=tuple(PACK.probes),
        decode=("free",),
        temperature=SAMPLING.temperature,
        top_p=SAMPLING.top_p,
        max_tokens=SAMPLING.max_tokens,
        seed=0,
        samples=samples,
        limit=None,
        packages=versions(("torch", "transformers")),
        version=__version__,
    )


class Clock:
    """A clock that measures a task, and how much of it is spent in `net.generate`."""

    def __init__(self, net: Any) -> None:
        self.inside = 0.0
        generate = net.generate

        def timed(**kwargs: Any) -> Any:
            begun = time.perf_counter()
            try:
                return generate(**kwargs)
            finally:
                self.inside += time.perf_counter() - begun

        net.generate = timed

    def time(self, task: Callable[[], Any]) -> tuple[float, float, float, Any]:
        """Run a task and return how long it took, and its result.

        The times, in seconds, are wall time, processor time of all threads, and wall time outside
        `generate`.
        """
        self.inside = 0.0
        wall, cpu = time.perf_counter(), time.process_time()
        result = task()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return wall, cpu, wall - self.inside, result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompts", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()

    found, _ = statements.load("builtin")
    few = min(len(found), -(-arguments.prompts // len(PACK.probes)))
    found = random.Random(0).sample(found, few)
    asked = plan(found, PACK, list(PACK.probes), seed=0)
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        size = make_model(home / "model", (r.messages[-1]["content"] for r in asked))
        engine: TransformersEngine = registry.module("engines", "transformers").open(
            str(home / "model"), Options(device="cpu")
        )
        rows = engine.prompts.rows(asked)
        cut = [[row.request for row in b] for b in batches(rows, NEW_TOKENS, engine.budget)]
        lengths = [len(row.ids) for row in rows]
        print(
            f"{size / 1e6:.1f} M weights, {len(asked)} prompts of {min(lengths)} to {max(lengths)}"
            f" tokens in {len(cut)} batches, {NEW_TOKENS} new tokens, {arguments.threads} threads,"
            f" torch {torch.__version__}, transformers {transformers.__version__}"
        )
        return measure(engine, found, asked, cut, arguments.rounds, home)


def measure(
    engine: TransformersEngine,
    found: Sequence[Statement],
    asked: Sequence[Request],
    cut: Sequence[Sequence[Request]],
    rounds: int,
    home: Path,
) -> int:
    few = asked[:: max(1, len(asked) // 25)]
    tasks: dict[str, Callable[[int], Any]] = {
        "bare": lambda n: bare(engine, cut),
        "genprobe": lambda n: whole(engine, found, home / f"run{n}"),
        "single": lambda n: bare(engine, [[r] for r in few]),
    }
    bare(engine, cut[-1:])  # warm up
    whole(engine, found[:1], home / "warm")
    clock = Clock(engine.net)
    times: dict[str, list[tuple[float, ...]]] = {name: [] for name in tasks}
    for n in range(rounds):
        replies = {}
        for name in list(tasks) if n % 2 else list(tasks)[::-1]:
            *seconds, replies[name] = clock.time(functools.partial(tasks[name], n))
            scale = len(asked) / len(few) if name == "single" else 1.0
            times[name].append(tuple(s * scale for s in seconds))
        assert replies["bare"] == replies["genprobe"], "the two sides' replies differ"
        shown = "  ".join(f"{name} {times[name][-1][0]:.2f} s" for name in tasks)
        print(f"round {n + 1}: {shown}", flush=True)

    print(f"\n{'medians':10}{'wall s':>9}{'ms/prompt':>11}{'cpu s':>9}{'outside s':>11}")
    for name, rows in times.items():
        wall, cpu, outside = (statistics.median(column) for column in zip(*rows, strict=True))
        ms = wall / len(asked) * 1000
        print(f"{name:10}{wall:9.2f}{ms:11.1f}{cpu:9.2f}{outside:11.2f}")
    overhead = [a[0] / b[0] for a, b in zip(times["genprobe"], times["bare"], strict=True)]
    gain = [a[0] / b[0] for a, b in zip(times["single"], times["genprobe"], strict=True)]
    print()
    for title, ratios, target in (
        ("genprobe / bare", overhead, f"at most {MOST_OVERHEAD}"),
        ("single / genprobe", gain, f"at least {LEAST_GAIN}"),
    ):
        span = f"{min(ratios):.3f} to {max(ratios):.3f}"
        middle = statistics.median(ratios)
        print(f"{title:18}{middle:7.3f}  ({span} in {rounds} rounds; target: {target})")
    reached = statistics.median(overhead) <= MOST_OVERHEAD and statistics.median(gain) >= LEAST_GAIN
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
