"""Trainings on a sample of the examples."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from schedule_fixture import taken
from tokens_fixture import rows, write

from xlgrid.data import batches
from xlgrid.heads import HEADS
from xlgrid.heads.tokens import Tokens
from xlgrid.training import samples, schedule
from xlgrid.training.recipe import Training


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Tokens:
    return batches.read(write(tmp_path_factory.mktemp("tokens") / "t.arrow", rows(60)))


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Tokens:
    folder = tmp_path_factory.mktemp("mixed")
    files = [write(folder / f"{n}.arrow", rows(size, 1 + 100 * n), "sequence") for n, size in enumerate((30, 50))]
    return batches.mix([batches.read(path) for path in files], 65, "whole")


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 99), st.booleans())
def test_samples_of_a_seed_are_nested(tokens: Tokens, some: int, others: int, seed: int, balanced: bool) -> None:
    fewer, more = sorted((some, others))
    small, large = (set(samples.sample(tokens, n, seed, balanced).tolist()) for n in (fewer, more))
    assert small <= large
    assert (len(small), len(large)) == (fewer, more)


def test_samples_differ_by_seed(tokens: Tokens) -> None:
    assert len({tuple(samples.sample(tokens, 20, seed, False)) for seed in range(5)}) == 5


@given(st.integers(1, 60), st.integers(0, 99))
def test_a_balanced_sample_has_each_label_as_often_as_there_are_examples(tokens: Tokens, size: int, seed: int) -> None:
    labels = tokens.columns["label"]
    drawn = Counter(labels[samples.sample(tokens, size, seed, True)].tolist())
    there = Counter(labels.tolist())
    # Water-filling: labels with enough examples differ by at most one, and no label with fewer has examples left.
    least = max(drawn.values())
    assert all(drawn[label] >= min(there[label], least - 1) for label in there)


def test_each_part_of_a_mix_has_the_number(mixed: Tokens) -> None:
    assert mixed.parts is not None
    assert Counter(mixed.parts[samples.sample(mixed, 7, 1, False)].tolist()) == {0: 7, 1: 7}


def test_windows_of_an_example_stay_together(tokens: Tokens) -> None:
    example_of = np.arange(60) // 3
    windows = Tokens(**{**vars(tokens), "columns": {**tokens.columns, "example": example_of}})
    chosen = samples.sample(windows, 4, 1, False)
    assert Counter(example_of[chosen].tolist()) == {example: 3 for example in set(example_of[chosen].tolist())}
    assert len(chosen) == 12


@pytest.mark.parametrize("setting", ["examples", "shots"])
def test_a_training_uses_the_sample_alone(tokens: Tokens, setting: str) -> None:
    drawn = np.concatenate(taken(tokens, epochs=2, batch_size=4, **{setting: 8}))
    assert Counter(drawn.tolist()) == dict.fromkeys(samples.sample(tokens, 8, 1, False).tolist(), 2)


def test_steps_decide_the_length_of_a_training_on_a_sample(tokens: Tokens) -> None:
    assert len(taken(tokens, steps=30, batch_size=4, examples=4)) == 30


def test_all_examples_are_no_sample(tokens: Tokens) -> None:
    whole, everything = (taken(tokens, epochs=1, batch_size=8, **more) for more in ({}, {"examples": "all"}))
    assert [batch.tolist() for batch in whole] == [batch.tolist() for batch in everything]


@pytest.mark.parametrize("length", [{"epochs": 3}, {"steps": 20}])
def test_no_examples_are_no_steps(tokens: Tokens, length: dict[str, int]) -> None:
    settings = Training.model_validate({**length, "shots": 0})
    assert schedule.plan(tokens, settings, 1).steps == 0
    assert schedule.training_length(settings, 60, 10, {}) == (0, 0)


def test_an_estimate_counts_the_sample(tokens: Tokens) -> None:
    settings = Training.model_validate({"epochs": 2, "batch_size": 4, "examples": 8})
    estimated = schedule.training_length(settings, settings.used(60), 10, {})
    assert estimated == (len(taken(tokens, epochs=2, batch_size=4, examples=8)), 16)


def test_a_sample_that_is_larger_than_the_data_is_an_error(tokens: Tokens) -> None:
    with pytest.raises(ValueError, match=r"61 training examples .* there are 60"):
        schedule.plan(tokens, Training.model_validate({"examples": 61}), 1)


@pytest.mark.parametrize(
    "settings", [{"examples": 0}, {"examples": -1}, {"shots": -1}, {"shots": "some"}, {"balanced": "x"}]
)
def test_impossible_values_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Training.model_validate(settings)


@pytest.mark.parametrize(
    "settings", [{"alpha": 0.5, "steps": 3, "examples": 4}, {"balanced": "label"}, {"examples": 4, "shots": 4}]
)
def test_settings_that_exclude_a_sample_are_a_conflict(settings: dict[str, object]) -> None:
    assert Training.model_validate(settings).conflict


def test_a_balanced_sample_needs_an_example_with_one_label() -> None:
    (balanced,) = Training.model_validate({"balanced": "label"}).added.values()
    suits = {name for name, head in HEADS.items() if not balanced.misfit(head)}
    assert {"sequence", "choice"} <= suits
    assert not {"token", "span", "mlm"} & suits
