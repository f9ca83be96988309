"""What BitFit trains beside biases."""

from typing import Any

import pytest
import torch
from transformers import (
    BertConfig,
    BertForMultipleChoice,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    XLMRobertaConfig,
    XLMRobertaForSequenceClassification,
)

from xlgrid.methods import make

SIZE = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24}


def weights(maker: Any, config: Any, **options: str) -> set[str]:
    """The parameters that train and are no biases."""
    with torch.device("meta"):
        model = maker(config(**SIZE))
    method = make("bitfit", options)
    return {name for name, _ in model.named_parameters() if method.trains(name) and not name.endswith(".bias")}


def test_the_head_of_bert_may_keep_its_weights() -> None:
    bert = (BertForSequenceClassification, BertConfig)
    assert weights(*bert) == {"bert.pooler.dense.weight", "classifier.weight"}
    assert weights(*bert, bert_head="biases") == set()


@pytest.mark.parametrize(
    ("maker", "head"),
    [
        (BertForQuestionAnswering, {"qa_outputs.weight"}),
        (BertForMultipleChoice, {"bert.pooler.dense.weight", "classifier.weight"}),
    ],
)
def test_the_heads_of_questions_and_choices_train(maker: Any, head: set[str]) -> None:
    assert weights(maker, BertConfig) == head


@pytest.mark.parametrize("bert_head", ["all", "biases"])
def test_the_head_of_xlmr_trains_either_way(bert_head: str) -> None:
    names = weights(XLMRobertaForSequenceClassification, XLMRobertaConfig, bert_head=bert_head)
    assert names == {"classifier.dense.weight", "classifier.out_proj.weight"}
