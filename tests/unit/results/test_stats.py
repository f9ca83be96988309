"""Guarded means against numbers worked out by hand, and against a slow, plain re-computation."""

import itertools
import math
from collections.abc import Sequence

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xlgrid.results import stats

NAN = float("nan")


def cells(scores: dict[tuple[str, int], float], **identity: str) -> pd.DataFrame:
    """Cells from (target, seed) -> score; everything else as in `identity` or the same for all."""
    fixed = {"task": "xnli", "encoder": "mini", "method": "full-ft", "source": "en", "metric": "accuracy"} | identity
    return pd.DataFrame([{**fixed, "target": t, "seed": seed, "score": score} for (t, seed), score in scores.items()])


FULL = {("fr", 0): 10.0, ("de", 0): 20.0, ("fr", 1): 30.0, ("de", 1): 50.0}


def test_a_mean_goes_over_targets_then_over_seeds() -> None:
    entry = stats.entries(cells(FULL), ["source"], "method").iloc[0]
    assert (entry["mean"], entry["min"], entry["max"]) == (27.5, 15, 40)
    assert entry["sd"] == pytest.approx(25 / math.sqrt(2)), "standard deviation of 15 and 40 with ddof=1"
    assert list(entry[["n_seeds", "n_seeds_expected", "n_cells", "n_cells_expected"]]) == [2, 2, 4, 4]


def test_a_seed_with_a_missing_cell_does_not_enter() -> None:
    entry = stats.entries(cells(FULL | {("de", 1): NAN}), ["source"], "method").iloc[0]
    assert entry["mean"] == 15, "seed 1 has no result for de, so only seed 0 counts"
    assert math.isnan(entry["sd"]), "one seed has no deviation"
    assert list(entry[["n_seeds", "n_seeds_expected", "n_cells", "n_cells_expected"]]) == [1, 2, 3, 4]


def test_there_is_no_mean_without_a_complete_seed() -> None:
    entry = stats.entries(cells(FULL | {("de", 1): NAN, ("fr", 0): NAN}), ["source"], "method").iloc[0]
    assert math.isnan(entry["mean"])
    assert list(entry[["n_seeds", "n_cells"]]) == [0, 2]


def test_a_cell_planned_for_one_seed_only_is_missing_in_the_others() -> None:
    ragged = {key: score for key, score in FULL.items() if key != ("de", 1)}
    entry = stats.entries(cells(ragged), ["source"], "method").iloc[0]
    assert (entry["mean"], entry["n_seeds"], entry["n_cells_expected"]) == (15, 1, 4)


def test_the_average_is_over_the_columns_within_a_seed_and_guarded() -> None:
    entries = stats.entries(cells(FULL), ["source"], "target", average=True).set_index("column")
    assert entries.loc["fr", "mean"] == 20
    assert entries.loc[stats.AVERAGE, "mean"] == 27.5
    assert entries.loc[stats.AVERAGE, "sd"] == pytest.approx(25 / math.sqrt(2))
    assert entries.loc[stats.AVERAGE, "n_cells"] == 4
    holed = stats.entries(cells(FULL | {("fr", 1): NAN}), ["source"], "target", average=True).set_index("column")
    assert holed.loc[stats.AVERAGE, "mean"] == 15
    assert list(holed.loc[stats.AVERAGE, ["n_seeds", "n_cells", "n_cells_expected"]]) == [1, 3, 4]


@pytest.mark.parametrize("name", stats.FIXED)
def test_tasks_encoders_methods_and_metrics_are_never_averaged(name: str) -> None:
    mixed = pd.concat([cells(FULL), cells(FULL, **{name: "other"})])
    with pytest.raises(ValueError, match=f"average over several {name}s .*, other.*add '{name}' to the rows"):
        stats.entries(mixed, ["source"], "target")


def test_a_cell_that_occurs_twice_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a cell occurs twice: source en, column fr, target fr, seed 0"):
        stats.entries(pd.concat([cells(FULL), cells(FULL)]), ["source"], "target")


TARGETS, SEEDS = ("fr", "de", "ru"), (0, 1, 2)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(st.one_of(st.none(), st.integers(0, 100)), min_size=9, max_size=9))
def test_any_pattern_of_missing_cells_is_counted_right(scores: Sequence[int | None]) -> None:
    table = dict(zip(itertools.product(TARGETS, SEEDS), scores, strict=True))
    frame = cells({key: NAN if score is None else float(score) for key, score in table.items()})
    entry = stats.entries(frame, ["source"], "method").iloc[0]
    by_seed = [[table[target, seed] for target in TARGETS] for seed in SEEDS]
    whole = [
        sum(scored) / len(scored)
        for scored in ([s for s in row if s is not None] for row in by_seed)
        if len(scored) == 3
    ]
    assert entry["n_cells"] == sum(score is not None for score in scores)
    assert entry["n_cells_expected"] == 9
    assert (entry["n_seeds"], entry["n_seeds_expected"]) == (len(whole), 3)
    if whole:
        assert entry["mean"] == pytest.approx(sum(whole) / len(whole))
    else:
        assert math.isnan(entry["mean"])


