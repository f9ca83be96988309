"""Runs that draw masks of attention at random, whatever interrupts them."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from test_masked_runs import Case, asked, check_interruptions, end, files

__all__ = ["files"]

# All but the last draw one thing, so that no other hides it.
CASES: dict[str, Case] = {
    "interfering masks": ("qcross", {}, {}, False),
    "interfering masks in parts": ("qcross", {}, {"micro_batch_tokens": 64}, False),
    "interfering masks in evaluation": ("qcross", {"evaluate": "sampled"}, {}, False),
    "attention dropout between languages": ("structured-dropout", {}, {}, False),
    "masks of text": ("qcross", {"tune": "query", "p_mask": 1}, {}, True),
    "masks of text in parts": ("qcross", {"tune": "query", "p_mask": 1}, {"micro_batch_tokens": 64}, True),
    "dropout under strict masks": ("qcross", {"p_mask": 1}, {"dropout": 0.3}, False),
    "dropout under interfering masks": ("qcross", {}, {"dropout": 0.3}, False),
}

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_interruption_anywhere_changes_no_byte(case: Case, files: Path, tmp_path: Path) -> None:
    check_interruptions(case, files, tmp_path)


def test_parts_of_a_batch_change_nothing_but_rounding_where_nothing_is_drawn(files: Path, tmp_path: Path) -> None:
    for name, limit in {"whole": None, "parts": 64}.items():
        settings = {"dropout": 0.0, "keep": "last", "evaluations": 1, "micro_batch_tokens": limit}
        end(asked(CASES["dropout under strict masks"], **settings), files, tmp_path / name)
    whole, parts = (load_file(tmp_path / name / "delta.safetensors") for name in ("whole", "parts"))
    for name, tensor in whole.items():
        if "key.bias" not in name:  # Its gradient is zero in theory and noise in practice, which Adam scales up.
            torch.testing.assert_close(
                tensor, parts[name], atol=2e-4, rtol=0, msg=lambda message, name=name: f"{name}: {message}"
            )


def test_training_draws_the_masks_of_attention(files: Path, tmp_path: Path) -> None:
    """Where no cell is masked, a run computes something else."""
    run_recipe = asked(CASES["attention dropout between languages"], keep="last")
    for name, p_mask in {"masked": 0.4, "unmasked": 0.0}.items():
        end(run_recipe.model_copy(update={"options": {"p_mask": p_mask}}), files, tmp_path / name)
    masked, unmasked = (load_file(tmp_path / name / "delta.safetensors") for name in ("masked", "unmasked"))
    assert any(not torch.equal(masked[name], unmasked[name]) for name in masked), "the masks change no weight"
