"""The head `embed`: vectors are those of transformers, and retrieval is in the direction of XTREME."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, BertModel

from xlgrid.data import batches
from xlgrid.data.tokenize import TokensFile
from xlgrid.heads import HEADS
from xlgrid.heads.tokens import Tokens
from xlgrid.methods import Method
from xlgrid.models import load, prediction

pytestmark = pytest.mark.usefixtures("one_thread")

HEAD = HEADS["embed"]


def outcomes_of(tokens: Tokens, vectors: list[Any]) -> list[Any]:
    return HEAD.outcomes(tokens, HEAD.answers(tokens, vectors))


# Sentences of token ids between the special tokens 2 and 3; row i of both sides is an example.
FIRST = [[2, 10, 11, 3], [2, 12, 3], [2, 13, 14, 15, 16, 3], [2, 17, 18, 3], [2, 19, 20, 21, 3]]
SECOND = [[2, 30, 3], [2, 31, 32, 33, 3], [2, 34, 35, 3], [2, 36, 3], [2, 37, 38, 39, 3]]
ABOUT = {"labels": [], "head": "embed", "pad_id": 0, "mask_id": 4, "special_ids": [0, 2, 3, 4], "vocabulary": 40}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model, as encoders are stored."""
    folder = tmp_path_factory.mktemp("encoder")
    torch.manual_seed(1)
    size = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32}
    BertForMaskedLM(BertConfig(vocab_size=40, max_position_embeddings=40, **size)).save_pretrained(folder)
    return folder


