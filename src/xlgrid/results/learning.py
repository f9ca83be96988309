"""Whether a training has learnt anything, by its record and its cells.

A training has **learnt nothing** in one of these cases:

- Its loss is clearly higher at the end than before the first step (`CLEAR`), or is no number. The loss at the end is the mean since
  the last evaluation but one, and the loss before the first step is that of one batch, so that a small rise may be noise.
- None of its cells in a language or pair that it was trained on has a score above chance. Where no such cell is known, the score
  on the dev set decides, for the weights that the training has kept.

An encoder that is evaluated without training has learnt nothing if none of its cells of a task has a score above chance.

**Chance** is the score of a guess that does not read its input, which the head of the task knows (`Head.chance`): for instance, the
share of the most frequent label, or 0 for the F1 of entities. A model that gives one rarer label to all words has a small F1; such a model is
found by its loss alone.
"""

import json
import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from xlgrid.heads import metric
from xlgrid.languages.sources import Source, Target

# By how much the loss at the end clearly exceeds the loss of the first batch: by this share of it, and by these nats. The loss of one
# batch is noisy: 16 examples of which a trained model gets nine in ten right have a mean loss of about 0.3 with a standard deviation
# of about 0.15, a third of these nats. A loss that sums several terms, or has many nats, varies by some percent between batches.
CLEAR_SHARE, CLEAR_NATS = 0.1, 0.5


class Learning:
    """What trainings have learnt, from the cells that have been added."""

    def __init__(self) -> None:
        # Training -> for each cell that says something about it, see `_of_cell`.
        self._cells: dict[str, list[str | None]] = {}

    def add(self, cell: Mapping[str, Any]) -> None:
        """Add the contents of a cell."""
        if not cell.get("run") or Target(cell["target"]).data in Source(cell["source"]).parts:
            self._cells.setdefault(training_of(cell), []).append(_of_cell(cell))

    def nothing(self, cell: Mapping[str, Any]) -> str:
        """Why the model of a cell has learnt nothing, with numbers; "" if it has learnt something, or nothing is known.

        Args:
            cell: a cell that has been added, or its entries `run`, `task`, `encoder`, `method` and `seed`.
        """
        record = _record(cell["run"]) if cell.get("run") else {}
        rise = _of_loss(record)
        if rise and _is_clear(record["loss"]):
            return rise
        reasons = self._cells.get(training_of(cell)) or [_of_dev(record)]
        # A score that nobody can compare with chance says nothing.
        return "" if "" in reasons or None in reasons else reasons[0] or ""


def training_of(cell: Mapping[str, Any]) -> str:
    """The folder of the run of a cell, or a name for what a cell without training evaluates."""
    return str(cell.get("run") or " ".join(str(cell[axis]) for axis in ("task", "encoder", "method", "seed")))


def _of_loss(record: Mapping[str, Any]) -> str:
    """How the loss in a run.json has risen; "" if it has not."""
    loss = record.get("loss")
    if not loss or loss["last"] <= loss["first"]:
        return ""
    return f"loss {loss['last']:.4g} at the end, {loss['first']:.4g} before the first step"


def _is_clear(loss: Mapping[str, float]) -> bool:
    """Whether a rise of the loss is more than the noise of a batch, or its end is no number."""
    first, last = loss["first"], loss["last"]
    return not math.isfinite(last) or last - first > max(CLEAR_SHARE * first, CLEAR_NATS)


def _of_dev(record: Mapping[str, Any]) -> str | None:
    """Why the score on the dev set in a run.json says that the run has learnt nothing, as `_at_chance` returns it."""
    if "dev_score" not in record or "metric" not in record:
        return None
    return _at_chance(record["metric"], record["dev_score"], record.get("chance", {}), " on its dev set")


def _of_cell(cell: Mapping[str, Any]) -> str | None:
    """Why a cell shows nothing that was learnt, as `_at_chance` returns it."""
    name = cell["metric"]["name"]
    return _at_chance(name, cell["scores"][name], cell.get("chance", {}), "")


def _at_chance(name: str, score: float, chance: Mapping[str, float], where: str) -> str | None:
    """A score that is not above chance, in words; "" if it is above chance, None if nobody knows what chance is."""
    measured = metric(name)
    if name not in chance and not measured.higher_is_better:
        return None
    guess = chance.get(name, 0.0)
    return "" if measured.better(score, guess) else f"{name} {score:.1f}{where}, chance {guess:.1f}"


def _record(run: str) -> Mapping[str, Any]:
    """The contents of the run.json in a folder; nothing where there is none, or it is damaged, which other readers report."""
    path = Path(run) / "run.json"
    try:
        return _read(str(path), path.stat().st_mtime_ns)
    except (OSError, ValueError):
        return {}


# A file is read again only after a change of its time.
@lru_cache(maxsize=100_000)
def _read(path: str, modified: int) -> Mapping[str, Any]:
    record = json.loads(Path(path).read_text(encoding="utf-8"))
    if not isinstance(record, dict):
        raise ValueError(f"{path} is no record of a run")
    return {name: record[name] for name in ("loss", "dev_score", "metric", "chance") if name in record}
