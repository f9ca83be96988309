"""What a study says of an encoder from scratch, and the model before its first step."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from plugin_fixture import install
from pydantic import ValidationError
from scratch_fixture import recipe
from transformers import AutoConfig

from xlgrid.architectures import SHAPES, Architecture
from xlgrid.architectures.plain import Plain
from xlgrid.architectures.scratch import ALL_ARCHITECTURES, architecture_of
from xlgrid.data.published import HUB
from xlgrid.study.encoders import ScratchEncoder
from xlgrid.training.recipe import Recipe


@pytest.mark.parametrize(
    "entry",
    [{"kind": "bert"}, *({"architecture": name} for name in ALL_ARCHITECTURES.own)],
    ids=lambda entry: "-".join(entry.values()),
)
def test_the_type_is_that_of_the_configuration(entry: dict[str, str]) -> None:
    scratch = architecture_of({"kind": "xlmr", "languages": ["en"], **entry})
    assert scratch.configuration(77).model_type == scratch.model_type


@pytest.mark.parametrize("kind", ["bert", "xlmr"])
def test_the_configuration_has_the_sizes_of_the_study_and_room_for_the_longest_input(kind: str) -> None:
    sizes = {"hidden": 8, "layers": 3, "heads": 2, "intermediate": 12, "dropout": 0.1, "max_length": 40}
    scratch = architecture_of({"kind": kind, "languages": ("en",), **sizes})
    config = scratch.configuration(77)
    assert (config.vocab_size, config.hidden_size, config.num_hidden_layers, config.intermediate_size) == (77, 8, 3, 12)
    assert config.num_attention_heads == 2 and config.hidden_dropout_prob == config.attention_probs_dropout_prob == 0.1
    model = scratch.new_model(77).eval()
    ids = torch.full((1, 40), 7)
    assert model(input_ids=ids).logits.shape == (1, 40, 77)
    with pytest.raises((IndexError, RuntimeError)):
        model(input_ids=torch.full((1, 41), 7))


def test_a_shape_has_the_sizes_of_xlm_r_but_for_those_that_are_written() -> None:
    scratch = architecture_of({"kind": "xlmr", "languages": ("en",), "shape": "base", "layers": 2, "max_length": 512})
    config = scratch.configuration(250_002)
    published = AutoConfig.for_model(**HUB["FacebookAI/xlm-roberta-base"])
    sizes = (
        "hidden_size",
        "num_attention_heads",
        "intermediate_size",
        "hidden_dropout_prob",
        "max_position_embeddings",
    )
    assert {name: getattr(config, name) for name in sizes} == {name: getattr(published, name) for name in sizes}
    assert config.num_hidden_layers == 2
    assert architecture_of(json.loads(scratch.model_dump_json())) == scratch
    assert architecture_of(json.loads(scratch.model_dump_json(exclude_defaults=True))) == scratch


@pytest.mark.parametrize("written", [{}, {"dropout": 0.0}, {"hidden": 128, "layers": 4, "heads": 4}])
def test_a_recipe_keeps_the_sizes_of_a_shape_and_those_that_are_written(written: dict[str, Any]) -> None:
    scratch = architecture_of({"languages": ("en",), "shape": "base", **written})
    encoder_recipe = recipe(scratch, steps=1)
    assert Recipe.parse(encoder_recipe.identity(), encoder_recipe.pace()).scratch == scratch
    assert {name: getattr(scratch, name) for name in SHAPES["base"]} == SHAPES["base"] | written


def test_the_source_has_all_languages_and_pairs() -> None:
    assert Plain(languages=("en", "fr"), bitext=(("en", "fr"),)).source == "en+fr+en-fr"  # type: ignore[call-arg]


def test_the_settings_of_pre_training_are_those_of_the_study_over_the_usual_ones() -> None:
    entry = ScratchEncoder.model_validate({"scratch": {"languages": ["en"]}, "training": {"steps": 7, "tlm": 0.8}})
    training = entry.pretraining
    assert (training.steps, training.tlm, training.batch_size, training.keep, training.alpha) == (
        7,
        0.8,
        32,
        "last",
        0.7,
    )


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"scratch": {}}, "languages"),
        ({"scratch": {"languages": ["en"], "hidden": 10}}, r"hidden \(10\) must be a multiple of heads \(4\)"),
        (
            {"scratch": {"languages": ["en", "en"]}},
            "each language and each pair once, in one order; en is there already",
        ),
        ({"scratch": {"languages": ["en"], "bitext": [["en", "en"]]}}, "has two languages, got en-en"),
        (
            {"scratch": {"languages": ["en", "fr"], "bitext": [["en", "fr"], ["fr", "en"]]}},
            "once, in one order; fr-en is there already",
        ),
        (
            {"scratch": {"languages": ["en"]}, "training": {"steps": 10, "checkpoints": [20]}},
            "training: `checkpoints` has step 20",
        ),
    ],
)
def test_a_mistake_is_named(entry: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ScratchEncoder.model_validate(entry)


OF_A_PACKAGE = """
from typing import TYPE_CHECKING, Literal

from xlgrid.architectures import Architecture

if TYPE_CHECKING:
    from decimal import Decimal


class Mine(Architecture):
    architecture: Literal["mine"]
    later: "Later | None" = None


Later = int


class Nameless(Architecture):
    architecture: str


class Incomplete(Architecture):
    architecture: Literal["incomplete"]
    size: "Decimal"


NUMBER = 3
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package `my-architectures` 0.3 is installed."""
    points = {"mine": "Mine", "yours": "Mine", "nameless": "Nameless", "incomplete": "Incomplete", "number": "NUMBER"}
    group = {"xlgrid.architectures": {name: f"my_architectures:{value}" for name, value in points.items()}}
    monkeypatch.syspath_prepend(install(tmp_path, "my-architectures", "0.3", OF_A_PACKAGE, group))
    yield
    ALL_ARCHITECTURES.imported.clear()


@pytest.mark.usefixtures("package")
def test_a_study_may_name_the_architecture_of_a_package() -> None:
    described = architecture_of({"architecture": "mine", "languages": ["en"], "later": 3})
    assert described.model_dump(exclude_defaults=True) == {"architecture": "mine", "languages": ("en",), "later": 3}


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("name", ["yours", "nameless", "incomplete", "number"])
def test_what_describes_no_architecture_of_the_name_is_refused_with_its_package(name: str) -> None:
    message = rf"'{name}' of the package my-architectures 0\.3 .* is .*, expected a subclass .* `architecture: Literal"
    with pytest.raises(ValueError, match=message):
        architecture_of({"architecture": name, "languages": ["en"]})


PAIRS = {"languages": ["en", "fr"], "bitext": [["en", "fr"]]}


def test_pairs_are_read_from_a_task_of_their_own_if_it_is_named() -> None:
    scratch = architecture_of(PAIRS | {"bitext_task": "opus"})
    assert [scratch.task_of(part) for part in ("en", "fr", "en-fr")] == ["pretraining", "pretraining", "opus"]
    assert architecture_of(PAIRS).task_of("en-fr") == "pretraining"


class Electra(Architecture):
    """An encoder of a type whose models transformers finds by its Auto classes."""

    architecture: Literal["electra"]

    @property
    def model_type(self) -> str:
        return "electra"


def test_an_architecture_may_be_of_any_type_that_predicts_masked_tokens() -> None:
    scratch = Electra(architecture="electra", languages=("en",), hidden=8, layers=1, heads=2, intermediate=8)  # type: ignore[call-arg]
    model = scratch.new_model(20)
    assert model(input_ids=torch.full((1, 4), 7)).logits.shape == (1, 4, 20)
