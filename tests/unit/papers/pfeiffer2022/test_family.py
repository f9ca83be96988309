"""X-MOD has the parts of XLM-R, and modules for languages beside them."""

from xlgrid.heads.families import FAMILIES, has_modules


def test_an_xmod_is_an_xlmr_with_modules_for_languages() -> None:
    without = FAMILIES["xmod"]._replace(modules="", extended="", checkpoints="")
    assert without == FAMILIES["xlm-roberta"] and has_modules("xmod") and not has_modules("xlm-roberta")
