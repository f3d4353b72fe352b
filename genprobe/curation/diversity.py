"""Measure how diverse texts are, as in PBBQ (section 3.5, Table 2, Appendix C).

- `self-bleu`: mean over the texts of the BLEU of each text against all others (Zhu et al. 2018,
  Texygen); higher is less diverse. BLEU is sacrebleu's, with its tokens, smoothing and effective
  order.
- `ttr`: type-token ratio of all texts together, all words counted. PBBQ removes stop words first
  and does not say which; any list would take away groups or attributes in one language and not in
  another.
- `ngd-mean`: number of distinct n-grams divided by the number of n-grams in the concatenated texts,
  averaged over n = 1..4 (Padmakumar & He 2023; Meister et al. 2023); `ngd-sum`: the sum of these
  four ratios. PBBQ's formula is the sum, at most 4; the values that it prints, 0.68 to 0.80, are
  means (`genprobe reproduce pbbq` says why).
- `compression-ratio`: size in bytes divided by the compressed size (Shaib et al. 2024); higher is
  less diverse.
- `homogenisation`: mean over pairs of texts of BERTScore F1 (Zhang et al. 2020) under a model that
  the user names; without a model there is no value. PBBQ divides the sum over all ordered pairs by
  |D| - 1 only, which is |D| times the mean; its printed values, 0.39 to 0.64, are means.

All depend on the number and length of the texts, so compare sets of equal size. None has an
interval, because distinct n-grams are not a mean over texts, and resamples repeat texts.
"""

from __future__ import annotations

import random
import unicodedata
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from genprobe.curation import tables
from genprobe.curation.group import folder_of, named
from genprobe.errors import InputError, need_models
from genprobe.files.cells import cell_text
from genprobe.files.rows import Table, rows_of
from genprobe.metrics import Measure, declare
from genprobe.records import JSON, Score
from genprobe.render.scores import Scores
from genprobe.resources.registry import listed
from genprobe.runs.spec import file_signer
from genprobe.text import nfc

VERSION = "1"
ORDER = 4
TEXT = ("text", "sentence", "statement", "attribute")
PAIRS = 2_000  # most pairs of texts for BERTScore; if there are more, this many are drawn
_CHARACTERS = ("zh", "zh-Hant", "ja", "th")  # written without spaces: a character is a token


def run(
    data: Any,
    *,
    by: str | Sequence[str] = (),
    column: str = "",
    lang: str = "",
    model: str = "",
    seed: int = 0,
) -> Scores:
    """Measure the diversity of the texts of a table.

    data: a table with a column of texts. by: columns; each combination of their values is a cell.
    column: the column of texts, if it is not `text`, `sentence` or `statement`. lang: the language
    of all texts, if there is no column `lang`. model: folder or hub id of a BERT model for
    `homogenisation`. seed: for drawing the pairs of that metric. Returns one score per metric and
    cell; empty texts are left out. Raises InputError for a table that cannot be measured.
    """
    source, by = rows_of(data, "data"), listed(by, "by")
    rows = [row for _, row in tables.read(source)]
    there = list(dict.fromkeys(name for row in rows for name in row))
    name = tables.need(
        source, there, (column,) if column else TEXT, "the texts; name another with --column"
    )
    for one in by:
        tables.need(source, there, (one,), "of --by")
    speaks = tables.column(there, ("lang", "language"))
    cells: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for row in rows:
        code = cell_text(row.get(speaks)) if speaks else lang
        if not code:
            raise InputError(f"{source}: no language; give a column 'lang', or --lang")
        cell = tuple(cell_text(row.get(one)) for one in by)
        text = nfc(cell_text(row.get(name)))
        cells.setdefault(cell, []).append((text, tables.language(code)))
    scorer = _Homogeneity(model) if model else None
    scores = []
    for cell, texts in cells.items():
        where = dict(zip(by, cell, strict=True))
        scores += _measure(texts, where, source, scorer, seed)
    return Scores(scores)


