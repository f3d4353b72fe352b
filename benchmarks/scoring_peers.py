"""Score sentences by one implementation, in a process of its own (part of benchmarks/scoring.py).

    PYTHON scoring_peers.py NAME JOB.json

It loads the model, then answers each line of standard input by a line of JSON. `tune`: try batch
sizes and keep the fastest; `go`: score all sentences. It imports nothing of genprobe unless NAME is
`genprobe`, so that it runs in any Python that has the peer's package.
"""

from __future__ import annotations

import difflib
import functools
import json
import math
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}

Score = Callable[[list[str], int], Any]  # (sentences, batch size) -> a value or values for each


def cut(texts: Sequence[str], size: int) -> list[list[str]]:
    return [list(texts[start : start + size]) for start in range(0, len(texts), size)]


def genprobe(job: dict[str, Any]) -> Score:
    """Make genprobe's function, which returns a value for each token."""
    from genprobe.engines import Options, Sampling, scoring
    from genprobe.records import Request

    scorer = scoring.open(
        job["folder"], Options(dtype=job["dtype"], device="cpu", batch_tokens=job["tokens"])
    )

    def score(texts: list[str], size: int) -> Any:
        requests = [
            Request(str(n), "", "en", "text/1", job["pass"], [], 0, 0, "score", {"text": [text]})
            for n, text in enumerate(texts)
        ]
        found = {r.request: r for r in scorer.generate(requests, Sampling())}
        return [found[r.id].continuations[0] for r in requests]  # type: ignore[union-attr]

    return score


def shapes(score: Score, texts: list[str]) -> dict[str, int]:
    """Count genprobe's matrix products for the sentences: shape "rows,in,out" -> their number."""
    from genprobe.engines.scoring._net import Packed

    seen: Counter[str] = Counter()
    plain = Packed.forward

    def counting(self: Any, x: Any) -> Any:
        out = plain(self, x)
        seen[f"{x.numel() // x.shape[-1]},{x.shape[-1]},{out.shape[-1]}"] += 1
        return out

    Packed.forward = counting  # type: ignore[method-assign]
    try:
        score(texts, 0)
    finally:
        Packed.forward = plain  # type: ignore[method-assign]
    return dict(seen)


def bare(job: dict[str, Any]) -> Callable[[dict[str, int]], dict[str, float]]:
    """Make a function that measures the seconds of such products alone, by torch and by oneDNN.

    torch uses its linear layer, oneDNN its packed weights.
    """
    import torch

    from genprobe.engines.scoring._net import Packed

    dtype = getattr(torch, job["dtype"])
    made: dict[tuple[int, int], tuple[Any, Any]] = {}

    def products(seen: dict[str, int]) -> dict[str, float]:
        seconds = {"linear": 0.0, "packed": 0.0}
        for shape, times in seen.items():
            rows, before, after = map(int, shape.split(","))
            if (before, after) not in made:
                weight = torch.randn(after, before, dtype=dtype)
                made[before, after] = weight, Packed(weight, None)
            weight, packed = made[before, after]
            x = torch.randn(rows, before, dtype=dtype)
            ways = {"linear": functools.partial(torch.nn.functional.linear, weight=weight)}
            ways["packed"] = packed
            with torch.inference_mode():
                for name, way in ways.items():
                    begun = time.perf_counter()
                    for _ in range(times):
                        way(x)
                    seconds[name] += time.perf_counter() - begun
        return seconds

    return products


def minicons(job: dict[str, Any]) -> Score:
    from minicons import scorer

    if job["pass"] == "masked":
        masked = scorer.MaskedLMScorer(job["folder"], "cpu")
        return lambda texts, size: [
            values
            for part in cut(texts, size)
            for values in masked.compute_stats(masked.prepare_text(part))
        ]
    net = scorer.IncrementalLMScorer(job["folder"], "cpu")
    # Without a beginning-of-sequence token, minicons cannot score the first token.
    bos = net.tokenizer.bos_token is not None
    return lambda texts, size: [
        values
        for part in cut(texts, size)
        for values in net.compute_stats(net.prepare_text(part, bos_token=bos))
    ]


def lmppl(job: dict[str, Any]) -> Score:
    import lmppl as package

    kind = package.MaskedLM if job["pass"] == "masked" else package.LM
    net = kind(job["folder"])
    return lambda texts, size: [-math.log(p) for p in net.get_perplexity(texts, batch_size=size)]


def lm_eval(job: dict[str, Any]) -> Score:
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    net = HFLM(pretrained=job["folder"], device="cpu", dtype="float32", batch_size=1)

    def score(texts: list[str], size: int) -> Any:
        net.batch_size_per_gpu = size
        asked = [Instance("loglikelihood", {}, ("", text), n) for n, text in enumerate(texts)]
        return [value for value, _ in net.loglikelihood(asked, disable_tqdm=True)]

    return score


