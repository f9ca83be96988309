"""Languages that a study declares, because xlgrid does not know them."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from xlgrid.base.settings import Strict

CODE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
# Groups of a grid have these names, and en-X is a group of pairs.
GROUPS = ("all", "mono", "X")


def _code(value: str) -> str:
    if not CODE.fullmatch(value) or value in GROUPS:
        raise ValueError(
            f"{value!r} cannot be the code of a language: it becomes part of paths, and of pairs such as en-fr; use letters, "
            f"digits and _, begin with a letter, and leave {', '.join(GROUPS)} to groups"
        )
    return value


LanguageCode = Annotated[str, AfterValidator(_code)]


class NewLanguage(Strict):
    """A language, in the columns of the table of languages."""

    name: str = Field(min_length=1)
    family: str = Field(min_length=1)
    script: str = Field(pattern="^[A-Z][a-z]{3}$", description="ISO 15924 code, such as Latn or Arab")
    direction: Literal["ltr", "rtl"] = Field("ltr", description="direction of writing")
