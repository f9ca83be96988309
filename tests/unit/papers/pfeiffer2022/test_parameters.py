"""The parameters that an X-MOD stores and computes with, by hand, and as large as the published files."""

from typing import Any

from transformers import AutoConfig

from xlgrid.data.published import HUB
from xlgrid.heads import HEADS
from xlgrid.models import parameters


def xmod(languages: int) -> Any:
    config = AutoConfig.for_model(**HUB["facebook/xmod-base-60-265k"])
    config.languages = [f"l{number}" for number in range(languages)]
    return config


def of_xmod(languages: int, base: str = "xmod", head: str = "sequence", **more: Any) -> parameters.Count:
    return parameters.count(xmod(languages), HEADS[head], 3, base, more.pop("options", {}), **more)


def test_parameters_of_a_language_are_those_of_its_module() -> None:
    """278.3 M shared and 7.09 M for each language: times four bytes, the sizes of the published files."""
    few, many = (of_xmod(number, "full-ft", "mlm", pretraining=True).total for number in (13, 60))
    assert (many - few) / 47 == 12 * (2 * 768 * 384 + 768 + 384)
    assert few - 13 * 7_091_712 == 278_295_186


def test_check_8_fine_tuning_costs_the_same_with_13_languages_as_with_75() -> None:
    """Only the module of the input's language computes, and no module is stored."""
    for base, more in (("xmod", {}), ("full-ft", {}), ("xmod", {"options": {"tune": "language"}, "head": "mlm"})):
        few, many = (of_xmod(number, base, **more) for number in (13, 75))
        assert few._replace(total=0) == many._replace(total=0), base
    few, many = (of_xmod(number, "full-ft", "mlm", pretraining=True) for number in (13, 75))
    assert (few.training, few.evaluation) == (many.training, many.evaluation)
    assert of_xmod(75).passed == 12 * (4 * 768 * 768 + 2 * 768 * 3072 + 9 * 768 + 3072) + 7_091_712
    assert of_xmod(75).stored == of_xmod(75).trained == 85_054_464 + 768 * 768 + 768 + 3 * 768 + 3


def test_an_added_language_stores_its_module_and_embeddings() -> None:
    counted = of_xmod(60, head="mlm", options={"tune": "language"}, embeddings=True)
    assert counted.stored == counted.trained == 7_091_712 + (250_002 + 514) * 768
