"""Masked models: score each token of a text given the others, with one masked copy per token.

To save time:
- copies of all texts are sorted by length into batches, so that there is little padding;
- a copy that both passes need, such as that of a word of one token, is computed once;
- the output layer and most of the last layer (`Last`) are computed at one position per copy;
- the input of the first layer's attention (`Once`) is computed once where copies share it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from genprobe.engines.scoring import _net, _texts
from genprobe.errors import EngineError
from genprobe.records import Failure, LogProb

SHORT = 48  # tokens of a text; for longer ones torch's own attention is faster


class Copy(NamedTuple):
    """A text in which the tokens from start to end are masked; the first of them is scored."""

    ids: tuple[int, ...]  # special tokens included
    start: int
    end: int


class Last(torch.nn.Module):
    """The last layer of models like BERT, computed at one position of each row.

    The other positions serve only as keys and values of its attention.
    """

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer
        self.at: torch.Tensor | None = None  # (rows,); None: all positions

    def forward(self, hidden: torch.Tensor, mask: Any = None, *rest: Any, **more: Any) -> Any:
        """Map (rows, length, width) to (rows, 1, width)."""
        if self.at is None:
            return self.layer(hidden, mask, *rest, **more)
        attention = self.layer.attention
        one = hidden[torch.arange(len(hidden), device=hidden.device), self.at][:, None]
        inner = attention.self
        query, key, value = (
            project(x).unflatten(-1, (inner.num_attention_heads, -1)).transpose(1, 2)
            for project, x in ((inner.query, one), (inner.key, hidden), (inner.value, hidden))
        )
        # All positions have the same mask: only padding is hidden.
        seen = None if mask is None else mask[..., :1, :]
        found = torch.nn.functional.scaled_dot_product_attention(query, key, value, seen)
        found = attention.output(found.transpose(1, 2).flatten(-2), one)
        return self.layer.feed_forward_chunk(found)


class Once(torch.nn.Module):
    """A linear layer, computed once for inputs that occur in several rows.

    The first layer's input depends only on a token and its position, and copies of a text differ
    only where they are masked.
    """

    def __init__(self, linear: torch.nn.Module) -> None:
        super().__init__()
        self.linear = linear
        # (distinct,) where each distinct input occurs first; (tokens,) which one each token is.
        self.tokens: tuple[torch.Tensor, torch.Tensor] | None = None

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Map (rows, length, width) to (rows, length, out)."""
        if self.tokens is None:
            return self.linear(hidden)
        first, which = self.tokens
        out: torch.Tensor = self.linear(hidden.flatten(0, 1)[first])
        return out[which].unflatten(0, hidden.shape[:2])


def attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    **more: Any,
) -> tuple[torch.Tensor, None]:
    """Compute the attention of many short texts on a CPU, all at once.

    torch's own computes a small product for each text and head, and its softmax over a row of 20
    numbers takes longer than both products; here the softmax runs over all texts together.

    query, key, value: (rows, heads, length, width). mask: bool, True where a token is seen, or
    numbers to add to the scores. Returns (rows, length, heads, width), as transformers expects.
    """
    rows, heads, length, width = query.shape
    alike = query.shape == key.shape == value.shape
    if not alike or length > SHORT or more.get("position_bias") is not None:
        return sdpa_attention_forward(module, query, key, value, mask, **more)
    query, key, value = (x.reshape(-1, length, width) for x in (query, key, value))
    scores = torch.bmm(query, key.transpose(1, 2)).permute(1, 2, 0).contiguous()
    scores *= more.get("scaling") or width**-0.5
    if mask is not None:
        seen = mask.expand(rows, -1, length, length).permute(2, 3, 0, 1)
        by_head = scores.view(length, length, rows, heads)
        if mask.dtype == torch.bool:
            by_head.masked_fill_(~seen, torch.finfo(scores.dtype).min)
        else:
            by_head += seen
    shares = scores.softmax(1).permute(2, 0, 1).contiguous()
    found = torch.bmm(shares, value).view(rows, heads, length, width)
    return found.transpose(1, 2).contiguous(), None


