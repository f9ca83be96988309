"""The source of a run and the target of a cell, as values that are parsed once.

A `Target` is a language (`en`), a pair of a context's and a question's language (`en-fr`), or one of these as of a step of
its MLM run (`qu@1000`). A `Source` is one or several of these languages and pairs, joined by `+` (`en+en-fr`); of a
method that has a run for each target, the target follows (`en@qu`). The source `none` is that of cells without training.

Both are strings, so that paths, JSON, data frames and dictionaries hold them as they are written. Nothing else takes such
a string apart.
"""

from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, Self

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema


# The source of cells without training; no language has this code.
NONE = "none"
# Between the language of data and that of the parallel examples of its examples.
PARALLEL = "~"


class _Parsed(str):
    """A string with attributes: each distinct text is parsed once, and its value is frozen."""

    def __new__(cls, text: str) -> Self:
        return _parsed(cls, str(text))  # type: ignore[return-value]

    @classmethod
    def _parse(cls, text: str) -> dict[str, Any]:
        raise NotImplementedError

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name!r} cannot be set: {type(self).__name__} {str(self)!r} is frozen")

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (str(self),)

    @classmethod
    def __get_pydantic_core_schema__(cls, annotation: Any, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(cls, handler(str))


@cache
def _parsed(cls: type[_Parsed], text: str) -> _Parsed:
    value = str.__new__(cls, text)
    value.__dict__.update(cls._parse(text))
    return value


class Target(_Parsed):
    """A language, or a pair of languages, perhaps as of a step of its MLM run.

    Attributes:
        languages: one code, or the context's and the question's.
        step: the step of the MLM run whose weights are used (`Grid.checkpoints`); None: those of its end.

    Raises:
        ValueError: there are more than two languages, a code is empty, languages are mixed, or the step is not a whole
            number from 1 up.
    """

    languages: tuple[str, ...]
    step: int | None

    @classmethod
    def _parse(cls, text: str) -> dict[str, Any]:
        data, at, step = text.partition("@")
        codes = tuple(data.split("-"))
        if len(codes) > 2 or not all(codes) or "+" in data:
            raise ValueError(
                f"{text!r} is neither a language nor a pair, context-question: write for instance en, or en-fr"
            )
        if NONE in codes:
            raise ValueError(f"{text!r}: `{NONE}` is no language, but the source of cells without training")
        if at and not (step.isascii() and step.isdecimal() and not step.startswith("0")):
            raise ValueError(f"target {text!r}: after @ comes a step of its MLM run, as in {data}@1000")
        return {"languages": codes, "step": int(step) if at else None}

    @property
    def data(self) -> "Target":
        """The target without its step: what its data are named by, and what exhibits show."""
        return self if self.step is None else Target("-".join(self.languages))

    def at(self, step: int) -> "Target":
        """The target as of a step of its MLM run: qu@1000."""
        return Target(f"{self.data}@{step}")

    @property
    def is_pair(self) -> bool:
        """Whether context and question each have a language of their own, which may be the same."""
        return len(self.languages) == 2

    @property
    def reverse(self) -> "Target":
        """The pair with its languages exchanged, fr-en for en-fr; a language stays as it is."""
        return Target("-".join(reversed(self.languages)))


class Source(_Parsed):
    """The languages and pairs that a run trains on; `none` for cells without training.

    Attributes:
        parts: each language or pair of a mix, in the order in which they are written; one if there is no mix, and no part of
            the source `none`.
        languages: all codes in the parts, each once.
        for_target: the one target that the run is for (`at` of a `start`); None: any.

    Raises:
        ValueError: a part is neither a language nor a pair, or what follows @ is no target.
    """

    parts: tuple[Target, ...]
    languages: tuple[str, ...]
    for_target: Target | None

    @classmethod
    def _parse(cls, text: str) -> dict[str, Any]:
        data, at, target = text.partition("@")
        parts = () if text == NONE else tuple(map(Target, data.split("+")))
        return {
            "parts": parts,
            "languages": tuple(dict.fromkeys(code for part in parts for code in part.languages)),
            "for_target": Target(target) if at else None,
        }

    @property
    def data(self) -> "Source":
        """The source without the target that it is for: what its data are named by, and what exhibits show."""
        return self if self.for_target is None else Source("+".join(self.parts))

    def aimed_at(self, target: Target) -> "Source":
        """The source of the run that is for this target only: en@qu."""
        return Source(f"{self.data}@{target}")


def accompanied(data: str, parallel: str | None) -> str:
    """The name of data in a language whose examples have parallel examples in another one: fr~en."""
    return data if parallel is None else f"{data}{PARALLEL}{parallel}"


def unaccompanied(name: str) -> tuple[str, str | None]:
    """Split a name of `accompanied` into the language or pair, and the language of parallel examples or None."""
    data, _, parallel = name.partition(PARALLEL)
    return data, parallel or None
