"""The order of the labels of an axis: blocks of languages of the same family or group, then pairs, then mixes."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from xlgrid.languages.sources import NONE, Source

UNKNOWN = "family not known"


@dataclass(frozen=True)
class Block:
    """Neighbouring labels of an axis that belong together. The line between blocks of the same `family` is weaker."""

    family: str
    script: str
    codes: tuple[str, ...]


def codes_of(blocks: Sequence[Block]) -> list[str]:
    """The labels of some blocks in their order."""
    return [code for block in blocks for code in block.codes]


def by_family(codes: Sequence[str], languages: Mapping[str, Any], among: Sequence[str] | None = None) -> list[Block]:
    """Order the labels of an axis: languages by family, then script; then pairs by direction; then mixes.

    Families, scripts and languages keep the order in which they first appear.

    Args:
        codes: languages (`en`), pairs (`en-fr`, context - question) and mixes (`en+en-fr`), without repetition.
        languages: code -> an object with `family` and `script`, which are None if they are unknown. Languages of
            unknown family form a family, and codes that are missing form the family `other`.
        among: all labels of the figure, so that both axes have the same order and the same pivot language; the default
            is `codes`.
    """
    among = list(dict.fromkeys(codes if among is None else among))
    parts = dict.fromkeys(part for code in among for part in Source(code).parts)
    pairs = [part.languages for part in parts if part.is_pair]
    pivot = Counter(code for pair in pairs for code in pair).most_common(1)[0][0] if pairs else ""
    directions = [f"{pivot}-X", f"X-{pivot}", "other pairs"]

    def place(code: str) -> tuple[str, str]:
        part, *others = Source(code).parts
        if others:
            return "mixed", ""
        if part.is_pair:
            context, question = part.languages
            return directions[0 if context == pivot else 1 if question == pivot else 2], ""
        language = languages.get(code)
        return (language.family or UNKNOWN, language.script or "") if language else ("other", "")

    places = list(dict.fromkeys(map(place, among)))
    families = list(dict.fromkeys(family for family, _ in places))

    def rank(code: str) -> tuple[int, ...]:
        family, script = place(code)
        part, *others = Source(code).parts
        if others:
            return 2, among.index(code)
        if part.is_pair:
            return 1, directions.index(family), *(order.get(end, len(order)) for end in part.languages)
        return 0, families.index(family), places.index((family, script)), among.index(code)

    order: dict[str, int] = {}
    order |= {code: i for i, code in enumerate(sorted((c for c in among if Source(c).languages == (c,)), key=rank))}
    members = groupby(sorted(codes, key=rank), key=place)
    return [Block(family, script, tuple(group)) for (family, script), group in members]


def by_group(codes: Sequence[str], groups: Sequence[str], belongs: Callable[[str, str, str], bool]) -> list[Block]:
    """The labels of an axis in blocks by group: each label is in its first group; labels without a group are last, as
    `other`.

    Args:
        codes: the labels, in their order within a block.
        belongs: whether a target (third argument) belongs to a group (first) for a source (second). Sources are
            checked as targets.
    """

    def group_of(code: str) -> str:
        # A mix is not a target, and no run is trained on the source `none`.
        is_target = code != NONE and len(Source(code).parts) == 1
        return next((group for group in groups if is_target and belongs(group, code, code)), "other")

    of = {code: group_of(code) for code in codes}
    return [
        Block(group, "", members)
        for group in (*groups, "other")
        if (members := tuple(code for code in codes if of[code] == group))
    ]
