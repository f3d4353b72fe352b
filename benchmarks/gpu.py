"""Measure what a run costs beyond the model at the size of real models, on a GPU.

    python benchmarks/gpu.py --engine transformers|vllm [--shape 8b] [--device cuda] [--rounds 2]

Random weights of the shape of Llama 3.1 8B (vocabulary 128,256) in bfloat16 answer built-in
statements, in turn by
  bare      a minimal loop. transformers: template, tokenise, pad, `model.generate`, decode; vLLM:
            template, tokenise, `LLM.generate` with equal SamplingParams, decode
  genprobe  the same prompts as a run: plan, folder, engine, every reply stored, judged, read back
in replies of 20 tokens and in replies that think, greedy and drawn (temperature 0.7, top_p 0.9);
then the built-in pairs are scored by log-probability, beside batches of 128 sentences sorted by
length (transformers) or one `LLM.generate` with `prompt_logprobs` (vLLM). bare and genprobe of
transformers form the same batches of replies. The last column is genprobe's tokens a second over
the bare loop's, the median of rounds in which the two take turns to go first. Bare drawn replies of
vLLM are measured without seeds as well, as a seed for each request has its own cost in vLLM.
Exit code 1 if a ratio is below 0.98. `--shape tiny --device cpu` tries the script itself.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from engine import PACK, TEMPLATE, make_tokenizer, spec

from genprobe.datasets import pairs, statements
from genprobe.engines import Options, Sampling, _thinking
from genprobe.engines._local import Prompts
from genprobe.engines.transformers import batches
from genprobe.outcomes import preferences, scorers
from genprobe.records import Request, Statement
from genprobe.resources import registry
from genprobe.runs.run import Run
from genprobe.tasks.pipeline.generate import generate
from genprobe.tasks.pipeline.judge import judge
from genprobe.tasks.pipeline.plan import plan

LEAST = 0.98
SHAPES: dict[str, dict[str, int]] = {
    "8b": {
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
    },
    "tiny": {
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "vocab_size": 16000,
    },
}
SWITCH = "{% if add_generation_prompt and enable_thinking %}<think>\n{% endif %}"
DRAWN = Sampling(0.7, 0.9)


class Work(NamedTuple):
    """What is asked: a title, the engine's settings, and the prompts."""

    title: str
    sampling: Sampling
    thought: int  # tokens for a thought; 0: none
    found: Sequence[Statement]
    samples: int

    def asked(self) -> list[Request]:
        return plan(self.found, PACK, list(PACK.probes), 0, self.samples)


def make_model(folder: Path, shape: str, device: str, texts: Sequence[str]) -> int:
    """Save random weights in bfloat16 and a tokenizer of as many tokens; return their number."""
    tokenizer = make_tokenizer(texts)
    tokenizer.chat_template = TEMPLATE + SWITCH
    tokenizer.save_pretrained(folder)
    words = SHAPES[shape]["vocab_size"]
    path = folder / "tokenizer.json"
    raw = json.loads(path.read_text())
    # Tokens without a merge are never read, but they are written: every token has some text.
    known = raw["model"]["vocab"]
    known |= {f"Ġ{n:x}": n for n in range(len(known), words)}
    path.write_text(json.dumps(raw))
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        **SHAPES[shape],
        max_position_embeddings=8192,
        bos_token_id=2,
        eos_token_id=1,
        pad_token_id=0,
        dtype=torch.bfloat16,
    )
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(device):
            model = transformers.LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(torch.float32)
    model.save_pretrained(folder)
    return int(model.num_parameters())


# --- bare loops ---------------------------------------------------------------------------------


def encoded(engine: Any, asked: Sequence[Request]) -> list[list[int]]:
    texts = [
        engine.tokenizer.apply_chat_template(
            r.messages, add_generation_prompt=True, tokenize=False, **engine.how.kwargs
        )
        for r in asked
    ]
    found: list[list[int]] = engine.tokenizer(texts, add_special_tokens=False)["input_ids"]
    return found


