"""The segments of a batch."""

import numpy as np

from xlgrid.base.arrays import Segments


def test_segments_are_switched_where_their_languages_differ() -> None:
    language_of = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.int16)
    segments = Segments(np.full(4, 3), ("en", "fr"), language_of, 8)
    assert segments.switched.tolist() == [False, True, True, False]
