"""Read results: cells as JSON and as a data frame for exhibits, learning curves, and the outcomes of examples."""

import base64
import binascii
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.base.clock import ENTRIES
from xlgrid.base.errors import Damaged
from xlgrid.heads import ALL_HEADS
from xlgrid.heads.metrics import Metric
from xlgrid.languages.sources import Source, Target
from xlgrid.results.learning import Learning

if TYPE_CHECKING:
    import pandas as pd

IDENTITY = ("task", "encoder", "method", "source", "target", "seed")
MEASURED = ("score", "n", "seconds", "cpu_seconds", "learnt_nothing")
# The column with the implementation of the main metric, in which cells with the same metric may differ.
IMPLEMENTATION = "implementation"
# The columns of cells, of learning curves, and of the entries of an exhibit. A fact of an encoder cannot have one of
# these names.
COLUMNS = (
    *IDENTITY,
    *MEASURED,
    "study",
    "path",
    "metric",
    IMPLEMENTATION,
    "group",
    "step",
    "checkpoint",
    # The variant of a method, where `method` is the method itself.
    "run_method",
    "run",
    "column",
    "mean",
    "sd",
    "min",
    "max",
    "n_seeds",
    "n_seeds_expected",
    "n_cells",
    "n_cells_expected",
    "scores",
    "rows",
    # The columns that `xlgrid.exhibits.drawing.sheet` adds.
    "text",
    "state",
    "hover",
)
CURVE = ("task", "encoder", "method", "source", "seed", "step", "score")


def read_cell(path: str | Path) -> dict[str, Any]:
    """The cell in a file.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: the file is truncated, or is not a cell.
    """
    path = Path(path)
    try:
        cell = json.loads(path.read_text(encoding="utf-8"))
        missing = sorted({*IDENTITY, "study", "head", "labels", "scores", "metric", "n", "outcomes"} - set(cell))
        if missing:
            raise ValueError(f"it lacks {', '.join(missing)}")
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path} does not exist: run the study to make this cell") from error
    except ValueError as error:
        raise Damaged(
            f"{path} is truncated or is not a cell ({error}): delete it and run the study again", path
        ) from error
    return cell


def read_expected(path: str | Path, identity: Mapping[str, Any]) -> dict[str, Any]:
    """The cell in a file, which must have the given identity (the six identity columns).

    Raises:
        FileNotFoundError, ValueError: `read_cell` raises it, or the cell has another identity.
    """
    cell = read_cell(path)
    if wrong := [name for name in IDENTITY if cell[name] != identity[name]]:
        got = ", ".join(f"{name} {cell[name]!r} instead of {identity[name]!r}" for name in wrong)
        raise Damaged(f"{path} is another cell: {got}; delete it and run the study again", path)
    return cell


def outcomes(path: str | Path, cell: Mapping[str, Any]) -> list[Any]:
    """The outcome of each example of a cell, in the order of its tokens file. `xlgrid.heads.metrics` describes
    outcomes.

    Args:
        path: the path of the cell, for messages.
        cell: the contents of the cell.

    Raises:
        ValueError: the outcomes are damaged, or their number differs from the cell's `n`.
    """
    return _of_examples(path, cell, "outcomes")


def answers(path: str | Path, cell: Mapping[str, Any]) -> list[Any] | None:
    """The answer of the model in each example of a cell, in the order of its outcomes; empty if its head does not keep answers,
    and None if an earlier version of xlgrid made the cell without them.

    Args:
        path: the path of the cell, for messages.
        cell: the contents of the cell.

    Raises:
        ValueError: the answers are damaged, or their number differs from the cell's `n`.
    """
    if not ALL_HEADS.find(cell["head"]).keeps_answers:
        return []
    return _of_examples(path, cell, "answers") if "answers" in cell else None


def _of_examples(path: str | Path, cell: Mapping[str, Any], entry: str) -> list[Any]:
    try:
        values = _unpacked(cell[entry])
    except (binascii.Error, zlib.error, ValueError) as error:
        raise Damaged(f"{path} has damaged {entry} ({error}): delete it and run the study again", path) from error
    if len(values) != cell["n"]:
        raise Damaged(f"{path} has {len(values)} {entry} but n {cell['n']}: delete it and run the study again", path)
    return values


# The metrics of a cell are computed one after another, from its outcomes and its answers.
@lru_cache(maxsize=2)
def _unpacked(text: str) -> list[Any]:
    values: list[Any] = json.loads(zlib.decompress(base64.b64decode(text, validate=True)))
    return values


