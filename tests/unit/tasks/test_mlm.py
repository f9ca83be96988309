"""The rows of a text that are for the dev set."""

import pytest

from xlgrid.tasks.mlm import is_for_dev, split_sizes


@pytest.mark.parametrize("dev_rows", [1, 2, 10])
def test_the_sizes_of_splits_count_the_rows_of_each(dev_rows: int) -> None:
    for rows in (0, 1, 49, 50, 51, 100, 101, 700):
        dev = sum(is_for_dev(row, dev_rows) for row in range(rows))
        assert split_sizes(rows, dev_rows) == (rows - dev, dev)
