"""The job that merges runs."""

from collections.abc import Iterable, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.base.clock import Clock
from xlgrid.data import batches
from xlgrid.evaluation import trained
from xlgrid.heads import ALL_HEADS, Head
from xlgrid.merging import ALL_OPERATIONS
from xlgrid.merging.member import Member
from xlgrid.merging.operation import Parameter
from xlgrid.methods import is_head, make
from xlgrid.models import averaging, deltas, first_token, fit, load, prediction
from xlgrid.tasks import ALL_TASKS
from xlgrid.training.recipe import Recipe
from xlgrid.training.results import fingerprint, packages, write_record, write_tensors

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

# The values of a parameter that are merged at once.
BLOCK = 2**22


def merge(
    recipe: Recipe,
    encoder: Path,
    runs: Sequence[Path],
    folder: Path,
    start: Path | None = None,
    tokens: Sequence[Path] = (),
    dev: Sequence[Path] = (),
) -> None:
    """Merge runs into one: write its `delta.safetensors`, its `run.json` and an empty `curve.jsonl`.

    The arithmetic is in float64, and the results are stored in float32.

    Args:
        recipe: that of the merged run, whose `derived` says how the runs are merged.
        encoder: the folder of the encoder.
        runs: the folders of the runs, in the order of the recipe.
        folder: the folder of the merged run.
        start: the folder of the MLM run with which all of these runs begin.
        tokens: the files that the operation reads, those of the first run first, one for each part on which the run trained.
        dev: the files of the dev sets that choose among the weights, if the recipe has several lists of them.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged, a run is not the one of the recipe, or its weights do not fit those of the others.
    """
    clock = Clock()
    import torch

    tried = recipe.derived["weights"]
    operation = ALL_OPERATIONS.find(recipe.derived["by"]).model_validate(recipe.derived["options"])
    known, method = ALL_TASKS.get(recipe.kind), make(recipe.base, recipe.options)
    head = known.head if known else ALL_HEADS.find(recipe.kind)
    labels: list[str] = next(filter(None, (deltas.read_run(run)["labels"] for run in runs)), [])
    torch.manual_seed(recipe.seed)
    model = load.load_model(encoder, head, len(labels))
    of_encoder = {id(parameter) for parameter in model.base_model.parameters()}
    drawn = getattr(model, "drawn", ())
    fit.install(model, head, method)
    if start:
        deltas.load_mlm_run(start, model, method)
    kept = deltas.kept(model, method, head)
    heads = {name for name in kept if is_head(name) or name in drawn}
    bodies = {name: p for name, p in kept.items() if name not in heads}
    first = {name: p.detach() if id(p) in of_encoder else torch.zeros_like(p) for name, p in bodies.items()}
    shapes, unread, members = {name: tuple(p.shape) for name, p in kept.items()}, iter(tokens), []
    for run, about in zip(runs, recipe.derived["members"], strict=True):
        trained_by = Recipe.model_validate(deltas.read_run(run)["recipe"])
        of_member = [next(unread) for _ in trained_by.train_parts] if tokens else []
        members.append(Member(run, about, encoder, first, of_member))
        members[-1].check(shapes, heads, labels)
    facts = [operation.fact(member) for member in members]

    def merged(weights: Sequence[float]) -> "dict[str, torch.Tensor]":
        return {
            name: torch.cat([block(name, rows, weights).to(p.dtype) for rows in _blocks(p)]).view(p.shape)
            for name, p in kept.items()
        }

    def block(name: str, rows: slice, weights: Sequence[float]) -> "torch.Tensor":
        # A member of weight 0 changes nothing, not even the sign of a zero.
        used = [i for i, w in enumerate(weights) if w and (name in members[i].shapes or name not in heads)]
        columns = [members[i].read(name, rows) for i in used], [weights[i] for i in used], [facts[i] for i in used]
        begin = first.get(name, torch.zeros(shapes[name])).flatten()[rows].double()
        of = Parameter(name, rows, begin, *columns, recipe.seed)
        return operation.merge_head(of) if name in heads else operation.merge(of)

    merges = map(merged, tried)
    best, chosen = _choice(recipe, model, head, dev, merges) if len(tried) > 1 else (next(merges), {})
    details = {
        "encoder": str(encoder),
        "start": start and str(start),
        "first": None,
        "members": [{"run": str(member.folder), "digest": member.record["digest"]} for member in members],
        **chosen,
        "inputs": fingerprint([encoder / "model.safetensors", *(run / deltas.DELTA for run in runs), *tokens, *dev]),
        "labels": labels,
        "steps": 0,
        "n_train": 0,
        "parameters": {
            "trained": sum(tensor.numel() for tensor in best.values()),
            "total": sum(p.numel() for p in model.parameters()),
        },
        **prediction.circumstances(model.device),
        **packages(recipe, head.name),
        **clock.read(),
    }
    write_tensors(folder / deltas.DELTA, recipe, best)
    write_record(folder, recipe, details, [])


def _blocks(parameter: "torch.Tensor") -> list[slice]:
    """The flat values of a parameter in blocks, so that those of all runs in float64 take little memory."""
    return [slice(begin, begin + BLOCK) for begin in range(0, parameter.numel(), BLOCK)]


def _choice(
    recipe: Recipe,
    model: "PreTrainedModel",
    head: Head,
    paths: Sequence[Path],
    merges: "Iterable[dict[str, torch.Tensor]]",
) -> "tuple[dict[str, torch.Tensor], dict[str, Any]]":
    """The merge with the best score on the dev sets, and the entries of run.json about the choice.

    Args:
        paths: the files of the dev sets.
        merges: the merged parameters for each list of weights in the recipe.
    """
    import torch

    method, settings = make(recipe.base, recipe.options), recipe.training
    parts = [batches.read(path, code) for path, code in zip(paths, recipe.source.parts, strict=True)]
    # As in training, the dev sets of the parts of a source are mixed into one.
    dev = batches.mix(parts, settings.mix_seed, recipe.mix)
    load.check_positions(model, dev)
    first_token.read_first_token(model, head)
    arguments, metric = trained.placed(model, settings), head.metric(dev.label_names, recipe.metric)
    best: dict[str, torch.Tensor] = {}
    winner = 0
    scores: list[float] = []
    for merged in merges:
        with averaging.in_place(deltas.kept(model, method, head), merged):
            torch.manual_seed(recipe.seed)
            score = metric.score(prediction.outcomes_on(model, method, dev, *arguments))
        # A score that is not a number never wins.
        if not isnan(score) and all(isnan(other) or metric.better(score, other) for other in scores):
            best, winner = merged, len(scores)
        scores.append(score)
    if not best:
        raise ValueError(f"no score of the merges on {', '.join(map(str, paths))} is a number: lower the `weights`")
    tried = [{"weights": w, "score": score} for w, score in zip(recipe.derived["weights"], scores, strict=True)]
    return best, {
        "tried": tried,
        "weights": tried[winner]["weights"],
        "dev_score": scores[winner],
        "metric": metric.name,
        "chance": dict(head.chance(dev)),
        "n_dev": dev.examples,
    }
