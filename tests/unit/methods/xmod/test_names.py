"""Names of parameters say to which module they belong."""

import pytest

from xlgrid.methods.xmod.names import is_pretrained_module, module_of


@pytest.mark.parametrize(
    ("name", "module", "pretrained"),
    [
        ("roberta.encoder.layer.0.output.adapter_modules.en_XX.dense1.weight", "en_XX", True),
        ("encoder.layer.11.output.adapter_modules.added.dense2.bias", "added", False),
        ("roberta.encoder.layer.0.output.adapter_modules.shared.dense2.bias", "shared", False),
        ("roberta.encoder.layer.0.output.dense.weight", None, False),
        ("roberta.embeddings.word_embeddings.weight", None, False),
    ],
)
def test_the_module_of_a_parameter(name: str, module: str | None, pretrained: bool) -> None:
    assert (module_of(name), is_pretrained_module(name)) == (module, pretrained)
