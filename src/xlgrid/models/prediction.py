"""What a model predicts for tokens: the outcome of each example, for training's dev sets and for cells."""

import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from xlgrid.base.arrays import Ints
from xlgrid.data import batches
from xlgrid.heads import metrics, spans
from xlgrid.models import load as heads

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from xlgrid.methods import Method


def scores(
    model: "PreTrainedModel", inputs: dict[str, "torch.Tensor"], labels: "torch.Tensor"
) -> tuple["torch.Tensor", "torch.Tensor"]:
    """Logits and labels, flat, with a row of logits for each label: over its classes, over the choices, or over the tokens
    of a window, where it starts (first half of the rows) and where it ends; so that the mean of their cross entropies is the
    loss. Of a language model only where there are labels: elsewhere, nearly everywhere, logits over the whole vocabulary
    would cost more than the encoder does."""
    import torch

    if (head := heads.language_head(model)) is None:
        found = model(**inputs)
        if "start_logits" in found:
            padding = inputs["attention_mask"].repeat(2, 1) == 0
            logits = torch.cat([found.start_logits, found.end_logits]).masked_fill(padding, -float("inf"))
            return logits, labels.T.flatten()
        return found.logits.flatten(0, -2), labels.flatten()
    due = labels != -100
    return head(model.base_model(**inputs).last_hidden_state[due]), labels[due]


def outcomes_on(
    model: "PreTrainedModel",
    method: "Method",
    tokens: batches.Tokens,
    budget: int,
    bf16: bool = False,
    segments: bool = True,
    check: Callable[[], None] = lambda: None,
) -> list[metrics.Outcome]:
    """Outcome of each example of `tokens`, in their order, not of each of its windows; `budget` in tokens per batch, halved
    where memory runs out.

    `check` is called before every batch and may raise to stop early.

    Raises:
        ValueError: memory runs out on a single example.
    """
    import torch

    metric = metrics.metric_of(tokens.head, tokens.names)
    if tokens.vocabulary:
        # The same masks each time.
        torch.manual_seed(0)
    segments, device = segments and heads.has_segments(model), model.device
    outcomes: list[metrics.Outcome] = [0] * len(tokens)
    answers = [spans.NOTHING] * len(tokens)
    was_training = model.training
    model.eval()
    try:
        rest = batches.cut(tokens.lengths, np.argsort(tokens.lengths, kind="stable"), budget)
        while rest:
            check()
            chosen = rest[0]
            problem = None
            try:
                inputs = batches.collate(tokens, chosen, segments, device)
                labels = inputs.pop("labels")
                with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=bf16):
                    inputs |= extras(method, tokens, chosen, device, training=False)
                    logits = scores(model, inputs, labels)[0]
                    best = logits.argmax(-1)
                    missing = len(best) < labels.numel()
                    predicted = labels.masked_scatter(labels != -100, best) if missing else best.view_as(labels)
            except torch.OutOfMemoryError as error:
                problem = str(error)
            if problem is not None:
                budget = halved(budget, tokens.lengths, [chosen], problem)
                print(f"out of memory in evaluation: goes on with {budget} tokens at once", file=sys.stderr, flush=True)
                rest = batches.cut(tokens.lengths, np.concatenate(rest), budget)
                continue
            rest = rest[1:]
            if tokens.spans:
                for number, answer in zip(chosen.tolist(), _answers(tokens, chosen, logits), strict=True):
                    answers[number] = answer
                continue
            if tokens.head in ("sequence", "choice"):
                for number, right in zip(chosen.tolist(), (predicted == labels).int().tolist(), strict=True):
                    outcomes[number] = right
                continue
            for number, ours, gold in zip(chosen.tolist(), predicted, labels, strict=True):
                due = gold != -100
                outcomes[number] = metrics.outcome(metric, tokens.names, ours[due].tolist(), gold[due].tolist())
    finally:
        model.train(was_training)
    return spans.outcomes(tokens.spans, answers) if tokens.spans else outcomes


def _answers(tokens: batches.Tokens, chosen: Ints, logits: "torch.Tensor") -> Iterator[spans.Answer]:
    """The best answer of each of the windows `chosen`, from the logits of their starts, then those of their ends."""
    assert tokens.spans
    starts, ends = logits.float().cpu().numpy().reshape(2, len(chosen), -1)
    for at, window in enumerate(chosen.tolist()):
        here = slice(tokens.offsets[window], tokens.offsets[window + 1])
        size = int(tokens.sizes[window])
        first, last = tokens.spans.first[here], tokens.spans.last[here]
        yield spans.best(starts[at, :size], ends[at, :size], first, last, tokens.spans.texts[window].as_py())


def extras(
    method: "Method", tokens: batches.Tokens, chosen: Ints, device: "torch.device", training: bool
) -> dict[str, Any]:
    """What the method's model gets besides the batch of the examples `chosen`."""
    inputs, length = tokens.inputs(chosen), int(tokens.longest[chosen].max())
    return method.arrange(tokens.contexts[inputs], tokens.switched[inputs], length, device, training)


def halved(limit: int, lengths: Ints, parts: Sequence[Ints], problem: str) -> int:
    """The limit in tokens to cut at next where `parts`, cut at `limit`, ran out of memory; cached memory is freed.

    To be called outside of the `except` block, since the exception's traceback holds tensors.

    Args:
        lengths: tokens of every example.
        problem: what torch said.

    Raises:
        ValueError: every part is a single example already.
    """
    import torch

    if all(len(part) == 1 for part in parts):
        raise ValueError(
            f"out of memory one example at a time, the longest of {max(int(lengths[part[0]]) for part in parts)} tokens: "
            "lower the task's `max_length`, use a smaller encoder or a larger GPU, or see what else runs on this one; "
            f"torch says: {problem}"
        )
    torch.cuda.empty_cache()
    return min(limit, max(len(part) * int(lengths[part].max()) for part in parts)) // 2


def circumstances(device: "torch.device") -> dict[str, Any]:
    """What a result depends on besides its recipe: versions, device, threads."""
    import torch

    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    packages = ("torch", "transformers", "safetensors", "numpy", "pyarrow")
    return {
        "versions": {"python": platform.python_version(), **{package: version(package) for package in packages}},
        "device": f"{device.type} ({name})",
        "threads": torch.get_num_threads(),
    }


def default_device() -> "torch.device":
    """The GPU where there is one."""
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
