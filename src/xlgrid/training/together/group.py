"""Training of a group of runs on one encoder, in one forward pass for all.

Everything of a run is its own, and is computed by the code that trains a run alone (`xlgrid.training.loop`): the sampling
of batches, the head, the loss, the clipping, the optimiser, the random numbers of dropout, the evaluations, the best
checkpoint and the record. Only the layers of the encoder compute the tokens of all runs at once. Sums have another order
then, so that weights differ from those of separate trainings by rounding.

A group that was killed continues from its last state, and ends with the same bytes as one that was not.
"""

import hashlib
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from xlgrid.base.arrays import Ints
from xlgrid.models import prediction
from xlgrid.models.device import seed_generators
from xlgrid.models.precision import arithmetic, autocast
from xlgrid.training import schedule, state
from xlgrid.training.loop import Loop, Stopped
from xlgrid.training.progress import Progress
from xlgrid.training.recipe import Recipe
from xlgrid.training.state import say

if TYPE_CHECKING:
    from torch import Tensor

    from xlgrid.training.together.stack import Weights

    Batch = dict[str, Any]


class Files(NamedTuple):
    """The files of a run: the arguments of `xlgrid.training.loop.train`."""

    train: Sequence[Path]
    dev: Sequence[Path]
    start: Path | None = None
    first: Path | None = None
    tokenizer: Path | None = None


