"""The files that a finished run leaves: its learning curve, its record and its weights."""

import hashlib
import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.base.files import whole, write_text
from xlgrid.heads import ALL_HEADS
from xlgrid.methods import ALL_METHODS
from xlgrid.models import deltas
from xlgrid.tasks import ALL_TASKS
from xlgrid.training.recipe import Recipe

if TYPE_CHECKING:
    import torch


def write_results(
    folder: Path,
    recipe: Recipe,
    details: dict[str, Any],
    curve: list[dict[str, float]],
    tensors: dict[str, "torch.Tensor"],
) -> None:
    """Write `curve.jsonl`, `run.json` and `delta.safetensors` of a run.

    Args:
        details: the entries of run.json besides the recipe, its digest and the commit of this code.
    """
    record = {"recipe": recipe.model_dump(mode="json"), "digest": recipe.digest(), **details, "commit": _commit()}
    write_text(folder / "curve.jsonl", "".join(json.dumps(line) + "\n" for line in curve))
    write_text(folder / "run.json", json.dumps(record, ensure_ascii=False, indent=1) + "\n")
    write_tensors(folder / deltas.DELTA, recipe, tensors)


def write_tensors(path: Path, recipe: Recipe, tensors: dict[str, "torch.Tensor"]) -> None:
    """Write tensors with the digest of the recipe, atomically."""
    from safetensors.torch import save

    with whole(path) as aside:
        aside.write_bytes(save(tensors, metadata={"digest": recipe.digest()}))


def packages(recipe: Recipe, head: str) -> dict[str, dict[str, str]]:
    """An entry of run.json: the version of each package, other than xlgrid, that the method, the task or the head is from.

    Returns:
        `{"packages": {package: version}}`, or nothing if all three are xlgrid's own.
    """
    task = {} if recipe.kind == head else ALL_TASKS.package(recipe.kind)
    versions = ALL_METHODS.package(recipe.base) | task | ALL_HEADS.package(head)
    return {"packages": versions} if versions else {}


def fingerprint(paths: Iterable[Path]) -> str:
    """Sixteen hexadecimal digits that differ when the contents of any file do. Missing files, which are reported later, do not
    count."""
    contents = hashlib.sha256()
    for path in paths:
        if path.is_file():
            with path.open("rb") as file:
                contents.update(hashlib.file_digest(file, "sha256").digest())
    return contents.hexdigest()[:16]


def _commit() -> str | None:
    """The commit of this code, with `-dirty` where it was changed since; None outside a checkout."""
    here = Path(__file__)
    tracked = ["git", "ls-files", "--error-unmatch", here.name]
    name = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        subprocess.run(tracked, cwd=here.parent, check=True, capture_output=True, timeout=10)
        described = subprocess.run(name, cwd=here.parent, check=True, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return described.stdout.strip()
