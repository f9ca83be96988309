"""Which types of transformers are encoders, and which heads they have."""

import json
from typing import Any

import pytest
import torch

from xlgrid.heads import HEADS
from xlgrid.heads.probe import answers, depends_on_padding, head_problem, small_config, small_model, type_problem

SIZE = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 5000}
DEEP = {"num_hidden_layers": 24, "max_position_embeddings": 40}


@pytest.mark.parametrize("kind", ["bert", "xlm-roberta", "electra", "mpnet", "nomic_bert"])
def test_encoders_are_no_problem(kind: str) -> None:
    assert type_problem({"model_type": kind, **SIZE, **DEEP, "embedding_size": 16}) is None


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (
            {"model_type": "new", "auto_map": {"AutoModel": "org/repo--modeling.NewModel"}},
            "runs no code of repositories",
        ),
        ({"model_type": "robert"}, "did you mean 'roberta'"),
        ({"model_type": "bart", "d_model": 16}, "an encoder-decoder"),
        ({"model_type": "gpt2"}, "no encoder that predicts masked tokens"),
        ({"model_type": "vit"}, "no encoder that predicts masked tokens"),
        ({"model_type": "modernvbert"}, "a model of more than text"),
        ({"model_type": "perceiver"}, "reads inputs, and no tokens"),
        ({"model_type": "fnet", "hidden_size": 16, "intermediate_size": 16}, "change with the padding"),
        ({"model_type": "albert", "hidden_size": "wide"}, "describes no encoder"),
        ({"model_type": "electra", **SIZE, "num_attention_heads": 3}, "does not compute tokens alone"),
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else "",
)
def test_other_types_are_refused_with_the_reason(config: dict[str, Any], why: str) -> None:
    problem = type_problem(config)
    assert problem and why in problem and "take " in problem


def test_a_head_without_a_class_is_refused() -> None:
    config = {"model_type": "nomic_bert", **SIZE}
    assert head_problem(config, HEADS["sequence"]) is None
    problem = head_problem(config, HEADS["span"])
    assert problem and "no class QuestionAnswering for encoders of type nomic_bert" in problem and "take " in problem


def test_a_head_that_reads_the_last_position_is_refused() -> None:
    """RoFormer's choice reads the last token, which is padding."""
    config = {"model_type": "roformer", **SIZE}
    assert head_problem(config, HEADS["token"]) is None
    problem = head_problem(config, HEADS["choice"])
    assert problem and "gives other scores with the padding" in problem


def test_a_small_model_keeps_the_sizes_of_layers() -> None:
    small = small_config({"model_type": "electra", **SIZE, **DEEP})
    assert (small.hidden_size, small.num_attention_heads, small.intermediate_size) == (16, 2, 16)
    assert small.num_hidden_layers == 2 and small.vocab_size < 100
    assert small.pad_token_id < small.vocab_size


def test_layers_that_are_listed_become_fewer() -> None:
    config = {"model_type": "modernbert", **SIZE, "num_hidden_layers": 4, "layer_types": ["full_attention"] * 4}
    small = small_config(config)
    assert small.num_hidden_layers == 2 == len(small.layer_types)


def test_a_probe_leaves_the_generator_of_torch_as_it_is() -> None:
    from transformers import AutoModel

    state = torch.random.get_rng_state()
    depends_on_padding(small_model({"model_type": "electra", **SIZE}, AutoModel), None)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_answers_do_not_show_the_padding() -> None:
    from transformers import AutoModelForTokenClassification

    model = small_model({"model_type": "electra", **SIZE}, AutoModelForTokenClassification)
    torch.testing.assert_close(answers(model, HEADS["token"], 5), answers(model, HEADS["token"]))


def test_a_config_as_json_has_it_is_enough() -> None:
    assert type_problem(json.loads('{"model_type": "camembert", "hidden_size": 16, "num_attention_heads": 2}')) is None


def test_a_question_leaves_the_messages_of_transformers_as_they_are() -> None:
    from transformers import logging

    logging.set_verbosity_info()
    try:
        assert type_problem({"model_type": "electra", **SIZE, "hidden_size": 32}) is None
        assert logging.get_verbosity() == logging.INFO and logging.is_progress_bar_enabled()
    finally:
        logging.set_verbosity_warning()
