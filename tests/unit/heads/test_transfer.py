"""What the CPU notes on the tensors of a batch on another device."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from models_fixture import IDS, MODELS, answered, model_of
from stand_in import stand_in, waits
from transformers import ElectraConfig, ElectraModel, masking_utils

from xlgrid.heads.transfer import follow_notes, labelled, note, noted, on_device

PADDED = torch.cat([IDS, torch.ones(2, 3, dtype=torch.long)], 1)
PADDED[0, 6] = 11
# The masks of DeBERTa are its own, and no question about them is asked.
KINDS = [kind for kind in MODELS if not kind.startswith("deberta")]
BATCH = {
    "attention_mask": torch.tensor([[1, 1, 1], [1, 1, 0]]),
    "decoder_attention_mask": torch.ones(2, 4, dtype=torch.long),
    "labels": torch.tensor([[3, -100, 5], [-100, -100, 1]]),
    "input_ids": torch.tensor([[7, 8, 9], [7, 8, 0]]),
}


@pytest.fixture
def placed() -> Iterator[dict[str, torch.Tensor]]:
    with stand_in() as device:
        yield on_device(BATCH, device)


def test_a_batch_of_the_cpu_stays_as_it_is() -> None:
    placed = on_device(BATCH, torch.device("cpu"))
    assert placed.keys() == BATCH.keys()
    assert all(placed[name] is BATCH[name] and noted(BATCH[name]) is None for name in BATCH)


def test_masks_and_labels_of_a_batch_elsewhere_have_notes(placed: dict[str, torch.Tensor]) -> None:
    assert {name: noted(tensor) for name, tensor in placed.items()} == {
        "attention_mask": 0,
        "decoder_attention_mask": 1,
        "labels": 3,
        "input_ids": None,
    }


def test_nobody_waits_for_what_a_note_says(placed: dict[str, torch.Tensor]) -> None:
    with waits() as counted:
        assert [noted(placed[name]) for name in ("decoder_attention_mask", "attention_mask")] == [1, 0]
        found = labelled(placed["labels"])
    assert not counted
    assert found.tolist() == labelled(BATCH["labels"]).tolist() == [0, 2, 5]


@pytest.mark.parametrize("inference", [True, False])
def test_the_same_values_in_another_shape_have_the_note(inference: bool) -> None:
    mask = torch.ones(2, 3, 4, dtype=torch.long)
    note(mask, 1)
    with torch.inference_mode(inference):
        assert noted(mask.view(-1, 4)) == noted(mask.view(-1, 4).view(2, 12)) == 1
        assert noted(mask[:1]) is noted(mask + 1) is None


def test_a_note_is_void_once_the_values_have_changed() -> None:
    mask = torch.ones(2, 3, dtype=torch.long)
    note(mask, 1)
    view = mask.view(-1)
    mask[1, 2] = 0
    assert noted(mask) is noted(view) is None


# Masks of attention that follow from notes are those that transformers makes.


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize(("ids", "number"), [(IDS, 1), (PADDED, 0)], ids=["full", "padded"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_encoder_with_notes_answers_the_same(
    kind: str, ids: torch.Tensor, number: int, implementation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of(kind)
    model.set_attn_implementation(implementation)
    with torch.no_grad():
        expected = answered(model, ids)
    follow_notes(model)
    model.register_forward_pre_hook(
        lambda _, inputs, options: note(options["attention_mask"], number), with_kwargs=True
    )
    for name in ("_ignore_bidirectional_mask_sdpa", "_ignore_causal_mask_sdpa"):
        real = getattr(masking_utils, name)

        def unasked(mask: Any, *sizes: Any, real: Any = real) -> Any:
            assert mask is None, "the mask is asked"
            return real(mask, *sizes)

        monkeypatch.setattr(masking_utils, name, unasked)
    with torch.no_grad():
        assert torch.equal(answered(model, ids), expected)


def test_a_note_decides() -> None:
    """A false note shows that nobody looks at the mask."""
    model = model_of("bert-sequence")
    mask = (PADDED != 1).long()
    note(mask, 1)
    follow_notes(model)
    with torch.no_grad():
        assert torch.equal(model(PADDED, attention_mask=mask).logits, model(PADDED).logits)


def test_encoders_of_other_types_stay_as_they_are() -> None:
    sizes = {"vocab_size": 40, "embedding_size": 8, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = ElectraModel(ElectraConfig(**sizes, intermediate_size=8))
    follow_notes(model)
    assert not model._forward_pre_hooks
