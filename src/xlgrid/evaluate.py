"""One cell: a run's model on a target's tokens; and the prediction that training shares.

Starting a process is most of a small cell's time, so nothing here imports pandas, datasets or seqeval.
"""

import base64
import json
import platform
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from xlgrid import batches, deltas, heads, metrics, spans
from xlgrid.files import write_text
from xlgrid.grid import data_of, snapshot_of

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from xlgrid.methods import Method


# At most one model that is ready for the next evaluation, by what it was loaded from.
_ready: dict[tuple[Any, ...], "PreTrainedModel"] = {}


def preload(encoder: str | Path, tokens: batches.Tokens) -> None:
    """Have the model of `heads.load_model` ready for the next evaluation in this process, or one in each of its forks."""
    identity = _identity(encoder, tokens)
    if identity not in _ready:
        _ready.clear()
        _ready[identity] = heads.load_model(encoder, tokens)


def _identity(encoder: str | Path, tokens: batches.Tokens) -> tuple[Any, ...]:
    weights = Path(encoder) / "model.safetensors"
    written = weights.stat().st_mtime_ns if weights.is_file() else None
    return str(encoder), written, tokens.head, tokens.names


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


def _answers(tokens: batches.Tokens, chosen: batches.Ints, logits: "torch.Tensor") -> Iterator[spans.Answer]:
    """The best answer of each of the windows `chosen`, from the logits of their starts, then those of their ends."""
    assert tokens.spans
    starts, ends = logits.float().cpu().numpy().reshape(2, len(chosen), -1)
    for at, window in enumerate(chosen.tolist()):
        here = slice(tokens.offsets[window], tokens.offsets[window + 1])
        size = int(tokens.sizes[window])
        first, last = tokens.spans.first[here], tokens.spans.last[here]
        yield spans.best(starts[at, :size], ends[at, :size], first, last, tokens.spans.texts[window].as_py())


def extras(
    method: "Method", tokens: batches.Tokens, chosen: batches.Ints, device: "torch.device", training: bool
) -> dict[str, Any]:
    """What the method's model gets besides the batch of the examples `chosen`."""
    inputs, length = tokens.inputs(chosen), int(tokens.longest[chosen].max())
    return method.arrange(tokens.contexts[inputs], tokens.switched[inputs], length, device, training)


def halved(limit: int, lengths: batches.Ints, parts: Sequence[batches.Ints], problem: str) -> int:
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


def evaluate(run: str | Path, encoder: str | Path, tokens: str | Path, target: str, out: str | Path) -> None:
    """Evaluate the run in folder `run` on `tokens` of `target`, a language as of a step of its run on text if so named
    (qu@1000); write the cell's JSON to `out`.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged, or the checkpoint does not fit the encoder or the tokens.
    """
    began = time.monotonic()
    import torch

    from xlgrid.methods import make
    from xlgrid.recipe import Recipe

    record = deltas.read_run(run)
    recipe = Recipe.model_validate(record["recipe"])
    data = batches.read(tokens, data_of(target))
    # A choice is scored alone, whatever it is called.
    if data.head != "choice" and list(data.names) != record["labels"]:
        raise ValueError(
            f"{tokens} has the labels {', '.join(data.names)}, but {run} was trained on {', '.join(record['labels'])}: "
            "tokenize again, then rerun training"
        )
    if not len(data):
        raise ValueError(f"{tokens} has no examples: look at its data, then tokenize again")
    method = make(recipe.base, recipe.options)
    model = speaking(run, encoder, data, target)
    device = default_device()
    model.to(device)  # type: ignore[arg-type]
    budget = recipe.training.micro_batch_tokens or recipe.training.batch_tokens
    # For methods whose evaluation has something random.
    torch.manual_seed(recipe.seed)
    bf16 = recipe.training.precision == "bf16" and device.type == "cuda"
    found = outcomes_on(model, method, data, budget, bf16, recipe.training.segments)
    measured = metrics.metrics_of(data.head, data.names)
    step = snapshot_of(target)
    # As it is called in a path: qu, or qu@1000.
    spoken = {
        one.source if step is None else f"{one.source}@{step}": Path(one.folder)
        for one in deltas.start_runs(recipe, target)
    }
    cell = {
        "study": recipe.study,
        "task": recipe.task,
        "encoder": recipe.encoder,
        "method": recipe.method,
        "source": recipe.source,
        "target": target,
        "seed": recipe.seed,
        "scores": {metric: metrics.score(metric, found) for metric in measured},
        "metric": {"name": measured[0], "implementation": metrics.IMPLEMENTATIONS[measured[0]]},
        "n": len(found),
        "run": str(run),
        "digest": record["digest"],
        "stack": list(method.stack(recipe.task, next(iter(spoken), None))),
        "speaks": [str(folder if step is None else deltas.snapshot_path(folder, step)) for folder in spoken.values()],
        **circumstances(device),
        "seconds": round(time.monotonic() - began, 3),
        "outcomes": pack(found),
    }
    write_text(out, json.dumps(cell, ensure_ascii=False, indent=1) + "\n")


def speaking(run: str | Path, encoder: str | Path, data: batches.Tokens, target: str) -> "PreTrainedModel":
    """The model of a run, turned to a target, for tokens like `data`.

    Raises:
        FileNotFoundError, ValueError: as `evaluate`.
    """
    from xlgrid.methods import make
    from xlgrid.recipe import Recipe

    record = deltas.read_run(run)
    recipe = Recipe.model_validate(record["recipe"])
    method = make(recipe.base, recipe.options)
    # Its head is random, and the run's comes in its place.
    model = _ready.pop(_identity(encoder, data), None) or heads.load_model(encoder, data)
    method.install(model)
    begun, spoken, step = deltas.start_folders(recipe), deltas.start_folders(recipe, target), snapshot_of(target)
    own = spoken != begun or step is not None
    deltas.load_start(begun, model, method, lambda name: not (own and method.swaps(name)))
    # It has all that a first task's run had trained.
    deltas.load_delta(Path(run) / deltas.DELTA, model, method, record["digest"])
    if own:
        deltas.load_start(spoken, model, method, method.swaps, step)
    return model


def pack(outcomes: Iterable[metrics.Outcome]) -> str:
    """Outcomes as text for a cell; `xlgrid.records.outcomes` reads them."""
    return base64.b64encode(zlib.compress(json.dumps(list(outcomes), separators=(",", ":")).encode(), 9)).decode()
