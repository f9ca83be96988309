"""The messages for names that do not exist, or that no grid uses."""

import difflib
from collections.abc import Iterable, Iterator, Sequence

# What separates values in files that are called csv or tsv.
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}


def unknown(what: str, got: object, allowed: Iterable[object]) -> str:
    """A message that states the unknown name, the nearest of the allowed names, and all allowed names.

    Args:
        what: what the name is of, such as "language".
        got: the unknown name.
        allowed: all names that exist; repeated names are listed once.
    """
    names = list(dict.fromkeys(map(str, allowed)))
    by_letters = {name.casefold(): name for name in reversed(names)}
    near = difflib.get_close_matches(str(got).casefold(), by_letters, n=1, cutoff=0.65)
    hint = f", did you mean {by_letters[near[0]]!r}?" if near else ""
    return f"unknown {what} {str(got)!r}{hint} (there are: {', '.join(names) or 'none'})"


def missing_column(name: str, known: Sequence[str]) -> str:
    """What is wrong with a table of the known columns, which has no column `name`, as an error says it."""
    first, *others = [*known] or [""]
    if separators := [word for mark, word in _SEPARATORS.items() if not others and mark in first]:
        return (
            f"its first line is one value, {first!r}. csv separates values by commas and tsv by tabs, and this file seems to have "
            f"{separators[0]}: write it anew, or end its name accordingly"
        )
    return unknown("column", name, known)


def among(
    place: str, what: str, values: Iterable[object], known: Iterable[object], defined: Iterable[object] = ()
) -> Iterator[str]:
    """A problem for each of `values` that is not `known`.

    Args:
        defined: names that the study defines, though no grid uses all of them.
    """
    known, defined = list(known), list(defined)
    for value in values:
        if value not in known:
            yield f"{place}: {unknown_or_unused(what, value, known, defined)}"


def unknown_or_unused(what: str, value: object, known: Iterable[object], defined: Iterable[object]) -> str:
    """A sentence: there is no such name, or the study defines it and no grid uses it."""
    if value in defined:
        return f"no grid uses {what} {str(value)!r}, which the study defines: name it in a grid, or leave it out here"
    return unknown(what, value, known)
