"""A method without runs: it changes nothing, and a study gives it no training."""

import pytest
import torch
from models_fixture import TEXT_MODELS, logits, model_of

from xlgrid.methods import ALL_METHODS, METHODS, make


@pytest.mark.parametrize("kind", TEXT_MODELS)
def test_it_installs_and_trains_nothing(kind: str) -> None:
    model, method = model_of(kind), make("as-is", {})
    names = [name for name, _ in model.named_parameters()]
    method.install(model)
    assert [name for name, _ in model.named_parameters()] == names
    assert not any(map(method.trains, names))
    torch.testing.assert_close(logits(model), logits(model_of(kind)), atol=0, rtol=0)


def test_it_is_the_only_method_without_runs() -> None:
    assert [base for base, method in METHODS.items() if not method.is_trained] == ["as-is"]


def test_a_package_cannot_add_another_method_without_runs() -> None:
    """Its `install` and options would be left out of its cells."""
    without_runs = type("Zero", (METHODS["full-ft"],), {"is_trained": False})
    assert ALL_METHODS.fits("bias", METHODS["bitfit"]) and not ALL_METHODS.fits("zero", without_runs)
    with pytest.raises(ValueError, match="options: unknown key 'strength'"):
        make("as-is", {"strength": 5})


def test_it_begins_with_no_run() -> None:
    make("as-is", {}).check_start(None)
    with pytest.raises(ValueError, match="leave out `start`"):
        make("as-is", {}).check_start(make("full-ft", {}))
