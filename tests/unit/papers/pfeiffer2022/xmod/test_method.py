"""The options of the method X-MOD, and what the runs of its methods may begin with."""

import pytest
from xmod_fixture import model_of

from xlgrid.heads.families import module_of
from xlgrid.methods import make
from xlgrid.models.deltas import trains
from xlgrid.papers.pfeiffer2022.xmod import XMod


def test_a_cell_names_the_embeddings_of_an_added_language() -> None:
    assert XMod().stack("xnli", "bg") == ("embeddings:bg",)
    assert XMod().stack("xnli", None) == (), "the encoder's"


def test_options_of_mlm_runs_are_not_for_runs_on_a_task() -> None:
    with pytest.raises(ValueError, match="overlap: embeddings do not train with `tune: shared`"):
        make("xmod", {"overlap": "random"})


def test_runs_begin_with_runs_that_add_languages() -> None:
    add = XMod(tune="language")
    XMod().check_start(add)
    assert not XMod().needs_start and not add.needs_start and not add.trains_head
    for other in (make("madx", {"tune": "language"}), XMod(), make("full-ft", {})):
        with pytest.raises(ValueError, match="give the method of the `start` `base: xmod` and `tune: language`"):
            XMod().check_start(other)


@pytest.mark.parametrize("base", ["full-ft", "bitfit", "xmod"])
def test_no_run_trains_a_pretrained_module(base: str) -> None:
    model, method = model_of(), make(base, {})
    method.install(model)
    trained = {module_of(name) for name, _ in model.named_parameters() if trains(method, name)}
    assert trained <= {None, "added"}
