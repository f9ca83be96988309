"""The options of structured attention, and the masks that they draw."""

import numpy as np
import pytest
import torch
from models_fixture import model_of

from xlgrid.base.arrays import Segments
from xlgrid.heads import HEADS
from xlgrid.methods import make
from xlgrid.models.first_token import read_first_token


def segments(contexts: list[int], switched: list[bool], length: int = 12) -> Segments:
    """The segments of inputs, of which some are in two languages."""
    languages = np.array([[0, int(both)] for both in switched], np.int16)
    return Segments(np.array(contexts), ("en", "fr"), languages, length)


@pytest.mark.parametrize("base", ["structured-dropout", "qcross"])
def test_masks_are_drawn_anew_at_each_step_and_the_same_for_a_seed(base: str) -> None:
    method, drawn = make(base, {"p_mask": 0.7}), []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        arguments = segments([4] * 200, [True] * 200), torch.device("cpu")
        drawn.append(method.arrange(*arguments, training=True)["layout"].unmasked)
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])
    assert abs(drawn[0].float().mean() - 0.3) < 0.02, "a cell is kept with probability 1 - p_mask"


def test_evaluation_is_strict_and_dropout_is_for_training() -> None:
    arguments = segments([4, 5], [True, False]), torch.device("cpu"), False
    assert make("qcross", {}).arrange(*arguments)["layout"].unmasked is None
    assert make("qcross", {"evaluate": "sampled"}).arrange(*arguments)["layout"].unmasked is not None
    assert make("structured-dropout", {}).arrange(*arguments) == {}


def test_batches_in_one_language_get_nothing_extra() -> None:
    for base in ("structured-dropout", "qcross"):
        arguments = segments([4, 5], [False, False]), torch.device("cpu"), True
        assert make(base, {}).arrange(*arguments) == {}


@pytest.mark.parametrize("base", ["structured-dropout", "qcross"])
def test_the_last_layer_is_computed_for_all_tokens(base: str) -> None:
    """Other methods leave out what a classifier does not read (`xlgrid.models.first_token`)."""
    model = model_of("bert-sequence")
    make(base, {}).install(model)
    assert not read_first_token(model, HEADS["sequence"])
