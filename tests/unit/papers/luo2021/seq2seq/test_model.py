"""The encoder-decoder is that of transformers, with the weights of one encoder and shared word embeddings."""

from pathlib import Path
from typing import Any

import pytest
import torch
from encoders_fixture import KINDS, model_of, some_translations, write_encoder
from transformers import DistilBertConfig, DistilBertModel, EncoderDecoderModel

from xlgrid.base.errors import Damaged
from xlgrid.models.load import load_model
from xlgrid.papers.luo2021.seq2seq import HEAD
from xlgrid.papers.luo2021.seq2seq.model import texts

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(params=KINDS)
def encoder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write_encoder(tmp_path / "encoder", request.param)


@pytest.fixture
def batch() -> dict[str, torch.Tensor]:
    tokens = some_translations()
    batch = HEAD.collate(tokens, torch.arange(len(tokens)).numpy(), False)
    return {name: tensor for name, tensor in batch.items() if name != "labels"}


@torch.no_grad()
def test_the_forward_is_that_of_transformers(encoder: Path, batch: dict[str, torch.Tensor]) -> None:
    model = model_of(encoder)
    expected = EncoderDecoderModel.from_encoder_decoder_pretrained(encoder, encoder).eval()
    torch.testing.assert_close(model(**batch).logits, expected(**batch).logits, atol=1e-6, rtol=0)


def test_the_word_embeddings_are_shared(encoder: Path) -> None:
    model = model_of(encoder)
    words = model.get_input_embeddings().weight
    assert model.decoder.get_input_embeddings().weight is words
    assert model.decoder.get_output_embeddings().weight is words
    own = model.decoder.base_model.embeddings.position_embeddings.weight
    assert own is not model.encoder.embeddings.position_embeddings.weight
    names = [name for name, p in model.named_parameters() if p is words]
    assert names == ["encoder.embeddings.word_embeddings.weight"]


def test_cross_attention_is_what_the_encoder_stores_or_random(tmp_path: Path) -> None:
    stored, plain = (model_of(write_encoder(tmp_path / str(cross), "xlmr", cross)) for cross in (True, False))
    assert stored.stores_cross and not plain.stores_cross
    name = "decoder.roberta.encoder.layer.2.crossattention.self.query.weight"
    query = plain.get_parameter(name).detach()
    assert stored.get_parameter(name).std() > 0.1
    assert float(query.std()) == pytest.approx(plain.config.decoder.initializer_range, rel=0.2)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        again = load_model(tmp_path / "False", HEAD, 0)
    assert not torch.equal(again.get_parameter(name), query), "the seed decides"


def test_dropout_is_set_in_both_parts(encoder: Path) -> None:
    model = model_of(encoder, dropout=0.3)
    rates = {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)}
    assert rates == {0.3}


def test_an_encoder_without_a_decoder_is_refused(tmp_path: Path) -> None:
    DistilBertModel(DistilBertConfig(vocab_size=20, dim=8, n_layers=1, n_heads=2, hidden_dim=8)).save_pretrained(
        tmp_path
    )
    message = r"no decoder for encoders of this type: name an encoder of type bert, roberta or xlm-roberta"
    with pytest.raises(ValueError, match=message) as caught:
        load_model(tmp_path, HEAD, 0)
    assert not isinstance(caught.value, Damaged), "nothing is to be deleted"


def test_texts_have_no_special_tokens(encoder: Path) -> None:
    assert texts(model_of(encoder), [[0, 5, 6, 2, 1, 1], [0, 2]]) == ["w5 w6", ""]


def test_a_missing_tokenizer_is_named(encoder: Path) -> None:
    model: Any = model_of(encoder)
    (encoder / "tokenizer.json").unlink()
    with pytest.raises(Damaged, match=r"tokenizer\.json is missing or damaged .*make or fetch the encoder again"):
        texts(model, [[0, 2]])
