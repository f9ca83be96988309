"""Adapters that others have trained, as the run on text that would have made them."""

import time
from pathlib import Path
from typing import Any

from xlgrid.data import lock as locks
from xlgrid.heads import HEADS
from xlgrid.methods import make
from xlgrid.methods.madx import MadX
from xlgrid.models import prediction
from xlgrid.models.load import shapes
from xlgrid.training import adapterhub
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
    """Write `delta.safetensors`, `run.json` and `curve.jsonl`, without a line, of a run on text that is not trained.

    Args:
        encoder: folder of the encoder that the adapter is for.
        place: a folder in AdapterHub's layout; with `lock`, a repository on the Hub, owner/name.
        folder: the run's folder.
        revision, lock: of the repository, and the file that says which commit that is.

    Raises:
        FileNotFoundError: there is no such folder, or a file is missing.
        ValueError: the Hub cannot be reached or does not know the repository, or the weights are damaged or do not fit.
    """
    began = time.monotonic()
    import torch
    from transformers import AutoConfig

    found, origin = fetch(place, revision, lock)
    files = (adapterhub.CONFIG, *adapterhub.WEIGHTS)
    method = make(recipe.base, recipe.options)
    if not isinstance(method, MadX):
        raise ValueError(f"adapters go into methods of base madx, got {recipe.base}: name one in the recipe")
    if not (Path(encoder) / "config.json").is_file():
        raise FileNotFoundError(f"{encoder} has no config.json: make or fetch the encoder again")
    model = shapes(AutoConfig.from_pretrained(encoder, local_files_only=True), HEADS["mlm"])
    method.install(model)
    tensors = adapterhub.read(found, model, method)
    details = {
        "encoder": str(encoder),
        "start": None,
        "first": None,
        "inputs": fingerprint([Path(encoder) / "model.safetensors", *(found / name for name in files)]),
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


def fetch(place: str, revision: str = "main", lock: Path | None = None) -> tuple[Path, dict[str, Any]]:
    """The folder of an adapter, and where it came from; with `lock`, fetched from the Hub at the locked commit.

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
        found = Path(snapshot_download(place, revision=commit, allow_patterns=[adapterhub.CONFIG, *adapterhub.WEIGHTS]))
    except Exception as error:  # of whatever the Hub or the network raise, say what was being fetched
        raise ValueError(f"cannot fetch {place} at {commit[:7]}: {type(error).__name__}: {error}") from error
    return found, {"hub": place, "revision": revision, "commit": commit}
