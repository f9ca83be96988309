"""The head seq2seq: what the decoder reads and predicts, its loss, and beam search."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from encoders_fixture import KINDS, model_of, some_translations, translations, write_encoder
from transformers import XLMRobertaConfig

from xlgrid.heads import HEADS
from xlgrid.heads.encoding import IGNORED, Encoding
from xlgrid.methods import Method
from xlgrid.models import parameters, prediction
from xlgrid.models.load import check_positions, positions
from xlgrid.papers.luo2021.seq2seq import HEAD
from xlgrid.papers.luo2021.seq2seq.bleu import signature, statistics
from xlgrid.papers.luo2021.seq2seq.head import generate
from xlgrid.tasks import task

pytestmark = pytest.mark.usefixtures("one_thread")
ROWS = np.arange(6)


@pytest.fixture(params=KINDS)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return model_of(write_encoder(tmp_path / "encoder", request.param))


def sources(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: batch[name] for name in ("input_ids", "attention_mask")}


class Letters:
    """A tokenizer whose tokens are letters, with special tokens around them."""

    def __call__(self, texts: list[str], truncation: bool, max_length: int) -> Any:
        kept = [text[: max_length - 2] for text in texts]
        encodings = [Letters.Row(text, len(text) > max_length - 2) for text in texts]
        ids = [[0, *map(ord, text), 2] for text in kept]
        for encoding, row in zip(encodings, ids, strict=True):
            encoding.sequence_ids = [None, *[0] * (len(row) - 2), None]
        return Letters.Encoded(ids, encodings)

    class Row:
        def __init__(self, text: str, is_cut: bool) -> None:
            self.overflowing = [text] if is_cut else []
            self.sequence_ids: list[Any] = []

    class Encoded(dict):
        def __init__(self, ids: list[list[int]], encodings: list[Any]) -> None:
            super().__init__(input_ids=ids)
            self.encodings = encodings


def test_rows_have_the_tokens_of_both_texts_and_the_reference() -> None:
    encoding = Encoding(Letters(), max_length=5)
    table = pa.table({"source": ["ab", "abcdef"], "target": ["xyz", ""]})
    columns = HEAD.encode(table, task("translation"), encoding)
    assert columns["input_ids"] == [[0, 97, 98, 2], [0, 97, 98, 99, 2]]
    assert columns["target_ids"] == [[0, 120, 121, 122, 2], [0, 2]]
    assert columns["target_size"] == [5, 2] and columns["reference"] == ["xyz", ""]
    assert encoding.truncated == 1, "a source that is too long is counted"


def test_the_decoder_reads_a_target_and_predicts_its_next_tokens() -> None:
    tokens = translations([[5], [6, 7]], [[8, 9, 10], [11]])
    batch = HEAD.collate(tokens, np.array([1, 0]), False)
    assert batch["input_ids"].tolist() == [[0, 6, 7, 2], [0, 5, 2, 1]]
    assert batch["decoder_input_ids"].tolist() == [[0, 11, 2, 1], [0, 8, 9, 10]]
    assert batch["labels"].tolist() == [[11, 2, IGNORED, IGNORED], [8, 9, 10, 2]]
    assert batch["decoder_attention_mask"].tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]


def test_lengths_count_the_tokens_of_targets() -> None:
    tokens = translations([[5], [6, 7]], [[8, 9, 10], [11]])
    assert tokens.lengths.tolist() == [3 + 5, 4 + 3]
    assert tokens.take(np.array([1])).lengths.tolist() == [7]


@torch.no_grad()
def test_no_token_sees_a_later_one_and_every_token_sees_the_source(model: Any) -> None:
    batch = HEAD.collate(some_translations(), ROWS, False)
    before = HEAD.scores(model, batch)[0].reshape(6, -1, 40)
    later = batch | {"decoder_input_ids": batch["decoder_input_ids"].clone()}
    later["decoder_input_ids"][:, 2:] = 7
    after = HEAD.scores(model, later)[0].reshape(6, -1, 40)
    torch.testing.assert_close(after[:, :2], before[:, :2], atol=1e-5, rtol=0)
    assert ((after - before)[:, 2:].abs().amax(-1) > 1e-4).any()
    other = HEAD.scores(model, batch | {"input_ids": batch["input_ids"].clone().fill_(9)})[0].reshape(6, -1, 40)
    assert ((other - before).abs().amax(-1) > 1e-4).all()


@torch.no_grad()
@pytest.mark.parametrize("share", [0.0, 0.1, 0.4])
def test_label_smoothing_is_its_formula(model: Any, share: float) -> None:
    """The cross entropy with a distribution that gives the label 1 - share, and share / 40 to each of 40 classes."""
    batch = HEAD.collate(some_translations(), ROWS, False)
    logits, labels = (tensor.double().numpy() for tensor in HEAD.scores(model, batch))
    due = labels != IGNORED
    distribution = np.full((due.sum(), 40), share / 40)
    distribution[np.arange(len(distribution)), labels[due].astype(int)] += 1 - share
    log_p = logits[due] - np.log(np.exp(logits[due]).sum(1, keepdims=True))
    loss = HEAD.smoothed(share).loss(model, batch)
    assert float(loss) == pytest.approx(-(distribution * log_p).sum(), rel=1e-5)
    assert HEAD.label_smoothing == 0, "the head itself stays as it is"


def test_a_head_of_which_some_classes_have_no_probability_has_no_label_smoothing() -> None:
    assert HEADS["span"].smoothed(0.0) is HEADS["span"]
    with pytest.raises(
        ValueError, match=r"head span does not support label smoothing, got 0.1: leave out `label_smoothing`"
    ):
        HEADS["span"].smoothed(0.1)


@pytest.mark.parametrize("beams", [1, 4])
def test_beam_search_with_a_cache_is_beam_search_without(model: Any, beams: int) -> None:
    tokens = some_translations()
    batch = sources(HEAD.collate(tokens, ROWS, False))
    settings = {"num_beams": beams, "early_stopping": beams > 1}
    cached, uncached = (generate(model, batch, tokens, use_cache=cache, **settings) for cache in (True, False))
    assert cached == uncached
    assert len({tuple(row) for row in cached}) > 1 and max(map(len, cached)) > 5


@torch.no_grad()
def test_greedy_search_takes_the_best_token_at_each_step(model: Any) -> None:
    tokens = some_translations()
    batch = sources(HEAD.collate(tokens, ROWS, False))
    forbidden = [number for number in tokens.vocabulary.special_ids if number != 2]
    for row, generated in enumerate(generate(model, batch, tokens, num_beams=1, early_stopping=False)):
        example = {name: tensor[row : row + 1] for name, tensor in batch.items()}
        ids = [0]
        while ids[-1] != 2 and len(ids) < positions(model.position_table):
            logits = model(**example, decoder_input_ids=torch.tensor([ids])).logits[0, -1]
            logits[forbidden] = -torch.inf
            ids.append(int(logits.argmax()))
        assert generated[: len(ids)] == ids and {*generated[len(ids) :]} <= {1}


def test_hypotheses_end_where_positions_do(model: Any) -> None:
    model.generation_config.max_new_tokens = 1000
    tokens = some_translations()
    batch = sources(HEAD.collate(tokens, ROWS, False))
    # No hypothesis may end by itself.
    rows = generate(model, batch, tokens, num_beams=1, early_stopping=False, suppress_tokens=[0, 1, 2, 3, 4])
    assert {len(row) for row in rows} == {positions(model.position_table)}


def test_the_outcome_of_a_row_does_not_depend_on_its_batch(model: Any) -> None:
    tokens = some_translations(12)
    together, alone = (prediction.outcomes_on(model, Method(), tokens, budget) for budget in (10_000, 1))
    assert together == alone


def test_empty_hypotheses_have_bleu_0(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a model that ends each hypothesis at once."""
    monkeypatch.setattr(type(model), "generate", lambda self, input_ids, **_: torch.tensor([[0, 2]] * len(input_ids)))
    outcomes = prediction.outcomes_on(model, Method(), some_translations(), 1000)
    assert {outcome[0] for outcome in outcomes} == {0} and all(outcome[1] for outcome in outcomes)
    assert HEAD.all_metrics[0].score(outcomes) == 0