def bare_transformers(engine: Any, work: Work, seeds: bool = True) -> dict[str, list[int]]:
    """Generate the replies with a minimal loop: request id -> new tokens."""
    asked = work.asked()
    new = work.sampling.max_tokens + work.thought
    rows = engine.prompts.rows(asked)
    how = {"temperature": work.sampling.temperature, "top_p": work.sampling.top_p, "top_k": 0}
    replies: dict[str, list[int]] = {}
    engine.tokenizer.padding_side = "left"
    for batch in batches(rows, new, engine.budget):
        padded = engine.tokenizer.pad(
            {"input_ids": encoded(engine, [row.request for row in batch])}, return_tensors="pt"
        ).to(engine.net.device)
        with torch.inference_mode():
            out = engine.net.generate(
                input_ids=padded["input_ids"],
                attention_mask=padded["attention_mask"],
                max_new_tokens=new,
                do_sample=work.sampling.temperature > 0,
                **(how if work.sampling.temperature > 0 else {}),
            )
        ids = out[:, padded["input_ids"].shape[1] :].tolist()
        engine.tokenizer.batch_decode(ids, skip_special_tokens=True)
        replies.update(zip((row.request.id for row in batch), ids, strict=True))
    return replies


def bare_vllm(engine: Any, work: Work, seeds: bool = True) -> dict[str, list[int]]:
    from vllm import SamplingParams

    asked = work.asked()
    params = [
        SamplingParams(
            temperature=work.sampling.temperature,
            top_p=work.sampling.top_p,
            max_tokens=work.sampling.max_tokens + work.thought,
            stop_token_ids=engine.stop_ids,
            seed=r.seed if seeds else None,
            detokenize=False,
        )
        for r in asked
    ]
    prompts = [{"prompt_token_ids": row} for row in encoded(engine, asked)]
    outputs = engine.llm.generate(prompts, params, use_tqdm=False)
    new = [list(o.outputs[0].token_ids) for o in outputs]
    engine.tokenizer.batch_decode(new, skip_special_tokens=True)
    return dict(zip((r.id for r in asked), new, strict=True))


def scored_transformers(scorer: Any, texts: Sequence[str]) -> list[list[float]]:
    """Score texts with a minimal loop: a log-probability for each token."""
    net, tokenizer = scorer.net.net, scorer.texts.tokenizer
    rows = [[tokenizer.bos_token_id, *ids] for ids in tokenizer(list(texts))["input_ids"]]
    order = sorted(range(len(rows)), key=lambda n: len(rows[n]))
    found: dict[int, list[float]] = {}
    for start in range(0, len(order), 128):
        part = order[start : start + 128]
        width = max(len(rows[n]) for n in part)
        ids = torch.tensor([rows[n] + [0] * (width - len(rows[n])) for n in part]).to(net.device)
        mask = torch.tensor([[1] * len(rows[n]) + [0] * (width - len(rows[n])) for n in part])
        with torch.inference_mode():
            out = net(input_ids=ids, attention_mask=mask.to(net.device), use_cache=False)
            every = out.logits[:, :-1].float().log_softmax(-1)
            values = every.gather(-1, ids[:, 1:, None])[..., 0].tolist()
        found |= {n: row[: len(rows[n]) - 1] for n, row in zip(part, values, strict=True)}
    return [found[n] for n in range(len(rows))]


def scored_vllm(scorer: Any, texts: Sequence[str]) -> list[list[float]]:
    from vllm import SamplingParams

    engine = scorer.engine
    first = engine.tokenizer.bos_token_id
    rows = [[first, *ids] for ids in engine.tokenizer(list(texts))["input_ids"]]
    params = SamplingParams(temperature=0.0, max_tokens=1, prompt_logprobs=0, detokenize=False)
    outputs = engine.llm.generate([{"prompt_token_ids": r} for r in rows], params, use_tqdm=False)
    return [
        [float(o.prompt_logprobs[n][row[n]].logprob) for n in range(1, len(row))]
        for row, o in zip(rows, outputs, strict=True)
    ]


# --- whole runs ---------------------------------------------------------------------------------


def whole(engine: Any, work: Work, folder: Path) -> int:
    """Make a run (plan, ask, judge, read back); return the number of tokens in its replies."""
    requests = work.asked()
    told = replace(
        spec(engine, work.found, work.samples),
        temperature=work.sampling.temperature,
        top_p=work.sampling.top_p,
        max_tokens=work.sampling.max_tokens,
    )
    with Run.start(folder, told, work.found, requests) as run:
        counts = generate(run, engine, work.sampling)
        judge(run, [registry.module("judges", "yesno").make()])
        assert counts.done == len(requests), counts
        return sum(response.tokens_out or 0 for response in run.responses())


