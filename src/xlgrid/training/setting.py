"""Settings of training that papers and other installed packages add, each under a key of its own."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from pydantic import BaseModel

from xlgrid.base.arrays import Ints

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from xlgrid.heads.head import Head
    from xlgrid.heads.tokens import Tokens
    from xlgrid.methods import Method


class Plan(NamedTuple):
    """The pools of examples that training uses one after another, and the step at which each pool ends.

    With `alpha`, there are no pools, and `ends` has only the last step.
    """

    pools: list[Ints]
    ends: list[int]

    @property
    def steps(self) -> int:
        """Optimiser steps in all."""
        return self.ends[-1]


class Setting(BaseModel):
    """The base class of a setting that a package adds to `training`.

    A package declares a subclass as an entry point of the group `xlgrid.training`. The name of the entry point is the
    key. If the value of the key is a mapping, the subclass also inherits from `Strict`; otherwise, it also inherits
    from `pydantic.RootModel`.

    Attributes:
        about: the meaning of the key in the reference of the study file.
        is_for_target: whether a run with the setting is for one target. It begins with the run on the source without the
            setting, and trains on the data of the target. Only the variants of a grid can have such a setting.
    """

    about: ClassVar[str]
    is_for_target: ClassVar[bool] = False

    def conflict(self, training: Any) -> str | None:
        """The error message if the setting conflicts with other settings of a run; None if it does not.

        Args:
            training: the `xlgrid.training.recipe.Training` of the run.
        """
        return None

    def misfit(self, head: "Head") -> str | None:
        """The error message if the setting does not suit tasks with a head; None if it does."""
        return None

    def unfit(self, method: "Method", config: Mapping[str, Any]) -> str | None:
        """The error message if the setting does not suit a method or an encoder; None if it does.

        Args:
            config: the contents of the encoder's config.json with the changes of the head, or some of them; empty if
                they are unknown.
        """
        return None

    def begin(self, model: "PreTrainedModel", encoder: Path) -> None:
        """Change the weights of a loaded encoder with a head, in place, before the method is installed.

        Args:
            encoder: the folder of the encoder.

        Raises:
            ValueError: the setting does not fit this model.
        """

    def complete(self, model: "PreTrainedModel") -> None:
        """Change how a model computes, in place. It is on its device, and has all weights with which training begins."""

    def pool(self, tokens: "Tokens", training: Any, seed: int) -> Ints:
        """The rows of the training examples that the training uses. Without any, the training has no steps.

        Args:
            training: the `xlgrid.training.recipe.Training` of the run.

        Raises:
            ValueError: the data have too few examples.
        """
        return np.arange(len(tokens))

    def plan(self, planned: Plan, tokens: "Tokens", training: Any, seed: int) -> Plan:
        """The plan of a training with this setting: the examples that training uses, and the steps that use them.

        Args:
            planned: the plan without this setting.
            training: the `xlgrid.training.recipe.Training` of the run.

        Raises:
            ValueError: the training has no such examples, or too few steps.
        """
        return planned

    def lacking(self, examples: int) -> str | None:
        """The error message if a language or pair has only so many training examples, and the training needs more; None if
        it does not."""
        return None

    def used(self, examples: int) -> int:
        """The number of training examples of a language or pair that the training uses, of so many."""
        return examples

    def passes(self, examples: int, options: Mapping[str, object]) -> list[tuple[float, int]]:
        """An estimate of what `plan` adds to a training by epochs, as pairs of epochs and a number of examples.

        Args:
            examples: the number of all training examples.
            options: the options of a generated task.
        """
        return []
