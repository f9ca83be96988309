"""The facts about a language that need no sentence in it: its name, family, script and direction.

A code is one with a row in `table.csv`, the code of a lexicon in `lexicons/`, the code of an artificial language such as
`qa1` (`artificial.py`), or any code of ISO 639-1 and ISO 639-3 (`iso.py`), whose family need not be known. A study can declare
further languages, and facts that are not known (`xlgrid.study.languages`).
"""

import csv
import difflib
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import NamedTuple

from xlgrid.base.names import unknown
from xlgrid.languages.iso import direction_of, renewed, standard

# A tag of BCP 47, or of a locale (`sr@latin`): a code, with or without a script, a region and, after a code of two letters, variants.
# Its case means nothing.
_TAG = re.compile(
    r"([a-z]{2}(?=([-_]\w{2,8})*(@\w+)?$)|[a-z]{3}(?=([-_]([a-z]{4}|[a-z]{2}|[0-9]{3}))*(@\w+)?$)).*", re.IGNORECASE
)
_BARE = ", without a script, region or variant; `names` of `data` states what the data call it"


class Language(NamedTuple):
    """The facts about one language; None for a fact that is not known.

    Attributes:
        script: an ISO 15924 code.
        direction: of writing, "ltr" or "rtl".
    """

    code: str
    name: str
    family: str | None
    script: str | None
    direction: str | None


@cache
def _table() -> dict[str, Language]:
    text = resources.files(__package__).joinpath("table.csv").read_text(encoding="utf-8")
    return {row["code"]: Language(**row) for row in csv.DictReader(text.splitlines())}


@cache
def stated_language(code: str) -> Language | None:
    """The language that xlgrid itself describes by this code, which no study can redefine; None for another code."""
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


@cache
def known_language(code: str) -> Language | None:
    """The language that xlgrid describes by this code, or that ISO 639 has; None if there is none.

    A code of three letters takes the row of the table that has the same language's code of two: `ewe` that of `ee`. The family
    of a language that the table lacks is that of its macrolanguage: `quy` is Quechuan as `qu` is.
    """
    if stated := stated_language(code):
        return stated
    if (known := standard(code)) is None:
        return None
    for same in known.codes:
        if same in _table():
            return _table()[same]._replace(code=code)
    family = next((_table()[above].family for above in known.macrolanguage if above in _table()), None)
    return Language(code, known.name, family, known.script, direction_of(known.script))


def language(code: str, declared: Mapping[str, Language] | None = None) -> Language:
    """The language of a code.

    Args:
        declared: code -> language, for languages that xlgrid does not know.

    Raises:
        ValueError: no such language; names the code of the language meant, or the nearest code and how to add a language.
    """
    from xlgrid.synthetic.natural import natural_codes

    declared = declared or {}
    if (known := declared.get(code) or known_language(code)) is None:
        if meant := _meant(code):
            raise ValueError(
                f"unknown language {code!r}: the code of {meant.name} is {meant.code}{_BARE * bool(re.search('[-_@]', code) and _TAG.fullmatch(code))}"
            )
        codes = dict.fromkeys([*declared, *natural_codes(), *_table()])
        raise ValueError(
            f"{unknown('language', code, codes)}; xlgrid also knows all other codes of ISO 639-1 and ISO 639-3; `new_languages` of "
            "a study declares others, by name, family and script; artificial ones are qa1, qa2, ... (qa to qt, then a number from 1)"
        )
    return known


def _meant(code: str) -> Language | None:
    """The language of a tag with a script, region or variant (`zh-Hans`, `be-tarask`), of a code in capitals, of a retired code (`iw`), or
    of a name."""
    tagged = _TAG.fullmatch(code)
    bare = tagged[1].lower() if tagged else code
    # The code of two letters, if there is one: `en` for `eng_Latn`.
    if tagged and (known := standard(bare)):
        return known_language(known.codes[0])
    return known_language(renewed(bare)) if renewed(bare) != bare else _of_name(code)


def _of_name(name: str) -> Language | None:
    """The language of the table whose name is the nearest to this one; None if no name is like it."""
    languages = {row.name.lower(): row for row in _table().values()}
    near = difflib.get_close_matches(name.lower(), languages, n=1, cutoff=0.8)
    return languages[near[0]] if near else None
