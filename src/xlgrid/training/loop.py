"""Training: one loop for every task, encoder and method, which resumes after a kill as if nothing had happened.

Two runs of one recipe on the CPU of one machine give the same bytes, whether or not they were interrupted: the batches
are a function of the seed (`xlgrid.training.schedule.plan`), the random numbers of a part of a step (dropout, masks of
text and of attention) are seeded with (seed, step, part), and the state file has everything else that a step changes.

Several processes (`xlgrid.training.processes`) share the parts of every step. Their weights equal the weights that one
process gets with the same parts, up to the order of sums.

A step that runs out of GPU memory starts again with parts of half the size, and all later steps use this size, too.
The batch, the seed and the expected loss stay the same. The order of sums changes, and so do dropout and masks, because
each part draws its own.
"""

import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from xlgrid.base.arrays import Ints
from xlgrid.base.clock import Clock
from xlgrid.data import batches
from xlgrid.data.encoders import token_ids
from xlgrid.heads import ALL_HEADS
from xlgrid.heads.transfer import on_device
from xlgrid.methods import make
from xlgrid.models import averaging, by_language, deltas, first_token, fit, load, prediction
from xlgrid.models.device import allows, repeats, seed_generators, training_device
from xlgrid.models.precision import arithmetic, autocast, uses_bf16
from xlgrid.training import processes, schedule, state
from xlgrid.training.optimiser import clip, new_optimiser
from xlgrid.training.progress import Progress, added, means
from xlgrid.training.recipe import Recipe
from xlgrid.training.results import packages, write_record, write_tensors
from xlgrid.training.schedule import learning_rate
from xlgrid.training.signals import Stopped, signals
from xlgrid.training.state import say
from xlgrid.training.taken import Taken

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

# The attributes of a `Loop` that a step changes, besides the weights and the optimiser.
PROGRESS = ("step", "limit", "first_loss", "losses", "curve", "best", "best_step", "best_score", "steps_in_fp32")
# A run in bf16 with a larger share of steps in fp32 says so at its end.
MANY_IN_FP32 = 0.01

# After a save of at least `LONG_SAVE` seconds, training goes on for so many times as long before the next one.
SHARE_OF_SAVES, LONG_SAVE = 20, 1.0


def train(
    recipe: Recipe,
    encoder: str | Path,
    train: Sequence[Path],
    dev: Sequence[Path],
    folder: str | Path,
    start: Path | None = None,
    first: Path | None = None,
    tokenizer: Path | None = None,
) -> None:
    """Train one run. Write `delta.safetensors`, `run.json` and `curve.jsonl` to `folder`.

    During training, also write `step{n}.safetensors` for each step n in the recipe's `checkpoints`. This file has the
    same tensors as delta.safetensors, with their values after step n.

    Args:
        encoder: the folder of the pretrained encoder.
        train: the tokens files of the source, one for each part of a mix, in the same order.
        dev: the tokens files to evaluate on: one for each part of the source, or one for each of the `dev_targets`.
        folder: the run's folder. An interrupted run of the same recipe continues from `state.pt` in this folder.
        start: the folder of the MLM run that the recipe's `start` names.
        first: the folder of the run of the task that the recipe's `first` names.
        tokenizer: the folder of the tokenizer, if it is not the encoder's. The model then gets embeddings for its
            tokens, and these embeddings train with every method.

    Raises:
        FileNotFoundError: an input is missing.
        ValueError: an input is damaged or does not fit the others; the call and the recipe disagree on whether there is
            a `start` or `first`; or memory is too small for a single example.
        FloatingPointError: the loss or the gradient is not finite; no result is saved.
        SystemExit: the process received SIGTERM, SIGUSR2 or SIGINT. The exit status is 75 (EX_TEMPFAIL); the state is
            saved, and the same call continues from it.
    """
    run(Loop(recipe, Path(encoder), train, dev, Path(folder), start, first, tokenizer))


