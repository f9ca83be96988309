"""Settings of training that an installed package adds."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plugin_fixture import install
from pydantic import ValidationError
from tokens_fixture import rows, write

from xlgrid.data import batches
from xlgrid.training import schedule
from xlgrid.training.loop import Loop
from xlgrid.training.recipe import ALL_SETTINGS, Recipe, Training
from xlgrid.training.results import packages
from xlgrid.training.setting import Setting

NAMES = {"study": "s", "task": "t", "kind": "ruletaker", "encoder": "e", "method": "m", "source": "en", "seed": 1}
CODE = """
from pydantic import RootModel

from xlgrid.base.settings import Strict
from xlgrid.training.setting import Plan, Setting


class First(Setting, Strict):
    about = "some examples that come first"
    rows: int
    steps: int

    def conflict(self, training):
        return "`first` takes more than `steps`" if training.steps and self.steps > training.steps else None

    def plan(self, planned, tokens, training, seed):
        return Plan([*[list(range(self.rows))], *planned.pools], [self.steps, *planned.ends])

    def passes(self, examples, options):
        return [(1, self.rows)]


class Zero(Setting, RootModel[bool]):
    about = "whether the classifier begins at zero"

    def begin(self, model, encoder):
        model.classifier.weight.data.zero_()
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    points = {"first": "my_setting:First", "zero": "my_setting:Zero", "wrong": "xlgrid.training.recipe:Training"}
    monkeypatch.syspath_prepend(install(tmp_path / "installed", "my-setting", "0.2", CODE, {"xlgrid.training": points}))
    yield
    ALL_SETTINGS.imported.clear()


def recipe(**training: Any) -> Recipe:
    return Recipe.model_validate({**NAMES, "base": "full-ft", "training": {"steps": 4, **training}})


def test_a_setting_stands_beside_those_of_xlgrid() -> None:
    whole = recipe(first={"rows": 3, "steps": 2})
    assert isinstance(whole.training.added["first"], Setting) and not recipe(first=None).training.added
    assert whole.identity().endswith('"training":{"steps":4,"first":{"rows":3,"steps":2}}}')
    assert Recipe.parse(whole.identity()) == whole and whole.digest() != recipe().digest()


def test_a_setting_decides_which_examples_come_first(tmp_path: Path) -> None:
    tokens = batches.read(write(tmp_path / "t.arrow", rows(30)))
    training = Training.model_validate({"steps": 6, "batch_size": 3, "first": {"rows": 3, "steps": 2}})
    steps = [sorted(step) for step in schedule.stream(tokens, training, 1, schedule.plan(tokens, training, 1))]
    assert steps[:2] == [[0, 1, 2]] * 2 and len(steps) == 6 and len(set(np.concatenate(steps[2:]))) == 12
    epochs = Training.model_validate({"epochs": 1, "batch_size": 3, "first": {"rows": 3, "steps": 2}})
    assert schedule.training_length(epochs, 30, 5, {}) == (10 + 1, 30 + 3)


def test_a_setting_changes_the_first_weights(encoder: Path, tmp_path: Path) -> None:
    tokens = write(tmp_path / "t.arrow", rows(30))
    for settings, is_zero in (({"zero": True}, True), ({}, False)):
        loop = Loop(recipe(**settings), encoder, [tokens], [tokens], tmp_path / "run")
        assert bool((loop.model.classifier.weight == 0).all()) is is_zero


def test_a_record_names_the_package_of_a_setting() -> None:
    assert packages(recipe(zero=True), "sequence") == {"packages": {"my-setting": "0.2"}}
    assert packages(recipe(), "sequence") == {}


@pytest.mark.parametrize(
    ("training", "message"),
    [
        ({"frist": {}}, "unknown key 'frist', did you mean 'first'"),
        ({"first": {"rows": 3}}, r"first\.steps\n  Field required"),
        ({"wrong": {}}, "the setting of training 'wrong' of the package my-setting 0.2 .*expected a subclass of"),
    ],
)
def test_a_mistake_is_named(training: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Training.model_validate(training)


def test_a_setting_states_its_conflict() -> None:
    assert recipe(first={"rows": 1, "steps": 9}).training.conflict == ("first", "`first` takes more than `steps`")
