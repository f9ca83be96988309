"""BitFit: only biases and the head train."""

from dataclasses import dataclass
from typing import Literal

from xlgrid.methods.method import Method, check_choice, is_head


@dataclass(frozen=True)
class BitFit(Method):
    """Trains the biases and the head (Ben-Zaken et al. 2022; as in Foroutan et al. 2023).

    Attributes:
        bert_head: the parameters of BERT's pooler and classifier that train: all (section 4.2), or the biases alone, so that
            their weights stay as they are drawn (a slip in the authors' code for baselines). XLM-R's classifier is not
            affected.
    """

    bert_head: Literal["all", "biases"] = "all"

    def __post_init__(self) -> None:
        check_choice(self, "bert_head", ("all", "biases"))

    def trains(self, name: str) -> bool:
        """Biases anywhere, layer norms included, and the head (XLM-R's classifier has dense and out_proj)."""
        if ".bias" in name:
            return True
        if self.bert_head == "biases":
            modules = set(name.split("."))
            return "classifier" in modules and not modules.isdisjoint({"dense", "out_proj"})
        return is_head(name)
