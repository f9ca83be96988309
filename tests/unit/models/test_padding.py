"""Masks of attention that follow from notes are those that transformers makes."""

from typing import Any

import pytest
import torch
from models_fixture import IDS, MODELS, answered, model_of
from transformers import ElectraConfig, ElectraModel, masking_utils

from xlgrid.heads.transfer import note
from xlgrid.models.padding import follow_notes

PADDED = torch.cat([IDS, torch.ones(2, 3, dtype=torch.long)], 1)
PADDED[0, 6] = 11
# The masks of DeBERTa are its own, and no question about them is asked.
KINDS = [kind for kind in MODELS if not kind.startswith("deberta")]


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
