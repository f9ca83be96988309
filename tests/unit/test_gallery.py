"""The gallery has every kind of exhibit, is up to date, and LaTeX sets all of it in two columns without an overfull box."""

import re
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from latex_fixture import complaints, log_of, needs_latex
from module_fixture import load_module
from PIL import Image

from xlgrid.exhibits.kinds import KINDS
from xlgrid.plan.load import load_plan

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def gallery() -> Iterator[ModuleType]:
    yield load_module(DOCS / "gallery.py")


def test_the_page_has_each_kind_and_its_pictures_are_small(gallery: ModuleType) -> None:
    assert {*re.findall(r"(?m)^## (\S+)$", gallery.PAGE.read_text())} == {*KINDS}
    assert sum(picture.stat().st_size for picture in gallery.PICTURES.iterdir()) < 400_000


@pytest.mark.slow
def test_the_page_and_its_pictures_are_current(gallery: ModuleType, tmp_path: Path) -> None:
    assert gallery.draw(tmp_path) == gallery.PAGE.read_text(), "run `python docs/gallery.py`"
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in gallery.PICTURES.iterdir()}
    for path in sorted(tmp_path.iterdir()):
        drawn, kept = (Image.open(each).convert("L") for each in (path, gallery.PICTURES / path.name))
        # Another version of a library may place a text elsewhere by a pixel.
        assert np.abs(np.subtract(drawn.size, kept.size)).max() <= 3, path.name
        difference = np.asarray(drawn.resize(kept.size), float) - np.asarray(kept, float)
        assert np.abs(difference).mean() < 6, f"{path.name}: run `python docs/gallery.py`"


@needs_latex
@pytest.mark.thorough
def test_a_paper_with_a_table_and_a_figure_of_each_kind_has_no_overfull_box(
    gallery: ModuleType, tmp_path: Path
) -> None:
    with chdir(tmp_path):
        Path("gallery.yaml").write_text(gallery.STUDY.read_text())
        plan = load_plan("gallery.yaml")
        gallery.write(plan)
        floats = {}
        for name, exhibit in plan.study.exhibits.items():
            exhibit.render(name, plan, ".")
            # A figure is in a comment of its table.
            floats[name] = re.sub(r"(?m)^% (?=\\begin\{figure)", "", Path(f"{name}.tex").read_text())
    assert sum(r"\begin{figure" in text for text in floats.values()) == sum(
        not kind.is_table for kind in KINDS.values()
    )
    assert complaints(log_of(floats, tmp_path)) == []
