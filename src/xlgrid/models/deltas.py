"""What a run stores, and how that comes into a model: its own weights, and those of the runs that it begins with."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.methods.method import is_head
from xlgrid.plan.grid import first_stage, started_from
from xlgrid.results.identity import Cell, Run

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from xlgrid.methods import Method
    from xlgrid.training.recipe import Recipe

DELTA = "delta.safetensors"


def kept(model: "PreTrainedModel", method: "Method") -> dict[str, "torch.nn.Parameter"]:
    """The parameters that a run's `delta.safetensors` holds: those that train, and the head.

    Of a language model these are the encoder's alone: no task has a use for its head.
    """
    if model.get_output_embeddings() is None:
        found = dict(model.named_parameters())
    else:
        found = {f"{model.base_model_prefix}.{name}": p for name, p in model.base_model.named_parameters()}
    return {name: p for name, p in found.items() if method.trains(name) or is_head(name)}


def snapshot_path(folder: Path, step: int) -> Path:
    """The weights of a run as of a step of its training (`Training.snapshots`)."""
    return folder / f"step{step}.safetensors"


def read_run(run: str | Path) -> dict[str, Any]:
    """The `run.json` of a run's folder.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is damaged.
    """
    path = Path(run) / "run.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(record, dict) or not {"recipe", "digest", "labels"} <= record.keys():
            raise ValueError("entries are missing")
        return record
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path} does not exist: check the path, or rerun training") from error
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}): delete it and rerun training") from error


def start_runs(recipe: "Recipe", target: str | None = None) -> list[Run]:
    """The run on text that a recipe's run begins with, or that its cells of `target` speak through; none or one."""
    of = recipe.study, recipe.task, recipe.encoder, recipe.method, recipe.source
    return started_from(recipe.start, Run(*of, recipe.seed) if target is None else Cell(*of, target, recipe.seed))


def start_folders(recipe: "Recipe", target: str | None = None) -> list[Path]:
    """The folders of `start_runs`."""
    return [Path(run.folder) for run in start_runs(recipe, target)]


def first_folders(recipe: "Recipe") -> list[Path]:
    """The folder of the first task's run that a recipe's run begins with; none or one."""
    made = Run(recipe.study, recipe.task, recipe.encoder, recipe.method, recipe.source, recipe.seed)
    return [Path(run.folder) for run in first_stage(recipe.first, made)]


def load_start(
    folders: Iterable[Path],
    model: "PreTrainedModel",
    method: "Method",
    wanted: Callable[[str], bool] = lambda name: True,
    step: int | None = None,
) -> None:
    """Put what runs on text have trained into a model with `method` installed.

    Args:
        wanted: whether to take the parameter of a name.
        step: as of which of their snapshots; None: what they ended with.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: it is damaged, does not fit, or is a snapshot of another training than the run's last.
    """
    import torch

    parameters, layers = dict(model.named_parameters()), model.config.num_hidden_layers

    def has_place(name: str) -> bool:
        return name.startswith(f"{model.base_model_prefix}.") and not method.leaves_out(name, layers)

    for folder in folders:
        path = folder / DELTA if step is None else snapshot_path(folder, step)
        if step and not path.exists():
            there = sorted(int(one.stem[4:]) for one in folder.glob("step*.safetensors") if one.stem[4:].isdecimal())
            raise FileNotFoundError(
                f"{path} does not exist (there are snapshots of the steps: {', '.join(map(str, there)) or 'none'}): check "
                f"`snapshots` of the training of this run on text, delete {folder} and run the study again, which trains it anew"
            )
        trained, shapes, digest = read_delta(path, lambda name: has_place(name) and wanted(name))
        if step and digest != (beside := read_run(folder)["digest"]):
            raise ValueError(
                f"{path} is of recipe {digest}, the run.json beside it of {beside}: delete {folder} and run the study again, "
                "which trains it anew"
            )
        # Of all, whether wanted or not: a run of another encoder should not go unnoticed.
        its = {name: shape for name, shape in shapes.items() if has_place(name)}
        wrong = [n for n, shape in its.items() if n not in parameters or tuple(parameters[n].shape) != shape]
        if wrong or not its:
            raise ValueError(
                f"{path} does not fit the encoder: of its {len(shapes)} tensors, "
                + (f"{wrong[0]!r} has no place of its shape there" if wrong else "none is of an encoder")
                + ": check the options of the two methods, or delete the folder and run the study again"
            )
        with torch.no_grad():
            for name, tensor in trained.items():
                parameters[name].copy_(tensor)


def load_first(folders: Iterable[Path], model: "PreTrainedModel", method: "Method") -> None:
    """Put all that a first task's run has trained, its head too, into an installed model.

    Raises:
        FileNotFoundError, ValueError: as `load_delta`.
    """
    for folder in folders:
        load_delta(folder / DELTA, model, method, read_run(folder)["digest"])


def load_delta(path: Path, model: "PreTrainedModel", method: "Method", digest: str) -> None:
    """Put the tensors of a `delta.safetensors` into an installed model.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is truncated, belongs to another recipe, or its tensors are not those that the method keeps.
    """
    import torch

    expected = kept(model, method)
    delta, _, of = read_delta(path)
    if of != digest:
        raise ValueError(
            f"{path} belongs to recipe {of}, the run.json beside it to {digest}: delete both and rerun training"
        )
    wrong = [
        name
        for name in sorted(expected.keys() | delta.keys())
        if name not in expected or name not in delta or expected[name].shape != delta[name].shape
    ]
    if wrong:
        raise ValueError(
            f"{path} does not fit the encoder: {len(wrong)} tensors are missing, unknown or of another shape, "
            f"first {wrong[0]!r}; check that this is the encoder the run was trained from, or rerun training"
        )
    with torch.no_grad():
        for name, tensor in delta.items():
            expected[name].copy_(tensor)


def read_delta(
    path: Path, wanted: Callable[[str], bool] = lambda name: True
) -> tuple[dict[str, "torch.Tensor"], dict[str, tuple[int, ...]], str | None]:
    """The tensors that are wanted of a `delta.safetensors` or snapshot, the shapes of all that are in it, and the digest of
    the recipe that it is of.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is truncated.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as stored:
            shapes = {name: tuple(stored.get_slice(name).get_shape()) for name in stored.keys()}  # noqa: SIM118
            tensors = {name: stored.get_tensor(name) for name in filter(wanted, shapes)}
            return tensors, shapes, (stored.metadata() or {}).get("digest")
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path} does not exist: check the path, or rerun training") from error
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path} is truncated or damaged ({error}): delete it and rerun training") from error
