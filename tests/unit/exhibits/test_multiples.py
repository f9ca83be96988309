"""Small heatmaps: one scale, the same order in each, and marks."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from exhibit_fixture import EXHIBIT, NAN, draw, grid, key

from xlgrid.exhibits.drawing import plots

SPEC = {"kind": "heatmaps", "title": "T", "panels": "method"}
METHODS = ("full-ft", "bitfit", "adapters")


def rendering(of: pd.DataFrame) -> Any:
    return EXHIBIT.validate_python(SPEC).of_scores(SimpleNamespace(languages_used={}), of)


def test_each_panel_has_the_means_of_its_method_on_one_scale() -> None:
    of = grid(["en", "fr"], ["en", "fr", "ru"], methods=METHODS)
    with plots.style():
        panels = plots.figure_of(rendering(of).draw(plots.Look(5))).axes
    assert [ax.get_title("left") for ax in panels] == [*METHODS]
    assert len({ax.collections[0].get_clim() for ax in panels}) == 1
    for ax in panels:
        means = of[of["method"] == ax.get_title("left")].groupby(["source", "target"])["score"].mean().unstack()
        np.testing.assert_allclose(ax.collections[0].get_array().reshape(2, 3), means)


def test_a_cell_that_one_panel_lacks_is_blank_there_and_a_missing_one_is_hatched() -> None:
    of = grid(["en", "fr"], ["en", "fr"], methods=METHODS[:2], seeds=1)
    of.loc[(of["method"] == "bitfit") & (of["source"] == "fr"), "score"] = NAN
    of = of[(of["method"] == "full-ft") | (of["target"] == "en") | (of["source"] == "fr")]
    with plots.style():
        first, second = plots.figure_of(rendering(of).draw(plots.Look())).axes
    assert [sum(bool(patch.get_hatch()) for patch in ax.patches) for ax in (first, second)] == [0, 2]
    assert key(first) == ["target seen in training", "no complete seed", "not planned"]


@pytest.mark.parametrize(("targets", "inches"), [(2, 3.03), (8, 6.3)])
def test_panels_that_are_too_small_for_numbers_are_on_a_page(targets: int, inches: float, tmp_path: Path) -> None:
    codes = [f"q{i}" for i in range(targets)]
    files = draw(SPEC, grid(codes, codes, methods=METHODS, seeds=1), tmp_path)
    assert int.from_bytes(files[".png"][16:20]) == pytest.approx(300 * inches, abs=1)
    assert files == draw(SPEC, grid(codes, codes, methods=METHODS, seeds=1), tmp_path), "the same bytes"
