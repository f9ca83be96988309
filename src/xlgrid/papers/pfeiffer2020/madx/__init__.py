"""MAD-X: language, invertible and task adapters in a frozen encoder (Pfeiffer et al. 2020)."""

from xlgrid.papers.pfeiffer2020.madx import adapterhub
from xlgrid.papers.pfeiffer2020.madx.method import MadX, adapter_kind

# The format reads the options of MadX, so the class itself cannot import it.
MadX.adapter_format = adapterhub

__all__ = ["MadX", "adapter_kind"]
