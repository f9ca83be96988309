"""Runs that draw something at random, masks of text or dropout, whatever interrupts them."""

import re
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_loop import RESULTS, recipe
from tokens_fixture import write
from transformers import BertConfig, BertForMaskedLM

from xlgrid.training.loop import Loop, Stopped
from xlgrid.training.recipe import Recipe

STEPS = 3
LANGUAGES = ("en", "en-fr")
# Each draws one thing: base, options, settings, whether it is an MLM run.
Case = tuple[str, dict[str, Any], dict[str, Any], bool]
CASES: dict[str, Case] = {
    "masks of text": ("full-ft", {}, {}, True),
    "masks of text in parts": ("full-ft", {}, {"micro_batch_tokens": 64}, True),
    "dropout": ("full-ft", {}, {"dropout": 0.3}, False),
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


def asked(case: Case, **settings: Any) -> Recipe:
    base, options, more, text = case
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


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_interruption_anywhere_changes_no_byte(case: Case, files: Path, tmp_path: Path) -> None:
    check_interruptions(case, files, tmp_path)


def check_interruptions(case: Case, files: Path, tmp_path: Path) -> None:
    """Interrupt a run at each place where it asks whether to stop, and compare the bytes of its results."""
    places = end(asked(case), files, tmp_path / "through")
    assert places > STEPS + 2, "evaluations of one batch cannot be interrupted half-way"
    expected = left(tmp_path / "through")
    wrong = {}
    for at in range(1, places):
        assert end(asked(case), files, tmp_path / str(at), at) < places, "it began anew"
        results = left(tmp_path / str(at))
        wrong |= {at: names} if (names := [name for name in RESULTS if results[name] != expected[name]]) else {}
    assert wrong == {}, f"interruptions, of {places}, and what came out differently"
