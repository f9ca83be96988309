"""The job that merges runs."""

from collections.abc import Sequence
from pathlib import Path

from xlgrid.base.clock import Clock
from xlgrid.heads import ALL_HEADS
from xlgrid.languages.sources import Source
from xlgrid.merging import ALL_OPERATIONS
from xlgrid.merging.member import Member
from xlgrid.merging.operation import Parameter
from xlgrid.methods import is_head, make
from xlgrid.models import deltas, fit, load, prediction
from xlgrid.tasks import ALL_TASKS
from xlgrid.training.recipe import Recipe
from xlgrid.training.results import fingerprint, packages, write_record, write_tensors


def merge(
    recipe: Recipe,
    encoder: Path,
    runs: Sequence[Path],
    folder: Path,
    start: Path | None = None,
    tokens: Sequence[Path] = (),
) -> None:
    """Merge runs into one: write its `delta.safetensors`, its `run.json` and an empty `curve.jsonl`.

    The arithmetic is in float64, and the results are stored in float32.

    Args:
        recipe: the recipe of the merged run, whose `derived` says how the runs are merged.
        encoder: the folder of the encoder.
        runs: the folders of the runs, in the order of the recipe.
        folder: the folder of the merged run.
        start: the folder of the MLM run with which all of these runs begin.
        tokens: the files that the operation reads, those of the first run first, one for each part of the run's source.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged, a run is not the one of the recipe, or its weights do not fit those of the others.
    """
    clock = Clock()
    import torch

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
    first = {
        name: p.detach() if id(p) in of_encoder else torch.zeros_like(p)
        for name, p in kept.items()
        if name not in heads
    }
    shapes, unread, members = {name: tuple(p.shape) for name, p in kept.items()}, iter(tokens), []
    for run, about in zip(runs, recipe.derived["members"], strict=True):
        of_member = [next(unread) for _ in Source(about["source"]).parts] if tokens else []
        member = Member(run, about, first, of_member)
        member.check(shapes, heads, labels)
        members.append(member)
    # Members of weight 0 change nothing, not even the sign of a zero.
    merged, used = {}, [member for member in members if member.weight]
    facts = [operation.fact(member) for member in used]
    for name, parameter in kept.items():
        having = [i for i, member in enumerate(used) if name in member.shapes or name not in heads]
        of_members = [used[i].read(name) for i in having], [used[i].weight for i in having], [facts[i] for i in having]
        begin = first.get(name, torch.zeros_like(parameter)).double()
        combine = operation.merge_head if name in heads else operation.merge
        merged[name] = combine(Parameter(name, begin, *of_members, recipe.seed)).to(parameter.dtype)
    details = {
        "encoder": str(encoder),
        "start": start and str(start),
        "first": None,
        "members": [{"run": str(m.folder), "digest": m.record["digest"], "weight": m.weight} for m in members],
        "inputs": fingerprint([encoder / "model.safetensors", *(run / deltas.DELTA for run in runs), *tokens]),
        "labels": labels,
        "steps": 0,
        "n_train": 0,
        "n_dev": 0,
        "parameters": {
            "trained": sum(tensor.numel() for tensor in merged.values()),
            "total": sum(p.numel() for p in model.parameters()),
        },
        **prediction.circumstances(torch.device("cpu")),
        **packages(recipe, head.name),
        **clock.read(),
    }
    write_tensors(folder / deltas.DELTA, recipe, merged)
    write_record(folder, recipe, details, [])
