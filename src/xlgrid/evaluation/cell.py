"""One cell: the evaluation of a run, or of an encoder without training, on the tokens of a target.

Most of a small cell's time is the start of its process, so nothing here imports pandas, datasets or seqeval.
"""

import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.base.clock import Clock
from xlgrid.base.errors import Damaged
from xlgrid.base.files import write_text
from xlgrid.data import batches
from xlgrid.evaluation import trained
from xlgrid.heads import ALL_HEADS
from xlgrid.heads.tokens import Tokens
from xlgrid.languages.sources import Target
from xlgrid.methods import Method
from xlgrid.models import deltas, first_token, prediction
from xlgrid.training.recipe import Training

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def evaluate(
    run: str | Path,
    encoder: str | Path,
    tokens: str | Path,
    identity: Mapping[str, Any],
    out: str | Path,
    mlm_run: Path | None = None,
) -> None:
    """Evaluate a run on a target and write the JSON of the cell.

    Args:
        run: the folder of the run.
        encoder: the folder of the run's encoder.
        tokens: the tokens file of the target.
        identity: study, task, encoder, method, source, target and seed of the cell. The target is a language or pair;
            `qu@1000` is `qu` with the checkpoint of its MLM run after step 1000. Missing entries are those of the run.
        out: the file of the cell.
        mlm_run: the folder of the target's MLM run; None if there is none. See `xlgrid.evaluation.trained.model_of`.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged, or the run does not fit the cell, the encoder or the tokens.
    """
    clock = Clock()
    import torch

    finished, parsed = trained.read(run), Target(identity["target"])
    finished.check_cell(identity)
    recipe, method = finished.recipe, finished.method
    data = _read(tokens, parsed)
    head, labels = ALL_HEADS.find(data.head), finished.record["labels"]
    if head.output_per_label and list(data.label_names) != labels:
        raise Damaged(
            f"{tokens} has the labels {', '.join(data.label_names)}, but {run} was trained on {', '.join(labels)}: "
            "tokenize again, then rerun training",
            tokens,
            run,
        )
    model = trained.model_of(finished, encoder, data, mlm_run, parsed.step)
    language, weights = None, []
    if mlm_run:
        source, step = deltas.read_run(mlm_run)["recipe"]["source"], parsed.step
        language = source if step is None else f"{source}@{step}"
        weights = [str(mlm_run if step is None else deltas.checkpoint_path(mlm_run, step))]
    stack = trained.stack(model, method, data, recipe.task, language)
    # Some methods sample attention masks in evaluation, too.
    torch.manual_seed(recipe.seed)
    results = _results(model, method, data, recipe.training, _chance(tokens, parsed, data), recipe.metric)
    cell = {
        **finished.identity,
        **identity,
        "run": str(run),
        "digest": finished.record["digest"],
        "stack": stack,
        "speaks": weights,
        **({"sweep": recipe.sweep.model_dump(mode="json")} if recipe.sweep else {}),
        **({"packages": {name: version(name) for name in used}} if (used := finished.record.get("packages")) else {}),
        **clock.read(),
        **results,
    }
    _write(out, cell)


def evaluate_bare(identity: Mapping[str, Any], encoder: str | Path, tokens: str | Path, out: str | Path) -> None:
    """Evaluate an encoder, with the head that was pre-trained with it, on a target, and write the JSON of the cell.

    Args:
        identity: study, task, encoder, method, source (`none`), target and seed.
        encoder: the folder of the encoder.
        tokens: the tokens file of the target.
        out: the file of the cell.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged, or the encoder has no pre-trained head for the task.
    """
    clock = Clock()
    target = Target(identity["target"])
    data = _read(tokens, target)
    model, method = trained.bare_model(encoder, data), Method()
    stack = trained.stack(model, method, data, identity["task"])
    results = _results(model, method, data, Training.model_validate({}), _chance(tokens, target, data))
    cell = {**identity, "run": None, "weights": str(encoder), "stack": stack, **clock.read()}
    _write(out, cell | results)


def _read(tokens: str | Path, target: Target) -> Tokens:
    """The tokens of a target.

    Raises:
        ValueError: the file has no examples.
    """
    data: Tokens = trained.fact("tokens", tokens, target.data, lambda: batches.read(tokens, target.data))
    if not len(data):
        raise ValueError(f"{tokens} has no examples: look at its data, then tokenize again")
    return data


def _chance(tokens: str | Path, target: Target, data: Tokens) -> Any:
    """The scores of guesses on the tokens of a target (`Head.chance`)."""
    return trained.fact("chance", tokens, target.data, lambda: ALL_HEADS.find(data.head).chance(data))


def _results(
    model: "PreTrainedModel", method: Method, data: Tokens, settings: Training, chance: Any, name: str | None = None
) -> dict[str, Any]:
    """The entries of a cell that its evaluation computes. Any metric can be computed from them later.

    Args:
        chance: the scores of guesses.
        name: the main metric; None: that of the head.
    """
    arguments = trained.placed(model, settings)
    head = ALL_HEADS.find(data.head)
    first_token.read_first_token(model, head)
    # Smaller batches round differently. After an error, the worker evaluates the cell in a process of its own.
    predictions = prediction.predictions_on(model, method, data, *arguments, halves=trained.is_first())
    answers = head.answers(data, predictions)
    outcomes = head.outcomes(data, answers)
    metric = head.metric(data.label_names, name)
    return {
        "head": head.name,
        "labels": list(data.label_names),
        "scores": {metric.name: metric.score(outcomes), **head.listed(data, outcomes)},
        "metric": {"name": metric.name, "implementation": head.implementation(data, metric)},
        "n": len(outcomes),
        "chance": chance,
        **head.counts(data, outcomes),
        **({"options": dict(data.options)} if data.options else {}),
        **prediction.circumstances(model.device),
        **({"answers": pack(answers)} if head.keeps_answers else {}),
        "outcomes": pack(outcomes),
    }


def _write(out: str | Path, cell: Mapping[str, Any]) -> None:
    write_text(out, json.dumps(cell, ensure_ascii=False, indent=1) + "\n")


def pack(values: Iterable[Any]) -> str:
    """Encode outcomes, or answers, as text for the JSON of a cell; `xlgrid.results.records` decodes it."""
    text = json.dumps(list(values), separators=(",", ":"), ensure_ascii=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()
