"""A method and a head of a grid are for the family of the encoder, as far as this is known before the encoder is there."""

import json
from pathlib import Path
from typing import Any

import pytest

from xlgrid.study import check_encoders
from xlgrid.study.encoders import EncoderWithHead
from xlgrid.study.schema import Study


def study(method: dict[str, Any], encoder: dict[str, Any]) -> Study:
    axes = {"task": ["ner"], "encoder": ["e"], "method": ["m"], "source": ["en"], "target": ["en"], "seed": [1]}
    return Study(
        name="s",
        title="s",
        languages=["en"],
        tokenizers={"own": {"kind": "xlmr", "languages": ["en"]}},
        encoders={"e": encoder},
        tasks={"ner": {"kind": "ruletaker"}},
        methods={"m": method},
        grids={"g": axes},
    )


@pytest.mark.parametrize(
    ("hub", "base", "problem"),
    [
        (
            "jhu-clsp/mmBERT-base",
            "bitfit",
            "method m, encoder e: method bitfit trains biases, and the encoder, of type modernbert",
        ),
        (
            "EuroBERT/EuroBERT-210m",
            "qcross",
            "with `tune: bitfit` the method trains biases, and the encoder, of type eurobert",
        ),
        ("microsoft/mdeberta-v3-base", "structured-dropout", "which an encoder of type deberta-v2 does not use"),
        ("facebook/xmod-base", "madx", "adapters are for encoders without modules for languages, got one of type xmod"),
    ],
)
def test_a_method_that_is_not_for_the_family_of_an_encoder_is_refused(hub: str, base: str, problem: str) -> None:
    described = study({"base": base}, {"hub": hub})
    [message] = check_encoders.families(described)
    assert message.startswith("grids.g: ") and problem in message
    assert [*check_encoders.families(study({"base": "full-ft"}, {"hub": hub}))] == []
    assert [*check_encoders.families(study({"base": base}, {"hub": "FacebookAI/xlm-roberta-base"}))] == []


def test_the_family_of_an_encoder_in_a_folder_is_that_of_its_configuration(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "modernbert", "norm_bias": true}')
    assert [*check_encoders.families(study({"base": "bitfit"}, {"path": str(tmp_path)}))] == []
    (tmp_path / "config.json").write_text('{"model_type": "modernbert"}')
    assert len([*check_encoders.families(study({"base": "bitfit"}, {"path": str(tmp_path)}))]) == 1
    (tmp_path / "config.json").write_text("{")
    assert [*check_encoders.families(study({"base": "bitfit"}, {"path": str(tmp_path)}))] == []


def test_an_encoder_with_another_head_is_of_the_family_of_the_encoder_that_it_is_of() -> None:
    described = study({"base": "bitfit"}, {"hub": "jhu-clsp/mmBERT-base"})
    described.grids["g"] = described.grids["g"].model_copy(update={"encoder": ["headed"]})
    described.encoders["headed"] = EncoderWithHead.model_validate({"of": "e", "lm_head": {"languages": ["en"]}})
    [problem] = check_encoders.families(described)
    assert "encoder headed: method bitfit trains biases, and the encoder, of type modernbert" in problem


def test_adapters_behind_a_norm_that_the_layers_of_an_encoder_lack_are_refused() -> None:
    method = {"base": "madx", "options": {"pre_norm": "norm", "language": False, "invertible": False}}
    [problem] = check_encoders.families(study(method, {"hub": "FacebookAI/xlm-roberta-base"}))
    assert (
        "option pre_norm is for encoders whose layers have LayerNorms before their blocks, got xlm-roberta" in problem
    )
    assert [*check_encoders.families(study(method, {"hub": "jhu-clsp/mmBERT-base"}))] == []


SIZE = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16}


@pytest.mark.parametrize(
    ("config", "base", "problem"),
    [
        ({"model_type": "nomic_bert"}, "madx", "grids.g: method m, encoder e: adapters are for encoders of the types"),
        (
            {"model_type": "big_bird"},
            "structured-dropout",
            "structured attention is for encoders of the types bert",
        ),
        (
            {"model_type": "xlm", "emb_dim": 16, "n_heads": 2},
            "xmod",
            "does not know the name of those of an encoder of type xlm",
        ),
        (
            {"model_type": "ultrabert", "head_dim": 8},
            "bitfit",
            "method bitfit trains biases, and the encoder, of type ultrabert",
        ),
        (
            {"model_type": "bart", "d_model": 16},
            "full-ft",
            "/config.json has the model_type bart",
        ),
        (
            {"model_type": "new", "auto_map": {}},
            "full-ft",
            "/config.json has the unknown model_type 'new'",
        ),
        ({"model_type": "mpnet"}, "full-ft", None),
        ({"model_type": "electra", "embedding_size": 8}, "madx", None),
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else "",
)
def test_the_files_of_a_type_that_is_not_listed_tell_what_fits(
    config: dict[str, Any], base: str, problem: str | None, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SIZE | config))
    options = {"language": False, "invertible": True} if base == "madx" else {}
    described = study({"base": base, "options": options}, {"path": str(tmp_path), "tokenizer": "own"})
    messages = [*check_encoders.families(described)]
    assert [problem in message for message in messages] == [True] if problem else messages == []


def test_a_head_that_a_type_lacks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SIZE | {"model_type": "nomic_bert"}))
    encoder = {"path": str(tmp_path), "tokenizer": "own"}
    described = study({"base": "full-ft"}, encoder)
    described.tasks["ner"] = type(described.tasks["ner"])(kind="xquad")
    [message] = check_encoders.families(described)
    assert message.startswith("grids.g: task ner, encoder e: transformers has no class QuestionAnswering")


def test_a_fetched_encoder_of_the_hub_tells_what_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    described = study({"base": "madx"}, {"hub": "some/encoder"})
    assert [*check_encoders.families(described)] == [], "nothing is known before it is fetched"
    folder = tmp_path / "results/s/encoders/e"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(SIZE | {"model_type": "nomic_bert"}))
    (folder / "encoder.json").write_text(json.dumps({"hub": "some/encoder"}))
    [message] = check_encoders.families(described)
    assert "got nomic_bert" in message
    (folder / "encoder.json").write_text(json.dumps({"hub": "an/other"}))
    assert [*check_encoders.families(described)] == [], "the folder has an encoder that the study names no more"
