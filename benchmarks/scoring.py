"""Measure the time of log-probabilities of CrowS-Pairs: genprobe, other tools, matrix products.

    python benchmarks/scoring.py --data crows_pairs.csv [--shape bert-base]... [--limit 100]
        [--rounds 3] [--threads 2] [--minicons PYTHON] [--lmppl PYTHON] [--lm-eval PYTHON]

The models have random weights in the shapes of BERT-base, XLM-R-base, GPT-2 and Qwen2-0.5B, float32
on a CPU. The first `--limit` pairs are scored. Each implementation is a process of its own, with
the same number of threads, and they score in turn:
  genprobe     `genprobe.engines.scoring` in float32, and in bfloat16
  minicons     (`pip install minicons==0.3.39 "transformers<5"`: its masked scorer needs that too),
               lmppl (`lmppl==0.3.2 "transformers<5"`) and lm-eval (`lm_eval==0.4.13 torch
               transformers`; causal), each with the batch size that is the fastest on the first
               sentences; tools that are not given are left out
  crows_pairs  the published algorithm (masked): tokens that a pair shares, one copy at a time
A ratio compares with the fastest peer of the same round. The lines below the table give: the share
of genprobe's time that its matrix products alone take, by torch and by oneDNN's packed weights (the
limit is 100 %); how many times as fast as the fastest peer these products alone would be by oneDNN,
which is the most that this machine allows unless there are fewer products; the peak memory of a
process, loading included; the largest deviation of each implementation from genprobe and, if it is
more than rounding, the value of the plain model for that sentence. Exit code 1 if a target is
missed.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import transformers
from scoring_peers import unmodified
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

PEERS = Path(__file__).with_name("scoring_peers.py")
ROUNDING = 5e-3  # nats in the sum over a sentence
SHARE = 0.75
# shape -> (kind of model, vocabulary, kind of tokenizer, least ratio in float32 and in bfloat16)
SHAPES: dict[str, tuple[str, int, str, float, float]] = {
    "bert-base": ("masked", 30522, "pieces", 2.3, 8.0),
    "xlmr-base": ("masked", 250002, "unigram", 5.2, 16.0),
    "gpt2": ("causal", 50257, "bytes", 2.0, 4.3),
    "qwen2-0.5b": ("causal", 151936, "bytes", 1.6, 4.0),
}
MEMORY = {"xlmr-base": 3e9}  # bytes


def make_tokenizer(kind: str, shape: str, texts: Sequence[str]) -> Any:
    """Train a tokenizer on the sentences, of the same kind as that of the real model."""
    special: dict[str, str]
    template = ""
    if kind == "bytes":
        special = {"eos_token": "<|endoftext|>", "pad_token": "<|pad|>"}
        if shape == "gpt2":
            special["bos_token"] = "<|endoftext|>"
        raw = Tokenizer(models.BPE())
        raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        raw.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer: Any = trainers.BpeTrainer(
            vocab_size=8000,
            special_tokens=["<|endoftext|>", "<|pad|>"],
            initial_alphabet=alphabet,
            show_progress=False,
        )
    elif kind == "pieces":
        special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]"}
        special |= {"sep_token": "[SEP]", "mask_token": "[MASK]"}
        template = "[CLS] $A [SEP]"
        raw = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        raw.normalizer = normalizers.BertNormalizer(lowercase=True)
        raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        raw.decoder = decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(
            vocab_size=8000, special_tokens=list(special.values()), show_progress=False
        )
    else:
        special = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>"}
        special |= {"unk_token": "<unk>", "mask_token": "<mask>"}
        template = "<s> $A </s>"
        raw = Tokenizer(models.Unigram())
        raw.normalizer = normalizers.NFKC()
        raw.pre_tokenizer = pre_tokenizers.Metaspace()
        raw.decoder = decoders.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=8000,
            special_tokens=list(special.values()),
            unk_token="<unk>",
            show_progress=False,
        )
    raw.train_from_iterator(texts, trainer)
    if template:
        ids = [(token, raw.token_to_id(token)) for token in template.split() if token != "$A"]
        raw.post_processor = processors.TemplateProcessing(single=template, special_tokens=ids)
        first, _, last = template.split()
        special |= {"cls_token": first, "sep_token": last}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=raw, model_max_length=512, **special
    )


def make_model(shape: str, folder: Path, texts: Sequence[str]) -> int:
    """Save random weights of a shape and a tokenizer; return the number of weights."""
    _, words, kind, *_ = SHAPES[shape]
    make_tokenizer(kind, shape, texts).save_pretrained(folder)
    # Replace the class name by one that older versions of transformers know too.
    settings = folder / "tokenizer_config.json"
    named = json.loads(settings.read_text()) | {"tokenizer_class": "PreTrainedTokenizerFast"}
    settings.write_text(json.dumps(named))
    transformers.set_seed(0)
    net: Any
    if shape == "bert-base":
        net = transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=words))
    elif shape == "xlmr-base":
        config = transformers.XLMRobertaConfig(
            vocab_size=words, pad_token_id=1, max_position_embeddings=514, type_vocab_size=1
        )
        net = transformers.XLMRobertaForMaskedLM(config)
    elif shape == "gpt2":
        net = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=words))
    else:
        qwen = transformers.Qwen2Config(
            vocab_size=words,
            hidden_size=896,
            intermediate_size=4864,
            num_hidden_layers=24,
            num_attention_heads=14,
            num_key_value_heads=2,
            tie_word_embeddings=True,
        )
        net = transformers.Qwen2ForCausalLM(qwen)
    net.save_pretrained(folder)
    return int(net.num_parameters())


class Worker:
    """An implementation that runs in a process of its own."""

    def __init__(self, name: str, python: str, home: Path, job: dict[str, Any]) -> None:
        path = home / f"{name}-{job['dtype']}.json"
        path.write_text(json.dumps(job))
        self.log = (home / f"{name}-{job['dtype']}.log").open("w+")
        way = name.removesuffix(" bf16")
        self.process = subprocess.Popen(
            [python, str(PEERS), way, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )

    def ask(self, word: str) -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(word + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())  # type: ignore[no-any-return]
        except (BrokenPipeError, ValueError):
            self.log.seek(0)
            raise RuntimeError(self.log.read()[-1500:]) from None

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.log.close()


def reduced(
    name: str, values: list[Any], ours: list[dict[str, Any]], reading: str = ""
) -> tuple[str, list[float]]:
    """Return which tokens a peer's values are about, and genprobe's values for the same tokens.

    reading: the choice of tokens; "" for the one with which the two agree best.
    """
    if name == "crows_pairs":
        sums = []
        for one, two in zip(ours[::2], ours[1::2], strict=True):
            for side, places in zip(
                (one, two), unmodified(one["tokens"], two["tokens"]), strict=True
            ):
                sums.append(sum(side["logprobs"][n] for n in places))
        return "tokens that a pair shares", sums
    if name == "lmppl":
        readings = {
            "all tokens": [statistics.fmean(o["logprobs"]) for o in ours],
            "without the first token": [statistics.fmean(o["logprobs"][1:] or [0]) for o in ours],
        }
    else:
        readings = {
            "all tokens": [sum(o["logprobs"]) for o in ours],
            "without the first token": [sum(o["logprobs"][1:]) for o in ours],
        }
    theirs = [sum(v) if isinstance(v, list) else v for v in values]
    apart = {k: statistics.median(map(gap, theirs, sums)) for k, sums in readings.items()}
    best = reading or min(apart, key=lambda k: apart[k])
    return best, readings[best]


def gap(one: float, two: float) -> float:
    return abs(one - two)


def compare(
    name: str, values: list[Any], ours: list[dict[str, Any]], texts: list[str], judge: Worker
) -> str:
    """Write a line about how far a peer is from genprobe, and which of them is right."""
    reading, sums = reduced(name, values, ours)
    theirs = [sum(v) if isinstance(v, list) else v for v in values]
    gaps = list(map(gap, theirs, sums))
    most = max(range(len(gaps)), key=lambda n: gaps[n])
    line = f"  {name:14} {reading:26} largest deviation {gaps[most]:.1e}"
    off = sum(g > ROUNDING for g in gaps)
    if not off:
        return line
    line += f", {off} of {len(gaps)} beyond rounding: {texts[most][:60]!r}"
    pair = [most - most % 2, most - most % 2 + 1]
    plain = judge.ask(f"only {pair[0]},{pair[1]}")["values"]
    true = [{**ours[n], "logprobs": plain[i]} for i, n in enumerate(pair)]
    _, right = reduced(name, [values[n] for n in pair], true, reading)
    at = most % 2
    return (
        f"{line}; the plain model says {right[at]:.4f}, genprobe {sums[most]:.4f}, "
        f"{name} {theirs[most]:.4f}"
    )


def flips(ours: list[dict[str, Any]], half: list[dict[str, Any]]) -> str:
    """Write a line that compares bfloat16 with float32: deviations, and preferences that change."""
    full, low = ([sum(o["logprobs"]) for o in found] for found in (ours, half))
    tokens = max(
        gap(a, b)
        for one, two in zip(ours, half, strict=True)
        for a, b in zip(one["logprobs"], two["logprobs"], strict=True)
    )
    pairs = range(0, len(full), 2)
    turned = sum((full[n] > full[n + 1]) != (low[n] > low[n + 1]) for n in pairs)
    return (
        f"  genprobe bf16  largest deviation of a token {tokens:.3f}, of a sentence "
        f"{max(map(gap, full, low)):.3f}; the sign flips in {turned} of {len(pairs)} pairs"
    )


def measure(shape: str, every: list[str], arguments: argparse.Namespace) -> bool:
    """Print the table of a shape; return whether its targets were reached.

    every: the sentences of all pairs.
    """
    texts = every[: 2 * arguments.limit]
    way, _, _, *targets = SHAPES[shape]
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        size = make_model(shape, home / "model", every)
        print(f"\n{shape}: {size / 1e6:.0f} M weights, {len(texts)} sentences, {way}", flush=True)
        job = {"folder": str(home / "model"), "pass": way, "dtype": "float32", "texts": texts}
        job |= {"threads": arguments.threads, "tokens": arguments.batch_tokens}
        job["sizes"] = [1, 4, 16] if way == "masked" else [8, 32, 128]
        pythons = {"genprobe": sys.executable, "genprobe bf16": sys.executable}
        pythons |= {"minicons": arguments.minicons, "lmppl": arguments.lmppl}
        pythons |= {"lm_eval": arguments.lm_eval} if way == "causal" else {}
        pythons |= {"crows_pairs": sys.executable} if way == "masked" else {}
        workers: dict[str, Worker] = {}
        judge = Worker("plain", sys.executable, home, job)
        try:
            for name, python in pythons.items():
                if not python:
                    continue
                kind = "bfloat16" if name.endswith("bf16") else "float32"
                workers[name] = Worker(name, python, home, {**job, "dtype": kind})
                try:
                    tuned = workers[name].ask("tune")
                except RuntimeError as error:
                    print(f"  {name} does not run: {str(error).strip().splitlines()[-1][:150]}")
                    workers.pop(name).close()
                    continue
                if name in ("minicons", "lmppl", "lm_eval"):
                    print(f"  {name}: fastest in batches of {tuned['size']} sentences", flush=True)
            return table(workers, judge, texts, arguments.rounds, shape, targets)
        finally:
            for worker in [*workers.values(), judge]:
                worker.close()


def table(
    workers: dict[str, Worker],
    judge: Worker,
    texts: list[str],
    rounds: int,
    shape: str,
    targets: Sequence[float],
) -> bool:
    seconds: dict[str, list[float]] = {name: [] for name in workers}
    limits: dict[str, list[dict[str, float]]] = {"genprobe": [], "genprobe bf16": []}
    last: dict[str, dict[str, Any]] = {}
    flops: dict[str, float] = {}
    for n in range(rounds):
        for name in list(workers)[:: -1 if n % 2 else 1]:
            last[name] = workers[name].ask("go")
            seconds[name].append(last[name]["seconds"])
            if name in limits:
                alone = workers[name].ask("bare")
                limits[name].append(alone["seconds"])
                flops[name] = alone["flops"]
        print("  " + "  ".join(f"{k} {v[-1]:.2f} s" for k, v in seconds.items()), flush=True)

    peers = [name for name in workers if name not in limits]
    fastest = [min(seconds[name][n] for name in peers) for n in range(rounds)] if peers else []
    print(f"\n  {'median':14}{'s':>8}{'pairs/s':>9}{'GB peak':>9}{'fastest peer /':>16}")
    ratios = {}
    for name, found in seconds.items():
        middle = statistics.median(found)
        row = f"  {name:14}{middle:8.2f}{len(texts) / 2 / middle:9.1f}"
        row += f"{last[name]['peak'] / 1e9:9.2f}"
        if fastest:
            ratios[name] = statistics.median(f / own for f, own in zip(fastest, found, strict=True))
            row += f"{ratios[name]:16.2f}"
        print(row)
    reached = True
    for name, target in zip(limits, targets, strict=True):
        share = {
            kind: statistics.median(
                alone[kind] / own for alone, own in zip(limits[name], seconds[name], strict=True)
            )
            for kind in ("linear", "packed")
        }
        rate = flops[name] / statistics.median(seconds[name]) / 1e9
        print(
            f"  {name}: {flops[name] / 1e12:.2f} Tflop of matrix products, {rate:.0f} Gflop/s; "
            f"alone they take {share['linear']:.0%} of its time by torch, {share['packed']:.0%} by "
            f"oneDNN (target: {SHARE:.0%})"
        )
        reached &= share["linear"] >= SHARE
        if fastest:
            most = statistics.median(
                f / alone["packed"] for f, alone in zip(fastest, limits[name], strict=True)
            )
            print(
                f"  {name}: {ratios[name]:.2f} times the fastest peer (target: {target}); with "
                f"nothing but its products it would be {most:.2f} times"
            )
            reached &= ratios[name] >= target
    if shape in MEMORY:
        peak = last["genprobe"]["peak"]
        print(f"  peak memory {peak / 1e9:.2f} GB (target: at most {MEMORY[shape] / 1e9:.0f})")
        reached &= peak <= MEMORY[shape]
    ours = last["genprobe"]["values"]
    print()
    for name in peers:
        print(compare(name, last[name]["values"], ours, texts, judge))
    print(flips(ours, last["genprobe bf16"]["values"]), flush=True)
    return reached


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="CrowS-Pairs, crows_pairs.csv")
    parser.add_argument("--shape", action="append", choices=list(SHAPES))
    parser.add_argument("--limit", type=int, default=100, help="pairs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch-tokens", type=int)
    parser.add_argument("--minicons", help="Python with minicons")
    parser.add_argument("--lmppl", help="Python with lmppl")
    parser.add_argument("--lm-eval", help="Python with lm_eval")
    arguments = parser.parse_args()
    if not arguments.data.is_file():
        print(f"skipped: no CrowS-Pairs at {arguments.data}")
        return 0
    transformers.utils.logging.disable_progress_bar()
    with arguments.data.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    texts = [row[side] for row in rows for side in ("sent_more", "sent_less")]
    reached = [measure(shape, texts, arguments) for shape in arguments.shape or SHAPES]
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
