"""Values of pairs that need no file: same family, same script, and the great-circle distance.

`coordinates.csv` has the coordinates of Glottolog 5.1 (Hammarström, Forkel, Haspelmath and Bank 2024; CC BY 4.0).
"""

import csv
from collections.abc import Callable
from functools import cache
from importlib import resources
from math import asin, cos, radians, sin, sqrt
from typing import NamedTuple

from xlgrid.languages import Language
from xlgrid.languages.iso import standard

# The mean radius of the Earth in km (IUGG).
RADIUS = 6371.0088


class BuiltIn(NamedTuple):
    """A built-in table. `value` returns None if a fact that it needs is not known. See `PairValues` for the others."""

    quantity: str
    lowest_is_nearest: bool
    value: Callable[[Language, Language], float | None]


@cache
def _table() -> dict[str, tuple[float, float]]:
    text = resources.files(__package__).joinpath("coordinates.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return {row["code"]: (float(row["latitude"]), float(row["longitude"])) for row in rows}


@cache
def coordinates(code: str) -> tuple[float, float] | None:
    """The latitude and longitude of a language in degrees, by its code of ISO 639; None if they are not known.

    A point stands for a whole area: that of English is in England, wherever else English is spoken.
    """
    known = standard(code)
    codes = known.codes if known else (code,)
    return next((_table()[each] for each in codes if each in _table()), None)


def great_circle(source: Language, target: Language) -> float | None:
    """The great-circle distance of two languages in km, on a sphere (the haversine formula)."""
    here, there = coordinates(source.code), coordinates(target.code)
    if here is None or there is None:
        return None
    (north, east), (other_north, other_east) = map(radians, here), map(radians, there)
    half = sin((other_north - north) / 2) ** 2
    half += cos(north) * cos(other_north) * sin((other_east - east) / 2) ** 2
    return 2 * RADIUS * asin(min(1.0, sqrt(half)))


def _same(fact: str) -> Callable[[Language, Language], float | None]:
    def value(source: Language, target: Language) -> float | None:
        facts = getattr(source, fact), getattr(target, fact)
        return None if None in facts else float(facts[0] == facts[1])

    return value


BUILT_IN: dict[str, BuiltIn] = {
    "same-family": BuiltIn("same family (1) or not (0)", False, _same("family")),
    "same-script": BuiltIn("same script (1) or not (0)", False, _same("script")),
    "great-circle": BuiltIn("great-circle distance (km)", True, great_circle),
}
