"""Training: one loop for every task, encoder and method, which resumes after a kill as if nothing had happened.

Two runs of one recipe on the CPU of one machine give the same bytes, whether or not they were interrupted: the batches
are a function of the seed (`xlgrid.training.schedule.plan`), what a step draws (dropout, masks of text and of attention) is seeded
from (seed, step), and all else that a step changes is in the state file.

A step that runs out of a GPU's memory is done again from its beginning in parts of half the size, and so are all later
ones: the same batch, seed and loss, but sums in another order, and dropout and masks, which are drawn part by part,
another draw.
"""

import contextlib
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from xlgrid.base.arrays import Ints
from xlgrid.data import batches
from xlgrid.data.encoders import token_ids
from xlgrid.heads import ALL_HEADS
from xlgrid.methods import make
from xlgrid.models import deltas, load, prediction
from xlgrid.training import schedule, state
from xlgrid.training.recipe import Recipe, Training
from xlgrid.training.results import fingerprint, packages, write_results, write_tensors
from xlgrid.training.state import say

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

# The attributes of a `Loop` that a step changes, besides the weights and the optimiser.
PROGRESS = ("step", "limit", "seconds", "losses", "curve", "best", "best_step", "best_score")


class Stopped(Exception):
    """A signal asked the process to end."""


def train(
    recipe: Recipe,
    encoder: str | Path,
    train: Sequence[Path],
    dev: Sequence[Path],
    folder: str | Path,
    start: Path | None = None,
    first: Path | None = None,
    vocabulary: Path | None = None,
) -> None:
    """Train one run. Write `delta.safetensors`, `run.json` and `curve.jsonl` to `folder`, and during training
    `step{n}.safetensors` for each of the recipe's snapshots: the weights of delta.safetensors as they are after step n.

    Args:
        encoder: the folder of the pretrained encoder.
        train, dev: the tokens files of the source, one for each part of a mix, in the same order.
        folder: the run's folder. An interrupted run of the same recipe goes on from `state.pt` in it.
        start: the folder of the run on text that the recipe's `start` names.
        first: the folder of the run of the task that the recipe's `first` names.
        vocabulary: for text in another vocabulary than the encoder's, the folder of this vocabulary: the model gets embeddings
            of its tokens, which train whatever else the method trains.

    Raises:
        FileNotFoundError: an input is missing.
        ValueError: an input is damaged or does not fit, `start` or `first` is missing where the recipe has one, or is
            there where the recipe has none, or memory runs out even one example at a time.
        FloatingPointError: the loss or the gradient is not finite; no result is saved.
        SystemExit: SIGTERM or SIGUSR2 came (status 75, EX_TEMPFAIL); the state is saved, the same call goes on.
    """
    loop = Loop(recipe, Path(encoder), train, dev, Path(folder), start, first, vocabulary)
    with _signals() as stop:
        try:
            loop.go(stop)
        except Stopped:
            loop.save()
            say(
                f"stopped by {stop[0].name} before step {loop.step + 1} of {loop.steps}; the same command goes on there"
            )
            raise SystemExit(os.EX_TEMPFAIL) from None
    loop.finish()


