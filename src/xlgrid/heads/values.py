"""Token ids in several pieces, as a file stores them."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from xlgrid.base.arrays import Ints


class Values:
    """Several arrays that can be read like one array, without a copy: text may exceed the memory.

    `values[a:b]` is an array, and so is `values[positions]` for an array of positions from 0.
    """

    def __init__(self, pieces: Iterable[NDArray[np.int32]]) -> None:
        self.pieces = [piece for piece in pieces if len(piece)]
        self.ends = np.cumsum([len(piece) for piece in self.pieces], dtype=np.int64)

    def __len__(self) -> int:
        return int(self.ends[-1]) if self.pieces else 0

    def __getitem__(self, at: slice | Ints) -> NDArray[np.int32]:
        if isinstance(at, slice):
            return self._range(*at.indices(len(self)))
        if not len(at):
            return np.zeros(0, np.int32)
        if not 0 <= at.min() <= at.max() < len(self):
            raise IndexError(f"positions must be from 0 to {len(self) - 1}, got {at.min()} to {at.max()}")
        values = np.empty(at.shape, np.int32)
        piece_of = np.searchsorted(self.ends, at, side="right")
        # The positions are grouped by piece, so that each piece is indexed once.
        order = np.argsort(piece_of, kind="stable")
        numbers, starts = np.unique(piece_of[order], return_index=True)
        for number, chosen in zip(numbers, np.split(order, starts[1:]), strict=True):
            piece = self.pieces[number]
            values[chosen] = piece[at[chosen] - (self.ends[number] - len(piece))]
        return values

    def _range(self, start: int, stop: int, step: int) -> NDArray[np.int32]:
        if step != 1:
            raise IndexError(f"slices of token ids must have the step 1, got a step of {step}")
        slices = []
        while start < stop:
            number = int(np.searchsorted(self.ends, start, side="right"))
            piece, end = self.pieces[number], int(self.ends[number])
            before = end - len(piece)
            slices.append(piece[start - before : stop - before])
            start = end
        return slices[0] if len(slices) == 1 else np.concatenate([np.zeros(0, np.int32), *slices])
