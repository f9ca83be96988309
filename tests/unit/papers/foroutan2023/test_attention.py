"""Attention as an exhibit: the table of divergences over seeds, and the pictures of one example."""

import base64
import json
import warnings
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from study_fixture import CURVE, TEXT
from study_fixture import write as write_study

from xlgrid.papers.foroutan2023.attention import Attention
from xlgrid.papers.foroutan2023.contrast import Contrast
from xlgrid.plan.load import load_study
from xlgrid.products.evaluate import Cell

EXHIBIT = Attention(title="Attention", targets=("en-fr", "en-ar"), select={"method": ("full-ft", "qcross")})
CELLS = [
    Cell("s", "t", "e", method, "en-fr", target, seed)
    for method in ("full-ft", "bitfit+drop", "qcross")
    for target in ("en-fr", "en-ar", "en")
    for seed in (1, 2, 3)
]
PLAN = SimpleNamespace(study=SimpleNamespace(printed={}), cells=CELLS, owned=lambda product: product)
HEADS, TOKENS, CONTEXT = 2, {"en-fr": 6, "en-ar": 8}, 4
RESULTS = {("full-ft", 1): 0.1, ("full-ft", 2): 0.2, ("full-ft", 3): 0.3, ("qcross", 2): 0.05}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def example(target: str) -> dict[str, Any]:
    """One example with weights of uniform attention, as files of attention have it."""
    length = TOKENS[target]
    weights = np.full((HEADS, length, length), 1 / length, "<f2")
    packed = base64.b64encode(zlib.compress(weights.tobytes())).decode()
    return {"tokens": [f"{target}{n}" for n in range(length)], "context": CONTEXT, "weights": packed}


def write(contrast: Contrast, divergence: float) -> None:
    record = {
        "targets": [contrast.target, contrast.other],
        "divergence": {"context": divergence, "first": 0.5},
        "by_head": {},
        "n": 12,
        "left_out": 0,
        "drawn": [example(contrast.target), example(contrast.other)],
    }
    path = Path(contrast.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record))


def rendered(out: str, values: dict[tuple[str, int], float]) -> dict[str, bytes]:
    """The files of `EXHIBIT` if the runs of these methods and seeds have results of these divergences."""
    for contrast in EXHIBIT.products(CELLS):
        Path(contrast.path).unlink(missing_ok=True)
        if (contrast.method, contrast.seed) in values:
            write(contrast, values[contrast.method, contrast.seed])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EXHIBIT.render("x", PLAN, out)  # type: ignore[arg-type]
    return {suffix: Path(out, f"x{suffix}").read_bytes() for suffix in EXHIBIT.suffixes}


def test_the_two_cells_of_a_run_may_be_of_two_studies() -> None:
    mixed = [cell._replace(study="more") if cell.target == "en-ar" else cell for cell in CELLS]
    assert len(EXHIBIT.products(mixed)) == len(EXHIBIT.products(CELLS)) > 0


def test_the_exhibit_is_of_runs_that_are_planned_for_both_targets() -> None:
    contrasts = EXHIBIT.products([cell for cell in CELLS if cell[3:] != ("qcross", "en-fr", "en-ar", 2)])
    assert {(contrast.method, contrast.target, contrast.other) for contrast in contrasts} == {
        (m, "en-fr", "en-ar") for m in ("full-ft", "qcross")
    }
    assert ("qcross", 2) not in {(contrast.method, contrast.seed) for contrast in contrasts}
    assert EXHIBIT.products([cell for cell in CELLS if cell.target != "en-ar"]) == []


def test_the_exhibit_averages_over_the_seeds_that_exist() -> None:
    files = rendered("out", RESULTS)
    table = pd.read_csv("out/x.csv").set_index(["method", "column"])
    full, cross = table.loc["full-ft", "context tokens"], table.loc["qcross", "context tokens"]
    assert (full["mean"], full["sd"], full["n_seeds"]) == pytest.approx((0.2, 0.1, 3))
    assert (cross["mean"], cross["n_seeds"], cross["n_seeds_expected"]) == pytest.approx((0.05, 1, 3))
    assert table.loc[("full-ft", "first token"), "mean"] == 0.5
    assert "0.200 ± 0.100" in files[".md"].decode()
    assert "Runs with a result: 4 of 6. Mean over 12 examples." in files[".md"].decode()


def test_the_picture_names_tokens_segments_heads_and_the_number() -> None:
    text = rendered("out", {("full-ft", 1): 0.1})[".svg"].decode()
    for target, length in TOKENS.items():
        assert f">{target}: mean of 2 heads</text>" in text
        assert all(f">{target}{n}</text>" in text for n in range(length))
    for label in ("context", "question", "key", "query", "head 2", "no run with a result"):
        assert f">{label}</text>" in text
    assert "divergence 0.100" in text


def test_rendering_twice_gives_the_same_bytes_and_nothing_is_needed() -> None:
    for values in (RESULTS, {}):
        assert rendered("a", values) == rendered("b", values)


def test_attention_is_of_runs_that_have_both_targets(tmp_path: Path) -> None:
    other = (
        "  other: {task: [rt], encoder: [mini], method: [bitfit], source: [en-fr], target: [fr-en, en-fr], seed: [1]}\n"
    )
    exhibit = "{kind: attention, title: t, targets: [en, en-fr], select: {source: en-fr}}"
    text = TEXT.replace("groups:\n", f"{other}groups:\n").replace(CURVE, exhibit)
    with pytest.raises(
        ValueError, match=r"s.yaml:21: exhibits.curve.select: no selected run has both targets, en and en-fr"
    ):
        load_study(write_study(tmp_path, text))
