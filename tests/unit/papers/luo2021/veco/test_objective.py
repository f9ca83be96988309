"""The objective of pairs: which inputs are pairs, what is masked, and that each loss is what other implementations compute."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokens_fixture import write
from transformers import XLMRobertaForCausalLM, XLMRobertaForMaskedLM
from veco_fixture import model_of

from xlgrid.data import batches
from xlgrid.heads.language_modelling.mlm import Masked
from xlgrid.heads.language_modelling.pairs import JOINED, PairHead, pairs_of
from xlgrid.heads.tokens import Tokens
from xlgrid.papers.luo2021.veco.objective import CrossPairHead

pytestmark = pytest.mark.usefixtures("one_thread")
IGNORED = -100


def read(path: Path, rows: list[tuple[list[int], int]], code: str) -> Tokens:
    ids, contexts = zip(*rows, strict=True)
    return batches.read(write(path / f"{code}.arrow", [*ids], "mlm", contexts=[*contexts]), code)


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    """English rows of one and of two segments; French rows; and bitext, as XLM-R separates it. 0 pads, 2 and 4 are special."""
    english = [([2, 10, 11, 12, 13, 4], 6), ([2, 14, 15, 16, 4], 5), ([2, 5, 6, 4, 4, 7, 8, 9, 4], 4)]
    french = [([2, 20, 4], 3)]
    bitext = [([2, 30, 31, 4, 4, 40, 41, 42, 4], 4), ([2, 32, 4, 4, 43, 4], 3)]
    parts = [read(tmp_path, rows, code) for rows, code in ((english, "en"), (french, "fr"), (bitext, "en-fr"))]
    return batches.mix(parts, 1)


def test_segments_of_bert_have_one_separator_between_them(tmp_path: Path) -> None:
    row = read(tmp_path, [([2, 5, 6, 4, 7, 4], 4)], "en-fr")
    pairs = pairs_of(row, np.array([0]))
    assert pairs.values.tolist() == [2, 5, 6, 4, 2, 7, 4] and pairs.sizes.tolist() == [4, 3]
    torch.manual_seed(1)
    batch = CrossPairHead().collate(row, np.array([0]), token_types=True)
    assert batch[f"{JOINED}input_ids"].shape == (1, 6)
    assert batch[f"{JOINED}token_type_ids"].tolist() == [[0, 0, 0, 0, 1, 1]] and not batch["token_type_ids"].any()


def unmasked(ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return torch.where(labels == IGNORED, ids, labels)


def test_inputs_of_tlm_are_the_rows_of_bitext_with_the_masks_of_the_pairs(tokens: Tokens) -> None:
    rows = np.array([5, 0, 4, 2])
    for seed in range(20):
        torch.manual_seed(seed)
        batch = CrossPairHead(Masked(bitext=0.5)).collate(tokens, rows, token_types=False)
        ids, mask, labels = (batch[f"{JOINED}{name}"] for name in ("input_ids", "attention_mask", "labels"))
        whole = unmasked(ids, labels)
        assert whole.tolist() == [[2, 32, 4, 4, 43, 4, 0, 0, 0], [2, 30, 31, 4, 4, 40, 41, 42, 4]]
        assert torch.equal(mask.bool(), whole != 0)
        for joined, row in ((0, 0), (1, 2)):
            x, y = (batch["input_ids"][at][batch["attention_mask"][at] == 1] for at in (row, row + len(rows)))
            expected = torch.cat([x, torch.tensor([4]), y[1:]])
            assert torch.equal(ids[joined][mask[joined] == 1], expected)
        of_pairs = [batch["labels"][at].tolist() for row in (0, 2) for at in (row, row + len(rows))]
        predicted = [label for row in of_pairs for label in row if label != IGNORED]
        assert [label for label in labels.flatten().tolist() if label != IGNORED] == predicted


def test_shares_of_masked_tokens_are_those_of_texts_and_of_bitext(tmp_path: Path) -> None:
    text = read(tmp_path, [([2, *range(5, 45), 4], 42)] * 40, "en")
    bitext = read(tmp_path, [([2, *range(5, 25), 4, 4, *range(25, 45), 4], 22)] * 40, "en-fr")
    mixed = batches.mix([text, bitext], 1)
    chosen = np.zeros((2, 2))
    for seed in range(20):
        torch.manual_seed(seed)
        batch = CrossPairHead(Masked(mono=0.15, bitext=0.25)).collate(mixed, np.arange(80), token_types=False)
        masked = (batch["labels"] != IGNORED).sum(1).reshape(2, 2, 40)
        # [x and y, text and bitext]
        chosen += masked.sum(2).numpy()
    shares = chosen / (20 * 40 * 20)
    assert np.abs(shares - [[0.15, 0.25]] * 2).max() < 0.01


def reference_losses(model: Any, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The losses of classes of transformers, input by input: its language model, and its decoder under a mask of its own."""
    plain = XLMRobertaForMaskedLM(model.config).to(torch.float64).eval()
    plain.load_state_dict(model.state_dict(), strict=False)
    config = copy.deepcopy(model.config)
    config.is_decoder = config.add_cross_attention = True
    decoder = XLMRobertaForCausalLM(config).to(torch.float64).eval()
    decoder.load_state_dict(model.state_dict())
    losses = {name: torch.zeros((), dtype=torch.float64) for name in ("MLM", "CA-MLM", "TLM")}
    inputs, half = len(batch["labels"]), len(batch["labels"]) // 2

    def add(name: str, logits: torch.Tensor, labels: torch.Tensor) -> None:
        losses[name] += torch.nn.functional.cross_entropy(logits[0], labels, ignore_index=IGNORED, reduction="sum")

    real = [batch["attention_mask"][at] == 1 for at in range(inputs)]
    ids = [batch["input_ids"][at][real[at]][None] for at in range(inputs)]
    for at in range(inputs):
        labels, partner = batch["labels"][at][real[at]], ids[(at + half) % inputs]
        add("MLM", plain(input_ids=ids[at]).logits, labels)
        memory = plain.roberta(input_ids=partner).last_hidden_state
        everywhere = torch.ones(1, 1, ids[at].shape[1], ids[at].shape[1], dtype=torch.bool)
        out = decoder(ids[at], attention_mask=everywhere, encoder_hidden_states=memory, use_cache=False)
        add("CA-MLM", out.logits, labels)
    for at in range(len(batch[f"{JOINED}labels"])):
        real_tokens = batch[f"{JOINED}attention_mask"][at] == 1
        joined_ids = batch[f"{JOINED}input_ids"][at][real_tokens][None]
        add("TLM", plain(input_ids=joined_ids).logits, batch[f"{JOINED}labels"][at][real_tokens])
    return losses


