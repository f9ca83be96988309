"""The file of a group has the files of its runs, and a run is taken from it only by its own recipe."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from together_fixture import recipe

from xlgrid.models import deltas
from xlgrid.training.loop import Loop
from xlgrid.training.recipe import Recipe
from xlgrid.training.together.archive import take, train_group
from xlgrid.training.together.group import Files

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def made(
    tmp_path_factory: pytest.TempPathFactory, encoders: dict[str, Path], tokens: Callable[[str, str], Path]
) -> tuple[Path, list[Recipe]]:
    """The file of a group of three runs, of which the second fails, and the recipes."""
    folder = tmp_path_factory.mktemp("made")
    recipes = [recipe("bitfit", steps=6, **run) for run in ({"seed": 1}, {"seed": 2, "lr": 1e30}, {"seed": 3})]
    files = Files([tokens("sequence", "en")], [tokens("sequence", "en")])
    train_group(recipes, encoders["bert"], [files] * 3, folder / "seed1.tar")
    return folder / "seed1.tar", recipes


def test_the_files_of_a_run_are_those_of_a_training(
    made: tuple[Path, list[Recipe]], encoders: dict[str, Path], tokens: Callable[[str, str], Path], tmp_path: Path
) -> None:
    group, recipes = made
    take(group, recipes[2], tmp_path / "taken")
    assert sorted(path.name for path in (tmp_path / "taken").iterdir()) == ["curve.jsonl", deltas.DELTA, "run.json"]
    record = json.loads((tmp_path / "taken" / "run.json").read_text())
    assert (record["recipe"]["seed"], record["digest"]) == (3, recipes[2].digest())
    assert record["at_once"] == 3 and record["together"] == [*recipes[2].together]
    path = tokens("sequence", "en")
    alone = Loop(recipes[2], encoders["bert"], [path], [path], tmp_path / "alone")
    assert deltas.read_delta(tmp_path / "taken" / deltas.DELTA)[1].keys() == alone.trained().keys()


def test_a_run_that_failed_says_why_and_the_others_have_results(
    made: tuple[Path, list[Recipe]], tmp_path: Path
) -> None:
    group, recipes = made
    with pytest.raises(FloatingPointError, match=r"together with others.*lower `lr`"):
        take(group, recipes[1], tmp_path)
    assert not [*tmp_path.iterdir()]


def test_a_run_of_another_recipe_is_not_taken(made: tuple[Path, list[Recipe]], tmp_path: Path) -> None:
    group, recipes = made
    other = recipes[0].model_copy(update={"together": recipes[0].together[:2]})
    with pytest.raises(ValueError, match=r"of another recipe.*delete it"):
        take(group, other, tmp_path)
    with pytest.raises(ValueError, match=r"has no run m/en/7"):
        take(group, other.model_copy(update={"seed": 7}), tmp_path)


def test_nothing_is_left_beside_the_file(made: tuple[Path, list[Recipe]]) -> None:
    group, _ = made
    assert [path.name for path in group.parent.iterdir()] == ["seed1.tar"]


def test_a_group_of_which_all_runs_fail_has_no_file(
    encoders: dict[str, Path], tokens: Callable[[str, str], Path], tmp_path: Path
) -> None:
    recipes = [recipe("bitfit", steps=6, seed=seed, lr=1e30) for seed in (1, 2)]
    files = Files([tokens("sequence", "en")], [tokens("sequence", "en")])
    with pytest.raises(FloatingPointError, match="all 2 runs failed"):
        train_group(recipes, encoders["bert"], [files] * 2, tmp_path / "seed1.tar")
    assert not (tmp_path / "seed1.tar").exists()
