"""The cells and runs that follow from a study."""

import pytest
from plan_fixture import EARLY, begun, small

from xlgrid.exhibits import Curve, Table
from xlgrid.plan.grid import cells, runs
from xlgrid.products.evaluate import Cell
from xlgrid.products.train import Run


def test_groups_expand_to_languages_and_pairs() -> None:
    targets = list(dict.fromkeys(cell.target for cell in cells(small())))
    assert targets == ["en", "fr", "de", "en-fr", "en-de", "fr-en", "de-en"]


def test_the_grid_is_the_product_of_its_axes() -> None:
    assert len(cells(small())) == 2 * 2 * 7 * 2
    assert len(runs(small())) == 2 * 2 * 2


def test_a_cell_made_twice_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"cells/ner/mini/full-ft/en/fr/seed1.json is made twice"):
        cells(small(target=["fr", "mono"]))


def named(planned: list[Run]) -> list[tuple[str, str, str]]:
    return [(run.task, run.method, run.source) for run in planned]


def test_a_method_that_begins_with_the_target_has_a_run_for_each() -> None:
    planned = [(cell.source, cell.target) for cell in cells(begun()) if cell.method == "mlm-trg"]
    assert planned == [("en@en", "en"), ("en@fr", "fr")]
    assert {cell.source for cell in cells(begun()) if cell.method != "mlm-trg"} == {"en"}


def test_a_cell_is_shown_by_what_stands_before_the_at() -> None:
    cell = Cell("s", "t", "e", "m", "en@fr", "fr@10", 1)
    assert cell.shown == Cell("s", "t", "e", "m", "en", "fr", 1)


def test_runs_come_after_all_that_they_begin_with() -> None:
    study = begun()
    order = runs(study)
    assert len(set(order)) == len(order)
    for run in order:
        assert all(order.index(start) < order.index(run) for start in run.starting_runs(study)), run
    assert set(named(order)) == {
        ("mlm", "mlm", "en"),
        ("mlm", "mlm", "fr"),
        *((task, method, "en") for task in ("siqa", "copa") for method in ("mlm-src", "both")),
        *((task, "mlm-trg", source) for task in ("siqa", "copa") for source in ("en@en", "en@fr")),
    }


def test_a_second_stage_begins_with_text_and_then_with_the_first_of_the_same_seed() -> None:
    study = begun()
    run = Run("begun", "copa", "mini", "mlm-trg", "en@fr", 7)
    assert named(run.starting_runs(study)) == [("mlm", "mlm", "fr"), ("siqa", "mlm-trg", "en@fr")]
    assert [start.seed for start in run.starting_runs(study)] == [1, 7]
    assert study.recipe(*run[1:]).first == "siqa"
    assert named(run._replace(task="siqa").starting_runs(study)) == [("mlm", "mlm", "fr")]


def test_a_cell_rests_on_the_texts_of_its_source_and_target_and_the_run_on_the_rest() -> None:
    cell = Cell("begun", "copa", "mini", "both", "en", "fr", 1)
    assert named(cell.starting_runs(begun())) == [("mlm", "mlm", "en"), ("mlm", "mlm", "fr")]


def test_settings_for_a_source_are_for_its_runs_for_each_target_too() -> None:
    recipe = begun().recipe("copa", "mini", "mlm-trg", "en@fr", 1)
    assert (recipe.source, recipe.training.lr) == ("en@fr", 1.0)


def test_another_language_leaves_every_recipe_as_it_was() -> None:
    study = begun()
    more = study.model_copy(update={"languages": ["en", "fr", "de", "it"]})
    assert all(study.recipe(*run[1:]) == more.recipe(*run[1:]) for run in runs(study))


def test_checkpoints_are_targets_of_the_same_runs() -> None:
    planned = cells(begun(early=EARLY))
    early = [cell for cell in planned if "@" in cell.target]
    assert [cell.target for cell in early] == ["en@10", "en@20", "fr@10", "fr@20"]
    assert {cell.run for cell in early} == {Run("begun", "siqa", "mini", "both", "en", 1)}
    texts, own = [("mlm", "mlm", "en"), ("mlm", "mlm", "fr")], [("siqa", "both", "en")]
    assert named(runs(begun(early=EARLY), early)) == texts + own, "as many as without checkpoints"


def test_only_a_curve_over_checkpoints_shows_them() -> None:
    study = begun(early=EARLY, late=EARLY | {"checkpoints": []})
    planned, facts = cells(study), study.facts
    chosen = {"task": "siqa", "source": "en", "target": "fr"}
    curve = Curve(title="c", x="checkpoint", lines="method", select=chosen)  # type: ignore[arg-type]
    assert [cell.target for cell in curve.cells(planned, facts)] == ["fr@10", "fr@20"]
    table = Table(title="t", rows=("method",), columns=("target",), select=chosen)  # type: ignore[arg-type]
    assert [cell.target for cell in table.cells(planned, facts)] == ["fr"]


def test_a_table_of_a_source_shows_its_runs_for_each_target() -> None:
    table = Table(title="t", rows=("method",), columns=("target",), select={"source": "en", "method": "mlm-trg"})  # type: ignore[arg-type, dict-item]
    assert [cell.source for cell in table.cells(cells(begun()), begun().facts)] == ["en@en", "en@fr"]
