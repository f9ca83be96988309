"""Distances of other packages as tables of pairs. xlgrid does not depend on these packages."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import combinations, permutations
from pathlib import Path
from typing import Any, NamedTuple

from xlgrid.base.files import write_text
from xlgrid.base.names import unknown
from xlgrid.languages import Language
from xlgrid.languages.iso import standard
from xlgrid.pairs.table import COLUMNS

# (a, b) -> the distance of languages a and b, for those that the package knows.
Distances = Mapping[tuple[str, str], float]


class Package(NamedTuple):
    """A package that computes distances: its kinds of distances, the default first, and the function for one kind, which
    gets the module, the languages, the kind, and the folder with the data of the package, if the user names one."""

    module: str
    kinds: tuple[str, ...]
    distances: Callable[[Any, Sequence[Language], str, Path | None], Distances]


def _urielplus(module: Any, languages: Sequence[Language], kind: str, data: Path | None) -> Distances:
    """URIEL+ (Khan et al. 2025) knows languages by their codes of three letters, and has -1 for a missing distance."""
    base = module.URIELPlus()
    # All of its tables have the same languages.
    of_three = {each.code: known.codes[-1] for each in languages if (known := standard(each.code))}
    codes = {code: name for code, name in of_three.items() if name in set(base.langs[0])}
    if len(codes) < 3:
        raise ValueError(f"urielplus knows {len(codes)} of the languages ({', '.join(codes)}): name three or more")
    matrix = base.new_distance(kind, [*codes.values()])
    pairs = combinations(enumerate(codes), 2)
    return {(one, other): float(matrix[i][j]) for (i, one), (j, other) in pairs if matrix[i][j] >= 0}


def _qwals(module: Any, languages: Sequence[Language], kind: str, data: Path | None) -> Distances:
    """qWALS (Eronen et al. 2026) reads WALS as `wals-data.csv` and `WALS_feature_order.csv`, and raises a ValueError for
    an unknown language and for two languages without a common feature."""
    if data is None or not (data / "wals-data.csv").is_file():
        raise ValueError(
            "qwals has no data of its own: name the folder with wals-data.csv, and perhaps WALS_feature_order.csv, by --data"
        )
    calculator = module.QwalsCalculator.from_folder(data)
    names: dict[str, str] = {}
    for each in languages:
        # WALS has names, and qwals knows codes of two letters.
        for name in (each.code, each.name) if len(each.code) == 2 else (each.name,):
            with suppress(ValueError):
                names.setdefault(each.code, calculator.resolve_language(name))
    found = {}
    for one, other in combinations(names, 2):
        with suppress(ValueError):
            found[one, other] = float(calculator.distance(names[one], names[other], method=kind))
    return found


_OF_URIEL = ("featural", "syntactic", "phonological", "inventory", "morphological", "genetic", "geographic", "script")
PACKAGES = {
    "urielplus": Package("urielplus.urielplus", _OF_URIEL, _urielplus),
    "qwals": Package("qwals", ("ordinal", "onehot"), _qwals),
}


def write(package: str, languages: Sequence[Language], kind: str | None, data: Path | None, output: Path) -> str:
    """Write the distances of a package as a table of pairs, in both directions, with an empty value where one is missing.

    Returns:
        A sentence about what the table has.

    Raises:
        ValueError: the package is not installed or lacks its data, or it has no such kind of distance.
    """
    entry = PACKAGES[package]
    kind = entry.kinds[0] if kind is None else kind
    if kind not in entry.kinds:
        raise ValueError(f"--kind: {unknown('kind of distance', kind, entry.kinds)}")
    try:
        module = import_module(entry.module)
    except ImportError as error:
        raise ValueError(
            f"the package {package} is missing ({error}): `pip install {package}`, then run the same command again"
        ) from None
    found = entry.distances(module, languages, kind, data)
    both = {**found, **{(other, one): value for (one, other), value in found.items()}}
    pairs = [*permutations([each.code for each in languages], 2)]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *((*pair, both.get(pair, "")) for pair in pairs)])
    write_text(output, text.getvalue())
    without = [each.code for each in languages if not any(each.code in pair for pair in found)]
    none = f", and {', '.join(without)} {'have' if len(without) > 1 else 'has'} none" if without else ""
    return f"{len(both)} of {len(pairs)} pairs have a value, the {kind} distance of {package}{none}"
