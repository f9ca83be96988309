"""Reading, mixing and batching tokens."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from xlgrid.base.arrays import Ints
from xlgrid.data import batches
from xlgrid.heads import HEADS
from xlgrid.heads.tokens import Tokens
from xlgrid.heads.values import Values
from xlgrid.training import schedule
from xlgrid.training.recipe import Phase, Training


def write(
    path: Path,
    ids: list[list[int]],
    head: str = "sequence",
    depths: list[int] | None = None,
    contexts: list[int] | None = None,
) -> Path:
    columns = {
        "input_ids": pa.array(ids, pa.list_(pa.int32())),
        "context_length": pa.array(contexts or [max(1, len(row) // 2) for row in ids], pa.int32()),
    }
    about = {"task": "t", "labels": ["a", "b", "c"], "head": head, "pad_id": 0, "max_length": 32}
    if head == "mlm":
        about |= {"mask_id": 4, "special_ids": [0, 2, 4], "vocabulary": 50}
    elif head == "token":
        columns["labels"] = pa.array([[-100, *[t % 3 for t in row[1:]]] for row in ids], pa.list_(pa.int64()))
    else:
        columns["label"] = pa.array([row[0] % 2 for row in ids], pa.int64())
    if depths is not None:
        columns["depth"] = pa.array(depths, pa.int32())
    table = pa.table(columns).replace_schema_metadata({"xlgrid": json.dumps(about)})
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=7)
    return path


def collate(tokens: Tokens, rows: Ints, token_types: bool = False) -> dict[str, torch.Tensor]:
    """The batch that the tokens' head makes of some rows."""
    return HEADS[tokens.head].collate(tokens, rows, token_types)


def taken(tokens: Tokens, **settings: Any) -> list[Ints]:
    """The batches of a training with seed 1."""
    made = Training(**{"batch_tokens": 24, **settings})
    return list(schedule.stream(tokens, made, 1, schedule.plan(tokens, made, 1)))


def rows(count: int, start: int = 1) -> list[list[int]]:
    return [[start + i] * (2 + i * 7 % 11) for i in range(count)]


def ids(tokens: Tokens) -> list[list[int]]:
    return [tokens.values[a:b].tolist() for a, b in zip(tokens.offsets[:-1], tokens.offsets[1:], strict=True)]


@pytest.mark.parametrize("head", ["sequence", "mlm"])
@pytest.mark.parametrize("count", [0, 1, 20])
def test_a_file_reads_back(tmp_path: Path, count: int, head: str) -> None:
    assert ids(batches.read(write(tmp_path / "t.arrow", rows(count), head))) == rows(count)


def test_token_ids_of_text_stay_in_the_file(tmp_path: Path) -> None:
    parts = [batches.read(write(tmp_path / f"{start}.arrow", rows(20, start), "mlm")) for start in (1, 30)]
    mixed = batches.mix(parts, 65)
    assert ids(mixed) == rows(20) + rows(20, 30)
    assert isinstance(mixed.values, Values)
    assert len(mixed.values.pieces) == 6 and not any(piece.flags.owndata for piece in mixed.values.pieces)


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "t.arrow", rows(20))
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(ValueError, match=r"t\.arrow is damaged.*tokenize again"):
        batches.read(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"t\.arrow does not exist"):
        batches.read(tmp_path / "t.arrow")


@pytest.mark.parametrize("parts", [2, 3])
@pytest.mark.parametrize("head", ["sequence", "token"])
def test_each_example_of_a_mix_is_its_row_in_exactly_one_part(tmp_path: Path, parts: int, head: str) -> None:
    made = [rows(12, 1 + 100 * part) for part in range(parts)]
    tokens = [batches.read(write(tmp_path / f"{n}.arrow", part, head)) for n, part in enumerate(made)]
    mixed = ids(batches.mix(tokens, 65))
    source = [(row[0] - 1) // 100 for row in mixed]
    assert mixed == [made[part][i] for i, part in enumerate(source)]
    assert [source.count(part) for part in range(parts)] == [12 // parts] * parts


def test_the_seed_of_a_mix_decides_its_halves(tmp_path: Path) -> None:
    tokens = [batches.read(write(tmp_path / f"{n}.arrow", rows(40, 1 + 100 * n))) for n in range(2)]
    assert ids(batches.mix(tokens, 1)) == ids(batches.mix(tokens, 1)) != ids(batches.mix(tokens, 2))


def test_unequal_parts_are_an_error(tmp_path: Path) -> None:
    tokens = [batches.read(write(tmp_path / f"{n}.arrow", rows(3 + n))) for n in range(2)]
    with pytest.raises(ValueError, match="3, 4 examples"):
        batches.mix(tokens, 65)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=80), st.integers(1, 200), st.integers(0, 5))
def test_an_epoch_has_every_example_once_within_the_budget(sizes: list[int], budget: int, number: int) -> None:
    lengths = np.array(sizes)
    found = schedule.epoch(lengths, np.arange(len(sizes)), Training(batch_tokens=budget), 1, number)
    assert sorted(np.concatenate(found).tolist()) == list(range(len(sizes)))
    assert all(len(b) == 1 or lengths[b].max() * len(b) <= budget for b in found)


