"""Parts of a mix that are drawn without end, by `alpha` and `tlm`: shares, orders, padding, and where a training resumes."""

import time
import tracemalloc
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokens_fixture import rows, write

from xlgrid.base.arrays import Ints
from xlgrid.data import batches
from xlgrid.heads.tokens import Tokens, Vocabulary, offsets_of
from xlgrid.training import schedule
from xlgrid.training.loop import Loop
from xlgrid.training.processes import Processes
from xlgrid.training.recipe import Training


def mixed(sizes: list[int], pairs: tuple[int, ...] = (), longest: int = 9) -> Tokens:
    """A mix of parts with so many rows, of which the parts `pairs` have two languages; there are no token ids."""
    total = sum(sizes)
    parts = np.repeat(np.arange(len(sizes)), sizes)
    language_of = np.zeros((total, 2), np.int16)
    language_of[:, 1] = np.isin(parts, pairs)
    lengths = np.random.default_rng(1).integers(3, longest + 1, total)
    codes, tokenizer = ("en", "fr"), Vocabulary(50, 4, ())
    offsets = offsets_of([lengths])
    return Tokens("mlm", (), 0, np.zeros(0, np.int32), offsets, lengths, codes, language_of, tokenizer, parts=parts)


def drawn(tokens: Tokens, steps: int, first: int = 0, **settings: Any) -> list[Ints]:
    """The batches of a training from step `first` on."""
    training = Training(**{"steps": steps, "batch_size": 8, "alpha": 0.7, **settings})
    return list(schedule.stream(tokens, training, 1, schedule.plan(tokens, training, 1), first))


def counts(tokens: Tokens, row_batches: list[Ints]) -> Ints:
    assert tokens.parts is not None
    return np.bincount(tokens.parts[np.concatenate(row_batches)], minlength=int(tokens.parts[-1]) + 1)


@given(st.lists(st.integers(1, 2000), min_size=1, max_size=12), st.floats(0, 1))
def test_counts_follow_the_size_to_the_power_of_alpha(sizes: list[int], alpha: float) -> None:
    tokens = mixed(sizes)
    expected = np.array(sizes, float) ** alpha / sum(size**alpha for size in sizes) * 640 * 8
    totals = counts(tokens, drawn(tokens, 640, alpha=alpha))
    assert totals.sum() == 640 * 8
    assert (abs(totals - expected) <= np.maximum(0.01 * expected, 2)).all()


@pytest.mark.parametrize(("pairs", "share"), [((2, 3), 0.25), ((), 0.0), ((0, 1, 2, 3), 1.0)])
def test_pairs_have_their_share_and_alpha_holds_among_them(pairs: tuple[int, ...], share: float) -> None:
    tokens = mixed([1000, 250, 500, 125], pairs)
    totals = counts(tokens, drawn(tokens, 640, alpha=0.5, tlm=0.25))
    assert abs(totals[list(pairs)].sum() / totals.sum() - share) < 0.001
    assert abs(totals[0] / totals[1] - 2) < 0.02 and abs(totals[2] / totals[3] - 2) < 0.02


def test_an_epoch_of_a_part_has_each_row_once_and_the_next_another_order() -> None:
    tokens = mixed([64, 640], longest=3)
    batches_drawn = drawn(tokens, 32 * 8, alpha=1.0)
    of_first = [row for batch in batches_drawn for row in batch.tolist() if row < 64]
    assert len(of_first) >= 2 * 64
    assert max(np.bincount(of_first)) - min(np.bincount(of_first)) <= 1, "no row comes again before all others have"
    of_pool = [np.concatenate(batches_drawn[at : at + 32]).tolist() for at in (0, 32)]
    assert of_pool[0] != of_pool[1]


@pytest.mark.parametrize("settings", [{}, {"batch_size": None, "batch_tokens": 64}, {"mixed_batches": False}])
@pytest.mark.parametrize("first", [1, 31, 32, 100])
def test_a_training_goes_on_where_it_was(settings: dict[str, Any], first: int) -> None:
    tokens = mixed([300, 40, 200], (2,), longest=20)
    whole = drawn(tokens, 130, **settings)
    assert len(whole) == 130
    rest = drawn(tokens, 130, first, **settings)
    assert [batch.tolist() for batch in rest] == [batch.tolist() for batch in whole[first:]]


