"""Methods, heads, tasks and other parts that the papers and other installed packages add to the core, by entry points.

The papers of `xlgrid.papers` declare their parts in pyproject.toml, as any package does.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from xlgrid.base.names import unknown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


@dataclass(frozen=True)
class Extensible(Generic[T]):
    """Everything of one kind by name: what the core has, and what installed packages declare as entry points.

    A name of xlgrid, of the core or of a paper, always means xlgrid's own. The entry points of other packages are read only for
    another name, because reading them takes time at the start of a process.

    Attributes:
        what: the kind in words, such as "method".
        group: the group of the entry points, such as "xlgrid.methods".
        builtin: name -> what the core has.
        fits: (name, object) -> whether an entry point of this name may have this object as its value.
        expected: what `fits` asks for, in words.
        imported: name -> what has been imported from packages so far.
    """

    what: str
    group: str
    builtin: Mapping[str, T]
    fits: Callable[[str, Any], bool]
    expected: str
    imported: dict[str, T] = field(default_factory=dict)

    def get(self, name: str) -> T | None:
        """The object with this name; None if neither xlgrid nor a package declares it.

        Raises:
            ValueError: two packages declare the name, or the entry point cannot be imported or has an unsuitable value; the
                message names the package.
        """
        if name in self.builtin:
            return self.builtin[name]
        if name not in self.imported and (point := self._entry_point(name)):
            self.imported[name] = self._load(point)
        return self.imported.get(name)

    def find(self, name: str) -> T:
        """The object with this name.

        Raises:
            ValueError: the name is unknown (the message suggests the nearest name), or `get` raises an error.
        """
        if (value := self.get(name)) is None:
            raise ValueError(unknown(self.what, name, self.names()))
        return value

    def names(self) -> list[str]:
        """All names, those of xlgrid first. Nothing is imported for them."""
        points = (point.name for point in self._entry_points())
        return list(dict.fromkeys([*self.builtin, *_own_points(self.group), *points]))

    @property
    def own(self) -> dict[str, T]:
        """Name -> object, of everything that comes with xlgrid: that of the core and that of the papers."""
        of_papers = {name: self.find(name) for name in _own_points(self.group)}
        return {**self.builtin, **of_papers}

    def known(self) -> Iterator[T]:
        """The objects of xlgrid, and all objects that were imported from other packages so far."""
        yield from {**self.own, **self.imported}.values()

    def package(self, name: str) -> dict[str, str]:
        """The package that declares a name, and its version; empty for a name of xlgrid."""
        is_own = name in self.builtin or name in _own_points(self.group)
        if is_own or (point := self._entry_point(name)) is None or point.dist is None:
            return {}
        return {point.dist.name: point.dist.version}

    def _entry_points(self) -> "list[EntryPoint]":
        from importlib.metadata import entry_points

        return [*entry_points(group=self.group)]

    def _entry_point(self, name: str) -> "EntryPoint | None":
        if own := _own_points(self.group).get(name):
            return own
        points = [point for point in self._entry_points() if point.name == name]
        if len(points) > 1:
            packages = " and ".join(sorted(map(_package, points)))
            raise ValueError(
                f"the {self.what} {name!r} is declared by {packages}: uninstall all of these packages but one, or rename "
                f"an entry point of the group {self.group!r}"
            )
        return points[0] if points else None

    def _load(self, point: "EntryPoint") -> T:
        where = f"the {self.what} {point.name!r} of the package {_package(point)} ({point.value})"
        try:
            value = point.load()
        except (Exception, SystemExit) as error:  # An import runs the package's code, which can fail in any way.
            raise ValueError(
                f"cannot import {where}: {type(error).__name__}: {error}; correct or uninstall the package"
            ) from error
        if not self.fits(point.name, value):
            raise ValueError(f"{where} is {value!r}, expected {self.expected}; correct or uninstall the package")
        return value


def is_subclass_of(kind: type) -> Callable[[str, Any], bool]:
    """The `fits` of an `Extensible` whose entry points are subclasses of a class."""
    return lambda name, value: isinstance(value, type) and issubclass(value, kind)


@cache
def _own_points(group: str) -> "dict[str, EntryPoint]":
    """Name -> entry point that xlgrid itself declares, in alphabetical order, which does not depend on how xlgrid was installed."""
    from importlib.metadata import EntryPoint, PackageNotFoundError, distribution

    try:
        points = [*distribution("xlgrid").entry_points.select(group=group)]
    except PackageNotFoundError:
        # A checkout is on the path, and nothing is installed.
        project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        points = [EntryPoint(name, value, group) for name, value in project["entry-points"].get(group, {}).items()]
    return {point.name: point for point in sorted(points, key=lambda point: point.name)}


def _package(point: "EntryPoint") -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "without a name"
