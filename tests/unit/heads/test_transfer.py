"""What the CPU notes on the tensors of a batch on another device."""

from collections.abc import Iterator

import pytest
import torch
from stand_in import stand_in, waits

from xlgrid.heads.transfer import is_full, labelled, note, noted, on_device

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
        assert is_full(placed["decoder_attention_mask"])
        assert not is_full(placed["attention_mask"])
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
    assert not is_full(mask)
