"""The tokens of a data set: rows of one or several inputs, parts of a data set, and several joined."""

import numpy as np
import pyarrow as pa
import pytest

from xlgrid.heads.tokens import Tokens, Vocabulary, joined, offsets_of
from xlgrid.heads.values import Values

ROWS = [[10, 11, 12], [20], [30, 31], [40, 41, 42, 43]]


def tokens(rows: list[list[int]] = ROWS, codes: tuple[str, ...] = ("en",), inputs_per_row: int = 1) -> Tokens:
    """Inputs of these token ids, whose columns repeat the first id of each row and whose token column is ten times the id."""
    return Tokens(
        head="token",
        label_names=("a", "b"),
        pad_id=0,
        values=np.array([value for row in rows for value in row], np.int32),
        offsets=offsets_of([np.array([len(row) for row in rows])]),
        contexts=np.ones(len(rows), np.int64),
        languages=codes,
        language_of=np.array([[0, len(codes) - 1]] * len(rows), np.int16),
        columns={
            "first": np.array([row[0] for row in rows[::inputs_per_row]]),
            "name": pa.array([str(row[0]) for row in rows[::inputs_per_row]]),
        },
        token_columns={"tens": np.array([10 * value for row in rows for value in row])},
        inputs_per_row=inputs_per_row,
        vocabulary=Vocabulary(size=50, mask_id=4, special_ids=(0, 4)),
    )


def ids(some: Tokens) -> list[list[int]]:
    return [some.values[start:end].tolist() for start, end in zip(some.offsets[:-1], some.offsets[1:], strict=True)]


def test_a_row_of_several_inputs_is_as_long_as_its_padding_makes_it() -> None:
    pairs = tokens(inputs_per_row=2)
    assert (len(pairs), pairs.examples) == (2, 2)
    assert pairs.sizes.tolist() == [3, 1, 2, 4]
    assert pairs.longest.tolist() == [3, 4] and pairs.lengths.tolist() == [6, 8]
    assert pairs.inputs(np.array([1, 0])).tolist() == [2, 3, 0, 1]


def test_windows_of_one_example_count_once() -> None:
    windows = tokens()
    windows = Tokens(**{**vars(windows), "columns": {"example": np.array([0, 0, 1, 2])}})
    assert (len(windows), windows.examples) == (4, 3)


@pytest.mark.parametrize("inputs_per_row", [1, 2])
def test_taken_rows_keep_their_tokens_and_columns(inputs_per_row: int) -> None:
    chosen = np.array([1, 0])
    selection = tokens(inputs_per_row=inputs_per_row).take(chosen)
    rows = [row for at in chosen for row in ROWS[at * inputs_per_row : (at + 1) * inputs_per_row]]
    assert ids(selection) == rows
    firsts = [row[0] for row in rows[::inputs_per_row]]
    assert selection.columns["first"].tolist() == firsts
    assert selection.columns["name"].to_pylist() == [str(first) for first in firsts]
    assert selection.token_columns["tens"].tolist() == [10 * value for row in rows for value in row]


def test_joined_parts_follow_each_other_in_languages_of_one_numbering() -> None:
    parts = [tokens(ROWS[:1], ("en", "fr")), tokens(ROWS[1:], ("fr", "de"))]
    both = joined(parts)
    assert ids(both) == ROWS and both.languages == ("en", "fr", "de")
    segments = both.segments(np.arange(4))
    languages = [tuple(segments.languages[at] for at in pair) for pair in segments.language_of]
    assert languages == [("en", "fr"), *[("fr", "de")] * 3]
    assert both.parts is not None and both.parts.tolist() == [0, 1, 1, 1]
    assert both.columns["name"].to_pylist() == ["10", "20", "30", "40"]


def test_a_column_that_a_part_lacks_is_dropped() -> None:
    without = Tokens(**{**vars(tokens()), "columns": {"first": np.arange(4)}})
    assert [*joined([tokens(), without]).columns] == ["first"]


def test_joined_values_of_a_file_stay_in_the_file() -> None:
    in_file = tokens()
    in_file = Tokens(**{**vars(in_file), "values": Values([in_file.values[:4], in_file.values[4:]])})  # type: ignore[list-item]
    both = joined([in_file, tokens()])
    assert isinstance(both.values, Values) and len(both.values.pieces) == 3
    assert ids(both) == ROWS + ROWS


def test_a_batch_is_as_long_as_its_longest_input() -> None:
    assert tokens().segments(np.array([0, 2])).length == 3
    assert tokens().segments(np.array([], np.int64)).length == 0
