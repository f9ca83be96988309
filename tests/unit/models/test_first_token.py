"""The last layer for the first token alone, against the model of transformers."""

from typing import Any

import pytest
import torch
from transformers import BertConfig, ElectraConfig, MPNetConfig, RobertaConfig, XLMRobertaConfig

from xlgrid.heads import HEADS
from xlgrid.models import load
from xlgrid.models.first_token import read_first_token

CONFIGS = [BertConfig, XLMRobertaConfig, RobertaConfig, ElectraConfig]
FIRST_TOKEN = [name for name, head in HEADS.items() if head.reads_first_token]
IDS = torch.tensor([[2, 7, 8, 9, 3], [2, 6, 3, 1, 1]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])


def model_of(config: Any, head: str, attention: str = "sdpa") -> Any:
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    torch.manual_seed(1)
    model_class = load.model_class(config.model_type, HEADS[head])
    configuration = config(vocab_size=20, attn_implementation=attention, num_labels=3, **sizes)
    new = model_class if config.model_type in load.FAMILIES else model_class.from_config
    return new(configuration).double().eval()


def outcome(model: Any, head: str, mask: torch.Tensor | None) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Logits, and the gradient of each weight."""
    batch = {"input_ids": IDS, "attention_mask": mask}
    if head == "choice":
        batch = {name: tensor if tensor is None else tensor[:, None].repeat(1, 2, 1) for name, tensor in batch.items()}
    logits = model(**batch).logits
    logits.square().sum().backward()
    return logits.detach(), {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("mask", [MASK, None], ids=["padding", "no mask"])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("head", FIRST_TOKEN)
@pytest.mark.parametrize("config", CONFIGS)
def test_logits_and_gradients_are_those_of_the_whole_layer(config: Any, head: str, attention: str, mask: Any) -> None:
    whole, short = (model_of(config, head, attention) for _ in range(2))
    assert read_first_token(short, HEADS[head])
    (expected, gradients), (logits, short_gradients) = (outcome(model, head, mask) for model in (whole, short))
    torch.testing.assert_close(logits, expected, atol=1e-12, rtol=0)
    assert short_gradients.keys() == gradients.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(short_gradients[name], gradient, atol=1e-12, rtol=0, msg=name)


def test_the_last_feed_forward_layer_gets_one_token_of_each_row() -> None:
    model = model_of(XLMRobertaConfig, "sequence")
    sizes: list[int] = []
    for layer in model.base_model.encoder.layer:
        layer.intermediate.register_forward_hook(lambda _, inputs, output: sizes.append(output.shape[1]))
    read_first_token(model, HEADS["sequence"])
    outcome(model, "sequence", MASK)
    assert sizes == [5, 1]


@pytest.mark.parametrize("head", [name for name in HEADS if name not in FIRST_TOKEN])
def test_heads_that_read_all_tokens_have_them(head: str) -> None:
    assert not read_first_token(model_of(BertConfig, head), HEADS[head])


def test_layers_with_the_names_of_bert_and_other_modules_stay_whole() -> None:
    """MPNet's attention has no module `self`."""
    model = model_of(MPNetConfig, "sequence", "eager")
    before = outcome(model, "sequence", MASK)[0]
    assert not read_first_token(model, HEADS["sequence"])
    assert torch.equal(outcome(model, "sequence", MASK)[0], before)
