"""What curves hand to matplotlib, and their files."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from exhibit_fixture import NAN, draw, grid, key
from matplotlib.axes import Axes

from xlgrid.exhibits.curve import curves
from xlgrid.exhibits.drawing import plots
from xlgrid.results import stats


def lines_of(cells: pd.DataFrame) -> Axes:
    entries = stats.entries(cells, ["distance"], "method")
    with plots.style():
        return curves(entries, plots.Look(), x="distance", lines="method", order=list(dict.fromkeys(cells["method"])))


def test_a_curve_has_means_bands_and_hollow_points() -> None:
    scores = [1.0, 3.0, 5.0, 5.0, NAN, 8.0, NAN, NAN]
    ax = lines_of(grid(["en"], ["en", "fr", "ru", "uk"]).assign(score=scores))
    line, hollow = ax.lines
    np.testing.assert_array_equal(line.get_ydata(), [2, 5, 8, NAN], "a gap where no seed is complete")
    np.testing.assert_array_equal(np.asarray(hollow.get_xdata())[~np.isnan(np.asarray(hollow.get_ydata()))], [2])
    band = ax.collections[0].get_paths()[0].vertices
    at_zero = sorted({round(float(y), 6) for x, y in np.asarray(band) if x == 0})
    assert (at_zero[0], at_zero[-1]) == pytest.approx((2 - 2**0.5, 2 + 2**0.5))
    assert key(ax) == ["adapters", "fewer seeds than planned"]


def test_lines_differ_in_more_than_colour() -> None:
    ax = lines_of(grid(["en"], ["en", "fr"], methods=tuple(f"m{i}" for i in range(10))))
    looks = [(line.get_marker(), line.get_linestyle()) for line in ax.lines]
    assert len(set(map(str, looks))) == 10
    assert all(a.get_color() != b.get_color() for a, b in pairwise(ax.lines))


CURVE = {"kind": "curve", "title": "By distance", "x": "distance", "lines": "method"}
STEPS = {"kind": "curve", "title": "Learning", "x": "step", "lines": "method"}


def runs(folder: Path) -> list[Path]:
    """The folders of runs with learning curves, of two methods and three seeds."""
    folders = []
    for method in ("full-ft", "adapters"):
        for seed in range(3):
            run = folder / f"{method}{seed}"
            run.mkdir(parents=True)
            recipe = {"task": "xnli", "encoder": "mini", "method": method, "source": "en", "seed": seed}
            (run / "run.json").write_text(json.dumps({"recipe": recipe}))
            points = [{"step": step, "score": 50 + step / 10 + seed} for step in (10, 20)]
            (run / "curve.jsonl").write_text("".join(f"{json.dumps(point)}\n" for point in points))
            folders.append(run)
    return folders


@pytest.mark.parametrize("spec", [CURVE, STEPS], ids=["curve", "steps"])
def test_rendering_twice_gives_the_same_bytes(spec: dict[str, Any], tmp_path: Path) -> None:
    cells = grid(["en"], ["en", "fr", "ru"], methods=("full-ft", "adapters"), seeds=3, holes=0.1)
    folder = runs(tmp_path / "runs")
    assert draw(spec, cells, tmp_path / "a", runs=folder) == draw(spec, cells, tmp_path / "b", runs=folder)


def test_a_learning_curve_is_of_the_dev_set_in_the_metric_of_its_task(tmp_path: Path) -> None:
    files = draw(
        STEPS, grid(["en"], ["fr"], methods=("full-ft", "adapters"), seeds=3), tmp_path / "a", runs=runs(tmp_path / "r")
    )
    assert ">dev accuracy (%)</text>" in files[".svg"].decode()
    table = pd.read_csv(tmp_path / "a" / "x.csv").set_index(["step", "column"])
    assert table["mean"].to_dict() == {
        (10, "full-ft"): 52.0,
        (10, "adapters"): 52.0,
        (20, "full-ft"): 53.0,
        (20, "adapters"): 53.0,
    }


PANELS = CURVE | {"panels": "target"}


def test_panels_have_the_lines_of_their_cells_and_one_legend() -> None:
    cells = grid(["en"], ["fr", "en", "ru"], methods=("full-ft", "adapters")).assign(distance=[1, 1, 1, 2, 2, 2] * 2)
    entries = stats.entries(cells, ["target", "distance"], "method")
    with plots.style():
        last = curves(
            entries,
            plots.Look(room=5),
            x="distance",
            lines="method",
            order=["full-ft", "adapters"],
            panels="target",
            panel_order=["fr", "en", "ru"],
        )
    panels = plots.figure_of(last).axes
    assert [ax.get_title(loc="left") for ax in panels] == ["fr", "en", "ru"] and panels[-1] is last
    assert [key(ax) for ax in panels] == [[], [], ["full-ft", "adapters"]]
    for ax, target in zip(panels, ["fr", "en", "ru"], strict=True):
        for line, method in zip(ax.lines, ["full-ft", "adapters"], strict=True):
            here = cells[(cells["target"] == target) & (cells["method"] == method)]
            expected = here.groupby("distance")["score"].mean()
            np.testing.assert_allclose(line.get_ydata(), expected)


def test_panels_of_groups_average_over_their_targets(tmp_path: Path) -> None:
    members = {"near": ["fr"], "all": ["fr", "ru"]}
    cells = grid(["en"], ["fr", "ru"], seeds=1).assign(distance=1, score=[80.0, 60.0])
    spec = CURVE | {"panels": "group", "groups": ["all", "near"]}
    files = draw(spec, cells, tmp_path, belongs=lambda group, source, target: target in members[group])
    table = pd.read_csv(tmp_path / "x.csv")
    assert table.set_index(["group", "distance", "column"])["mean"].to_dict() == {
        ("all", 1, "adapters"): 70.0,
        ("near", 1, "adapters"): 80.0,
    }
    assert ">near</text>" in files[".svg"].decode()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"panels": "distance"}, "`x` and `panels` are both 'distance'"),
        ({"panels": "method"}, "`lines` and `panels` are both 'method'"),
        ({"panels": "group"}, "`groups` goes with `panels: group`"),
        ({"panels": None, "groups": ["a"]}, "`groups` goes with `panels: group`"),
        ({"panels": "group", "groups": ["a"], "lines": "target"}, "a group averages over its targets"),
        ({"x": "step"}, "in one panel: leave out `panels`"),
    ],
)
def test_panels_that_say_nothing_are_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        draw(PANELS | change, grid(["en"], ["fr"]), tmp_path)
