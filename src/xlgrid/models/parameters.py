"""How many parameters a method trains and stores on an encoder, counted on a model without weights."""

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

_BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
_XLMR: dict[str, Any] = _BASE | {
    "model_type": "xlm-roberta",
    "vocab_size": 250002,
    "max_position_embeddings": 514,
    "type_vocab_size": 1,
}
_MMBERT: dict[str, Any] = {
    "model_type": "modernbert",
    "vocab_size": 256000,
    "hidden_size": 768,
    "intermediate_size": 1152,
    "num_hidden_layers": 22,
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 1,
    "cls_token_id": 2,
    "sep_token_id": 1,
}
_DEBERTA: dict[str, Any] = {
    "model_type": "deberta-v2",
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "type_vocab_size": 0,
    "position_biased_input": False,
    "relative_attention": True,
    "position_buckets": 256,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": ["p2c", "c2p"],
}
# The ends of the names of the published X-MODs, and their numbers of languages.
_XMOD = {"base": 81, "base-13-125k": 13, "base-30-125k": 30, "base-30-195k": 30, "base-60-125k": 60}
_XMOD |= {"base-60-265k": 60, "base-75-125k": 75, "base-75-269k": 75}
# What is known of encoders on the Hub that are not fetched yet: where their config.json differs from the defaults of
# transformers for its model type; and the sizes of those with which an encoder from scratch can begin, which are compared without
# transformers.
HUB: dict[str, dict[str, Any]] = {
    "google-bert/bert-base-multilingual-cased": _BASE | {"model_type": "bert", "vocab_size": 119547},
    "distilbert/distilbert-base-multilingual-cased": {"model_type": "distilbert", "vocab_size": 119547},
    "intfloat/multilingual-e5-small": _BASE
    | {
        "model_type": "bert",
        "vocab_size": 250037,
        "hidden_size": 384,
        "intermediate_size": 1536,
    },
    "FacebookAI/xlm-roberta-base": _XLMR,
    "FacebookAI/xlm-roberta-large": _XLMR
    | {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096},
    "cis-lmu/glot500-base": _XLMR | {"vocab_size": 401145},
    "jhu-clsp/mmBERT-base": _MMBERT,
    "jhu-clsp/mmBERT-small": _MMBERT | {"hidden_size": 384, "num_attention_heads": 6},
    "EuroBERT/EuroBERT-210m": {"model_type": "eurobert"},
    "microsoft/mdeberta-v3-base": _DEBERTA | {"vocab_size": 251000},
    "microsoft/deberta-v3-base": _DEBERTA,
    # The sizes depend on the number of the languages, and not on their codes.
    **{
        f"facebook/xmod-{name}": _XLMR
        | {"model_type": "xmod", "languages": [f"language {number}" for number in range(languages)]}
        for name, languages in _XMOD.items()
    },
}


class Count(NamedTuple):
    """Parameters of a model with a method installed.

    Attributes:
        trained: the number that training changes.
        stored: the number in a run's `delta.safetensors`: those that train, and a task's head.
        total: the number of all parameters.
        passed: the number by which every token is multiplied: in the layers of the encoder, not in its embeddings, pooler or
            classifier; of a language model, the share `Head.output_share` of its output embeddings.
        passed_trained: the number of these that training changes.
        decoded: the number of these that are in the decoder and the output embeddings, of an encoder-decoder.
        beams: the number of hypotheses that beam search keeps, of an encoder-decoder.
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
        """Floating-point operations of training on a token: a multiplication and an addition per parameter to go forward, as
        many for the gradient of what came in, and as many for that of each parameter that trains; 6 per parameter where
        all do (Kaplan et al. 2020, section 2.1). Attention itself has no parameters: see `attention_work`."""
        return 4 * self.passed + 2 * self.passed_trained

    @property
    def evaluation(self) -> float:
        """Floating-point operations of evaluating a token. A token of the target is computed for each hypothesis of beam search."""
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
    """Count what a method trains, stores and computes with.

    A token passes one of the modules for languages.

    Args:
        head: the task's head.
        labels: the number of the task's labels; text has none.
        base, options: of the method, see `xlgrid.methods.make`.
        embeddings: whether the word embeddings train, too, whatever the method.
        pretraining: everything trains, and the whole encoder is stored.
        extend: adds what the architecture of an encoder from scratch has besides, in place.

    Raises:
        ValueError: there is no such method, or it is not for this encoder.
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
    """The floating-point operations of going forward with a token in the attention of all layers of an encoder, which the parameters do not
    count: a product of queries and keys, and one of weights and values. Training takes three times as many.

    Args:
        length: the number of tokens of an input.
    """
    return 4.0 * config.num_hidden_layers * config.hidden_size * length
