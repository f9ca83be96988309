"""Grids that vary settings of training, such as the number of training examples."""

from typing import Any

import pytest
from plan_fixture import small

from xlgrid.plan.grid import cells, runs
from xlgrid.plan.plan import Plan
from xlgrid.products.train import Run
from xlgrid.study.checks import problems
from xlgrid.study.schema import Study

GRID: dict[str, Any] = {"method": ["full-ft"], "source": ["en"], "target": ["mono"], "seed": [1]}


def varied(**vary: list[Any]) -> Study:
    return small(**GRID, vary=vary)


def test_a_grid_has_variants_instead_of_its_methods() -> None:
    study = varied(examples=[10, "all"], epochs=[1, 2])
    assert {cell.method for cell in cells(study)} == {
        f"full-ft@epochs={epochs}@examples={examples}" for examples in (10, "all") for epochs in (1, 2)
    }
    assert {run.method for run in runs(study)} == {cell.method for cell in cells(study)}
    assert not problems(study)


def test_numbers_without_a_point_are_numbers() -> None:
    """YAML takes 1e-5 as text."""
    study = varied(lr=["1e-5", 2e-5])
    assert not problems(study)
    assert {study.recipe(*run[1:]).training.lr for run in runs(study)} == {1e-5, 2e-5}


def test_the_recipe_of_a_variant_has_its_settings() -> None:
    recipe = varied(examples=[10]).recipe("ner", "mini", "full-ft@examples=10", "en", 1)
    assert recipe.training.model_dump()["examples"] == 10
    assert recipe.first is None


def test_shots_train_on_the_target_after_the_run_on_the_source() -> None:
    study = varied(shots=[0, 5])
    assert {(cell.source, cell.target) for cell in cells(study)} == {("en@en", "en"), ("en@fr", "fr"), ("en@de", "de")}
    planned = runs(study)
    of_source = Run("small", "ner", "mini", "full-ft", "en", 1)
    assert planned[0] == of_source and planned.count(of_source) == 1
    assert len(planned) == 1 + 2 * 3
    plan = Plan(study)
    run = next(run for run in planned if run.source == "en@fr" and run.method == "full-ft@shots=5")
    assert run.first(study) == [of_source]
    assert run.inputs(plan)["first"] == [of_source.delta]
    assert {split: [tokens.language for tokens in run.tokens(plan, split)] for split in ("train", "dev")} == {
        "train": ["fr"],
        "dev": ["en"],
    }
    recipe = study.recipe(*run[1:])
    assert (recipe.first, recipe.train_parts, recipe.dev_parts) == ("ner", ("fr",), ("en",))
    assert not problems(study)


@pytest.mark.parametrize(
    ("vary", "problem"),
    [
        ({"exampels": [1]}, "exampels"),
        ({"examples": [0]}, "examples"),
        ({"examples": [5, 5]}, "5 is there twice"),
        ({"checkpoint_seconds": [1, 2]}, "changes no result"),
        ({"lr": ["fast"]}, "lr"),
    ],
)
def test_impossible_variants_are_refused(vary: dict[str, list[Any]], problem: str) -> None:
    [message] = [text for text in problems(varied(**vary)) if text.startswith("grids.g.vary")]
    assert problem in message


def test_a_balanced_sample_of_words_is_refused() -> None:
    study = varied(examples=[10])
    balanced = Study.model_validate(
        study.model_dump(exclude={"methods", "tasks"})
        | {
            "methods": {"full-ft": {}, "bitfit": {}},
            "tasks": {"ner": {"kind": "wikiann"}},
            "training": [{"set": {"balanced": "label"}}],
        }
    )
    [message] = {text for run in runs(balanced) for text in run.mistakes(Plan(balanced))}
    assert message.startswith("training.0.set") and "head token cannot be balanced" in message


def test_shots_of_all_runs_are_refused() -> None:
    study = small(**GRID)
    study = study.model_copy(update={"training": []})
    stated = Study.model_validate(
        {
            "title": "s",
            "languages": ["en"],
            "encoders": {"mini": {"scratch": {"languages": ["en"]}}},
            "tasks": {"ner": {"kind": "ruletaker"}},
            "methods": {"full-ft": {}},
            "training": [{"set": {"shots": 5}}],
            "grids": {"g": {**GRID, "task": ["ner"], "encoder": ["mini"]}},
        }
    )
    [message] = problems(stated)
    assert message.startswith("training.0.set.shots") and "vary: {shots: [5]}" in message


def test_a_method_that_follows_targets_has_no_shots() -> None:
    stated = Study.model_validate(
        {
            "title": "s",
            "languages": ["en", "fr"],
            "encoders": {"mini": {"scratch": {"languages": ["en"]}}},
            "tasks": {"ner": {"kind": "ruletaker"}, "mlm": {"kind": "mlm"}},
            "methods": {
                "text": {"base": "full-ft"},
                "both": {"base": "bitfit", "start": {"task": "mlm", "method": "text"}},
            },
            "grids": {"g": {**GRID, "task": ["ner"], "encoder": ["mini"], "method": ["both"], "vary": {"shots": [5]}}},
        }
    )
    assert any("cells of method both" in text for text in problems(stated))
