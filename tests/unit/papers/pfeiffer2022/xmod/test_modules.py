"""Modules for languages compute what transformers' X-MOD does, and only where their language is."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from transformers import XmodForMaskedLM, XmodModel
from xmod_fixture import LANGUAGES, batch, model_of, segments, transformers_model

from xlgrid.base.arrays import Segments
from xlgrid.heads import HEADS
from xlgrid.models import by_language
from xlgrid.models.deltas import named_parameters
from xlgrid.models.load import model_class
from xlgrid.papers.pfeiffer2022.xmod import modules

pytestmark = pytest.mark.usefixtures("one_thread")
MIXED = [0, 2, 0, 1, 2, 0]
# The name of a parameter of an added module.
ADDED = ["encoder.layer.0.output.adapter_modules.added.dense1.weight"]


def transformed(model: Any) -> Any:
    """The same weights in transformers' own class."""
    same = XmodForMaskedLM(model.config).to(next(model.parameters()).dtype).eval()
    same.load_state_dict(model.state_dict())
    return same


def loss(model: Any, rows: list[int], **extra: Any) -> torch.Tensor:
    inputs = batch(len(rows))
    logits = model(**inputs, **extra).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), inputs["input_ids"].flatten(), reduction="sum")


@pytest.mark.parametrize(("dtype", "most"), [(torch.float64, 0.0), (torch.float32, 1e-6)])
@pytest.mark.parametrize("rows", [MIXED, [2, 2, 2, 2]])
def test_check_3_logits_and_gradients_are_those_of_transformers(
    dtype: torch.dtype, most: float, rows: list[int]
) -> None:
    """Before and after a step, with inputs of several languages, and with padding: wired like MAD-X, they would differ."""
    model = model_of().to(dtype)
    reference = transformed(model)
    ids = torch.tensor(rows)
    for step in range(2):
        routes = model.language_arguments(segments(rows))
        with torch.no_grad():
            logits, expected = (
                model(**batch(len(rows)), **routes).logits,
                reference(**batch(len(rows)), lang_ids=ids).logits,
            )
        assert float((logits - expected).abs().max()) <= most, step
        losses = loss(model, rows, **routes), loss(reference, rows, lang_ids=ids)
        for each in losses:
            each.backward()
        gradients = {name: p.grad for name, p in reference.named_parameters()}
        for name, parameter in named_parameters(model).items():
            if parameter.grad is None:
                assert not gradients[name].any(), "transformers has gradients of zero where there are none here"
                continue
            scale = max(1.0, float(gradients[name].abs().max()))
            assert float((parameter.grad - gradients[name]).abs().max()) <= most * scale, name
        for each in (model, reference):
            with torch.no_grad():
                for parameter in each.parameters():
                    if parameter.grad is not None:
                        parameter -= 0.01 * parameter.grad
            each.zero_grad()


def test_a_layer_computes_the_formula() -> None:
    """out = LN(z + W2 gelu(W1 z)), z = LN(s), in dense numpy."""
    from scipy.special import erf

    model = model_of().double()
    output = model.base_model.encoder.layer[1].output
    model.base_model.router.routes = modules.Routes(("fr",))
    states = torch.randn(2, 5, 16, dtype=torch.float64)
    with torch.no_grad():
        computed = output.LayerNorm(states).numpy()
    weights = {name: p.detach().numpy() for name, p in output.named_parameters()}
    gain, bias = weights["LayerNorm.weight"], weights["LayerNorm.bias"]

    def norm(s: np.ndarray) -> np.ndarray:
        centred = s - s.mean(-1, keepdims=True)
        normed: np.ndarray = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * gain + bias
        return normed

    z = norm(states.numpy())
    inner = z @ weights["adapter_modules.fr.dense1.weight"].T + weights["adapter_modules.fr.dense1.bias"]
    inner = inner * (1 + erf(inner / np.sqrt(2))) / 2
    expected = norm(
        z + inner @ weights["adapter_modules.fr.dense2.weight"].T + weights["adapter_modules.fr.dense2.bias"]
    )
    assert np.abs(computed - expected).max() < 1e-12


def test_check_1_another_language_has_other_logits_and_an_input_does_not_depend_on_the_others() -> None:
    model = model_of()

    def logits(rows: list[int]) -> torch.Tensor:
        with torch.no_grad():
            inputs = {name: tensor[: len(rows)] for name, tensor in batch(6).items()}
            answered: torch.Tensor = model(**inputs, **model.language_arguments(segments(rows))).logits
        return answered

    first, other = logits([0] * 6), logits([1] * 6)
    assert (first - other).abs().amax((1, 2)).min() > 1e-3
    mixed = logits([0, 1, 0, 1, 1, 0])
    expected = torch.stack([(first, other)[code][at] for at, code in enumerate([0, 1, 0, 1, 1, 0])])
    torch.testing.assert_close(mixed, expected, atol=1e-5, rtol=0)
    assert model.language_parts(["sw"]) == ("module:sw",)


