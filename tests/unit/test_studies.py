"""The studies of this project plan what their papers ran."""

from collections import Counter
from pathlib import Path

import pytest

from xlgrid.grid import MLM, cells, runs
from xlgrid.study import Study, load_study

STUDIES = sorted((Path(__file__).parents[2] / "studies").glob("*.yaml"))


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_study_is_read_and_plans_something(path: Path) -> None:
    assert cells(load_study(path))


@pytest.fixture(scope="module")
def foroutan() -> Study:
    return load_study(next(path for path in STUDIES if path.stem == "foroutan2023"))


def test_foroutan2023_has_the_cells_of_its_tables(foroutan: Study) -> None:
    """Per seed; tables 13 and 15 have 1,600 values each, tables 1 and 7 average over 8 or 9 targets, 2 and 8 over 16."""
    count = Counter((cell.task.partition("-")[0], cell.encoder, cell.method) for cell in cells(foroutan))
    depths, mixes, targets = 4, 4, 9 + 8 + 8
    for encoder in ("mbert", "xlmr-base"):
        for method in ("bitfit", "cs-baseline", "shared-qcross", "pair-qcross"):
            assert count["ruletaker", encoder, method] == 3 * depths * mixes * targets
    table_9 = 3 * 2 * mixes * targets
    assert count["ruletaker", "xlmr-base", "full-ft"] == 3 * depths * (9 * 9 + 8 * 16)
    assert count["ruletaker", "mbert", "full-ft"] == 3 * depths * (9 * 9 + 8 * 16) + table_9


def test_foroutan2023_trains_a_query_for_each_pair_of_xnli_and_a_shared_one(foroutan: Study) -> None:
    trained = Counter((run.encoder, run.method) for run in runs(foroutan) if run.task == MLM)
    assert trained == {
        (encoder, method): count
        for encoder in ("mbert", "xlmr-base")
        for method, count in (("query", 6 + 1), ("cs-mlm", 1))
    }


@pytest.mark.parametrize(
    ("task", "encoder", "method", "epochs", "lr", "phases"),
    [
        ("ruletaker-d0", "mbert", "full-ft", 5, 1e-5, 0),
        ("ruletaker-d3", "mbert", "pair-qcross", 35, 4e-4, 0),
        ("ruletaker-d1", "xlmr-base", "full-ft", 5, 5e-6, 0),
        ("ruletaker-d1", "xlmr-base", "bitfit", 35, 3e-4, 0),
        ("ruletaker-d2", "xlmr-base", "bitfit", 35, 3e-4, 1),
    ],
)
def test_foroutan2023_trains_as_table_10_says(
    foroutan: Study, task: str, encoder: str, method: str, epochs: int, lr: float, phases: int
) -> None:
    told = foroutan.recipe(task, encoder, method, "en+en-fr", 1).training
    assert (told.epochs, told.lr, told.batch_size, len(told.curriculum)) == (epochs, lr, 32, phases)
