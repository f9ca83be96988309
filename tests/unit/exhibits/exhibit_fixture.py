"""Rendering of an exhibit from a frame of cells, without a study."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from pydantic import TypeAdapter

from xlgrid.exhibits.drawing import sheet as printing
from xlgrid.exhibits.kinds import AnyExhibit

NAN = float("nan")
EXHIBIT: TypeAdapter[Any] = TypeAdapter(AnyExhibit)


def draw(
    spec: dict[str, Any],
    cells: pd.DataFrame,
    folder: Path,
    *,
    name: str = "x",
    belongs: Callable[[str, str, str], bool] = lambda *_: True,
    languages: Mapping[str, Any] | None = None,
    runs: Iterable[str | Path] = (),
    methods: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
) -> dict[str, bytes]:
    """The files of the exhibit, suffix -> contents; no other file is written."""
    exhibit = EXHIBIT.validate_python({"title": "Some scores"} | spec)
    order = {axis: list(dict.fromkeys(cells[axis])) for axis in ("source", "target") if axis in cells}
    study = SimpleNamespace(belongs=belongs, languages_used=languages or {}, methods=methods or {}, order=order)
    rendering = exhibit.of_scores(study, cells, runs)._replace(labels=labels or {})
    exhibit.write(name, folder, rendering)
    if exhibit.is_compared:
        exhibit.write_published(name, folder, rendering)
    files = {path.name.removeprefix(name): path.read_bytes() for path in sorted(Path(folder).iterdir())}
    assert sorted(files) == sorted(exhibit.suffixes)
    return files


def grid(
    sources: list[str],
    targets: list[str],
    *,
    methods: tuple[str, ...] = ("adapters",),
    seeds: int = 2,
    holes: float = 0.0,
) -> pd.DataFrame:
    """Cells with made-up scores; a share of `holes` has no result."""
    draw = np.random.default_rng(1)
    rows = [
        ("xnli", "mini", m, s, t, seed, "accuracy", NAN if draw.random() < holes else draw.uniform(30, 95), 100, i)
        for m in methods
        for s in sources
        for i, t in enumerate(targets)
        for seed in range(seeds)
    ]
    return pd.DataFrame(
        rows, columns=["task", "encoder", "method", "source", "target", "seed", "metric", "score", "n", "distance"]
    )


def key(ax: Axes) -> list[str]:
    """The texts of the legend."""
    legend = ax.get_legend()
    return [text.get_text() for text in legend.get_texts()] if legend else []


STATISTICS = {"mean": 1.0, "sd": 0.5, "min": 0.5, "max": 1.5, "n_seeds": 2, "n_seeds_expected": 2}
KEYS = [("xnli", "en", "adapters"), ("xnli", "en", "bitfit"), ("xnli", "fr", "adapters"), ("paws", "fr", "adapters")]


def three_keys() -> printing.Sheet:
    """A table whose rows have three keys."""
    names = ("task", "source", "method")
    counts = STATISTICS | {"n_cells": 2, "n_cells_expected": 2}
    entries = [dict(zip(names, keys, strict=True)) | {"column": "en"} | counts for keys in KEYS]
    order = {name: list(dict.fromkeys(keys[at] for keys in KEYS)) for at, name in enumerate(names)}
    return printing.sheet(pd.DataFrame(entries), title="T", rows=names, order=order | {"column": ["en"]})
