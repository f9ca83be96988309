"""The two methods of structured self-attention (Foroutan et al. 2023, section 4.1)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from xlgrid.base.arrays import Ints, Segments
from xlgrid.heads.families import BERT, FAMILIES
from xlgrid.heads.tokens import Tokens
from xlgrid.heads.transfer import transferred
from xlgrid.methods.bitfit import BitFit, without_biases
from xlgrid.methods.method import Method, check_fits, of_encoders_only

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


class Structured(Method):
    """A method with structured self-attention. Its option `tune` selects the parameters that train."""

    # The names of the masks of a layout, in their order.
    masks: ClassVar[tuple[str, ...]]

    def forward_arguments(self, tokens: Tokens, rows: Ints, device: "torch.device", training: bool) -> dict[str, Any]:
        return self.arrange(tokens.segments(rows), device, training)

    def arrange(self, segments: Segments, device: "torch.device", training: bool) -> dict[str, Any]:
        """The layout of a batch with inputs in two languages; empty for other batches."""
        raise NotImplementedError


class StructuredDropout(Structured):
    """Attention dropout between context and question in training (section 4.1, figure 2)."""

    masks: ClassVar[tuple[str, ...]] = ("M1",)

    tune: Literal["bitfit", "full-ft"] = Field(
        default="bitfit",
        description="the parameters that train",
    )
    p_mask: float = Field(
        default=0.4,
        ge=0,
        le=1,
        description="the probability that a cell between context and question is masked (table 11; 0.4 in appendix D.1)",
    )
    bridge: bool = Field(
        default=True,
        description="whether the first token always attends to all tokens, and all tokens to it",
    )

    def misfit(self, config: Mapping[str, Any]) -> str | None:
        return misfit(config, self.tune)

    def install(self, model: "PreTrainedModel") -> None:
        from xlgrid.papers.foroutan2023.structured import install

        check_fits(self, model)
        install(model, cross=False)

    def trains(self, name: str) -> bool:
        return BitFit().trains(name) if self.tune == "bitfit" else True

    def arrange(self, segments: Segments, device: "torch.device", training: bool) -> dict[str, Any]:
        """The layout of a batch with inputs in two languages in training; evaluation has no masks."""
        if not (training and segments.switched.any()):
            return {}
        return {"layout": layout(segments, device, self.p_mask, bridge=self.bridge)}


class CrossQuery(Structured):
    """A second query, Q_cross, for attention between context and question in two languages (section 4.1, figure 3)."""

    masks: ClassVar[tuple[str, ...]] = ("M1", "M2")

    tune: Literal["bitfit", "full-ft", "query"] = Field(
        default="bitfit",
        description="the parameters that train. BitFit's biases include the biases of Q_cross, as in the authors' "
        "code; `query` trains only Q_cross, for MLM runs (section 4.2)",
    )
    swap: Literal["weight", "weight+bias"] = Field(
        default="weight",
        description="the parameters of Q_cross that belong to a pair of languages: its weights (section 4.2), or also its "
        "bias",
    )
    p_mask: float = Field(
        default=0.7,
        ge=0,
        le=1,
        description="the probability that a cell of the other query is masked in training (0.7 in appendix D.2). With 1 "
        "the two queries do not interfere",
    )
    evaluate: Literal["strict", "sampled"] = Field(
        default="strict",
        description="the masks of evaluation: with `strict`, all cells of the other query are masked (the authors' "
        "code); with `sampled`, they are masked with p_mask as in training (the paper does not specify this)",
    )
    bridge: bool = Field(
        default=True,
        description="whether the row and the column of the first token have both queries",
    )
    overlap: Literal["add", "halve"] = Field(
        default="add",
        description="whether the exponentials of cells with both queries are added (the formula and the code), or "
        "halved first",
    )

    def misfit(self, config: Mapping[str, Any]) -> str | None:
        return misfit(config, self.tune)

    def install(self, model: "PreTrainedModel") -> None:
        """Add Q_cross to all layers. It begins as a copy of Q, so that only cells with both queries change, which count
        twice."""
        from xlgrid.papers.foroutan2023.structured import install

        check_fits(self, model)
        install(model, cross=True)

    def trains(self, name: str) -> bool:
        if self.tune == "query":
            return "cross" in name.split(".")
        return BitFit().trains(name) if self.tune == "bitfit" else True

    @property
    def trains_head(self) -> bool:
        return self.tune != "query"

    def is_language_specific(self, name: str) -> bool:
        return name.endswith(".cross.weight") or (self.swap == "weight+bias" and name.endswith(".cross.bias"))

    def arrange(self, segments: Segments, device: "torch.device", training: bool) -> dict[str, Any]:
        if not segments.switched.any():
            return {}
        p_mask = self.p_mask if training or self.evaluate == "sampled" else 1.0
        return {"layout": layout(segments, device, p_mask, bridge=self.bridge, overlap=self.overlap)}


def misfit(config: Mapping[str, Any], tune: str) -> str | None:
    """The result of `Method.misfit` for a value of the option `tune`."""
    if problem := of_encoders_only(config):
        return problem
    kind = config["model_type"]
    if not FAMILIES.get(kind, BERT).attention:
        return (
            f"structured attention replaces the attention function of transformers, which an encoder of type {kind} "
            "does not use, because its attention scores have terms for positions: use an encoder of another type, or "
            "the methods full-ft, bitfit and madx"
        )
    if tune != "bitfit":
        return None
    return without_biases(config, "with `tune: bitfit` the method trains biases", "set `tune: full-ft`")


def layout(segments: Segments, device: "torch.device", p_mask: float, **options: Any) -> Any:
    """The `xlgrid.papers.foroutan2023.structured.Layout` of a batch.

    Args:
        p_mask: the probability that a cell outside of the strict masks is masked. Torch's generator draws these cells.
        options: the options `bridge` and `overlap` of the layout.
    """
    import torch

    from xlgrid.papers.foroutan2023.structured import Layout

    shape = len(segments.contexts), segments.length, segments.length
    unmasked = torch.rand(shape, device=device) < 1 - p_mask if p_mask < 1 else None
    arrays = segments.contexts, segments.switched
    contexts, switched = (transferred(torch.from_numpy(array), device) for array in arrays)
    return Layout(contexts, switched, unmasked, **options)
