"""What models answer in the examples of a study: the texts of the data beside the answers in its cells."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from xlgrid.base.errors import Damaged
from xlgrid.base.files import whole
from xlgrid.data.formats import read_table
from xlgrid.heads.head import Evaluated, Example
from xlgrid.products.evaluate import Cell
from xlgrid.report.export import COLUMNS as OF_CELLS
from xlgrid.results import records

if TYPE_CHECKING:
    from xlgrid.plan.plan import Plan

# The beginning of the names of the columns with the inputs of examples.
INPUT = "input_"
# Column -> its type and its description. The columns of the inputs come before `gold`.
COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    **{name: OF_CELLS[name] for name in (*Cell._fields, "checkpoint")},
    "example": (pa.int64(), "the number of the example's row in the data, from 0"),
    "gold": (pa.string(), "the answer in the data"),
    "predicted": (pa.string(), "the answer of the model"),
    "is_right": (pa.bool_(), "whether this answer is right; null if answers are better or worse, not right or wrong"),
    "path": (pa.string(), "the file of the cell"),
}


def data_path(plan: "Plan", cell: "Cell") -> str:
    """The file of data on which a cell is evaluated; "" for a text, which has no examples."""
    if plan.study.tasks[cell.task].from_text:
        return ""
    # Files of other splits and of parallel examples come later.
    paths: Any = plan.owned(cell.tokens(plan)).inputs(plan)["data"]
    return str(paths[0])


@lru_cache(maxsize=64)
def rows_of(path: str) -> pa.Table:
    """The rows of a file of data."""
    return read_table(path)


def examples(plan: "Plan", cell: "Cell", record: Mapping[str, Any], root: Path = Path()) -> list[Example] | None:
    """The examples of a cell with the answers of its model; empty for a head without answers, and None if the cell lacks its
    answers, because an earlier version of xlgrid made it.

    Args:
        record: the contents of the cell.
        root: the folder that contains results/.

    Raises:
        FileNotFoundError: the data do not exist.
        ValueError: the cell is damaged, or the data have other rows than those of the cell.
    """
    path, data = root / cell.path, data_path(plan, cell)
    if not data:
        return []
    if (answers := records.answers(path, record)) is None:
        return None
    task, table, outcomes = plan.study.tasks[cell.task].task, rows_of(str(root / data)), records.outcomes(path, record)
    seen = Evaluated(table, task, record["labels"], record.get("options", {}), outcomes, answers)
    try:
        return task.head.examples(seen)
    except (IndexError, ValueError) as error:
        raise Damaged(
            f"{path} has {len(outcomes)} examples, and {data} has other ones: delete the cell and run the study again",
            path,
        ) from error


def inputs(plan: "Plan", cell: "Cell", data: pa.Table) -> dict[str, list[str]]:
    """The inputs in the rows of the data of a cell, by the names of their columns. Words are joined by spaces."""
    return {
        name: [text if isinstance(text, str) else " ".join(text) for text in data[name].to_pylist()]
        for name in plan.study.tasks[cell.task].task.inputs
    }


def export(plan: "Plan", output: Path) -> str:
    """Write a row for each example of each cell with a result to a parquet file, atomically.

    The columns are those of `COLUMNS`, and `input_premise` and so on for the inputs of all tasks.

    Returns:
        A sentence about the file, and about cells without predictions.

    Raises:
        FileNotFoundError: the data of a cell do not exist.
        ValueError: the file of a cell is damaged, or has another cell.
    """
    tasks = [plan.study.tasks[name] for name in dict.fromkeys(cell.task for cell in plan.cells)]
    texts = {
        INPUT + name: (pa.string(), f"the text in the column {name}") for task in tasks for name in task.task.inputs
    }
    before = [*COLUMNS].index("gold")
    kinds = dict([*COLUMNS.items()][:before]) | texts | COLUMNS
    schema = pa.schema([pa.field(name, kind, metadata={"description": text}) for name, (kind, text) in kinds.items()])
    cells, lacking = 0, list[str]()
    with whole(output) as aside, pq.ParquetWriter(aside, schema) as file:
        for cell in (cell for cell in plan.cells if Path(cell.path).exists()):
            found = examples(plan, cell, records.read_expected(cell.path, cell._asdict()))
            if found is None:
                lacking.append(cell.path)
            if not found:
                continue
            data = rows_of(data_path(plan, cell)).take([each.row for each in found])
            row, gold, predicted, is_right = zip(*found, strict=True)
            of_rows = {"example": row, "gold": gold, "predicted": predicted, "is_right": is_right}
            of_rows |= {INPUT + name: tuple(values) for name, values in inputs(plan, cell, data).items()}
            of_cell = {**cell.shown._asdict(), "checkpoint": cell.target.step, "path": cell.path}
            values = {name: of_rows.get(name) or [of_cell.get(name)] * len(found) for name in schema.names}
            file.write_table(pa.table(values, schema=schema))
            cells += 1
    said = f"wrote {output}: the examples of {cells:,} cells"
    return said + (
        f"; {len(lacking):,} cells, such as {lacking[0]}, have no predictions, because an earlier version of xlgrid made "
        "them: delete them and run the study again"
        if lacking
        else ""
    )
