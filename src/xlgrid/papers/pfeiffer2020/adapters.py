"""Import published adapters in the format of AdapterHub as MLM runs, and export the adapters of runs in this format."""

import json
import re
from pathlib import Path
from typing import Any

from xlgrid.base.clock import Clock
from xlgrid.base.errors import Damaged
from xlgrid.data import lock as locks
from xlgrid.methods import make
from xlgrid.models import deltas, fit, prediction
from xlgrid.models.load import shapes
from xlgrid.papers.pfeiffer2020.madx import MadX, adapterhub
from xlgrid.tasks import ALL_TASKS
from xlgrid.training.recipe import Recipe
from xlgrid.training.results import fingerprint, packages, write_record, write_tensors


def import_adapter(
    recipe: Recipe,
    encoder: str | Path,
    place: str,
    folder: str | Path,
    revision: str = "main",
    lock: Path | None = None,
) -> None:
    """Write an adapter as an MLM run: `delta.safetensors`, `run.json` and an empty `curve.jsonl`.

    Args:
        recipe: the recipe of the run.
        encoder: the folder of the encoder that the adapter is for.
        place: the adapter's folder; with `lock`, a repository on the Hub, owner/name.
        folder: the run's folder.
        revision: the revision of the repository.
        lock: the lock file with the commit of the revision.

    Raises:
        FileNotFoundError: the folder does not exist, or a file of the adapter is missing.
        ValueError: the encoder lacks its configuration, the method has no adapters, the Hub cannot be reached or does
            not know the repository, or the weights are damaged or do not fit.
    """
    clock = Clock()
    import torch
    from transformers import AutoConfig

    method = _method(recipe)
    adapter, origin = fetch(place, revision, lock)
    if not (Path(encoder) / "config.json").is_file():
        raise Damaged(f"{encoder} has no config.json: make or fetch the encoder again", encoder)
    task = ALL_TASKS.find(recipe.kind)
    model = shapes(AutoConfig.from_pretrained(encoder, local_files_only=True), task.head)
    fit.install(model, task.head, method)
    tensors = adapterhub.read(adapter, model, method)
    details = {
        "encoder": str(encoder),
        "start": None,
        "first": None,
        "inputs": fingerprint([Path(encoder) / "model.safetensors", *(adapter / name for name in adapterhub.FILES)]),
        "imported": origin,
        "labels": [],
        "metric": task.metrics[0],
        "best_step": 0,
        "dev_score": None,
        "steps": 0,
        "n_train": 0,
        "n_dev": 0,
        "parameters": {
            "trained": sum(tensor.numel() for tensor in tensors.values()),
            "total": sum(p.numel() for p in model.parameters()),
        },
        **prediction.circumstances(torch.device("cpu")),
        **packages(recipe, task.head.name),
        **clock.read(),
    }
    write_tensors(Path(folder) / deltas.DELTA, recipe, tensors)
    write_record(Path(folder), recipe, details, [])


def export_adapter(run: str | Path, encoder: str | Path, folder: str | Path) -> None:
    """Write the adapter that a run has trained to a folder. Its name is the source of an MLM run, or the task of
    another run.

    Args:
        run: the run's folder.
        encoder: the folder of the run's encoder; its config.json is read.
        folder: the folder to write.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged, or the run has no adapters.
        OSError: `folder` cannot be written.
    """
    recipe = Recipe.model_validate(deltas.read_run(run)["recipe"])
    method = _method(recipe)
    path = Path(encoder) / "config.json"
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: name the folder of the run's encoder with --encoder")
    config = json.loads(path.read_text(encoding="utf-8"))
    origin = path.with_name("encoder.json")
    if origin.is_file():
        config["_name_or_path"] = json.loads(origin.read_text(encoding="utf-8")).get("hub")
    tensors, _, _ = deltas.read_delta(Path(run) / deltas.DELTA)
    name = re.sub(r"[^\w-]", "-", recipe.task if method.trains_head else recipe.source)
    adapterhub.write(folder, tensors, config, method, name)


def _method(recipe: Recipe) -> MadX:
    """The method of a recipe.

    Raises:
        ValueError: the method has no adapters.
    """
    method = make(recipe.base, recipe.options)
    if not isinstance(method, MadX):
        raise ValueError(
            f"the run is of method {recipe.base}, which has no adapters: name a run of a method with `base: madx`"
        )
    return method


def fetch(place: str, revision: str = "main", lock: Path | None = None) -> tuple[Path, dict[str, Any]]:
    """The folder of an adapter and its origin. With `lock`, the adapter is fetched from the Hub at the locked commit.

    Raises:
        FileNotFoundError: the folder does not exist.
        ValueError: the Hub cannot be reached, or does not know the repository.
    """
    if lock is None:
        if not Path(place).is_dir():
            raise FileNotFoundError(f"there is no folder {place}: check `imported` of the method, and its `names`")
        return Path(place), {"path": place}
    from huggingface_hub import snapshot_download

    commit = locks.commit(lock, "model", place, revision)
    try:
        folder = Path(snapshot_download(place, revision=commit, allow_patterns=list(adapterhub.FILES)))
    except Exception as error:  # The Hub and the network raise errors of many types, which do not name the adapter.
        raise ValueError(f"cannot fetch {place} at {commit[:7]}: {type(error).__name__}: {error}") from error
    return folder, {"hub": place, "revision": revision, "commit": commit}
