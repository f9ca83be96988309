"""Writes the files of a finished run: the learning curve, the record (run.json) and the weights."""

import hashlib
import json
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.architectures.scratch import ALL_ARCHITECTURES
from xlgrid.base.files import whole, write_text
from xlgrid.heads import ALL_HEADS
from xlgrid.methods import ALL_METHODS
from xlgrid.tasks import ALL_TASKS
from xlgrid.training.recipe import ALL_SETTINGS, Recipe

if TYPE_CHECKING:
    import torch

# The number of files that are hashed at the same time, and the bytes of a file that are read at once.
HASHED_AT_ONCE, BLOCK = 4, 2**24
# Seconds between two lines about the progress of reading.
PROGRESS_SECONDS = 30.0


def write_record(folder: Path, recipe: Recipe, details: dict[str, Any], curve: list[dict[str, float]]) -> None:
    """Write `curve.jsonl` and `run.json` of a run.

    Args:
        details: the entries of run.json besides the recipe and its digest.
    """
    record = {"recipe": recipe.model_dump(mode="json"), "digest": recipe.digest(), **details}
    write_text(folder / "curve.jsonl", "".join(json.dumps(line) + "\n" for line in curve))
    write_text(folder / "run.json", json.dumps(record, ensure_ascii=False, indent=1) + "\n")


def write_tensors(path: Path, recipe: Recipe, tensors: dict[str, "torch.Tensor"]) -> None:
    """Write tensors with the digest of the recipe, atomically."""
    from safetensors.torch import save

    with whole(path) as aside:
        aside.write_bytes(save(tensors, metadata={"digest": recipe.digest()}))


def packages(recipe: Recipe, head: str) -> dict[str, dict[str, str]]:
    """The entry `packages` of run.json: the packages that define the run's method, task, head, architecture or settings.

    Returns:
        `{"packages": {package: version}}`, or nothing if all are xlgrid's own.
    """
    task = {} if recipe.kind == head else ALL_TASKS.package(recipe.kind)
    architecture = ALL_ARCHITECTURES.package(recipe.scratch.architecture) if recipe.scratch else {}
    versions = ALL_METHODS.package(recipe.base) | task | ALL_HEADS.package(head) | architecture
    for key in recipe.training.added:
        versions |= ALL_SETTINGS.package(key)
    return {"packages": versions} if versions else {}


def fingerprint(paths: Iterable[Path]) -> str:
    """Sixteen hexadecimal digits that change when the contents of any file change.

    Missing files are ignored here and reported later. Several files are read at once, because hashing takes longer than
    reading. If this takes long, the progress is printed on stderr.
    """
    files = [path for path in paths if path.is_file()]
    total = sum(path.stat().st_size for path in files)
    blocks: list[int] = []
    pool = ThreadPoolExecutor(HASHED_AT_ONCE)
    try:
        digests = [pool.submit(_digest, path, blocks) for path in files]
        while wait(digests, timeout=PROGRESS_SECONDS).not_done:
            print(f"reads the inputs: {sum(blocks) / 1e9:,.1f} of {total / 1e9:,.1f} GB", file=sys.stderr, flush=True)
    finally:
        # Ctrl-C does not wait for large files.
        pool.shutdown(wait=False, cancel_futures=True)
    return fingerprint_of(digest.result() for digest in digests)


def fingerprint_of(digests: Iterable[bytes]) -> str:
    """The fingerprint of files with these SHA-256, in this order."""
    return hashlib.sha256(b"".join(digests)).hexdigest()[:16]


def _digest(path: Path, blocks: list[int]) -> bytes:
    """The SHA-256 of a file. The function appends the size of each block that it has read to `blocks`."""
    contents = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            contents.update(block)
            blocks.append(len(block))
    return contents.digest()
