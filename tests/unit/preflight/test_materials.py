"""What a study takes from outside: files of one's own, and repositories on the Hub."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from shipped import STUDIES

from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.preflight.files import by_hand_lines
from xlgrid.preflight.materials import Material, Repository, downloads_of, materials, needed_products
from xlgrid.products.data import Data
from xlgrid.products.encode import Encoder, Vocabulary

ROOT = Path(__file__).parents[3]


def naming_files() -> list[str]:
    """The studies that have a key, or extend a study that has one, with which a study names files of its own."""
    texts = {path.stem: re.sub("#.*", "", path.read_text()) for path in STUDIES.values()}
    named = {name for name, text in texts.items() if re.search(r"\b(local|path|files): ", text)}
    return sorted(name for name, text in texts.items() if {name, *re.findall("(?m)^extends: (.*)", text)} & named)


def taken(plan: Plan) -> dict[str, Material]:
    return {str(material.named.path): material for material in materials(plan, needed_products(plan))}


def test_the_files_of_each_split_and_the_repository_of_the_encoder_are_named(plan_of: Callable[..., Plan]) -> None:
    by_path = taken(plan_of())
    files = {material.files for material in by_path.values() if isinstance(material.named, Data)}
    assert files == {("data/en/train.jsonl",), ("data/en/dev.jsonl",), ("data/en/test.jsonl",), ("data/de/test.jsonl",)}
    repositories = {type(each.named): each.repository for each in by_path.values() if each.repository}
    expected = Repository("model", "some/encoder", "main")
    assert repositories == {Vocabulary: expected, Encoder: expected}


def test_data_on_the_hub_have_a_repository_and_no_files(plan_of: Callable[..., Plan]) -> None:
    task = {"kind": "wikiann", "data": {"hub": "some/data", "name": "{language}", "revision": "v2"}}
    plan = plan_of(tasks={"topic": task})
    data = [material for material in taken(plan).values() if isinstance(material.named, Data)]
    assert {material.repository for material in data} == {Repository("dataset", "some/data", "v2")}
    assert {material.files for material in data} == {()}


def test_what_is_generated_is_not_taken_from_outside(plan_of: Callable[..., Plan]) -> None:
    scratch = {"kind": "xlmr", "languages": ["qa1", "qa2"], "hidden": 16, "layers": 1, "intermediate": 16}
    plan = plan_of(
        languages=["qa1", "qa2"],
        encoders={"e": {"scratch": scratch}},
        tasks={"topic": {"kind": "wikiann", "max_length": 64}},
        grids={
            "all": {
                "task": ["topic"],
                "encoder": ["e"],
                "method": ["full-ft"],
                "source": ["qa1"],
                "target": ["mono"],
                "seed": [1],
            }
        },
    )
    assert taken(plan) == {}


@pytest.mark.slow
@pytest.mark.parametrize("study", naming_files())
def test_each_file_of_a_study_is_made_downloaded_or_named_with_its_address(
    study: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a project without files of one's own, so that nobody learns of a missing one from a job."""
    monkeypatch.chdir(tmp_path)
    plan = load_plan(STUDIES[study])
    outside = materials(plan, needed_products(plan))
    downloads = downloads_of(plan, outside)
    others = {file for material in outside for file in material.files} - {*downloads}
    # A study may take the data of one of its tasks as the files of another.
    assert [file for file in others if not Data.parse(file)] == []
    assert [found.problem for found in downloads.values() if found.problem] == []
    for line in by_hand_lines(plan, outside):
        assert re.search(r"https?://\S+\.\S+", line.text), f"{line.thing} has no address"
