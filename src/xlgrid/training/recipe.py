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
from xlgrid.base.settings import Seed, Strict
from xlgrid.heads.head import Mix
from xlgrid.languages.sources import Source, Target
from xlgrid.training.new_head import LmHead
from xlgrid.training.setting import ALL_SETTINGS

# The settings of `Training` that do not belong to a run's identity. `checkpoint_seconds` changes no result.
# `micro_batch_tokens` depends on the memory of the machine; it changes the order of sums, and the random numbers of
# dropout and masks. run.json records its final value.
PACE = {"checkpoint_seconds", "micro_batch_tokens"}

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
    # Key -> a setting that a package adds. The key stands beside those above, in a study and in a recipe.
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
        del schema["properties"]["added"]
        describe(schema, handler, ALL_SETTINGS)
        return schema

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
    """The MLM runs with whose weights other runs begin.

    `source` names one MLM run for all runs. `pairs` names languages or pairs, each with an MLM run. Without both keys,
    each language has an MLM run. If there are several, `at` chooses the MLM run of a run and of a cell. `reverse` and
    `missing` go with `pairs`; they decide a question that Foroutan et al. 2023 (section 4.2) leave open.
    """

    task: str = Field(description="the task of the MLM run, of kind `mlm`")
    method: str = Field(description="the method of the MLM run")
    source: Source | None = Field(None, description="the source of the MLM run, if all runs begin with the same one")
    pairs: tuple[Source, ...] = Field(
        (), description="the languages or pairs with MLM runs, one for each; absent: each language has one"
    )
    at: Literal["both", "source", "target"] = Field(
        "both",
        description="both: a run begins with the MLM run of its source, and a cell takes language-specific parameters, "
        "such as language adapters, from the MLM run of its target; source: a cell keeps the parameters of "
        "the run; target: there is a run for each target, source@target, which begins with the MLM run of the "
        "target",
    )
    seed: Seed = Field(1, description="the seed of the MLM run")
    reverse: Literal["same", "none"] = Field(
        "same", description="same: a target fr-en takes the MLM run of en-fr; none: fr-en has no MLM run"
    )
    missing: Literal["source", "none"] = Field(
        "source",
        description="source: a target without an MLM run keeps the parameters of the run's source; none: it gets no "
        "language-specific parameters, which only some methods allow",
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.source is not None and self.pairs:
            raise ValueError(
                "a start has either `source` (one MLM run for all) or `pairs` (one MLM run for each), got both: leave "
                "out one of them, or both if every language has an MLM run"
            )
        if not self.pairs and (self.reverse, self.missing) != ("same", "source"):
            raise ValueError(
                "`reverse` and `missing` are for languages without an MLM run: add `pairs`, or leave them out"
            )
        if self.at == "target" and (self.source is not None or self.pairs):
            key = "source" if self.pairs == () else "pairs"
            raise ValueError(
                f"`at: target` makes a run for each target, which begins with the target's MLM run: leave out `{key}`"
            )
        return self

    def of_run(self, source: Source) -> Source | None:
        """The source of the MLM run with which a run on `source` begins; None if there is no such MLM run.

        Raises:
            ValueError: there are several.
        """
        if self.at == "target":
            return Source(source.for_target) if source.for_target else None
        return self.of_source(source.data)

    def for_run(self, source: Source) -> "Start | None":
        """The `start` in the recipe of a run on `source`: it names only the MLM run with which this run begins.

        Raises:
            ValueError: there are several.
        """
        if not self.pairs:
            return self
        text = self.of_run(source)
        keys = {"task": self.task, "method": self.method, "source": text, "seed": self.seed}
        return Start.model_validate(keys) if text else None

    def of_source(self, source: Source) -> Source | None:
        """The source of the MLM run with which runs on `source` begin; None if no part of `source` has an MLM run.

        Raises:
            ValueError: several parts of `source` have MLM runs.
        """
        if self.source:
            return self.source
        parts = [part for part in source.parts if part in self.pairs or not self.pairs]
        if len(parts) > 1:
            raise ValueError(
                f"source {source} has several MLM runs, {' and '.join(parts)}, but a run can begin with only "
                "one: name a source with one of them"
            )
        return Source(parts[0]) if parts else None

    def of_target(self, target: Target, source: Source) -> Source | None:
        """The source of the MLM run whose language-specific parameters a run on `source` uses on `target`, or None."""
        if not self.source and (target in self.pairs or not self.pairs):
            return Source(target)
        if not self.source and self.reverse == "same" and target.reverse in self.pairs:
            return Source(target.reverse)
        return self.of_source(source) if self.source or self.missing == "source" else None


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

    @classmethod
    def parse(cls, identity: str, pace: str = "{}") -> Self:
        """The recipe whose `identity` and `pace` return these texts."""
        fields = json.loads(identity)
        return cls.model_validate(fields | {"training": fields["training"] | json.loads(pace)})

    @property
    def dev_parts(self) -> tuple[Target, ...]:
        """The languages and pairs of the dev sets on which the run is evaluated while it trains."""
        return self.training.dev_targets or self.source.parts

    def check_runs(self, start: Path | None, first: Path | None) -> None:
        """Check that a call names a folder for `start` and `first` exactly if the recipe has such a run.

        Raises:
            ValueError: a folder is missing, or the recipe has no run for it.
        """
        text = self.start.of_run(self.source) if self.start else None
        for option, name, run in (("start", text, start), ("first", self.first, first)):
            if (name is None) != (run is None):
                raise ValueError(
                    f"the recipe's `{option}` is the run of {name}, but the call names no folder: add --{option}"
                    if name
                    else f"the recipe has no `{option}`, but the call names the run in {run}: leave out --{option}"
                )

    def identity(self) -> str:
        """The recipe as JSON, without the defaults and without the settings that cannot change a result."""
        return self.model_dump_json(exclude_defaults=True, exclude={"training": PACE})

    def pace(self) -> str:
        """The settings as JSON that cannot change a result. Together with `identity`, they are the whole recipe."""
        return self.training.model_dump_json(exclude_defaults=True, include=PACE)

    def digest(self) -> str:
        """Twelve hexadecimal digits that change with every setting that can change a result."""
        # The digest includes defaults, so that it changes when a default of xlgrid changes.
        return hashlib.sha256(self.model_dump_json(exclude={"training": PACE}).encode()).hexdigest()[:12]
