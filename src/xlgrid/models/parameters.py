"""Count the parameters that a method trains and stores on an encoder, without loading weights."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from xlgrid.heads import Head
from xlgrid.heads.families import layer_of, module_of
from xlgrid.methods import make
from xlgrid.methods.method import is_head
from xlgrid.models import deltas
from xlgrid.models.load import shapes

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel


class Count(NamedTuple):
    """Parameters of a model with a method installed.

    Attributes:
        trained: the number that training changes.
        stored: the number in a run's `delta.safetensors`: the trained parameters and the task's head.
        total: the number of all parameters.
        passed: the number of parameters by which every token is multiplied. These are the parameters in the layers of
            the encoder, without embeddings, pooler and classifier, and the output embeddings of a language model. Each
            counts as often as `Head.computed` says.
        passed_trained: the part of `passed` that training changes.
        passed_in_evaluation: `passed`, in an evaluation.
    """

    trained: int
    stored: int
    total: int
    passed: float
    passed_trained: float
    passed_in_evaluation: float

    @property
    def training(self) -> float:
        """Floating-point operations of training on a token.

        The forward pass takes 2 per parameter (a multiplication and an addition), the gradient with respect to the
        input takes 2 more, and the gradient of each trained parameter takes 2 more: 6 per parameter if all train
        (Kaplan et al. 2020, section 2.1). Attention scores have no parameters: see `attention_work`.
        """
        return 4 * self.passed + 2 * self.passed_trained

    @property
    def evaluation(self) -> float:
        """Floating-point operations of evaluating a token."""
        return 2 * self.passed_in_evaluation


def count(
    config: "PreTrainedConfig",
    head: Head,
    labels: int,
    base: str,
    options: Mapping[str, float | int | str | bool],
    embeddings: bool = False,
    pretraining: bool = False,
    extend: "Callable[[PreTrainedModel], None] | None" = None,
) -> Count:
    """Count the parameters that a method trains, stores and computes with.

    A token passes through one module for languages in each layer.

    Args:
        head: the task's head.
        labels: the number of the task's labels; 0 for text.
        base, options: the method, see `xlgrid.methods.make`.
        embeddings: whether the word embeddings are trained even if the method freezes them.
        pretraining: count for the pre-training of an encoder, which trains all parameters and stores the whole encoder.
        extend: adds the modules of the architecture of an encoder from scratch that transformers' class lacks, in
            place.

    Raises:
        ValueError: there is no such method, or it cannot be used with this encoder.
    """
    method = make(base, options)

    def trains(name: str) -> bool:
        return pretraining or deltas.trains(method, name)

    for name, value in head.settings(labels).items():
        setattr(config, name, value)
    model = shapes(config, head)
    method.install(model)
    if extend:
        extend(model)
    parameters = deltas.named_parameters(model)
    modules = {module: trains(name) for name in parameters if (module := module_of(name))}
    idle = sorted(modules, key=lambda module: not modules[module])[1:]
    table = model.get_input_embeddings().weight
    # The output embeddings may be tied to those of the input, whose name they then have.
    output = model.get_output_embeddings().weight if head.output_share else None
    passed: dict[str, float] = {}
    in_evaluation = 0.0
    for name, p in parameters.items():
        is_layer = (
            name.startswith(model.base_model_prefix)
            and "embed" not in name
            and p is not table
            # Every token passes the modules of a head that are in layers.
            and (layer_of(name) is not None or not is_head(name))
            and module_of(name) not in idle
        )
        if is_layer or p is output:
            computed, evaluated = head.computed(model, name, p is output)
            passed[name] = computed * method.passes(name) * p.numel()
            in_evaluation += evaluated * method.passes(name) * p.numel()
    encoder = {id(p): p for p in model.base_model.parameters()}
    stored = encoder if pretraining else deltas.kept(model, method, head, embeddings)
    return Count(
        trained=sum(p.numel() for name, p in parameters.items() if trains(name) or (embeddings and p is table)),
        stored=sum(p.numel() for p in stored.values()),
        total=sum(p.numel() for p in parameters.values()),
        passed=sum(passed.values()),
        passed_trained=sum(number for name, number in passed.items() if trains(name)),
        passed_in_evaluation=in_evaluation,
    )


def attention_work(sizes: Any, length: float) -> float:
    """The floating-point operations per token of the attention scores in a forward pass through all layers.

    They are the product of queries and keys and the product of weights and values, which use no parameters. Training
    takes three times as many.

    Args:
        sizes: a configuration, or another object with `num_hidden_layers` and `hidden_size`.
        length: the number of tokens of an input.
    """
    return 4.0 * sizes.num_hidden_layers * sizes.hidden_size * length
