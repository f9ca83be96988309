"""Cosines and margins of all pairs at once, in double precision."""

import numpy as np

from xlgrid.heads.embed.search import Score, Vectors


def cosines(first: Vectors, second: Vectors) -> np.ndarray:
    """All cosines, [first, second]."""
    x, y = (
        vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        for vectors in (first.astype(float), second.astype(float))
    )
    return x @ y.T


def margins(first: Vectors, second: Vectors, score: Score, k: int) -> np.ndarray:
    """All margins, [first, second], by the formula of Artetxe and Schwenk (2019)."""
    dense = cosines(first, second)
    if score == "cosine":
        return dense
    of_first = np.sort(dense, axis=1)[:, ::-1][:, :k].mean(1)
    of_second = np.sort(dense, axis=0)[::-1][:k].mean(0)
    means = (of_first[:, None] + of_second[None, :]) / 2
    if score == "distance":
        return dense - means
    return np.array([[c / m if m else c for c, m in zip(*row, strict=True)] for row in zip(dense, means, strict=True)])
