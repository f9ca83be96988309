"""Rows of text and bitext as pairs of inputs, for objectives of pre-training that read both inputs of a pair apart."""

from dataclasses import replace
from typing import Literal

import numpy as np

from xlgrid.base.arrays import Ints
from xlgrid.heads.tokens import Tokens, offsets_of


def pairs_of(tokens: Tokens, rows: Ints, adjacent: Literal["halves", "next"] = "halves") -> Tokens:
    """The inputs x of some rows, and then their y, each with special tokens of its own and with the languages of its row.

    A row of two segments is the pair of these. A row of one segment is the pair of its halves, or of itself and the next row of
    its language; the last row is the y of the one before it. A row that has no neighbour, or only one token, has a y without words.
    """
    first, second = [], []
    for row in rows.tolist():
        ids, context = _ids(tokens, row), int(tokens.contexts[row])
        if context < len(ids):
            # XLM-R has two separators between the segments, and BERT one.
            start = context + int(ids[context] == ids[context - 1])
            first.append(ids[:context])
            second.append(np.concatenate([ids[:1], ids[start:]]))
        elif adjacent == "next":
            neighbour = _neighbour(tokens, row)
            pair = [ids, ids[[0, -1]] if neighbour is None else _ids(tokens, neighbour)]
            # The text of x comes before that of y.
            x, y = pair[::-1] if neighbour is not None and neighbour < row else pair
            first.append(x)
            second.append(y)
        else:
            middle = (len(ids) + 1) // 2
            first.append(np.append(ids[:middle], ids[-1:]))
            second.append(np.append(ids[:1], ids[middle:]))
    inputs = [*first, *second]
    sizes = np.array([len(ids) for ids in inputs])
    return replace(
        tokens,
        values=np.concatenate(inputs),
        offsets=offsets_of([sizes]),
        contexts=sizes,
        language_of=np.tile(tokens.language_of[rows], (2, 1)),
        columns={},
        parts=None,
    )


def _ids(tokens: Tokens, row: int) -> Ints:
    ids: Ints = tokens.values[tokens.offsets[row] : tokens.offsets[row + 1]]
    return ids


def _neighbour(tokens: Tokens, row: int) -> int | None:
    """The next row of the same part of a mix, or else the row before; None if neither is of one segment."""
    for other in (row + 1, row - 1):
        is_there = 0 <= other < len(tokens) and (tokens.parts is None or tokens.parts[other] == tokens.parts[row])
        if is_there and tokens.contexts[other] == tokens.sizes[other]:
            return other
    return None
