"""The settings of training that only this paper has."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from rows_fixture import rows_of
from schedule_fixture import taken
from tokens_fixture import rows, write
from transformers import BertConfig, BertForPreTraining, XLMRobertaConfig, XLMRobertaForMaskedLM

from xlgrid.base.settings import plainly
from xlgrid.data import batches
from xlgrid.papers.foroutan2023.training import Phase
from xlgrid.study.encoders import ScratchEncoder
from xlgrid.training import schedule
from xlgrid.training.loop import Loop
from xlgrid.training.recipe import Recipe, Training

NAMES = {"study": "s", "task": "t", "kind": "ruletaker", "encoder": "e", "method": "m", "source": "en", "seed": 1}


def recipe(**training: Any) -> Recipe:
    return Recipe.model_validate({**NAMES, "base": "full-ft", "training": {"steps": 4, **training}})


def test_a_phase_admits_only_what_it_says_for_its_share(tmp_path: Path) -> None:
    tokens = batches.read(write(tmp_path / "t.arrow", rows(30), depths=[i % 4 for i in range(30)]))
    asked = 40
    steps = taken(tokens, steps=asked, curriculum=(Phase(share=0.5, max_depth=0), Phase(share=0.25, max_depth=1)))
    assert len(steps) == asked
    depths = tokens.columns["depth"]
    assert {int(depths[i]) for b in steps[:20] for i in b} == {0}
    assert {int(depths[i]) for b in steps[20:30] for i in b} == {0, 1}
    assert {int(depths[i]) for b in steps[30:] for i in b} == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("depths", "message"), [([2] * 5, "no example has a proof depth of at most 1"), (None, "no column `depth`")]
)
def test_an_impossible_phase_is_explained(tmp_path: Path, depths: list[int] | None, message: str) -> None:
    tokens = batches.read(write(tmp_path / "t.arrow", rows(5), depths=depths))
    with pytest.raises(ValueError, match=message):
        taken(tokens, steps=40, curriculum=(Phase(share=0.5, max_depth=1),))


def test_a_curriculum_leaves_steps_for_everything(tmp_path: Path) -> None:
    tokens = batches.read(write(tmp_path / "t.arrow", rows(5), depths=[0] * 5))
    with pytest.raises(ValueError, match="takes 40 steps of 40"):
        taken(tokens, steps=40, curriculum=(Phase(share=0.5, max_depth=0),) * 2)


def test_epochs_of_a_phase_come_before_those_over_everything(tmp_path: Path) -> None:
    """Eight of 30 examples have depth 0. Training passes over these three times in batches of four, then over all twice."""
    tokens = batches.read(write(tmp_path / "t.arrow", rows(30), depths=[i % 4 for i in range(30)]))
    steps = taken(tokens, epochs=2, batch_size=4, curriculum=(Phase(epochs=3, max_depth=0),))
    assert len(steps) == 3 * 2 + 2 * 8
    assert np.bincount(np.concatenate(steps[:6])).tolist()[::4] == [3] * 8
    assert np.bincount(np.concatenate(steps[6:])).tolist() == [2] * 30


@pytest.mark.parametrize("phase", [{}, {"share": 0.5, "epochs": 3}])
def test_a_phase_has_one_length(phase: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="exactly one"):
        Phase.model_validate({"max_depth": 0, **phase})


@given(
    st.integers(1, 3000),
    st.integers(1, 64),
    st.floats(0.5, 5),
    st.sampled_from([(), (Phase(epochs=2, max_depth=0),), (Phase(share=0.5, max_depth=0),)]),
)
def test_steps_are_those_of_the_plan(n: int, batch: int, epochs: float, curriculum: tuple[Phase, ...]) -> None:
    training = Training(epochs=epochs, batch_size=batch, curriculum=curriculum)
    tokens = rows_of("sequence", {"depth": np.zeros(n, int)})
    steps = schedule.training_length(training, n, 1, {})[0]
    try:
        assert steps == schedule.plan(tokens, training, seed=1).steps
    except ValueError as error:
        # A study of one step has no halves.
        assert steps == 1 and "the curriculum takes" in str(error)


@pytest.mark.parametrize(
    ("curriculum", "expected"),
    [([{"epochs": 2, "max_depth": 1}], (20, 200)), ([{"epochs": 2, "max_depth": 9}], (30, 300))],
)
def test_length_of_a_training_of_100_examples(curriculum: list[dict[str, Any]], expected: tuple[int, int]) -> None:
    """Steps and examples; depths 0 to 3 are equally frequent."""
    training = Training(epochs=1, batch_size=10, curriculum=curriculum)
    assert schedule.training_length(training, 100, 100, {"max_depth": 3}) == expected


def test_a_curriculum_does_not_go_with_alpha() -> None:
    curriculum = [{"share": 0.5, "max_depth": 0}]
    training = {"steps": 4, "alpha": 0.7, "curriculum": curriculum}
    conflict = Training(**training).conflict
    assert conflict and conflict[0] == "curriculum" and "`alpha`" in conflict[1]
    with pytest.raises(ValidationError, match="leave out `curriculum`"):
        ScratchEncoder.model_validate({"scratch": {"languages": ["en"]}, "training": {"curriculum": curriculum}})


@pytest.mark.parametrize(
    ("training", "message"),
    [
        (
            {"curriculum": [{"max_dept": 1, "share": 0.1}]},
            "curriculum.0: unknown key 'max_dept', did you mean 'max_depth'",
        ),
        ({"head": "lm"}, "head: unknown value 'lm'"),
        ({"curriculm": []}, "unknown key 'curriculm', did you mean 'curriculum'"),
    ],
)
def test_a_mistake_is_named(training: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as error:
        Training.model_validate(training)
    assert message in plainly(error.value)


def test_settings_of_the_paper_are_part_of_the_identity_of_a_recipe() -> None:
    whole = recipe(curriculum=[{"epochs": 3, "max_depth": 0}], head="lm-head")
    assert '"curriculum":[{"epochs":3.0,"max_depth":0}],"head":"lm-head"' in whole.identity()
    assert Recipe.parse(whole.identity(), whole.pace()) == whole
    assert len({recipe().digest(), recipe(head="lm-head").digest(), whole.digest()}) == 3
    assert recipe(head=None) == recipe()


def test_a_classifier_begins_with_the_dense_layer_of_the_lm_head(tmp_path: Path) -> None:
    tokens = write(tmp_path / "t.arrow", rows(30))
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    lm = XLMRobertaForMaskedLM(XLMRobertaConfig(vocab_size=40, max_position_embeddings=40, pad_token_id=1, **size))
    lm.save_pretrained(tmp_path / "xlmr")
    BertForPreTraining(BertConfig(vocab_size=40, max_position_embeddings=40, **size)).save_pretrained(tmp_path / "bert")
    loop = Loop(recipe(head="lm-head"), tmp_path / "xlmr", [tokens], [tokens], tmp_path / "run")
    for name in ("weight", "bias"):
        assert torch.equal(getattr(loop.model.classifier.dense, name), getattr(lm.lm_head.dense, name))
    with pytest.raises(ValueError, match="`head: lm-head` needs an XLM-R"):
        Loop(recipe(head="lm-head"), tmp_path / "bert", [tokens], [tokens], tmp_path / "of-bert")
