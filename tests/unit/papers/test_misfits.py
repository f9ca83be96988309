"""The methods of the papers are refused for encoders that they are not for."""

import json
from pathlib import Path
from typing import Any

import pytest
from study_fixture import misfits, of_encoder


@pytest.mark.parametrize(
    ("hub", "base", "problem"),
    [
        (
            "EuroBERT/EuroBERT-210m",
            "qcross",
            "with `tune: bitfit` the method trains biases, and the encoder, of type eurobert",
        ),
        ("microsoft/mdeberta-v3-base", "structured-dropout", "which an encoder of type deberta-v2 does not use"),
        ("facebook/xmod-base", "madx", "adapters need an encoder without modules for languages, got one of type xmod"),
    ],
)
def test_a_method_that_is_not_for_the_family_of_an_encoder_is_refused(hub: str, base: str, problem: str) -> None:
    [message] = misfits(of_encoder({"base": base}, {"hub": hub}))
    assert message.startswith("grids.g: ") and problem in message
    assert misfits(of_encoder({"base": base}, {"hub": "FacebookAI/xlm-roberta-base"})) == []


def test_adapters_behind_a_norm_that_the_layers_of_an_encoder_lack_are_refused() -> None:
    method = {"base": "madx", "options": {"pre_norm": "norm", "language": False, "invertible": False}}
    [problem] = misfits(of_encoder(method, {"hub": "FacebookAI/xlm-roberta-base"}))
    assert (
        "option pre_norm needs an encoder whose layers have LayerNorms before their blocks, got xlm-roberta" in problem
    )
    assert misfits(of_encoder(method, {"hub": "jhu-clsp/mmBERT-base"})) == []


@pytest.mark.parametrize(
    ("config", "base", "problem"),
    [
        ({"model_type": "nomic_bert"}, "madx", "grids.g: method m, encoder e: adapters need an encoder of type"),
        (
            {"model_type": "big_bird"},
            "structured-dropout",
            "structured attention needs an encoder of type bert",
        ),
        (
            {"model_type": "xlm", "emb_dim": 16, "n_heads": 2},
            "xmod",
            "in an encoder of type xlm, embeddings.weight",
        ),
        ({"model_type": "electra", "embedding_size": 8}, "madx", None),
    ],
)
def test_the_files_of_a_type_that_is_not_listed_tell_what_fits(
    config: dict[str, Any], base: str, problem: str | None, tmp_path: Path
) -> None:
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16}
    (tmp_path / "config.json").write_text(json.dumps(sizes | config))
    options = {"language": False, "invertible": True} if base == "madx" else {}
    described = of_encoder({"base": base, "options": options}, {"path": str(tmp_path), "tokenizer": "own"})
    messages = misfits(described)
    assert [problem in message for message in messages] == [True] if problem else messages == []
