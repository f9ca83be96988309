"""MAD-X: language, invertible and task adapters in a frozen encoder (Pfeiffer et al. 2020)."""

from xlgrid.papers.pfeiffer2020.madx.method import MadX, adapter_kind

__all__ = ["MadX", "adapter_kind"]
