"""Export results for other programs: the cells of a study as a parquet file, and its learning curves for TensorBoard.

TensorBoard's event files need neither an account nor an external server, and other viewers can read them, including
Weights & Biases (`wandb sync`). In contrast, an offline run of Weights & Biases is visible only after its upload.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from xlgrid.base.clock import ENTRIES
from xlgrid.base.files import whole
from xlgrid.languages.sources import NONE
from xlgrid.methods.variants import settings_of
from xlgrid.plan.plan import Plan
from xlgrid.products.encode import Encoder
from xlgrid.products.evaluate import Cell
from xlgrid.products.report import Report
from xlgrid.results import records, units

INSTALL = "pip install 'tensorboard>=2.18'"
# Column -> its type and its description. The study and its cells determine further columns for metrics, versions and
# facts.
COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "study": (pa.string(), "the study that makes the cell: the exported one, or one that it extends"),
    "task": (pa.string(), "the name of the task in the study"),
    "encoder": (pa.string(), "the name of the encoder in the study"),
    "method": (pa.string(), "the name of the method in the study"),
    "source": (pa.string(), "the language, pair or mix that the run trained on; `none` without training"),
    "target": (pa.string(), "the language or pair of the evaluation"),
    "seed": (pa.int64(), "the seed"),
    "checkpoint": (
        pa.int64(),
        "the step of the target's MLM run with whose weights the cell is evaluated; null: its end, or no such run",
    ),
    "oracle": (
        pa.bool_(),
        "whether settings were chosen on the dev sets of targets, so that the score is no result of transfer alone",
    ),
    "metric": (pa.string(), "the main metric of the task"),
    "score": (pa.float64(), "the score in the main metric; null: the cell has no result yet"),
    "n": (pa.int64(), "the number of examples"),
    "seconds": (pa.float64(), "the wall time of the evaluation"),
    "cpu_seconds": (pa.float64(), "the CPU time of the evaluation"),
    "device": (pa.string(), "the device of the evaluation"),
    "threads": (pa.int64(), "the number of CPU threads of the evaluation"),
    "commit": (
        pa.string(),
        "the commit of xlgrid in the evaluation, with `-dirty` if files differed from it; null outside a git checkout",
    ),
    "digest": (pa.string(), "the digest of the run's recipe"),
    "run": (pa.string(), "the folder of the run; null without training"),
    "path": (pa.string(), "the file of the cell, which also has the outcome of each example"),
}
# The beginnings of the names of further columns.
SCORE, VERSION, FACT = "score_", "version_", "fact_"
# Tag of a curve in TensorBoard -> the key of a point of a learning curve.
TAGS = {"train/loss": "loss", "train/learning_rate": "lr"}
# TensorBoard recognizes a file by `tfevents` in its name. The name is fixed, so that a second export replaces the
# first.
EVENTS = "events.out.tfevents.xlgrid"


def cells_path(plan: Plan) -> Path:
    """The default path of the exported cells of a study."""
    return Path(Report(plan.study.name).folder) / "cells.parquet"


def export_cells(plan: Plan, output: Path) -> str:
    """Write one row for each planned cell of a study to a parquet file, atomically.

    A cell without a result also has a row, with null scores, so that a missing cell cannot be overlooked.

    Returns:
        A sentence about the file and the number of planned cells with a result.

    Raises:
        ValueError: the file of a cell is damaged, or has another cell.
    """
    rows = [_row(plan, cell) for cell in plan.cells]
    with whole(output) as aside:
        pq.write_table(_table(rows), aside)
    scored = sum(row["score"] is not None for row in rows)
    return f"wrote {output}: {scored:,} of {len(rows):,} planned cells have a result"


def _row(plan: Plan, cell: Cell) -> dict[str, Any]:
    """The entries of a cell, by the names of the columns."""
    metrics = plan.study.metrics[cell.task]
    facts = {**plan.study.facts[cell.encoder], **settings_of(cell.method)}
    row = {
        **cell.shown._asdict(),
        "checkpoint": cell.target.step,
        "oracle": plan.study.is_oracle(cell.run),
        "metric": metrics[0],
        "run": None if cell.source == NONE else plan.owned(cell.run).folder,
        "path": cell.path,
        **dict.fromkeys(("score", *(f"{SCORE}{metric}" for metric in metrics))),
        **{f"{FACT}{name}": value for name, value in facts.items()},
    }
    if not Path(cell.path).exists():
        return row
    record = records.read_expected(cell.path, cell._asdict())
    scores = {f"{SCORE}{metric}": records.score(cell.path, record, metric) for metric in metrics}
    versions = {f"{VERSION}{name}": version for name, version in record.get("versions", {}).items()}
    same = {name: record.get(name) for name in ("n", *ENTRIES, "device", "threads", "commit", "digest")}
    return {**row, **scores, "score": scores[f"{SCORE}{metrics[0]}"], **same, **versions}


def _table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The rows as a table. The metadata of the fields describe the columns."""
    further = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in COLUMNS]
    columns: dict[str, tuple[pa.DataType | None, str]] = {}
    for name, column in COLUMNS.items():
        columns[name] = column
        # The scores of all metrics follow the score of the main metric, and versions and facts come last.
        for metric in (other.removeprefix(SCORE) for other in further if name == "score" and other.startswith(SCORE)):
            columns[SCORE + metric] = pa.float64(), units.sentence([metric])
    for beginning, text in (
        (VERSION, "the version of {} in the evaluation"),
        (FACT, "the fact {} of the encoder, or the setting of the variant"),
    ):
        for name in (name for name in further if name.startswith(beginning)):
            columns[name] = None, text.format(name.removeprefix(beginning))
    arrays = [_array([row.get(name) for row in rows], kind) for name, (kind, _) in columns.items()]
    fields = [
        pa.field(name, array.type, metadata={"description": text})
        for array, (name, (_, text)) in zip(arrays, columns.items(), strict=True)
    ]
    return pa.table(arrays, schema=pa.schema(fields))


