"""Languages that a study declares because xlgrid does not know them, or lacks facts about them."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from xlgrid.base.settings import Strict
from xlgrid.languages import Language, known_language
from xlgrid.languages.iso import direction_of

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
