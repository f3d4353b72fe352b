"""Train KazRoBERTa from scratch, with checkpoints, as Aqbileq did (4.1.2, Appendix C).

    python tools/train_kazroberta.py TEXTS... -o FOLDER [--steps 500000] [--every 25000]

TEXTS are files of one text per line, or JSONL or Parquet with a column `text`, such as the parts of
the Multi-Domain Bilingual Kazakh Dataset (huggingface.co/datasets/kz-transformers/
multidomain-kazakh-dataset) that you have downloaded. Give one part (CC100, news, books), with or
without Russian Wikipedia, for the models of Figures 8, 11 and 12. FOLDER gets `checkpoint-25000`,
`checkpoint-50000` and so on; `genprobe logprob --model FOLDER/checkpoint-25000 --data
aqbileq.csv --scorer ppll` scores each (docs/preferences.md, Checkpoints).

From the paper: byte-level BPE of 52,000 tokens, 512 contiguous tokens that may span documents,
between <s> and </s>; masked words with probability .15, batches of 128; 6 layers, 12 heads; a
checkpoint every 25,000 of 500,000 steps. Not printed, and ours: AdamW at 1e-4, 10,000 steps of
warming up and a linear end (RoBERTa-base of Liu et al. 2019 has 6e-4 for batches of 8,000), width
768, bfloat16 on a GPU. The private conversations of the original model are not to be had.

500,000 steps of 128 x 512 tokens are 3.3e10 tokens: about 1.6e19 operations with 82 million
parameters, some two days of one GPU that does 1e14 a second. `--size tiny` tries the whole way on
a CPU. The same texts and seed give the same tokens and batches; the numbers of a GPU may differ.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import torch
from tokenizers import ByteLevelBPETokenizer
from transformers import RobertaConfig, RobertaForMaskedLM, RobertaTokenizerFast

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
MASKED = 0.15
SIZES = {"base": (768, 6, 12, 52_000, 512), "tiny": (48, 2, 4, 400, 64)}


def texts(paths: list[Path]) -> Iterator[str]:
    """Yield the texts of all files, file by file."""
    for path in paths:
        if path.suffix == ".parquet":
            import pyarrow.parquet as parquet

            for batch in parquet.ParquetFile(path).iter_batches(columns=["text"]):
                yield from (text for text in batch["text"].to_pylist() if text)
        else:
            with path.open(encoding="utf-8") as file:
                for line in filter(str.strip, file):
                    yield json.loads(line)["text"] if path.suffix == ".jsonl" else line.strip()


def tokenizer(paths: list[Path], vocabulary: int, length: int, out: Path) -> RobertaTokenizerFast:
    """Train the tokenizer on the texts, or load the one that an earlier start left in `out`."""
    if not (out / "vocab.json").exists():
        bpe = ByteLevelBPETokenizer()
        bpe.train_from_iterator(texts(paths), vocabulary, special_tokens=SPECIAL)
        out.mkdir(parents=True, exist_ok=True)
        bpe.save_model(str(out))
    return RobertaTokenizerFast.from_pretrained(out, model_max_length=length)


def blocks(paths: list[Path], tokens: RobertaTokenizerFast, length: int) -> Iterator[list[int]]:
    """Yield `length` contiguous tokens at a time, over and over; the end of a file is no end."""
    row: list[int] = []
    while True:
        for text in texts(paths):
            row += tokens(text, truncation=False, verbose=False)["input_ids"]  # with <s> and </s>
            while len(row) >= length:
                yield row[:length]
                row = row[length:]


def mask(rows: torch.Tensor, tokens: RobertaTokenizerFast, draw: torch.Generator) -> torch.Tensor:
    """Mask `rows` in place, and return the labels: of 15 %, 8 in 10 masked, 1 in 10 another."""
    labels = rows.clone()
    special = torch.isin(rows, torch.tensor(tokens.all_special_ids))
    chance = torch.rand(rows.shape, generator=draw)
    chosen = (chance < MASKED) & ~special
    labels[~chosen] = -100
    rows[chosen & (chance < 0.8 * MASKED)] = tokens.mask_token_id
    other = chosen & (chance >= 0.9 * MASKED)
    rows[other] = torch.randint(len(tokens), (int(other.sum()),), generator=draw)
    return labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("-o", "--out", required=True, type=Path)
    parser.add_argument("--steps", type=int, default=500_000)
    parser.add_argument("--every", type=int, default=25_000)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--part", type=int, default=32, help="rows that fit on the device at once")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", choices=SIZES, default="base")
    given = parser.parse_args()
    width, layers, heads, vocabulary, length = SIZES[given.size]
    torch.manual_seed(given.seed)
    draw = torch.Generator().manual_seed(given.seed)
    tokens = tokenizer(given.texts, vocabulary, length, given.out)
    config = RobertaConfig(
        vocab_size=len(tokens),
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        max_position_embeddings=length + 2,
        type_vocab_size=1,
    )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = RobertaForMaskedLM(config).to(device).train()
    adam = torch.optim.AdamW(model.parameters(), 1e-4, (0.9, 0.98), weight_decay=0.01)
    warm = min(10_000, max(1, given.steps // 50))
    rate = torch.optim.lr_scheduler.LambdaLR(
        adam, lambda at: min((at + 1) / warm, (given.steps - at) / max(1, given.steps - warm))
    )
    rows = blocks(given.texts, tokens, length)
    for step in range(1, given.steps + 1):
        batch = torch.tensor(list(islice(rows, given.batch)))
        labels = mask(batch, tokens, draw)
        parts = zip(batch.split(given.part), labels.split(given.part), strict=True)
        total, hidden = 0.0, max(1, int((labels != -100).sum()))
        for some, wanted in parts:
            with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
                logits = model(some.to(device)).logits
            loss = torch.nn.functional.cross_entropy(
                logits.float().flatten(0, 1), wanted.to(device).flatten(), reduction="sum"
            )
            (loss / hidden).backward()
            total += float(loss.detach()) / hidden
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        rate.step()
        adam.zero_grad(set_to_none=True)
        if step % 100 == 0 or step == given.steps:
            print(f"step {step}: loss {total:.3f}", flush=True)
        if step % given.every == 0:
            folder = given.out / f"checkpoint-{step}"
            model.save_pretrained(folder)
            tokens.save_pretrained(folder)


if __name__ == "__main__":
    main()
