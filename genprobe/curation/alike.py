"""Find similar texts: the pairs among many vectors whose cosine is at or above a threshold.

Of each text only the 64 nearest others are kept, so that memory grows with the number of texts and
not with the number of pairs.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

from genprobe.errors import InputError

if TYPE_CHECKING:
    import numpy as np

NEAREST = 64  # pairs that each text adds to the graph, those with its nearest texts
_AHEAD = 256  # pairs kept of a text with later texts, from which the nearest are then chosen
_CANDIDATES = 4_096  # most pairs of a text with later texts whose cosine may reach the threshold
_SHARE = 0.6  # times the threshold's square: the most that frequent n-grams may hold of a vector
_ROUNDING = 1e-5  # rounding error of sums in 32 bits, allowed for so that no pair is missed
_BATCH = 16_384  # pairs computed at a time


def graph(vectors: Any, threshold: float) -> Any:
    """Compute the cosines of those pairs of texts whose cosine reaches a threshold.

    vectors: one row per text, each of length one; dense, or sparse without negative numbers.
    threshold: above 0, at most 1. Returns a sparse symmetric matrix of cosines, without the
    diagonal. A row has its `NEAREST` greatest cosines (and all that equal the least of these), and
    also those that are among the greatest of the other row. Raises InputError if the package
    sparse_dot_topn is not installed.
    """
    from scipy import sparse

    found = (
        _sparse_pairs(vectors.tocsr(), threshold)
        if sparse.issparse(vectors)
        else _dense_pairs(vectors, threshold)
    )
    found.setdiag(0)
    found.eliminate_zeros()
    return found.maximum(found.T).tocsr()


def _sparse_pairs(vectors: Any, threshold: float) -> Any:
    """Find the pairs of sparse vectors, by multiplying blocks of texts with all later texts.

    The most frequent n-grams cause most of the work but contribute little to a cosine. So a text's
    weights for them are first replaced by one number, their Euclidean length. The product of two
    shortened vectors is at least the cosine, because a sum of products is at most the product of
    the lengths (the Cauchy-Schwarz inequality), so no pair is missed. The cosine is computed only
    for pairs whose product reaches the threshold.
    """
    import numpy as np
    from scipy import sparse

    count = vectors.shape[0]
    frequent, short = _shorten(vectors, threshold)
    least, size = math.nextafter(threshold, 0), max(1_000, -(-count // 16))
    parts = []
    for start in range(0, count, size):
        found = _products(short, start, size, least - _ROUNDING, _CANDIDATES)
        if np.diff(found.indptr).max() < min(_CANDIDATES, count - start):
            _correct(found, start, frequent, least)
            _keep_greatest(found, _AHEAD)
        else:  # a row may have more candidates than were kept, so all cosines are computed
            found = _products(vectors, start, size, least, _AHEAD)
        before = sparse.csr_matrix((found.shape[0], start), dtype=found.dtype)
        parts.append(sparse.hstack([before, found], format="csr"))
    half = sparse.vstack(parts, format="csr")
    pairs = half.maximum(half.T).tocsr()
    _keep_greatest(pairs, NEAREST + 1)  # one more, since a text is its own nearest
    return pairs


def _shorten(vectors: Any, threshold: float) -> tuple[np.ndarray[Any, Any], Any]:
    """Split vectors into a dense part for frequent n-grams, and shortened sparse vectors.

    N-grams are taken as frequent, the most frequent first, as long as their share of the vectors'
    squares stays small enough to leave few candidates; at most 512, since that part is dense.
    """
    import numpy as np
    from scipy import sparse

    columns = vectors.shape[1]
    often = np.bincount(vectors.indices, minlength=columns)
    squares = np.bincount(vectors.indices, vectors.data.astype(np.float64) ** 2, columns)
    order = np.argsort(-often, kind="stable")
    held = np.cumsum(squares[order]) / vectors.shape[0]
    taken = order[: min(512, int(np.searchsorted(held, _SHARE * threshold**2)))]
    frequent = vectors[:, taken].toarray()
    rest = np.setdiff1d(np.arange(columns), taken)
    length = sparse.csr_matrix(np.linalg.norm(frequent, axis=1, keepdims=True))
    return frequent, sparse.hstack([length, vectors[:, rest]], format="csr")


def _products(vectors: Any, start: int, size: int, least: float, most: int) -> Any:
    """Multiply a block of vectors with all from its start on; keep the `most` greatest of a row."""
    try:
        from sparse_dot_topn import sp_matmul_topn
    except ImportError:
        raise InputError("grouping needs sparse_dot_topn; install genprobe[group]") from None
    return sp_matmul_topn(
        vectors[start : start + size],
        vectors[start:].T.tocsr(),
        top_n=most,
        threshold=least,
        density=min(1.0, _AHEAD / most),  # how much memory is reserved at first
        n_threads=max(1, min(8, os.cpu_count() or 1)),
    )


def _correct(found: Any, start: int, frequent: np.ndarray[Any, Any], least: float) -> None:
    """Turn products of shortened vectors into cosines, and drop those below the threshold."""
    import numpy as np

    rows = np.repeat(np.arange(found.shape[0]), np.diff(found.indptr)) + start
    others = found.indices + start
    length = np.linalg.norm(frequent, axis=1)
    for at in range(0, len(rows), _BATCH):
        own = slice(at, at + _BATCH)
        a, b = rows[own], others[own]
        found.data[own] += np.einsum("ij,ij->i", frequent[a], frequent[b]) - length[a] * length[b]
    found.data[found.data < least] = 0
    found.eliminate_zeros()


def _keep_greatest(pairs: Any, most: int) -> None:
    """Keep the `most` greatest values of each row, and all that equal the least of these."""
    import numpy as np

    for row in np.flatnonzero(np.diff(pairs.indptr) > most):
        own = slice(pairs.indptr[row], pairs.indptr[row + 1])
        values = pairs.data[own]
        values[values < np.partition(values, -most)[-most]] = 0
    pairs.eliminate_zeros()


def _dense_pairs(vectors: np.ndarray[Any, Any], threshold: float) -> Any:
    import numpy as np
    from scipy import sparse

    parts = []
    for start in range(0, len(vectors), 1024):
        cosines = vectors[start : start + 1024] @ vectors.T
        if cosines.shape[1] > NEAREST + 1:
            least = np.partition(cosines, -(NEAREST + 1), axis=1)[:, -(NEAREST + 1), None]
            cosines = np.where(cosines >= least, cosines, 0)
        parts.append(sparse.csr_matrix(np.where(cosines >= threshold, cosines, 0)))
    return sparse.vstack(parts).tocsr()
