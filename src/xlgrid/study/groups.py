"""Groups of sources and targets: the members that a grid's group stands for, and the targets that an exhibit's group has."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xlgrid.base.names import unknown
from xlgrid.languages import Language
from xlgrid.languages.sources import NONE, Source, Target

# Before the name of a group whose members are the parts of one source.
MIX = "mix:"


def expand(value: str, languages: Mapping[str, Language], groups: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The languages, pairs or mixes that a source or target in a grid stands for: itself, or the members of a group. The
    source `none` stands for itself, and `mix:nli` for the one mix of all members of the group `nli`.

    Args:
        languages: code -> language, for those over which the built-in groups range.
        groups: the groups that the study names.

    Raises:
        ValueError: there is no such language or group, or the family or script of a language is not known and the group asks for
            it.
    """
    codes = [*languages]
    if value in groups:
        return tuple(groups[value])
    if value == "mono":
        return tuple(codes)
    if value == NONE:
        return (NONE,)
    if value.startswith(MIX):
        members = expand(value.removeprefix(MIX), languages, groups)
        parts = dict.fromkeys(part for member in members if member != NONE for part in Source(member).parts)
        if not parts:
            raise ValueError(f"{value} has no members: name a group of languages or pairs")
        return ("+".join(parts),)
    if value.startswith(("family:", "script:")):
        attribute, _, name = value.partition(":")
        names = _facts(value, attribute, languages)
        if name not in names.values():
            raise ValueError(unknown(attribute, name, names.values()))
        return tuple(code for code in codes if names[code] == name)
    if value.endswith("-X") and value[:-2] in codes:
        return tuple(f"{value[:-2]}-{code}" for code in codes if code != value[:-2])
    if value.startswith("X-") and value[2:] in codes:
        return tuple(f"{code}-{value[2:]}" for code in codes if code != value[2:])
    source = Source(value)
    for code in source.languages if source.for_target is None else (value,):
        if code not in codes:
            pairs = [*(f"{each}-X" for each in codes), *(f"X-{each}" for each in codes)]
            raise ValueError(unknown("language or group", code, [*codes, "mono", *pairs, *groups]))
    return (value,)


def in_settings(settings: Mapping[str, Any], expand: Callable[[str], Sequence[str]]) -> dict[str, Any]:
    """Settings of a training with the groups among `dev_targets` replaced by their members; null means no targets.

    `Training` refuses what is neither a name nor a list of names.

    Raises:
        ValueError: there is no such language or group.
    """
    if "dev_targets" not in settings:
        return dict(settings)
    named = settings["dev_targets"]
    names = [named] if isinstance(named, str) else [] if named is None else named
    if not isinstance(names, (list, tuple)):
        return dict(settings)
    return {**settings, "dev_targets": [member for value in names for member in expand(str(value))]}


def belongs(
    group: str,
    source: Source,
    target: Target,
    languages: Mapping[str, Language],
    groups: Mapping[str, Sequence[str]],
) -> bool:
    """Whether a cell belongs to a group of an exhibit. A group is named by its targets, or by the relation of the target to
    the source; `zero-shot:en-X` has the targets of `en-X` that are `zero-shot`, and likewise for every relation. Of the
    source `none`, no target has a relation.

    Args:
        languages: code -> language, for those of the study.
        groups: the groups that the study names.

    Raises:
        ValueError: there is no such group, or the family or script of a language is not known and the group asks for it.
    """
    codes, known = [*languages], set(source.languages)
    ends = target.languages

    def all_share(attribute: str) -> bool:
        """Whether each language of the target has the family or script of a language of the source."""
        facts = _facts(group, attribute, languages)
        return {facts[code] for code in ends} <= {facts[code] for code in known}

    relation: dict[str, Callable[[], bool]] = {
        "all": lambda: True,
        "in-language": lambda: target in source.parts,
        "zero-shot": lambda: target not in source.parts,
        "new-language": lambda: any(code not in known for code in ends),
        "same-family": lambda: all_share("family") and target not in source.parts,
        "other-family": lambda: not all_share("family"),
        "same-script": lambda: all_share("script") and target not in source.parts,
        "other-script": lambda: not all_share("script"),
        "mono": lambda: len(ends) == 1,
    }
    if group in relation:
        # No target is related to a source on which nothing was trained.
        return relation[group]() and (source != NONE or group in ("all", "mono"))
    if group in groups:
        return target in groups[group]
    narrower, _, wider = group.partition(":")
    if wider and narrower in relation:
        # Both are asked in any case, so that a mistake in either shows.
        return all([belongs(name, source, target, languages, groups) for name in (wider, narrower)])
    if group.startswith(("family:", "script:")):
        attribute, _, name = group.partition(":")
        names = _facts(group, attribute, languages)
        if name not in names.values():
            raise ValueError(unknown(attribute, name, sorted(names.values())))
        return all(names[code] == name for code in ends)
    if group.endswith("-X") and group[:-2] in codes:
        return len(ends) == 2 and ends[0] == group[:-2]
    if group.startswith("X-") and group[2:] in codes:
        return len(ends) == 2 and ends[1] == group[2:]
    pairs = [f"{code}-X" for code in codes] + [f"X-{code}" for code in codes]
    raise ValueError(unknown("group", group, [*relation, *groups, *pairs, "family:NAME", "script:NAME"]))


def _facts(group: str, attribute: str, languages: Mapping[str, Language]) -> dict[str, str]:
    """Code -> the family or script of each language, over which a group ranges.

    Raises:
        ValueError: it is not known of some.
    """
    facts = {code: getattr(language, attribute) for code, language in languages.items()}
    if unknown_codes := [code for code, fact in facts.items() if fact is None]:
        named = ", ".join(f"{code} ({languages[code].name})" for code in unknown_codes)
        example = "Latn" if attribute == "script" else "..."
        raise ValueError(
            f"group {group!r} asks for the {attribute} of each language, and that of {named} is not known: declare it, as in "
            f"`new_languages: {{{unknown_codes[0]}: {{{attribute}: {example}}}}}`"
        )
    return facts
