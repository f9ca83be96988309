"""Runs, cells and contrasts have one path each, and each path leads back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xlgrid.results.identity import Cell, Contrast, Run

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,11}", fullmatch=True)
codes = st.from_regex(r"[A-Za-z0-9._]{1,5}", fullmatch=True)
ends = codes | st.builds("{}-{}".format, codes, codes)
targets = ends | st.builds("{}@{}".format, ends, st.integers(1, 10**6))
mixes = st.lists(ends, min_size=1, max_size=3).map("+".join)
sources = mixes | st.builds("{}@{}".format, mixes, targets)
seeds = st.integers(0, 10**9)


@given(st.builds(Cell, names, names, names, names, sources, targets, seeds))
def test_a_cell_comes_back_from_its_path(cell: Cell) -> None:
    assert Cell.parse(cell.path) == cell


@given(st.builds(Run, names, names, names, names, sources, seeds))
def test_a_run_comes_back_from_its_files(run: Run) -> None:
    assert {Run.parse(run.file(name)) for name in run.files} == {run}
    assert Run.parse(run.folder) is None


@given(st.builds(Contrast, names, names, names, names, sources, targets, targets, seeds))
def test_a_contrast_comes_back_from_its_path(contrast: Contrast) -> None:
    assert Contrast.parse(contrast.path) == contrast


@given(
    st.builds(Cell, names, names, names, names, sources, targets, seeds),
    st.integers(0, 200),
    st.text("/.0s-éx", max_size=2),
)
def test_a_path_with_a_slip_is_refused_or_is_canonical(cell: Cell, at: int, slip: str) -> None:
    path = cell.path[:at] + slip + cell.path[at + 1 :]
    read = Cell.parse(path)
    assert read is None or read.path == path


@pytest.mark.parametrize("seed", ["seed01", "seed-1", "seed", "seed1 ", "seed" + "9" * 5000])
def test_a_seed_has_one_spelling(seed: str) -> None:
    assert Cell.parse(f"results/s/cells/t/e/m/en/fr/{seed}.json") is None


def test_a_path_with_a_source_that_cannot_be_parsed_is_no_cell() -> None:
    assert Cell.parse("results/s/cells/t/e/m/en/fr/seed1.json")
    assert Cell.parse("results/s/cells/t/e/m/en-fr-de/fr/seed1.json") is None
