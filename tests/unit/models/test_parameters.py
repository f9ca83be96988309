"""The parameters that methods add are as many as papers print."""

from typing import Any

import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModel,
    XLMRobertaConfig,
    XLMRobertaForTokenClassification,
)

from xlgrid.data.published import HUB
from xlgrid.heads import HEADS
from xlgrid.methods import make
from xlgrid.models import parameters


def shape_of(encoder: str) -> Any:
    config = AutoConfig.for_model(**HUB[encoder])
    with torch.device("meta"):
        return XLMRobertaForTokenClassification(config)


@pytest.mark.parametrize(
    ("encoder", "expected"),
    [
        ("google-bert/bert-base-multilingual-cased", 177_853_440),
        ("intfloat/multilingual-e5-small", 117_653_760),
        ("FacebookAI/xlm-roberta-base", 278_043_648),
        ("FacebookAI/xlm-roberta-large", 559_890_432),
        # Without a pooler; the sum by hand of the sizes in config.json.
        ("jhu-clsp/mmBERT-base", 256_000 * 768 + 22 * (4 * 768**2 + 3 * 768 * 1152 + 2 * 768) + 768),
        ("jhu-clsp/mmBERT-small", 256_000 * 384 + 22 * (4 * 384**2 + 3 * 384 * 1152 + 2 * 384) + 384),
        ("EuroBERT/EuroBERT-210m", 128_256 * 768 + 12 * (4 * 768**2 + 3 * 768 * 3072 + 2 * 768) + 768),
        # That of XLM-R base, with more words.
        ("cis-lmu/glot500-base", 278_043_648 + (401_145 - 250_002) * 768),
    ],
)
def test_encoders_of_the_hub_are_as_large_as_the_published_ones(encoder: str, expected: int) -> None:
    """With the pooler, as the published files have it."""
    with torch.device("meta"):
        model = AutoModel.from_config(AutoConfig.for_model(**HUB[encoder]))
    assert sum(p.numel() for p in model.parameters()) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 8_257_536),
        ({"invertible": False}, 7_962_624),
        ({"invertible": False, "language": False}, 884_736),
    ],
)
def test_weights_are_as_many_as_in_table_5(options: dict[str, Any], expected: int) -> None:
    """Of XLM-R base; biases are not counted there. The largest is printed as 8.25M, cut off."""
    model = shape_of("FacebookAI/xlm-roberta-base")
    before = {id(p) for p in model.parameters()}
    with torch.device("meta"):
        make("madx", options).install(model)
    added = [(name, p) for name, p in model.named_parameters() if id(p) not in before]
    assert sum(p.numel() for name, p in added if name.endswith(".weight")) == expected


def test_no_weights_are_added_to_a_last_layer_that_is_left_out() -> None:
    """Of XLM-R base: language and task adapters in 11 layers, and the invertible one."""
    count = parameters.added(
        AutoConfig.for_model(**HUB["FacebookAI/xlm-roberta-base"]), "madx", {"leave_out_last": True}
    )
    assert count.weights == 11 * 2 * 768 * (384 + 48) + 2 * 2 * 384 * 192


def test_a_published_language_adapter_is_as_large_as_ours() -> None:
    """29,551,104 bytes of floats: the 29.6 MB of those of mBERT on the Hub."""
    model = shape_of("FacebookAI/xlm-roberta-base")
    with torch.device("meta"):
        make("madx", {"tune": "language"}).install(model)
    names = [name for name, _ in model.named_parameters() if make("madx", {"tune": "language"}).trains(name)]
    assert sum(dict(model.named_parameters())[name].numel() for name in names) == 7_387_776


def xmod(languages: int) -> Any:
    config = AutoConfig.for_model(**HUB["facebook/xmod-base-60-265k"])
    config.languages = [f"l{number}" for number in range(languages)]
    return config


def of_xmod(languages: int, base: str = "xmod", head: str = "sequence", **more: Any) -> parameters.Count:
    return parameters.count(xmod(languages), HEADS[head], 3, base, more.pop("options", {}), **more)


def test_parameters_of_a_language_are_those_of_its_module() -> None:
    """278.3 M shared and 7.09 M for each language: times four bytes, the sizes of the published files."""
    few, many = (of_xmod(number, "full-ft", "mlm", pretraining=True).total for number in (13, 60))
    assert (many - few) / 47 == 12 * (2 * 768 * 384 + 768 + 384)
    assert few - 13 * 7_091_712 == 278_295_186


def test_check_8_fine_tuning_costs_the_same_with_13_languages_as_with_75() -> None:
    """Only the module of the input's language computes, and no module is stored."""
    for base, more in (("xmod", {}), ("full-ft", {}), ("xmod", {"options": {"tune": "language"}, "head": "mlm"})):
        few, many = (of_xmod(number, base, **more) for number in (13, 75))
        assert few._replace(total=0) == many._replace(total=0), base
    few, many = (of_xmod(number, "full-ft", "mlm", pretraining=True) for number in (13, 75))
    assert (few.training, few.evaluation) == (many.training, many.evaluation)
    assert of_xmod(75).passed == 12 * (4 * 768 * 768 + 2 * 768 * 3072 + 9 * 768 + 3072) + 7_091_712
    assert of_xmod(75).stored == of_xmod(75).trained == 85_054_464 + 768 * 768 + 768 + 3 * 768 + 3


def test_an_added_language_stores_its_module_and_embeddings() -> None:
    counted = of_xmod(60, head="mlm", options={"tune": "language"}, embeddings=True)
    assert counted.stored == counted.trained == 7_091_712 + (250_002 + 514) * 768


@pytest.mark.parametrize(("decoder", "layers"), [("full", 3), ("last-1", 1)])
def test_half_of_the_tokens_pass_the_encoder_and_half_the_decoder(decoder: str, layers: int) -> None:
    """Of an encoder-decoder, whose cross-attention is passed though a run stores it as a part of the head."""
    h, inner, words = 8, 16, 50
    config = XLMRobertaConfig(
        vocab_size=words, hidden_size=h, num_hidden_layers=3, num_attention_heads=2, intermediate_size=inner
    )
    attention = 4 * h * h + 4 * h + 2 * h
    layer = attention + 2 * h * inner + inner + h + 2 * h
    output = h * h + h + 2 * h + words
    count = parameters.count(config, HEADS["seq2seq"], 0, "seq2seq", {"decoder": decoder})
    assert count.passed == (3 * layer + layers * (layer + attention) + output + h * words) / 2
    assert count.passed_trained == count.passed and count.stored == count.total == count.trained
    assert count.evaluation == 3 * layer + 4 * (layers * (layer + attention) + output + h * words), (
        "for four hypotheses"
    )
    biases = parameters.count(config, HEADS["seq2seq"], 0, "bitfit", {})
    assert biases.trained == biases.stored < biases.total
