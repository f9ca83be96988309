"""Arrays read as one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xlgrid.heads.values import Values

PIECES = st.lists(st.lists(st.integers(0, 99), max_size=4).map(lambda piece: np.array(piece, np.int32)), max_size=5)


@given(PIECES, st.data())
def test_values_are_those_of_the_joined_array(pieces: list[np.ndarray], data: st.DataObject) -> None:
    values, joined = Values(pieces), np.concatenate([np.zeros(0, np.int32), *pieces])
    assert len(values) == len(joined)
    ends = st.none() | st.integers(-25, 25)
    part = slice(data.draw(ends), data.draw(ends))
    assert values[part].tolist() == joined[part].tolist() and values[part].dtype == np.int32
    positions = data.draw(st.lists(st.integers(0, len(joined) - 1))) if len(joined) else []
    selection = values[np.array(positions, np.int64)]
    assert selection.tolist() == joined[np.array(positions, np.int64)].tolist() and selection.dtype == np.int32


def test_a_slice_of_one_piece_is_no_copy() -> None:
    piece = np.arange(9, dtype=np.int32)
    assert np.shares_memory(Values([piece[:4], piece[4:]])[5:8], piece)


@pytest.mark.parametrize("position", [-1, 3])
def test_a_position_beyond_the_ends_is_an_error(position: int) -> None:
    with pytest.raises(IndexError, match=f"from 0 to 2, got {position}"):
        Values([np.zeros(3, np.int32)])[np.array([position])]
