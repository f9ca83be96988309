"""The modules of a published X-MOD get the codes of a study, and each must be there in its size."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from scratch_fixture import encoder_of
from tokenizers import Tokenizer
from transformers import XmodForMaskedLM
from xmod_fixture import MAPPING, RELEASED, batch, logits, save, transformers_model

from xlgrid.data.encoders import copy_encoder

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return encoder_of(tmp_path_factory.mktemp("tokenizer"), "xlmr")


@pytest.fixture
def published(tokenizer: Path) -> Any:
    """A model of transformers with an embedding for each token of the tokenizer."""
    entries = Tokenizer.from_file(str(tokenizer / "tokenizer.json")).get_vocab_size()
    return transformers_model(RELEASED, entries)


def test_without_a_mapping_the_error_says_which_one_to_write(published: Any, tokenizer: Path, tmp_path: Path) -> None:
    copy_encoder(save(published, tmp_path / "published"), tokenizer, tmp_path / "taken")
    with pytest.raises(ValueError, match=r"name it in `modules` of the encoder, as \{sw: sw_KE\}"):
        logits(tmp_path / "taken", "sw")


def test_a_module_that_the_checkpoint_lacks_is_named(published: Any, tokenizer: Path, tmp_path: Path) -> None:
    source = save(published, tmp_path / "published")
    with pytest.raises(ValueError, match=r"modules\.sw: unknown module of the encoder 'sw_KA'.*sw_KE"):
        copy_encoder(source, tokenizer, tmp_path / "taken", {"sw": "sw_KA"})
    assert not (tmp_path / "taken").exists()
    with pytest.raises(ValueError, match="encoders of this type have none: leave it out"):
        copy_encoder(tokenizer, tokenizer, tmp_path / "taken", MAPPING)


def test_two_modules_cannot_have_one_name(published: Any, tokenizer: Path, tmp_path: Path) -> None:
    source = save(published, tmp_path / "published")
    with pytest.raises(ValueError, match="`modules` gives fr_XX to a module, but another module has this name"):
        copy_encoder(source, tokenizer, tmp_path / "taken", {"fr_XX": "en_XX"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"languages": [*RELEASED, "de_DE"]}, "the module of de_DE does not fit the encoder: .* is missing"),
        ({"adapter_reduction_factor": 4}, r"has shape \[8, 16\], but config.json has \[4, 16\]"),
    ],
)
def test_modules_that_do_not_fit_are_refused_when_the_encoder_is_taken_over(
    published: Any, tokenizer: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    source = save(published, tmp_path / "published")
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(ValueError, match=message):
        copy_encoder(source, tokenizer, tmp_path / "taken")


@pytest.mark.parametrize("pickled", [False, True])
def test_a_published_checkpoint_gives_the_logits_of_transformers(
    published: Any, tokenizer: Path, tmp_path: Path, pickled: bool
) -> None:
    copy_encoder(save(published, tmp_path / "published", pickled), tokenizer, tmp_path / "taken", MAPPING)
    config = json.loads((tmp_path / "taken" / "config.json").read_text())
    assert config["languages"] == ["en", "fr_XX", "sw"], "languages that are not in the mapping keep their names"
    for language, number in (("en", 0), ("sw", 2)):
        with torch.no_grad():
            expected = published(**batch(3), lang_ids=torch.full((3,), number)).logits
        assert torch.equal(logits(tmp_path / "taken", language), expected)
    read, about = XmodForMaskedLM.from_pretrained(tmp_path / "taken", output_loading_info=True)
    assert not about["missing_keys"] and not about["unexpected_keys"]
    with torch.no_grad():
        assert torch.equal(read.eval()(**batch(3), lang_ids=torch.full((3,), 2)).logits, expected)
