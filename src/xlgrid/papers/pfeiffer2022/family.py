"""The family of X-MOD's encoders: XLM-R with a dictionary of modules for languages in each layer."""

from xlgrid.base.family import XLMR

XMOD = XLMR._replace(
    modules="adapter_modules",
    extended="xlgrid.papers.pfeiffer2022.xmod.modules:with_modules",
    checkpoints="xlgrid.papers.pfeiffer2022.xmod.checkpoints",
)
