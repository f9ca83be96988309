"""The identity of a recipe leaves out what cannot change a result."""

import hashlib
import json

import pytest
from pydantic import ValidationError

from xlgrid.architectures.plain import Plain
from xlgrid.training.new_head import LmHead
from xlgrid.training.recipe import NAMES, PACE, Recipe, Start

AXES = {
    "study": "s",
    "task": "t",
    "kind": "lot",
    "encoder": "e",
    "method": "m",
    "base": "bitfit",
    "source": "en",
    "seed": 1,
}


def recipe(**training: object) -> Recipe:
    return Recipe.model_validate({**AXES, "training": training})


@pytest.mark.parametrize("pace", [{"checkpoint_seconds": 5}, {"micro_batch_tokens": 64}])
def test_settings_that_change_no_result_are_no_part_of_the_digest(pace: dict[str, object]) -> None:
    assert recipe(lr=1e-3, **pace).digest() == recipe(lr=1e-3).digest()
    assert recipe(lr=1e-3, **pace).identity() == recipe(lr=1e-3).identity()


@pytest.mark.parametrize(
    "other",
    [
        {"lr": 2e-3},
        {"batch_tokens": 64},
        {"keep": "last"},
        {"keep": "average"},
        {"averaged": 3},
        {"label_smoothing": 0.1},
        {"mix_seed": 1},
        {"betas": [0.9, 0.98]},
        {"epsilon": 1e-6},
    ],
)
def test_every_other_setting_is(other: dict[str, object]) -> None:
    assert recipe(**({"lr": 1e-3} | other)).digest() != recipe(lr=1e-3).digest()
    assert recipe(**({"lr": 1e-3} | other)).identity() != recipe(lr=1e-3).identity()


def test_defaults_that_are_written_leave_the_digest_as_it_is() -> None:
    written = {"betas": [0.9, 0.999], "epsilon": 1e-8, "label_smoothing": 0, "averaged": 5}
    assert recipe(**written).digest() == recipe().digest()
    assert recipe(**written).identity() == recipe().identity()


def of_scratch(**more: object) -> Recipe:
    return Recipe.model_validate({**AXES, "training": {}, "scratch": {"kind": "xlmr", "languages": ["en"], **more}})


@pytest.mark.parametrize(
    "other",
    [
        {"objective": "mlm+tlm"},
        {"masked": {"mono": 0.2}},
        {"objective": "mlm+tlm", "adjacent": "next"},
        {"begin": "xlmr"},
    ],
)
def test_every_setting_of_an_encoder_is_part_of_the_digest(other: dict[str, object]) -> None:
    fewer = {key: value for key, value in other.items() if key != list(other)[-1]}
    assert of_scratch(**other).digest() != of_scratch(**fewer).digest()
    assert of_scratch(**other).identity() != of_scratch(**fewer).identity()


CHANGES = {
    **{axis: "other" for axis in AXES if axis not in ("source", "seed")},
    "options": {"bert_head": "biases"},
    "source": "fr",
    "seed": 2,
    "training": {"lr": 1.0},
    "start": {"task": "mlm", "method": "m"},
    "first": "siqa",
    "scratch": {"languages": ["en"]},
    "lm_head": {"languages": ["en"]},
    "mix": "whole",
    "metric": "macro-f1",
    "derived": {"by": "average"},
    "together": ("m/en/1", "m/en/2"),
    "sweep": {"set": {"lr": [1.0, 2.0]}, "seeds": [1]},
}


@pytest.mark.parametrize("field", Recipe.model_fields)
def test_every_field_but_names_is_part_of_the_digest(field: str) -> None:
    changed = Recipe.model_validate({**AXES, "training": {}, field: CHANGES[field]})
    assert (changed.digest() != recipe().digest()) is (field not in NAMES)
    assert changed.identity() != recipe().identity()


@pytest.mark.parametrize(
    ("field", "value", "renamed"),
    [
        ("start", {"task": "mlm", "method": "m"}, {"task": "text", "method": "adapters"}),
        ("first", "siqa", "social-iqa"),
        ("together", ("m/en/1", "m/en/2"), ("bias/en/1", "bias/en/2")),
    ],
)
def test_names_in_a_field_are_no_part_of_the_digest(field: str, value: object, renamed: object) -> None:
    before, after = (Recipe.model_validate({**AXES, "training": {}, field: each}) for each in (value, renamed))
    assert before.digest() == after.digest()


@pytest.mark.parametrize("training", [{"keep": "last"}, {"keep": "average"}, {"evaluations": 1}])
def test_a_main_metric_that_chooses_no_checkpoint_is_no_part_of_the_digest(training: dict[str, object]) -> None:
    named = recipe(**training).model_copy(update={"metric": "macro-f1"})
    assert named.digest() == recipe(**training).digest()
    assert named.identity() == recipe(**training).identity()
    assert Recipe.parse(named.identity(), named.pace()) == named, "the curve of the run is in this metric"


def test_the_digest_of_a_trained_run_has_no_part_for_what_only_derived_runs_have() -> None:
    absent = dict.fromkeys(("derived", "sweep", "together", "metric", *NAMES), True)
    contents = recipe().model_dump(mode="json", exclude={"training": PACE, **absent}) | {"first": False}
    assert recipe().digest() == hashlib.sha256(json.dumps(contents).encode()).hexdigest()[:12]


def test_a_recipe_comes_back_from_both_parts() -> None:
    whole = recipe(lr=1e-3, checkpoint_seconds=5, micro_batch_tokens=64)
    assert Recipe.parse(whole.identity(), whole.pace()) == whole
    named = whole.model_copy(update={"metric": "macro-f1"})
    assert Recipe.parse(named.identity(), named.pace()) == named
    assert Recipe.parse(recipe().identity()) == recipe()


def test_a_seed_is_one_that_all_libraries_take() -> None:
    for settings, fields in (
        (Start, {"task": "mlm", "method": "m"}),
        (Plain, {"languages": ["en"]}),
        (LmHead, {"languages": ["en"]}),
    ):
        assert settings.model_validate({**fields, "seed": 2**32 - 1})
        with pytest.raises(ValidationError, match="less than 4294967296"):
            settings.model_validate({**fields, "seed": 10**22})


def test_an_average_takes_no_more_weights_than_there_are_evaluations() -> None:
    assert recipe(keep="average", averaged=10).training.conflict is None
    key, message = recipe(keep="average", averaged=11).training.conflict
    assert (
        key == "keep"
        and "the last 11 evaluations, but there are 10: raise `evaluations`, or lower `averaged`" in message
    )