class Member(Loop):
    """A run of a group, which gets its gradients from the group."""

    def __init__(self, recipe: Recipe, encoder: Path, files: Files, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # The losses of a step whose gradients the group has computed.
        self.given: dict[str, Tensor] | None = None
        # The number of runs in one forward pass, at the end.
        self.at_once = 1
        super().__init__(recipe, encoder, files.train, files.dev, folder, files.start, files.first, files.tokenizer)

    def resume(self) -> None:
        """The group saves the states of all its runs at once."""

    def join(self, weights: "Weights", number: int) -> None:
        """Let the weights and gradients of this run be those of a run of the group."""
        from xlgrid.training.optimiser import new_optimiser

        self.weights, self.gradients = weights.of_run(number)
        self.optimiser = new_optimiser(self.weights, self.settings)

    def differentiate(self, chosen: Ints) -> "dict[str, Tensor]":
        losses, self.given = self.given, None
        if losses is None:
            # A step that was not finite in bf16 is taken again, by this run alone.
            self.forget_gradients()
            losses = super().differentiate(chosen)
        for name, weight in self.weights.items():
            weight.grad = self.gradients[name]
        return losses

    def forget_gradients(self) -> None:
        for gradient in self.gradients.values():
            gradient.zero_()

    def details(self) -> dict[str, Any]:
        """The entries of run.json; the times are the run's share of the time of the group."""
        count = len(self.recipe.together)
        shares = {name: round(value / count, 3) for name, value in self.clock.read().items()}
        return {**super().details(), **shares, "together": [*self.recipe.together], "at_once": self.at_once}


class _Reached(Exception):
    """The forward pass of a model has reached its layers."""

    def __init__(self, states: "Tensor", mask: "Tensor | None") -> None:
        super().__init__()
        self.states, self.mask = states, mask


class Group:
    """Runs that train together.

    Attributes:
        failed: the numbers of the runs that ended early -> why.
        width: the number of runs in one forward pass, which is halved when memory runs out.
    """

    def __init__(self, members: Sequence[Member], folder: Path) -> None:
        """Begin, or continue from the state in the folder.

        Raises:
            ValueError: the runs cannot train together, or several processes share the training.
        """
        from xlgrid.training.together.layout import Layout, Random
        from xlgrid.training.together.stack import Stack, Weights

        self.members, self.folder = [*members], folder
        if members[0].processes.count > 1:
            raise ValueError("runs that train together have one process: leave out `together`, or the other processes")
        self.device, self.bf16 = members[0].device, members[0].bf16
        self.random = Random(self.device)
        self.random.states = [self.random.read() for _ in members]
        self.weights = Weights([member.weights for member in members])
        self.stack = Stack([member.model for member in members], self.weights, Layout(self.random))
        for number, member in enumerate(members):
            member.join(self.weights, number)
        self.failed: dict[int, str] = {}
        self.width = len(members)
        self._resume()

    def go(self, stop: list[signal.Signals]) -> None:
        """Train all runs to their ends; a run whose loss is not finite ends early.

        Args:
            stop: the signals that this process has received so far.

        Raises:
            Stopped: this process has received a signal.
        """

        def check() -> None:
            if stop:
                raise Stopped

        streams = [
            schedule.stream(each.train, each.settings, each.recipe.seed, each.plan, each.step) for each in self.members
        ]
        for member in self.members:
            member.model.train()
        saved, longest = time.monotonic(), max(self.members, key=lambda member: member.steps)
        # One log for all runs, which take their steps at the same time.
        progress = Progress(max(member.step for member in self.members), longest.steps)
        for member in self.members:
            member.progress = progress
        while True:
            alive = [number for number in range(len(self.members)) if number not in self.failed]
            for number in alive:
                if self.members[number].is_due():
                    say(f"{_named(self.members[number])}:")
                    with self._may_fail(number):
                        self.members[number].evaluate(check)
            running = [number for number in alive if self.members[number].step < self.members[number].steps]
            if not running:
                return
            check()
            if time.monotonic() - saved >= longest.settings.checkpoint_seconds:
                self.save()
                saved = time.monotonic()
            self.advance({number: next(streams[number]) for number in running if number not in self.failed})

    def advance(self, chosen: Mapping[int, Ints]) -> None:
        """Take a step of some runs, by their numbers, each on its own examples.

        A run whose loss or gradient is not finite is among the `failed` from then on.
        """
        losses = self.differentiate(chosen)
        for number, rows in chosen.items():
            member = self.members[number]
            member.given = losses[number]
            with self._may_fail(number):
                member.advance(rows)

    @contextmanager
    def _may_fail(self, number: int) -> Iterator[None]:
        """Let a run end early, if its loss is not finite, and not the group."""
        try:
            yield
        except FloatingPointError as error:
            self.failed[number] = str(error)
            say(f"{_named(self.members[number])} ends: {error}")

    def differentiate(self, chosen: Mapping[int, Ints]) -> "dict[int, dict[str, Tensor]]":
        """Compute the gradients of some runs, and return their losses by name, on the device.

        If memory runs out, fewer runs are in a forward pass from then on, and in the end smaller parts of batches.

        Raises:
            ValueError: memory is too small for a single example.
        """
        import torch

        while True:
            self.weights.begin()
            try:
                with arithmetic(self.device, self.bf16):
                    numbers = [*chosen]
                    losses: dict[int, dict[str, Tensor]] = {}
                    for at in range(0, len(numbers), self.width):
                        losses |= self._accumulate({number: chosen[number] for number in numbers[at : at + self.width]})
                    return losses
            except (RuntimeError, MemoryError) as error:
                if not prediction.is_out_of_memory(error):
                    raise
                problem = str(error)
            if self.width > 1:
                self.width = (self.width + 1) // 2
                torch.cuda.empty_cache()
                say(f"out of memory with the tokens of all runs at once: goes on with {self.width} runs at once")
                continue
            for member, rows in ((self.members[number], chosen[number]) for number in chosen):
                parts = member.cut(rows)
                member.limit = prediction.halved(member.limit or sys.maxsize, member.train.lengths, parts, problem)
            say(f"out of memory with the tokens of one run: goes on with {member.limit} tokens at once")

    def _accumulate(self, chosen: Mapping[int, Ints]) -> "dict[int, dict[str, Tensor]]":
        """Compute the gradients of runs that are in one forward pass, and return their losses by name."""
        import torch

        batches: dict[int, dict[int, Batch]] = {}
        totals: dict[int, dict[str, float]] = {}
        for number, rows in chosen.items():
            member = self.members[number]
            batches[number], totals[number] = member.collate(member.cut(rows))
            self.random.states[number] = self.random.read()
        losses: dict[tuple[int, str], Tensor] = {}
        for part in range(max(map(len, batches.values()))):
            now = {number: parts[part] for number, parts in batches.items() if part in parts}
            for number in now if part else ():
                seed_generators(self.device, self.members[number].seeds(part)[1])
                self.random.states[number] = self.random.read()
            shares = self._forward(now, totals)
            torch.stack([*shares.values()]).sum().backward()
            losses |= {key: losses.get(key, 0) + share.detach().double() for key, share in shares.items()}
        self.weights.collect()
        return {number: {name: losses[number, name] for name in totals[number]} for number in chosen}

    def _forward(
        self, batches: Mapping[int, "Batch"], totals: Mapping[int, dict[str, float]]
    ) -> "dict[tuple[int, str], Tensor]":
        """The losses of a batch of each run, by the run's number and the name of the loss."""
        reached = {}
        for number, batch in batches.items():
            with self.random.of(number):
                reached[number] = self._reach(number, batch, totals[number])
        with autocast(self.device, self.bf16):
            outputs = self.stack(
                [*reached], [each.states for each in reached.values()], [each.mask for each in reached.values()]
            )
        shares: dict[tuple[int, str], Tensor] = {}
        for (number, batch), output in zip(batches.items(), outputs, strict=True):
            of_run = self._continue(number, batch, totals[number], output)
            shares |= {(number, name): share for name, share in of_run.items()}
        return shares

    def _reach(self, number: int, batch: "Batch", totals: dict[str, float]) -> _Reached:
        """What the layers of a run's model read, without computing them."""
        base = self.members[number].model.base_model

        def embed(
            input_ids: "Tensor",
            attention_mask: "Tensor | None" = None,
            token_type_ids: "Tensor | None" = None,
            **_: Any,
        ) -> None:
            raise _Reached(base.embeddings(input_ids=input_ids, token_type_ids=token_type_ids), attention_mask)

        with _in_place_of(base, embed):
            try:
                self.members[number].shares(batch, totals)
            except _Reached as reached:
                return reached
        raise ValueError(f"head {self.members[number].head.name} does not read the encoder: leave out `together`")

    def _continue(self, number: int, batch: "Batch", totals: dict[str, float], output: "Tensor") -> "dict[str, Tensor]":
        """The losses of a run, from the output of the layers."""
        from transformers.modeling_outputs import BaseModelOutputWithPooling

        calls: list[None] = []
        base = self.members[number].model.base_model

        def outputs(*_: Any, **__: Any) -> Any:
            calls.append(None)
            self.random.set(self.random.states[number])
            pooled = base.pooler(output) if base.pooler else None
            return BaseModelOutputWithPooling(last_hidden_state=output, pooler_output=pooled)

        with _in_place_of(base, outputs):
            shares = self.members[number].shares(batch, totals)
        if len(calls) > 1:
            raise ValueError(
                f"head {self.members[number].head.name} reads the encoder twice in a step: leave out `together`"
            )
        return shares

    def save(self) -> None:
        """Write the state of all runs, atomically."""
        for number, member in enumerate(self.members):
            if number not in self.failed:
                with self._may_fail(number):
                    member.settle()
        values = {"members": [member.values() for member in self.members], "failed": self.failed, "width": self.width}
        state.write(self.folder, self._digest, self._inputs, {**values, "step": 0})

    def _resume(self) -> None:
        if saved := state.read(self.folder, self._digest, self._inputs, (), self.device):
            for member, values in zip(self.members, saved["members"], strict=True):
                member.restore(values)
            self.failed, self.width = saved["failed"], saved["width"]
            say(f"resumes after step {max(member.step for member in self.members)}")

    @property
    def _digest(self) -> str:
        return _joined(member.recipe.digest() for member in self.members)

    @property
    def _inputs(self) -> str:
        return _joined(member.inputs for member in self.members)


@contextmanager
def _in_place_of(module: Any, forward: Callable[..., Any]) -> Iterator[None]:
    """Compute `forward` in place of a module within a `with` block."""
    module.forward = forward
    try:
        yield
    finally:
        del module.forward


def _named(member: Member) -> str:
    return f"{member.recipe.method} on {member.recipe.source}, seed {member.recipe.seed}"


def _joined(texts: "Iterator[str]") -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
