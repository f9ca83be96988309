"""A recipe: one run resolved from a study, as JSON in the run's command and record.

With the files of its encoder and tokens, which it names only, it decides everything that the run computes.
"""

import hashlib
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from xlgrid.names import unknown


class Strict(BaseModel):
    """A schema in which an unknown key is an error, of type `unknown_keys`, that names the nearest."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, data: Any) -> Any:
        wrong = [key for key in data if key not in cls.model_fields] if isinstance(data, dict) else []
        if wrong:
            keys = {str(key): unknown("key", key, cls.model_fields) for key in wrong}
            raise PydanticCustomError("unknown_keys", "{text}", {"text": "; ".join(keys.values()), "keys": keys})
        return data


def plainly(error: ValidationError) -> str:
    """The problems of a `ValidationError` in one line: where, what, and what was got."""
    lines = []
    for problem in error.errors():
        where = ".".join(map(str, problem["loc"]))
        text = problem["msg"].removeprefix("Value error, ")
        own = problem["type"] in ("unknown_keys", "value_error")
        lines.append(": ".join([where] * bool(where) + [text]) + ("" if own else f", got {problem['input']!r}"))
    return "; ".join(lines)


class Phase(Strict):
    """One phase of a curriculum: train on the examples that pass the limits for a share of the steps.

    Foroutan et al. 2023, appendix C.2 trains on depth 0 first; tiny encoders learn look-up sooner from short inputs.
    """

    share: float = Field(gt=0, lt=1, description="share of all optimiser steps")
    max_tokens: PositiveInt | None = Field(None, description="keep inputs of at most so many tokens")
    max_depth: int | None = Field(None, ge=0, description="keep questions of at most this proof depth")


class Training(Strict):
    """Settings of the training loop."""

    steps: PositiveInt | None = Field(None, description="optimiser steps; wins over epochs")
    epochs: PositiveFloat = Field(3, description="passes over the training data where steps is not given")
    batch_tokens: PositiveInt = Field(4096, description="tokens, padding included, in one optimiser step")
    micro_batch_tokens: PositiveInt | None = Field(
        None, description="tokens at once, accumulated; halved if out of memory"
    )
    lr: PositiveFloat = Field(2e-5, description="peak learning rate")
    warmup: float = Field(0.1, ge=0, lt=1, description="share of the steps of linear warm-up; decays linearly to 0")
    weight_decay: float = Field(0.0, ge=0)
    clip: PositiveFloat = Field(1.0, description="gradient norm")
    dropout: float | None = Field(None, ge=0, lt=1, description="overrides the encoder's dropout")
    evaluations: PositiveInt = Field(10, description="evaluations on the source's dev set, evenly spaced; best is kept")
    checkpoint_seconds: PositiveFloat = Field(60, description="seconds between saves of the state for resuming")
    precision: Literal["fp32", "bf16"] = "fp32"
    mix_seed: int = Field(65, description="decides which half of a mix's examples is in which part")
    curriculum: tuple[Phase, ...] = ()


class Recipe(Strict):
    """One run, resolved."""

    study: str
    task: str
    kind: str = Field(description="key of xlgrid.tasks.TASKS")
    encoder: str
    method: str = Field(description="the study's name for it")
    base: str = Field(description="key of xlgrid.methods.METHODS")
    options: dict[str, float | int | str | bool] = {}
    source: str
    seed: int
    training: Training

    def digest(self) -> str:
        """Twelve hexadecimal digits that differ when anything in the recipe does."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:12]