def test_each_loss_is_that_of_transformers(tokens: Tokens) -> None:
    model = model_of().double()
    model.config.pad_token_id = 1
    torch.manual_seed(3)
    head, rows = CrossPairHead(Masked(mono=0.4, bitext=0.4)), np.array([4, 0, 3, 5, 1, 2])
    batch = head.collate(tokens, rows, token_types=False)
    # XLM-R counts positions from the padding, 1.
    for name in ("input_ids", f"{JOINED}input_ids"):
        batch[name] = batch[name].masked_fill(batch[name] == 0, 1)
    with torch.no_grad():
        losses, expected = head.losses(model, batch), reference_losses(model, batch)
    assert tuple(losses) == head.loss_names == ("MLM", "CA-MLM", "TLM")
    for name, loss in losses.items():
        torch.testing.assert_close(loss.double(), expected[name], rtol=1e-6, atol=0)
    terms = head.terms_of_losses(batch)
    assert terms["MLM"] == terms["CA-MLM"] == int((batch["labels"] != IGNORED).sum()) > terms["TLM"] > 0


def test_xlm_is_the_same_objective_without_s(tokens: Tokens) -> None:
    model, rows = model_of(), np.array([4, 0, 1])
    computed = {}
    for cross in (True, False):
        head = (CrossPairHead if cross else PairHead)(Masked(mono=0.5, bitext=0.5))
        torch.manual_seed(3)
        batch = head.collate(tokens, rows, token_types=False)
        batch["input_ids"] = batch["input_ids"].masked_fill(batch["input_ids"] == 0, 1)
        computed[cross] = head.losses(model, batch), head.terms_of_losses(batch)
    assert tuple(computed[False][0]) == tuple(computed[False][1]) == ("MLM", "TLM")
    for name in ("MLM", "TLM"):
        assert torch.equal(computed[True][0][name], computed[False][0][name])
        assert computed[True][1][name] == computed[False][1][name]


