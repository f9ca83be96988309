"""Which examples each optimiser step takes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows_fixture import rows_of
from schedule_fixture import taken
from tokens_fixture import ids, rows, write

from xlgrid.data import batches
from xlgrid.training import schedule
from xlgrid.training.recipe import Training


@given(st.lists(st.integers(1, 60), min_size=1, max_size=80), st.integers(1, 200), st.integers(0, 5))
def test_an_epoch_has_every_example_once_within_the_budget(sizes: list[int], budget: int, number: int) -> None:
    lengths = np.array(sizes)
    epoch = schedule.epoch(lengths, np.arange(len(sizes)), Training(batch_tokens=budget), 1, number)
    assert sorted(np.concatenate(epoch).tolist()) == list(range(len(sizes)))
    assert all(len(b) == 1 or lengths[b].max() * len(b) <= budget for b in epoch)


def test_little_is_padding() -> None:
    lengths = np.random.default_rng(1).integers(10, 200, 5000)
    epoch = schedule.epoch(lengths, np.arange(5000), Training(batch_tokens=4096), 1, 0)
    assert sum(lengths[b].max() * len(b) for b in epoch) < 1.05 * lengths.sum()


def test_epochs_and_seeds_differ_and_repeat() -> None:
    lengths = np.arange(1, 100)

    def order(seed: int, number: int) -> list[int]:
        return np.concatenate(schedule.epoch(lengths, np.arange(99), Training(batch_tokens=128), seed, number)).tolist()

    assert order(1, 0) == order(1, 0)
    assert len({tuple(order(*at)) for at in [(1, 0), (1, 1), (2, 0)]}) == 3


def test_a_batch_has_as_many_examples_as_asked_for(tmp_path: Path) -> None:
    tokens = batches.read(write(tmp_path / "t.arrow", rows(30)))
    assert sorted(map(len, taken(tokens, epochs=1, batch_size=8))) == [6, 8, 8, 8]


@pytest.mark.parametrize("head", ["sequence", "mlm"])
def test_parts_of_a_mix_share_batches_unless_the_recipe_says_no(tmp_path: Path, head: str) -> None:
    files = [write(tmp_path / f"{n}.arrow", rows(30, 1 + 100 * n), head) for n in range(2)]
    mixed = batches.mix([batches.read(path) for path in files], 65)
    source = np.array([(row[0] - 1) // 100 for row in ids(mixed)])
    for together in (True, False):
        steps = taken(mixed, epochs=1, batch_size=4, mixed_batches=together)
        assert sorted(np.concatenate(steps).tolist()) == list(range(len(mixed)))
        assert any(len(set(source[batch])) > 1 for batch in steps) is together


def test_an_epoch_of_a_whole_mix_has_each_row_of_each_part_once(tmp_path: Path) -> None:
    sizes = [3, 17, 9]
    files = [write(tmp_path / f"{n}.arrow", rows(size, 1 + 100 * n)) for n, size in enumerate(sizes)]
    mixed = batches.mix([batches.read(path) for path in files], 65, "whole")
    steps = taken(mixed, epochs=2, batch_size=4)
    assert len(steps) == 2 * 8, "29 rows in batches of 4, twice"
    for epoch in (steps[:8], steps[8:]):
        read = sorted(ids(mixed)[row] for row in np.concatenate(epoch))
        assert read == sorted(row for n, size in enumerate(sizes) for row in rows(size, 1 + 100 * n))
    assert all(np.array_equal(*pair) for pair in zip(steps, taken(mixed, epochs=2, batch_size=4), strict=True))


def test_languages_of_a_mix_are_drawn_equally_where_its_rows_are_in_turns(tmp_path: Path) -> None:
    """With alpha, half of each pool's 160 rows are from each of two languages of equal size."""
    files = [write(tmp_path / f"{n}.arrow", rows(30, 1 + 100 * n)) for n in range(2)]
    mixed = batches.mix([batches.read(path) for path in files], 65)
    assert mixed.parts is not None and (np.diff(mixed.parts) < 0).any(), "one part comes after the other"
    steps = taken(mixed, steps=2 * schedule.POOL, batch_size=5, alpha=0.5)
    for first in (0, schedule.POOL):
        assert np.bincount(mixed.parts[np.concatenate(steps[first : first + schedule.POOL])]).tolist() == [80, 80]


@given(
    st.integers(1, 3000),
    st.integers(1, 64),
    st.floats(0.5, 5),
)
def test_steps_are_those_of_the_plan(n: int, batch: int, epochs: float) -> None:
    training = Training(epochs=epochs, batch_size=batch)
    tokens = rows_of("sequence", {"label": np.zeros(n, int)})
    assert schedule.training_length(training, n, 1, {})[0] == schedule.plan(tokens, training, seed=1).steps


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"steps": 50, "epochs": 9, "batch_size": 4}, (50, 200)),
        ({"steps": 50, "batch_tokens": 1000}, (50, 500)),
        ({"epochs": 2, "batch_tokens": 1000}, (20, 200)),
        ({"epochs": 1, "batch_size": 30}, (4, 100)),
    ],
)
def test_length_of_a_training_of_100_examples_of_100_tokens(options: dict[str, Any], expected: tuple[int, int]) -> None:
    """Steps and examples."""
    assert schedule.training_length(Training(**options), 100, 100, {}) == expected