def _array(values: Sequence[Any], kind: pa.DataType | None) -> pa.Array:
    """The values of a column. Without a known type, they are whole numbers, numbers or texts, whichever fits all."""
    if kind is None and not all(isinstance(value, int | float | None) for value in values):
        values = [None if value is None else str(value) for value in values]
    return pa.array(values, kind)


def export_curves(plan: Plan, folder: Path) -> str:
    """Write the learning curve of each finished run, and of each encoder of the study that is trained, as a TensorBoard
    event file.

    In `folder`, a run has the same path as in `runs/` of the results, and an encoder has the path `encoders/{encoder}`.
    The curves are the score on the dev set, the loss and the learning rate over steps, with the time of each point.

    Returns:
        A sentence with the number of planned trainings that have a curve, and the command that shows them.

    Raises:
        ValueError: the package tensorboard is missing, or a file of a run is damaged.
    """
    try:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter
    except ImportError as error:
        raise ValueError(
            f"learning curves need the package tensorboard ({error}): `{INSTALL}`, then run the same command again"
        ) from None
    written, planned = 0, 0
    for name, run in _trainings(plan):
        planned += 1
        if (curve := records.read_curve(run)) is None:
            continue
        events = [Event(file_version="brain.Event:2")]
        for when, step, values in _points(run, *curve):
            scalars = [Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
            events.append(Event(wall_time=when, step=step, summary=Summary(value=scalars)))
        with whole(folder / name / EVENTS) as aside, aside.open("wb") as file:
            writer = RecordWriter(file)
            for event in events:
                writer.write(event.SerializeToString())
        written += 1
    shown = f"; `tensorboard --logdir {folder}` shows them" if written else ""
    return f"wrote the learning curves of {written:,} of {planned:,} planned trainings to {folder}{shown}"


def _trainings(plan: Plan) -> Iterator[tuple[Path, Path]]:
    """For every run and every encoder that is trained: its path in the folder of the export, and its folder."""
    for run in plan.runs:
        yield Path(run.folder).relative_to(f"{Report(run.study).folder}/runs"), Path(run.folder)
    for name, entry in plan.study.encoders.items():
        if entry.is_trained:
            yield Path("encoders", name), Path(plan.owned(Encoder(plan.study.name, name)).folder)


def _points(
    run: Path, record: Mapping[str, Any], curve: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[float, int, dict[str, float]]]:
    """For each point of a learning curve, the time in seconds since 1970, the step, and the value of each tag."""
    # The record is written when the training ends.
    began = (run / "run.json").stat().st_mtime - record.get("seconds", 0)
    of_score = f"dev/{record.get('metric', 'score')}"
    for point in curve:
        values = {of_score: point["score"], **{tag: point[entry] for tag, entry in TAGS.items() if entry in point}}
        finite = {tag: value for tag, value in values.items() if value is not None and math.isfinite(value)}
        yield began + point.get("seconds", 0), point["step"], finite