def test_only_modules_of_languages_in_a_batch_compute_and_have_gradients() -> None:
    model, languages = model_of(), []
    for language, module in model.base_model.encoder.layer[0].output.adapter_modules.items():
        module.register_forward_hook(lambda *_, language=language: languages.append(language))
    loss(model, [0, 2, 2], **model.language_arguments(segments([0, 2, 2]))).backward()
    assert sorted(languages) == ["en", "sw"]
    with_gradient = {
        modules_of for name, p in model.named_parameters() if p.grad is not None and (modules_of := _of(name))
    }
    assert with_gradient == {"en", "sw"}


def _of(name: str) -> str | None:
    return name.split(".adapter_modules.")[1].split(".")[0] if ".adapter_modules." in name else None


def test_shared_has_one_module_for_all_languages_and_needs_no_routes() -> None:
    model = model_of("shared")
    assert {_of(name) for name, _ in model.named_parameters()} == {None, "shared"}
    assert model.language_arguments(segments(MIXED)) == {}
    assert model.language_parts(["en", "xx"]) == ("module:shared",)
    reference = transformed(model)
    with torch.no_grad():
        # The default language of the configuration is its one module.
        assert torch.equal(model(**batch(3)).logits, reference(**batch(3)).logits)


def test_shared_nm_has_no_modules() -> None:
    model = model_of("plain")
    assert model.config.model_type == "xlm-roberta" and modules.router_of(model) is None
    assert by_language.parts(model, ["en"]) == () and by_language.arguments(model, segments([0])) == {}


def test_a_model_without_its_languages_a_language_without_module_and_an_input_in_two_are_refused() -> None:
    model = model_of()
    with pytest.raises(ValueError, match="the languages of the inputs are unknown"):
        model(**batch(2))
    with pytest.raises(ValueError, match=r"the encoder has no module of unknown language 'de'"):
        model.language_arguments(segments([0], ("de",)))
    pair = Segments(np.array([4]), ("en", "fr"), np.array([[0, 1]], np.int16), 9)
    with pytest.raises(ValueError, match="a module is for inputs in one language"):
        model.language_arguments(pair)


def test_routes_do_not_outlast_a_batch() -> None:
    model = model_of()
    model(**batch(2), **model.language_arguments(segments([1, 1])))
    with pytest.raises(ValueError, match="the languages of the inputs are unknown"):
        model(**batch(2))


def test_an_added_module_is_that_of_its_language() -> None:
    model = model_of()
    before = model(**batch(2), **model.language_arguments(segments([1, 1]))).logits
    modules.add_module(model)
    model.give_languages(ADDED, ["de"])
    assert model.language_parts(["de", "fr"]) == ("module:de", "module:fr")
    assert {_of(name) for name, _ in model.named_parameters()} == {None, *LANGUAGES, "added"}
    german = model(**batch(2), **model.language_arguments(segments([0, 0], ("de",)))).logits
    assert (german - before).abs().max() > 1e-3
    assert torch.equal(before, model(**batch(2), **model.language_arguments(segments([1, 1]))).logits)
    with pytest.raises(ValueError, match="has a pre-trained module for fr, which is not replaced"):
        model.give_languages(ADDED, ["fr"])


def test_a_copy_of_a_model_computes_with_its_own_modules() -> None:
    model = model_of()
    same = copy.deepcopy(model)
    routes = same.language_arguments(segments([1, 1]))
    expected = model(**batch(2), **routes).logits
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert torch.equal(same(**batch(2), **routes).logits, expected)


def test_another_order_of_norms_is_refused() -> None:
    config = transformers_model(pre_norm=True).config
    with pytest.raises(ValueError, match="got pre_norm True: use another encoder"):
        model_class("xmod", HEADS["mlm"])(config)


@pytest.mark.parametrize("head", [name for name in HEADS if name != "perplexity"])
def test_every_head_passes_the_routes_on(head: str) -> None:
    config = transformers_model().config
    model = model_class("xmod", HEADS[head])(config).eval()
    inputs = batch(2)
    inputs = {name: HEADS[head].shaped(tensor, len(tensor)) for name, tensor in inputs.items()}
    first, other = (model(**inputs, **model.language_arguments(segments([code, code])))[0] for code in (0, 1))
    assert not torch.equal(first, other)


def test_the_base_model_of_transformers_reads_what_is_saved(tmp_path: Any) -> None:
    model = model_of().double()
    model.save_pretrained(tmp_path)
    reference, about = XmodModel.from_pretrained(
        tmp_path, add_pooling_layer=False, dtype=torch.float64, output_loading_info=True
    )
    assert not about["missing_keys"]
    rows = torch.tensor(MIXED)
    with torch.no_grad():
        expected = reference.eval()(**batch(6), lang_ids=rows).last_hidden_state
        states = model.base_model(**batch(6), **model.language_arguments(segments(MIXED))).last_hidden_state
    # Processors may round in another order where tensors lie otherwise in memory.
    torch.testing.assert_close(states, expected, rtol=0, atol=1e-13)
