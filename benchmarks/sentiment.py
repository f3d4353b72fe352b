"""Measure how fast the built-in classifiers score texts, in processor time of one core.

    OMP_NUM_THREADS=1 python benchmarks/sentiment.py [--texts 20000] [--data FILE]
        [--classifier stories] [--lang kk] [--judge]

With --judge, the whole judge reads the texts as stories in the languages of FILE: it cuts off
thoughts and echoes, and also reads each sentence by itself. Texts are generated, or they are the
column `text` or `response` of FILE, repeated until there are enough. If scikit-learn is installed,
its HashingVectorizer (1 to 6 characters) with a logistic regression scores the same texts in turn.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from genprobe import files
from genprobe.judges import Item
from genprobe.judges.classifiers import models
from genprobe.resources import registry


def generated(count: int) -> list[str]:
    draw = random.Random(0)
    letters = "аәбвгғдежзийкқлмнңоөпрстуұүфхһцчшщыіэюя"
    words = ["".join(draw.choices(letters, k=draw.randint(2, 10))) for _ in range(5000)]
    return [" ".join(draw.choices(words, k=draw.randint(2, 16))) for _ in range(count)]


def rate(score: Callable[[list[Any]], Any], texts: list[Any], times: int = 5) -> list[float]:
    rates = []
    for _ in range(times):
        start = time.process_time()
        score(texts)
        rates.append(len(texts) / (time.process_time() - start))
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--classifier", default="kk-linear")
    parser.add_argument("--lang", default="kk")
    parser.add_argument("--judge", action="store_true", help="the whole judge, not its classifier")
    asked = parser.parse_args()
    if asked.judge:
        rows = list(files.read_rows(asked.data))
        items = [Item(str(row["lang"]), "", "", str(row["response"])) for row in rows]
        items = (items * (asked.texts // len(items) + 1))[: asked.texts]
        report("judge", rate(registry.module("judges", "sentiment").make().many, items))
        return
    if asked.data:
        own = [str(row.get("text") or row["response"]) for row in files.read_rows(asked.data)]
        texts = (own * (asked.texts // len(own) + 1))[: asked.texts]
    else:
        texts = generated(asked.texts)
    print(f"{len(texts)} texts of {statistics.mean(map(len, texts)):.0f} characters")
    ours = models.open(asked.classifier)
    report(asked.classifier, rate(lambda part: ours.predict(part, asked.lang), texts))
    try:
        from sklearn.feature_extraction.text import HashingVectorizer
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        print("scikit-learn is not installed")
        return
    hashing = HashingVectorizer(analyzer="char", ngram_range=(1, 6), n_features=2**21)
    model = LogisticRegression(max_iter=5).fit(hashing.transform(texts[:200]), [0, 1] * 100)
    report("scikit-learn", rate(lambda part: model.predict_proba(hashing.transform(part)), texts))


def report(name: str, rates: list[float]) -> None:
    print(
        f"{name:<13} {statistics.median(rates):9,.0f} texts a second "
        f"({min(rates):,.0f} to {max(rates):,.0f})"
    )


if __name__ == "__main__":
    main()
