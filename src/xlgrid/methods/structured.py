"""Structured self-attention (Foroutan et al. 2023): attention dropout between two languages, and a query between them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from xlgrid.base.arrays import Segments
from xlgrid.methods.bitfit import BitFit
from xlgrid.methods.method import Method, check_choice

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class StructuredDropout(Method):
    """Training does not see some of the attention between context and question (section 4.1, figure 2).

    Attributes:
        tune: what trains.
        p_mask: how much of it is dropped, by chance for each cell (table 11; 0.4 in appendix D.1).
        bridge: the first token always attends to all, and all attend to it.
    """

    tune: Literal["bitfit", "full-ft"] = "bitfit"
    p_mask: float = 0.4
    bridge: bool = True

    def __post_init__(self) -> None:
        check_choice(self, "tune", ("bitfit", "full-ft"))
        check_share(self)

    def install(self, model: "PreTrainedModel") -> None:
        from xlgrid.methods.structured_attention import install

        install(model, cross=False)

    def trains(self, name: str) -> bool:
        return BitFit().trains(name) if self.tune == "bitfit" else True

    def arrange(self, segments: Segments, device: "torch.device", training: bool) -> dict[str, Any]:
        """The kept cells of a switched input; evaluation sees everything."""
        if not (training and segments.switched.any()):
            return {}
        return {"layout": layout(segments, device, 1 - self.p_mask, bridge=self.bridge)}


@dataclass(frozen=True)
class CrossQuery(Method):
    """Between context and question, in two languages, a query of its own, Q_cross (section 4.1, figure 3).

    Attributes:
        tune: what trains; BitFit's biases include those of Q_cross, as in the authors' code; `query` is Q_cross alone,
            for runs on text (section 4.2).
        swap: what the query of a target's own pair replaces, its weights (section 4.2) or also its bias.
        p_mask: how much of the other query's cells is masked in training (0.7 in appendix D.2); 1 is the plain scheme,
            in which the queries do not interfere.
        evaluate: the masks of evaluation: `strict` (the authors' code) or, with p_mask as in training, `sampled` (the
            paper does not say).
        bridge: the first token has both queries, in its row and its column.
        overlap: where both queries serve, their exponentials are added (the formula and the code) or halved first.
    """

    tune: Literal["bitfit", "full-ft", "query"] = "bitfit"
    swap: Literal["weight", "weight+bias"] = "weight"
    p_mask: float = 0.7
    evaluate: Literal["strict", "sampled"] = "strict"
    bridge: bool = True
    overlap: Literal["add", "halve"] = "add"

    def __post_init__(self) -> None:
        check_choice(self, "tune", ("bitfit", "full-ft", "query"))
        check_choice(self, "swap", ("weight", "weight+bias"))
        check_choice(self, "evaluate", ("strict", "sampled"))
        check_choice(self, "overlap", ("add", "halve"))
        check_share(self)

    def install(self, model: "PreTrainedModel") -> None:
        """Q_cross is at first a copy of Q, by which only what both queries see counts twice."""
        from xlgrid.methods.structured_attention import install

        install(model, cross=True)

    def trains(self, name: str) -> bool:
        if self.tune == "query":
            return ".query.cross." in name
        return BitFit().trains(name) if self.tune == "bitfit" else True

    def is_language_specific(self, name: str) -> bool:
        return name.endswith(".query.cross.weight") or (
            self.swap == "weight+bias" and name.endswith(".query.cross.bias")
        )

    def arrange(self, segments: Segments, device: "torch.device", training: bool) -> dict[str, Any]:
        if not segments.switched.any():
            return {}
        share = 1 - self.p_mask if training or self.evaluate == "sampled" else 0.0
        return {"layout": layout(segments, device, share, bridge=self.bridge, overlap=self.overlap)}


def layout(segments: Segments, device: "torch.device", share: float, **options: Any) -> Any:
    """A batch's `xlgrid.methods.structured_attention.Layout`, with a share of the other kind's cells drawn by torch's generator."""
    import torch

    from xlgrid.methods.structured_attention import Layout

    shape = len(segments.contexts), segments.length, segments.length
    also = torch.rand(shape, device=device) < share if share else None
    arrays = segments.contexts, segments.switched
    contexts, switched = (torch.from_numpy(array).to(device, non_blocking=True) for array in arrays)
    return Layout(contexts, switched, also, **options)


def check_share(method: StructuredDropout | CrossQuery) -> None:
    """Raise a ValueError if `p_mask` is no probability."""
    if not 0 <= method.p_mask <= 1:
        raise ValueError(f"option p_mask is a probability, from 0 to 1, got {method.p_mask!r}")
