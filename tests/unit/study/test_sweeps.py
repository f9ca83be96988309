"""Sweeps of a study: what they plan, what they cost, and their mistakes."""

import re
from pathlib import Path
from typing import Any

import pytest

from xlgrid.plan.estimate import Estimate
from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.products.choice import Choice
from xlgrid.products.evaluate import Cell
from xlgrid.products.train import Run

TEXT = """\
title: Sweeps
languages: [en, fr, de]
encoders:
  mini: {scratch: {languages: [en, fr, de]}}
tasks: {rt: {kind: ruletaker, options: {n: 100}}, mlm: {kind: mlm}}
methods:
  full-ft: {}
  bitfit: {}
  text: {base: full-ft, start: {task: mlm, method: full-ft}}
training:
  - {set: {epochs: 2, lr: 1.0e-3}}
  - {when: {source: fr}, set: {warmup: 0.2}}
sweep:
  - {when: {method: bitfit}, set: {lr: [1.0e-4, 1.0e-3], epochs: [5, 10]}, seeds: [11]}
grids:
  all: {task: [rt], encoder: [mini], method: [full-ft, bitfit], source: [en, fr], target: [mono], seed: [1, 2]}
"""
VARIANTS = [f"bitfit@epochs={epochs}@lr={lr}" for lr in ("0.0001", "0.001") for epochs in (5, 10)]


def planned(folder: Path, text: str = TEXT) -> Plan:
    (folder / "s.yaml").write_text(text)
    return load_plan(folder / "s.yaml")


def with_sweep(*entries: str) -> str:
    first, _, rest = TEXT.partition("sweep:\n")
    return first + "sweep:\n" + "".join(f"  - {entry}\n" for entry in entries) + rest[rest.index("grids:") :]


def runs_of(plan: Plan, method: str, source: str = "en") -> set[int]:
    return {run.seed for run in plan.runs if (run.method, run.source) == (method, source)}