def crows_pairs(job: dict[str, Any]) -> Score:
    """Make the algorithm of Nangia et al. 2020 (https://aclanthology.org/2020.emnlp-main.154).

    The tokens that a pair shares are masked in turn, one sentence at a time. The value of a
    sentence is the sum of their log-probabilities. Sentences are given in pairs.
    """
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(job["folder"])
    net = transformers.AutoModelForMaskedLM.from_pretrained(job["folder"]).eval()

    @torch.no_grad()
    def value(ids: list[int], at: int) -> float:
        hidden = torch.tensor([ids])
        hidden[0, at] = tokenizer.mask_token_id
        return float(net(hidden).logits[0, at].log_softmax(-1)[ids[at]])

    def score(texts: list[str], size: int) -> Any:
        found = []
        for one, two in cut(texts, 2):
            ids = [tokenizer(text)["input_ids"] for text in (one, two)]
            for side, places in zip(ids, unmodified(*ids), strict=True):
                found.append(sum(value(side, at) for at in places[1:-1]))
        return found

    return score


def unmodified(one: list[int], two: list[int]) -> tuple[list[int], list[int]]:
    """Return the positions of the tokens that two sentences share, in each of them."""
    same = difflib.SequenceMatcher(None, one, two).get_matching_blocks()
    left = [n for block in same for n in range(block.a, block.a + block.size)]
    right = [n for block in same for n in range(block.b, block.b + block.size)]
    return left, right


def plain(job: dict[str, Any]) -> Score:
    """Make the reference function: the whole model on one row without padding.

    It returns a value for each token.
    """
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(job["folder"])
    kind = "MaskedLM" if job["pass"] == "masked" else "CausalLM"
    net = getattr(transformers, f"AutoModelFor{kind}").from_pretrained(job["folder"]).eval()
    special = tokenizer.bos_token_id
    first = tokenizer.eos_token_id if special is None else special

    @torch.no_grad()
    def one(text: str) -> list[float]:
        if kind == "CausalLM":
            ids = [first, *tokenizer(text, add_special_tokens=False)["input_ids"]]
            logits = net(torch.tensor([ids])).logits[0].double().log_softmax(-1)
            return [float(logits[n - 1, ids[n]]) for n in range(1, len(ids))]
        ids = tokenizer(text)["input_ids"]
        found = []
        for at in range(1, len(ids) - 1):
            hidden = torch.tensor([ids])
            hidden[0, at] = tokenizer.mask_token_id
            found.append(float(net(hidden).logits[0, at].double().log_softmax(-1)[ids[at]]))
        return found

    return lambda texts, size: [one(text) for text in texts]


WAYS: dict[str, Callable[[dict[str, Any]], Score]] = {
    "genprobe": genprobe,
    "minicons": minicons,
    "lmppl": lmppl,
    "lm_eval": lm_eval,
    "crows_pairs": crows_pairs,
    "plain": plain,
}


def main() -> int:
    name, job = sys.argv[1], json.loads(Path(sys.argv[2]).read_text())
    # Keep what packages print apart from the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import torch

    torch.set_num_threads(job["threads"])
    score = WAYS[name](job)
    products = bare(job) if name == "genprobe" else None
    torch.set_num_threads(job["threads"])
    texts, size, seen, peak = job["texts"], 2, {}, 0
    for line in sys.stdin:
        said: dict[str, Any] = {}
        word, _, rest = line.strip().partition(" ")
        if word == "tune":
            few, best = texts[: max(4, len(texts) // 16)], math.inf
            score(few[:2], 1)
            sizes = job["sizes"] if name in ("minicons", "lmppl", "lm_eval") else []
            if (name, job["pass"]) == ("lmppl", "masked"):
                sizes = [1]  # larger batches would pad all texts to the greatest possible length
            for tried in sizes:
                begun = time.perf_counter()
                score(few, tried)
                if time.perf_counter() - begun < best:
                    best, size = time.perf_counter() - begun, tried
            said["size"] = size
        elif word == "go":
            begun = time.perf_counter()
            said["values"] = score(texts, size)
            said["seconds"] = time.perf_counter() - begun
            # The peak of the first time: later ones would include the matrices of `bare`.
            peak = peak or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            said["peak"] = peak
        elif word == "only":
            said["values"] = score([texts[int(n)] for n in rest.split(",")], size)
        elif word == "bare" and products:
            seen = seen or shapes(score, texts)
            said["seconds"] = products(seen)
            said["flops"] = sum(2 * n * math.prod(map(int, s.split(","))) for s, n in seen.items())
        print(json.dumps(said), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
