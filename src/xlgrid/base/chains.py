"""Names that follow one another, and the first mistakes of checks that rely on one another."""

from collections.abc import Callable, Iterable


def chain(first: str, following: Callable[[str], str | None]) -> list[str]:
    """The names that follow a name, the nearest first. If they form a circle, the list ends with the first name that comes again.

    Args:
        following: name -> the next name, or None.
    """
    names = [first]
    while name := following(names[-1]):
        names.append(name)
        if name in names[:-1]:
            break
    return names[1:]


def circle(first: str, following: Callable[[str], Iterable[str]]) -> list[str]:
    """A shortest way from a name back to itself, with the name at both ends; empty if there is none.

    Args:
        following: name -> the next names.
    """
    ways, seen = [[first]], {first}
    for way in ways:
        for name in following(way[-1]):
            if name == first:
                return [*way, name]
            if name not in seen:
                seen.add(name)
                ways.append([*way, name])
    return []


def first_mistakes(*checks: Iterable[str]) -> list[str]:
    """The mistakes of the first check that has any. Checks are read one after another, so that a later one may rely on the earlier ones."""
    return next(filter(None, map(list, checks)), [])
