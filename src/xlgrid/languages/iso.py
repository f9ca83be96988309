"""Languages of ISO 639-1 and ISO 639-3: their names are those of the standard, their scripts those of Unicode's CLDR.

The package python-iso639 has the tables of the standard, and Babel those of CLDR. Neither names families. Both packages are
imported only where a code is looked up.
"""

from functools import cache
from typing import NamedTuple

# The scripts from right to left (ISO 15924) among the likely scripts of CLDR.
_RIGHT_TO_LEFT = (
    "Adlm Arab Armi Avst Chrs Cprt Elym Gara Hatr Hebr Hung Khar Lydi Mand Mani Mend Merc Mero Narb Nbat Nkoo Orkh Ougr Palm Phli "
    "Phlp Phnx Prti Rohg Samr Sarb Sogd Sogo Syrc Thaa Yezi"
)
RIGHT_TO_LEFT = frozenset(_RIGHT_TO_LEFT.split())


class Standard(NamedTuple):
    """A language of the standard.

    Attributes:
        codes: its codes, that of two letters first if it has one.
        macrolanguage: the codes of the macrolanguage to which it belongs, likewise; empty if there is none. Ayacucho Quechua
            (`quy`) belongs to Quechua (`qu`, `que`).
        script: the ISO 15924 code of the script in which it is most often written; None if CLDR does not know it.
    """

    codes: tuple[str, ...]
    macrolanguage: tuple[str, ...]
    name: str
    script: str | None


@cache
def standard(code: str) -> Standard | None:
    """The language of a code of two letters (ISO 639-1) or three (ISO 639-3); None if the standard has no such language.

    Codes that are retired, or that name no single language (`mul`, `und`), do not count.
    """
    from iso639 import Language, LanguageNotFoundError

    try:
        entry = Language.from_part1(code) if len(code) == 2 else Language.from_part3(code)
    except LanguageNotFoundError:
        return None
    if entry.status != "A" or entry.scope == "S" or code not in (entry.part1, entry.part3):
        return None
    codes = _codes(entry.part1, entry.part3)
    above = standard(entry.macrolanguage) if entry.macrolanguage else None
    return Standard(codes, above.codes if above else (), entry.name, _script(codes))


def renewed(code: str) -> str:
    """The code in place of one that is retired or bibliographic (CLDR, languageAlias: `iw` is now `he`, and `ger` is `de`)."""
    from babel.core import get_global

    return str(get_global("language_aliases").get(code, code)).partition("_")[0]


def _codes(*codes: str | None) -> tuple[str, ...]:
    return tuple(filter(None, codes))


def _script(codes: tuple[str, ...]) -> str | None:
    """The likely script of a language (CLDR, likelySubtags), which CLDR may know by another code (languageAlias: `cmn` is `zh`)."""
    from babel.core import get_global

    likely, aliases = get_global("likely_subtags"), get_global("language_aliases")
    for tag in (*codes, *(aliases[code] for code in codes if code in aliases)):
        language, *subtags = tag.split("_")
        if scripts := [subtag for subtag in subtags if len(subtag) == 4]:
            return str(scripts[0])
        if whole := likely.get(tag) or likely.get(language):
            return str(whole.split("_")[1])
    return None


def direction_of(script: str | None) -> str | None:
    """The direction of writing of a script: "ltr" or "rtl"; None if the script is not known."""
    return script and ("rtl" if script in RIGHT_TO_LEFT else "ltr")
