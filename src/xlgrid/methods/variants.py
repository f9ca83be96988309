"""Variants: a method with other settings of training, under a name that states them, such as `bitfit@epochs=5@lr=2e-05`.

A study gets variants from other parts, such as a sweep; nobody writes one under `methods`. The runs and cells of a variant are
ordinary runs and cells, in whose paths the variant is the method. Exhibits use the settings of variants as axes, as they use
facts of encoders.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from itertools import product
from types import MappingProxyType
from typing import Annotated

from pydantic import BeforeValidator

from xlgrid.base.settings import NAME

Value = int | float | str | bool
# A value that a study writes, in the type that its name has. YAML takes 1e-5 as text, because it has no point.
Stated = Annotated[Value, BeforeValidator(lambda value: same(_value(value) if isinstance(value, str) else value))]

# No name of a study contains these characters, and no shell, file system or command of Snakemake gives them a meaning here.
_MARK, _EQUALS = "@", "="
_WORDS = {"true": True, "false": False}
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?", re.IGNORECASE)


def variant(method: str, settings: Mapping[str, Value]) -> str:
    """The name of a method with some settings of training.

    The settings are in alphabetical order, so that a name does not depend on the order in which a study lists them.

    Args:
        method: a method, or a variant, whose other settings stay.

    Raises:
        ValueError: a value cannot be part of a name.
    """
    both = {**settings_of(method), **settings}
    return plain(method) + "".join(f"{_MARK}{key}{_EQUALS}{_text(both[key])}" for key in sorted(both))


def plain(method: str) -> str:
    """The method of which a variant is one; a method that is no variant is its own."""
    return method.partition(_MARK)[0]


@cache
def settings_of(method: str) -> Mapping[str, Value]:
    """The settings in the name of a variant; empty for a method that is no variant."""
    pairs = (part.partition(_EQUALS) for part in method.split(_MARK)[1:])
    return MappingProxyType({key: _value(text) for key, _, text in pairs})


def combinations(settings: Mapping[str, Iterable[Value]]) -> list[dict[str, Value]]:
    """All combinations of the values of settings, in their order; the value of the first setting changes last."""
    return [dict(zip(settings, values, strict=True)) for values in product(*settings.values())]


def is_shown(method: str, methods: Collection[object] | None, settings: Collection[str]) -> bool:
    """Whether an exhibit or a claim shows the cells of a method.

    A variant is shown only where it is named: by its own name among the methods, or by all of its settings. So a mean over
    a method never contains variants, and a mean over variants is one that the study asks for.

    Args:
        methods: the selected methods; None if all are.
        settings: the settings of variants that are selected or name rows, columns or lines.
    """
    own = settings_of(method).keys()
    is_named = methods is not None and bool(own) and method in methods
    return is_named or (own == set(settings) and (methods is None or plain(method) in methods))


def same(value: Value) -> Value:
    """A value in the type that its name has: 5 for 5.0."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value


def _text(value: Value) -> str:
    """A value as part of a name.

    Raises:
        ValueError: another value has the same text, or the text cannot be part of a path.
    """
    text = str(value).lower() if isinstance(value, bool) else str(same(value))
    back = _value(text)
    if not NAME.fullmatch(text.removeprefix("-")) or back != value or isinstance(back, str) != isinstance(value, str):
        raise ValueError(
            f"{value!r} cannot be part of a name: it must be a number, true or false, or a text such as `last`"
        )
    return text


def _value(text: str) -> Value:
    if text in _WORDS:
        return _WORDS[text]
    return text if not _NUMBER.fullmatch(text) else int(text) if text.lstrip("-").isdecimal() else float(text)