def test_a_hundred_thousand_steps_are_skipped_in_seconds() -> None:
    tokens = mixed([20_000, 5_000, 10_000], (2,), longest=100)
    for settings in ({}, {"batch_size": None, "batch_tokens": 4096}):
        training = Training(**{"steps": 100_000, "batch_size": 32, "alpha": 0.7, **settings})  # type: ignore[arg-type]
        began = time.process_time()
        next(schedule.stream(tokens, training, 1, schedule.plan(tokens, training, 1), 99_999))
        assert time.process_time() - began < 20


def test_little_is_padding() -> None:
    tokens = mixed([3000, 2000], longest=200)
    row_batches = drawn(tokens, 320, batch_size=32)
    padded = sum(len(batch) * int(tokens.lengths[batch].max()) for batch in row_batches)
    assert padded < 1.03 * sum(int(tokens.lengths[batch].sum()) for batch in row_batches)


def test_a_batch_has_several_languages_unless_the_recipe_says_no() -> None:
    tokens = mixed([500, 500])
    assert tokens.parts is not None
    for mixed_batches in (True, False):
        row_batches = drawn(tokens, 64, mixed_batches=mixed_batches)
        assert any(len(set(tokens.parts[batch])) > 1 for batch in row_batches) is mixed_batches


def test_a_file_of_one_language_is_drawn_without_end(tmp_path: Path) -> None:
    tokens = batches.read(write(tmp_path / "t.arrow", rows(30), "mlm"))
    assert np.bincount(np.concatenate(drawn(tokens, 480, batch_size=4))).tolist() == [64] * 30


def test_a_row_of_text_takes_34_bytes_of_memory_beside_its_file(tmp_path: Path) -> None:
    """Millions of sentences should fit."""
    count = 40_000
    files = [write(tmp_path / f"{code}.arrow", [[1, 2, 3]] * count, "mlm", chunk=count // 4) for code in ("en", "fr")]
    settings = Training(steps=4, batch_size=8, alpha=0.7)  # type: ignore[call-arg]
    # The modules that reading imports do not count.
    batches.read(files[0], "en")
    tracemalloc.start()
    tokens = batches.mix([batches.read(path, path.stem) for path in files], 65)
    stream = schedule.stream(tokens, settings, 1, schedule.plan(tokens, settings, 1))
    next(stream)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held / (2 * count) < 34


def test_alpha_takes_steps() -> None:
    with pytest.raises(ValueError, match=r"`alpha`.*`steps`"):
        next(islice(drawn(mixed([5, 5]), steps=None), 1))


@pytest.mark.parametrize(("limit", "most"), [(None, 3), (60, 99)])
def test_a_part_of_a_step_is_of_one_language_where_a_model_needs_it(limit: int | None, most: int) -> None:
    tokens = mixed([100, 100, 100], (2,), longest=20)
    assert tokens.parts is not None
    [chosen, *_] = drawn(tokens, 1, batch_size=30)
    alone = Processes(1, 0, torch.device("cpu"))
    for micro_batches, languages in (("mixed", False), ("language", True)):
        settings = Training(micro_batches=micro_batches)  # type: ignore[call-arg, arg-type]
        step: Any = SimpleNamespace(settings=settings, train=tokens, limit=limit, processes=alone)
        parts = Loop.cut(step, chosen)
        assert sorted(np.concatenate(parts).tolist()) == sorted(chosen.tolist()) and len(parts) <= most
        assert all(len(set(tokens.parts[part])) == 1 for part in parts) is languages
        assert limit is None or all(len(part) * tokens.lengths[part].max() <= limit for part in parts)
    assert len({int(part) for part in tokens.parts[chosen]}) == 3, "a step has several languages"


def test_processes_without_a_limit_share_a_step_evenly() -> None:
    tokens = mixed([100])
    [chosen, *_] = drawn(tokens, 1, batch_size=30)
    pair = Processes(2, 0, torch.device("cpu"))
    step: Any = SimpleNamespace(settings=Training(), train=tokens, limit=None, processes=pair)
    assert [len(part) for part in Loop.cut(step, chosen)] == [15, 15]
