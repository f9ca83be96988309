"""A method and a head of a grid are for the family of the encoder, as far as this is known before the encoder is there."""

import json
from pathlib import Path
from typing import Any

import pytest
from study_fixture import misfits, of_encoder

from xlgrid.study.encoders import EncoderWithHead


@pytest.mark.parametrize(
    ("hub", "base", "problem"),
    [
        (
            "jhu-clsp/mmBERT-base",
            "bitfit",
            "method m, encoder e: method bitfit trains biases, and the encoder, of type modernbert",
        ),
    ],
)
def test_a_method_that_is_not_for_the_family_of_an_encoder_is_refused(hub: str, base: str, problem: str) -> None:
    described = of_encoder({"base": base}, {"hub": hub})
    [message] = misfits(described)
    assert message.startswith("grids.g: ") and problem in message
    assert misfits(of_encoder({"base": "full-ft"}, {"hub": hub})) == []
    assert misfits(of_encoder({"base": base}, {"hub": "FacebookAI/xlm-roberta-base"})) == []


def test_the_family_of_an_encoder_in_a_folder_is_that_of_its_configuration(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "modernbert", "norm_bias": true}')
    assert misfits(of_encoder({"base": "bitfit"}, {"path": str(tmp_path)})) == []
    (tmp_path / "config.json").write_text('{"model_type": "modernbert"}')
    assert len(misfits(of_encoder({"base": "bitfit"}, {"path": str(tmp_path)}))) == 1
    (tmp_path / "config.json").write_text("{")
    assert misfits(of_encoder({"base": "bitfit"}, {"path": str(tmp_path)})) == []


def test_an_encoder_with_another_head_is_of_the_family_of_the_encoder_that_it_is_of() -> None:
    described = of_encoder({"base": "bitfit"}, {"hub": "jhu-clsp/mmBERT-base"})
    described.grids["g"] = described.grids["g"].model_copy(update={"encoder": ["headed"]})
    described.encoders["headed"] = EncoderWithHead.model_validate({"of": "e", "lm_head": {"languages": ["en"]}})
    [problem] = misfits(described, "headed")
    assert "encoder headed: method bitfit trains biases, and the encoder, of type modernbert" in problem


SIZE = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16}


@pytest.mark.parametrize(
    ("config", "base", "problem"),
    [
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
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else "",
)
def test_the_files_of_a_type_that_is_not_listed_tell_what_fits(
    config: dict[str, Any], base: str, problem: str | None, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SIZE | config))
    described = of_encoder({"base": base}, {"path": str(tmp_path), "tokenizer": "own"})
    messages = misfits(described)
    assert [problem in message for message in messages] == [True] if problem else messages == []


def test_a_head_that_a_type_lacks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SIZE | {"model_type": "nomic_bert"}))
    encoder = {"path": str(tmp_path), "tokenizer": "own"}
    described = of_encoder({"base": "full-ft"}, encoder)
    described.tasks["ner"] = type(described.tasks["ner"])(kind="xquad")
    [message] = misfits(described)
    assert message.startswith("grids.g: task ner, encoder e: transformers has no class QuestionAnswering")


def test_a_fetched_encoder_of_the_hub_tells_what_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    described = of_encoder({"base": "bitfit"}, {"hub": "some/encoder"})
    assert misfits(described) == [], "nothing is known before it is fetched"
    folder = tmp_path / "results/s/encoders/e"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(SIZE | {"model_type": "modernbert"}))
    (folder / "encoder.json").write_text(json.dumps({"hub": "some/encoder"}))
    [message] = misfits(described)
    assert "of type modernbert" in message
    (folder / "encoder.json").write_text(json.dumps({"hub": "an/other"}))
    assert misfits(described) == [], "the folder has an encoder that the study names no more"
