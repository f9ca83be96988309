"""The settings of a study for a new language-modelling head, for an encoder without one."""

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
        PRETRAINING,
        description="the task of kind `mlm` on whose tokens the head trains, as for encoders from `scratch`",
    )
    trains: Literal["head", "all"] = Field(
        "head",
        description="the weights that train. head: the head's weights, and the encoder does not change; all: the "
        "encoder's weights, too, so that its pre-training continues",
    )
    seed: Seed = Field(
        0, description="decides batches and masks; encoders that differ only by `seed` are replicas of one encoder"
    )

    @model_validator(mode="after")
    def _languages_differ(self) -> Self:
        if doubles := sorted({code for code in self.languages if self.languages.count(code) > 1}):
            raise ValueError(f"`languages` has {doubles[0]} twice: leave it out once")
        return self
