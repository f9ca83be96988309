"""The facts about a language that need no sentence in it: its name, family, script and direction.

A code is an ISO 639 code with a row in `table.csv`, the code of a lexicon in `lexicons/`, or the code of an artificial
language such as `qa1` (`artificial.py`). A study can declare further languages (`xlgrid.study.languages`).
"""

import csv
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import NamedTuple

from xlgrid.base.names import unknown


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
def known_language(code: str) -> Language | None:
    """The language that xlgrid knows by this code; None if there is none."""
    from xlgrid.synthetic.artificial import artificial, is_artificial
    from xlgrid.synthetic.natural import lexicon, natural_codes

    if code in _table():
        return _table()[code]
    if is_artificial(code):
        made_up = artificial(code)
        return Language(code, made_up.name, made_up.family, made_up.script, made_up.direction)
    if code in natural_codes():
        natural = lexicon(code)
        return Language(code, natural.english, natural.family, natural.script, natural.direction)
    return None


def language(code: str, declared: Mapping[str, Language] | None = None) -> Language:
    """The language of a code.

    Args:
        declared: code -> language, for languages that xlgrid does not know.

    Raises:
        ValueError: no such language; names the nearest codes and how to add one.
    """
    from xlgrid.synthetic.natural import natural_codes

    declared = declared or {}
    if (known := declared.get(code) or known_language(code)) is None:
        codes = dict.fromkeys([*declared, *natural_codes(), *_table()])
        raise ValueError(
            f"{unknown('language', code, codes)}; `new_languages` of a study declares others, by name, family and script; "
            "artificial ones are qa1, qa2, ... (qa to qt, then a number from 1)"
        )
    return known
