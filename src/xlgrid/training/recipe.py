"""A recipe: one run resolved from a study, as JSON in the run's command and record.

The recipe only names the encoder and the tokens. Together with their files, it decides all that the run computes.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    GetJsonSchemaHandler,
    PositiveFloat,
    PositiveInt,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from xlgrid.architectures.scratch import Scratch
from xlgrid.base.keys import apart, describe
from xlgrid.base.plugins import Extensible, is_subclass_of
from xlgrid.base.settings import Seed, Strict
from xlgrid.heads.head import Mix
from xlgrid.languages.sources import Source, Target
from xlgrid.methods.variants import settings_of
from xlgrid.training.compiled import Compile
from xlgrid.training.grouping import Together
from xlgrid.training.new_head import LmHead
from xlgrid.training.samples import Balanced, Examples, Shots
from xlgrid.training.setting import Setting
from xlgrid.training.sweep import Swept

# The settings of `Training` that do not belong to a run's identity. `checkpoint_seconds` changes no result.
# `micro_batch_tokens` depends on the memory of the machine; it changes the order of sums, and the random numbers of
# dropout and masks. run.json records its final value.
PACE = {"checkpoint_seconds", "micro_batch_tokens"}
# The fields that are names of a study. A task, an encoder or a method is what its files and settings are, not its name.
NAMES = ("study", "task", "encoder", "method")

SETTINGS: dict[str, type[Setting]] = {
    "examples": Examples,
    "shots": Shots,
    "balanced": Balanced,
    "together": Together,
    "compile": Compile,
}
ALL_SETTINGS = Extensible[type[Setting]](
    "setting of training",
    "xlgrid.training",
    SETTINGS,
    fits=is_subclass_of(Setting),
    expected="a subclass of xlgrid.training.setting.Setting",
)

Rate = Annotated[float, Field(ge=0, lt=1)]


class Training(Strict):
    """Settings of the training loop."""

    steps: PositiveInt | None = Field(None, description="optimiser steps; wins over epochs")
    epochs: PositiveFloat = Field(3, description="passes over the training data where steps is not given")
    batch_tokens: PositiveInt = Field(4096, description="tokens, padding included, in one optimiser step")
    batch_size: PositiveInt | None = Field(None, description="examples in one optimiser step; wins over batch_tokens")
    micro_batch_tokens: PositiveInt | None = Field(
        None, description="tokens in one forward pass; gradients are accumulated; halved when memory runs out"
    )
    lr: PositiveFloat = Field(2e-5, description="peak learning rate")
    warmup: float = Field(0.1, ge=0, lt=1, description="share of the steps of linear warm-up; decays linearly to 0")
    weight_decay: float = Field(0.0, ge=0, description="the weight decay of AdamW")
    betas: tuple[Rate, Rate] = Field((0.9, 0.999), description="decay rates of both moments of AdamW")
    epsilon: PositiveFloat = Field(1e-8, description="AdamW adds it to the root of the second moment")
    clip: PositiveFloat = Field(1.0, description="the norm to which larger gradients are scaled")
    dropout: float | None = Field(None, ge=0, lt=1, description="overrides the encoder's dropout")
    evaluations: PositiveInt = Field(10, description="evaluations on the dev set, evenly spaced")
    dev_targets: tuple[Target, ...] = Field(
        (),
        description="targets or groups; a run is evaluated on their dev sets, and its dev score is the mean over them "
        "(Pfeiffer et al. 2022, section 4.3 use the pre-trained languages); absent: the dev set of the source",
    )
    label_smoothing: Rate = Field(
        0,
        description="share of each label's probability that the loss spreads over all classes (Szegedy et al. 2016, "
        "section 7)",
    )
    keep: Literal["best", "last", "average"] = Field(
        "best",
        description="the weights that the run stores. best: the weights with the best score on the dev set; last: the "
        "last weights (Foroutan et al. 2023's code); average: the mean of the weights at the last evaluations",
    )
    averaged: PositiveInt = Field(
        5, description="with `keep: average`: the number of evaluations whose weights are averaged"
    )
    checkpoint_seconds: PositiveFloat = Field(60, description="seconds between saves of the state for resuming")
    segments: bool = Field(
        True,
        description="true: the token types of BERT mark the second segment; false: all tokens have the first type "
        "(Foroutan et al. 2023's code)",
    )
    precision: Literal["fp32", "bf16"] = Field(
        "fp32",
        description="the number format in which a GPU, or a CPU with AMX or AVX512-BF16, multiplies matrices; weights "
        "and the optimiser stay in fp32",
    )
    checkpoints: tuple[PositiveInt, ...] = Field(
        (), description="steps after which the run also writes its weights, as step{n}.safetensors in its folder"
    )
    mix_seed: Seed = Field(65, description="with `mix: shares`: decides from which part of a mix each example comes")
    mixed_batches: bool = Field(
        True,
        description="true: a batch has examples of all parts of a mix; false: a batch has examples of one part "
        "(Foroutan et al. 2023's code)",
    )
    alpha: float | None = Field(
        None,
        ge=0,
        description="samples the parts of a mix for `steps`: the share of a language with n rows is proportional to "
        "n^alpha (Conneau and Lample 2019, section 3.1); absent: an epoch has every row of each part once",
    )
    tlm: float = Field(
        0.5,
        ge=0,
        le=1,
        description="with `alpha`: the share of rows that come from pairs, in a mix of languages and pairs",
    )
    micro_batches: Literal["mixed", "language"] = Field(
        "mixed",
        description="the rows of a step that are computed at once. mixed: rows of all languages; language: rows of one "
        "language, which is faster for large models with language modules",
    )
    # Key -> a setting with a class of its own, as packages add them. The key is written next to the keys above, in a study and in a recipe.
    added: dict[str, Any] = {}

    @model_validator(mode="before")
    @classmethod
    def _added(cls, fields: Any) -> Any:
        if not isinstance(fields, Mapping):
            return fields
        known = [name for name in cls.model_fields if name != "added"]
        own, added = apart(fields, known, ALL_SETTINGS)
        return own | {"added": added}

    @model_serializer(mode="wrap")
    def _together(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = handler(self)
        added = fields.pop("added", {})
        return fields | added

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler.resolve_ref_schema(handler(core_schema))
        describe(schema, handler, "added", ALL_SETTINGS)
        return schema

    @property
    def is_for_target(self) -> bool:
        """Whether the run is for one target, on whose data it trains: see `Setting.is_for_target`."""
        return any(setting.is_for_target for setting in self.added.values())

    def used(self, examples: int) -> int:
        """The number of training examples of a language or pair that the training uses, of so many."""
        return min([examples, *(setting.used(examples) for setting in self.added.values())])

    @property
    def conflict(self) -> tuple[str, str] | None:
        """(name of a setting that contradicts another, message); None if there is no contradiction.

        Validation cannot check this, because an entry of a study's `training` has only some settings of a run.
        """
        if self.alpha is not None and self.steps is None:
            return "alpha", "`alpha` samples examples without end: also set `steps`"
        for key, setting in self.added.items():
            if problem := setting.conflict(self):
                return key, problem
        if self.keep == "average" and self.averaged > self.evaluations:
            return "keep", (
                f"`keep: average` takes the weights of the last {self.averaged} evaluations, but there are "
                f"{self.evaluations}: raise `evaluations`, or lower `averaged`"
            )
        if len(set(self.dev_targets)) < len(self.dev_targets):
            return "dev_targets", f"`dev_targets` has a target twice among {', '.join(self.dev_targets)}: leave one out"
        if self.steps and (last := max(self.checkpoints, default=0)) > self.steps:
            return (
                "checkpoints",
                f"`checkpoints` has step {last}, but `steps` is {self.steps}: leave it out, or raise `steps`",
            )
        return None


class Start(Strict):
    """The MLM run with which a run begins."""

    task: str
    method: str
    source: Source | None = Field(
        default=None, description="the source of the MLM run; None: the source of the run, or its target"
    )
    at: Literal["both", "source", "target"] = "both"
    seed: Seed = 1


class Recipe(Strict):
    """Everything that decides the result of one run, resolved from a study."""

    study: str
    task: str
    kind: str = Field(description="the kind of task: a head, or a benchmark with columns of its own")
    encoder: str
    method: str = Field(description="the study's name of the method")
    base: str = Field(description="the name of the method in xlgrid or in an installed package")
    options: dict[str, float | int | str | bool] = {}
    source: Source
    seed: Seed
    training: Training
    start: Start | None = None
    scratch: Scratch | None = Field(default=None, description="for a pre-training: the description of the encoder")
    lm_head: LmHead | None = Field(
        default=None, description="for the training of a language-modelling head: the description of the head"
    )
    first: str | None = Field(
        None, description="a task; after the weights of `start`, this run loads all weights of the run of that task"
    )
    mix: Mix | None = Field(
        None, description="how examples are taken from the parts of a mix; None: the default of the head"
    )
    metric: str | None = Field(
        None, description="the main metric, by which the best checkpoint is chosen; None: the first metric of the head"
    )
    sweep: Swept | None = Field(None, description="the settings among which those of the run are chosen")
    together: tuple[str, ...] = Field(
        (), description="the runs with which the run trains in one forward pass, itself among them (METHOD/SOURCE/SEED)"
    )
    derived: dict[str, Any] = Field(
        {}, description="for a run that is made without training: how, and the recipes of the runs that it is made from"
    )

    @classmethod
    def parse(cls, identity: str, pace: str = "{}") -> Self:
        """The recipe whose `identity` and `pace` return these texts."""
        fields = json.loads(identity)
        further = json.loads(pace)
        training = fields["training"] | further.pop("training", {})
        return cls.model_validate(fields | further | {"training": training})

    @property
    def train_parts(self) -> tuple[Target, ...]:
        """The languages and pairs on whose data the run trains."""
        target = self.source.for_target
        return (target,) if target and self.training.is_for_target else self.source.parts

    @property
    def dev_parts(self) -> tuple[Target, ...]:
        """The languages and pairs of the dev sets on which the run is evaluated while it trains."""
        return self.training.dev_targets or self.source.parts

    def check_runs(self, start: Path | None, first: Path | None) -> None:
        """Check that a call names a folder for `start` and `first` exactly if the recipe has such a run.

        Raises:
            ValueError: a folder is missing, or the recipe has no run for it.
        """
        text = self.start and (self.start.source or self.source.for_target or self.source)
        for option, name, run in (("start", text, start), ("first", self.first, first)):
            if (name is None) != (run is None):
                raise ValueError(
                    f"the recipe's `{option}` is the run of {name}, but the call names no folder: add --{option}"
                    if name
                    else f"the recipe has no `{option}`, but the call names the run in {run}: leave out --{option}"
                )

    def identity(self) -> str:
        """The recipe as JSON, without the defaults and without the settings that cannot change a result."""
        return self.model_dump_json(exclude_defaults=True, exclude=self._without_effect)

    def pace(self) -> str:
        """The settings as JSON that cannot change a result. Together with `identity`, they are the whole recipe."""
        return self.model_dump_json(exclude_defaults=True, include=self._without_effect)

    def digest(self) -> str:
        """Twelve hexadecimal digits that change with every setting that can change a result.

        The names that a study gives its parts change no result, so that a run keeps its digest if they change. Two recipes
        that name different data, encoders or earlier runs may therefore have the same digest; `inputs` in the record of a
        run tells their contents apart.
        """
        # The digest includes defaults, so that it changes when a default of xlgrid changes.
        # The digests of other runs do not change with a field that only runs of a sweep, of a group, or without training have.
        absent = [name for name in ("sweep", "together", "derived") if not getattr(self, name)]
        left_out = dict.fromkeys((*NAMES, *absent), True) | {"start": {"task", "method"}}
        fields = self.model_dump(mode="json", exclude=self._without_effect | left_out)
        fields["first"] = self.first is not None
        if self.together:
            fields["together"] = [run.partition("/")[2] for run in self.together]
        return hashlib.sha256(json.dumps(fields).encode()).hexdigest()[:12]

    @property
    def _without_effect(self) -> dict[str, Any]:
        """The fields that cannot change a result: the main metric is one unless it chooses the checkpoint, or a variant."""
        chooses = settings_of(self.method) or (self.training.keep == "best" and self.training.evaluations > 1)
        return {"training": PACE, **({} if self.metric and chooses else {"metric": True})}