def _measure(
    texts: Sequence[tuple[str, str]],
    by: Mapping[str, JSON],
    source: str | Table,
    scorer: _Homogeneity | None,
    seed: int,
) -> list[Score]:
    kept = [(text, lang) for text, lang in texts if text]
    langs = sorted({lang for _, lang in kept})
    tokenised = [tokens(text, lang) for text, lang in kept]
    words = [word for text in tokenised for word in text]
    left = {"empty": len(texts) - len(kept)} if len(texts) > len(kept) else {}
    sign = file_signer([source], {})
    values: dict[str, tuple[float | None, str]] = {}
    bleu, how = self_bleu([text for text, _ in kept], langs)
    values["self-bleu"] = bleu, how
    values["ttr"] = (len(set(words)) / len(words) if words else None), "-all.words"
    ratios = ngram_ratios(tokenised)
    mean = sum(ratios) / ORDER if len(ratios) == ORDER else None
    values["ngd-mean"] = mean, "-1to4"
    values["ngd-sum"] = (None if mean is None else mean * ORDER), "-1to4"
    raw = "\n".join(text for text, _ in kept).encode("utf-8", "replace")
    ratio = len(raw) / len(zlib.compress(raw, 9)) if raw else None
    values["compression-ratio"] = ratio, "-zlib9"
    if scorer is not None:
        hom, pairs = scorer.mean([text for text, _ in kept], seed)
        values["homogenisation"] = hom, f"-{scorer.signature}-pairs{pairs}-s{seed}"
    else:
        values["homogenisation"] = None, "-no.model"
    return [
        Score(
            metric=metric,
            by=dict(by),
            value=value,
            low=None,
            high=None,
            n=0 if how == "-no.model" else len(kept),
            excluded={"no model named": len(kept)} if how == "-no.model" else dict(left),
            bounds=None,
            signature=sign(f"{metric}/{VERSION}{how}"),
        )
        for metric, (value, how) in values.items()
    ]


def tokens(text: str, lang: str) -> list[str]:
    """Split a text into case-folded words; into characters in a language without spaces."""
    folded = nfc(text).casefold()
    if lang in _CHARACTERS:
        return [sign for sign in folded if sign.isalnum()]
    # A combining mark belongs to its letter, but Indic vowel signs are no word characters to `re`.
    return ["".join(part) for part in _words(folded)]


def _words(text: str) -> list[list[str]]:
    found: list[list[str]] = []
    open_ = False
    for at, sign in enumerate(text):
        inner = sign in "'’-\u200c" and open_ and at + 1 < len(text) and text[at + 1].isalnum()
        if sign.isalnum() or unicodedata.category(sign)[0] == "M" or inner or sign == "\u200d":
            if not open_:
                found.append([])
            found[-1].append(sign)
            open_ = True
        else:
            open_ = False
    return found


def ngram_ratios(texts: Sequence[Sequence[str]], order: int = ORDER) -> list[float]:
    """Divide the number of distinct n-grams by the number of n-grams, for n = 1..order.

    texts: tokens of each text; the texts are concatenated. Returns one ratio per n, and none for an
    n that exceeds the number of tokens.
    """
    words = [word for text in texts for word in text]
    found = []
    for n in range(1, order + 1):
        grams = list(zip(*(words[start:] for start in range(n)), strict=False))
        if grams:
            found.append(len(set(grams)) / len(grams))
    return found


def self_bleu(texts: Sequence[str], langs: Sequence[str]) -> tuple[float | None, str]:
    """Compute the mean BLEU, 0 to 1, of each text against all others.

    Each text's BLEU equals sacrebleu's `sentence_score(text, others)`, but the time does not grow
    with the square of the number of texts: the two greatest counts of an n-gram in any text suffice
    to know its greatest count in the others. Returns the value (None for fewer than two texts) and
    its settings. Raises InputError if sacrebleu is not installed.
    """
    try:
        from sacrebleu import __version__ as version
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.helpers import extract_all_word_ngrams
    except ImportError:
        raise InputError("diversity needs sacrebleu; install genprobe[diversity]") from None
    tokenize = "char" if langs and all(lang in _CHARACTERS for lang in langs) else "13a"
    how = f"-sacrebleu{version}-tok.{tokenize}-lc-exp-eff"
    if len(texts) < 2:
        return None, how
    bleu = BLEU(lowercase=True, tokenize=tokenize, effective_order=True, smooth_method="exp")
    grams, lengths = [], []
    for text in texts:
        counts, length = extract_all_word_ngrams(bleu._preprocess_segment(text), 1, ORDER)
        grams.append(counts)
        lengths.append(length)
    top: dict[Any, tuple[int, int]] = {}
    for counts in grams:
        for gram, n in counts.items():
            first, second = top.get(gram, (0, 0))
            top[gram] = (n, first) if n > first else (first, max(second, n))
    by_length = Counter(lengths)
    total = 0.0
    for counts, length in zip(grams, lengths, strict=True):
        correct, sizes = [0] * ORDER, [0] * ORDER
        for gram, n in counts.items():
            first, second = top[gram]
            others = second if n == first else first
            correct[len(gram) - 1] += min(n, others)
            sizes[len(gram) - 1] += n
        near = [one for one, n in by_length.items() if n - (one == length) > 0]
        closest = min(near, key=lambda one: (abs(one - length), one))
        total += BLEU.compute_bleu(
            correct, sizes, length, closest, smooth_method="exp", effective_order=True
        ).score
    return min(1.0, total / len(texts) / 100), how  # rounding errors can exceed 1


