"""Training: one loop for every task, encoder and method, which resumes after a kill as if nothing had happened.

Two runs of one recipe on the CPU of one machine give the same bytes, whether or not they were interrupted: the batches
are a function of the seed (`xlgrid.data.batches.plan`), what a step draws (dropout, masks of text and of attention) is seeded
from (seed, step), and all else that a step changes is in the state file.

A step that runs out of a GPU's memory is done again from its beginning in parts of half the size, and so are all later
ones: the same batch, seed and loss, but sums in another order, and dropout and masks, which are drawn part by part,
another draw.
"""

import contextlib
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from xlgrid.base.arrays import Ints
from xlgrid.base.files import whole, write_text
from xlgrid.data import batches
from xlgrid.heads import HEADS
from xlgrid.methods import make
from xlgrid.models import deltas, load, prediction
from xlgrid.training import schedule
from xlgrid.training.recipe import Recipe, Training

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

STATE = "state.pt"


class Stopped(Exception):
    """A signal asked the process to end."""


def train(recipe: Recipe, encoder: str | Path, train: list[Path], dev: list[Path], folder: str | Path) -> None:
    """Train one run; write `delta.safetensors`, `run.json` and `curve.jsonl` to `folder`, and on the way `step{n}.safetensors`
    for each of the recipe's snapshots: what delta.safetensors has, as of step n.

    Args:
        encoder: folder of the pretrained encoder.
        train, dev: tokens files of the source, one per part of a mix, in the same order.
        folder: the run's folder; `state.pt` in it is where an interrupted run of the same recipe goes on.

    Raises:
        FileNotFoundError, ValueError: an input is missing, damaged or does not fit, or memory runs out even one
            example at a time.
        FloatingPointError: the loss or the gradient is not finite; no result is saved.
        SystemExit: SIGTERM or SIGUSR2 came (status 75, EX_TEMPFAIL); the state is saved, the same call goes on.
    """
    loop = Loop(recipe, Path(encoder), train, dev, Path(folder))
    with _signals() as stop:
        try:
            loop.go(stop)
        except Stopped:
            loop.save()
            _say(
                f"stopped by {stop[0].name} before step {loop.step + 1} of {loop.steps}; the same command goes on there"
            )
            raise SystemExit(os.EX_TEMPFAIL) from None
    loop.finish()


