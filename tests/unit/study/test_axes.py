"""The names and values that a study has."""

from pathlib import Path

from study_fixture import QA, write

from xlgrid.plan.load import load_study


def test_an_axis_has_each_value_of_the_grids_once(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, QA))
    values = study.order
    assert {axis: len(set(known)) for axis, known in values.items()} == {
        axis: len(known) for axis, known in values.items()
    }
    assert set(map(str, values["task"])) <= set(study.defined_names["task"])


def test_the_tasks_that_others_begin_with_count(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, QA))
    first, second = [*study.tasks][:2]
    begins = study.tasks[second].model_copy(update={"start": first})
    chained = study.model_copy(update={"tasks": {**study.tasks, second: begins}})
    assert chained.with_first([second]) == [second, first]
