"""X-MOD: an encoder with a module for each language, its fine-tuning and its extension (Pfeiffer et al. 2022).

`modules` has the modules of the encoder, `method` the method of a study.
"""

from xlgrid.papers.pfeiffer2022.xmod.method import XMod

__all__ = ["XMod"]
