"""An MLM run that trains adapters resumes to the bit."""

import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from test_loop import STEPS, checkpoints, killed, recipe, result
from tokens_fixture import write
from transformers import BertConfig, BertForMaskedLM

from xlgrid.training.loop import train

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.slow
def test_adapters_of_a_text_killed_and_resumed_are_identical(tmp_path: Path) -> None:
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    torch.manual_seed(1)
    BertForMaskedLM(BertConfig(vocab_size=50, max_position_embeddings=40, **size)).save_pretrained(tmp_path / "encoder")
    rng = np.random.default_rng(1)
    text = write(tmp_path / "text.arrow", [rng.integers(5, 40, 12).tolist() for _ in range(60)], "mlm")
    run_recipe = recipe("madx", checkpoints=STEPS).model_copy(
        update={"task": "mlm", "kind": "mlm", "options": {"tune": "language"}}
    )
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train(run_recipe, tmp_path / "encoder", [text], [text], whole)
    assert killed(20, signal.SIGKILL, run_recipe, tmp_path / "encoder", text, broken).returncode == -signal.SIGKILL
    train(run_recipe, tmp_path / "encoder", [text], [text], broken)
    assert (result(broken), checkpoints(broken)) == (result(whole), checkpoints(whole))
