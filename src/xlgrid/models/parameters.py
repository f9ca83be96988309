"""Count the parameters that a method trains and stores on an encoder, without loading weights."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

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
            the encoder, without embeddings, pooler and classifier. In a language model, the share `Head.output_share`
            of the output embeddings counts, too.
        passed_trained: the part of `passed` that training changes.
        decoded: in an encoder-decoder, the part of `passed` that is in the decoder and the output embeddings.
        beams: in an encoder-decoder, the number of hypotheses that beam search keeps.
    """

    trained: int
    stored: int
    total: int
    passed: float
    passed_trained: float
    decoded: float = 0.0
    beams: int = 1

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
        """Floating-point operations of evaluating a token. The decoder computes each token once per beam-search
        hypothesis."""
        return 2 * (self.passed + (self.beams - 1) * self.decoded)


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
    passed = {
        name: head.passed_share * method.passes(name) * p.numel()
        for name, p in parameters.items()
        if name.startswith(model.base_model_prefix)
        and "embed" not in name
        and p is not table
        # Every token passes the modules of a head that are in layers.
        and (layer_of(name) is not None or not is_head(name))
        and module_of(name) not in idle
    }
    output = {}
    if head.output_share:
        # The output embeddings are tied to those of the input, whose name they may have.
        out = model.get_output_embeddings().weight
        output = {
            name: head.output_share * method.passes(name) * p.numel() for name, p in parameters.items() if p is out
        }
    passed |= output
    first_part = f"{model.base_model_prefix}.encoder."
    encoder = {id(p): p for p in model.base_model.parameters()}
    stored = encoder if pretraining else deltas.kept(model, method, head, embeddings)
    return Count(
        trained=sum(p.numel() for name, p in parameters.items() if trains(name) or (embeddings and p is table)),
        stored=sum(p.numel() for p in stored.values()),
        total=sum(p.numel() for p in parameters.values()),
        passed=sum(passed.values()),
        passed_trained=sum(number for name, number in passed.items() if trains(name)),
        decoded=sum(number for name, number in passed.items() if name in output or not name.startswith(first_part)),
        beams=model.generation_config.num_beams if head.has_decoder else 1,
    )


def attention_work(config: "PreTrainedConfig", length: float) -> float:
    """The floating-point operations per token of the attention scores in a forward pass through all layers.

    They are the product of queries and keys and the product of weights and values, which use no parameters. Training
    takes three times as many.

    Args:
        length: the number of tokens of an input.
    """
    return 4.0 * config.num_hidden_layers * config.hidden_size * length
