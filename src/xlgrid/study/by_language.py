"""An encoder for each language: one entry of a study, with {language} in its `hub` or `path`.

The study has the encoder of each language under a name of its own, such as `mono.sw` for the language sw of the entry `mono`.
A run has the encoder of its source, and the name of the entry, so that exhibits show the encoders of all languages as one.
"""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from xlgrid.base.names import among
from xlgrid.data.published import Obtained
from xlgrid.languages import known_language
from xlgrid.languages.sources import NONE, Source
from xlgrid.study.languages import LANGUAGE

if TYPE_CHECKING:
    from xlgrid.study.schema import Study

_BRACE = "{language}"


class ByLanguage(Obtained):
    """A part of an entry with `hub` or `path`, which may describe an encoder for each language."""

    names: dict[str, str] = Field(
        {},
        description="for an encoder for each language, with {language} in `hub` or `path`: language of the study: the text in "
        "its place, if that is not its code. Where `hub` is {language} alone, `names` has the whole names of repositories, and "
        "there are encoders of these languages only",
    )

    @property
    def is_family(self) -> bool:
        """Whether the entry describes an encoder for each language."""
        return _BRACE in self.origin["place"]

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        for brace in re.findall(r"\{[^}]*\}?", self.origin["place"]):
            if brace != _BRACE:
                raise ValueError(f"{brace} in `hub` or `path`: only {_BRACE} can stand there")
        if self.names and not self.is_family:
            raise ValueError("`names` is for {language} in `hub` or `path`, and there is none: leave it out")
        if self.origin["place"] == _BRACE and not self.names:
            raise ValueError("{language} alone needs `names`: write what stands in its place for each language")
        return self

    def for_source(self, name: str, source: Source) -> str:
        return f"{name}.{source.data}" if self.is_family else name

    def of_languages(self, name: str, languages: Iterable[str]) -> dict[str, Any]:
        """Name -> encoder, for each of the languages of a study; empty if the entry describes a single encoder."""
        if not self.is_family:
            return {}
        encoders = {}
        for code in languages:
            if self.origin["place"] == _BRACE and code not in self.names:
                continue
            # A tokenizer of the study has the code in its name.
            texts = {"hub": self.names.get(code, code), "path": self.names.get(code, code), "tokenizer": code}
            stated = {key: text for key in texts if (text := getattr(self, key, None))}
            changes = {key: text.replace(_BRACE, texts[key]) for key, text in stated.items()}
            encoders[f"{name}.{code}"] = self.model_copy(update={**changes, "names": {}})
        return encoders

    def problems(self, study: "Study", name: str) -> Iterator[str]:
        # A study that extends another one may have fewer languages, and names of the others go unused.
        others = [code for code in self.names if study.extends and known_language(code)]
        yield from among(f"encoders.{name}.names", LANGUAGE, self.names, [*study.languages, *others])
        # The tokenizer of an encoder for each language may have {language}, too.
        yield from () if self.is_family else super().problems(study, name)  # type: ignore[misc]

    def problems_in(self, study: "Study", name: str, grid: str) -> list[str]:
        if not self.is_family:
            return super().problems_in(study, name, grid)  # type: ignore[misc]
        of_family = [*self._problems_of_each(study, name, grid)]
        used = [] if of_family else self._used(study, name, grid)
        return of_family + [problem for key in used for problem in study.encoders[key].problems_in(study, key, grid)]

    def mistakes_of_packages(self, study: "Study", name: str, grid: str) -> Iterator[str]:
        if not self.is_family:
            yield from super().mistakes_of_packages(study, name, grid)  # type: ignore[misc]
        for key in self._used(study, name, grid) if self.is_family else ():
            yield from study.encoders[key].mistakes_of_packages(study, key, grid)

    def _used(self, study: "Study", name: str, grid: str) -> list[str]:
        """The names of the encoders that the runs of a grid have."""
        return [*dict.fromkeys(self.for_source(name, source) for source in study.sources(study.grids[grid]))]

    def _problems_of_each(self, study: "Study", name: str, grid: str) -> Iterator[str]:
        """Why a grid cannot have an encoder for each language: a run has that of its only language."""
        axes, place = study.grids[grid], f"grids.{grid}: encoder {name} is one for each language"
        for source in dict.fromkeys(study.sources(axes)):
            if source == NONE or len(source.parts) > 1 or source.parts[0].is_pair:
                what = (
                    f"{source} is not one language" if source != NONE else "evaluation without training has no source"
                )
                yield f"{place}, and {what}: put {name} into a grid of its own, whose sources are single languages"
            elif self.for_source(name, source) not in study.encoders:
                yield f"{place}, and its `names` lacks {source}: add it, or leave {source} out"
        for key in axes.method:
            entry = study.methods[key]
            if entry.start or entry.derived:
                made = "is made from other runs" if entry.derived else "begins with an MLM run"
                yield f"{place}, and method {key} {made}, which may be in another language: leave one of the two out"
