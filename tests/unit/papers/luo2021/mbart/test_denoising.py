"""The noise of mBART against its properties, and the loss against that of transformers."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tokens_fixture import write
from transformers import MBartConfig, MBartForConditionalGeneration

from xlgrid.data import batches
from xlgrid.heads.language_modelling.mlm import Masked
from xlgrid.heads.tokens import Tokens, Vocabulary
from xlgrid.papers.luo2021.mbart.denoising import Denoising, DenoisingHead, damage

pytestmark = pytest.mark.usefixtures("one_thread")
IGNORED = -100
VOCABULARY = Vocabulary(60, 4, (0, 1, 2, 3, 4))
LANGUAGES = {"en": 60, "fr": 61}
# Texts of one part or several, each of which ends with a separator.
PARTS = st.lists(st.lists(st.integers(5, 59), min_size=1, max_size=30), min_size=1, max_size=4)


def text(parts: list[list[int]]) -> np.ndarray:
    return np.array([number for part in parts for number in [*part, 2]])


@given(PARTS, st.sampled_from([0.1, 0.35, 0.8]), st.sampled_from([0.5, 3.5, 10.0]), st.booleans(), st.integers(0, 9))
def test_spans_have_their_share_and_leave_special_tokens(
    parts: list[list[int]], share: float, span: float, permute: bool, seed: int
) -> None:
    ids, settings = text(parts), Denoising(share=share, span=span, permute=permute)
    damaged = damage(ids, VOCABULARY, settings, share, np.random.default_rng(seed))
    words = ids != 2
    assert damaged.is_masked.sum() == max(1, round(share * words.sum()))
    assert not damaged.is_masked[~words].any()
    assert len(damaged.ids) <= len(ids)
    assert (damaged.ids == 2).sum() == len(parts) and damaged.ids[-1] == 2
    kept = damaged.ids[(damaged.ids != 4) & (damaged.ids != 2)]
    expected = ids[words & ~damaged.is_masked]
    if permute:
        assert sorted(kept) == sorted(expected)
    else:
        assert kept.tolist() == expected.tolist()
    again = damage(ids, VOCABULARY, settings, share, np.random.default_rng(seed))
    assert np.array_equal(again.ids, damaged.ids) and np.array_equal(again.is_masked, damaged.is_masked)


def test_a_span_becomes_one_mask_and_a_span_of_no_tokens_a_further_one() -> None:
    ids = text([[*range(5, 59)]])
    lengths, masks, runs = [], 0, 0
    for seed in range(300):
        damaged = damage(ids, VOCABULARY, Denoising(), 0.35, np.random.default_rng(seed))
        edges = np.diff(np.concatenate([[0], damaged.is_masked.astype(int), [0]]))
        starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
        lengths += (ends - starts).tolist()
        runs += len(starts)
        masks += int((damaged.ids == 4).sum())
    # A Poisson distribution of mean 3.5 without zeros has the mean 3.61; the last span of a text is cut.
    assert 3.2 < np.mean(lengths) < 3.7
    assert 0.02 < masks / runs - 1 < 0.045, "exp(-3.5) of the spans have no tokens"


def test_every_token_is_masked_about_equally_often() -> None:
    ids = text([[*range(5, 45)]])
    masked = sum(damage(ids, VOCABULARY, Denoising(), 0.35, np.random.default_rng(n)).is_masked for n in range(3000))
    # Spans lie between gaps drawn evenly, so that tokens at the ends are masked a little less often.
    assert np.abs(masked[4:36] / 3000 - 0.36).max() < 0.06 and masked[-1] == 0


def test_parts_change_places_and_separators_stay() -> None:
    ids = text([[5, 6], [7], [8, 9, 10]])
    settings = Denoising.model_validate({"noise": "tokens"})
    orders = set()
    for seed in range(60):
        damaged = damage(ids, VOCABULARY, settings, 0.0, np.random.default_rng(seed))
        orders.add(tuple(damaged.ids.tolist()))
    pieces = [(5, 6), (7,), (8, 9, 10)]
    assert len(orders) == 6
    for order in orders:
        parts = " ".join(map(str, order)).split(" 2")[:-1]
        assert sorted(tuple(map(int, part.split())) for part in parts) == pieces


def test_noise_of_tokens_is_that_of_mlm() -> None:
    ids = text([[*range(5, 55)]])
    settings = Denoising.model_validate({"noise": "tokens", "permute": False})
    counts = np.zeros(4)
    for seed in range(400):
        damaged = damage(ids, VOCABULARY, settings, 0.25, np.random.default_rng(seed))
        same = damaged.ids == ids
        assert same[~damaged.is_masked].all()
        counts += [
            damaged.is_masked.sum(),
            (damaged.ids == 4).sum(),
            (same & damaged.is_masked).sum(),
            len(ids) - 1,
        ]
    chosen, masks, unchanged, total = counts
    assert chosen / total == pytest.approx(0.25, abs=0.01)
    assert masks / chosen == pytest.approx(0.8, abs=0.02) and unchanged / chosen == pytest.approx(0.1, abs=0.02)


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    def read(rows: list[tuple[list[int], int]], code: str) -> Tokens:
        ids, contexts = zip(*rows, strict=True)
        return batches.read(write(tmp_path / f"{code}.arrow", [*ids], "mlm", contexts=[*contexts]), code)

    english = [([0, *range(10, 24), 2], 16), ([0, 5, 6, 7, 2], 5)]
    bitext = [([0, 30, 31, 32, 2, 2, 40, 41, 42, 43, 2], 5)]
    mixed = batches.mix([read(english, "en"), read(bitext, "en-fr")], 1)
    return Tokens(**{**mixed.__dict__, "pad_id": 1, "vocabulary": VOCABULARY})


def head(**settings: object) -> DenoisingHead:
    return DenoisingHead(LANGUAGES, Denoising.model_validate(settings), Masked(mono=0.3, bitext=0.5))


def model() -> MBartForConditionalGeneration:
    torch.manual_seed(3)
    sides = {f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in (("layers", 2), ("ffn_dim", 16))}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    config = MBartConfig(vocab_size=62, d_model=16, max_position_embeddings=32, scale_embedding=True, **sides, **heads)
    mbart = MBartForConditionalGeneration(config).double().eval()
    with torch.no_grad():
        mbart.final_logits_bias.normal_()
    return mbart


def test_targets_are_the_original_texts_and_translations(tokens: Tokens) -> None:
    torch.manual_seed(1)
    batch = head().collate(tokens, np.array([2, 0, 1]), False)
    x, y = [30, 31, 32, 2], [40, 41, 42, 43, 2]
    texts = [(y, 61), ([*range(10, 24), 2], 60), ([5, 6, 7, 2], 60), (x, 60)]
    for at, (ids, language) in enumerate(texts):
        assert batch["labels"][at][batch["labels"][at] != IGNORED].tolist() == [*ids, language]
        read = batch["decoder_input_ids"][at]
        assert read[read != 1].tolist() == [language, *ids]
    sources = [60, 60, 60, 61]
    for at, language in enumerate(sources):
        ids = batch["input_ids"][at][batch["attention_mask"][at] == 1].tolist()
        assert ids[-2:] == [2, language] and 4 in ids


@pytest.mark.parametrize("settings", [{}, {"noise": "tokens", "permute": False}])
def test_the_loss_is_that_of_transformers(tokens: Tokens, settings: dict[str, object]) -> None:
    torch.manual_seed(1)
    denoising, mbart = head(**settings), model()
    batch = denoising.collate(tokens, np.arange(3), False)
    loss = denoising.loss(mbart, batch) / denoising.terms(batch)
    # Transformers shifts the labels itself.
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask", "labels")}
    expected = mbart(**inputs).loss
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), abs=1e-6)


def test_only_masked_tokens_of_a_text_are_predicted_and_all_of_a_translation(tokens: Tokens) -> None:
    torch.manual_seed(1)
    denoising = head(noise="tokens", permute=False, predict="masked")
    batch = denoising.collate(tokens, np.array([0, 2]), False)
    ids, labels = batch["input_ids"][0], batch["labels"][0]
    original = torch.tensor([*range(10, 24), 2, 60])
    due = labels[:16] != IGNORED
    assert 0 < due.sum() < 14 and torch.equal(labels[:16][due], original[due])
    assert torch.equal(ids[:16][~due], original[~due])
    assert (batch["labels"][1:] != IGNORED).sum() == 6 + 5


def test_evaluation_has_the_same_noise_in_every_batch(tokens: Tokens) -> None:
    denoising, mbart = head(), model()
    outcomes = {}
    for rows in ([0, 1, 2], [2], [1, 0]):
        batch = denoising.evaluation_batch(tokens, np.array(rows), False)
        for row, outcome in zip(rows, denoising.predict(mbart, batch, tokens, np.array(rows)), strict=True):
            assert outcomes.setdefault(row, outcome) == outcome
    assert [outcomes[row][1] for row in range(3)] == [16, 5, 11]


def test_settings_of_spans_are_idle_for_tokens() -> None:
    with pytest.raises(ValidationError, match="reads the shares of `masked`, not share"):
        Denoising.model_validate({"noise": "tokens", "share": 0.3})