def test_groups_may_overlap_and_keep_their_order() -> None:
    def belongs(group: str, source: str, target: str) -> bool:
        return group == "all" or target == "fr"

    grouped = stats.in_groups(cells(FULL), ["french", "all"], belongs)
    entries = stats.entries(grouped, ["method"], "group")
    assert list(entries["column"]) == ["french", "all"]
    assert list(entries["mean"]) == [20, 27.5]


def test_an_empty_group_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"group 'en-X' is empty.*\(de, fr\)"):
        stats.in_groups(cells(FULL), ["en-X"], lambda group, source, target: False)


def test_a_difference_of_methods_with_the_same_seeds_is_paired_and_lacks_what_either_lacks() -> None:
    second = {("fr", 0): 1.0, ("de", 0): NAN, ("fr", 1): 2.0, ("de", 1): 8.0, ("es", 1): 9.0}
    _, entries = stats.method_differences(
        pd.concat([cells(FULL), cells(second, method="adapters")]), "full-ft", "adapters"
    )
    entries = entries.set_index("column")
    assert set(entries.index) == {"fr", "de"}, "only cells planned for both"
    assert list(entries.loc["fr", ["mean", "n_seeds", "n_seeds_expected"]]) == [(9 + 28) / 2, 2, 2]
    assert entries.loc["fr", "sd"] == pytest.approx(19 / math.sqrt(2)), "of the differences within each seed"
    assert list(entries.loc["de", ["mean", "n_seeds", "n_seeds_expected"]]) == [42, 1, 2]


def unequal(first: list[float], second: list[float]) -> tuple[pd.DataFrame, list[str]]:
    """The difference of adapters and mlm-trg on one target, and its note."""
    frame = pd.concat(
        [
            cells({("fr", seed): score for seed, score in enumerate(first)}, method="adapters"),
            cells({("fr", seed): score for seed, score in enumerate(second)}, method="mlm-trg"),
        ]
    )
    _, entries = stats.method_differences(frame, "adapters", "mlm-trg")
    return entries.iloc[0], stats.note_on_seeds(frame, "method", "adapters", "mlm-trg", ["source", "target"])


def test_with_five_seeds_and_one_the_difference_is_that_of_the_means() -> None:
    """The shape of figure 15 of Pfeiffer et al. (2020): no run of adapters is lost."""
    entry, note = unequal([10.0, 20.0, 30.0, 40.0, 60.0], [12.0])
    assert entry["mean"] == 32.0 - 12.0
    assert list(entry[["n_seeds", "n_seeds_expected", "n_cells", "n_cells_expected"]]) == [1, 1, 1, 1]
    assert math.isnan(entry["sd"]), "one seed has no deviation"
    assert note[0].startswith(
        "adapters and mlm-trg have different seeds (5 and 1): the entry is the difference of their means"
    )


def test_the_deviation_of_a_difference_of_means_is_propagated() -> None:
    entry, _ = unequal([10.0, 20.0, 30.0, 40.0], [1.0, 4.0])
    assert entry["mean"] == 22.5
    assert entry["sd"] == pytest.approx(math.sqrt(500 / 3 + 9 / 2))
    assert (entry["n_seeds"], entry["n_seeds_expected"]) == (2, 2)
    assert (entry["min"], entry["max"]) == (6.0, 39.0)


def test_a_difference_of_means_counts_the_seeds_of_the_less_complete_side() -> None:
    entry, _ = unequal([10.0, NAN, 30.0, 40.0], [1.0])
    assert (entry["n_seeds"], entry["n_seeds_expected"]) == (3, 4)
    entry, _ = unequal([10.0, 20.0], [NAN])
    assert (entry["n_seeds"], entry["n_seeds_expected"]) == (0, 1)
    assert math.isnan(entry["mean"])


def test_a_difference_of_means_counts_the_cells_of_both_in_the_seeds_of_one_side() -> None:
    """Two targets of adapters and of mlm-trg with two seeds against three: two by two cells."""
    targets = ("fr", "de")
    first = cells({(target, seed): 10.0 for target in targets for seed in (0, 1)}, method="adapters")
    second = cells({(target, seed): 1.0 for target in targets for seed in (5, 6, 7)}, method="mlm-trg")
    entries = stats.entries(pd.concat([first, second]), ["source"], "method", difference=("adapters", "mlm-trg"))
    entry = entries.set_index("column").loc[stats.minus("adapters", "mlm-trg")]
    assert list(entry[["n_seeds", "n_seeds_expected", "n_cells", "n_cells_expected"]]) == [2, 2, 8, 8]