def run(loop: "Loop") -> None:
    """Train to the end and write the results.

    Raises:
        ValueError, FloatingPointError, SystemExit: for the same reasons as in `train`.
    """
    with signals() as stop:
        try:
            loop.go(stop)
        except Stopped:
            loop.save()
            # `stop` is empty if another process of this training received the signal.
            by = f" by {stop[0].name}" if stop else ""
            say(f"stopped{by} before step {loop.step + 1} of {loop.steps}; the same command continues there")
            raise SystemExit(os.EX_TEMPFAIL) from None
        # A signal that comes from here on does not keep the results from being written.
        loop.finish()
        loop.processes.leave()


class Loop:
    """A run in progress. The values that `save` writes change from step to step; the recipe decides all others."""

    def __init__(
        self,
        recipe: Recipe,
        encoder: Path,
        train: Sequence[Path],
        dev: Sequence[Path],
        folder: Path,
        start: Path | None = None,
        first: Path | None = None,
        tokenizer: Path | None = None,
    ) -> None:
        import torch

        self.clock = Clock()
        self.recipe, self.settings, self.encoder, self.folder = recipe, recipe.training, encoder, folder
        recipe.check_runs(start, first)
        begun_with = {"encoder": encoder, "start": start, "first": first, "tokenizer": tokenizer}
        self.begun_with = {name: place and str(place) for name, place in begun_with.items()}
        # The files behind the names of the encoder, the data and the earlier runs in the recipe.
        files = [*self.beginnings(), *train, *dev, *(run / deltas.DELTA for run in (start, first) if run)]
        files += [tokenizer / "tokenizer.json"] if tokenizer else []
        # Several processes cannot repeat a step that fails in one of them.
        self.device = training_device(strict=not processes.is_shared())
        self.processes = processes.join(self.device)
        self.inputs = self.processes.from_first(lambda: state.inputs_of(folder, files))
        self._read(train, dev)
        self.bf16 = uses_bf16(self.device, self.settings.precision)
        self._make_model(start, first, tokenizer)
        self._choose_weights(tokenizer is not None)
        self.optimiser = new_optimiser(self.weights, self.settings)
        self.plan = schedule.plan(self.train, self.settings, recipe.seed)
        self.steps = self.plan.steps
        if (last := max(self.settings.checkpoints, default=0)) > self.steps:
            raise ValueError(
                f"`checkpoints` has step {last:,}, but this training has {self.steps:,} steps: leave it out, or train longer"
            )
        self.step, self.limit = 0, self.settings.micro_batch_tokens
        # The number of tokens to which evaluation had to lower its batches; 0: it has not.
        self.evaluated = 0
        # The loss of the first batch, before any step. A training without steps has no loss.
        self.first_loss = float("nan") if self.steps else 0.0
        # The sum of each loss over the steps since the last evaluation.
        self.losses: dict[str, float] = {}
        self.curve: list[dict[str, float]] = []
        self.best: dict[str, torch.Tensor] = {}
        self.best_step = self.best_score = -1.0
        # The steps whose losses have not been read, the first of them first.
        self.taken: list[Taken] = []
        # Whether one of them was not finite: 1 or 0, on the device.
        self.failed = torch.zeros((), device=self.device)
        # The number of steps that were not finite in bf16, and were taken again in fp32.
        self.steps_in_fp32 = 0
        self.resume()
        self.progress = Progress(self.step, self.steps)
        # All processes wait here, so that none writes files while another still looks for files of an earlier training.
        self.processes.sums({"ready": 1.0})

    def _read(self, train: Sequence[Path], dev: Sequence[Path]) -> None:
        """Read the data, and set their head and their main metric.

        Raises:
            ValueError: there are no examples to choose the best checkpoint with.
        """
        recipe = self.recipe
        train_parts, dev_parts = (
            [batches.read(path, code) for path, code in zip(paths, codes, strict=True)]
            for paths, codes in ((train, recipe.train_parts), (dev, recipe.dev_parts))
        )
        self.train = batches.mix(train_parts, self.settings.mix_seed, recipe.mix)
        dev_mix = (dev_parts, self.settings.mix_seed, recipe.mix)
        self.dev_sets = dev_parts if self.settings.dev_targets else [batches.mix(*dev_mix)]
        if not all(map(len, self.dev_sets)):
            raise ValueError(f"{', '.join(map(str, dev))}: no examples to choose the best checkpoint with")
        self.head = self.objective = ALL_HEADS.find(self.train.head).of(self.train.options)
        self.metric = self.head.metric(self.train.label_names, recipe.metric)

    def _make_model(self, start: Path | None, first: Path | None, tokenizer: Path | None) -> None:
        """Load the encoder with a head, install the method, and load the weights of earlier runs.

        The recipe's seed decides all random numbers.
        """
        import torch

        self.method = make(self.recipe.base, self.recipe.options)
        random.seed(self.recipe.seed)
        np.random.seed(self.recipe.seed % 2**32)
        torch.manual_seed(self.recipe.seed)
        self.model = self.load_model()
        self.objective = self.objective.smoothed(self.settings.label_smoothing)
        load.check_positions(self.model, self.train, *self.dev_sets)
        for setting in self.settings.added.values():
            setting.begin(self.model, self.encoder)
        if tokenizer:
            ids = token_ids(self.encoder), token_ids(tokenizer)
            load.change_tokenizer(self.model, *ids, self.method)
        fit.install(self.model, self.head, self.method)
        if start:
            deltas.load_mlm_run(start, self.model, self.method)
        if first:
            digest = deltas.read_run(first)["digest"]
            deltas.load_delta(first / deltas.DELTA, self.model, self.method, self.head, digest)
        first_token.read_first_token(self.model, self.head)
        prediction.place(self.model, self.device)
        self.method.begin(self.model)
        for setting in self.settings.added.values():
            setting.complete(self.model)

    def _choose_weights(self, is_resized: bool) -> None:
        """Choose the parameters that train.

        Args:
            is_resized: whether the model has embeddings for another tokenizer, which then train.

        Raises:
            ValueError: the model has no module for one of the languages. This check avoids the same error hours later.
        """
        parameters = deltas.named_parameters(self.model)
        for name, parameter in parameters.items():
            parameter.requires_grad_(self.trains(name))
        if is_resized:
            self.model.get_input_embeddings().requires_grad_()
        self.weights = {name: p for name, p in parameters.items() if p.requires_grad}
        sources = [*dict.fromkeys(code for part in self.recipe.train_parts for code in part.languages)]
        by_language.give(self.model, self.weights, sources)
        by_language.parts(self.model, [*sources, *(code for dev in self.dev_sets for code in dev.languages)])

    def beginnings(self) -> list[Path]:
        """The files that decide the weights before the first step, together with the recipe."""
        return [self.encoder / "model.safetensors"]

    def load_model(self) -> "PreTrainedModel":
        """The encoder with a head, before the method is installed."""
        return load.load_model(self.encoder, self.head, len(self.train.label_names), self.settings.dropout, say)

    def trains(self, name: str) -> bool:
        """Whether the run trains the parameter `name`."""
        return deltas.trains(self.method, name)

    def go(self, stop: list[signal.Signals]) -> None:
        """Train to the end.

        Args:
            stop: the signals that this process has received so far.

        Raises:
            Stopped: this process, or another process of the training, has received a signal.
        """
        ahead = schedule.stream(self.train, self.settings, self.recipe.seed, self.plan, self.step)
        saved, pause = time.monotonic(), self.settings.checkpoint_seconds
        self.model.train()

        def check() -> None:
            # All processes stop before the same step, whichever of them received the signal.
            own = self.clock.of_process
            shared = self.processes.sums({"stop": bool(stop), "cpu_seconds": own})
            self.clock.others = shared["cpu_seconds"] - own
            if shared["stop"]:
                raise Stopped

        while True:
            # An evaluation before a stop or save at this step is in the curve, so a resumed run does not repeat it.
            if self.is_due():
                self.evaluate(check)
            # A resumed run may write a checkpoint again, with the same bytes.
            if self.step in self.settings.checkpoints:
                self.settle()
            if self.step in self.settings.checkpoints and self.processes.writes:
                write_tensors(deltas.checkpoint_path(self.folder, self.step), self.recipe, self.trained())
            if self.step == self.steps:
                return
            check()
            if time.monotonic() - saved >= pause:
                began = time.monotonic()
                self.save()
                saved = time.monotonic()
                took = saved - began
                pause = max(self.settings.checkpoint_seconds, SHARE_OF_SAVES * took if took >= LONG_SAVE else 0.0)
            self.advance(next(ahead))

    def is_due(self) -> bool:
        """Whether the current weights have to be evaluated, and have not been yet."""
        # A training without steps is evaluated, too.
        count = max(1, min(self.settings.evaluations, self.steps))
        due = {round(self.steps * (number + 1) / count) for number in range(count)}
        return self.step in due and (not self.curve or self.curve[-1]["step"] < self.step)

    def advance(self, chosen: Ints) -> None:
        """Take one optimiser step on the examples `chosen`, and read the numbers of the step before it.

        Raises:
            FloatingPointError: the loss or the gradient of the step before is not finite.
        """
        self.take_step(chosen)
        # Several processes exchange numbers in each step, so that their hosts wait in any case.
        self.settle(unread=1 if self.processes.count == 1 else 0)

    def take_step(self, chosen: Ints) -> None:
        """Take one optimiser step on the examples `chosen`.

        If its loss or its gradient is not finite, the weights and the optimiser stay as they are, in this step and in
        all later ones, until `settle` has seen it.
        """
        import torch

        rate = learning_rate(self.settings, self.step, self.steps)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.zero_grad(set_to_none=True)
        losses = self.differentiate(chosen)
        norm = clip(self.weights, self.settings.clip).double().to(self.device)
        numbers = torch.stack([*losses.values(), norm])
        self.failed = torch.maximum(self.failed, 1 - torch.isfinite(numbers).all().float())
        # With this attribute, which torch.amp.GradScaler sets, too, a fused optimiser changes nothing if it is 1.
        self.optimiser.found_inf = self.failed  # type: ignore[attr-defined]
        try:
            self.optimiser.step()
        except (RuntimeError, MemoryError) as error:
            if not prediction.is_out_of_memory(error):
                raise
            # Some weights may have changed, so the step cannot be repeated. Smaller parts would not help, because the
            # memory of the activations is free by now.
            raise ValueError(
                f"the optimiser ran out of memory at step {self.step + 1} of {self.steps}; fewer tokens at once do "
                "not help: use a larger GPU, a smaller encoder, or a method that trains fewer weights; "
                f"torch says: {error}"
            ) from error
        self.taken.append(Taken.of(self.step, chosen, rate, tuple(losses), numbers))
        self.step += 1

    def settle(self, unread: int = 0) -> None:
        """Read the losses of the steps taken so far, but for the last `unread` ones. Nothing is saved before.

        A step in bf16 that is not finite is taken again in fp32, with the same random numbers, and so are the steps
        after it, in bf16.

        Raises:
            FloatingPointError: the loss or the gradient of a step is not finite in fp32.
        """
        while len(self.taken) > unread:
            first, *later = self.taken
            losses, norm = first.read()
            loss = sum(losses.values())
            if np.isfinite(loss) and np.isfinite(norm):
                self.taken = later
                self.losses = added(self.losses, losses)
                self.first_loss = self.first_loss if first.number else loss
                tokens = int(self.train.lengths[first.chosen].sum())
                self.progress.add(first.number + 1, losses, tokens, first.rate)
                continue
            at = f"step {first.number + 1} of {self.steps}"
            if not self.bf16:
                raise FloatingPointError(
                    f"the loss is {loss:g} and the gradient norm {norm:g} at {at}, "
                    f"learning rate {first.rate:.3g}: nothing is saved; lower `lr`, lengthen `warmup`, or set `precision: fp32`, "
                    "and run again"
                )
            if not self.steps_in_fp32:
                say(f"{at} is not finite in bf16, and is taken again in fp32, as later steps like it will be")
            self.steps_in_fp32 += 1
            self.step, self.taken, self.failed = first.number, [], self.failed.zero_()
            self.bf16 = False
            try:
                self.take_step(first.chosen)
                self.settle()
            finally:
                self.bf16 = True
            for each in later:
                self.take_step(each.chosen)

    def differentiate(self, chosen: Ints) -> "dict[str, torch.Tensor]":
        """Compute the gradients of the weights on the examples `chosen`, and return the losses by name, on the device.

        The weights have no gradients before. If memory runs out, the method halves `limit` and tries again.

        Raises:
            ValueError: memory is too small for a single example, or runs out in one of several processes.
        """
        while True:
            parts = self.cut(chosen)
            try:
                with arithmetic(self.device, self.bf16):
                    return self.accumulate(parts)
            except (RuntimeError, MemoryError) as error:
                is_lacking = self.goes_on(error)
                if not (is_lacking or prediction.is_out_of_memory(error)):
                    raise
                problem = str(error)
            if is_lacking:
                self.optimiser.zero_grad(set_to_none=True)
                continue
            if self.processes.count > 1:
                # The other processes wait for the gradients of this one, and cannot repeat the step.
                raise ValueError(
                    f"out of memory at step {self.step + 1} of {self.steps}, in one of {self.processes.count} processes: set "
                    f"`micro_batch_tokens` to less than {max(len(p) * int(self.train.lengths[p].max()) for p in parts)}; "
                    f"torch says: {problem}"
                )
            self.optimiser.zero_grad(set_to_none=True)
            self.limit = prediction.halved(self.limit or sys.maxsize, self.train.lengths, parts, problem)
            say(
                f"out of memory at step {self.step + 1} of {self.steps}: computes this batch again, and all later "
                f"batches, with {self.limit} tokens at once"
            )

    def goes_on(self, error: BaseException) -> bool:
        """Whether an error says that an operation has no deterministic algorithm; the training then goes on without it."""
        if not allows(error):
            return False
        say(f"note: {str(error).partition('.')[0]}: this training repeats up to rounding only")
        return True

    def cut(self, chosen: Ints) -> list[Ints]:
        """The rows `chosen`, cut into parts; one forward and backward pass computes one part."""
        groups = [chosen]
        if self.settings.micro_batches == "language" and self.train.parts is not None:
            groups = [chosen[self.train.parts[chosen] == part] for part in np.unique(self.train.parts[chosen])]
        parts = [part for group in groups for part in batches.cut(self.train.lengths, group, self.limit or sys.maxsize)]
        if len(parts) < self.processes.count and len(groups) == 1:
            shares = np.array_split(chosen, self.processes.count)
            parts = [p for share in shares for p in batches.cut(self.train.lengths, share, self.limit or sys.maxsize)]
        return parts

    def accumulate(self, parts: list[Ints]) -> "dict[str, torch.Tensor]":
        """Add the gradients of a batch to the gradients of the weights, part by part; return the losses by name."""
        import torch

        computed, totals = self.collate(parts)
        losses = dict.fromkeys(totals, torch.zeros((), dtype=torch.float64, device=self.device))
        for number, batch in computed.items():
            if number:
                seed_generators(self.device, self.seeds(number)[1])
            shares = self.shares(batch, totals)
            torch.stack([*shares.values()]).sum().backward()
            losses = {name: losses[name] + share.detach().double() for name, share in shares.items()}
        self.processes.add_gradients([*self.weights.values()])
        summed = torch.stack([*losses.values()])
        self.processes.add_up(summed)
        return dict(zip(losses, summed, strict=True))

    def collate(self, parts: list[Ints]) -> tuple[dict[int, dict[str, Any]], dict[str, float]]:
        """The batches of the parts of a step that this process computes, by the number of the part, and the number of
        terms of each loss in all parts.

        Afterwards, the random generator is where the model continues in part 0, the first.
        """
        token_types = self.settings.segments and load.has_segments(self.model)
        computed: dict[int, dict[str, Any]] = {}
        terms = dict.fromkeys(self.objective.loss_names, 0)
        # Part 0 comes last, so that its dropout continues with the random generator that drew its masks, as in a step
        # with one part only.
        for number in reversed(self.processes.own(range(len(parts)))):
            seed_generators(self.device, self.seeds(number)[0])
            batch = self.objective.collate(self.train, parts[number], token_types)
            for name, count in self.objective.terms_of_losses(batch).items():
                terms[name] += count
            computed[number] = on_device(batch, self.device) | prediction.extras(
                self.model, self.method, self.train, parts[number], training=True
            )
        # Means are over the whole batch, so that micro-batches change only the order of sums.
        return dict(reversed(computed.items())), self.processes.sums(terms)

    def shares(self, batch: dict[str, Any], totals: dict[str, float]) -> "dict[str, torch.Tensor]":
        """The losses of a part of a step by name, each as its share of the mean over the whole batch.

        Args:
            totals: the number of terms of each loss in the whole batch.
        """
        with autocast(self.device, self.bf16):
            losses = self.objective.losses(self.model, batch)
            return {name: loss / max(1, totals[name]) for name, loss in losses.items()}

    def seeds(self, part: int) -> list[int]:
        """Two seeds for the random numbers of a part of this step: one for its batch, one for the model."""
        numbers = [self.recipe.seed, self.step, *([part] if part else [])]
        return [int(seed) for seed in np.random.SeedSequence(numbers).generate_state(2, np.uint64)]

    def evaluate(self, check: Any) -> None:
        """Score the dev sets, add a line to the curve, and update the weights that the run stores, as `keep` says."""
        self.settle()
        steps = self.step - (int(self.curve[-1]["step"]) if self.curve else 0)
        line = {
            "step": self.step,
            "loss": sum(self.losses.values()) / max(1, steps),
            "score": self.score(check),
            "lr": learning_rate(self.settings, self.step - 1, self.steps),
            "seconds": self.clock.read()["seconds"],
        }
        self.curve.append(line)
        losses, self.losses = means(self.losses, steps), {}
        if self.settings.keep == "average":
            self.average()
        elif self.best_step < 0 or self.settings.keep == "last" or self.metric.better(line["score"], self.best_score):
            self.best_step, self.best_score = line["step"], line["score"]
            # The memory has no room for the last best weights beside the new ones.
            self.best = {}
            self.best = self.trained()
        weights = f"  ({self.settings.keep} {self.best_score:.2f} at {self.best_step})" if self.best else ""
        say(f"step {self.step}/{self.steps}  {losses}  dev {line['score']:.2f}{weights}  {line['seconds']:.0f} s")

    def score(self, check: Any = lambda: None) -> float:
        """The mean score on the dev sets."""
        # Some methods evaluate with random numbers. They are the same whether or not the run was interrupted before.
        seed_generators(self.device, self.recipe.seed)
        # Several processes must not retry with smaller batches: the others would wait at another batch for this one.
        halves = self.processes.count == 1
        try:
            outcomes = []
            for dev in self.dev_sets:
                settings = self.budget, self.bf16, self.settings.segments, check, halves, self.head, self.lower
                outcomes.append(prediction.outcomes_on(self.model, self.method, dev, *settings))
        except RuntimeError as error:
            if not self.goes_on(error):
                raise
            return self.score(check)
        return sum(map(self.metric.score, outcomes)) / len(outcomes)

    @property
    def budget(self) -> int:
        """The number of tokens in a batch of evaluation."""
        return min(filter(None, (self.limit or self.settings.batch_tokens, self.evaluated)))

    def lower(self, budget: int) -> None:
        """Evaluate with this number of tokens in a batch from now on, because memory ran out with more."""
        self.evaluated = budget

    def average(self) -> None:
        """Add the current weights to the mean over the last evaluations. At the end, score the mean."""
        count = min(self.settings.evaluations, self.steps)
        number = len(self.curve) - max(0, count - self.settings.averaged)
        if number > 0:
            self.best = averaging.next_mean(self.best, self.trained(), number)
            self.best_step, self.best_score = self.step, self.curve[-1]["score"]
        if self.step == self.steps:
            # A stop would leave the mean in the model, so nothing checks for signals.
            with averaging.in_place(self.kept(), self.best):
                self.best_score = self.score()

    def kept(self) -> dict[str, "torch.nn.Parameter"]:
        """The parameters that the run stores."""
        return deltas.kept(self.model, self.method, self.head, bool(self.begun_with["tokenizer"]))

    def trained(self) -> dict[str, "torch.Tensor"]:
        """A copy of the parameters that the run stores, with their current values, on the CPU."""
        return {name: p.detach().to("cpu", copy=True) for name, p in self.kept().items()}

    def save(self) -> None:
        """Write the state, atomically.

        Raises:
            FloatingPointError: for the same reasons as in `settle`; the last state stays.
        """
        self.settle()
        if not self.processes.writes:
            return
        state.write(self.folder, self.recipe.digest(), self.inputs, self.values())

    def values(self) -> dict[str, Any]:
        """Everything that a step changes."""
        return {name: getattr(self, name) for name in PROGRESS} | {
            **self.clock.read(),
            "weights": {name: parameter.detach() for name, parameter in self.weights.items()},
            "optimiser": self.optimiser.state_dict(),
        }

    def resume(self) -> None:
        """Continue from the state in the folder, if it is undamaged and from this recipe.

        Otherwise remove the checkpoints of an earlier training.
        """
        saved = state.read(self.folder, self.recipe.digest(), self.inputs, self.settings.checkpoints, self.device)
        if saved is None:
            for checkpoint in self.folder.glob("step*.safetensors"):
                checkpoint.unlink(missing_ok=True)
            return
        self.restore(saved)
        say(f"resumes after step {self.step} of {self.steps}")

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue with what `values` returned earlier."""
        import torch

        with torch.no_grad():
            for name, parameter in self.weights.items():
                parameter.copy_(saved["weights"][name])
        self.optimiser.load_state_dict(saved["optimiser"])
        for name in PROGRESS:
            setattr(self, name, saved[name])
        self.clock.add(saved)
        # After an error about memory, the user may have lowered `micro_batch_tokens`.
        self.limit = min(filter(None, (self.limit, self.settings.micro_batch_tokens)), default=None)
        self.best = {name: tensor.cpu() for name, tensor in self.best.items()}

    def finish(self) -> None:
        """Write the results and remove the state."""
        if not self.processes.writes:
            return
        if self.steps_in_fp32 > MANY_IN_FP32 * self.steps:
            say(
                f"warning: {self.steps_in_fp32:,} of {self.steps:,} steps were not finite in bf16, and were taken again in "
                "fp32: lower `lr`, lengthen `warmup`, or set `precision: fp32`"
            )
        self.write(self.details())
        state.remove(self.folder)

    def details(self) -> dict[str, Any]:
        """The entries of run.json besides the recipe and its digest."""
        chances = [self.head.chance(dev) for dev in self.dev_sets]
        return {
            **self.begun_with,
            "inputs": self.inputs,
            "labels": list(self.train.label_names),
            # The step and the score of the weights that are kept: the best, the last or a mean.
            "best_step": self.best_step,
            "dev_score": self.best_score,
            "metric": self.metric.name,
            # `xlgrid.results.learning` compares the loss before the first step with the last loss of the curve, and the
            # dev score with chance: the mean over the dev sets of the score of a guess.
            "loss": {"first": self.first_loss, "last": self.curve[-1]["loss"]},
            "chance": {
                name: sum(chance.get(name, 0.0) for chance in chances) / len(chances)
                for name in dict.fromkeys(name for chance in chances for name in chance)
            },
            "steps": self.steps,
            **({"steps_in_fp32": self.steps_in_fp32} if self.bf16 else {}),
            # This is less than the recipe's value if memory ran out.
            "micro_batch_tokens": self.limit,
            "n_train": self.train.examples,
            "n_dev": sum(dev.examples for dev in self.dev_sets),
            "parameters": {
                "trained": sum(p.numel() for p in self.weights.values()),
                "total": sum(p.numel() for p in self.model.parameters()),
            },
            "processes": self.processes.count,
            **prediction.circumstances(self.device),
            **repeats(self.device, self.model),
            **packages(self.recipe, self.head.name),
            **self.clock.read(),
        }

    def write(self, details: dict[str, Any]) -> None:
        """Write the results; `details` are the entries of run.json besides the recipe and its digest."""
        # run.json comes last, because a run with this file is complete.
        write_tensors(self.folder / deltas.DELTA, self.recipe, self.best)
        write_record(self.folder, self.recipe, details, self.curve)