def test_without_bitext_there_is_no_tlm(tokens: Tokens) -> None:
    model = model_of()
    torch.manual_seed(1)
    batch = CrossPairHead().collate(tokens, np.array([0, 1]), token_types=False)
    assert (
        float(CrossPairHead().losses(model, batch)["TLM"]) == 0.0 and CrossPairHead().terms_of_losses(batch)["TLM"] == 0
    )
    head = CrossPairHead(Masked(mono=0.5, bitext=0.5), tlm=False)
    batch = head.collate(tokens, np.array([4]), token_types=False)
    assert set(batch) == {"input_ids", "attention_mask", "labels"}
    assert tuple(head.losses(model, batch)) == ("MLM", "CA-MLM")


@pytest.mark.parametrize("detach", [True, False])
def test_the_gradient_of_ca_mlm_stops_at_h_of_the_partner(tokens: Tokens, detach: bool) -> None:
    """Dropout of 0, so that S of both rows is the same function; the reference encodes the partner without a graph."""
    model = model_of()
    head = CrossPairHead(Masked(mono=0.5, bitext=0.5), tlm=False, detach=detach)
    torch.manual_seed(3)
    batch = head.collate(tokens, np.array([4, 5]), token_types=False)
    batch["input_ids"] = batch["input_ids"].masked_fill(batch["input_ids"] == 0, 1)
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
    head.losses(model, batch)["CA-MLM"].backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    with torch.no_grad():
        partners = model.roberta(**inputs).last_hidden_state.roll(2, 0)
    memory = {"encoder_hidden_states": partners, "encoder_attention_mask": inputs["attention_mask"].roll(2, 0)}
    logits = model(**inputs, **memory).logits.flatten(0, 1)
    torch.nn.functional.cross_entropy(logits, batch["labels"].flatten(), reduction="sum").backward()
    expected = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    assert gradients.keys() == expected.keys()
    same = [torch.allclose(gradients[name], expected[name], rtol=1e-4, atol=1e-5) for name in expected]
    assert all(same) == detach


@pytest.mark.parametrize("s_stream", ["self+cross", "cross"])
def test_no_layer_of_h_but_the_last_has_an_influence_on_ca_mlm(tokens: Tokens, s_stream: str) -> None:
    """While the objective computes H, all layers but the last return noise, and the last what it returned without the noise."""
    model, head = model_of(s_stream=s_stream, layers=3), CrossPairHead(Masked(mono=0.5, bitext=0.5), tlm=False)
    torch.manual_seed(1)
    batch = head.collate(tokens, np.arange(len(tokens)), token_types=False)
    streams: list[str] = []
    model.base_model.register_forward_pre_hook(
        lambda _, args, named: streams.append("S" if "encoder_hidden_states" in named else "H"), with_kwargs=True
    )
    *before, last = model.base_model.encoder.layer
    of_last: list[torch.Tensor] = []
    with torch.no_grad():
        saving = last.register_forward_hook(lambda *call: of_last.append(call[-1]))
        expected = head.losses(model, batch)["CA-MLM"]
        saving.remove()
        for layer in before:
            layer.register_forward_hook(
                lambda *call: torch.randn_like(call[-1]) if streams[-1] == "H" else call[-1],
            )
        computed = {}
        for name, states in (("as before", of_last[0]), ("other", of_last[0] + 0.5 * torch.randn_like(of_last[0]))):
            replacing = last.register_forward_hook(
                lambda *call, states=states: states if streams[-1] == "H" else call[-1]
            )
            computed[name] = head.losses(model, batch)["CA-MLM"]
            replacing.remove()
    assert streams == ["H", "S"] * 3
    assert torch.equal(computed["as before"], expected)
    assert abs(float(computed["other"] - expected)) > 1e-3, "the last layer has an influence"
