"""A recipe: one run resolved from a study, as JSON in the run's command and record.

With the files of its encoder and tokens, which it names only, it decides everything that the run computes.
"""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from xlgrid.architectures.scratch import Scratch
from xlgrid.base.settings import Seed, Strict
from xlgrid.heads.head import Mix
from xlgrid.languages.sources import Source, Target
from xlgrid.training.new_head import LmHead

# The settings of `Training` that are no part of a run's identity. `checkpoint_seconds` changes no result. `micro_batch_tokens` is
# what the memory of a machine allows, and run.json has it; it changes the order of sums, and what dropout and masks draw.
PACE = {"checkpoint_seconds", "micro_batch_tokens"}

Rate = Annotated[float, Field(ge=0, lt=1)]


class Phase(Strict):
    """One phase of a curriculum: train on the questions up to a proof depth, for a share of the steps or for epochs.

    Foroutan et al. 2023, appendix C.2 trains on depth 0 for 3 epochs first.
    """

    share: float | None = Field(None, gt=0, lt=1, description="share of all optimiser steps")
    epochs: PositiveFloat | None = Field(None, description="passes over these examples, before those over all")
    max_depth: int = Field(ge=0, description="keep questions of at most this proof depth")

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        if (self.share is None) == (self.epochs is None):
            raise ValueError("a phase has either `share` or `epochs`: give exactly one")
        return self


class Training(Strict):
    """Settings of the training loop."""

    steps: PositiveInt | None = Field(None, description="optimiser steps; wins over epochs")
    epochs: PositiveFloat = Field(3, description="passes over the training data where steps is not given")
    batch_tokens: PositiveInt = Field(4096, description="tokens, padding included, in one optimiser step")
    batch_size: PositiveInt | None = Field(None, description="examples in one optimiser step; wins over batch_tokens")
    micro_batch_tokens: PositiveInt | None = Field(
        None, description="tokens at once, accumulated; halved if out of memory"
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
        description="targets, or groups of them, on whose dev sets a run is evaluated; the mean of their scores counts (Pfeiffer et "
        "al. 2022, section 4.3: the pre-trained languages); absent: the dev set of the source",
    )
    label_smoothing: Rate = Field(
        0,
        description="share of each label's probability that the loss spreads over all classes (Szegedy et al. 2016, section 7)",
    )
    keep: Literal["best", "last", "average"] = Field(
        "best",
        description="the weights that the run stores: those with the best score on the dev set, the last ones (Foroutan et "
        "al. 2023's code), or the average of those at the last evaluations",
    )
    averaged: PositiveInt = Field(
        5, description="with `keep: average`: the number of evaluations whose weights are averaged"
    )
    checkpoint_seconds: PositiveFloat = Field(60, description="seconds between saves of the state for resuming")
    segments: bool = Field(
        True,
        description="true: BERT is told the second segment by its token types; false: all tokens have the first type "
        "(Foroutan et al. 2023's code)",
    )
    head: Literal["fresh", "lm-head"] = Field(
        "fresh",
        description="the dense layer of XLM-R's classifier: new, or that of the language-modelling head (Foroutan et al. "
        "2023's code)",
    )
    precision: Literal["fp32", "bf16"] = Field(
        "fp32",
        description="the number format in which a GPU, or a CPU with AMX or AVX512-BF16, multiplies matrices; weights and the optimiser stay"
        " in fp32",
    )
    checkpoints: tuple[PositiveInt, ...] = Field(
        (), description="steps after which the weights are also written, as step{n}.safetensors in the run's folder"
    )
    mix_seed: Seed = Field(65, description="with `mix: shares`: decides which part of a mix gives which example")
    mixed_batches: bool = Field(
        True,
        description="true: a batch has examples of all parts of a mix; false: of one part (Foroutan et al. 2023's code)",
    )
    curriculum: tuple[Phase, ...] = Field(
        (), description="phases by proof depth, in their order; absent: one phase over all examples"
    )
    alpha: float | None = Field(
        None,
        ge=0,
        description="draws the parts of a mix without end, a language of n rows with a probability proportional to n^alpha "
        "(Conneau and Lample 2019, section 3.1), for `steps`; absent: an epoch has every row of each part once",
    )
    tlm: float = Field(
        0.5,
        ge=0,
        le=1,
        description="with `alpha`: the share of rows from the pairs of a mix that has both languages and pairs",
    )
    micro_batches: Literal["mixed", "language"] = Field(
        "mixed",
        description="the rows of a step that are computed at once: mixed, rows of all languages; language: rows of one "
        "language, which is faster for large models with modules for languages",
    )

    @property
    def conflict(self) -> tuple[str, str] | None:
        """A setting that does not go with others, and what is wrong; None if all go together.

        Validation does not ask for it, because an entry of a study's `training` has some of a run's settings only.
        """
        if self.alpha is not None and (self.steps is None or self.curriculum):
            return "alpha", "`alpha` draws examples without end: set `steps` beside it, and leave out `curriculum`"
        if self.keep == "average" and self.averaged > self.evaluations:
            return "keep", (
                f"`keep: average` takes the weights of the last {self.averaged} evaluations, and there are {self.evaluations}: raise "
                "`evaluations`, or lower `averaged`"
            )
        if len(set(self.dev_targets)) < len(self.dev_targets):
            return "dev_targets", f"`dev_targets` has a target twice among {', '.join(self.dev_targets)}: leave one out"
        if self.steps and (last := max(self.checkpoints, default=0)) > self.steps:
            return "checkpoints", f"`checkpoints` has step {last} of {self.steps} steps: leave it out, or raise `steps`"
        return None


