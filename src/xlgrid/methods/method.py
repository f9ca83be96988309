"""The base of all methods of cross-lingual transfer. It changes nothing in a model, which is full fine-tuning."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from xlgrid.base.arrays import Ints
from xlgrid.base.settings import Strict
from xlgrid.heads import ALL_HEADS
from xlgrid.heads.families import is_task_head
from xlgrid.heads.tokens import Tokens

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


class Method(Strict):
    """Full fine-tuning, and the base class of every other method. The fields are the options of the method.

    A subclass overrides the methods in which it differs, and keeps a contract, which
    `tests/unit/methods/test_method.py` checks:

    - `install` does not change the outputs. If a paper draws new weights at random, the outputs nearly stay the same,
      and with an option of the method they stay exactly the same. Only if a model reads more than the input, such as
      random prefixes, the outputs change.
    - Exactly the parameters that `trains` names have gradients.
    """

    # Whether there are runs of the method. Only `as-is` has no runs: it evaluates encoders as they are.
    is_trained: ClassVar[bool] = True

    def misfit(self, config: Mapping[str, Any]) -> str | None:
        """The error message, with advice, if the method does not fit an encoder or the model of a head; else None.

        Studies are refused, and `install` raises, with this message. The answer is also None if config.json does not
        tell whether the method fits.

        Args:
            config: the contents of the encoder's config.json with the changes of the head (`Head.described`), or some
                of them; missing entries have the defaults of transformers.
        """
        return None

    def problems(self, study: Any, key: str, grid: str) -> Iterator[str]:
        """The mistakes in a grid that names the method, except misfits of encoders, each as `place: what is wrong`.

        Args:
            study: the study, whose names exist.
            key, grid: the names of the method and of the grid in the study.
        """
        yield from ()

    def problems_of_plan(self, plan: Any, key: str) -> Iterator[str]:
        """The mistakes in the method that only the plan shows, each as `place: what is wrong`.

        Args:
            plan: the `xlgrid.plan.plan.Plan` of the study.
            key: the name of the method in the study.
        """
        yield from ()

    def install(self, model: "PreTrainedModel") -> None:
        """Add the modules of the method to a loaded `model`, in place. Torch's seeded generator draws new weights.

        Raises:
            ValueError: the method does not fit this encoder.
        """

    def begin(self, model: "PreTrainedModel") -> None:
        """Change an installed model, in place, which has the weights of all runs with which its training begins.

        A training calls this before its first step, also when it is resumed. Evaluations do not call it.
        """

    def trains(self, name: str) -> bool:
        """Whether training changes the parameter called `name` (in `named_parameters` after `install`)."""
        return True

    def passes(self, name: str) -> int:
        """The number of times that a forward pass uses a parameter for each token of an input.

        Passes over a second input, such as a translation, count, too.
        """
        return 1

    @property
    def trains_head(self) -> bool:
        """Whether a run trains the head of its task. A method that does not train it is for MLM runs, not for grids."""
        return True

    def begin_embeddings(
        self, new: "torch.Tensor", old: "torch.Tensor", before: Mapping[str, int], after: Mapping[str, int]
    ) -> None:
        """Set the first embeddings of a model whose tokenizer is not that of its encoder, in place.

        A token of both tokenizers keeps its embedding. The biases of a language model's head begin in the same way.

        Args:
            new: [tokens of the new tokenizer, ...], random embeddings, or biases of zero.
            old: [tokens of the old tokenizer, ...], the embeddings or biases of the encoder.
            before, after: token -> id, in the old and in the new tokenizer.
        """
        shared = [token for token in after if before.get(token, len(old)) < len(old)]
        new[[after[token] for token in shared]] = old[[before[token] for token in shared]]

    def forward_arguments(self, tokens: Tokens, rows: Ints, device: "torch.device", training: bool) -> dict[str, Any]:
        """The arguments that an installed model's forward gets besides the batch of some rows.

        Torch's generator draws random arguments.

        Raises:
            ValueError: the tokens lack what the method reads.
        """
        return {}

    @property
    def parallel_language(self) -> str | None:
        """The language in which a model reads each example a second time; None if it reads each example once."""
        return None

    def is_language_specific(self, name: str) -> bool:
        """Whether the parameter `name` belongs to a language.

        If the target of a cell has an MLM run of its own (`at` of its `start`), the cell loads language-specific
        parameters from that MLM run, and all other parameters from the run that it evaluates. Without such an MLM run,
        language-specific embeddings are the encoder's.
        """
        return False

    def stack(self, task: str, language: str | None) -> tuple[str, ...]:
        """The adapters that are active in a cell of `task`, from the embeddings up, as `kind:name`.

        Args:
            language: the source of the MLM run that trained the language-specific parameters; None without such a run.
        """
        return ()

    def check_start(self, start: "Method | None") -> None:
        """Check the MLM run with which a run begins.

        Args:
            start: the method of the MLM run; None if there is no such run.

        Raises:
            ValueError: no run trains some of the parameters, or the parameters of the two methods do not fit each
                other.
        """

    @property
    def needs_start(self) -> bool:
        """Whether a run has to begin with an MLM run."""
        try:
            self.check_start(None)
        except ValueError:
            return True
        return False

    @property
    def apart(self) -> str | None:
        """Why runs cannot train together, in one forward pass of the encoder (`together` of `training`), as a clause; None
        if they can.

        They can if the method leaves the attention of the encoder as it is, and if all parameters in the layers that train,
        or that differ between runs, are those of linear layers and LayerNorms. `xlgrid.training.together.stack` gives each
        run its own. What differs should be small beside what runs share.
        """
        return "it trains weights that are not small beside those of the encoder, or changes attention"

    @property
    def unmergeable(self) -> str | None:
        """Why the weights of several runs cannot be merged, as a clause; None if a weighted sum of the changes of weights is
        the weighted sum of what the runs have learnt, to first order."""
        return None

    def leaves_out(self, name: str, layers: int) -> bool:
        """Whether a model that begins with an MLM run ignores this parameter of the MLM run.

        Args:
            layers: the number of the encoder's layers.
        """
        return False


def is_head(name: str) -> bool:
    """Whether a parameter belongs to a part of a task's model that an encoder may lack (`Head.modules`)."""
    modules = {module for head in ALL_HEADS.known() for module in head.modules}
    return is_task_head(name) or not modules.isdisjoint(name.split("."))


def check_fits(method: Method, model: "PreTrainedModel") -> None:
    """Raise a ValueError if a method does not fit the encoder of a model (`Method.misfit`)."""
    if problem := method.misfit(model.config.to_dict()):
        raise ValueError(problem)


def of_encoders_only(config: Mapping[str, Any]) -> str | None:
    """The answer of `Method.misfit` for a method whose modules are for encoders only."""
    if config.get("is_encoder_decoder"):
        return "the method is for encoders, and the model of the task is an encoder-decoder: use full-ft or bitfit"
    return None