def whole_scored(scorer: Any, items: Sequence[Statement], folder: Path) -> dict[str, list[float]]:
    """Make a run of scores; return them: request id -> a log-probability for each token."""
    names = scorers.default(scorer.passes, False)
    requests = preferences.requests(items, names, scorer.passes)
    told = replace(spec(scorer, items), command="logprob", probes=tuple(names), decode=("score",))
    with Run.start(folder, told, items, requests) as run:
        counts = generate(run, scorer, Sampling())
        assert counts.done == len(requests), counts
        return {record.request: record.continuations[0]["logprobs"] for record in run.logprobs()}


# --- the table ----------------------------------------------------------------------------------


def in_turn(
    name: str, tasks: dict[str, Callable[[int], int]], rounds: int, reset: Callable[[], object]
) -> float:
    """Time the tasks in turn, each of which returns its tokens; print a line, return the ratio."""
    seconds: dict[str, list[float]] = {task: [] for task in tasks}
    rates: dict[str, list[float]] = {task: [] for task in tasks}
    tokens = {}
    for n in range(rounds):
        for task in list(tasks)[:: -1 if n % 2 else 1]:
            reset()
            begun = time.perf_counter()
            tokens[task] = tasks[task](n)
            seconds[task].append(time.perf_counter() - begun)
            rates[task].append(tokens[task] / seconds[task][-1])
    middle = {task: statistics.median(found) for task, found in rates.items()}
    ratios = [g / b for g, b in zip(rates["genprobe"], rates["bare"], strict=True)]
    ratio = statistics.median(ratios)
    print(
        f"{name:26}{tokens['genprobe']:>9}{statistics.median(seconds['genprobe']):>8.1f}"
        + "".join(f"{middle.get(t, float('nan')):>11,.0f}" for t in ("bare", "genprobe"))
        + f"{ratio:>8.3f}  ({min(ratios):.3f} to {max(ratios):.3f})"
        + (f"  bare without seeds {middle['unseeded']:,.0f}" if "unseeded" in middle else ""),
        flush=True,
    )
    return ratio


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=["transformers", "vllm"], default="transformers")
    parser.add_argument("--shape", choices=list(SHAPES), default="8b")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--prompts", type=int, default=2000, help="prompts of short replies")
    parser.add_argument("--thinking-prompts", type=int, default=120)
    parser.add_argument("--thought", type=int, default=512, help="tokens of a thought")
    parser.add_argument("--sentences", type=int, default=2000, help="sentences to be scored")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--engine-arg", action="append", default=[], help="KEY=JSON, of the engine")
    parser.add_argument("--home", type=Path, help="folder for the model, 16 GB; kept")
    arguments = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as temporary:
        return measure(arguments, arguments.home or Path(temporary), Path(temporary))