class Start(Strict):
    """The MLM run with whose weights a run begins: one for all (`source`), one for each of some languages or pairs
    (`pairs`) or, with neither, one for each language.

    Where there are several, `at` says which of them a run and a cell take. `reverse` and `missing` go with `pairs`; they decide what
    Foroutan et al. 2023, section 4.2 leave open.
    """

    task: str = Field(description="the task of the MLM run, of kind `mlm`")
    method: str = Field(description="the method of the MLM run")
    source: Source | None = Field(None, description="the source of the MLM run, where one run is for all")
    pairs: tuple[Source, ...] = Field(
        (), description="the languages or pairs that have an MLM run of their own, where not all have"
    )
    at: Literal["both", "source", "target"] = Field(
        "both",
        description="both: a run begins with the MLM run of its source, and a cell takes the parameters of a language, "
        "such as language adapters, from the MLM run of its target; source: a cell keeps the parameters of "
        "the run; target: there is a run for each target, source@target, which begins with the MLM run of the"
        " target",
    )
    seed: Seed = Field(1, description="the seed of the MLM run")
    reverse: Literal["same", "none"] = Field(
        "same", description="same: a target fr-en takes the MLM run of en-fr; none: it counts as missing"
    )
    missing: Literal["source", "none"] = Field(
        "source",
        description="source: a target without an MLM run keeps the parameters of the run's source; none: it gets none, "
        "with methods that can go without",
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.source is not None and self.pairs:
            raise ValueError(
                "a start has either `source`, one run for all, or `pairs`, one run for each: give one, or neither where "
                "every language has one of its own"
            )
        if not self.pairs and (self.reverse, self.missing) != ("same", "source"):
            raise ValueError(
                "`reverse` and `missing` are about languages without a run of their own: they go with `pairs` only"
            )
        if self.at == "target" and (self.source is not None or self.pairs):
            key = "source" if self.pairs == () else "pairs"
            raise ValueError(f"`at: target` makes a run for each target, which begins with its own: leave out `{key}`")
        return self

    def of_run(self, source: Source) -> Source | None:
        """The source of the MLM run with which a run on `source` begins; None if it begins with none.

        Raises:
            ValueError: there are several.
        """
        if self.at == "target":
            return Source(source.for_target) if source.for_target else None
        return self.of_source(source.data)

    def for_run(self, source: Source) -> "Start | None":
        """What the recipe of a run on `source` says of its start: its own MLM run, without those of other languages.

        Raises:
            ValueError: there are several.
        """
        if not self.pairs:
            return self
        text = self.of_run(source)
        keys = {"task": self.task, "method": self.method, "source": text, "seed": self.seed}
        return Start.model_validate(keys) if text else None

    def of_source(self, source: Source) -> Source | None:
        """The source of the MLM run with which runs on `source` begin; None if `source` has no such pair.

        Raises:
            ValueError: it has several.
        """
        if self.source:
            return self.source
        parts = [part for part in source.parts if part in self.pairs or not self.pairs]
        if len(parts) > 1:
            raise ValueError(
                f"source {source} has the MLM runs of {' and '.join(parts)}, of which a run can begin with one only"
            )
        return Source(parts[0]) if parts else None

    def of_target(self, target: Target, source: Source) -> Source | None:
        """The source of the MLM run with whose language-specific parameters `target` is evaluated, for runs on `source`;
        None if there is none."""
        if not self.source and (target in self.pairs or not self.pairs):
            return Source(target)
        if not self.source and self.reverse == "same" and target.reverse in self.pairs:
            return Source(target.reverse)
        return self.of_source(source) if self.source or self.missing == "source" else None


class Recipe(Strict):
    """One run, resolved."""

    study: str
    task: str
    kind: str = Field(description="the kind of task: a head, or a benchmark with columns of its own")
    encoder: str
    method: str = Field(description="the study's name for it")
    base: str = Field(description="the method of xlgrid, or of an installed package")
    options: dict[str, float | int | str | bool] = {}
    source: Source
    seed: Seed
    training: Training
    start: Start | None = None
    scratch: Scratch | None = Field(
        default=None, description="of a pre-training: the encoder, which begins with new weights"
    )
    lm_head: LmHead | None = Field(
        default=None, description="of the training of a language-modelling head: its languages"
    )
    first: str | None = Field(
        None, description="task of the run with all of whose weights, after those of `start`, this one begins"
    )
    mix: Mix | None = Field(None, description="how a mix takes its parts, where this is not the default of the head")

    @classmethod
    def parse(cls, identity: str, pace: str = "{}") -> Self:
        """The recipe of what `identity` and `pace` return."""
        fields = json.loads(identity)
        return cls.model_validate(fields | {"training": fields["training"] | json.loads(pace)})

    @property
    def dev_parts(self) -> tuple[Target, ...]:
        """The languages and pairs of the tokens files on which the run is evaluated while it trains."""
        return self.training.dev_targets or self.source.parts

    def check_runs(self, start: Path | None, first: Path | None) -> None:
        """Check that a call names the folders of the runs with which this one begins, and no others.

        Raises:
            ValueError: it does not.
        """
        text = self.start.of_run(self.source) if self.start else None
        for option, name, run in (("start", text, start), ("first", self.first, first)):
            if (name is None) != (run is None):
                raise ValueError(
                    f"the recipe's `{option}` is the run of {name}, but the call names no folder of a run: add --{option}"
                    if name
                    else f"the recipe has no `{option}`, but the call names the run in {run}: leave out --{option}"
                )

    def identity(self) -> str:
        """The recipe as JSON, without the defaults and without the settings that cannot change a result."""
        return self.model_dump_json(exclude_defaults=True, exclude={"training": PACE})

    def pace(self) -> str:
        """The other settings as JSON: with `identity`, they are the whole recipe."""
        return self.training.model_dump_json(exclude_defaults=True, include=PACE)

    def digest(self) -> str:
        """Twelve hexadecimal digits that differ when anything in the recipe does that can change a result."""
        # Defaults are part of it, so that another default is another recipe.
        return hashlib.sha256(self.model_dump_json(exclude={"training": PACE}).encode()).hexdigest()[:12]