def test_each_reference_is_scored_by_the_tokenizer_of_its_language() -> None:
    """In a mix of dev sets, too."""
    texts = [("我非常喜欢新加坡的天气。", "我喜欢新加坡的天气。"), ("the dogs saw it", "the dog saw it")]
    tokens = translations([[5], [6]], [[7], [8]])
    tokens = replace(
        tokens,
        languages=("en", "zh", "de"),
        language_of=np.array([[0, 1], [1, 2]], np.int16),
        columns={**tokens.columns, "reference": pa.array([reference for _, reference in texts])},
    )
    hypotheses = [hypothesis for hypothesis, _ in texts]
    assert HEAD.outcomes(tokens, hypotheses) == [statistics(*texts[0], "zh"), statistics(*texts[1], "13a")]
    assert HEAD.implementation(tokens, HEAD.metric(())) == f"sacrebleu: {signature('zh')}, {signature('13a')}"
    chosen = replace(tokens, options={"bleu_tokenizer": {"zh": "char"}})
    assert HEAD.outcomes(chosen, hypotheses)[0] == statistics(*texts[0], "char")
    assert HEAD.implementation(chosen.take(np.array([0])), HEAD.metric(())) == f"sacrebleu: {signature('char')}"


def test_a_target_without_a_position_is_refused(model: Any) -> None:
    tokens = translations([[5]], [[6] * 40])
    with pytest.raises(ValueError, match=r"the longest input has 42 tokens, but the encoder takes at most"):
        check_positions(model, tokens)


def test_a_cell_counts_the_tokens_of_targets() -> None:
    tokens = translations([[5], [6, 7]], [[8, 9, 10], [11]])
    outcomes = HEAD.outcomes(tokens, ["a b", " "])
    assert HEAD.counts(tokens, outcomes) == {"target_tokens": 5 + 3, "empty_hypotheses": 1}


def test_half_of_the_tokens_pass_the_encoder_and_half_the_decoder() -> None:
    """The cross-attention counts as passed, though a run stores it as a part of the head."""
    h, inner, words = 8, 16, 50
    config = XLMRobertaConfig(
        vocab_size=words, hidden_size=h, num_hidden_layers=3, num_attention_heads=2, intermediate_size=inner
    )
    attention = 4 * h * h + 4 * h + 2 * h
    layer = attention + 2 * h * inner + inner + h + 2 * h
    output = h * h + h + 2 * h + words
    count = parameters.count(config, HEAD, 0, "full-ft", {})
    assert count.passed == (3 * layer + 3 * (layer + attention) + output + h * words) / 2
    assert count.passed_trained == count.passed and count.stored == count.total == count.trained
    assert count.evaluation == 3 * layer + 4 * (3 * (layer + attention) + output + h * words), "for four hypotheses"
    biases = parameters.count(config, HEAD, 0, "bitfit", {})
    assert biases.trained == biases.stored < biases.total
