"""The head `choice`, which chooses the right one of several continuations."""

from typing import TYPE_CHECKING, Any

from xlgrid.heads.encoding import Encoding
from xlgrid.heads.head import TaskColumns
from xlgrid.heads.sequence import RowHead, check_names

if TYPE_CHECKING:
    import pyarrow as pa


class ChoiceHead(RowHead):
    """The right one of several choices, where the model scores each choice in a separate input.

    The first segment is the text of all inputs that are not choices, joined with spaces, and the second segment is the
    choice. The target is the name of a label, or a number that is written the same. The head has no pairs of languages.
    The model has one output, the score of a choice, for any number of choices.
    """

    name = "choice"
    model_suffix = "MultipleChoice"
    inputs_allowed = (1, None)

    def problems(self, task: TaskColumns) -> list[str]:
        problems = super().problems(task)
        if len(task.labels) != len(task.choices):
            problems.append(
                f"`labels` has {len(task.labels)} names for {len(task.choices)} `choices`: give one name for each "
                "choice, in the same order"
            )
        return problems

    def problems_of_choices(self, task: TaskColumns) -> list[str]:
        count = len(task.choices)
        return [] if count > 1 else [f"`choices` has {count} columns, expected at least 2"]

    def check(self, table: "pa.Table", task: TaskColumns, where: str, first_row: int = 1) -> None:
        super().check(table, task, where, first_row)
        check_names([str(label) for label in table[task.target].to_pylist()], task, where, first_row)

    def encode(self, table: "pa.Table", task: TaskColumns, encoding: Encoding) -> dict[str, list[Any]]:
        count, rows = len(task.choices), table.to_pylist()
        contexts = [" ".join(row[column] for column in task.inputs[:-count]) for row in rows]
        segments = [
            [context for context in contexts for _ in task.choices],
            [row[column] for row in rows for column in task.choices],
        ]
        columns = encoding.cut(segments, " and ".join(task.choices))
        columns = {
            name: [inputs[at : at + count] for at in range(0, len(inputs), count)] for name, inputs in columns.items()
        }
        return columns | {"label": [task.labels.index(str(row[task.target])) for row in rows]}

    def shaped(self, inputs: Any, rows: int) -> Any:
        """[rows, choices, longest]."""
        return inputs.reshape(rows, -1, inputs.shape[-1])
