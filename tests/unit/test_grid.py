"""Cells and runs have one path each, and each path leads back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xlgrid.claims import Claim
from xlgrid.grid import Cell, Contrast, Run, cells, explain, files, parse, runs
from xlgrid.study import Study

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,11}", fullmatch=True)
seeds = st.integers(0, 10**9)


@given(st.builds(Cell, names, names, names, names, names, names, seeds))
def test_a_cell_comes_back_from_its_path(cell: Cell) -> None:
    assert parse(cell.path) == cell


@given(
    st.builds(Run, names, names, names, names, names, seeds),
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
