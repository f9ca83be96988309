"""Cells and runs have one path each, and each path leads back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xlgrid.exhibits.schema import Curve, Table, needed

from xlgrid.plan.grid import cells, explain, files, runs, starting_runs
from xlgrid.results.claims import Claim
from xlgrid.results.identity import Cell, Contrast, Run, parse
from xlgrid.study.schema import Study

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,11}", fullmatch=True)
places = names | st.builds("{}@{}".format, names, names)
seeds = st.integers(0, 10**9)


@given(st.builds(Cell, names, names, names, names, places, places, seeds))
def test_a_cell_comes_back_from_its_path(cell: Cell) -> None:
    assert parse(cell.path) == cell


@given(
    st.builds(Run, names, names, names, names, places, seeds),
    st.sampled_from(["", "/", "/run.json", "/delta.safetensors"]),
)
def test_a_run_comes_back_from_its_folder_and_files(run: Run, rest: str) -> None:
    assert parse(run.folder + rest) == run


@given(st.builds(Contrast, names, names, names, names, names, names, names, seeds))
def test_a_contrast_comes_back_from_its_path(contrast: Contrast) -> None:
    assert parse(contrast.path) == contrast


@given(
    st.builds(Cell, names, names, names, names, names, names, seeds),
    st.integers(0, 200),
    st.text("/.0s-éx", max_size=2),
)
def test_a_path_with_a_slip_is_refused_or_is_canonical(cell: Cell, at: int, slip: str) -> None:
    path = cell.path[:at] + slip + cell.path[at + 1 :]
    try:
        found = parse(path)
    except ValueError:
        return
    assert path.startswith(found.folder) if isinstance(found, Run) else path.rstrip("/") == found.path


def small(**grid: object) -> Study:
    axes = {
        "task": ["ner"],
        "encoder": ["mini"],
        "method": ["full-ft", "bitfit"],
        "source": ["en", "en+en-fr"],
        "target": ["mono", "en-X", "X-en"],
        "seed": [1, 2],
    }
    return Study(
        name="small",
        title="small",
        languages=["en", "fr", "de"],
        encoders={"mini": {"mini": {"languages": ["en"]}}},
        tasks={"ner": {"kind": "ruletaker"}},
        methods={"full-ft": {}, "bitfit": {}},
        grids={"g": axes | grid},
    )


def test_groups_expand_to_languages_and_pairs() -> None:
    targets = list(dict.fromkeys(cell.target for cell in cells(small())))
    assert targets == ["en", "fr", "de", "en-fr", "en-de", "fr-en", "de-en"]


def test_the_grid_is_the_product_of_its_axes() -> None:
    assert len(cells(small())) == 2 * 2 * 7 * 2
    assert len(runs(small())) == 2 * 2 * 2


def test_a_cell_made_twice_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"cells/ner/mini/full-ft/en/fr/seed1.json is made twice"):
        cells(small(target=["fr", "mono"]))


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("results/small/cells/ner/mini/bitfut/en/fr/seed1.json", "did you mean 'bitfit'"),
        ("results/small/cells/ner/mini/bitfit/en/fr/seed9.json", "unknown seed '9'"),
        ("results/small/attention/ner/mini/bitfit/en/en-fr/en-it/seed1.json", "unknown target 'en-it'"),
        ("results/other/cells/ner/mini/bitfit/en/fr/seed1.json", "--config study=other"),
        ("results/other/report.html", "--config study=other"),
        ("results/small/exhibit/x.csv", "nothing makes"),
    ],
)
def test_a_misspelt_target_is_explained(path: str, said: str) -> None:
    assert said in explain(path, small())


def test_claims_are_among_what_exists_where_a_study_has_any() -> None:
    claim = Claim(says="It guesses.", against=50, expect="greater")
    studies = (small().model_copy(update={"claims": {"chance": claim}}), small())
    told = [explain("results/small/claim.html", study) for study in studies]
    assert "The nearest file is results/small/claims.html." in told[0]
    assert told[0].endswith("exhibits/, claims.html, claims.md, claims.csv, claims.svg, summary.csv, report.html")
    assert "claims" not in told[1]


@pytest.mark.parametrize(("path", "made"), [("claims.svg", True), ("report.html", True), ("claims.pdf", False)])
def test_what_a_study_makes_once_is_among_its_files(path: str, made: bool) -> None:
    allowed = dict.fromkeys(("study", *Cell._fields[1:]), "small")
    assert bool(re.fullmatch(files(allowed, [], [], []), f"small/{path}")) is made


def begun(**changes: object) -> Study:
    """Runs that begin with text, of the source, of the target and of both, on a task that begins with another."""
    return Study(
        name="begun",
        title="begun",
        languages=["en", "fr", "de"],
        encoders={"mini": {"mini": {"languages": ["en"]}}},
        tasks={"siqa": {"kind": "ruletaker"}, "copa": {"kind": "ruletaker", "start": "siqa"}},
        methods={
            "mlm": {"base": "full-ft"},
            "mlm-src": {"base": "full-ft", "start": {"method": "mlm", "at": "source"}},
            "mlm-trg": {"base": "full-ft", "start": {"method": "mlm", "at": "target"}},
            "both": {"base": "qcross", "start": {"method": "mlm"}},
        },
        training=[
            {"set": {"steps": 30}},
            {"when": {"source": "en"}, "set": {"lr": 1.0}},
            {"when": {"task": "mlm"}, "set": {"snapshots": [10, 20]}},
        ],
        grids={
            "g": {
                "task": ["copa"],
                "encoder": ["mini"],
                "method": ["mlm-src", "mlm-trg", "both"],
                "source": ["en"],
                "target": ["en", "fr"],
                "seed": [1],
            },
            **changes,
        },
    )


EARLY = {
    "task": ["siqa"],
    "encoder": ["mini"],
    "method": ["both"],
    "source": ["en"],
    "target": ["en", "fr"],
    "seed": [1],
    "snapshots": [10, 20],
}


def named(planned: list[Run]) -> list[tuple[str, str, str]]:
    return [(run.task, run.method, run.source) for run in planned]


def test_a_method_that_begins_with_the_target_has_a_run_for_each() -> None:
    planned = [(cell.source, cell.target) for cell in cells(begun()) if cell.method == "mlm-trg"]
    assert planned == [("en@en", "en"), ("en@fr", "fr")]
    assert {cell.source for cell in cells(begun()) if cell.method != "mlm-trg"} == {"en"}


def test_data_and_what_is_shown_are_of_what_stands_before_the_at() -> None:
    cell = Cell("s", "t", "e", "m", "en@fr", "fr@10", 1)
    assert cell.tokens == "results/s/tokens/t/e/fr/test.arrow"
    assert cell.shown == Cell("s", "t", "e", "m", "en", "fr", 1)


def test_runs_come_after_all_that_they_begin_with() -> None:
    study = begun()
    order = runs(study)
    assert len(set(order)) == len(order)
    for run in order:
        assert all(order.index(start) < order.index(run) for start in starting_runs(study, run)), run
    assert set(named(order)) == {
        ("mlm", "mlm", "en"),
        ("mlm", "mlm", "fr"),
        *((task, method, "en") for task in ("siqa", "copa") for method in ("mlm-src", "both")),
        *((task, "mlm-trg", source) for task in ("siqa", "copa") for source in ("en@en", "en@fr")),
    }


def test_a_second_stage_begins_with_text_and_then_with_the_first_of_the_same_seed() -> None:
    study = begun()
    run = Run("begun", "copa", "mini", "mlm-trg", "en@fr", 7)
    assert named(starting_runs(study, run)) == [("mlm", "mlm", "fr"), ("siqa", "mlm-trg", "en@fr")]
    assert [start.seed for start in starting_runs(study, run)] == [1, 7]
    assert study.recipe(*run[1:]).first == "siqa"
    assert named(starting_runs(study, run._replace(task="siqa"))) == [("mlm", "mlm", "fr")]


def test_a_cell_rests_on_the_texts_of_its_source_and_target_and_the_run_on_the_rest() -> None:
    cell = Cell("begun", "copa", "mini", "both", "en", "fr", 1)
    assert named(starting_runs(begun(), cell)) == [("mlm", "mlm", "en"), ("mlm", "mlm", "fr")]


def test_settings_for_a_source_are_for_its_runs_for_each_target_too() -> None:
    made = begun().recipe("copa", "mini", "mlm-trg", "en@fr", 1)
    assert (made.source, made.training.lr) == ("en@fr", 1.0)


def test_another_language_leaves_every_recipe_as_it_was() -> None:
    study = begun()
    more = study.model_copy(update={"languages": ["en", "fr", "de", "it"]})
    assert all(study.recipe(*run[1:]) == more.recipe(*run[1:]) for run in runs(study))


def test_snapshots_are_targets_of_the_same_runs() -> None:
    planned = cells(begun(early=EARLY))
    early = [cell for cell in planned if "@" in cell.target]
    assert [cell.target for cell in early] == ["en@10", "en@20", "fr@10", "fr@20"]
    assert {cell.run for cell in early} == {Run("begun", "siqa", "mini", "both", "en", 1)}
    texts, own = [("mlm", "mlm", "en"), ("mlm", "mlm", "fr")], [("siqa", "both", "en")]
    assert named(runs(begun(early=EARLY), early)) == texts + own, "as many as without snapshots"


def test_only_a_curve_over_snapshots_shows_them() -> None:
    planned = cells(begun(early=EARLY, late=EARLY | {"snapshots": []}))
    chosen = {"task": "siqa", "source": "en", "target": "fr"}
    curve = Curve(title="c", x="snapshot", lines="method", select=chosen)  # type: ignore[arg-type]
    assert [cell.target for cell in needed(curve, planned)] == ["fr@10", "fr@20"]
    table = Table(title="t", rows=("method",), columns=("target",), select=chosen)  # type: ignore[arg-type]
    assert [cell.target for cell in needed(table, planned)] == ["fr"]


def test_a_table_of_a_source_shows_its_runs_for_each_target() -> None:
    table = Table(title="t", rows=("method",), columns=("target",), select={"source": "en", "method": "mlm-trg"})  # type: ignore[arg-type, dict-item]
    assert [cell.source for cell in needed(table, cells(begun()))] == ["en@en", "en@fr"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("cells/copa/mini/mlm-trg/en@fx/fr/seed1.json", "did you mean 'en@fr'"),
        ("cells/copa/mini/mlm-trg/en/fr/seed1.json", "nearest is .*/mlm-trg/en@fr/fr/seed1.json"),
        ("cells/siqa/mini/both/en/fr@30/seed1.json", "did you mean 'fr@"),
        ("runs/mlm/mini/mlm/fr/seed1/step10.safetensors", "ask for .*/mlm/mini/mlm/fr/seed1/run.json"),
        ("runs/mlm/mini/mlm/de/seed1/run.json", "unknown source 'de'"),
        ("runs/siqa/mini/mlm-trg/en/seed1/run.json", "nearest is .*/siqa/mini/"),
    ],
)
def test_a_misspelt_start_is_explained(path: str, said: str) -> None:
    assert re.search(said, explain(f"results/begun/{path}", begun(early=EARLY)))
