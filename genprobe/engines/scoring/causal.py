"""Decoder-only models: score each token of a text given the tokens before it.

A common beginning of several texts is computed once: a row holds a tree of texts, in which each
token sees only its ancestors, and its position is its depth. So the words that the sentences of a
pair share, and the context that options share, are computed once.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Sequence

import numpy as np
import torch

from genprobe.engines.scoring import _net, _texts
from genprobe.errors import EngineError
from genprobe.records import Failure, LogProb

# Attention between different texts of a row is computed but not used. One element of it costs as
# much as this many elements of a matrix product (measured on a CPU).
ATTENTION = 4
# Names that configurations use for the number of previous tokens that a layer sees.
WINDOWS = ("sliding_window", "window_size", "attention_chunk_size")


class Tree:
    """Texts as a tree of tokens, in which common beginnings are stored once.

    tokens, depths: one value for each node; parents come before their children.
    """

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.depths: list[int] = []
        self.parents: list[int] = []
        self.wanted: dict[int, dict[int, None]] = {}  # node -> tokens to score after it
        self.places: dict[tuple[int, ...], list[int]] = {}  # text -> its nodes
        self.path: list[int] = []  # nodes of the last text
        self.last: tuple[int, ...] = ()

    def shared(self, ids: tuple[int, ...]) -> int:
        """Count the nodes that `ids`, without its last token, could share with the last text."""
        most = min(len(self.path), len(ids) - 1)
        return next((n for n in range(most) if ids[n] != self.last[n]), most)

    def add(self, ids: tuple[int, ...], start: int, shared: int) -> None:
        """Add a text whose tokens from `start` on are scored. Its last token becomes no node."""
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
        """Return (width, width) bool: which node sees which. Padding sees only itself."""
        seen = np.eye(width, dtype=bool)
        for n, parent in enumerate(self.parents):
            if parent >= 0:
                seen[n] |= seen[parent]
        return seen


def plant(
    texts: dict[tuple[int, ...], int], width: int, share: bool, most: float = float("inf")
) -> list[Tree]:
    """Arrange all texts in trees that share their beginnings.

    texts: ids -> where scoring begins. width: of the model's hidden states. share: False gives
    each text a tree of its own. most: the largest number of tokens in a tree of several texts.

    Texts are sorted by their ids, so that each shares most with its neighbour. A text joins its
    neighbour's tree if the tokens saved cost more than the attention wasted on other texts. In
    units of one element of attention, a token costs 6 * width.
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
    """The scorer of decoder-only models: see `genprobe.engines.scoring.Scorer`."""

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
        """Tell whether rows can be trees. Raises EngineError if the model cannot be scored."""
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
        except Exception:  # for example, a model that takes only two-dimensional masks
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
            # With the mask of a tree a model could see beyond its window or, where the window
            # counts places in the row (GPT-Neo), miss near tokens. So trees are at most as long as
            # the window, and longer texts are computed one by one.
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
        """Return a text's ids, with context and first token, and where scoring begins."""
        ids = (*self.before, *item.before, *item.ids)
        return ids, len(ids) - len(item.ids)

    def _values(
        self, trees: Sequence[Tree], texts: dict[tuple[int, ...], int]
    ) -> dict[tuple[int, ...], list[float]]:
        """Compute, for each text of the trees, natural log P of its scored tokens."""
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
        """Compute the hidden states of trees, (rows, width, states)."""
        rows = [tree.tokens for tree in trees]
        ids, _ = _net.padded(rows, 0, self.net.device)
        if not any(tree.branches for tree in trees):
            # No token sees the padding, which is on its right.
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