def few(every: Sequence[Statement], prompts: int) -> tuple[list[Statement], int]:
    """Choose statements, evenly over the languages, and samples that make about so many prompts."""
    wanted = -(-prompts // len(PACK.probes))
    samples = -(-wanted // len(every))
    wanted = -(-wanted // samples)
    return list(every[:: max(1, len(every) // wanted)])[:wanted], samples


def measure(arguments: argparse.Namespace, home: Path, scratch: Path) -> int:
    every, _ = statements.load("builtin")
    short, thinks = few(every, arguments.prompts), few(every, arguments.thinking_prompts)
    greedy = Sampling(max_tokens=20)
    drawn = replace(DRAWN, max_tokens=20)
    works = [
        Work("20 tokens, greedy", greedy, 0, *short),
        Work("20 tokens, drawn", drawn, 0, *short),
        Work("with a thought, greedy", greedy, arguments.thought, *thinks),
        Work("with a thought, drawn", drawn, arguments.thought, *thinks),
    ]
    begun = time.perf_counter()
    folder = home / f"random-{arguments.shape}"
    if not folder.is_dir():
        prompts = [r.messages[-1]["content"] for r in works[0].asked()]
        make_model(folder, arguments.shape, arguments.device, prompts)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    made = time.perf_counter()
    more = dict(pair.split("=", 1) for pair in arguments.engine_arg)
    options = Options(
        dtype="bfloat16",
        device=arguments.device,
        more={name: json.loads(value) for name, value in more.items()},
    )
    module = registry.module("engines", arguments.engine)
    engine: Any = module.open(str(folder), options)
    card = torch.cuda.get_device_name() if arguments.device == "cuda" else "CPU"
    print(
        f"{card}; {arguments.engine} {engine.identity.engine_version}, torch {torch.__version__}; "
        f"shape {arguments.shape}, bfloat16; model made in {made - begun:.0f} s, loaded in "
        f"{time.perf_counter() - made:.0f} s; {arguments.rounds} rounds\n\n"
        f"{'':26}{'tokens':>9}{'s':>8}{'bare/s':>11}{'genprobe/s':>11}{'ratio':>8}",
        flush=True,
    )
    vllm = arguments.engine == "vllm"
    reset = engine.llm.reset_prefix_cache if vllm else lambda: None
    bare = bare_vllm if vllm else bare_transformers
    ratios = []
    stops = set(engine.stop_ids)
    plain = engine.how

    def written(replies: dict[str, list[int]]) -> int:
        """Count the tokens before the end token, as genprobe does."""
        return sum(
            next((n for n, token in enumerate(ids) if token in stops), len(ids))
            for ids in replies.values()
        )

    for number, work in enumerate(works):
        engine.how = plain
        if work.thought:
            engine.how = _thinking.Told({"enable_thinking": True}, "", "opens", work.thought)
        engine.prompts = Prompts(engine.tokenizer, engine.how.kwargs)
        if not work.thought:  # warm up
            one = work._replace(found=work.found[:8])
            bare(engine, one)
            whole(engine, one, scratch / f"warm{number}")
        tasks: dict[str, Callable[[int], int]] = {
            "bare": lambda n, w=work: written(bare(engine, w)),  # type: ignore[misc]
            "genprobe": lambda n, w=work, k=number: whole(engine, w, scratch / f"{k}-{n}"),  # type: ignore[misc]
        }
        if vllm and work.sampling.temperature:
            tasks["unseeded"] = lambda n, w=work: written(bare(engine, w, False))  # type: ignore[misc]
        ratios.append(in_turn(work.title, tasks, arguments.rounds, reset))
    engine.how = plain
    ratios.append(score(arguments, engine, folder, options, scratch, reset))
    reached = min(ratios) >= LEAST
    print(f"\nlowest ratio {min(ratios):.3f} (target: at least {LEAST})")
    return 0 if reached else 1


def score(
    arguments: argparse.Namespace,
    engine: Any,
    folder: Path,
    options: Options,
    scratch: Path,
    reset: Callable[[], object],
) -> float:
    """Score sentences both ways; print a line and how far the values are apart."""
    items, _ = pairs.load("builtin")
    while len(items) < arguments.sentences:  # the same sentences with another word before them
        items = [*items, *(replace(i, id=f"{i.id}+", text=f"{len(items)} {i.text}") for i in items)]
    items = items[: arguments.sentences]
    texts = [item.text for item in items]
    module = registry.module("engines", arguments.engine)
    if arguments.engine == "vllm":
        scorer = module.VllmScorer(engine)
        bare = scored_vllm
    else:
        engine.close()
        scorer = module.open_scorer(str(folder), options)
        bare = scored_transformers
    last: dict[str, Any] = {}

    def plainly(n: int) -> int:
        last["bare"] = bare(scorer, texts)
        return sum(map(len, last["bare"]))

    def ours(n: int) -> int:
        last["ours"] = whole_scored(scorer, items, scratch / f"scored{n}")
        return sum(map(len, last["ours"].values()))

    bare(scorer, texts[:64])
    whole_scored(scorer, items[:64], scratch / "scored-warm")
    tasks: dict[str, Callable[[int], int]] = {"bare": plainly, "genprobe": ours}
    ratio = in_turn("log-probabilities", tasks, arguments.rounds, reset)
    names = scorers.default(scorer.passes, False)
    order = [r.id for r in preferences.requests(items, names, scorer.passes)]
    apart = [
        abs(a - b)
        for request, row in zip(order, last["bare"], strict=True)
        for a, b in zip(last["ours"][request], row, strict=True)
    ]
    print(f"  of a token they differ by {statistics.median(apart):.4f} (median), {max(apart):.4f}")
    return ratio


if __name__ == "__main__":
    sys.exit(main())
