"""Reading, mixing and batching tokens."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokens_fixture import ids, rows, write

from xlgrid.base.errors import Damaged
from xlgrid.data import batches
from xlgrid.heads import HEADS
from xlgrid.heads.head import Mix
from xlgrid.heads.token import Words
from xlgrid.heads.values import Values


@pytest.mark.parametrize("head", ["sequence", "mlm"])
@pytest.mark.parametrize("count", [0, 1, 20])
def test_a_file_reads_back(tmp_path: Path, count: int, head: str) -> None:
    assert ids(batches.read(write(tmp_path / "t.arrow", rows(count), head))) == rows(count)


def test_a_column_of_fractions_is_an_array_of_numbers(tmp_path: Path) -> None:
    path = write(tmp_path / "t.arrow", rows(20))
    table = pa.ipc.open_file(path).read_all()
    scores = np.arange(20, dtype=np.float32) / 4
    table = table.append_column("score", pa.chunked_array([scores]))
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=7)
    read = batches.read(path).columns["score"]
    assert read.dtype == scores.dtype and np.array_equal(read[[3, 19]], scores[[3, 19]])


def test_token_ids_of_text_stay_in_the_file(tmp_path: Path) -> None:
    parts = [batches.read(write(tmp_path / f"{start}.arrow", rows(20, start), "mlm")) for start in (1, 30)]
    mixed = batches.mix(parts, 65)
    assert ids(mixed) == rows(20) + rows(20, 30)
    assert isinstance(mixed.values, Values)
    assert len(mixed.values.pieces) == 6 and not any(piece.flags.owndata for piece in mixed.values.pieces)


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "t.arrow", rows(20))
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(Damaged, match=r"t\.arrow is damaged.*tokenize again") as refused:
        batches.read(path)
    assert refused.value.paths == (path,)


@pytest.mark.parametrize("name", ["model.safetensors", "folder"])
def test_another_file_is_not_to_be_deleted(name: str, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match=f"{name} is not a tokens file: name a file") as refused:
        batches.read(tmp_path / name)
    assert not isinstance(refused.value, Damaged)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"t\.arrow does not exist"):
        batches.read(tmp_path / "t.arrow")


@pytest.mark.parametrize("parts", [2, 3])
@pytest.mark.parametrize("head", ["sequence", "token"])
def test_each_example_of_a_mix_is_its_row_in_exactly_one_part(tmp_path: Path, parts: int, head: str) -> None:
    examples = [rows(12, 1 + 100 * part) for part in range(parts)]
    tokens = [batches.read(write(tmp_path / f"{n}.arrow", part, head)) for n, part in enumerate(examples)]
    mixed = ids(batches.mix(tokens, 65))
    source = [(row[0] - 1) // 100 for row in mixed]
    assert mixed == [examples[part][i] for i, part in enumerate(source)]
    assert [source.count(part) for part in range(parts)] == [12 // parts] * parts


def test_the_seed_of_a_mix_decides_its_halves(tmp_path: Path) -> None:
    tokens = [batches.read(write(tmp_path / f"{n}.arrow", rows(40, 1 + 100 * n))) for n in range(2)]
    assert ids(batches.mix(tokens, 1)) == ids(batches.mix(tokens, 1)) != ids(batches.mix(tokens, 2))


def test_unequal_parts_are_an_error(tmp_path: Path) -> None:
    tokens = [batches.read(write(tmp_path / f"{n}.arrow", rows(3 + n))) for n in range(2)]
    with pytest.raises(ValueError, match=r"3, 4 examples.*`mix: whole`"):
        batches.mix(tokens, 65)


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


@pytest.mark.parametrize("head", ["sequence", "token"])
@given(st.lists(st.integers(1, 9), min_size=2, max_size=5))
def test_a_mix_that_takes_its_parts_whole_has_each_row_of_each_part_once(head: str, sizes: list[int]) -> None:
    """The parts have different numbers of rows, and no row of one is a row of another."""
    parts = [rows(size, 1 + 100 * number) for number, size in enumerate(sizes)]
    with TemporaryDirectory() as folder:
        tokens = [
            batches.read(write(Path(folder, f"{number}.arrow"), part, head), f"q{'abcde'[number]}1")
            for number, part in enumerate(parts)
        ]
        mixed = batches.mix(tokens, 65, "whole")
        assert ids(mixed) == [row for part in parts for row in part]
        assert mixed.examples == len(mixed) == sum(sizes)
        assert mixed.example_of.tolist() == list(range(sum(sizes))), "no two parts share an example"
        assert mixed.parts is not None and np.bincount(mixed.parts).tolist() == sizes
        language_of = [mixed.languages[at] for at in mixed.language_of[:, 0]]
        assert language_of == [f"q{'abcde'[number]}1" for number, size in enumerate(sizes) for _ in range(size)]


def test_windows_of_a_whole_mix_belong_to_examples_of_their_part(tmp_path: Path) -> None:
    """A sentence of two windows is one outcome in each part, as it is in each part alone."""
    files = []
    for number in range(2):
        path = write(tmp_path / f"{number}.arrow", rows(4, 1 + 100 * number), "token")
        with pa.ipc.open_file(path) as reader:
            table = reader.read_all()
        numbers = pa.array([0, 0, 1, 2], pa.int32())
        table = table.set_column(table.column_names.index("example"), "example", numbers)
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
        files.append(batches.read(path))
    mixed = batches.mix(files, 65, "whole")
    assert mixed.example_of.tolist() == [0, 0, 1, 2, 3, 3, 4, 5] and mixed.examples == 6
    outcomes = HEADS["token"].outcomes(mixed, [Words([0], [0])] * 8)
    alone = HEADS["token"].outcomes(files[0], [Words([0], [0])] * 4)
    assert outcomes == alone * 2


@pytest.mark.parametrize("way", ["shares", "whole"])
def test_parts_of_other_labels_are_an_error(tmp_path: Path, way: Mix) -> None:
    tokens = [batches.read(write(tmp_path / f"{n}.arrow", rows(4, 1 + 100 * n))) for n in range(2)]
    other = replace(tokens[1], label_names=("b", "a", "c"))
    with pytest.raises(ValueError, match="the parts of a mix differ in labels"):
        batches.mix([tokens[0], other], 65, way)
    larger = replace(tokens[1], vocabulary=tokens[1].vocabulary._replace(size=51))
    with pytest.raises(ValueError, match="the parts of a mix differ in labels or tokenizer"):
        batches.mix([tokens[0], larger], 65, way)


@example([5, 5], 10, 9)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=40).map(sorted), st.integers(1, 90), st.integers(1, 9))
def test_a_batch_is_as_full_as_the_budget_allows(sizes: list[int], budget: int, most: int) -> None:
    """Rows come in the order of their lengths. A batch takes the next row if it still fits the budget with this row."""
    lengths = np.array(sizes)
    cuts = [batch.tolist() for batch in batches.cut(lengths, np.arange(len(sizes)), budget, most)]
    assert [row for batch in cuts for row in batch] == list(range(len(sizes)))
    for batch, following in zip(cuts, [*cuts[1:], []], strict=True):
        assert len(batch) == 1 or (sizes[batch[-1]] * len(batch) <= budget and len(batch) <= most)
        assert not following or len(batch) == most or sizes[following[0]] * (len(batch) + 1) > budget
