"""Which tokens of a forward pass belong to which run, and the random numbers of each run."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor

from xlgrid.base.arrays import Ints

# A forward pass has a multiple of so many tokens, because a library of products prepares each new shape. Attention pads
# rows to a multiple of `LANES` keys, and to `LEAST`, below which a softmax takes several times as long on a CPU.
TOKENS, LANES, LEAST = 64, 8, 16


class Random:
    """The states of torch's random generators, so that each run draws the numbers that it draws alone."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.states: list[tuple[Tensor, ...]] = []

    def read(self) -> tuple[Tensor, ...]:
        """The current states."""
        own = (torch.cuda.get_rng_state(self.device),) if self.device.type == "cuda" else ()
        return torch.get_rng_state(), *own

    def set(self, state: tuple[Tensor, ...]) -> None:
        """Continue with a state."""
        torch.set_rng_state(state[0])
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(state[1], self.device)

    @contextmanager
    def of(self, number: int) -> Iterator[None]:
        """Draw the numbers of a run inside the `with` block, from where its last block ended."""
        self.set(self.states[number])
        yield
        self.states[number] = self.read()


class Rows(torch.autograd.Function):
    """Rows of a matrix, `at`, and zeros below them: [n, size] -> [count, size].

    The gradient of row i is that of row `back[i]` of the result. Rows of the matrix from len(back) on get none.
    """

    @staticmethod
    def forward(context: Any, matrix: Tensor, at: Tensor, back: Tensor, count: int) -> Tensor:
        context.back, context.count = back, len(matrix)
        return _rows(matrix, at, count)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        return _rows(gradients[0], context.back, context.count), None, None, None


def _rows(matrix: Tensor, at: Tensor, count: int) -> Tensor:
    if len(at) == count:
        return matrix.index_select(0, at)
    rows = matrix.new_empty(count, matrix.shape[1])
    torch.index_select(matrix, 0, at, out=rows[: len(at)])
    rows[len(at) :] = 0
    return rows


@dataclass(frozen=True)
class Bucket:
    """Rows of several runs with a similar length.

    Attributes:
        rows, length: the number of rows, and of keys of each row, padding included.
        mask: [rows × heads, 1, length], 0 for keys that are tokens, and minus infinity for padding.
    """

    rows: int
    length: int
    mask: Tensor


