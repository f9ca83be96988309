"""Runs that draw something at random, masks of attention, masks of text or dropout, whatever interrupts them."""

import re
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from test_loop import RESULTS, recipe
from tokens_fixture import write
from transformers import BertConfig, BertForMaskedLM

from xlgrid.training.loop import Loop, Stopped
from xlgrid.training.recipe import Recipe

STEPS = 3
LANGUAGES = ("en", "en-fr")
# All but the last draw one thing, so that no other hides it: base, options, settings, whether it is a run on text.
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any], bool]] = {
    "interfering masks": ("qcross", {}, {}, False),
    "interfering masks in parts": ("qcross", {}, {"micro_batch_tokens": 64}, False),
    "interfering masks in evaluation": ("qcross", {"evaluate": "sampled"}, {}, False),
    "attention dropout between languages": ("structured-dropout", {}, {}, False),
    "masks of text": ("qcross", {"tune": "query", "p_mask": 1}, {}, True),
    "masks of text in parts": ("qcross", {"tune": "query", "p_mask": 1}, {"micro_batch_tokens": 64}, True),
    "dropout": ("full-ft", {}, {"dropout": 0.3}, False),
    "dropout under strict masks": ("qcross", {"p_mask": 1}, {"dropout": 0.3}, False),
    "dropout under interfering masks": ("qcross", {}, {"dropout": 0.3}, False),
}

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder; examples of a task and of text, each in two languages that a mix takes one and the same."""
    folder = tmp_path_factory.mktemp("files")
    torch.manual_seed(1)
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    # Large weights, or attention would be even, and masks would change no prediction.
    config = BertConfig(vocab_size=50, max_position_embeddings=40, initializer_range=0.5, **size)
    BertForMaskedLM(config).save_pretrained(folder / "encoder")
    rng = np.random.default_rng(1)
    for head, split, language in product(("sequence", "mlm"), ("train", "dev"), LANGUAGES):
        ids = [[*rng.integers(5, 40, rng.integers(8, 20)).tolist(), 2] for _ in range(20 if split == "train" else 8)]
        write(folder / f"{head}-{split}-{language}.arrow", ids, head)
    return folder


def asked(case: str, **settings: Any) -> Recipe:
    base, options, more, text = CASES[case]
    calm = {"steps": STEPS, "evaluations": 2, "dropout": 0.0, "checkpoint_seconds": 3600}
    base_recipe = recipe(base, **{**calm, **more, **settings})
    task = {"task": "mlm", "kind": "mlm"} if text else {}
    return Recipe.model_validate(
        {**base_recipe.model_dump(), **task, "options": options, "source": "+".join(LANGUAGES)}
    )


@dataclass
class Stop:
    """What tells a run to stop: true when it is asked for the time `at`, from 0, which is before a step or before a batch of
    an evaluation."""

    at: int | None
    calls: int = 0

    def __bool__(self) -> bool:
        self.calls += 1
        return self.calls - 1 == self.at


def end(run_recipe: Recipe, files: Path, folder: Path, at: int | None = None) -> int:
    """Train to the end, interrupted at `at`; returns how often the last part of the run asked whether to stop."""
    head = "mlm" if run_recipe.task == "mlm" else "sequence"
    train, dev = ([files / f"{head}-{split}-{language}.arrow" for language in LANGUAGES] for split in ("train", "dev"))

    def go(stop: Stop) -> Stop:
        loop = Loop(run_recipe, files / "encoder", train, dev, folder)
        try:
            loop.go(stop)  # type: ignore[arg-type]
        except Stopped:
            loop.save()
            return go(Stop(None))
        loop.finish()
        return stop

    return go(Stop(at)).calls


def left(folder: Path) -> dict[str, bytes]:
    """The bytes of a run's results, but for seconds."""
    return {name: re.sub(rb'seconds": [\d.]+', b"", (folder / name).read_bytes()) for name in RESULTS}


@pytest.mark.parametrize("case", CASES)
def test_an_interruption_anywhere_changes_no_byte(case: str, files: Path, tmp_path: Path) -> None:
    places = end(asked(case), files, tmp_path / "through")
    assert places > STEPS + 2, "evaluations of one batch cannot be interrupted half-way"
    expected = left(tmp_path / "through")
    wrong = {}
    for at in range(1, places):
        assert end(asked(case), files, tmp_path / str(at), at) < places, "it began anew"
        results = left(tmp_path / str(at))
        wrong |= {at: names} if (names := [name for name in RESULTS if results[name] != expected[name]]) else {}
    assert wrong == {}, f"interruptions, of {places}, and what came out differently"


def test_parts_of_a_batch_change_nothing_but_rounding_where_nothing_is_drawn(files: Path, tmp_path: Path) -> None:
    for name, limit in {"whole": None, "parts": 64}.items():
        settings = {"dropout": 0.0, "keep": "last", "evaluations": 1, "micro_batch_tokens": limit}
        end(asked("dropout under strict masks", **settings), files, tmp_path / name)
    whole, parts = (load_file(tmp_path / name / "delta.safetensors") for name in ("whole", "parts"))
    for name, tensor in whole.items():
        if "key.bias" not in name:  # Its gradient is zero in theory and noise in practice, which Adam scales up.
            torch.testing.assert_close(
                tensor, parts[name], atol=2e-4, rtol=0, msg=lambda message, name=name: f"{name}: {message}"
            )


def test_training_draws_the_masks_of_attention(files: Path, tmp_path: Path) -> None:
    """Where no cell is masked, a run computes something else."""
    run_recipe = asked("attention dropout between languages", keep="last")
    for name, p_mask in {"masked": 0.4, "unmasked": 0.0}.items():
        end(run_recipe.model_copy(update={"options": {"p_mask": p_mask}}), files, tmp_path / name)
    masked, unmasked = (load_file(tmp_path / name / "delta.safetensors") for name in ("masked", "unmasked"))
    assert any(not torch.equal(masked[name], unmasked[name]) for name in masked), "the masks change no weight"
