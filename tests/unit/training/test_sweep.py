"""Choices among made-up runs, against means and winners by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from xlgrid.base.errors import Damaged
from xlgrid.methods.variants import variant
from xlgrid.training.sweep import Swept, choose, read_choice

NAN = float("nan")
SWEPT = Swept(set={"lr": (1e-5, 2e-5, 5e-5), "epochs": (5, 10)}, seeds=(1, 2))
# (lr, epochs) -> the dev scores of seeds 1 and 2.
SCORES = {
    (1e-5, 5): (70.0, 70.0),
    (1e-5, 10): (60.0, 79.0),
    (2e-5, 5): (71.0, 72.0),
    (2e-5, 10): (60.0, 60.0),
    (5e-5, 5): (90.0, 10.0),
    (5e-5, 10): (50.0, 51.0),
}


def run(swept: Swept, values: tuple[Any, ...], seed: int, score: float, metric: str = "f1") -> Path:
    """The run.json of a variant, as far as a choice reads it."""
    method = variant("bitfit", dict(zip(swept.set, values, strict=True)))
    training = {"dev_targets": ["sw"] if swept.choose_on == "target" else []}
    recipe = {"task": "ner", "encoder": "e", "method": method, "source": "en+fr", "seed": seed, "training": training}
    record = {"recipe": recipe, "digest": "d", "labels": [], "dev_score": score, "metric": metric, "seconds": 60.0}
    path = Path("runs", method, f"seed{seed}", "run.json")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(record))
    return path


def chosen(scores: dict[Any, tuple[float, ...]], swept: Swept = SWEPT, metric: str = "f1") -> dict[str, Any]:
    runs = [
        run(swept, values, seed, score, metric)
        for values, of_seeds in reversed(scores.items())
        for seed, score in zip(swept.seeds, of_seeds, strict=True)
    ]
    choose(swept, runs, Path("choice.json"))
    return read_choice(Path("choice.json"))


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_best_mean_over_the_seeds_wins_and_everything_that_was_tried_is_told() -> None:
    choice = chosen(SCORES)
    assert (choice["chosen"], choice["mean"]) == ({"lr": 2e-5, "epochs": 5}, 71.5)
    assert [(each["settings"], each["mean"]) for each in choice["tried"]] == [
        ({"lr": lr, "epochs": epochs}, sum(scores) / 2) for (lr, epochs), scores in SCORES.items()
    ]
    assert (choice["runs"], choice["seconds"], choice["ties"], choice["metric"]) == (12, 720.0, 0, "f1")
    assert (choice["choose_on"], choice["dev"], choice["seeds"]) == ("source", ["en", "fr"], [1, 2])
    assert choice["at_bounds"] == {"epochs": "smallest"}
    first = choice["tried"][0]["runs"][0]
    assert (first["seed"], first["dev_score"]) == (1, 70.0)
    assert json.loads(Path(first["run"], "run.json").read_text())["recipe"]["seed"] == 1


def test_of_equal_means_the_first_in_the_order_of_the_study_wins() -> None:
    choice = chosen(SCORES | {(5e-5, 10): (71.5, 71.5), (1e-5, 10): (73.0, 70.0)})
    assert choice["chosen"] == {"lr": 1e-5, "epochs": 10}
    assert choice["ties"] == 2


def test_a_mean_does_not_depend_on_the_order_of_seeds() -> None:
    """0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1 in the sums of Python."""
    swept = Swept(set={"lr": (1.0, 2.0)}, seeds=(1, 2, 3))
    assert chosen({(1.0,): (0.3, 0.2, 0.1), (2.0,): (0.1, 0.2, 0.3)}, swept)["ties"] == 1


def test_of_a_metric_whose_lower_values_are_better_the_lowest_mean_wins() -> None:
    assert chosen(SCORES, metric="perplexity")["chosen"] == {"lr": 5e-5, "epochs": 5}


def test_a_mean_that_is_not_a_number_never_wins() -> None:
    assert chosen({**SCORES, (1e-5, 5): (NAN, 99.0)})["chosen"] == {"lr": 2e-5, "epochs": 5}


def test_without_any_number_there_is_no_choice() -> None:
    with pytest.raises(ValueError, match="the f1 of all 6 settings on the dev set is not a number: try other settings"):
        chosen(dict.fromkeys(SCORES, (NAN, NAN)))
    assert not Path("choice.json").exists()


def test_only_numbers_have_bounds_and_the_middle_is_on_none() -> None:
    swept = Swept(set={"keep": ("last", "best"), "segments": (True, False), "lr": (5e-5, 1e-5, 2e-5)}, seeds=(1,))
    scores = {
        values: (float(values == ("best", False, 2e-5)),) for values in (tuple(each.values()) for each in swept.tried)
    }
    choice = chosen(scores, swept)
    assert (choice["chosen"]["segments"], choice["at_bounds"]) == (False, {})


def test_a_choice_on_targets_names_them() -> None:
    choice = chosen(SCORES, SWEPT.model_copy(update={"choose_on": "target"}))
    assert (choice["choose_on"], choice["dev"]) == ("target", ["sw"])


def test_a_run_that_has_not_finished_is_named() -> None:
    runs = [run(SWEPT, values, seed, 1.0) for values in SCORES for seed in (1, 2)]
    runs[3].unlink()
    with pytest.raises(FileNotFoundError, match=r"runs/bitfit@epochs=10@lr=1e-05/seed2/run.json does not exist"):
        choose(SWEPT, runs, Path("choice.json"))


def test_a_run_that_is_not_given_is_named() -> None:
    runs = [run(SWEPT, values, seed, 1.0) for values in SCORES for seed in (1, 2)]
    with pytest.raises(ValueError, match="there is no run of lr 1e-05, epochs 10 with seed 2"):
        choose(SWEPT, [*runs[:3], *runs[4:]], Path("choice.json"))


def test_a_damaged_choice_says_what_to_delete() -> None:
    Path("choice.json").write_text('{"chosen": {')
    with pytest.raises(Damaged, match=r"choice.json is damaged .*: delete it"):
        read_choice(Path("choice.json"))