class Layout:
    """The runs of a forward pass. Their rows stand one after another, in one row of all tokens: [1, T, ...].

    The last positions belong to no run. They are zeros where the layers begin, and never depend on a run.

    Attributes:
        members: the numbers of the runs among all runs of the group, in the order of their tokens.
        shapes: the rows and the length of each run's batch.
        masks: [rows, length] of each run, true for tokens; None if all are.
        random: the random numbers of each run.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.members: list[int] = []
        self.shapes: list[tuple[int, int]] = []
        self.masks: list[Tensor | None] = []
        self.total = 0
        self._pieces: dict[int, list[tuple[int, slice]]] = {}
        self._kept: dict[Any, Any] = {}

    def begin(self, members: Sequence[int], states: Sequence[Tensor], masks: Sequence[Tensor | None]) -> Tensor:
        """Lay out the hidden states of some runs, each [rows, length, size]; return them as [1, T, size]."""
        self.members, self._kept = [*members], {}
        self.masks = [None if mask is None else mask.bool() for mask in masks]
        self.shapes = [(each.shape[0], each.shape[1]) for each in states]
        tokens = [rows * length for rows, length in self.shapes]
        self.total = (sum(tokens) // TOKENS + 1) * TOKENS
        # After the attention of the last layer, only the first token of each row may be left.
        sizes = {sum(rows for rows, _ in self.shapes): [rows for rows, _ in self.shapes], self.total: tokens}
        self._pieces = {
            total: [
                (number, slice(end - size, end))
                for number, size, end in zip(members, counts, accumulate(counts), strict=True)
            ]
            for total, counts in sizes.items()
        }
        rest = states[0].new_zeros(self.total - sum(tokens), states[0].shape[2])
        return torch.cat([*(each.flatten(0, 1) for each in states), rest])[None]

    def pieces(self, states: Tensor) -> list[tuple[int, slice]]:
        """The number of each run, and its positions in [1, T, size], or in [1, R, size] with the first token of each row."""
        return self._pieces[states.shape[-2]]

    def runs(self, states: Tensor) -> Tensor:
        """The number of the run of each position, without the last positions, which belong to no run."""

        def make() -> Ints:
            pieces = self.pieces(states)
            return np.repeat([number for number, _ in pieces], [at.stop - at.start for _, at in pieces])

        return self._once(("runs", states.shape[-2]), lambda: torch.from_numpy(make()).to(states.device))

    def split(self, states: Tensor) -> list[Tensor]:
        """The hidden states of each run: [1, T, size] -> [rows, length, size], or [rows, 1, size] for first tokens."""
        sizes = [at.stop - at.start for _, at in self.pieces(states)]
        parts = states.squeeze(0).split([*sizes, states.shape[1] - sum(sizes)])
        return [part.unflatten(0, (rows, -1)) for part, (rows, _) in zip(parts, self.shapes, strict=False)]

    def each(self, states: Tensor, compute: Callable[[int, Tensor], Tensor]) -> Tensor:
        """What `compute` returns for the place and the batch, [rows, length, size], of each run, laid out as `states`."""
        parts = [compute(at, batch).flatten(0, 1) for at, batch in enumerate(self.split(states))]
        rest = parts[0].new_zeros(states.shape[1] - sum(map(len, parts)), *parts[0].shape[1:])
        return torch.cat([*parts, rest])[None]

    def first(self, states: Tensor) -> Tensor:
        """The first token of each row: [1, T, size] -> [1, R, size]."""

        def make() -> Ints:
            pieces = zip(self.pieces(states), self.shapes, strict=True)
            return np.concatenate([at.start + length * np.arange(rows) for (_, at), (rows, length) in pieces])

        return states.index_select(1, self._once("first", lambda: torch.from_numpy(make()).to(states.device)))

    def buckets(self, states: Tensor, heads: int) -> list[Bucket]:
        """The rows of all runs by their length, as attention computes them, from the shortest on."""
        return self._once(
            (heads, states.dtype),
            lambda: [
                Bucket(
                    rows := sum(self.shapes[run][0] for run in runs), length, self._mask(runs, length, heads, states)
                )
                for length, runs in self._by_length()
            ],
        )

    def _mask(self, runs: Sequence[int], length: int, heads: int, states: Tensor) -> Tensor:
        masks = []
        for run in runs:
            mask = self.masks[run]
            real = states.new_zeros(self.shapes[run])
            if mask is not None:
                real.masked_fill_(~mask, -torch.inf)
            masks.append(torch.nn.functional.pad(real, (0, length - real.shape[1]), value=-torch.inf))
        return torch.cat(masks).repeat_interleave(heads, 0)[:, None]

    def places(self, total: int, heads: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Where attention finds the vectors of its heads among those of all tokens, or of the first tokens of all rows.

        Returns:
            The vector at each place in the buckets, as position × heads + head, where padding is at the last position;
            and the reverse, without the last positions, which belong to no run.
        """

        def make() -> tuple[Tensor, ...]:
            at, back = [], np.empty(self._pieces[total][-1][1].stop * heads, np.int64)
            offset = 0
            for length, runs in self._by_length():
                width = length if total == self.total else 1
                for run in runs:
                    (_, piece), (rows, own) = self._pieces[total][run], self.shapes[run]
                    own = min(own, width)
                    # [rows, heads, positions]
                    vectors = (
                        np.arange(piece.start * heads, piece.stop * heads).reshape(rows, own, heads).swapaxes(1, 2)
                    )
                    padded = np.full((rows, heads, width), (total - 1) * heads)
                    padded[:, :, :own] = vectors
                    places = offset + np.arange(padded.size).reshape(padded.shape)
                    back[vectors] = places[:, :, :own]
                    at.append(padded.ravel())
                    offset += padded.size
            return tuple(torch.from_numpy(numbers).to(device) for numbers in (np.concatenate(at), back))

        at, back = self._once((total, heads), make)
        return at, back

    def _by_length(self) -> list[tuple[int, list[int]]]:
        """The places of the runs whose rows have so many keys, padding included."""
        of: dict[int, list[int]] = {}
        for run, (_, length) in enumerate(self.shapes):
            of.setdefault(max(LEAST, -(-length // LANES) * LANES), []).append(run)
        return sorted(of.items())

    def _once(self, name: Any, make: Callable[[], Any]) -> Any:
        """What `make` returns, which all layers of a forward pass share."""
        if name not in self._kept:
            self._kept[name] = make()
        return self._kept[name]
