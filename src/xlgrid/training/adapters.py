"""Adapters in the format of AdapterHub as runs: adapters that others have trained become runs on text, and runs are exported."""

import json
import re
import time
from pathlib import Path
from typing import Any

from xlgrid.data import lock as locks
from xlgrid.heads import HEADS
from xlgrid.methods import make
from xlgrid.methods.madx import MadX, adapterhub
from xlgrid.models import deltas, prediction
from xlgrid.models.load import shapes
from xlgrid.training.recipe import Recipe
from xlgrid.training.results import fingerprint, write_results


def import_adapter(
    recipe: Recipe,
    encoder: str | Path,
    place: str,
    folder: str | Path,
    revision: str = "main",
    lock: Path | None = None,
) -> None:
    """Write an adapter as a run on text: `delta.safetensors`, `run.json` and an empty `curve.jsonl`.

    Args:
        recipe: the recipe of the run.
        encoder: the folder of the encoder that the adapter is for.
        place: a folder in AdapterHub's layout; with `lock`, a repository on the Hub, owner/name.
        folder: the run's folder.
        revision: the revision of the repository.
        lock: the file that has the commit of the revision.

    Raises:
        FileNotFoundError: there is no such folder, or a file is missing.
        ValueError: the Hub cannot be reached or does not know the repository, or the weights are damaged or do not fit.
    """
    began = time.monotonic()
    import torch
    from transformers import AutoConfig

    adapter, origin = fetch(place, revision, lock)
    files = (adapterhub.CONFIG, *adapterhub.WEIGHTS)
    method = make(recipe.base, recipe.options)
    if not isinstance(method, MadX):
        raise ValueError(f"adapters go into methods of base madx, got {recipe.base}: name one in the recipe")
    if not (Path(encoder) / "config.json").is_file():
        raise FileNotFoundError(f"{encoder} has no config.json: make or fetch the encoder again")
    model = shapes(AutoConfig.from_pretrained(encoder, local_files_only=True), HEADS["mlm"])
    method.install(model)
    tensors = adapterhub.read(adapter, model, method)
    details = {
        "encoder": str(encoder),
        "start": None,
        "first": None,
        "inputs": fingerprint([Path(encoder) / "model.safetensors", *(adapter / name for name in files)]),
        "imported": origin,
        "labels": [],
        "metric": "accuracy",
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
        "seconds": round(time.monotonic() - began, 3),
    }
    write_results(Path(folder), recipe, details, [], tensors)


def export_adapter(run: str | Path, encoder: str | Path, folder: str | Path, safetensors: bool = False) -> None:
    """Write the adapter that a run has trained, under the name of its source or task, in the format of AdapterHub.

    Args:
        run: the run's folder.
        encoder: the folder of the run's encoder, whose config.json is read.
        folder: the folder to write.
        safetensors: see `xlgrid.methods.madx.adapterhub.write`.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged, or the run has no adapters.
        OSError: `folder` cannot be written.
    """
    recipe = Recipe.model_validate(deltas.read_run(run)["recipe"])
    method = make(recipe.base, recipe.options)
    if not isinstance(method, MadX):
        raise ValueError(f"{run} is of method {recipe.base}, which has no adapters: name a run of base madx")
    path = Path(encoder) / "config.json"
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: name the folder of the run's encoder with --encoder")
    config = json.loads(path.read_text(encoding="utf-8"))
    origin = path.with_name("encoder.json")
    if origin.is_file():
        config["_name_or_path"] = json.loads(origin.read_text(encoding="utf-8")).get("hub")
    tensors, _, _ = deltas.read_delta(Path(run) / deltas.DELTA)
    name = recipe.source if method.tune == "language" else recipe.task
    adapterhub.write(folder, tensors, config, method, re.sub(r"[^\w-]", "-", name), safetensors)


def fetch(place: str, revision: str = "main", lock: Path | None = None) -> tuple[Path, dict[str, Any]]:
    """The folder of an adapter and its origin. With `lock`, the adapter is fetched from the Hub at the locked commit.

    Raises:
        FileNotFoundError: there is no such folder.
        ValueError: the Hub cannot be reached, or does not know the repository.
    """
    if lock is None:
        if not Path(place).is_dir():
            raise FileNotFoundError(f"there is no folder {place}: check `imported` of the method, and its `names`")
        return Path(place), {"path": place}
    from huggingface_hub import snapshot_download

    commit = locks.commit(lock, "model", place, revision)
    try:
        folder = Path(
            snapshot_download(place, revision=commit, allow_patterns=[adapterhub.CONFIG, *adapterhub.WEIGHTS])
        )
    except Exception as error:  # The Hub and the network raise errors of many types, which do not name the adapter.
        raise ValueError(f"cannot fetch {place} at {commit[:7]}: {type(error).__name__}: {error}") from error
    return folder, {"hub": place, "revision": revision, "commit": commit}