def test_each_combination_has_a_run_for_each_seed_of_selection(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    assert {run.method for run in plan.runs} == {"full-ft", "bitfit", *VARIANTS}
    assert all(runs_of(plan, name, source) == {11} for name in VARIANTS for source in ("en", "fr"))
    assert runs_of(plan, "bitfit") == runs_of(plan, "full-ft") == {1, 2}
    assert {cell.method for cell in plan.cells} == {"full-ft", "bitfit"}


def test_without_seeds_of_selection_they_are_those_of_all_grids_of_the_run(tmp_path: Path) -> None:
    more = "  more: {task: [rt], encoder: [mini], method: [bitfit], source: [en], target: [en-fr], seed: [3]}\n"
    plan = planned(tmp_path, with_sweep("{when: {method: bitfit}, set: {lr: [1.0e-4, 1.0e-3]}}") + more)
    assert runs_of(plan, "bitfit@lr=0.001", "en") == {1, 2, 3}
    assert runs_of(plan, "bitfit@lr=0.001", "fr") == {1, 2}


def test_with_cells_of_all_the_variants_are_evaluated_with_the_seeds_of_selection(tmp_path: Path) -> None:
    plan = planned(tmp_path, TEXT.replace("seeds: [11]}", "seeds: [11, 12], cells: all}"))
    cells = {(cell.source, cell.target, cell.seed) for cell in plan.cells if cell.method == VARIANTS[0]}
    assert cells == {
        (source, target, seed) for source in ("en", "fr") for target in ("en", "fr", "de") for seed in (11, 12)
    }


def test_a_variant_differs_from_its_method_in_nothing_but_its_settings(tmp_path: Path) -> None:
    study = planned(tmp_path).study
    own, other = (study.recipe("rt", "mini", method, "fr", 11) for method in (VARIANTS[1], "bitfit"))
    assert own.training == other.training.model_copy(update={"lr": 1e-4, "epochs": 10.0})
    assert own.training.warmup == 0.2 and own.sweep is None
    assert other.sweep and (other.sweep.set, other.sweep.seeds) == ({"lr": (1e-4, 1e-3), "epochs": (5, 10)}, (11,))


def test_a_further_value_changes_no_run_of_the_others(tmp_path: Path) -> None:
    """The choice, and what follows from it, are made again."""
    before, after = planned(tmp_path), planned(tmp_path, TEXT.replace("1.0e-3], epochs", "1.0e-3, 3.0e-3], epochs"))
    for method in ("full-ft", *VARIANTS):
        for run in (run for run in before.runs if run.method == method):
            assert run in after.runs
            assert run.settings(before.study) == run.settings(after.study)
            assert run.inputs(before) == run.inputs(after)
    own = Run("s", "rt", "mini", "bitfit", "en", 1)
    assert own.settings(before.study) != own.settings(after.study)


def test_the_order_of_settings_changes_no_variant(tmp_path: Path) -> None:
    swapped = TEXT.replace("lr: [1.0e-4, 1.0e-3], epochs: [5, 10]", "epochs: [10, 5.0], lr: [1.0e-3, 1.0e-4]")
    assert set(planned(tmp_path).runs) == set(planned(tmp_path, swapped).runs)


def test_a_run_with_a_seed_of_selection_needs_the_runs_of_which_it_is_one(tmp_path: Path) -> None:
    plan = planned(tmp_path, TEXT.replace("seeds: [11]", "seeds: [2, 11]"))
    choice = "results/s/choices/rt/mini/bitfit/en.json"
    one, two = (Run("s", "rt", "mini", "bitfit", "en", seed).inputs(plan) for seed in (1, 2))
    assert (one["choice"], one["taken"]) == ([choice], [])
    assert (two["choice"], two["taken"]) == (
        [choice],
        [f"results/s/runs/rt/mini/{name}/en/seed2/delta.safetensors" for name in VARIANTS],
    )
    assert not Run("s", "rt", "mini", VARIANTS[0], "en", 2).inputs(plan)["choice"]
    made = Choice("s", "rt", "mini", "bitfit", "en")
    assert made.inputs(plan)["runs"] == [
        f"results/s/runs/rt/mini/{name}/en/seed{seed}/run.json" for name in VARIANTS for seed in (2, 11)
    ]
    makers = Run.makers(plan.study)
    assert "runs/rt/mini/bitfit/en/seed1" not in makers["take_winner"]
    assert "runs/rt/mini/bitfit/en/seed2" in makers["take_winner"]


def test_a_choice_comes_back_from_its_path_and_another_is_refused(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    for choice in plan.choices:
        assert Choice.parse(choice.path) == choice and choice.problem(plan) is None
    assert len(plan.choices) == 2
    problem = Choice("s", "rt", "mini", "full-ft", "en").problem(plan)
    assert problem == "no entry of `sweep` is for such runs"


def test_runs_begin_with_the_winner_of_an_earlier_task(tmp_path: Path) -> None:
    text = TEXT.replace("tasks: {rt: {", "tasks: {first: {kind: ruletaker}, rt: {start: first, ")
    plan = planned(tmp_path, text)
    for method in ("bitfit", VARIANTS[0]):
        [first] = Run("s", "rt", "mini", method, "en", 11).first(plan.study)
        assert first.method == "bitfit"
    assert {run.seed for run in plan.runs if (run.task, run.method) == ("first", "bitfit")} == {1, 2, 11}


def test_a_run_for_each_target_has_a_choice_for_each(tmp_path: Path) -> None:
    text = TEXT.replace("method: full-ft}}", "method: full-ft, at: target}}").replace(
        "method: [full-ft, bitfit]", "method: [text]"
    )
    plan = planned(tmp_path, text.replace("when: {method: bitfit}", "when: {method: text}"))
    assert {choice.source for choice in plan.choices} == {f"{s}@{t}" for s in ("en", "fr") for t in ("en", "fr", "de")}


def test_a_study_that_extends_it_has_its_choices_and_runs(tmp_path: Path) -> None:
    planned(tmp_path)
    (tmp_path / "own.yaml").write_text("extends: s\ntitle: More\ngrids: {all: {target: [en, fr]}}\n")
    plan = load_plan(tmp_path / "own.yaml")
    assert {run.study for run in plan.runs} == {"s"}
    assert {plan.owned(choice).study for choice in plan.choices} == {"s"}
    (tmp_path / "own.yaml").write_text("extends: s\ntitle: More\ntraining: [{set: {epochs: 2, lr: 1.0e-3, clip: 2}}]\n")
    plan = load_plan(tmp_path / "own.yaml")
    assert {plan.owned(choice).study for choice in plan.choices} == {"own"}


def test_variants_cost_a_training_each_and_a_run_that_is_taken_none(tmp_path: Path) -> None:
    plan = planned(tmp_path, TEXT.replace("seeds: [11]", "seeds: [2, 11]"))
    of: Any = {run[3:]: Estimate(plan).of(run) for run in plan.runs}
    longest, shortest = of["bitfit@epochs=10@lr=0.001", "en", 2], of["bitfit@epochs=5@lr=0.001", "en", 2]
    assert longest.steps == 2 * shortest.steps > 0
    assert of["bitfit", "en", 1] == of["bitfit@epochs=10@lr=0.0001", "en", 11], "it may have any of the settings"
    assert (of["bitfit", "en", 2].runs, of["bitfit", "en", 2].steps, of["bitfit", "en", 2].hours) == (0, 0, 0.0)
    assert Estimate(plan).stages()["other runs"].runs == 2 * (2 + 1 + 4 * 2)


@pytest.mark.parametrize(
    ("entry", "place", "message"),
    [
        ("{set: {learning_rate: [1, 2]}}", "sweep.0.set", "unknown key 'learning_rate'"),
        (
            "{set: {lr: [1.0e-3]}}",
            "sweep.0.set",
            "lr: must have at least 2 items",
        ),
        ("{set: {lr: []}}", "sweep.0.set", "lr: must have at least 2 items"),
        ("{set: {}}", "sweep.0.set", "at least 1"),
        ("{set: {epochs: [5, 5.0]}}", "sweep.0.set", "epochs: 5 is there twice: leave it out once"),
        ("{set: {lr: [1.0e-3, -1]}}", "sweep.0.set", "lr: must be greater than 0"),
        ("{set: {keep: [best, lst]}}", "sweep.0.set", "'lst'"),
        (
            "{set: {checkpoint_seconds: [5, 6]}}",
            "sweep.0.set",
            "checkpoint_seconds: the setting changes no result",
        ),
        ("{set: {dev_targets: [en, fr]}}", "sweep.0.set", "dev_targets: must be a list"),
        ("{set: {mix_seed: [1, 2]}}", "sweep.0.set", "mix_seed: a seed is not chosen by its score"),
        ("{set: {lr: [1.0e-3, 1.0e-2]}, seeds: [1, 1]}", "sweep.0.seeds", "a seed is there twice among 1, 1"),
        ("{when: {method: bitfitt}, set: {lr: [1, 2]}}", "sweep.0.when.method", "did you mean 'bitfit'?"),
        ("{when: {method: text}, set: {lr: [1, 2]}}", "sweep.0.when", "no grid has runs that match"),
        ("{when: {source: de}, set: {lr: [1, 2]}}", "sweep.0.when", "no grid has runs that match"),
        (
            "{when: {task: mlm}, set: {lr: [1, 2]}}",
            "sweep.0.when",
            "no grid has runs that match, except MLM runs, which are not swept",
        ),
        (
            "{set: {lr: [1, 2]}, choose_on: target}",
            "sweep.0.choose_on",
            "`training` sets no `dev_targets` for runs of full-ft",
        ),
    ],
)
def test_a_mistake_is_found_before_anything_runs(entry: str, place: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError) as error:
        planned(tmp_path, with_sweep(entry))
    assert message in str(error.value)
    assert f": {place}" in str(error.value)


def test_two_sweeps_for_a_run_are_refused(tmp_path: Path) -> None:
    both = with_sweep("{when: {source: en}, set: {lr: [1, 2]}}", "{when: {base: bitfit}, set: {epochs: [1, 2]}}")
    with pytest.raises(
        ValueError, match=r"s.yaml:\d+: sweep.1.when: `sweep.0` is for runs of bitfit for rt on en with mini, too"
    ):
        planned(tmp_path, both)
    apart = with_sweep("{when: {source: en}, set: {lr: [1, 2]}}", "{when: {source: fr}, set: {epochs: [1, 2]}}")
    plan = planned(tmp_path, apart)
    assert {run.method for run in plan.runs if run.source == "fr"} == {
        *("full-ft", "full-ft@epochs=1", "full-ft@epochs=2"),
        *("bitfit", "bitfit@epochs=1", "bitfit@epochs=2"),
    }


def test_a_setting_over_which_another_wins_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"sweep.0.set.epochs: `steps`, which `training` sets for .* wins over `epochs`"
    ):
        planned(tmp_path, TEXT.replace("set: {epochs: 2", "set: {steps: 20"))


def test_targets_are_chosen_on_only_where_the_study_asks(tmp_path: Path) -> None:
    text = TEXT.replace("epochs: 2,", "dev_targets: [fr], epochs: 2,")
    with pytest.raises(
        ValueError, match=r"sweep.0.choose_on: `training` sets `dev_targets` for .* not that of the source"
    ):
        planned(tmp_path, text)
    plan = planned(tmp_path, text.replace("seeds: [11]", "choose_on: target"))
    oracles = {run.method for run in plan.runs if plan.study.is_oracle(run)}
    assert oracles == {"bitfit"}


def test_a_run_that_begins_with_an_oracle_is_one(tmp_path: Path) -> None:
    text = TEXT.replace("mlm: {kind: mlm}", "later: {kind: ruletaker, start: rt}, mlm: {kind: mlm}")
    text = text.replace("epochs: 2,", "dev_targets: [fr], epochs: 2,").replace("task: [rt]", "task: [rt, later]")
    plan = planned(
        tmp_path,
        text.replace("{method: bitfit}", "{method: bitfit, task: rt}").replace("seeds: [11]", "choose_on: target"),
    )
    oracles = {(run.task, run.method) for run in plan.runs if plan.study.is_oracle(run)}
    assert oracles == {("rt", "bitfit"), ("later", "bitfit")}


def test_an_encoder_has_no_fact_with_the_name_of_a_swept_setting(tmp_path: Path) -> None:
    text = TEXT.replace("de]}}", "de]}, facts: {lr: 3}}", 1)
    with pytest.raises(ValueError, match=r"encoders.mini.facts.lr: `sweep` tries values of a setting of this name"):
        planned(tmp_path, text)


def test_a_setting_that_a_sweep_makes_contradictory_names_the_sweep(tmp_path: Path) -> None:
    text = with_sweep("{when: {method: bitfit}, set: {keep: [best, average], evaluations: [2, 3]}}")
    with pytest.raises(ValueError, match=r"sweep.0.set: in results/s/runs/rt/mini/bitfit@evaluations=2@keep=average"):
        planned(tmp_path, text)


def test_the_cells_of_a_variant_are_those_of_the_grid(tmp_path: Path) -> None:
    plan = planned(tmp_path, TEXT.replace("seeds: [11]}", "cells: all}"))
    cell = Cell("s", "rt", "mini", VARIANTS[0], "en", "fr", 2)
    assert cell in plan.cells and cell.problem(plan) is None
    wrong = Cell("s", "rt", "mini", "bitfit@epochs=7@lr=0.001", "en", "fr", 2)
    assert "unknown method" in str(wrong.problem(plan))


def page_study(at: int) -> str:
    page = Path("docs/how-to/sweep.md").read_text()
    return re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[at]


def test_the_study_of_the_page_is_planned(tmp_path: Path) -> None:
    plan = planned(tmp_path, page_study(0))
    assert {(run.method, run.seed) for run in plan.runs if "@" in run.method and run.source == "qa1"} == {
        *((f"full-ft@lr={lr}", seed) for lr in ("0.0003", "0.001", "0.003") for seed in (1, 2, 3)),
        *((f"bitfit@lr={lr}@steps={steps}", 11) for lr in ("0.01", "0.03") for steps in (150, 300)),
    }
    surface = plan.study.exhibit("surface").cells(plan.cells, plan.study.facts)
    assert {(cell.method, cell.target) for cell in surface} == {
        (f"bitfit@lr={lr}@steps={steps}", "qb1") for lr in ("0.01", "0.03") for steps in (150, 300)
    }


def test_the_oracle_of_the_page_is_planned(tmp_path: Path) -> None:
    plan = planned(tmp_path, f"extends: first\ntitle: Oracle\n{page_study(1)}")
    assert {run.method for run in plan.runs if plan.study.is_oracle(run)} == {"bitfit"}


def test_variants_of_a_grid_have_sweeps_of_their_own(tmp_path: Path) -> None:
    """With 10 examples, another learning rate may win than with 100."""
    text = TEXT.replace("seed: [1, 2]}", "seed: [1, 2], vary: {examples: [10, 100]}}").replace(", epochs: [5, 10]", "")
    plan = planned(tmp_path, text)
    assert {choice.method for choice in plan.choices} == {"bitfit@examples=10", "bitfit@examples=100"}
    variants = {f"bitfit@examples={n}@lr={lr}" for n in (10, 100) for lr in ("0.0001", "0.001")}
    assert {run.method for run in plan.runs if run.seed == 11} == variants
    own = plan.study.recipe("rt", "mini", "bitfit@examples=10@lr=0.001", "en", 11).training
    assert (own.lr, own.used(500)) == (1e-3, 10)
    assert plan.study.recipe("rt", "mini", "bitfit@examples=10", "en", 1).training.used(500) == 10


def test_a_run_for_one_target_begins_with_the_winner_on_its_source(tmp_path: Path) -> None:
    text = TEXT.replace("seed: [1, 2]}", "seed: [1], vary: {shots: [5]}}").replace(", epochs: [5, 10]", "")
    plan = planned(tmp_path, text)
    [first] = Run("s", "rt", "mini", "bitfit@lr=0.001@shots=5", "en@fr", 11).first(plan.study)
    assert (first.method, first.source, first.seed) == ("bitfit", "en", 11)
    assert plan.study.choice(first) in plan.choices
    shots = {choice.source for choice in plan.choices if choice.method == "bitfit@shots=5"}
    assert shots == {f"{source}@{target}" for source in ("en", "fr") for target in ("en", "fr", "de")}


def test_a_setting_of_runs_for_one_target_is_not_swept(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"sweep.0.set.shots: only the variants of a grid are for one target each"):
        planned(tmp_path, with_sweep("{set: {shots: [1, 2]}}"))


def test_variants_train_again_for_another_main_metric(tmp_path: Path) -> None:
    """Their dev scores choose, whatever weights they keep."""
    text = TEXT.replace("epochs: 2,", "epochs: 2, keep: last,")
    other = text.replace("kind: ruletaker,", "kind: ruletaker, metric: macro-f1,")
    (before, after) = (planned(tmp_path, each).study for each in (text, other))
    for method, is_same in (("full-ft", True), (VARIANTS[0], False)):
        run = Run("s", "rt", "mini", method, "en", 11)
        assert (run.settings(before) == run.settings(after)) == is_same
