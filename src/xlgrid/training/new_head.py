"""What a study says of a new language-modelling head for an encoder that has none."""

from typing import Literal, Self

from pydantic import Field, model_validator

from xlgrid.architectures import PRETRAINING
from xlgrid.base.settings import Seed, Strict


class LmHead(Strict):
    """A language-modelling head for an encoder that is published without one, such as a sentence encoder.

    It is trained by masked language modelling.
    """

    languages: tuple[str, ...] = Field(
        min_length=1, description="the languages of the text, which the encoder should know"
    )
    task: str = Field(
        PRETRAINING, description="the task of kind `mlm` whose tokens are read, as for encoders from `scratch`"
    )
    trains: Literal["head", "all"] = Field(
        "head",
        description="the weights that train. head: those of the head, and the encoder does not change; all: those of the encoder, too, "
        "whose pre-training so goes on",
    )
    seed: Seed = Field(
        0, description="decides batches and masks; encoders that differ by it alone are replicas of one encoder"
    )

    @model_validator(mode="after")
    def _languages_differ(self) -> Self:
        if doubles := sorted({code for code in self.languages if self.languages.count(code) > 1}):
            raise ValueError(f"`languages` has {doubles[0]} twice: leave it out once")
        return self
