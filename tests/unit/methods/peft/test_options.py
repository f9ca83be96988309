"""What a study may ask of the methods of peft, and what it is told otherwise."""

import subprocess
import sys
from typing import Any

import pytest
from xmod_fixture import batch, model_of, segments

from xlgrid.methods import make
from xlgrid.methods.peft import options

BASES = ("lora", "ia3", "prefix-tuning")
each_base = pytest.mark.parametrize("base", BASES)


@each_base
def test_without_peft_the_method_names_what_to_install(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'xlgrid\[peft\]'"):
        make(base, {})


def test_reading_the_methods_imports_neither_peft_nor_torch() -> None:
    code = (
        "import sys; from xlgrid.methods import make; [make(base, {}) for base in sys.argv[1:]]; "
        "assert not {'peft', 'torch', 'transformers'} & sys.modules.keys()"
    )
    assert subprocess.run([sys.executable, "-c", code, *BASES]).returncode == 0


@each_base
def test_an_encoder_decoder_is_refused(base: str) -> None:
    problem = make(base, {}).misfit({"model_type": "mbart", "is_encoder_decoder": True})
    assert problem and "use full-ft or bitfit" in problem


@pytest.mark.parametrize(
    ("base", "option", "value"),
    [("lora", "rank", 0), ("lora", "dropout", 1), ("lora", "target", "query"), ("prefix-tuning", "length", 0)],
)
def test_an_option_has_bounds(base: str, option: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"options: {option}: "):
        make(base, {option: value})


@each_base
@pytest.mark.parametrize("before", [None, "full-ft", "bitfit"])
def test_a_run_may_begin_with_none_or_with_a_run_of_the_encoders_weights(base: str, before: str | None) -> None:
    method = make(base, {})
    assert not method.needs_start
    method.check_start(before and make(before, {}))


def test_a_run_goes_on_from_the_same_matrices_only() -> None:
    method = make("lora", {"rank": 4})
    method.check_start(make("lora", {"rank": 4, "dropout": 0.1}))
    with pytest.raises(ValueError, match=r"the rank is not that of the method of the `start`"):
        method.check_start(make("lora", {}))
    with pytest.raises(ValueError, match=r"the base is not that of the method of the `start`"):
        method.check_start(make("ia3", {}))


def test_tokens_do_not_pass_through_prefixes() -> None:
    method = make("prefix-tuning", {})
    assert method.passes("bert.prefix.embedding.weight") == 0
    assert method.passes("bert.encoder.layer.0.output.dense.weight") == 1


@each_base
def test_modules_of_languages_compute_with_it_and_stay_as_they_are(base: str) -> None:
    model, method = model_of(), make(base, {"target": "all-linear"} if base == "lora" else {})
    before = {name for name, _ in model.named_parameters()}
    method.install(model)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(method.trains(name))
    model.eval()(**batch(3), **model.language_arguments(segments([0, 1, 0]))).logits.square().sum().backward()
    trained = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert trained == {name for name, _ in model.named_parameters() if name not in before}
    assert trained and not any("adapter_modules" in name for name in trained)
