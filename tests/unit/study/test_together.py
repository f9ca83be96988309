"""The groups of runs that train together: which runs they have, what of the plan changes, and mistakes."""

from pathlib import Path

import pytest

from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.products.train import Run

TEXT = """\
title: Groups
languages: [en, fr, de]
encoders:
  mini: {scratch: {kind: bert, languages: [en, fr, de]}}
tasks: {rt: {kind: ruletaker, options: {n: 100}}}
methods: {full-ft: {}, bitfit: {}}
training:
  - {set: {epochs: 2, lr: 1.0e-3}}
  - {when: {method: bitfit}, set: {together: 4}}
grids:
  all: {task: [rt], encoder: [mini], method: [full-ft, bitfit], source: [en, fr], target: [mono], seed: [1, 2, 3]}
"""


def planned(folder: Path, *changes: tuple[str, str]) -> Plan:
    text = TEXT
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    (folder / "s.yaml").write_text(text)
    return load_plan(folder / "s.yaml")


def groups(plan: Plan) -> list[list[str]]:
    return [
        [f"{run.encoder}/{run.method}/{run.source}/{run.seed}" for run in group.runs(plan.study)]
        for group in plan.run_groups
    ]


def digests(plan: Plan) -> dict[Run, str]:
    return {run: plan.study.recipe(*run[1:]).digest() for run in plan.runs}


def test_a_group_has_the_runs_of_a_method_by_their_seeds(tmp_path: Path) -> None:
    assert groups(planned(tmp_path)) == [
        ["mini/bitfit/en/1", "mini/bitfit/fr/1", "mini/bitfit/en/2", "mini/bitfit/fr/2"],
        ["mini/bitfit/en/3", "mini/bitfit/fr/3"],
    ]


def test_runs_of_different_encoders_methods_and_lengths_are_in_different_groups(tmp_path: Path) -> None:
    plan = planned(
        tmp_path,
        ("encoder: [mini]", "encoder: [mini, large]"),
        ("tasks:", "  large: {scratch: {kind: bert, languages: [en, fr, de]}}\ntasks:"),
        ("[full-ft, bitfit], source", "[bitfit, adapters], source"),
        ("bitfit: {}}", "bitfit: {}, adapters: {base: madx, options: {language: false, invertible: false}}}"),
        ("method: bitfit}", "method: [bitfit, adapters]}"),
        ("grids:", "  - {when: {source: fr}, set: {epochs: 3}}\ngrids:"),
    )
    assert len(groups(plan)) == 8
    assert all(len({name.rpartition("/")[0] for name in group}) == 1 for group in groups(plan))


def test_runs_of_different_rates_are_in_one_group(tmp_path: Path) -> None:
    plan = planned(tmp_path, ("grids:", "  - {when: {source: fr}, set: {lr: 1.0e-2}}\ngrids:"))
    assert [len(group) for group in groups(plan)] == [4, 2]


def test_a_new_seed_leaves_groups_that_are_full_as_they_are(tmp_path: Path) -> None:
    fewer, more = planned(tmp_path), planned(tmp_path, ("seed: [1, 2, 3]", "seed: [1, 2, 3, 4]"))
    assert groups(more)[0] == groups(fewer)[0]
    before, after = digests(fewer), digests(more)
    changed = {run.seed for run in before if after[run] != before[run]}
    assert changed == {3}


def test_a_run_without_others_trains_alone(tmp_path: Path) -> None:
    plan = planned(tmp_path, ("seed: [1, 2, 3]", "seed: [1]"), ("source: [en, fr]", "source: [en]"))
    assert groups(plan) == []
    [run] = [run for run in plan.runs if run.method == "bitfit"]
    assert not run.inputs(plan)["together"]


def test_runs_of_other_methods_are_as_in_a_study_without_groups(tmp_path: Path) -> None:
    together, alone = planned(tmp_path), planned(tmp_path, (", set: {together: 4}", ", set: {}"))
    ours, theirs = digests(together), digests(alone)
    assert {run.method for run in ours if ours[run] != theirs[run]} == {"bitfit"}
    assert all(run.inputs(together) == run.inputs(alone) for run in ours if run.method == "full-ft")


def test_a_run_has_the_file_of_its_group_and_the_inputs_of_its_training(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    run = Run("s", "rt", "mini", "bitfit", "fr", 2)
    inputs = run.inputs(plan)
    assert inputs.pop("together") == ["results/s/together/rt/mini/bitfit/en/seed1.tar"]
    assert inputs == run.inputs_alone(plan)
    group = plan.run_groups[0]
    assert {*inputs["train"]} < {*group.inputs(plan)["train"]}
    assert group.settings(plan.study)["recipes"] == [
        plan.study.recipe(*each[1:]).identity() for each in group.runs(plan.study)
    ]


def test_the_runs_of_variants_of_a_rate_train_together(tmp_path: Path) -> None:
    plan = planned(
        tmp_path,
        ("grids:", "sweep:\n  - {when: {method: bitfit}, set: {lr: [1.0e-3, 1.0e-2]}, seeds: [5]}\ngrids:"),
        ("source: [en, fr]", "source: [en]"),
    )
    assert groups(plan) == [["mini/bitfit@lr=0.001/en/5", "mini/bitfit@lr=0.01/en/5"]]


def test_a_grid_with_vary_has_no_group_with_runs_that_it_lacks(tmp_path: Path) -> None:
    plan = planned(
        tmp_path, ("seed: [1, 2, 3]", "seed: [1], vary: {lr: [1.0e-3, 1.0e-2]}"), ("full-ft, bitfit]", "bitfit]")
    )
    names = {f"mini/{run.method}/{run.source}/{run.seed}" for run in plan.runs}
    assert {name for group in groups(plan) for name in group} == names and len(names) == 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            [("method: bitfit", "method: full-ft")],
            ["training.1.set", "cannot train `together`", "not small", "`when`"],
        ),
        ([("kind: bert", "architecture: xmod")], ["encoders of type xmod do not compute several runs at once", "bert"]),
        ([("together: 4", "together: 4, checkpoints: [3]")], ["checkpoints", "leave out one"]),
        ([("together: 4", "together: 1")], ["together", "greater than or equal to 2"]),
    ],
    ids=lambda value: "" if isinstance(value, list) else None,
)
def test_a_mistake_is_named(changes: list[tuple[str, str]], words: list[str], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r".+") as error:
        planned(tmp_path, *changes)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_all_runs_have_the_same_names_of_inputs(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    names = {tuple(run.inputs(plan)) for run in plan.runs}
    assert len(names) == 1
    assert {len(run.inputs(plan)["together"]) for run in plan.runs} == {0, 1}
