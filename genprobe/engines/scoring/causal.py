"""Decoder-only models: each token of a text given those before it.

Texts that begin alike are computed once: a row holds a tree of texts, in which each token sees its
ancestors only, at its own distance from the beginning. So the two sentences of a pair cost what
they share once, options cost their context once, and all texts share the token before the first.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Sequence

import numpy as np
import torch

from genprobe.engines.scoring import _net, _texts
from genprobe.errors import EngineError
from genprobe.records import Failure, LogProb

# Attention between the texts of a row is computed and thrown away. An element of it costs as much
# as so many elements of a matrix product (measured on a CPU).
ATTENTION = 4
# How configurations call the tokens back that a layer sees.
WINDOWS = ("sliding_window", "window_size", "attention_chunk_size")


class Tree:
    """Texts in a row, each token of a common beginning once.

    tokens, depths: of each node, in an order in which parents come first.
    """

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.depths: list[int] = []
        self.parents: list[int] = []
        self.wanted: dict[int, dict[int, None]] = {}  # node -> tokens asked for behind it
        self.places: dict[tuple[int, ...], list[int]] = {}  # text -> its nodes
        self.path: list[int] = []  # nodes of the last text
        self.last: tuple[int, ...] = ()

    def shared(self, ids: tuple[int, ...]) -> int:
        """How many nodes `ids` could share with the last text, its own last token left out."""
        most = min(len(self.path), len(ids) - 1)
        return next((n for n in range(most) if ids[n] != self.last[n]), most)

    def add(self, ids: tuple[int, ...], start: int, shared: int) -> None:
        """Add a text whose tokens from `start` on are to be scored. The last one is no node."""
        path = self.path[:shared]
        for depth in range(shared, len(ids) - 1):
            self.parents.append(path[-1] if path else -1)
            path.append(len(self.tokens))
            self.tokens.append(ids[depth])
            self.depths.append(depth)
        for n in range(start, len(ids)):
            self.wanted.setdefault(path[n - 1], {})[ids[n]] = None
        self.path, self.last = path, ids
        self.places[ids] = path

    @property
    def branches(self) -> bool:
        return any(parent != n - 1 for n, parent in enumerate(self.parents))

    def sees(self, width: int) -> np.ndarray:
        """(width, width) bool: which node sees which. Padding sees itself alone."""
        seen = np.eye(width, dtype=bool)
        for n, parent in enumerate(self.parents):
            if parent >= 0:
                seen[n] |= seen[parent]
        return seen


def plant(
    texts: dict[tuple[int, ...], int], width: int, share: bool, most: float = float("inf")
) -> list[Tree]:
    """Arrange all texts in trees that share their beginnings.

    texts: ids -> where scoring begins. width: of the model's states. most: tokens of a tree of
    several.

    In the order of their ids a text shares most with its neighbour. It joins its neighbour's tree
    where the tokens saved cost more than the attention wasted on texts that it does not see: a
    token costs 6 * width for each element of attention between two tokens.
    """
    trees: list[Tree] = []
    for ids in sorted(texts):
        if trees and share:
            tree = trees[-1]
            shared, size = tree.shared(ids), len(tree.tokens)
            new = len(ids) - 1 - shared
            wasted = 2 * new * (size - shared) - shared * shared
            if shared * 6 * width > ATTENTION * wasted and size + new <= most:
                tree.add(ids, texts[ids], shared)
                continue
        trees.append(Tree())
        trees[-1].add(ids, texts[ids], 0)
    return trees


class CausalScorer(_net.Scorer):
    """See `genprobe.engines.scoring.Scorer`."""

    passes: tuple[str, ...] = ("causal",)

    def __init__(self, loaded: _net.Loaded) -> None:
        super().__init__(loaded)
        self.first, self.before = self.texts.first()
        self.around = len(self.before)
        config = loaded.local.config.get_text_config()
        windows = [getattr(config, name, None) for name in WINDOWS]
        self.window = min((n for n in windows if isinstance(n, int) and n), default=float("inf"))
        dummy = {"input_ids": torch.zeros(1, 1, dtype=torch.long, device=loaded.net.device)}
        self.net = _net.Net(loaded, loaded.net.get_decoder(), **dummy)
        self.shares = False
        with _net.working(loaded.name):
            self.shares = self._try(loaded)

    def _try(self, loaded: _net.Loaded) -> bool:
        """Can rows be trees? EngineError for a model that cannot be scored at all."""
        last = self.net.vocabulary - 1
        begin = [min(n, last) for n in range(2, 10)]
        one, two = (
            (*begin, *(min(n, last) for n in more)) for more in ((11, 12, 13, 14), (21, 22, 23, 24))
        )
        ids = torch.tensor([one, two], device=self.net.device)
        hidden = self.net.hidden(input_ids=ids, use_cache=False)
        self.net.check(loaded.net(input_ids=ids, use_cache=False).logits, hidden)
        if not _net.close(hidden[0, : len(begin)], hidden[1, : len(begin)]):
            raise EngineError(
                f"{loaded.name}: the model sees the tokens that it should predict; give a causal "
                "model"
            )
        if "position_ids" not in inspect.signature(self.net.body.forward).parameters:
            return False
        tree = Tree()
        tree.add((*one, 0), 1, 0)
        tree.add((*two, 0), 1, len(begin))
        try:
            packed = self._hidden([tree])[0]
        except Exception:  # such as a model that knows masks of rows alone
            return False
        return all(
            _net.close(packed[tree.places[*text, 0]], row)
            for text, row in zip((one, two), hidden, strict=True)
        )

    def score(self, window: Sequence[_texts.Asked]) -> Iterator[LogProb | Failure]:
        texts: dict[tuple[int, ...], int] = {}
        for asked in window:
            for item in asked.items:
                ids, start = self._placed(item)
                texts[ids] = min(start, texts.get(ids, start))
        found: dict[tuple[int, ...], list[float]] = {}

        def batches() -> Iterator[Collection[tuple[int, ...]]]:
            # A mask of a tree would let a model see beyond its window, or by the place in the row,
            # as GPT-Neo does, not see what is near: longer texts go apart, and trees are no longer.
            for long in (False, True):
                some = {ids: at for ids, at in texts.items() if (len(ids) > self.window) == long}
                trees = plant(some, self.net.width, self.shares and not long, self.window)
                for batch in _net.batches([len(tree.tokens) for tree in trees], self.budget):
                    values = self._values([trees[n] for n in batch], texts)
                    found.update(values)
                    yield values

        placed = [[self._placed(item) for item in asked.items] for asked in window]
        needs = [[ids for ids, _ in items] for items in placed]
        for at in _net.as_found(needs, batches()):
            values = [found[ids][start - texts[ids] :] for ids, start in placed[at]]
            sent = self.texts.words(self.before) + window[at].context
            yield _texts.record(window[at], sent, self.around, values)

    def _placed(self, item: _texts.Item) -> tuple[tuple[int, ...], int]:
        """Return what the model sees of a text, and where scoring begins."""
        ids = (*self.before, *item.before, *item.ids)
        return ids, len(ids) - len(item.ids)

    def _values(
        self, trees: Sequence[Tree], texts: dict[tuple[int, ...], int]
    ) -> dict[tuple[int, ...], list[float]]:
        """For each text of the trees, log P of its tokens from where scoring begins."""
        nodes = [(row, node) for row, tree in enumerate(trees) for node in tree.wanted]
        rows, columns = zip(*nodes, strict=True)
        with _net.working(self.net.name):
            hidden = self._hidden(trees)[list(rows), list(columns)]
            wanted = [list(trees[row].wanted[node]) for row, node in nodes]
            values = self.net.logprobs(hidden, wanted)
        behind = {
            place: dict(zip(tokens, found, strict=True))
            for place, tokens, found in zip(nodes, wanted, values, strict=True)
        }
        return {
            ids: [behind[row, path[n - 1]][ids[n]] for n in range(texts[ids], len(ids))]
            for row, tree in enumerate(trees)
            for ids, path in tree.places.items()
        }

    def _hidden(self, trees: Sequence[Tree]) -> torch.Tensor:
        """(rows, width, states)"""
        rows = [tree.tokens for tree in trees]
        ids, _ = _net.padded(rows, 0, self.net.device)
        if not any(tree.branches for tree in trees):
            # Nothing sees the padding on its right.
            return self.net.hidden(input_ids=ids, use_cache=False)
        width = ids.shape[1]
        sees = torch.from_numpy(np.stack([tree.sees(width) for tree in trees])[:, None])
        least = torch.finfo(self.net.dtype).min
        bias = torch.zeros(sees.shape, dtype=self.net.dtype).masked_fill_(~sees, least)
        depths, _ = _net.padded([tree.depths for tree in trees], 0, self.net.device)
        return self.net.hidden(
            input_ids=ids,
            attention_mask=bias.to(self.net.device),
            position_ids=depths,
            use_cache=False,
        )
