"""Which tokens of a forward pass belong to which run, and the random numbers of each run."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor


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


class Layout:
    """The runs of a forward pass. Their rows stand one after another, in one row of all tokens: [1, T, ...].

    Padding stays inside a run, where it is needed to compute the attention of its rows.

    Attributes:
        members: the numbers of the runs among all runs of the group, in the order of their tokens.
        shapes: the rows and the length of each run's batch.
        masks: the mask of attention of each run, as transformers makes it for a batch.
        random: the random numbers of each run.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.members: list[int] = []
        self.shapes: list[tuple[int, int]] = []
        self.masks: list[Tensor | None] = []
        self._sizes: dict[int, list[int]] = {}
        self._runs: dict[int, Tensor] = {}

    def begin(self, members: Sequence[int], states: Sequence[Tensor], masks: Sequence[Tensor | None]) -> Tensor:
        """Lay out the hidden states of some runs, each [rows, length, size]; return them as [1, T, size]."""
        self.members, self.masks = [*members], [*masks]
        self.shapes = [(each.shape[0], each.shape[1]) for each in states]
        rows, tokens = [shape[0] for shape in self.shapes], [shape[0] * shape[1] for shape in self.shapes]
        # After the attention of the last layer, only the first token of each row may be left.
        self._sizes, self._runs = {sum(rows): rows, sum(tokens): tokens}, {}
        return torch.cat([each.flatten(0, 1) for each in states])[None]

    def sizes(self, states: Tensor) -> list[int]:
        """The number of positions of each run in [1, T, size], or in [1, R, size] with the first token of each row."""
        return self._sizes[states.shape[1]]

    def runs(self, states: Tensor) -> Tensor:
        """The place of the run of each position: [T] or [R]."""
        total = states.shape[1]
        if total not in self._runs:
            sizes = torch.tensor(self._sizes[total], device=states.device)
            self._runs[total] = torch.repeat_interleave(sizes, output_size=total)
        return self._runs[total]

    def split(self, states: Tensor) -> list[Tensor]:
        """The hidden states of each run: [1, T, size] -> [rows, length, size], or [rows, 1, size] for first tokens."""
        return [
            each.unflatten(0, (shape[0], -1)) for each, shape in zip(self.segments(states), self.shapes, strict=True)
        ]

    def segments(self, states: Tensor) -> tuple[Tensor, ...]:
        """The positions of each run: [1, T, size] -> [T of the run, size]."""
        return states[0].split(self.sizes(states))

    def each(self, states: Tensor, compute: Callable[[int, Tensor], Tensor]) -> Tensor:
        """What `compute` returns for the place and the batch, [rows, length, size], of each run, laid out as `states`."""
        parts = [compute(at, batch).flatten(0, 1) for at, batch in enumerate(self.split(states))]
        return torch.cat(parts)[None]

    def first(self, states: Tensor) -> Tensor:
        """The first token of each row: [1, T, size] -> [1, R, size]."""
        return torch.cat([batch[:, 0] for batch in self.split(states)])[None]
