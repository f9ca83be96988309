"""MAD-X: language, invertible and task adapters in a frozen encoder (Pfeiffer et al. 2020)."""

from xlgrid.methods.madx.method import MadX, adapter_kind

__all__ = ["MadX", "adapter_kind"]
