"""Bar charts and strip plots: marks in the order of the rows and of the legend, with the numbers of the seeds."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from exhibit_fixture import EXHIBIT, NAN, draw, grid, key
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from pydantic import ValidationError

from xlgrid.exhibits.drawing import plots

METHODS = ("full-ft", "bitfit")
BARS = {"kind": "bars", "title": "T", "rows": "target", "within": "method"}
SEEDS = BARS | {"kind": "seeds"}


def cells() -> pd.DataFrame:
    """Two targets, two methods and three seeds. One entry lacks a seed, and one has none."""
    of = grid(["en"], ["fr", "ru"], methods=METHODS, seeds=3)
    of.loc[(of["method"] == "bitfit") & (of["target"] == "fr") & (of["seed"] == 0), "score"] = NAN
    of.loc[(of["method"] == "bitfit") & (of["target"] == "ru"), "score"] = NAN
    return of


def drawn(spec: dict[str, Any], of: pd.DataFrame) -> Axes:
    rendering = EXHIBIT.validate_python(spec).of_scores(None, of)
    with plots.style():
        return rendering.draw(plots.Look())


def test_bars_are_means_with_a_deviation_and_one_of_fewer_seeds_is_white() -> None:
    ax = drawn(BARS, cells())
    known = cells().dropna().groupby(["target", "method"])["score"]
    order = [("fr", "full-ft"), ("fr", "bitfit"), ("ru", "full-ft")]
    bars = sorted((bar for bar in ax.patches if not np.isnan(bar.get_width())), key=lambda bar: bar.get_y())
    assert [bar.get_width() for bar in bars] == pytest.approx([known.mean()[each] for each in order])
    assert [to_hex(bar.get_facecolor()) == "#ffffff" for bar in bars] == [False, True, False]
    lines = [line.get_segments()[0] for line in ax.collections]
    spans = [line[:, 0] for line in sorted(lines, key=lambda line: line[0, 1])]
    expected = [(known.mean()[each] - known.std()[each], known.mean()[each] + known.std()[each]) for each in order]
    np.testing.assert_allclose(spans, expected)
    assert key(ax) == ["full-ft", "bitfit", "fewer seeds than planned"]
    assert len({bar.get_hatch() for bar in bars[:2]}) == 2, "bars differ in more than colour"


def test_each_complete_seed_is_a_point_and_a_line_is_at_the_mean() -> None:
    ax = drawn(SEEDS, cells())
    down = sorted(ax.lines, key=lambda line: np.mean(line.get_ydata()))
    points = [sorted(line.get_xdata()) for line in down if line.get_linestyle() == "None" and len(line.get_xdata())]
    known = cells().dropna().groupby(["target", "method"], sort=False)["score"]
    expected = [sorted(known.get_group(each)) for each in (("fr", "full-ft"), ("fr", "bitfit"), ("ru", "full-ft"))]
    assert points == [pytest.approx(each) for each in expected]
    means = [line.get_xdata()[0] for line in down if line.get_linestyle() == "-"]
    assert means == pytest.approx([np.mean(each) for each in expected])


def test_a_box_has_the_quartiles_of_the_seeds() -> None:
    of = grid(["en"], ["fr"], seeds=9)
    ax = drawn({"kind": "seeds", "title": "T", "rows": "method", "box": True}, of)
    quartiles = np.quantile(of["score"], [0.25, 0.5, 0.75])
    ends = {x for line in ax.lines if line.get_linestyle() == "-" for x in line.get_xdata()}
    assert all(np.isclose([*ends], quartile).any() for quartile in quartiles)


def test_the_point_of_a_seed_is_the_mean_over_the_targets(tmp_path: Path) -> None:
    of = grid(["en"], ["fr", "ru"], seeds=3)
    ax = drawn({"kind": "seeds", "title": "T", "rows": "method"}, of)
    points = next(line.get_xdata() for line in ax.lines if line.get_linestyle() == "None")
    assert sorted(points) == pytest.approx(sorted(of.groupby("seed")["score"].mean()))


@pytest.mark.parametrize("spec", [BARS, SEEDS, SEEDS | {"box": True}])
def test_files_have_labels_and_the_same_bytes(spec: dict[str, Any], tmp_path: Path) -> None:
    labels = {"full-ft": "Full FT", "fr": "French", "accuracy": "Accuracy"}
    files = [draw(spec, cells(), tmp_path / folder, labels=labels) for folder in "ab"]
    assert files[0] == files[1]
    for text in ("Full FT", "French", "Accuracy (%)"):
        assert f">{text}</text>" in files[0][".svg"].decode()
    assert "| French | " in files[0][".md"].decode() and "French" not in files[0][".csv"].decode()


def test_before_the_first_result_there_are_rows_without_marks(tmp_path: Path) -> None:
    files = draw(BARS, cells().assign(score=NAN), tmp_path)
    assert files[".svg"].decode().count(">–</text>") == 4


@pytest.mark.parametrize("spec", [BARS, SEEDS])
def test_the_legend_has_all_marks_where_every_entry_lacks_a_seed(spec: dict[str, Any]) -> None:
    of = grid(["en"], ["fr", "ru"], methods=METHODS, seeds=3)
    of.loc[of["seed"] == 1, "score"] = NAN
    assert key(drawn(spec, of)) == ["full-ft", "bitfit", "fewer seeds than planned"]


@pytest.mark.parametrize("kind", ["bars", "seeds", "table"])
def test_names_of_facts_are_free(kind: str, tmp_path: Path) -> None:
    of = cells().assign(**{"corpus-size": cells()["target"]})
    rows: Any = {"rows": ["corpus-size"], "columns": "method"} if kind == "table" else {"rows": "corpus-size"}
    files = draw({"kind": kind, "title": "T", "select": {"method": "full-ft"}, **rows}, of, tmp_path)
    assert "| ru  " in files[".md"].decode()


def test_rows_within_themselves_are_refused() -> None:
    with pytest.raises(ValidationError, match="`rows` and `within` are both 'method'"):
        EXHIBIT.validate_python(BARS | {"rows": "method"})
