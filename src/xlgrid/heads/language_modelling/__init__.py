"""Language modelling: `mlm` and `nsp` train encoders, `perplexity` evaluates them."""

from xlgrid.heads.language_modelling.mlm import MlmHead
from xlgrid.heads.language_modelling.perplexity import PerplexityHead

__all__ = ["MlmHead", "PerplexityHead"]
