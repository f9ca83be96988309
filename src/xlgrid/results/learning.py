"""Find trainings that have learnt nothing, from their records and cells.

A training has **learnt nothing** in one of these cases:

- Its loss is clearly higher at the end than before the first step (`CLEAR`), or is not a number. The loss at the end is
  the mean since the second-to-last evaluation, and the loss before the first step is the loss of one batch, so that a
  small rise may be noise.
- None of its cells in a language or pair that it was trained on has a score above chance. If no such cell is known, the
  dev-set score of the kept weights decides.

An encoder that is evaluated without training has learnt nothing if none of its cells of a task has a score above
chance.

**Chance** is the score of a guess that does not read the input (`Head.chance`): for instance, the share of the most
frequent label. Where a guess has 0, such as for the F1 of entities or BLEU, a score of at most `LEAST` is no better. A
model that predicts a single, rarer label for all words may have a higher F1; only its loss reveals it.
"""

import json
import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from xlgrid.heads import metric
from xlgrid.languages.sources import Source, Target

# The loss at the end is clearly higher if it exceeds the loss of the first batch by this share of it, and by these
# nats. The loss of one batch is noisy: for 16 examples, of which a trained model predicts nine in ten correctly, the
# mean loss is about 0.3 with a standard deviation of about 0.15, a third of these nats. A loss that sums several terms,
# or has many nats, varies by some percent between batches.
CLEAR_SHARE, CLEAR_NATS = 0.1, 0.5
# Where a guess has 0, labels at random still have an F1, and words that are frequent everywhere a BLEU, of some tenths.
LEAST = 1.0


class Learning:
    """The trainings that have learnt nothing, among those of the cells that have been added."""

    def __init__(self) -> None:
        # Training -> the result of `_of_cell` for each of its cells.
        self._cells: dict[str, list[str | None]] = {}

    def add(self, cell: Mapping[str, Any]) -> None:
        """Add the contents of a cell."""
        if decides(cell):
            self._cells.setdefault(training_of(cell), []).append(_of_cell(cell))

    def nothing(self, cell: Mapping[str, Any]) -> str:
        """The reason why the model of a cell has learnt nothing, with numbers; "" if it has learnt something or if this
        is unknown.

        Args:
            cell: a cell that has been added, or its entries `run`, `task`, `encoder`, `method` and `seed`.
        """
        record = _record(cell["run"]) if cell.get("run") else {}
        rise = _of_loss(record)
        if rise and _is_clear(record["loss"]):
            return rise
        reasons = self._cells.get(training_of(cell)) or [_of_dev(record)]
        # A score without a known chance is no evidence.
        return "" if "" in reasons or None in reasons else reasons[0] or ""


def decides(cell: Mapping[str, Any]) -> bool:
    """Whether the score of a cell says whether its model has learnt something: the model has no training, or the cell is in
    a language or pair that it was trained on."""
    return not cell.get("run") or Target(cell["target"]).data in Source(cell["source"]).parts


def training_of(cell: Mapping[str, Any]) -> str:
    """The folder of the run of a cell, or a name for the encoder and task of a cell without training."""
    return str(cell.get("run") or " ".join(str(cell[axis]) for axis in ("task", "encoder", "method", "seed")))


def _of_loss(record: Mapping[str, Any]) -> str:
    """A phrase about the rise of the loss in a run.json; "" if the loss has not clearly risen."""
    loss = record.get("loss")
    if not loss or loss["last"] <= loss["first"]:
        return ""
    return f"loss {loss['last']:.4g} at the end, {loss['first']:.4g} before the first step"


def _is_clear(loss: Mapping[str, float]) -> bool:
    """Whether the loss rises by more than the noise of a batch, or is not a number at the end."""
    first, last = loss["first"], loss["last"]
    return not math.isfinite(last) or last - first > max(CLEAR_SHARE * first, CLEAR_NATS)


def _of_dev(record: Mapping[str, Any]) -> str | None:
    """The result of `_at_chance` for the dev-set score in a run.json; None if the record has no such score."""
    if "dev_score" not in record or "metric" not in record:
        return None
    return _at_chance(record["metric"], record["dev_score"], record.get("chance", {}), " on its dev set")


def _of_cell(cell: Mapping[str, Any]) -> str | None:
    """The result of `_at_chance` for the main metric of a cell."""
    name = cell["metric"]["name"]
    return _at_chance(name, cell["scores"][name], cell.get("chance", {}), "")


def _at_chance(name: str, score: float, chance: Mapping[str, float], where: str) -> str | None:
    """A phrase about a score that is not above chance; "" if it is above chance, None if chance is unknown."""
    measured = metric(name)
    if name not in chance and not measured.higher_is_better:
        return None
    guess = chance.get(name, 0.0)
    if measured.better(score, guess or LEAST):
        return ""
    return f"{measured.title} {score:.1f}{where}, chance {f'{guess:.1f}' if guess else f'up to {LEAST:.1f}'}"


def _record(run: str) -> Mapping[str, Any]:
    """The contents of the run.json in a folder; empty if the file is missing or damaged, which other readers report."""
    path = Path(run) / "run.json"
    try:
        return _read(str(path), path.stat().st_mtime_ns)
    except (OSError, ValueError):
        return {}


# A file is read again only if its modification time has changed.
@lru_cache(maxsize=100_000)
def _read(path: str, modified: int) -> Mapping[str, Any]:
    record = json.loads(Path(path).read_text(encoding="utf-8"))
    if not isinstance(record, dict):
        raise ValueError(f"{path} is not the record of a run")
    return {name: record[name] for name in ("loss", "dev_score", "metric", "chance") if name in record}
