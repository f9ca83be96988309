"""Language modelling: `mlm`, `nsp` and `pairs` train encoders, and `perplexity` evaluates them."""

from xlgrid.heads.language_modelling.mlm import MlmHead
from xlgrid.heads.language_modelling.perplexity import PerplexityHead

__all__ = ["MlmHead", "PerplexityHead"]
