"""Languages that a study declares because xlgrid does not know them, or lacks facts about them."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from xlgrid.base.settings import Strict
from xlgrid.languages import Language, known_language, stated_language
from xlgrid.languages.iso import direction_of, standard

if TYPE_CHECKING:
    from xlgrid.study.schema import Study

CODE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
# These are names of groups in grids; X is from groups of pairs such as en-X.
GROUPS = ("all", "mono", "X")
# The kind of a name in errors about a language that the study lacks.
LANGUAGE = "language (the study's `languages` must list it first)"


def _code(value: str) -> str:
    if not CODE.fullmatch(value) or value in GROUPS:
        raise ValueError(
            f"{value!r} cannot be the code of a language: it becomes part of paths, and of pairs such as en-fr; use letters, "
            f"digits and _, begin with a letter, and leave {', '.join(GROUPS)} to groups"
        )
    return value


LanguageCode = Annotated[str, AfterValidator(_code)]


class NewLanguage(Strict):
    """Facts about a language, which win over the facts from ISO 639-3 and CLDR."""

    name: str | None = Field(None, min_length=1, description="needed if ISO 639 has no language of this code")
    family: str | None = Field(None, min_length=1, description="any name; groups such as family:Berber name it")
    script: str | None = Field(None, pattern="^[A-Z][a-z]{3}$", description="ISO 15924 code, such as Latn or Arab")

    def language(self, code: str) -> Language:
        """The language of a code, with these facts."""
        known = known_language(code) or Language(code, code, None, None, None)
        stated = self.model_dump(exclude_none=True)
        of_script = {"direction": direction_of(self.script)} if self.script else {}
        return known._replace(**of_script | stated)

    def problems(self, code: str) -> Iterator[str]:
        """Facts that contradict xlgrid's own, and a name that is missing, each as `place: what is wrong`."""
        place = f"new_languages.{code}"
        if (language := stated_language(code)) and language != self.language(code):
            facts = ", ".join(map(str, language[1:]))
            yield f"{place}: xlgrid knows {code} as {facts}: leave it out, or choose another code"
        if self.name is None and known_language(code) is None:
            yield f"{place}: `name` is missing, because ISO 639 has no language of this code: add it"


def problems(study: "Study") -> Iterator[str]:
    """Mistakes in the list of languages, each as `place: what is wrong`."""
    for i, code in enumerate(study.languages):
        place = f"languages.{i}"
        if code in study.languages[:i]:
            yield f"{place}: {code} is in the list twice: leave it out here"
        is_of_iso = len(code) == 3 and code not in study.declared_languages and stated_language(code) is None
        if is_of_iso and (known := standard(code)) and known.codes[0] != code and known.codes[0] in study.languages:
            yield f"{place}: {code} and {known.codes[0]} are codes of one language: leave out one of them"
        if code in GROUPS:
            yield f"{place}: {code} is the name of a group: declare the language by another code in `new_languages`"
        try:
            study.language(code)
        except ValueError as error:
            yield f"{place}: {error}"
