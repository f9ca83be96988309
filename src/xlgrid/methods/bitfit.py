"""BitFit: only biases and the head train."""

from dataclasses import dataclass

from xlgrid.methods.method import Method


@dataclass(frozen=True)
class BitFit(Method):
    """Trains the biases, the pooler and the classifier (Ben-Zaken et al. 2022; as in Foroutan et al. 2023)."""

    def trains(self, name: str) -> bool:
        """Biases anywhere, layer norms included; all of `pooler` and `classifier` (XLM-R's has dense and out_proj)."""
        return ".bias" in name or not {"pooler", "classifier"}.isdisjoint(name.split("."))