class Loop:
    """A run in progress. What `save` writes changes from step to step; all else follows from the recipe."""

    def __init__(
        self,
        recipe: Recipe,
        encoder: Path,
        train: Sequence[Path],
        dev: Sequence[Path],
        folder: Path,
        start: Path | None = None,
        first: Path | None = None,
        vocabulary: Path | None = None,
    ) -> None:
        import torch

        self.began = time.monotonic()
        self.recipe, self.settings, self.folder = recipe, recipe.training, folder
        text = recipe.start.of_run(recipe.source) if recipe.start else None
        for option, name, run in (("start", text, start), ("first", recipe.first, first)):
            if (name is None) != (run is None):
                raise ValueError(
                    f"the recipe's `{option}` is the run of {name}, but the call names no folder of a run: add --{option}"
                    if name
                    else f"the recipe has no `{option}`, but the call names the run in {run}: leave out --{option}"
                )
        self.begun_with = {
            "encoder": str(encoder),
            "start": None if start is None else str(start),
            "first": None if first is None else str(first),
            "vocabulary": None if vocabulary is None else str(vocabulary),
        }
        # The recipe has only names of the encoder, the data and the earlier runs; these are the files.
        begun = [run / deltas.DELTA for run in (start, first) if run]
        begun += [vocabulary / "tokenizer.json"] if vocabulary else []
        self.inputs = fingerprint([encoder / "model.safetensors", *train, *dev, *begun])
        codes = recipe.source.parts
        self.train, self.dev = (
            batches.mix(
                [batches.read(path, code) for path, code in zip(paths, codes, strict=True)], self.settings.mix_seed
            )
            for paths in (train, dev)
        )
        if not len(self.dev):
            raise ValueError(f"{', '.join(map(str, dev))}: no examples to choose the best checkpoint with")
        self.head = ALL_HEADS.find(self.train.head)
        self.metric, *_ = self.head.metrics(self.dev.label_names)
        self.device = prediction.default_device()
        if self.device.type == "cuda":
            torch.use_deterministic_algorithms(True, warn_only=True)
        self.bf16 = self.settings.precision == "bf16" and self.device.type == "cuda"
        self.method = make(recipe.base, recipe.options)
        random.seed(recipe.seed)
        np.random.seed(recipe.seed % 2**32)
        torch.manual_seed(recipe.seed)
        self.model: PreTrainedModel = load.load_model(
            encoder, self.head, len(self.train.label_names), self.settings.dropout
        )
        load.check_positions(self.model, self.train, self.dev)
        if self.settings.head == "lm-head":
            load.head_of_lm(self.model, encoder)
        if vocabulary:
            load.change_vocabulary(self.model, token_ids(encoder), token_ids(vocabulary))
        self.method.install(self.model)
        if start:
            deltas.load_text_run(start, self.model, self.method)
        if first:
            deltas.load_run(first, self.model, self.method, self.head)
        self.model.to(self.device)  # type: ignore[arg-type]
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad_(self.method.trains(name))
        if vocabulary:
            self.model.get_input_embeddings().requires_grad_()
        self.weights = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        # The usual exception: biases and norms do not decay.
        groups = [
            {"params": [p for p in self.weights.values() if p.dim() > 1], "weight_decay": self.settings.weight_decay},
            {"params": [p for p in self.weights.values() if p.dim() <= 1], "weight_decay": 0.0},
        ]
        self.optimiser = torch.optim.AdamW([g for g in groups if g["params"]], lr=self.settings.lr, fused=True)
        self.plan = schedule.plan(self.train, self.settings, recipe.seed)
        self.steps = self.plan.steps
        if (last := max(self.settings.snapshots, default=0)) > self.steps:
            raise ValueError(
                f"`snapshots` has step {last:,}, but this training has {self.steps:,} steps: leave it out, or train longer"
            )
        self.step = 0
        self.limit = self.settings.micro_batch_tokens
        self.seconds = 0.0
        self.losses: list[float] = []
        self.curve: list[dict[str, float]] = []
        self.best: dict[str, torch.Tensor] = {}
        self.best_step = self.best_score = -1.0
        self.resume()

    def go(self, stop: list[signal.Signals]) -> None:
        """Train to the end; `stop` receives signals.

        Raises:
            Stopped: a signal came.
        """
        count = min(self.settings.evaluations, self.steps)
        due = {round(self.steps * (number + 1) / count) for number in range(count)}
        ahead = islice(schedule.stream(self.train, self.settings, self.recipe.seed, self.plan), self.step, None)
        saved = time.monotonic()
        self.model.train()

        def check() -> None:
            if stop:
                raise Stopped

        while True:
            # Evaluated before a stop or save at this step is noted in the curve, so a resumed run does it exactly once.
            if self.step in due and (not self.curve or self.curve[-1]["step"] < self.step):
                self.evaluate(check)
            # Likewise before a stop or save at this step; once more after one, the same bytes.
            if self.step in self.settings.snapshots:
                write_tensors(deltas.snapshot_path(self.folder, self.step), self.recipe, self.trained())
            if self.step == self.steps:
                return
            check()
            if time.monotonic() - saved >= self.settings.checkpoint_seconds:
                self.save()
                saved = time.monotonic()
            self.advance(next(ahead))

    def advance(self, chosen: Ints) -> None:
        """One optimiser step on the examples `chosen`."""
        import torch

        rate = learning_rate(self.settings, self.step, self.steps)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.zero_grad(set_to_none=True)
        loss = self.differentiate(chosen)
        norm = float(torch.nn.utils.clip_grad_norm_(self.weights.values(), self.settings.clip))
        if not (np.isfinite(loss) and np.isfinite(norm)):
            raise FloatingPointError(
                f"the loss is {loss:g} and the gradient norm {norm:g} at step {self.step + 1} of {self.steps}, "
                f"learning rate {rate:.3g}: nothing is saved; "
                f"lower `lr`, lengthen `warmup`, or set `precision: fp32`, and run again"
            )
        try:
            self.optimiser.step()
        except torch.OutOfMemoryError as error:
            # It may have begun, so the step cannot be done again; and what smaller parts would save is free by now.
            raise ValueError(
                f"the optimiser ran out of memory at step {self.step + 1} of {self.steps}, where fewer tokens at once do "
                "not help: use a larger GPU, a smaller encoder, or a method that trains fewer weights; "
                f"torch says: {error}"
            ) from error
        self.losses.append(loss)
        self.step += 1

    def differentiate(self, chosen: Ints) -> float:
        """Give the weights, which have none, the gradients of the examples `chosen`; return their loss.

        Where memory runs out, `limit` is halved until it does not.

        Raises:
            ValueError: memory runs out one example at a time.
        """
        import torch

        while True:
            parts = batches.cut(self.train.lengths, chosen, self.limit or sys.maxsize)
            try:
                return self.accumulate(parts)
            except torch.OutOfMemoryError as error:
                problem = str(error)
            self.optimiser.zero_grad(set_to_none=True)
            self.limit = prediction.halved(self.limit or sys.maxsize, self.train.lengths, parts, problem)
            say(
                f"out of memory at step {self.step + 1} of {self.steps}: the same batch again, and all later ones, "
                f"{self.limit} tokens at once"
            )

    def accumulate(self, parts: list[Ints]) -> float:
        """Add the gradients of a batch, part by part, to those of the weights; return its loss."""
        import torch

        torch.manual_seed(int(np.random.SeedSequence([self.recipe.seed, self.step]).generate_state(1, np.uint64)[0]))
        token_types = self.settings.segments and load.has_segments(self.model)
        collated = [self.head.collate(self.train, part, token_types, self.device) for part in parts]
        extras = [prediction.extras(self.method, self.train, part, self.device, training=True) for part in parts]
        # The mean is over the whole batch, so that micro-batches change nothing but the order of sums.
        terms = max(1, sum(map(self.head.terms, collated)))
        loss = 0.0
        for batch, extra in zip(collated, extras, strict=True):
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
                share = self.head.loss(self.model, batch | extra) / terms
            share.backward()
            loss += float(share.detach())
        return loss

    def evaluate(self, check: Any) -> None:
        """Score the dev set, add a line to the curve, keep the weights if they are the best so far, or the last count."""
        import torch

        # For methods whose evaluation has something random: the same whether it follows a step or an interruption.
        torch.manual_seed(self.recipe.seed)
        budget = self.limit or self.settings.batch_tokens
        outcomes = prediction.outcomes_on(
            self.model, self.method, self.dev, budget, self.bf16, self.settings.segments, check
        )
        line = {
            "step": self.step,
            "loss": sum(self.losses) / max(1, len(self.losses)),
            "score": self.metric.score(outcomes),
            "lr": learning_rate(self.settings, self.step - 1, self.steps),
            "seconds": round(self.elapsed(), 3),
        }
        self.curve.append(line)
        self.losses = []
        first = self.best_step < 0
        if first or self.settings.keep == "last" or self.metric.better(line["score"], self.best_score):
            self.best_step, self.best_score = line["step"], line["score"]
            self.best = self.trained()
        say(
            f"step {self.step}/{self.steps}  loss {line['loss']:.4f}  dev {line['score']:.2f}  "
            f"({self.settings.keep} {self.best_score:.2f} at {self.best_step})  {line['seconds']:.0f} s"
        )

    def trained(self) -> dict[str, "torch.Tensor"]:
        """A copy of what the run's results hold, as it is now."""
        kept = deltas.kept(self.model, self.method, self.head, bool(self.begun_with["vocabulary"]))
        return {name: p.detach().cpu().clone() for name, p in kept.items()}

    def elapsed(self) -> float:
        """Seconds of training, those before interruptions included."""
        return self.seconds + time.monotonic() - self.began

    def save(self) -> None:
        """Write the state, atomically."""
        values = {name: getattr(self, name) for name in PROGRESS}
        changing = {
            "seconds": self.elapsed(),
            "weights": {name: parameter.detach() for name, parameter in self.weights.items()},
            "optimiser": self.optimiser.state_dict(),
        }
        state.write(self.folder, self.recipe.digest(), self.inputs, values | changing)

    def resume(self) -> None:
        """Continue from the state in the folder, if it is whole and of this recipe; otherwise remove the snapshots of an
        earlier training."""
        import torch

        saved = state.read(self.folder, self.recipe.digest(), self.inputs, self.settings.snapshots, self.device)
        if saved is None:
            for snapshot in self.folder.glob("step*.safetensors"):
                snapshot.unlink()
            return
        with torch.no_grad():
            for name, parameter in self.weights.items():
                parameter.copy_(saved["weights"][name])
        self.optimiser.load_state_dict(saved["optimiser"])
        for name in PROGRESS:
            setattr(self, name, saved[name])
        self.best = {name: tensor.cpu() for name, tensor in self.best.items()}
        say(f"resumes after step {self.step} of {self.steps}")

    def finish(self) -> None:
        """Write the results and remove the state."""
        details = {
            **self.begun_with,
            "inputs": self.inputs,
            "labels": list(self.train.label_names),
            # Of the weights that are kept, be they the best or the last.
            "best_step": self.best_step,
            "dev_score": self.best_score,
            "metric": self.metric.name,
            "steps": self.steps,
            # Less than the recipe asks for, where memory ran out.
            "micro_batch_tokens": self.limit,
            "n_train": self.train.examples,
            "n_dev": self.dev.examples,
            "parameters": {
                "trained": sum(p.numel() for p in self.weights.values()),
                "total": sum(p.numel() for p in self.model.parameters()),
            },
            **prediction.circumstances(self.device),
            **packages(self.recipe, self.head.name),
            "seconds": round(self.elapsed(), 3),
        }
        write_results(self.folder, self.recipe, details, self.curve, self.best)
        (self.folder / state.STATE).unlink(missing_ok=True)


def learning_rate(settings: Training, step: int, steps: int) -> float:
    """The learning rate of `step` (from 0): linear up over the warm-up, linear down to 0 after the last."""
    warm = round(settings.warmup * steps)
    return settings.lr * ((step + 1) / (warm + 1) if step < warm else (steps - step) / (steps - warm))


@contextlib.contextmanager
def _signals() -> Iterator[list[signal.Signals]]:
    """A list that receives SIGTERM and SIGUSR2 while the block runs (in the main thread; else it stays empty)."""
    got: list[signal.Signals] = []

    def note(number: int, frame: FrameType | None) -> None:
        got.append(signal.Signals(number))

    if threading.current_thread() is not threading.main_thread():
        yield got
        return
    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGUSR2)}
    try:
        yield got
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