class Loop:
    """A run in progress. What `save` writes changes from step to step; all else follows from the recipe."""

    def __init__(self, recipe: Recipe, encoder: Path, train: list[Path], dev: list[Path], folder: Path) -> None:
        import torch

        self.began = time.monotonic()
        self.recipe, self.settings, self.folder = recipe, recipe.training, folder
        # The recipe has names of encoder and task only: these are what they stood for.
        texts, first = deltas.start_folders(recipe), deltas.first_folders(recipe)
        begins = [path / deltas.DELTA for path in (*texts, *first)]
        self.inputs = fingerprint([encoder / "model.safetensors", *train, *dev, *begins])
        codes = recipe.source.parts
        self.train, self.dev = (
            batches.mix(
                [batches.read(path, code) for path, code in zip(paths, codes, strict=True)], self.settings.mix_seed
            )
            for paths in (train, dev)
        )
        if not len(self.dev):
            raise ValueError(f"{', '.join(map(str, dev))}: no examples to choose the best checkpoint with")
        self.head = HEADS[self.train.head]
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
        if self.settings.head == "lm-head":
            load.head_of_lm(self.model, encoder)
        self.method.install(self.model)
        deltas.load_start(texts, self.model, self.method)
        deltas.load_first(first, self.model, self.method)
        self.model.to(self.device)  # type: ignore[arg-type]
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad_(self.method.trains(name))
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
            _say(
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
        _say(
            f"step {self.step}/{self.steps}  loss {line['loss']:.4f}  dev {line['score']:.2f}  "
            f"({self.settings.keep} {self.best_score:.2f} at {self.best_step})  {line['seconds']:.0f} s"
        )

    def trained(self) -> dict[str, "torch.Tensor"]:
        """A copy of what the run's results hold, as it is now."""
        return {name: p.detach().cpu().clone() for name, p in deltas.kept(self.model, self.method).items()}

    def elapsed(self) -> float:
        """Seconds of training, those before interruptions included."""
        return self.seconds + time.monotonic() - self.began

    def save(self) -> None:
        """Write the state, atomically."""
        import torch

        state = {
            "digest": self.recipe.digest(),
            "inputs": self.inputs,
            "step": self.step,
            "limit": self.limit,
            "seconds": self.elapsed(),
            "losses": self.losses,
            "curve": self.curve,
            "weights": {name: parameter.detach() for name, parameter in self.weights.items()},
            "optimiser": self.optimiser.state_dict(),
            "best": self.best,
            "best_step": self.best_step,
            "best_score": self.best_score,
        }
        # Through a file of Python's, whose errors say what the disk said.
        with whole(self.folder / STATE) as aside, aside.open("wb") as file:
            torch.save(state, file)

    def resume(self) -> None:
        """Take up the state in the folder, if it is whole and of this recipe; otherwise remove an earlier training's snapshots."""
        if not self.taken_up():
            for old in self.folder.glob("step*.safetensors"):
                old.unlink()

    def taken_up(self) -> bool:
        """Whether there is a state to go on from, which is then taken up."""
        import torch

        path = self.folder / STATE
        # A process killed while writing leaves its file behind.
        for left in (*self.folder.glob(f".{path.stem}.*{path.suffix}"), *self.folder.glob(".step*.safetensors")):
            left.unlink(missing_ok=True)
        if not path.exists():
            return False
        try:
            state = torch.load(path, map_location=self.device, weights_only=True)
            digest, inputs = state["digest"], state["inputs"]
        except Exception as error:
            _say(f"warning: {path} is truncated or damaged ({type(error).__name__}): training starts over")
            return False
        if digest != self.recipe.digest():
            _say(f"note: {path} belongs to another recipe ({digest}): training starts over")
            return False
        if inputs != self.inputs:
            _say(f"note: the encoder or the data have changed since {path} was written: training starts over")
            return False
        passed = [deltas.snapshot_path(self.folder, n) for n in self.settings.snapshots if n < state["step"]]
        if lost := [file for file in passed if not file.exists()]:
            _say(f"note: {lost[0]} is gone, which only training can make: it starts over")
            return False
        with torch.no_grad():
            for name, parameter in self.weights.items():
                parameter.copy_(state["weights"][name])
        self.optimiser.load_state_dict(state["optimiser"])
        self.best = {name: tensor.cpu() for name, tensor in state["best"].items()}
        self.step, self.limit, self.seconds = state["step"], state["limit"], state["seconds"]
        self.losses, self.curve = state["losses"], state["curve"]
        self.best_step, self.best_score = state["best_step"], state["best_score"]
        _say(f"resumes after step {self.step} of {self.steps}")
        return True

    def finish(self) -> None:
        """Write the results and remove the state."""
        told = {
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
            "seconds": round(self.elapsed(), 3),
        }
        write_results(self.folder, self.recipe, told, self.curve, self.best)
        (self.folder / STATE).unlink(missing_ok=True)


def write_results(
    folder: Path,
    recipe: Recipe,
    told: dict[str, Any],
    curve: list[dict[str, float]],
    tensors: dict[str, "torch.Tensor"],
) -> None:
    """Write `curve.jsonl`, `run.json` and `delta.safetensors` of a run.

    Args:
        told: what run.json says besides the recipe and the commit of this code.
    """
    record = {"recipe": recipe.model_dump(mode="json"), "digest": recipe.digest(), **told, "commit": _commit()}
    write_text(folder / "curve.jsonl", "".join(json.dumps(line) + "\n" for line in curve))
    write_text(folder / "run.json", json.dumps(record, ensure_ascii=False, indent=1) + "\n")
    write_tensors(folder / deltas.DELTA, recipe, tensors)


def write_tensors(path: Path, recipe: Recipe, tensors: dict[str, "torch.Tensor"]) -> None:
    """Write tensors with the digest of the recipe, atomically."""
    from safetensors.torch import save

    with whole(path) as aside:
        aside.write_bytes(save(tensors, metadata={"digest": recipe.digest()}))


def fingerprint(paths: Iterable[Path]) -> str:
    """Sixteen hexadecimal digits that differ when the contents of any file do; missing files, which are told later, do not count."""
    found = hashlib.sha256()
    for path in paths:
        if path.is_file():
            with path.open("rb") as file:
                found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()[:16]


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


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _commit() -> str | None:
    """The commit of this code, with `-dirty` where it was changed since; None outside a checkout."""
    here = Path(__file__)
    tracked = ["git", "ls-files", "--error-unmatch", here.name]
    name = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        subprocess.run(tracked, cwd=here.parent, check=True, capture_output=True, timeout=10)
        found = subprocess.run(name, cwd=here.parent, check=True, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()
