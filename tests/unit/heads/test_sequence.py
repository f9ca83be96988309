"""The head `sequence`: batches of one or two segments, and the labels of data."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokens_fixture import collate, write

from xlgrid.data import batches
from xlgrid.heads import HEADS
from xlgrid.tasks import TASKS

HEAD = HEADS["sequence"]


def test_collate_pads_and_marks_segments(tmp_path: Path) -> None:
    tokens = batches.read(write(tmp_path / "t.arrow", [[5, 5], [7, 7, 7, 7]]))
    batch = {name: tensor.tolist() for name, tensor in collate(tokens, np.arange(2), True).items()}
    assert batch == {
        "input_ids": [[5, 5, 0, 0], [7, 7, 7, 7]],
        "attention_mask": [[1, 1, 0, 0], [1, 1, 1, 1]],
        "token_type_ids": [[0, 1, 0, 0], [0, 0, 1, 1]],
        "labels": [1, 1],
    }


def test_only_data_of_two_segments_have_pairs() -> None:
    assert HEAD.second(TASKS["xnli"]) == "hypothesis"
    assert HEAD.second(TASKS["wikiann"]) is None


@pytest.mark.parametrize("head", ["sequence", "choice"])
@given(labels=st.lists(st.integers(0, 2), min_size=1, max_size=30))
@settings(max_examples=30)
def test_chance_is_the_best_accuracy_of_one_label_for_all(head: str, labels: list[int]) -> None:
    with TemporaryDirectory() as folder:
        tokens = batches.read(write(Path(folder, "t.arrow"), [[5, 5]] * len(labels), labels=labels))
        tokens = replace(tokens, label_names=("a", "b", "c"))
        best = max(100 * np.mean([label == guess for label in labels]) for guess in range(3))
        assert HEADS[head].chance(tokens)["accuracy"] == pytest.approx(best)