def tokens_of(path: Path, **options: Any) -> Tokens:
    rows = [ids for pair in zip(FIRST, SECOND, strict=True) for ids in pair]
    with TokensFile(path, HEAD.fields(), ABOUT | {"options": HEAD.options(**options).model_dump()}) as file:
        file.write(
            {
                "input_ids": rows,
                "context_length": list(map(len, rows)),
                "side": [0, 1] * len(FIRST),
                "example": [number // 2 for number in range(len(rows))],
            }
        )
    return batches.read(path, "fr-en")


def vectors_of(encoder: Path, tokens: Tokens) -> np.ndarray:
    model = load.load_model(encoder, HEAD, 0).eval()
    rows = np.arange(len(tokens))
    with torch.inference_mode():
        return np.stack(HEAD.predict(model, HEAD.evaluation_batch(tokens, rows, True), tokens, rows))


def expected(encoder: Path, layer: int, pool: str, special_tokens: bool) -> np.ndarray:
    """The vectors of single sentences without padding, by transformers."""
    model = BertModel.from_pretrained(encoder).eval()
    vectors = []
    for ids in (ids for pair in zip(FIRST, SECOND, strict=True) for ids in pair):
        with torch.no_grad():
            states = model(torch.tensor([ids]), output_hidden_states=True).hidden_states[layer][0]
        states = states if special_tokens else states[1:-1]
        vectors.append((states[0] if pool == "cls" else states.mean(0)).numpy())
    return np.stack(vectors)


@pytest.mark.parametrize("layer", [0, 1, 2, 3, None])
@pytest.mark.parametrize(("pool", "special_tokens"), [("mean", True), ("mean", False), ("cls", True)])
def test_vectors_are_those_of_transformers(
    encoder: Path, tmp_path: Path, layer: int | None, pool: str, special_tokens: bool
) -> None:
    tokens = tokens_of(tmp_path / "t.arrow", layer=layer, pool=pool, special_tokens=special_tokens)
    reference = expected(encoder, 3 if layer is None else layer, pool, special_tokens)
    np.testing.assert_allclose(vectors_of(encoder, tokens), reference, atol=1e-6)


def test_a_layer_that_the_encoder_lacks_is_an_error(encoder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"`layer` is 4, but the encoder has 3 layers: write 0 to 3"):
        vectors_of(encoder, tokens_of(tmp_path / "t.arrow", layer=4))


def test_the_layer_may_depend_on_the_number_of_layers(encoder: Path, tmp_path: Path) -> None:
    tokens = tokens_of(tmp_path / "t.arrow", layer={2: 2, 3: 1})
    np.testing.assert_allclose(vectors_of(encoder, tokens), expected(encoder, 1, "mean", True), atol=1e-6)
    with pytest.raises(ValueError, match=r"`layer` is for encoders of 2 or 12 layers, and the encoder has 3: add 3"):
        vectors_of(encoder, tokens_of(tmp_path / "t.arrow", layer={2: 2, 12: 8}))


def test_vectors_that_are_no_numbers_are_an_error(encoder: Path, tmp_path: Path) -> None:
    tokens = tokens_of(tmp_path / "t.arrow")
    model, rows = load.load_model(encoder, HEAD, 0).eval(), np.arange(len(tokens))
    with torch.no_grad():
        model.embeddings.word_embeddings.weight[12] = float("nan")
    with pytest.raises(ValueError, match="values that are not numbers"):
        HEAD.predict(model, HEAD.evaluation_batch(tokens, rows, True), tokens, rows)


def test_each_sentence_is_in_the_language_of_its_side(tmp_path: Path) -> None:
    tokens = tokens_of(tmp_path / "t.arrow")
    assert [tokens.languages[number] for number in tokens.language_of[:, 0]] == ["fr", "en"] * 5
    assert not tokens.segments(np.arange(10)).switched.any()
    assert tokens.examples == 5


# Sentences of three examples: the second of the first language is nearest to all of the second language but the last one.
NEAR = {0: [[4, 1], [5, 5], [0, 3]], 1: [[5, 4], [4, 5], [0, 1]]}


def predictions(tokens: Tokens) -> list[np.ndarray]:
    return [np.array(NEAR[side][example], np.float32) for example in range(3) for side in (0, 1)]


def table(tmp_path: Path, **options: Any) -> Tokens:
    return tokens_of(tmp_path / "t.arrow", **options).take(np.arange(6))


def test_each_english_sentence_searches_the_foreign_ones(tmp_path: Path) -> None:
    """Of `fr-en`, as XTREME's code; in the other direction, the first sentence is right, too."""
    tokens = table(tmp_path)
    assert outcomes_of(tokens, predictions(tokens)) == [0, 1, 1]
    tokens = table(tmp_path, queries="first")
    assert outcomes_of(tokens, predictions(tokens)) == [1, 0, 1]


def test_outcomes_are_those_of_all_cosines_and_do_not_depend_on_batches(encoder: Path, tmp_path: Path) -> None:
    tokens = tokens_of(tmp_path / "t.arrow", layer=2)
    vectors = expected(encoder, 2, "mean", True)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    right = (vectors[1::2] @ vectors[::2].T).argmax(1) == np.arange(5)
    model = load.load_model(encoder, HEAD, 0)
    for budget in (1, 1000):
        assert prediction.outcomes_on(model, Method(), tokens, budget) == right.astype(int).tolist()


def test_two_equal_sentences_compete(tmp_path: Path) -> None:
    tokens = table(tmp_path)
    vectors = [np.array([1, 0], np.float32)] * 6
    assert outcomes_of(tokens, vectors) == [1, 0, 0]


def test_an_encoder_stored_without_a_head_has_the_same_vectors(encoder: Path, tmp_path: Path) -> None:
    BertModel.from_pretrained(encoder).save_pretrained(tmp_path / "bare")
    tokens = tokens_of(tmp_path / "t.arrow")
    np.testing.assert_array_equal(vectors_of(tmp_path / "bare", tokens), vectors_of(encoder, tokens))


def test_chance_is_one_of_all_sentences_of_the_other_language(tmp_path: Path) -> None:
    assert HEAD.chance(table(tmp_path)) == {"accuracy": pytest.approx(100 / 3)}
