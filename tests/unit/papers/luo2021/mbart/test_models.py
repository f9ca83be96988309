"""mBART with a head reads tokens files in mBART's layout, and computes what transformers computes of inputs in this layout."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from encoders_fixture import some_translations
from tokenizers import Tokenizer, models
from transformers import MBartConfig, MBartForConditionalGeneration, MBartForSequenceClassification

from xlgrid.base.arrays import Segments
from xlgrid.heads import ALL_HEADS
from xlgrid.heads.probe import type_problem
from xlgrid.heads.tokens import Tokens
from xlgrid.models.load import check_positions, load_model, positions
from xlgrid.papers.luo2021.mbart.models import in_layout, language_tokens, languages_of
from xlgrid.papers.luo2021.seq2seq import HEAD

pytestmark = pytest.mark.usefixtures("one_thread")
CODES = ["de", "en"]


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """An mBART with random weights: 40 tokens, and those of two languages."""
    torch.manual_seed(3)
    sizes = {f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in (("layers", 2), ("ffn_dim", 24))}
    sizes |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "d_model": 16, "vocab_size": 42}
    others: dict[str, Any] = {"languages": CODES, "max_position_embeddings": 32, "forced_eos_token_id": None}
    model = MBartForConditionalGeneration(MBartConfig(**sizes, **others, scale_embedding=True))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    model.save_pretrained(tmp_path)
    words = {token: number for number, token in enumerate(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])}
    words |= {f"w{number}": number for number in range(5, 40)}
    Tokenizer(models.WordLevel(words, "<unk>")).save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def load(encoder: Path, head: str) -> Any:
    torch.manual_seed(4)
    return load_model(encoder, ALL_HEADS.find(head), 3, 0.0).eval()


def batch_of(model: Any, tokens: Tokens) -> dict[str, torch.Tensor]:
    rows = np.arange(len(tokens))
    batch = HEAD.collate(tokens, rows, False)
    return batch | languages_of(model, tokens.segments(rows))


def test_an_input_ends_with_its_language() -> None:
    ids = torch.tensor([[0, 7, 8, 2], [0, 9, 2, 1], [0, 2, 1, 1]])
    inputs = in_layout(ids, (ids != 1).long(), torch.tensor([40, 41, 40]), 1)
    assert inputs.tolist() == [[7, 8, 2, 40], [9, 2, 41, 1], [2, 40, 1, 1]]


@torch.no_grad()
def test_a_label_is_that_of_transformers(encoder: Path) -> None:
    model, tokens = load(encoder, "sequence"), some_translations()
    plain = MBartForSequenceClassification.from_pretrained(encoder, num_labels=3).eval()
    plain.load_state_dict(model.state_dict())
    batch = batch_of(model, tokens)
    batch = {name: batch[name] for name in ("input_ids", "attention_mask", "languages")}
    logits = model(**batch).logits
    for row in range(len(tokens)):
        _, *text = tokens.values[tokens.offsets[row] : tokens.offsets[row + 1]].tolist()
        # The language of the second segment, which is the last one.
        expected = plain(input_ids=torch.tensor([[*text, 41]])).logits
        torch.testing.assert_close(logits[row : row + 1], expected, atol=1e-6, rtol=0)


@torch.no_grad()
def test_the_loss_of_a_translation_is_that_of_transformers(encoder: Path) -> None:
    model, tokens = load(encoder, "seq2seq"), some_translations()
    plain = MBartForConditionalGeneration.from_pretrained(encoder).eval()
    head, batch = HEAD, batch_of(model, tokens)
    total = torch.zeros(())
    for row, target in enumerate(tokens.columns["target_ids"].to_pylist()):
        _, *text = tokens.values[tokens.offsets[row] : tokens.offsets[row + 1]].tolist()
        logits = plain(
            input_ids=torch.tensor([[*text, 40]]), decoder_input_ids=torch.tensor([[41, *target[1:-1]]])
        ).logits
        total += torch.nn.functional.cross_entropy(logits[0], torch.tensor(target[1:]), reduction="sum")
    assert float(head.loss(model, batch)) == pytest.approx(float(total), rel=1e-5)


def test_hypotheses_are_those_of_transformers_and_have_no_special_tokens(encoder: Path) -> None:
    model, tokens = load(encoder, "seq2seq"), some_translations()
    model.generation_config.max_new_tokens = 12
    head = HEAD
    hypotheses = head.predict(model, batch_of(model, tokens), tokens, np.arange(len(tokens)))
    plain = MBartForConditionalGeneration.from_pretrained(encoder).eval()
    for row, hypothesis in enumerate(hypotheses):
        _, *text = tokens.values[tokens.offsets[row] : tokens.offsets[row + 1]].tolist()
        settings = {"num_beams": 4, "max_new_tokens": 12, "early_stopping": True, "decoder_start_token_id": 41}
        settings |= {"suppress_tokens": [0, 1, 3, 4, 40, 41], "forced_eos_token_id": None}
        [expected] = plain.generate(input_ids=torch.tensor([[*text, 40]]), **settings).tolist()
        assert hypothesis == " ".join(f"w{number}" for number in expected if 5 <= number < 40)


def test_a_long_target_has_a_position_for_every_token(encoder: Path) -> None:
    model = load(encoder, "seq2seq")
    assert positions(model.position_table) == 32
    tokens = some_translations()
    long = Tokens(**{**tokens.__dict__, "columns": dict(tokens.columns) | {"target_size": np.array([33])}})
    check_positions(model, tokens)
    with pytest.raises(ValueError, match="the longest input has 33 tokens, but the encoder takes at most 32"):
        check_positions(model, long)


def test_a_language_without_a_token_is_named(encoder: Path) -> None:
    model = load(encoder, "sequence")
    segments = Segments(np.array([4]), ("fr", "en"), np.array([[0, 0]], np.int16), 4)
    with pytest.raises(ValueError, match=r"the mBART has no token for .*'fr'"):
        languages_of(model, segments)


def test_an_mbart_of_others_has_no_languages() -> None:
    with pytest.raises(ValueError, match="has no list `languages` of the tokens of languages"):
        language_tokens(MBartConfig())


def test_other_heads_are_refused(encoder: Path) -> None:
    for head in ("span", "mlm", "embed"):
        with pytest.raises(ValueError, match=f"supports the heads sequence and seq2seq, got {head}"):
            load_model(encoder, ALL_HEADS.find(head), 0)


def test_an_mbart_is_no_problem() -> None:
    assert type_problem({"model_type": "mbart", "d_model": 16}) is None