def test_a_difference_of_methods_without_a_common_cell_is_an_error() -> None:
    apart = pd.concat([cells(FULL), cells({("es", 0): 1.0}, method="adapters")])
    with pytest.raises(ValueError, match="no cell is planned for both 'full-ft' and 'adapters'"):
        stats.method_differences(apart, "full-ft", "adapters")


def test_select_keeps_the_asked_values_in_the_asked_order() -> None:
    frame = cells(FULL | {("ru", 0): 1.0})
    where: stats.Where = {"target": ["de", "fr"], "seed": [0]}
    kept = stats.select(frame, where)
    assert set(kept["target"]) == {"de", "fr"}
    assert set(kept["seed"]) == {0}
    assert stats.in_order(kept, "target", where) == ["de", "fr"]
    assert stats.in_order(kept, "target", {}) == ["fr", "de"]


def test_select_names_the_value_that_matches_nothing_and_its_neighbour() -> None:
    with pytest.raises(ValueError, match=r"no cells with method 'ful-ft': .*did you mean 'full-ft'\?"):
        stats.select(cells(FULL), {"target": ["fr"], "method": ["ful-ft"]})


def test_select_tells_values_that_exist_but_not_together() -> None:
    frame = pd.concat([cells(FULL), cells({("ru", 0): 1.0}, source="fr")])
    with pytest.raises(
        ValueError, match="target ru matches nothing in the cells with source en, where target is fr, de"
    ):
        stats.select(frame, {"source": ["en"], "target": ["ru"]})


def test_x_must_be_a_numeric_column_with_values() -> None:
    frame = cells(FULL).assign(distance=NAN, depth=1)
    with pytest.raises(ValueError, match=r"unknown numeric column 'detph', did you mean 'depth'\?"):
        stats.with_x(frame, "detph")
    with pytest.raises(ValueError, match="none of the 4 selected cells has a distance"):
        stats.with_x(frame, "distance")
    assert len(stats.with_x(frame.assign(depth=[1, 1, NAN, 2]), "depth")) == 3


def test_a_run_without_a_learning_curve_still_counts_as_planned() -> None:
    curves = cells({("-", 0): 1.0, ("-", 1): 3.0}).drop(columns=["target", "metric"])
    curves = pd.concat([curves.assign(step=10), curves.iloc[:1].assign(step=20)])
    planned = cells({("fr", seed): NAN for seed in (0, 1, 2)})
    entries = stats.entries(stats.learning_curves(curves, planned, "method"), ["step"], "method").set_index("step")
    assert list(entries.loc[10, ["mean", "n_seeds", "n_seeds_expected"]]) == [2, 2, 3]
    assert list(entries.loc[20, ["mean", "n_seeds", "n_seeds_expected"]]) == [1, 1, 3]


def test_evaluations_at_slightly_different_steps_of_an_epoch_are_one_point_of_a_curve() -> None:
    """The number of batches of an epoch depends on the seed."""
    scores = {("-", seed): float(10 * seed) for seed in (1, 2, 3)}
    steps = {1: 49, 2: 48, 3: 48}, {1: 98, 2: 96, 3: 97}
    of_runs = cells(scores).drop(columns=["target", "metric"])
    curves = pd.concat([of_runs.assign(step=of_runs["seed"].map(of_seed)) for of_seed in steps])
    planned = cells({("fr", seed): NAN for seed in (1, 2, 3)})
    entries = stats.entries(stats.learning_curves(curves, planned, "method"), ["step"], "method")
    assert entries[["step", "mean", "n_seeds"]].to_numpy().tolist() == [[48, 20, 3], [97, 20, 3]]


def test_the_mean_over_metrics_is_one_row_for_each_cell_though_one_metric_says_how_it_was_computed() -> None:
    identity = {"task": "qa", "encoder": "e", "method": "m", "source": "en", "target": "fr", "seed": 1}
    scores = [("squad-f1", 80.0, "a way"), ("squad-em", 60.0, None)]
    cells = pd.DataFrame(
        [{**identity, "metric": metric, "score": score, "implementation": way} for metric, score, way in scores]
    )
    assert stats.mean_over_metrics(cells)["score"].tolist() == [70.0]


def test_counts_of_an_average_stay_whole_numbers_where_a_seed_lacks_a_column() -> None:
    ragged = {key: score for key, score in FULL.items() if key != ("de", 1)}
    entries = stats.entries(cells(ragged), ["source"], "target", average=True).set_index("column")
    assert list(map(str, entries.loc[stats.AVERAGE, ["n_cells", "n_cells_expected"]])) == ["3", "4"]