def test_little_is_padding() -> None:
    lengths = np.random.default_rng(1).integers(10, 200, 5000)
    found = schedule.epoch(lengths, np.arange(5000), Training(batch_tokens=4096), 1, 0)
    assert sum(lengths[b].max() * len(b) for b in found) < 1.05 * lengths.sum()


def test_epochs_and_seeds_differ_and_repeat() -> None:
    lengths = np.arange(1, 100)

    def order(seed: int, number: int) -> list[int]:
        return np.concatenate(schedule.epoch(lengths, np.arange(99), Training(batch_tokens=128), seed, number)).tolist()

    assert order(1, 0) == order(1, 0)
    assert len({tuple(order(*at)) for at in [(1, 0), (1, 1), (2, 0)]}) == 3


def test_a_phase_admits_only_what_it_says_for_its_share(tmp_path: Path) -> None:
    tokens = batches.read(write(tmp_path / "t.arrow", rows(30), depths=[i % 4 for i in range(30)]))
    steps = taken(tokens, steps=40, curriculum=(Phase(share=0.5, max_depth=0), Phase(share=0.25, max_tokens=6)))
    assert len(steps) == 40
    depths = tokens.columns["depth"]
    assert {int(depths[i]) for b in steps[:20] for i in b} == {0}
    assert max(int(tokens.lengths[i]) for b in steps[20:30] for i in b) <= 6
    assert {int(depths[i]) for b in steps[30:] for i in b} == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("phase", "message"),
    [({"max_tokens": 1}, "shortest has 2 tokens"), ({"max_depth": 1}, "no column `depth`")],
)
def test_an_impossible_phase_is_explained(tmp_path: Path, phase: dict[str, int], message: str) -> None:
    tokens = batches.read(write(tmp_path / "t.arrow", rows(5)))
    with pytest.raises(ValueError, match=message):
        taken(tokens, steps=40, curriculum=(Phase.model_validate({"share": 0.5, **phase}),))


def test_a_curriculum_leaves_steps_for_everything(tmp_path: Path) -> None:
    tokens = batches.read(write(tmp_path / "t.arrow", rows(5)))
    with pytest.raises(ValueError, match="takes 40 steps of 40"):
        taken(tokens, steps=40, curriculum=(Phase(share=0.5, max_tokens=9),) * 2)


def test_epochs_of_a_phase_come_before_those_over_everything(tmp_path: Path) -> None:
    """Of 30 examples 8 have depth 0: three passes over these in batches of four, then two over all."""
    tokens = batches.read(write(tmp_path / "t.arrow", rows(30), depths=[i % 4 for i in range(30)]))
    steps = taken(tokens, epochs=2, batch_size=4, curriculum=(Phase(epochs=3, max_depth=0),))
    assert len(steps) == 3 * 2 + 2 * 8
    assert np.bincount(np.concatenate(steps[:6])).tolist()[::4] == [3] * 8
    assert np.bincount(np.concatenate(steps[6:])).tolist() == [2] * 30


def test_a_batch_has_as_many_examples_as_asked_for(tmp_path: Path) -> None:
    tokens = batches.read(write(tmp_path / "t.arrow", rows(30)))
    assert sorted(map(len, taken(tokens, epochs=1, batch_size=8))) == [6, 8, 8, 8]


@pytest.mark.parametrize("head", ["sequence", "mlm"])
def test_parts_of_a_mix_share_batches_unless_the_recipe_says_no(tmp_path: Path, head: str) -> None:
    files = [write(tmp_path / f"{n}.arrow", rows(30, 1 + 100 * n), head) for n in range(2)]
    mixed = batches.mix([batches.read(path) for path in files], 65)
    source = np.array([(row[0] - 1) // 100 for row in ids(mixed)])
    for together in (True, False):
        steps = taken(mixed, epochs=1, batch_size=4, mixed_batches=together)
        assert sorted(np.concatenate(steps).tolist()) == list(range(len(mixed)))
        assert any(len(set(source[batch])) > 1 for batch in steps) is together


@pytest.mark.parametrize("phase", [{}, {"share": 0.5, "epochs": 3}])
def test_a_phase_has_one_length(phase: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="exactly one"):
        Phase.model_validate(phase)


def test_a_mix_of_texts_has_all_of_each(tmp_path: Path) -> None:
    files = [
        batches.read(write(tmp_path / f"{n}.arrow", rows(3 + n, 10 * n + 1), "mlm"), code)
        for n, code in enumerate(("en", "en-fr"))
    ]
    mixed = batches.mix(files, 1)
    assert ids(mixed) == [*rows(3), *rows(4, 11)]
    segments = mixed.segments(np.arange(7))
    assert segments.switched.tolist() == [False] * 3 + [True] * 4
    assert [tuple(segments.languages[at] for at in pair) for pair in segments.language_of] == [
        *[("en", "en")] * 3,
        *[("en", "fr")] * 4,
    ]
