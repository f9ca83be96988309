"""Compute a model's predictions, and the outcome of each example, for the dev sets of training and for cells."""

import platform
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from xlgrid.base.arrays import Ints
from xlgrid.base.provenance import provenance
from xlgrid.data import batches
from xlgrid.heads import ALL_HEADS, Head
from xlgrid.heads.metrics import Outcome
from xlgrid.heads.tokens import Tokens
from xlgrid.heads.transfer import follow_notes, on_device
from xlgrid.models import by_language
from xlgrid.models.load import has_segments
from xlgrid.models.precision import arithmetic, autocast

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from xlgrid.methods import Method

OUT_OF_MEMORY = re.compile(
    r"out of memory|not enough memory|n[o']t allocate memory|_STATUS_ALLOC_FAILED|bad_alloc", re.I
)


def outcomes_on(
    model: "PreTrainedModel",
    method: "Method",
    tokens: Tokens,
    budget: int,
    bf16: bool = False,
    token_types: bool = True,
    check: Callable[[], None] = lambda: None,
    halves: bool = True,
    head: Head | None = None,
    lower: Callable[[int], None] = lambda budget: None,
) -> list[Outcome]:
    """The outcome of each example of `tokens`, in the order of the examples.

    The arguments and the errors raised are those of `predictions_on`.
    """
    predictions = predictions_on(model, method, tokens, budget, bf16, token_types, check, halves, head, lower)
    head = head or ALL_HEADS.find(tokens.head)
    return head.outcomes(tokens, head.answers(tokens, predictions))


def predictions_on(
    model: "PreTrainedModel",
    method: "Method",
    tokens: Tokens,
    budget: int,
    bf16: bool = False,
    token_types: bool = True,
    check: Callable[[], None] = lambda: None,
    halves: bool = True,
    head: Head | None = None,
    lower: Callable[[int], None] = lambda budget: None,
) -> list[Any]:
    """The prediction of a model's head for each row of `tokens`, in the order of the rows.

    Args:
        budget: the number of tokens in a batch, padding included.
        token_types: whether to pass BERT the token types of the second segment.
        check: called before every batch; it may raise to stop early.
        halves: whether to halve `budget` and try again when memory runs out; otherwise this is an error.
        head: makes the batches and predictions; None uses the head of the tokens.
        lower: called with the budget of the next attempt.

    Raises:
        ValueError: memory runs out on a single example, or without `halves`.
    """
    import torch

    head = head or ALL_HEADS.find(tokens.head)
    token_types, device = token_types and has_segments(model), model.device
    predictions: list[Any] = [None] * len(tokens)
    was_training = model.training
    model.eval()
    try:
        rest = batches.cut(tokens.lengths, np.argsort(tokens.lengths, kind="stable"), budget)
        while rest:
            check()
            rows = rest[0]
            problem = None
            try:
                batch = on_device(head.evaluation_batch(tokens, rows, token_types), device)
                with torch.inference_mode(), arithmetic(device, bf16), autocast(device, bf16):
                    batch |= extras(model, method, tokens, rows, training=False)
                    predicted = head.predict(model, batch, tokens, rows)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                problem = str(error)
            if problem is not None and not halves:
                raise ValueError(
                    f"out of memory in evaluation with {budget} tokens at once: set `micro_batch_tokens` to less; torch says: {problem}"
                )
            if problem is not None:
                budget = halved(budget, tokens.lengths, [rows], problem)
                lower(budget)
                print(f"out of memory in evaluation: goes on with {budget} tokens at once", file=sys.stderr, flush=True)
                rest = batches.cut(tokens.lengths, np.concatenate(rest), budget)
                continue
            rest = rest[1:]
            for row, prediction in zip(rows.tolist(), predicted, strict=True):
                predictions[row] = prediction
    finally:
        model.train(was_training)
    return predictions


def extras(model: "PreTrainedModel", method: "Method", tokens: Tokens, rows: Ints, training: bool) -> dict[str, Any]:
    """The arguments of the model's `forward` that the method or the encoder needs in addition to a batch."""
    of_method = method.forward_arguments(tokens, rows, model.device, training)
    return of_method | by_language.arguments(model, tokens.segments(rows))


def place(model: "PreTrainedModel", device: "torch.device", move: Any = lambda model, device: model.to(device)) -> None:
    """Move a model to a device, with `move`. On a GPU, its masks of attention follow from what the CPU knows about its batches.

    Raises:
        ValueError: the device has no room for it.
    """
    try:
        move(model, device)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise ValueError(
            "out of memory before the first example, because the weights do not fit beside what else is on the GPU: see "
            "`nvidia-smi`, run fewer jobs on it at a time (`--submitit-workers`), or use a smaller encoder or a larger GPU; "
            f"torch says: {error}"
        ) from error
    if device.type != "cpu":
        follow_notes(model)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of torch or numpy means that memory ran out, on a GPU or a CPU. Many say so only in the
    message."""
    import torch

    return isinstance(error, torch.OutOfMemoryError | MemoryError) or OUT_OF_MEMORY.search(str(error)) is not None


def halved(limit: int, lengths: Ints, parts: Sequence[Ints], problem: str) -> int:
    """The limit in tokens for the next attempt, after `parts`, cut at `limit`, ran out of memory. Frees cached memory.

    Call this outside of the `except` block, because the exception's traceback holds tensors.

    Args:
        lengths: the tokens of every row.
        problem: the message of torch's error.

    Raises:
        ValueError: every part is a single row already.
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
    """The versions, the device, the number of threads, the commit and the command of this process.

    A result depends on these in addition to its recipe.
    """
    import torch

    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    made = provenance()
    versions = {"xlgrid": made.pop("xlgrid"), "python": platform.python_version()}
    return {
        "versions": versions | _versions(),
        "device": f"{device.type} ({name})",
        "threads": torch.get_num_threads(),
        **made,
    }


@cache
def _versions() -> dict[str, str]:
    return {name: metadata.version(name) for name in ("torch", "transformers", "safetensors", "numpy", "pyarrow")}
