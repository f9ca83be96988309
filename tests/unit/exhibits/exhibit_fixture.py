"""Rendering of an exhibit from a frame of cells, without a study."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
from pydantic import TypeAdapter

from xlgrid.exhibits import AnyExhibit

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
) -> dict[str, bytes]:
    """The files of the exhibit, suffix -> contents; no other file is written."""
    exhibit = EXHIBIT.validate_python({"title": "Some scores"} | spec)
    study = SimpleNamespace(belongs=belongs, languages_used=languages or {}, methods=methods or {})
    rendering = exhibit.of_scores(study, cells, runs)
    exhibit.write(name, folder, rendering)
    if exhibit.is_compared:
        exhibit.write_comparison(name, folder, rendering)
    files = {path.name.removeprefix(name): path.read_bytes() for path in sorted(Path(folder).iterdir())}
    assert sorted(files) == sorted(exhibit.suffixes)
    return files
