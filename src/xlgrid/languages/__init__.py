"""What is known of a language before anything is said in it: its name, family, script and direction.

A code is an ISO 639 code with a row in `table.csv`, the code of a lexicon in `lexicons/`, or the code of an artificial
language such as `qa1` (`artificial.py`).
"""

import csv
import difflib
from functools import cache
from importlib import resources
from typing import NamedTuple


class Language(NamedTuple):
    """`script` is an ISO 15924 code, `direction` is "ltr" or "rtl"."""

    code: str
    name: str
    family: str
    script: str
    direction: str


@cache
def _table() -> dict[str, Language]:
    text = resources.files(__package__).joinpath("table.csv").read_text(encoding="utf-8")
    return {row["code"]: Language(**row) for row in csv.DictReader(text.splitlines())}


@cache
def language(code: str) -> Language:
    """The language of a code.

    Raises:
        ValueError: no such language; names the nearest codes and how to add one.
    """
    from xlgrid.languages.artificial import artificial, is_artificial
    from xlgrid.languages.natural import lexicon, natural_codes

    if code in _table():
        return _table()[code]
    if is_artificial(code):
        made = artificial(code)
        return Language(made.code, made.name, made.family, made.script, made.direction)
    if code in natural_codes():
        told = lexicon(code)
        return Language(told.code, told.english, told.family, told.script, told.direction)
    near = difflib.get_close_matches(code, [*_table(), *natural_codes()], n=3, cutoff=0.4)
    hint = f"; nearest: {', '.join(near)}" if near else ""
    raise ValueError(
        f"unknown language {code!r}{hint}. Known: the ISO 639 codes in src/xlgrid/languages/table.csv (add a row for another) "
        "and artificial languages such as qa1 (qa to qt, then a number from 1)"
    )


def parts(code: str) -> tuple[str, ...]:
    """The languages of a target: one, or the context's and the question's of a pair such as `en-fr`."""
    return tuple(code.split("-"))
