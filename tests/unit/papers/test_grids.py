"""The studies of grids of others: what they plan, and the published numbers beside it."""

from collections import Counter
from pathlib import Path

import pytest
from shipped import STUDIES

from xlgrid.base.papers import published_file
from xlgrid.plan.grid import cells, runs
from xlgrid.plan.load import load_study
from xlgrid.results import published


def test_a_grid_of_parts_of_speech_has_a_cell_for_each_source_and_target_of_each_encoder() -> None:
    study = load_study(STUDIES["nn-rank"])
    planned = Counter(cell.encoder for cell in cells(study))
    assert planned == {"mbert": 2856, "xlmr-base": 2856} and len(runs(study)) == 102
    assert (len(study.groups["sources"]), len(study.groups["targets"])) == (51, 56)


def test_news_has_each_language_with_five_encoders_and_two_sources_with_thirteen_targets() -> None:
    planned = cells(load_study(STUDIES["masakhanews"]))
    own = {(cell.encoder, cell.target) for cell in planned if cell.source == cell.target and cell.method == "full-ft"}
    across = {(cell.source, cell.target) for cell in planned if cell.method == "zero-shot"}
    assert (len(own), len(across), len(planned)) == (5 * 16, 2 * 13, 5 * (5 * 16 + 2 * 13))


@pytest.mark.parametrize(("exhibit", "axis"), [("sources", "source"), ("targets", "target")])
def test_published_accuracies_are_of_the_languages_of_the_study(exhibit: str, axis: str) -> None:
    study = load_study(STUDIES["nn-rank"])
    numbers = published.read(study.exhibit(exhibit).published.path).reset_index()
    for encoder, of_encoder in numbers.groupby("model"):
        assert sorted(of_encoder[axis]) == sorted(study.groups[exhibit])
        # Both files have the means of the same cells, which the README prints.
        assert of_encoder["value"].mean() == pytest.approx({"mbert": 62.10, "xlmr-base": 65.58}[encoder], abs=0.01)


FOLDERS = sorted(path for path in (Path(__file__).parents[3] / "reference").iterdir() if path.is_dir())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_page_beside_published_numbers_names_each_file(folder: Path) -> None:
    page = (folder / "README.md").read_text(encoding="utf-8")
    for file in folder.glob("*.csv"):
        assert f"`{file.name}`" in page or f"| {file.name} |" in page
        assert len(published.read(file))
        assert published_file(f"{folder.name}/{file.stem}").samefile(file)
