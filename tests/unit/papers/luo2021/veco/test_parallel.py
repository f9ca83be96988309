"""Grids of a method that reads each example in a second language."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from study_fixture import TEXT, write

from xlgrid.plan.load import load_study


def keys() -> dict[str, Any]:
    study: dict[str, Any] = yaml.safe_load(TEXT.partition("exhibits:")[0])
    study["encoders"]["mini"]["scratch"] = {"kind": "xlmr", "architecture": "veco", "languages": ["en", "fr"]}
    study["methods"] = {"plug-in": {"options": {"parallel": "en"}}}
    study["training"] = []
    study["grids"]["main"] |= {"method": ["plug-in"], "source": ["fr"], "target": ["mono"]}
    return study


def test_sources_and_targets_are_languages_whose_parallel_examples_have_data(tmp_path: Path) -> None:
    load_study(write(tmp_path, yaml.safe_dump(keys())))


@pytest.mark.parametrize(
    ("place", "change", "message"),
    [
        (("methods", "plug-in"), {"options": {"parallel": "sw"}}, r"options\.parallel: unknown language"),
        (
            ("encoders", "mini"),
            {"scratch": {"languages": ["en"]}},
            r"encoder mini: the method needs cross-attention, which the encoder lacks",
        ),
        (("grids", "main"), {"target": ["fr", "en-fr"]}, r"again in en, got the pair en-fr: leave it out"),
        (("tasks", "rt"), {"kind": "siqa", "options": {}}, r"sequences, tokens or spans, and rt is of kind siqa"),
        (
            ("tasks", "rt"),
            {"kind": "xnli", "options": {}, "data": {"local": "x", "languages": ["fr"]}},
            r"finds no parallel examples: rt has no train data in en",
        ),
        (("methods", "plug-in"), {"options": {"parallel": "qa1"}}, r"rt cannot be generated in qa1: name another"),
    ],
)
def test_a_grid_that_does_not_fit_is_named(
    tmp_path: Path, place: tuple[str, str], change: dict[str, Any], message: str
) -> None:
    study = keys()
    study["languages"] = ["en", "fr", "qa1"]
    study["grids"]["main"] |= {"target": ["fr"]}
    section, name = place
    study[section][name] |= change
    with pytest.raises(ValueError, match=message):
        load_study(write(tmp_path, yaml.safe_dump(study)))


def with_translations(**changes: Any) -> dict[str, Any]:
    """The test set of `rt` has translations in a task of their own."""
    study = keys()
    study["languages"] = ["en", "fr", "de"]
    study["grids"]["main"] |= {"source": ["en"], "target": ["en", "fr"]}
    data = {"local": "{language}-{split}.jsonl"}
    study["tasks"]["rt"] = {"kind": "xnli", "data": data, "parallel": "translated"}
    study["tasks"]["translated"] = {
        "kind": "xnli",
        "data": {"local": "t/{language}.jsonl", "languages": ["fr", "de"]},
    } | changes
    return study


def test_the_test_set_of_a_task_may_have_its_translations_elsewhere(tmp_path: Path) -> None:
    load_study(write(tmp_path, yaml.safe_dump(with_translations())))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"data": {"local": "t/{language}.jsonl", "languages": ["de"]}},
            r"no parallel examples: translated has no test data in fr",
        ),
        (
            {"kind": "ruletaker", "data": None},
            r"tasks\.rt\.parallel: unknown task of kind xnli with data 'translated'",
        ),
    ],
)
def test_translations_that_do_not_fit_are_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_study(write(tmp_path, yaml.safe_dump(with_translations(**changes))))
