"""BitFit: only biases and the head train."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from xlgrid.heads.families import FAMILIES, has_biases
from xlgrid.methods.method import Method, check_fits, is_head

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class BitFit(Method):
    """Trains the biases and the head (Ben-Zaken et al. 2022; as in Foroutan et al. 2023)."""

    bert_head: Literal["all", "biases"] = Field(
        default="all",
        description="the parameters of BERT's pooler and classifier that train: all (section 4.2), or only the biases, "
        "so that the weights keep their random initial values (a slip in the authors' code for baselines). "
        "XLM-R's classifier is not affected",
    )

    def misfit(self, config: Mapping[str, Any]) -> str | None:
        """An encoder without biases, such as ModernBERT or EuroBERT, has nothing to train below the head."""
        return without_biases(config, "method bitfit trains biases", "take full-ft or madx")

    @property
    def apart(self) -> None:
        return None

    def install(self, model: "PreTrainedModel") -> None:
        """Change nothing in the model.

        Raises:
            ValueError: the encoder has no biases.
        """
        check_fits(self, model)
        if not any(".bias" in name for name, _ in model.base_model.named_parameters()):
            raise ValueError(
                f"method bitfit trains biases, and the encoder, of type {model.config.model_type}, has none: take "
                "full-ft"
            )

    def trains(self, name: str) -> bool:
        """Biases anywhere, layer norms included, and the head (XLM-R's classifier has dense and out_proj)."""
        if ".bias" in name:
            return True
        if self.bert_head == "biases":
            modules = set(name.split("."))
            return "classifier" in modules and not modules.isdisjoint({"dense", "out_proj"})
        return is_head(name)


def without_biases(config: Mapping[str, Any], what: str, instead: str) -> str | None:
    """The error message for an encoder without biases; None if the encoder has biases.

    Args:
        config: the contents of its config.json.
        what: the first clause of the message, such as "method bitfit trains biases".
        instead: the advice at its end, such as "take full-ft".
    """
    if has_biases(config):
        return None
    kind = config["model_type"]
    entries = " nor ".join(FAMILIES[kind].biases)
    return f"{what}, and the encoder, of type {kind}, has none (neither {entries} in its config.json): {instead}"