AttentionInterface.register("short", attention)
AttentionMaskInterface.register("short", sdpa_mask)


class MaskedScorer(_net.Scorer):
    """The scorer of masked models: see `genprobe.engines.scoring.Scorer`."""

    def __init__(self, loaded: _net.Loaded) -> None:
        super().__init__(loaded)
        self.tokenizer = loaded.local.tokenizer
        words = self.tokenizer.is_fast  # other tokenizers do not say which tokens make up a word
        self.passes: tuple[str, ...] = ("masked", "masked-word")[: 1 + words]
        self.first = f"own {self.texts.words(self.texts.prefix)}" if self.texts.prefix else "none"
        self.around = len(self.texts.prefix) + len(self.texts.suffix)
        self.mask_id: int = self.tokenizer.mask_token_id
        if self.mask_id is None:
            raise EngineError(f"{loaded.name}: the tokenizer has no mask token; give it one")
        self.pad_id: int = self.tokenizer.pad_token_id or 0
        dummy = {"input_ids": torch.zeros(1, 1, dtype=torch.long, device=loaded.net.device)}
        self.net = _net.Net(loaded, loaded.net.base_model, **dummy)
        self.last: Last | None = None
        self.once: list[Once] = []
        self.pads = True  # False: the model sees padding (ConvBERT does), so it gets none
        with _net.working(loaded.name):
            self._try(loaded)

    def _try(self, loaded: _net.Loaded) -> None:
        """Use the faster layers (`Last`, `Once`, `attention`) if they give the same values.

        Raises EngineError if the model cannot be scored at all.
        """
        mask = [self.mask_id] if self.mask_id < self.net.vocabulary else [0]
        rows = [[*self.texts.prefix, *mask * n, *self.texts.suffix] for n in (5, 2)]
        ids, seen = _net.padded(rows, self.pad_id, self.net.device)
        hidden = self.net.hidden(input_ids=ids, attention_mask=seen)
        whole = loaded.net(input_ids=ids, attention_mask=seen).logits
        self.net.check(whole, hidden)
        n = len(rows[1])
        alone = self.net.hidden(input_ids=ids[1:, :n], attention_mask=seen[1:, :n])
        self.pads = _net.close(hidden[1:, :n], alone)
        at = [len(self.texts.prefix) + 1] * 2
        layers = getattr(getattr(self.net.body, "encoder", None), "layer", None)
        if not layers:
            return
        plain = layers[-1]
        layers[-1] = self.last = Last(plain)
        kind = loaded.net.config._attn_implementation
        try:
            if kind == "sdpa" and self.net.device.type == "cpu":
                loaded.net.set_attn_implementation("short")
            if len(layers) > 1:
                inner = layers[0].attention.self
                for name in ("query", "key", "value"):
                    self.once.append(Once(getattr(inner, name)))
                    setattr(inner, name, self.once[-1])
            if _net.close(self._hidden(ids, seen, at), hidden[[0, 1], at]):
                return
        except Exception:
            pass  # another kind of layer
        for name, once in zip(("query", "key", "value"), self.once, strict=False):
            setattr(layers[0].attention.self, name, once.linear)
        layers[-1], self.last, self.once = plain, None, []
        loaded.net.set_attn_implementation(kind)

    def unusable(self, asked: _texts.Asked) -> Failure | None:
        # A mask token written in a text hides nothing, and RoBERTa gives padding no position.
        hidden = {self.mask_id, self.tokenizer.pad_token_id}
        for item in asked.items:
            if own := hidden.intersection(item.before + item.ids):
                detail = (
                    f"the text holds {self.texts.words([*own][:1])}, a token of the model's own"
                )
                return Failure(asked.request.id, "unscorable", detail, 1)
        return super().unusable(asked)

    def close(self) -> None:
        self.last, self.once = None, []
        super().close()

    def score(self, window: Sequence[_texts.Asked]) -> Iterator[LogProb | Failure]:
        copies = [
            [self._copies(item, asked.request.probe) for item in asked.items] for asked in window
        ]
        wanted = list(dict.fromkeys(c for asked in copies for item in asked for c in item))
        found: dict[Copy, float] = {}

        def batches() -> Iterator[Collection[Copy]]:
            # The output layer takes as long for 50 positions of 250,000 words as for 64.
            waiting: list[tuple[Copy, torch.Tensor]] = []
            left = len(wanted)
            for batch in _net.batches([len(copy.ids) for copy in wanted], self.budget, self.pads):
                chosen = [wanted[n] for n in batch]
                waiting += zip(chosen, self._states(chosen), strict=True)
                left -= len(chosen)
                while len(waiting) >= (self.net.rows if left else 1):
                    some, waiting = waiting[: self.net.rows], waiting[self.net.rows :]
                    values = self._values(some)
                    found.update(values)
                    yield values

        sides = [self.texts.words(ids) for ids in (self.texts.prefix, self.texts.suffix)]
        needs = [[copy for item in items for copy in item] for items in copies]
        for at in _net.as_found(needs, batches()):
            values = [[found[copy] for copy in item] for item in copies[at]]
            sent = f"{sides[0]}{window[at].context}…{sides[1]}"
            yield _texts.record(window[at], sent, self.around, values)

    def _copies(self, item: _texts.Item, probe: str) -> list[Copy]:
        """Make one copy for each token of the text.

        Words are those of the tokenizer. SentencePiece splits only at spaces, so that a Chinese
        sentence is one word.
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

    def _values(self, copies: Sequence[tuple[Copy, torch.Tensor]]) -> dict[Copy, float]:
        """Compute natural log P of each copy's first masked token, from its hidden state."""
        with _net.working(self.net.name):
            hidden = torch.stack([state for _, state in copies])
            values = self.net.logprobs(hidden, [[c.ids[c.start]] for c, _ in copies])
        return {copy: value for (copy, _), (value,) in zip(copies, values, strict=True)}

    def _states(self, copies: Sequence[Copy]) -> torch.Tensor:
        """Compute the hidden state at each copy's first masked token, (copies, width)."""
        rows = [
            [*c.ids[: c.start], *[self.mask_id] * (c.end - c.start), *c.ids[c.end :]]
            for c in copies
        ]
        with _net.working(self.net.name):
            ids, mask = _net.padded(rows, self.pad_id, self.net.device)
            return self._hidden(ids, mask, [copy.start for copy in copies])

    def _hidden(self, ids: torch.Tensor, mask: torch.Tensor, at: Sequence[int]) -> torch.Tensor:
        """Compute the hidden states at one position of each row, (rows, width)."""
        if self.last is None:
            hidden = self.net.hidden(input_ids=ids, attention_mask=mask)
            return hidden[list(range(len(at))), list(at)]
        self.last.at = torch.tensor(at, device=ids.device)
        tokens = _different(ids)
        for once in self.once:
            once.tokens = tokens
        try:
            return self.net.hidden(input_ids=ids, attention_mask=mask)[:, 0]
        finally:
            self.last.at = None
            for once in self.once:
                once.tokens = None


def _different(ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Find the distinct (token, position) pairs of ids (rows, length), as for `Once.tokens`."""
    places = torch.arange(ids.shape[1], device=ids.device)
    _, which = (ids * ids.shape[1] + places).flatten().unique(return_inverse=True)
    order = torch.arange(len(which), device=ids.device)
    first = order.new_full((int(which.max()) + 1,), len(which)).scatter_reduce(
        0, which, order, "amin"
    )
    return first, which
