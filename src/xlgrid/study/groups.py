"""Groups of sources and targets: the members of a group in a grid, and the targets of a group in an exhibit."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xlgrid.base.names import among, unknown
from xlgrid.languages import Language
from xlgrid.languages.sources import NONE, Source, Target
from xlgrid.study.languages import LANGUAGE

if TYPE_CHECKING:
    from xlgrid.study.schema import Study

# The prefix of a group whose members are the parts of one source.
MIX = "mix:"
# Group of an exhibit -> whether a target has this relation to a source. The third argument is a function that tells for
# the attribute `family` or `script` whether each language of the target shares it with a language of the source.
RELATIONS: dict[str, Callable[[Source, Target, Callable[[str], bool]], bool]] = {
    "all": lambda source, target, shares: True,
    "in-language": lambda source, target, shares: target in source.parts,
    "zero-shot": lambda source, target, shares: target not in source.parts,
    "new-language": lambda source, target, shares: any(code not in source.languages for code in target.languages),
    "same-family": lambda source, target, shares: shares("family") and target not in source.parts,
    "other-family": lambda source, target, shares: not shares("family"),
    "same-script": lambda source, target, shares: shares("script") and target not in source.parts,
    "other-script": lambda source, target, shares: not shares("script"),
    "mono": lambda source, target, shares: len(target.languages) == 1,
}


def expand(value: str, languages: Mapping[str, Language], groups: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The languages, pairs or mixes that a source or target in a grid means.

    The name of a group means its members, and `mix:nli` means one mix of all members of the group `nli`. Any other
    value, such as `none`, means itself.

    Args:
        languages: code -> language, for the languages in the built-in groups.
        groups: the groups that the study defines.

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


def problems(study: "Study") -> Iterator[str]:
    """Mistakes in the groups that a study defines, each as `place: what is wrong`."""
    taken = {
        **dict.fromkeys(
            RELATIONS, "exhibits and claims have a group of this name, the relation of a target to the source"
        ),
        **dict.fromkeys(study.languages, "a language of this study has this name"),
        NONE: "this is the source of methods without training",
    }
    for name, members in study.groups.items():
        place = f"groups.{name}"
        if name in taken:
            yield f"{place}: {taken[name]}: choose another name"
        for i, member in enumerate(members):
            if member in members[:i]:
                yield f"{place}.{i}: {member} is in the group twice: leave it out here"
        codes = [code for member in members for code in Source(member).languages]
        yield from among(place, LANGUAGE, codes, study.languages)


def in_settings(settings: Mapping[str, Any], expand: Callable[[str], Sequence[str]]) -> dict[str, Any]:
    """Settings of a training with the groups among `dev_targets` replaced by their members; null means no targets.

    Other values than a name or a list of names stay, and `Training` refuses them.

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
    """Whether a cell belongs to a group of an exhibit.

    A group is a group of targets, a relation of the target to the source, or both: `zero-shot:en-X` has the targets of
    `en-X` that are `zero-shot`. No target has a relation to the source `none`.

    Args:
        languages: code -> language, for the languages of the study.
        groups: the groups that the study defines.

    Raises:
        ValueError: there is no such group, or the family or script of a language is not known and the group asks for it.
    """
    codes, ends = [*languages], target.languages

    def shares(attribute: str) -> bool:
        facts = _facts(group, attribute, languages)
        return {facts[code] for code in ends} <= {facts[code] for code in source.languages}

    if group in RELATIONS:
        # No target is related to a source on which nothing was trained.
        return RELATIONS[group](source, target, shares) and (source != NONE or group in ("all", "mono"))
    if group in groups:
        return target in groups[group]
    narrower, _, wider = group.partition(":")
    if wider and narrower in RELATIONS:
        # Both sides are evaluated, so that a mistake in either one raises an error.
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
    raise ValueError(unknown("group", group, [*RELATIONS, *groups, *pairs, "family:NAME", "script:NAME"]))


def group_facts(names: Iterable[str], languages: Mapping[str, Language], groups: Mapping[str, Sequence[str]]) -> str:
    """The members of some groups of an exhibit, and the family and script of each language, as JSON.

    If this text changes, other targets may belong to the groups.
    """
    parts = {part for name in names for part in name.split(":")}
    members = {name: [*groups[name]] for name in groups if name in parts}
    facts = {code: [language.family, language.script] for code, language in languages.items()}
    return json.dumps([members, facts], ensure_ascii=False)


def _facts(group: str, attribute: str, languages: Mapping[str, Language]) -> dict[str, str]:
    """Code -> the family or script of each language, for a group that depends on it.

    Raises:
        ValueError: the family or script of a language is not known.
    """
    facts = {code: getattr(language, attribute) for code, language in languages.items()}
    if unknown_codes := [code for code, fact in facts.items() if fact is None]:
        named = ", ".join(f"{code} ({languages[code].name})" for code in unknown_codes)
        example = "Latn" if attribute == "script" else "..."
        raise ValueError(
            f"group {group!r} needs the {attribute} of each language, but the {attribute} of {named} is not known: "
            f"declare it, as in `new_languages: {{{unknown_codes[0]}: {{{attribute}: {example}}}}}`"
        )
    return facts
