"""X-MOD has the parts of XLM-R, and modules for languages beside them."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pytest

from xlgrid.heads import HEADS
from xlgrid.heads.families import FAMILIES, has_modules, is_pretrained_module, module_of
from xlgrid.heads.sequence import SequenceHead


def test_an_xmod_is_an_xlmr_with_modules_for_languages() -> None:
    xmod, xlmr = FAMILIES["xmod"], FAMILIES["xlm-roberta"]
    differ = {field.name for field in fields(xmod) if getattr(xmod, field.name) != getattr(xlmr, field.name)}
    assert differ == {"modules"} and has_modules("xmod") and not has_modules("xlm-roberta")


def test_a_decoder_has_no_modules_for_languages() -> None:
    class Generating(SequenceHead):
        def described(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
            return {**config, "is_encoder_decoder": True}

    xmod = FAMILIES["xmod"]
    problem = xmod.problem(Generating())
    assert problem and "name an encoder without them" in problem and xmod.problem(HEADS["token"]) is None


@pytest.mark.parametrize(
    ("name", "module", "pretrained"),
    [
        ("roberta.encoder.layer.0.output.adapter_modules.en_XX.dense1.weight", "en_XX", True),
        ("encoder.layer.11.output.adapter_modules.added.dense2.bias", "added", False),
        ("roberta.encoder.layer.0.output.adapter_modules.shared.dense2.bias", "shared", False),
    ],
)
def test_the_module_of_a_parameter(name: str, module: str, pretrained: bool) -> None:
    assert (module_of(name), is_pretrained_module(name)) == (module, pretrained)
