"""The loop against one that a reader would write in plain PyTorch, step by step and in the same order.

Runs that are compared with runs cannot show that both of them lack dropout or ignore a setting.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tokens_fixture import write
from transformers import BertForSequenceClassification

from xlgrid.heads import HEADS
from xlgrid.models.first_token import read_first_token
from xlgrid.training.loop import Loop, train
from xlgrid.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("one_thread")

STEPS, SEED = 24, 7
# The examples of each part of a step.
Batch = list[list[int]]
# Each setting is far from its default and from what has no effect.
SETTINGS: dict[str, Any] = {
    "steps": STEPS,
    "batch_size": 8,
    "lr": 4e-3,
    "warmup": 0.25,
    "weight_decay": 0.3,
    "betas": [0.8, 0.95],
    "epsilon": 1e-5,
    "clip": 0.5,
    "dropout": 0.3,
    "evaluations": 4,
    "keep": "last",
}


@pytest.fixture(scope="module")
def rows() -> list[list[int]]:
    """Token ids of 30 examples; `write` makes the first half of each the first segment, and labels it by its first id."""
    rng = np.random.default_rng(1)
    return [[2 + i % 2, *rng.integers(5, 40, rng.integers(3, 20)).tolist(), 3] for i in range(30)]


def recipe(**changes: Any) -> Recipe:
    names = {
        "study": "s",
        "task": "t",
        "kind": "xnli",
        "encoder": "e",
        "method": "m",
        "base": "full-ft",
        "source": "en",
    }
    return Recipe.model_validate({**names, "seed": SEED, "training": {**SETTINGS, **changes}})


def trained(
    folder: Path, encoder: Path, rows: list[list[int]], **changes: Any
) -> tuple[dict[str, torch.Tensor], list[dict[str, float]], list[Batch]]:
    """The weights and the curve of a run, and the examples of each part of each of its steps."""
    folder.mkdir(exist_ok=True)
    tokens = write(folder / "tokens.arrow", rows)
    batches: list[Batch] = []
    accumulate = Loop.accumulate

    def record(loop: Loop, parts: Any) -> Any:
        batches.append([part.tolist() for part in parts])
        return accumulate(loop, parts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "accumulate", record)
        train(recipe(**changes), encoder, [tokens], [tokens], folder / "run")
    curve = [json.loads(line) for line in (folder / "run" / "curve.jsonl").read_text().splitlines()]
    return load_file(folder / "run" / "delta.safetensors"), curve, batches


def plain_loop(
    encoder: Path, rows: list[list[int]], batches: list[Batch], segments: bool = True
) -> tuple[dict[str, torch.Tensor], list[float], list[float]]:
    """The weights after training on the batches, and the loss and the learning rate of each step."""
    torch.manual_seed(SEED)
    dropout = {"hidden_dropout_prob": 0.3, "attention_probs_dropout_prob": 0.3, "classifier_dropout": 0.3}
    model = BertForSequenceClassification.from_pretrained(encoder, num_labels=3, **dropout)
    # Without this call, dropout would draw more numbers. test_first_token.py shows that the call changes nothing else.
    read_first_token(model, HEADS["sequence"])
    model.train()
    undecayed = [p for name, p in model.named_parameters() if name.endswith("bias") or "LayerNorm" in name]
    decayed = [p for p in model.parameters() if all(p is not other for other in undecayed)]
    groups = [{"params": decayed, "weight_decay": 0.3}, {"params": undecayed, "weight_decay": 0}]
    optimiser = torch.optim.AdamW(groups, betas=(0.8, 0.95), eps=1e-5)
    losses, rates = [], []
    for step, parts in enumerate(batches):
        # 6 of 24 steps warm up; then the rate falls linearly, and would be 0 after the last step.
        rates.append(4e-3 * ((step + 1) / 7 if step < 6 else (STEPS - step) / 18))
        for group in optimiser.param_groups:
            group["lr"] = rates[-1]
        optimiser.zero_grad()
        losses.append(0.0)
        for number, part in enumerate(parts):
            longest = max(len(rows[i]) for i in part)
            ids, mask, types = (torch.zeros(len(part), longest, dtype=torch.long) for _ in range(3))
            for at, i in enumerate(part):
                length = len(rows[i])
                ids[at, :length], mask[at, :length] = torch.tensor(rows[i]), 1
                types[at, length // 2 : length] = int(segments)
            labels = torch.tensor([rows[i][0] % 2 for i in part])
            # The first part draws dropout after its batch; later parts have a seed of their own for it, the second of two.
            numbers = [SEED, step, number] if number else [SEED, step]
            torch.manual_seed(int(np.random.SeedSequence(numbers).generate_state(2, np.uint64)[1 if number else 0]))
            loss = model(input_ids=ids, attention_mask=mask, token_type_ids=types, labels=labels).loss
            share = loss * len(part) / sum(map(len, parts))
            share.backward()
            losses[-1] += share.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimiser.step()
    return {name: p.detach() for name, p in model.named_parameters()}, losses, rates


@pytest.mark.parametrize(("segments", "limit"), [(True, None), (False, None), (True, 50)])
def test_a_run_ends_with_the_weights_of_a_plain_loop(
    segments: bool, limit: int | None, encoder: Path, rows: list[list[int]], tmp_path: Path
) -> None:
    """With dropout, clipping, decay, warm-up and evaluations in between, and with steps in parts of 50 tokens."""
    weights, curve, batches = trained(tmp_path, encoder, rows, segments=segments, micro_batch_tokens=limit)
    assert any(len(parts) > 1 for parts in batches) == (limit is not None)
    expected, losses, rates = plain_loop(encoder, rows, batches, segments)
    assert weights.keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(weights[name], tensor, rtol=0, atol=1e-5, msg=lambda text, n=name: f"{n}: {text}")
    assert [line["step"] for line in curve] == [6, 12, 18, 24]
    assert [line["lr"] for line in curve] == pytest.approx([rates[step - 1] for step in (6, 12, 18, 24)])
    means = [math.fsum(losses[step - 6 : step]) / 6 for step in (6, 12, 18, 24)]
    assert [line["loss"] for line in curve] == pytest.approx(means, abs=1e-5)


def test_parts_of_a_batch_add_up_to_the_batch(encoder: Path, rows: list[list[int]], tmp_path: Path) -> None:
    """Without dropout, which each part would draw for itself. AdamW hides a wrong scale of gradients; losses and clipping do not."""
    whole, parts = (
        trained(tmp_path / str(limit), encoder, rows, dropout=0, clip=8.0, micro_batch_tokens=limit)
        for limit in (None, 50)
    )
    assert [line["loss"] for line in parts[1]] == pytest.approx([line["loss"] for line in whole[1]], abs=1e-4)
    for name, tensor in whole[0].items():
        torch.testing.assert_close(parts[0][name], tensor, rtol=0, atol=2e-5, msg=lambda text, n=name: f"{n}: {text}")


def test_each_epoch_has_every_example_once_and_in_another_order(
    encoder: Path, rows: list[list[int]], tmp_path: Path
) -> None:
    batches = trained(tmp_path, encoder, rows)[2]
    epochs = [batches[at : at + 4] for at in range(0, STEPS, 4)]
    assert [sorted(i for parts in epoch for part in parts for i in part) for epoch in epochs] == [list(range(30))] * 6
    assert len({str(epoch) for epoch in epochs}) == 6
