"""Exact search for the nearest sentences, and margin scores (Artetxe and Schwenk 2019, section 3), in bounded memory.

Let x and y be vectors of two pools of sentences, and NN_k(x) the k vectors of the other pool with the highest cosines
with x. With

    m(x, y) = (mean of cos(x, z) over z in NN_k(x) + mean of cos(z, y) over z in NN_k(y)) / 2

the score of a pair is cos(x, y), or the margin cos(x, y) / m(x, y) (`ratio`), or cos(x, y) - m(x, y) (`distance`).
"""

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xlgrid.base.arrays import Ints
from xlgrid.base.device import default_device

if TYPE_CHECKING:
    import torch

Score = Literal["cosine", "ratio", "distance"]
Vectors = NDArray[np.float32]
Floats = NDArray[np.float64]

# The number of cosines in a block. One block is in memory at a time: 64 MB in single precision.
BLOCK = 2**24
# The number of candidates that single precision chooses beyond k. Double precision decides their order.
_SPARE = 8


class Candidates(NamedTuple):
    """The nearest vectors of the other pool, and their scores.

    Attributes:
        rows: [queries, k], the rows of the other pool with the highest cosines, in descending order of the cosine.
            Equal cosines are in ascending order of the row.
        scores: [queries, k], cosines or margins.
    """

    rows: Ints
    scores: Floats


def nearest(queries: Vectors, pool: Vectors, k: int, block: int = BLOCK) -> Candidates:
    """The vectors of a pool with the highest cosines, for each query. A vector of zeros has the cosine 0 with all
    others.

    Products in single precision, on a GPU if the machine has one, select a few more than `k` candidates. The cosines of
    the candidates are computed in double precision, so that equal vectors have equal cosines for every size of block.

    Args:
        queries: [queries, dimensions], the vectors of the queries.
        pool: [vectors, dimensions], the vectors of the pool.
        k: the number of vectors for each query; a smaller pool returns all of its vectors.
        block: the maximum number of cosines in memory at a time.
    """
    selected, _ = _selected(queries, pool, k, block, both=False)
    return _ordered(queries, pool, selected, k, block)


def neighbours(first: Vectors, second: Vectors, k: int, block: int = BLOCK) -> tuple[Candidates, Candidates]:
    """The nearest vectors of the second pool for each vector of the first pool, and vice versa, in the form of
    `nearest`.

    Each product is computed once.
    """
    forward, backward = _selected(first, second, k, block, both=True)
    return _ordered(first, second, forward, k, block), _ordered(second, first, backward, k, block)


def scored(forward: Candidates, backward: Candidates, score: Score) -> Candidates:
    """The candidates of one pool with their scores.

    Args:
        forward: the candidates of the first pool's vectors in the second pool, with cosines.
        backward: the candidates of the second pool's vectors in the first pool, with cosines.
    """
    means = (forward.scores.mean(1)[:, None] + backward.scores.mean(1)[forward.rows]) / 2
    return forward._replace(scores=margin(forward.scores, means, score))


def margin(cosines: Floats, means: Floats, score: Score) -> Floats:
    """The margins of pairs, from their cosines and the means m(x, y) of their neighbourhoods, in arrays of equal
    shapes.

    Where the mean is 0, the ratio is the cosine.
    """
    if score == "cosine":
        return cosines
    return cosines - means if score == "distance" else cosines / np.where(means == 0, 1, means)


def search(queries: Vectors, pool: Vectors, score: Score, k: int, block: int = BLOCK) -> Ints:
    """The row of the pool that each query retrieves: [queries].

    If scores are equal, the higher cosine wins, and then the lower row.

    Args:
        k: the number of nearest neighbours from which a margin is computed; the score `cosine` does not use it.
    """
    if score == "cosine":
        return nearest(queries, pool, 1, block).rows[:, 0]
    return _best(scored(*neighbours(queries, pool, k, block), score)).rows[:, 0]


class Pairs(NamedTuple):
    """Pairs of sentences, in descending order of score.

    Attributes:
        first, second: [pairs], the rows of the two pools.
        scores: [pairs], the scores.
    """

    first: Ints
    second: Ints
    scores: Floats


def mine(first: Vectors, second: Vectors, score: Score, k: int, block: int = BLOCK) -> Pairs:
    """The pairs of sentences of two pools that are mined as translations; each sentence is in at most one pair.

    Each vector of both pools proposes the pair with the best of its `k` candidates. In descending order of score, a
    proposed pair is accepted if neither vector is in an accepted pair (`max` in Artetxe and Schwenk 2019, section 3.2).
    If scores are equal, pairs that the first pool proposes come first, and then lower rows.
    """
    forward, backward = neighbours(first, second, k, block)
    ahead, back = _best(scored(forward, backward, score)), _best(scored(backward, forward, score))
    rows = (
        np.concatenate([np.arange(len(first)), back.rows[:, 0]]),
        np.concatenate([ahead.rows[:, 0], np.arange(len(second))]),
    )
    scores = np.concatenate([ahead.scores[:, 0], back.scores[:, 0]])
    free = np.ones(len(first), bool), np.ones(len(second), bool)
    taken = []
    for at in np.argsort(-scores, kind="stable").tolist():
        row, partner = rows[0][at], rows[1][at]
        if free[0][row] and free[1][partner]:
            free[0][row] = free[1][partner] = False
            taken.append(at)
    return Pairs(rows[0][taken], rows[1][taken], scores[taken])


