"""The files that papers and other installed packages bring: studies, published numbers, and rules.

A package declares its folder as an entry point of the group `xlgrid.papers`. The folder may have `studies/`, `reference/` and `rules.smk`.
"""

import sys
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from xlgrid.base.files import SHIPPED
from xlgrid.base.plugins import Extensible

PAPERS = Extensible[ModuleType](
    "paper", "xlgrid.papers", {}, lambda name, value: hasattr(value, "__path__"), expected="a package"
)


def folders() -> dict[str, Path]:
    """Name -> folder of each paper."""
    return _folders(tuple(sys.path))


# Reading the entry points of all packages takes time.
@lru_cache
def _folders(path: tuple[str, ...]) -> dict[str, Path]:
    return {name: Path(next(iter(PAPERS.find(name).__path__))) for name in PAPERS.names()}


def shipped_studies() -> list[Path]:
    """The studies that come with xlgrid and with other packages."""
    places = [SHIPPED / "studies", *(folder / "studies" for folder in folders().values())]
    return [file for place in places for file in sorted(place.glob("*.yaml"))]


def study_file(name: str) -> Path:
    """The file of a study: in studies/ of the project, as a path from the working directory, or else the one that comes with xlgrid or
    with another package."""
    path = Path("studies") / f"{name}.yaml"
    if path.is_file():
        return path
    return next((_from_here(file) for file in shipped_studies() if file.stem == name), path)


def published_file(name: str) -> Path:
    """The file of published numbers, `{paper}/{exhibit}`: in reference/ of the project, or else the one that comes with the paper or
    with xlgrid."""
    path = Path("reference") / f"{name}.csv"
    if path.is_file():
        return path
    paper = path.parent.name
    shipped = (folders()[paper] / "reference" if paper in folders() else SHIPPED / path.parent) / path.name
    return _from_here(shipped) if shipped.is_file() else path


def rule_files() -> list[Path]:
    """The files of rules that papers and other packages add."""
    return [file for folder in folders().values() if (file := folder / "rules.smk").is_file()]


def _from_here(path: Path) -> Path:
    """A path from the working directory, where the file is below it, so that a project may move."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
