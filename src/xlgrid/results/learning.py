"""Whether a training has learnt anything, by its record and its cells.

A training has **learnt nothing** in one of these cases:

- Its loss is higher at the end than before the first step, or is no number. Of the end, it is the mean since the last evaluation but one.
- None of its cells in a language or pair that it was trained on has a score above chance. Where no such cell is known, the score
  on the dev set decides, for the weights that the training has kept.

An encoder that is evaluated without training has learnt nothing if none of its cells of a task has a score above chance.

**Chance** is the score of a guess that does not read its input, which the head of the task knows (`Head.chance`): for instance, the
share of the most frequent label, or 0 for the F1 of entities. A model that gives one rarer label to all words has a small F1; such a model is
found by its loss alone.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from xlgrid.heads import metric
from xlgrid.languages.sources import Source, Target


class Learning:
    """What trainings have learnt, from the cells that have been added."""

    def __init__(self) -> None:
        # Training -> for each cell that says something about it, why this one shows nothing; "" if it shows something.
        self._cells: dict[str, list[str]] = {}

    def add(self, cell: Mapping[str, Any]) -> None:
        """Add the contents of a cell."""
        if not cell.get("run") or Target(cell["target"]).data in Source(cell["source"]).parts:
            self._cells.setdefault(training_of(cell), []).append(of_cell(cell))

    def nothing(self, cell: Mapping[str, Any]) -> str:
        """Why the model of a cell has learnt nothing, with numbers; "" if it has learnt something, or nothing is known.

        Args:
            cell: a cell that has been added, or its entries `run`, `task`, `encoder`, `method` and `seed`.
        """
        reasons = self._cells.get(training_of(cell), [])
        record = _record(cell["run"]) if cell.get("run") else {}
        if rose := of_loss(record):
            return rose
        return reasons[0] if reasons and all(reasons) else "" if reasons else of_dev(record)


def training_of(cell: Mapping[str, Any]) -> str:
    """The folder of the run of a cell, or a name for what a cell without training evaluates."""
    return str(cell.get("run") or " ".join(str(cell[axis]) for axis in ("task", "encoder", "method", "seed")))


def of_run(record: Mapping[str, Any]) -> str:
    """Why a run has learnt nothing by its run.json alone; "" if it has learnt something, or nothing is known."""
    return of_loss(record) or of_dev(record)


def of_loss(record: Mapping[str, Any]) -> str:
    """Why the losses in a run.json say that the run has learnt nothing; "" if they do not."""
    loss = record.get("loss")
    if not loss or loss["last"] <= loss["first"]:
        return ""
    return f"loss {loss['last']:.4g} at the end, {loss['first']:.4g} before the first step"


def of_dev(record: Mapping[str, Any]) -> str:
    """Why the score on the dev set in a run.json says that the run has learnt nothing; "" if it does not."""
    if "dev_score" not in record or "metric" not in record:
        return ""
    return _at_chance(record["metric"], record["dev_score"], record.get("chance", {}), " on its dev set")


def of_cell(cell: Mapping[str, Any]) -> str:
    """Why a cell shows nothing that was learnt; "" if it does: its score is above chance, or nobody knows what chance is."""
    name = cell["metric"]["name"]
    return _at_chance(name, cell["scores"][name], cell.get("chance", {}), "")


def _at_chance(name: str, score: float, chance: Mapping[str, float], where: str) -> str:
    measured = metric(name)
    if name not in chance and not measured.higher_is_better:
        return ""
    guess = chance.get(name, 0.0)
    return "" if measured.better(score, guess) else f"{name} {score:.1f}{where}, chance {guess:.1f}"


def _record(run: str) -> Mapping[str, Any]:
    """The contents of the run.json in a folder; nothing where there is none, or it is damaged, which other readers report."""
    path = Path(run) / "run.json"
    try:
        return read_record(str(path), path.stat().st_mtime_ns)
    except (OSError, ValueError):
        return {}


# A file is read again only after a change of its time.
@lru_cache(maxsize=100_000)
def read_record(path: str, modified: int) -> Mapping[str, Any]:
    """The entries of a run.json that say whether the run has learnt anything.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is damaged.
    """
    record = json.loads(Path(path).read_text(encoding="utf-8"))
    if not isinstance(record, dict):
        raise ValueError(f"{path} is no record of a run: delete it and run the study again")
    return {name: record[name] for name in ("loss", "dev_score", "metric", "chance") if name in record}