def read_cells(
    expected: Iterable[tuple[str | Path, Mapping[str, Any]]], metrics: Mapping[str, Sequence[str]]
) -> "pd.DataFrame":
    """One row for each metric of every expected cell.

    Args:
        expected: the path and the identity of each cell: the six identity columns, and the facts of its encoder.
        metrics: task -> the metrics to return, see `Study.metrics`.

    Returns:
        These columns:

        - `task`, `encoder`, `method`, `source`, `target`, `seed`: the identity; `source` and `target` without the part
          after @;
        - the facts of the encoder;
        - `checkpoint`, if any cell has one: the step of the target's MLM run with whose weights the cell is evaluated,
          NaN for the end of the run;
        - `metric`, and `score` in its unit;
        - `n`: the number of examples;
        - `seconds`, `cpu_seconds`: the time of the evaluation;
        - `learnt_nothing`: the reason why the model of the cell has learnt nothing, "" if it has learnt something;
        - `implementation`: the implementation of the metric; None for further metrics of a cell.

        For a missing file, `score`, `n`, `seconds`, `cpu_seconds` and `learnt_nothing` are NaN, and `implementation` is
        None.

    Raises:
        ValueError: a cell is truncated, has another identity than expected at its path, or cannot have a metric.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    learning = Learning()
    for path, identity in expected:
        row = {**identity, **dict.fromkeys(MEASURED, float("nan"))}
        row |= _shown(identity)
        asked = metrics[row["task"]]
        if not Path(path).exists():
            rows += [{**row, "metric": metric} for metric in asked]
            continue
        cell = read_expected(path, identity)
        learning.add(cell)
        row["learnt_nothing"] = {axis: cell.get(axis) for axis in ("run", *IDENTITY)}
        row |= {"n": float(cell["n"]), **{name: float(cell.get(name, "nan")) for name in ENTRIES}}
        ways = {cell["metric"]["name"]: cell["metric"].get(IMPLEMENTATION)}
        for metric in asked:
            scored = {"metric": metric, "score": score(path, cell, metric), IMPLEMENTATION: ways.get(metric)}
            rows.append(row | scored)
    for row in rows:
        if isinstance(cell := row["learnt_nothing"], dict):
            row["learnt_nothing"] = learning.nothing(cell)
    last = ("metric", *MEASURED, IMPLEMENTATION)
    extra = [name for row in rows for name in row if name not in {*IDENTITY, *last}]
    return pd.DataFrame(rows, columns=[*IDENTITY, *dict.fromkeys(extra), *last])


def _shown(identity: Mapping[str, Any]) -> dict[str, Any]:
    target = Target(identity["target"])
    names = {"source": Source(identity["source"]).data, "target": target.data}
    return names if target.step is None else {**names, "checkpoint": target.step}


def score(path: str | Path, cell: Mapping[str, Any], metric: str) -> float:
    """The score of a cell in a metric: the one that the cell lists, or the one that its outcomes have.

    Args:
        path: the path of the cell, for messages.
        cell: the contents of the cell.

    Raises:
        ValueError: the head of the cell has no such metric for the labels of the cell, or the outcomes are damaged.
    """
    if metric in cell["scores"]:
        return float(cell["scores"][metric])
    return metric_of(path, cell, metric).score(outcomes(path, cell))


def metric_of(path: str | Path, cell: Mapping[str, Any], metric: str) -> Metric:
    """The metric with a name for the outcomes of a cell.

    Raises:
        ValueError: the head of the cell has no such metric for the labels of the cell.
    """
    try:
        return ALL_HEADS.find(cell["head"]).metric(cell["labels"], metric)
    except ValueError as error:
        raise Damaged(f"{path} has no {metric}: {error}; delete it and run the study again", path) from error


def read_curve(run: str | Path) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
    """The record of the run in a folder (the contents of run.json) and the points of its learning curve; None if the
    folder has no finished run.

    Each point has `step`, `loss`, `score` (on the dev set), `lr` and `seconds` since the run began.

    Raises:
        ValueError: a file is damaged.
    """
    run = Path(run)
    if not (run / "run.json").exists() or not (run / "curve.jsonl").exists():
        return None
    try:
        record = json.loads((run / "run.json").read_text(encoding="utf-8"))
        lines = (run / "curve.jsonl").read_text(encoding="utf-8").splitlines()
        return record, [json.loads(line) for line in lines]
    except ValueError as error:
        raise _damaged_run(run, error) from error


def _damaged_run(run: Path, error: Exception) -> Damaged:
    return Damaged(f"run.json or curve.jsonl in {run} is damaged ({error}): delete the folder and run again", run)


def read_curves(runs: Iterable[str | Path]) -> "pd.DataFrame":
    """The learning curves of the runs in some folders.

    The columns are task, encoder, method, source, seed, step, score (on the dev set, in the unit of the run's metric)
    and run. Folders without a finished run are left out. If some runs are for one target each (source en@qu), the
    column `target` has this target ("" for other runs), and `source` is the source without it.

    Raises:
        ValueError: a file is damaged.
    """
    import pandas as pd

    rows = []
    for run in map(Path, runs):
        if (curve := read_curve(run)) is None:
            continue
        record, points = curve
        try:
            recipe = record["recipe"]
            identity = {name: recipe[name] for name in CURVE if name not in ("step", "score")}
            source = Source(identity["source"])
            identity |= {"source": source.data, **({"target": source.for_target} if source.for_target else {})}
            rows += [{**identity, "step": point["step"], "score": point["score"], "run": str(run)} for point in points]
        except (ValueError, KeyError, TypeError) as error:
            raise _damaged_run(run, error) from error
    columns = [*CURVE, "run", *(["target"] if any("target" in row for row in rows) else [])]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.fillna({"target": ""}) if "target" in frame else frame
