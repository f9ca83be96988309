"""One cell: a run's model on a target's tokens; and the prediction that training shares.

Starting a process is most of a small cell's time, so nothing here imports pandas, datasets or seqeval.
"""

import base64
import json
import time
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.base.files import write_text
from xlgrid.data import batches
from xlgrid.heads import HEADS
from xlgrid.heads.metrics import Outcome
from xlgrid.heads.tokens import Tokens
from xlgrid.languages.sources import Target
from xlgrid.models import deltas, load, prediction

if TYPE_CHECKING:
    from transformers import PreTrainedModel


# At most one model that is ready for the next evaluation, by what it was loaded from.
_ready: dict[tuple[Any, ...], "PreTrainedModel"] = {}


def preload(encoder: str | Path, tokens: Tokens) -> None:
    """Load the model for the next evaluation in this process, or for one in each of its forks."""
    identity = _identity(encoder, tokens)
    if identity not in _ready:
        _ready.clear()
        _ready[identity] = _load(encoder, tokens)


def _load(encoder: str | Path, tokens: Tokens) -> "PreTrainedModel":
    return load.load_model(encoder, HEADS[tokens.head], len(tokens.label_names))


def _identity(encoder: str | Path, tokens: Tokens) -> tuple[Any, ...]:
    weights = Path(encoder) / "model.safetensors"
    written = weights.stat().st_mtime_ns if weights.is_file() else None
    return str(encoder), written, tokens.head, tokens.label_names


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
    from xlgrid.training.recipe import Recipe

    record = deltas.read_run(run)
    recipe = Recipe.model_validate(record["recipe"])
    data = batches.read(tokens, Target(target).data)
    head = HEADS[data.head]
    if head.output_per_label and list(data.label_names) != record["labels"]:
        raise ValueError(
            f"{tokens} has the labels {', '.join(data.label_names)}, but {run} was trained on {', '.join(record['labels'])}: "
            "tokenize again, then rerun training"
        )
    if not len(data):
        raise ValueError(f"{tokens} has no examples: look at its data, then tokenize again")
    method = make(recipe.base, recipe.options)
    model = speaking(run, encoder, data, target)
    device = prediction.default_device()
    model.to(device)  # type: ignore[arg-type]
    budget = recipe.training.micro_batch_tokens or recipe.training.batch_tokens
    # For methods whose evaluation has something random.
    torch.manual_seed(recipe.seed)
    bf16 = recipe.training.precision == "bf16" and device.type == "cuda"
    outcomes = prediction.outcomes_on(model, method, data, budget, bf16, recipe.training.segments)
    measured = head.metrics(data.label_names)
    step = Target(target).step
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
        "scores": {metric.name: metric.score(outcomes) for metric in measured},
        "metric": {"name": measured[0].name, "implementation": measured[0].implementation},
        "n": len(outcomes),
        **head.counts(data),
        "run": str(run),
        "digest": record["digest"],
        "stack": list(method.stack(recipe.task, next(iter(spoken), None))),
        "speaks": [str(folder if step is None else deltas.snapshot_path(folder, step)) for folder in spoken.values()],
        **prediction.circumstances(device),
        "seconds": round(time.monotonic() - began, 3),
        "outcomes": pack(outcomes),
    }
    write_text(out, json.dumps(cell, ensure_ascii=False, indent=1) + "\n")


def speaking(run: str | Path, encoder: str | Path, data: Tokens, target: str) -> "PreTrainedModel":
    """The model of a run, turned to a target, for tokens like `data`.

    Raises:
        FileNotFoundError, ValueError: as `evaluate`.
    """
    from xlgrid.methods import make
    from xlgrid.training.recipe import Recipe

    record = deltas.read_run(run)
    recipe = Recipe.model_validate(record["recipe"])
    method = make(recipe.base, recipe.options)
    # Its head is random, and the run's comes in its place.
    model = _ready.pop(_identity(encoder, data), None) or _load(encoder, data)
    method.install(model)
    begun, spoken, step = deltas.start_folders(recipe), deltas.start_folders(recipe, target), Target(target).step
    own = spoken != begun or step is not None
    deltas.load_start(begun, model, method, lambda name: not (own and method.swaps(name)))
    # It has all that a first task's run had trained.
    deltas.load_delta(Path(run) / deltas.DELTA, model, method, record["digest"])
    if own:
        deltas.load_start(spoken, model, method, method.swaps, step)
    return model


def pack(outcomes: Iterable[Outcome]) -> str:
    """Outcomes as text for a cell; `xlgrid.results.records.outcomes` reads them."""
    return base64.b64encode(zlib.compress(json.dumps(list(outcomes), separators=(",", ":")).encode(), 9)).decode()
