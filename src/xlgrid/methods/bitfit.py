"""BitFit: only biases and the head train."""

from dataclasses import dataclass
from typing import Literal

from xlgrid.methods.method import Method, check_choice, is_head


@dataclass(frozen=True)
class BitFit(Method):
    """Trains the biases and the head (Ben-Zaken et al. 2022; as in Foroutan et al. 2023).

    Attributes:
        bert_head: what trains of BERT's pooler and classifier: all (section 4.2), or the biases alone, which leaves their
            weights as they are drawn, as by a slip in the authors' code for baselines; XLM-R's classifier is not affected.
    """

    bert_head: Literal["all", "biases"] = "all"

    def __post_init__(self) -> None:
        check_choice(self, "bert_head", ("all", "biases"))

    def trains(self, name: str) -> bool:
        """Biases anywhere, layer norms included, and the head (XLM-R's classifier has dense and out_proj)."""
        if ".bias" in name:
            return True
        if self.bert_head == "biases":
            at = set(name.split("."))
            return "classifier" in at and not at.isdisjoint({"dense", "out_proj"})
        return is_head(name)