def _best(candidates: Candidates) -> Candidates:
    """The candidate with the highest score, or the first of several: [queries, 1]."""
    best = candidates.scores.argmax(1)[:, None]
    return Candidates(np.take_along_axis(candidates.rows, best, 1), np.take_along_axis(candidates.scores, best, 1))


def _selected(first: Vectors, second: Vectors, k: int, block: int, both: bool) -> tuple[Ints, Ints]:
    """The rows of a few more than `k` nearest vectors by products in single precision, in ascending order.

    Returns:
        The rows of the second pool for each vector of the first pool and, if `both`, the rows of the first pool for
        each vector of the second pool.
    """
    import torch

    device = default_device()
    side = max(1, int(block**0.5))
    ahead, back = (min(k + _SPARE, len(pool)) for pool in (second, first))
    lengths, other_lengths = _lengths(first), _lengths(second)
    forward = np.empty((len(first), ahead), np.int64)
    best = torch.full((len(second) * both, back), -torch.inf, device=device)
    rows = torch.zeros((len(second) * both, back), dtype=torch.int64, device=device)
    for start in range(0, len(first), side):
        here = slice(start, start + side)
        units = _units(first[here], lengths[here], device)
        values = torch.full((len(units), ahead), -torch.inf, device=device)
        numbers = torch.zeros((len(units), ahead), dtype=torch.int64, device=device)
        for begin in range(0, len(second), side):
            there = slice(begin, begin + side)
            products = units @ _units(second[there], other_lengths[there], device).T
            values, numbers = _merged(values, numbers, products, begin)
            if both:
                best[there], rows[there] = _merged(best[there], rows[there], products.T.contiguous(), start)
        forward[here] = numbers.cpu().numpy()
    return np.sort(forward, axis=1), np.sort(rows.cpu().numpy(), axis=1)


def _merged(
    values: "torch.Tensor", numbers: "torch.Tensor", products: "torch.Tensor", begin: int
) -> tuple["torch.Tensor", "torch.Tensor"]:
    """The highest values and their rows of the pool, [queries, k], after the next block of the pool is included.

    Args:
        products: [queries, rows of the block].
        begin: the first row of the block.
    """
    import torch

    k = values.shape[1]
    of_block, places = _highest(products, k)
    # The rows of this block follow the rows of earlier blocks, so that a stable sort keeps lower rows in front.
    values, order = torch.cat([values, of_block], 1).sort(dim=1, descending=True, stable=True)
    return values[:, :k], torch.cat([numbers, places + begin], 1).gather(1, order)[:, :k]


def _ordered(queries: Vectors, pool: Vectors, selected: Ints, k: int, block: int) -> Candidates:
    """The `k` nearest of the selected rows by cosines in double precision; equal cosines are in the order of the
    rows."""
    lengths, pool_lengths = _lengths(queries), _lengths(pool)
    kept = min(k, len(pool))
    rows, scores = np.empty((len(queries), kept), np.int64), np.empty((len(queries), kept))
    # Queries, their candidates and their products in double precision take less memory than a block.
    side = max(1, block // (8 * queries.shape[1]))
    for start in range(0, len(queries), side):
        here = slice(start, start + side)
        chosen = selected[here]
        cosines = _cosines(queries[here], pool, chosen, lengths[here], pool_lengths)
        best = np.argsort(-cosines, axis=1, kind="stable")[:, :kept]
        rows[here], scores[here] = np.take_along_axis(chosen, best, 1), np.take_along_axis(cosines, best, 1)
    return Candidates(rows, scores)


def _highest(values: "torch.Tensor", k: int) -> tuple["torch.Tensor", "torch.Tensor"]:
    """The `k` highest values of each row, or all values of a shorter row, and their columns.

    If values are equal, the lower columns are chosen.
    """
    if values.shape[1] <= k:
        values, order = values.sort(dim=1, descending=True, stable=True)
        return values, order
    top, places = values.topk(k + 1, dim=1)
    # `topk` chooses any of equal values, so rows in which it had a choice are sorted instead.
    undecided = top[:, k] == top[:, k - 1]
    top, places = top[:, :k], places[:, :k]
    places = places.sort(dim=1).values
    top, order = values.gather(1, places).sort(dim=1, descending=True, stable=True)
    places = places.gather(1, order)
    if undecided.any():
        ordered, columns_of = values[undecided].sort(dim=1, descending=True, stable=True)
        top[undecided], places[undecided] = ordered[:, :k], columns_of[:, :k]
    return top, places


def _lengths(vectors: Vectors) -> Floats:
    """The lengths of vectors; 1 for a vector of zeros."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    return np.where(lengths == 0, 1, lengths)


def _units(vectors: Vectors, lengths: Floats, device: "torch.device") -> "torch.Tensor":
    import torch

    return torch.from_numpy(vectors / lengths[:, None].astype(np.float32)).to(device)


def _cosines(queries: Vectors, pool: Vectors, rows: Ints, query_lengths: Floats, pool_lengths: Floats) -> Floats:
    """The cosines of each query with some rows of the pool, in double precision, in the shape of `rows`."""
    cosines = np.empty(rows.shape)
    for column in range(rows.shape[1]):
        others = rows[:, column]
        products = (queries.astype(np.float64) * pool[others]).sum(1)
        cosines[:, column] = products / (query_lengths * pool_lengths[others])
    return cosines