class _Homogeneity:
    """BERTScore F1 of pairs of texts.

    Token vectors of the last layer are matched greedily; special tokens are left out, and there are
    no idf weights and no rescaling.
    """

    def __init__(self, model: str) -> None:
        with need_models("BERTScore"):
            import torch
            from transformers import AutoModel, AutoTokenizer

        try:
            folder = folder_of(model)
            self.tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
            self.net = AutoModel.from_pretrained(
                folder, dtype=torch.float32, trust_remote_code=False
            ).eval()
        except (OSError, ValueError) as error:
            reason = (str(error).splitlines() or [""])[0]
            raise InputError(f"{model}: cannot be loaded ({reason})") from None
        config = self.net.config
        self.longest = min(getattr(config, "max_position_embeddings", 512) or 512, 512)
        self.signature = f"bertscore-last-{named(model)}"

    def mean(self, texts: Sequence[str], seed: int) -> tuple[float | None, int]:
        """Return the mean over pairs, and their number: all, or `PAIRS` that are drawn."""
        n = len(texts)
        count = n * (n - 1) // 2
        if not count:
            return None, 0
        chosen: Sequence[int] = range(count)
        if count > PAIRS:
            chosen = sorted(random.Random(seed).sample(range(count), PAIRS))
        pairs = [_pair(at) for at in chosen]
        vectors = {at: self._vectors(texts[at]) for at in sorted({a for p in pairs for a in p})}
        scores = [_f1(vectors[a], vectors[b]) for a, b in pairs]
        return sum(scores) / len(scores), len(scores)

    def _vectors(self, text: str) -> Any:
        import torch

        row = self.tokenizer(
            text,
            return_tensors="pt",
            truncation=True,
            max_length=self.longest,
            return_special_tokens_mask=True,
        )
        special = row.pop("special_tokens_mask")[0].bool()
        row.pop("token_type_ids", None)
        with torch.no_grad():
            states = self.net(**row).last_hidden_state[0]
        kept = states[~special] if (~special).any() else states
        return torch.nn.functional.normalize(kept, dim=-1)


def _pair(at: int) -> tuple[int, int]:
    """Return the pair with a number, in the order (1, 0), (2, 0), (2, 1), (3, 0), …"""
    from math import isqrt

    high = (isqrt(8 * at + 1) + 1) // 2
    return high, at - high * (high - 1) // 2


def _f1(one: Any, other: Any) -> float:
    cosines = one @ other.T
    precision = float(cosines.max(dim=1).values.mean())
    recall = float(cosines.max(dim=0).values.mean())
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


declare(
    Measure("self-bleu", "mean BLEU of each text against all others", "coefficient", "texts"),
    Measure("ttr", "distinct words / all words", "coefficient", "texts"),
    Measure(
        "ngd-mean", "distinct n-grams / all n-grams, mean of n = 1 to 4", "coefficient", "texts"
    ),
    Measure("ngd-sum", "the same, summed, as in PBBQ's formula", "coefficient", "texts"),
    Measure("compression-ratio", "bytes over bytes compressed", "coefficient", "texts"),
    Measure("homogenisation", "mean BERTScore F1 of pairs of texts", "coefficient", "pairs"),
)
