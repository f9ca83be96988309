"""A metric without percent of which less is better, in tables, heatmaps, best sources, curves, claims and the report."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from exhibit_fixture import EXHIBIT, draw

from xlgrid.exhibits import claims, heatmap
from xlgrid.exhibits.drawing import plots
from xlgrid.heads import metrics
from xlgrid.report import figures
from xlgrid.results import stats, units, verdicts
from xlgrid.results.claims import Claim, Selection

LOSS = metrics.Metric("perplexity", "i", lambda outcome: (outcome, 1), "", False, 1)
IDENTITY = ["task", "encoder", "method", "source", "target", "seed", "metric", "score", "n"]
# Far beyond 100; madx is better by 40 everywhere.
SCORES = {("en", "fr"): 300.0, ("de", "fr"): 250.0, ("en", "ru"): 500.0, ("de", "ru"): 580.0}


@pytest.fixture(autouse=True)
def perplexity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(metrics.METRICS, "perplexity", LOSS)


def cells() -> pd.DataFrame:
    rows = [
        ("lm", "mini", method, source, target, seed, "perplexity", score - 40 * (method == "madx") + seed, 100)
        for method in ("full-ft", "madx")
        for (source, target), score in SCORES.items()
        for seed in range(3)
    ]
    return pd.DataFrame(rows, columns=IDENTITY)


def test_a_table_says_in_what_its_numbers_are_and_which_end_is_better(tmp_path: Path) -> None:
    text = draw({"kind": "table", "rows": ["method"], "columns": "target"}, cells(), tmp_path)[".md"].decode()
    assert "Metric: perplexity, lower is better." in text
    assert "percent" not in text


def colours(spec: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, str]:
    """The mesh of a heatmap, and the label of its colour bar."""
    drawn: list[Any] = []
    monkeypatch.setattr(plots, "save", lambda ax, *_: drawn.append(ax))
    exhibit = EXHIBIT.validate_python({"kind": "heatmap", "title": "t"} | spec)
    exhibit.write("x", folder, exhibit.of_scores(SimpleNamespace(languages_used=dict), cells()))
    [ax] = drawn
    return ax.collections[0], ax.child_axes[0].get_ylabel()


def luminance(colour: Any) -> float:
    return float(np.dot(colour[:3], [0.2126, 0.7152, 0.0722]))


def test_the_dark_end_of_a_heatmap_is_the_better_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mesh, label = colours({"method": "madx"}, tmp_path, monkeypatch)
    low, high = mesh.get_clim()
    assert (low, high) == pytest.approx((211, 541)), "not cut at 100"
    assert luminance(mesh.to_rgba(low)) < luminance(mesh.to_rgba(high))
    assert label == "perplexity"


def test_the_blue_end_of_a_difference_is_the_better_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mesh, label = colours({"difference": ["madx", "full-ft"]}, tmp_path, monkeypatch)
    red, _, blue, _ = mesh.to_rgba(-40)
    assert blue > red
    assert label == "madx − full-ft"


def test_in_percent_the_dark_end_is_that_of_greater_scores() -> None:
    frame = cells().assign(metric="accuracy", score=lambda frame: frame["score"] / 10)
    entries = stats.entries(frame[frame["method"] == "madx"], ["source"], "target")
    block = [heatmap.Block("", "", ("en", "de"))]
    ax = heatmap.heatmap(entries, rows=block, columns=[heatmap.Block("", "", ("fr", "ru"))])
    low, high = ax.collections[0].get_clim()
    shades = mpl.colormaps[ax.collections[0].get_cmap().name]
    assert luminance(shades(1.0)) < luminance(shades(0.0)) and low < high


def test_the_best_source_has_the_lowest_mean(tmp_path: Path) -> None:
    draw({"kind": "best", "select": {"method": "madx"}}, cells(), tmp_path)
    best = pd.read_csv(tmp_path / "x.csv").set_index("target")
    assert best["source"].to_dict() == {"fr": "de", "ru": "en"}
    assert best["next_mean"].to_dict() == {"fr": 261.0, "ru": 541.0}


def test_metrics_of_opposite_directions_are_not_ranked_together() -> None:
    with pytest.raises(ValueError, match="of perplexity and accuracy one is better when higher and one when lower"):
        units.higher_is_better(["perplexity", "accuracy"])


def test_a_curve_has_the_metric_on_its_axis(tmp_path: Path) -> None:
    frame = cells().assign(distance=1.0)
    frame = frame[(frame["source"] == "en") & (frame["target"] == "fr")]
    text = draw({"kind": "curve", "x": "distance", "lines": "method"}, frame, tmp_path)[".svg"].decode()
    assert ">perplexity</text>" in text and "(%)" not in text


def test_a_claim_of_less_is_about_the_number_and_names_the_direction() -> None:
    sides = (Selection(method=("madx",)), Selection(method=("full-ft",)))
    claim = Claim(says="MAD-X is better.", compare=sides, expect="less", margin=20)
    row = {"claim": "one", "metric": "perplexity", "effect": -40.0, "seed_variance": 1.0, "example_variance": 1.0}
    counts = {"n_seeds": 3, "n_seeds_expected": 3, "n_cells": 6, "n_cells_expected": 6}
    judged = verdicts.judge({"one": claim}, pd.DataFrame([row | counts]))
    assert judged["verdict"].tolist() == [verdicts.HOLDS]
    sheet = claims.sheet("A study", judged)
    assert "points" not in sheet.notes
    assert sheet.entries["hover"][0] == "madx − full-ft; perplexity, lower is better; 3 of 3 seeds, 6 of 6 cells"
    ax = claims.forest(judged, claimed=[claim.range])
    assert ax.get_xlabel() == "effect (the unit of its metric), 95 % interval"


def test_a_claim_may_compare_with_a_number_beyond_100() -> None:
    assert Claim(says="s", against=400, expect="less").against == 400


def test_the_report_names_no_points_and_no_percent() -> None:
    figure = figures.spread(figures.seed_deviations(cells()))
    assert figure.axes[-1].get_xlabel() == "deviation from the mean over seeds"
    points = cells().drop(columns=["target", "metric", "n"]).assign(step=10)
    assert figures.curves(points, units.quantity(cells()["metric"])).get_supylabel() == "dev perplexity"


def test_metrics_in_words_share_what_neighbours_have_in_common() -> None:
    assert units.sentence(["squad-f1", "squad-em"]) == "squad-f1, squad-em, in percent"
    assert units.sentence(["accuracy", "perplexity"]) == "accuracy, in percent, perplexity, lower is better"
    assert (units.unit(["accuracy", "perplexity"]), units.quantity(["accuracy", "perplexity"])) == ("", "score")
