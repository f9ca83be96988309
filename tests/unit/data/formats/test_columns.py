"""Columns of tables of any type."""

import pyarrow as pa
import pytest

from xlgrid.data.formats import batch_rows, check_columns


def test_a_missing_column_names_the_nearest_after_the_place() -> None:
    check_columns(["text"], ["text", "label"], "here")
    with pytest.raises(ValueError, match=r"^here: unknown column 'labels', did you mean 'label'\? \(there are: text,"):
        check_columns(["text", "labels"], ["text", "label"], "here")


@pytest.mark.parametrize(
    ("line", "mark"), [("text;label", "semicolons"), ("text\tlabel", "tabs"), ("text,label", "commas")]
)
def test_a_file_with_another_separator_is_called_so(line: str, mark: str) -> None:
    with pytest.raises(ValueError, match=f"^here: its first line is one value, .* seems to have {mark}"):
        check_columns(["text"], [line], "here")


def test_rows_have_the_values_of_the_columns_in_their_order() -> None:
    assert list(batch_rows(pa.table({"a": [1, 2], "b": ["x", "y"]}), ["b", "a", "b"])) == [("x", 1, "x"), ("y", 2, "y")]
