"""Masked models: each token of a text given the others, one copy of the text for each.

Copies of all texts are sorted by length into batches, so that hardly any padding is computed; a
copy that both passes need, such as that of a word of one token, is computed once; and the output
layer, and of the last layer before it what it can (`Last`), sees one position of each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from genprobe.errors import EngineError
from genprobe.records import Failure, LogProb
from genprobe.scoring import _net, _texts


class Copy(NamedTuple):
    """A text in which the tokens from start to end are masked; the first of them is scored."""

    ids: tuple[int, ...]  # special tokens included
    start: int
    end: int


class Last(torch.nn.Module):
    """The last layer of BERT and its kin, computed at one position of each row: all others are
    there only to be attended to."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer
        self.at: torch.Tensor | None = None  # (rows,); None: all positions

    def forward(self, hidden: torch.Tensor, mask: Any = None, *rest: Any, **more: Any) -> Any:
        """(rows, length, width) -> (rows, 1, width)"""
        if self.at is None:
            return self.layer(hidden, mask, *rest, **more)
        attention = self.layer.attention
        one = hidden[torch.arange(len(hidden), device=hidden.device), self.at][:, None]
        inner = attention.self
        query, key, value = (
            project(x).unflatten(-1, (inner.num_attention_heads, -1)).transpose(1, 2)
            for project, x in ((inner.query, one), (inner.key, hidden), (inner.value, hidden))
        )
        # What is padding, is that to every position.
        seen = None if mask is None else mask[..., :1, :]
        found = torch.nn.functional.scaled_dot_product_attention(query, key, value, seen)
        found = attention.output(found.transpose(1, 2).flatten(-2), one)
        return self.layer.feed_forward_chunk(found)


class MaskedScorer(_net.Scorer):
    """See `genprobe.scoring.Scorer`."""

    def __init__(self, loaded: _net.Loaded) -> None:
        super().__init__(loaded)
        self.tokenizer = loaded.local.tokenizer
        words = self.tokenizer.is_fast  # others do not say what a word is
        self.passes: tuple[str, ...] = ("masked", "masked-word")[: 1 + words]
        self.first = f"own {self.texts.words(self.texts.prefix)}" if self.texts.prefix else "none"
        self.around = len(self.texts.prefix) + len(self.texts.suffix)
        self.mask_id: int = self.tokenizer.mask_token_id
        if self.mask_id is None:
            raise EngineError(f"{loaded.name}: the tokenizer has no mask token; give it one")
        self.pad_id: int = self.tokenizer.pad_token_id or 0
        dummy = {"input_ids": torch.zeros(1, 1, dtype=torch.long, device=loaded.net.device)}
        self.net = _net.Net(loaded, loaded.net.base_model, **dummy)
        with _net.working(loaded.name):
            self.last = self._try(loaded)

    def _try(self, loaded: _net.Loaded) -> Last | None:
        """The last layer, if it can be computed at one position alone. EngineError for a model
        that cannot be scored at all."""
        mask = [self.mask_id] if self.mask_id < self.net.vocabulary else [0]
        rows = [[*self.texts.prefix, *mask * n, *self.texts.suffix] for n in (5, 2)]
        ids, seen = _net.padded(rows, self.pad_id, self.net.device)
        hidden = self.net.hidden(input_ids=ids, attention_mask=seen)
        whole = loaded.net(input_ids=ids, attention_mask=seen).logits
        self.net.check(whole, hidden)
        at = [len(self.texts.prefix) + 1] * 2
        layers = getattr(getattr(self.net.body, "encoder", None), "layer", None)
        if not layers:
            return None
        plain = layers[-1]
        layers[-1] = last = Last(plain)
        try:
            found = self._hidden(ids, seen, at, last)
            if _net.close(found, hidden[[0, 1], at]):
                return last
        except Exception:
            pass  # another kind of layer
        layers[-1] = plain
        return None

    def close(self) -> None:
        self.last = None
        super().close()

    def score(self, window: Sequence[_texts.Asked]) -> Iterator[LogProb | Failure]:
        copies = [
            [self._copies(item, asked.request.probe) for item in asked.items] for asked in window
        ]
        wanted = list(dict.fromkeys(c for asked in copies for item in asked for c in item))
        found: dict[Copy, float] = {}

        def batches() -> Iterator[Collection[Copy]]:
            for batch in _net.batches([len(copy.ids) for copy in wanted], self.budget):
                chosen = [wanted[n] for n in batch]
                found.update(zip(chosen, self._values(chosen), strict=True))
                yield chosen

        sides = [self.texts.words(ids) for ids in (self.texts.prefix, self.texts.suffix)]
        needs = [[copy for item in items for copy in item] for items in copies]
        for at in _net.as_found(needs, batches()):
            values = [[found[copy] for copy in item] for item in copies[at]]
            sent = f"{sides[0]}{window[at].context}…{sides[1]}"
            yield _texts.record(window[at], sent, self.around, values)

    def _copies(self, item: _texts.Item, probe: str) -> list[Copy]:
        """One copy for each token of the text.

        Words are the tokenizer's own. One of SentencePiece cuts at spaces alone: a Chinese
        sentence is one word to it.
        """
        ids = (*self.texts.prefix, *item.before, *item.ids, *self.texts.suffix)
        start = len(self.texts.prefix) + len(item.before)
        n = len(item.ids)
        ends = list(range(1, n + 1))
        if probe == "masked-word":
            for at in reversed(range(n - 1)):
                if item.words[at] == item.words[at + 1]:
                    ends[at] = ends[at + 1]
        return [Copy(ids, start + at, start + end) for at, end in enumerate(ends)]

    def _values(self, copies: Sequence[Copy]) -> list[float]:
        """log P of the first masked token of each copy."""
        rows = [
            [*c.ids[: c.start], *[self.mask_id] * (c.end - c.start), *c.ids[c.end :]]
            for c in copies
        ]
        starts = [copy.start for copy in copies]
        with _net.working(self.net.name):
            ids, mask = _net.padded(rows, self.pad_id, self.net.device)
            hidden = self._hidden(ids, mask, starts, self.last)
            return [
                value for (value,) in self.net.logprobs(hidden, [[c.ids[c.start]] for c in copies])
            ]

    def _hidden(
        self, ids: torch.Tensor, mask: torch.Tensor, at: Sequence[int], last: Last | None
    ) -> torch.Tensor:
        """(rows, states) of one position of each row."""
        if last is None:
            hidden = self.net.hidden(input_ids=ids, attention_mask=mask)
            return hidden[list(range(len(at))), list(at)]
        last.at = torch.tensor(at, device=ids.device)
        try:
            return self.net.hidden(input_ids=ids, attention_mask=mask)[:, 0]
        finally:
            last.at = None
