"""Masks as an exhibit are those that training draws."""

import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from xlgrid.base.arrays import Segments
from xlgrid.methods import ALL_METHODS, make
from xlgrid.papers.foroutan2023.masks import CONTEXT, QUESTION, SEED, Masks
from xlgrid.papers.foroutan2023.methods import Structured
from xlgrid.study.schema import MethodEntry

STUDY = {
    "drop": MethodEntry(base="structured-dropout"),
    "strict": MethodEntry(base="qcross", options={"p_mask": 1}),
    "qcross": MethodEntry(base="qcross"),
}


def exhibit(*methods: str) -> Masks:
    return Masks(title="Masks", methods=methods)


def switched(context: int, length: int) -> Segments:
    """The segments of one input in two languages."""
    return Segments(np.array([context]), ("en", "fr"), np.array([[0, 1]], np.int16), length)


def matrices(table: pd.DataFrame) -> dict[tuple[str, str], np.ndarray]:
    length = CONTEXT + QUESTION
    return {keys: part["kept"].to_numpy().reshape(length, length) for keys, part in table.groupby(["method", "mask"])}


@pytest.mark.parametrize("name", STUDY)
def test_the_cells_are_those_of_a_step_of_training(name: str) -> None:
    masks = matrices(exhibit(name).weights(STUDY))
    torch.manual_seed(SEED)
    arguments = switched(CONTEXT, CONTEXT + QUESTION), torch.device("cpu")
    drawn = make(STUDY[name].base or name, STUDY[name].options).arrange(*arguments, training=True)["layout"].masks(12)
    assert [mask for _, mask in masks] == ["M1", "M2"][: len(masks)]
    for ours, expected in zip(masks.values(), drawn, strict=False):
        np.testing.assert_array_equal(ours, expected[0].numpy())


def test_strict_masks_are_figure_3a_and_dropout_has_no_second_query() -> None:
    masks = matrices(exhibit("strict", "drop").weights(STUDY))
    assert list(masks) == [("drop", "M1"), ("strict", "M1"), ("strict", "M2")]
    second = np.arange(CONTEXT + QUESTION) >= CONTEXT
    same = second[:, None] == second
    first = np.zeros_like(same)
    first[0] = first[:, 0] = True
    np.testing.assert_array_equal(masks["strict", "M1"], same | first)
    np.testing.assert_array_equal(masks["strict", "M2"], ~same | first)


def test_interfering_masks_are_always_the_same_and_leave_the_generator() -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    first, again = (exhibit("qcross").weights(STUDY) for _ in range(2))
    assert torch.equal(torch.rand(1), expected)
    pd.testing.assert_frame_equal(first, again)


def test_the_table_counts_the_cells_of_each_part() -> None:
    weights = exhibit("strict").weights(STUDY)
    entries = exhibit("strict").sheet(weights).entries.set_index(["mask", "column"])
    assert entries["text"].to_dict() == {
        ("M1", "within a segment"): "100",
        ("M1", "between the two"): "0",
        ("M1", "first token"): "100",
        ("M2", "within a segment"): "0",
        ("M2", "between the two"): "100",
        ("M2", "first token"): "100",
    }
    assert entries.groupby("mask")["size"].sum().tolist() == [144, 144]


def test_every_method_that_draws_masks_is_known() -> None:
    arguments = switched(4, 8), torch.device("cpu")
    structured = {base for base, method in ALL_METHODS.own.items() if issubclass(method, Structured)}
    assert structured and all(make(base, {}).arrange(*arguments, training=True) for base in structured)


def test_the_files_are_the_same_bytes_twice_and_name_their_tokens(tmp_path: Path) -> None:
    picture, files = exhibit("drop", "qcross"), []
    for folder in (tmp_path / "a", tmp_path / "b"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            picture.render("x", SimpleNamespace(study=SimpleNamespace(methods=STUDY, printed={})), folder)
        files.append({suffix: (folder / f"x{suffix}").read_bytes() for suffix in picture.suffixes})
    assert files[0] == files[1]
    text = files[0][".svg"].decode()
    for label in ("first", "c7", "q5", "context", "question", "drop: M1", "qcross: M2", "masked: weight 0"):
        assert f">{label}</text>" in text
    assert "drop: M2" not in text
    assert len(pd.read_csv(tmp_path / "a" / "x.csv")) == 3 * 144
