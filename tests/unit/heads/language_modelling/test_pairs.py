"""Which inputs are pairs: both segments of a row, both halves of it, or a row and its neighbour."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokens_fixture import write

from xlgrid.data import batches
from xlgrid.heads.language_modelling.pairs import pairs_of
from xlgrid.heads.tokens import Tokens


def read(path: Path, rows: list[tuple[list[int], int]], code: str) -> Tokens:
    ids, contexts = zip(*rows, strict=True)
    return batches.read(write(path / f"{code}.arrow", [*ids], "mlm", contexts=[*contexts]), code)


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    """English rows of one and of two segments; French rows; and bitext, as XLM-R separates it. 0 pads, 2 and 4 are special."""
    english = [([2, 10, 11, 12, 13, 4], 6), ([2, 14, 15, 16, 4], 5), ([2, 5, 6, 4, 4, 7, 8, 9, 4], 4)]
    french = [([2, 20, 4], 3)]
    bitext = [([2, 30, 31, 4, 4, 40, 41, 42, 4], 4), ([2, 32, 4, 4, 43, 4], 3)]
    parts = [read(tmp_path, rows, code) for rows, code in ((english, "en"), (french, "fr"), (bitext, "en-fr"))]
    return batches.mix(parts, 1)


def split(tokens: Tokens, rows: list[int], adjacent: Any = "halves") -> list[tuple[list[int], list[int]]]:
    pairs = pairs_of(tokens, np.array(rows), adjacent)
    inputs = [pairs.values[a:b].tolist() for a, b in zip(pairs.offsets[:-1], pairs.offsets[1:], strict=True)]
    return [*zip(inputs[: len(rows)], inputs[len(rows) :], strict=True)]


def test_a_pair_is_both_segments_or_both_halves_each_with_special_tokens(tokens: Tokens) -> None:
    assert split(tokens, [0, 1, 2, 3, 4, 5]) == [
        ([2, 10, 11, 4], [2, 12, 13, 4]),
        ([2, 14, 15, 4], [2, 16, 4]),
        ([2, 5, 6, 4], [2, 7, 8, 9, 4]),
        ([2, 20, 4], [2, 4]),
        ([2, 30, 31, 4], [2, 40, 41, 42, 4]),
        ([2, 32, 4], [2, 43, 4]),
    ]


def test_the_neighbour_of_a_row_is_a_row_of_its_language(tokens: Tokens) -> None:
    first, second = [2, 10, 11, 12, 13, 4], [2, 14, 15, 16, 4]
    # The last row is the y of the one before it.
    assert split(tokens, [0, 1, 3], "next") == [(first, second), (first, second), ([2, 20, 4], [2, 4])]
    assert split(tokens, [2, 4], "next") == split(tokens, [2, 4])
