"""The methods of peft with their options. The package is imported only when a method is installed in a model."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from xlgrid.heads.families import BERT, FAMILIES
from xlgrid.methods.method import Method, check_fits, is_head, of_encoders_only

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class OfPeft(Method):
    """A method that trains parameters of peft and the head, and no weight of the encoder."""

    # A part of the names of the parameters that the method adds.
    mark: ClassVar[str]

    @model_validator(mode="after")
    def _peft_is_installed(self) -> Self:
        if find_spec("peft") is None:
            raise ValueError("the method needs the package peft, which is not installed: `pip install 'xlgrid[peft]'`")
        return self

    def misfit(self, config: Mapping[str, Any]) -> str | None:
        return of_encoders_only(config)

    def trains(self, name: str) -> bool:
        return self.mark in name or is_head(name)

    def check_start(self, start: Method | None) -> None:
        """Runs continue the parameters of MLM runs of the same method, which need the same shape and scale."""
        if not isinstance(start, OfPeft):
            return
        options, others = ({"base": m.mark, **m.model_dump(exclude={"dropout"})} for m in (self, start))
        if wrong := [name for name in options if options[name] != others.get(name)]:
            raise ValueError(
                f"the {wrong[0]} is not that of the method of the `start`, which trains parameters of peft, too: use the same base "
                "and options in both, or a `start` of base full-ft"
            )


class LoRA(OfPeft):
    """h = W x + (alpha / rank) B A x, where A, B and the head train (Hu et al. 2022, equation 3).

    B begins with zeros, and A with random numbers as in the authors' code, which are uniform (Gaussian in the paper).
    """

    mark: ClassVar[str] = "lora_"

    rank: int = Field(default=8, ge=1, description="the rank r of B A (table 9: 8 for RoBERTa)")
    alpha: float = Field(default=8.0, gt=0, description="the scale alpha (table 9: 8 for RoBERTa base)")
    dropout: float = Field(default=0.0, ge=0, lt=1, description="the rate of dropout of the x that A reads")
    target: Literal["query-value", "all-linear"] = Field(
        default="query-value",
        description="the layers with an A and a B. `query-value`: the projections to queries and values (section 7.1); "
        "`all-linear`: all linear layers in the layers of the encoder. Queries, keys and values have an A and a B each, "
        "even where one matrix computes all three, as in ModernBERT",
    )

    @property
    def apart(self) -> None:
        return None

    @property
    def unmergeable(self) -> str:
        return "what a run has learnt is the product of B and A, and sums of the factors have another product"

    def install(self, model: "PreTrainedModel") -> None:
        check_fits(self, model)
        from xlgrid.methods.peft import modules

        roles = ("query", "value") if self.target == "query-value" else None
        modules.lora(model, roles, r=self.rank, lora_alpha=self.alpha, lora_dropout=self.dropout)


class IA3(OfPeft):
    """softmax(Q (l_k * K)' / sqrt(d)) (l_v * V) and (l_ff * f(W1 x)) W2 (Liu et al. 2022, section 3.3). The vectors l, which
    begin with ones, and the head train.

    In feed-forward blocks with a gate, l_ff scales the product with the gate. In DeBERTa, l_k also scales keys of positions.
    """

    mark: ClassVar[str] = "ia3_l"

    @property
    def unmergeable(self) -> str:
        return "its vectors are factors, which begin at 1 and not at 0"

    def install(self, model: "PreTrainedModel") -> None:
        check_fits(self, model)
        from xlgrid.methods.peft import modules

        modules.ia3(model)


class PrefixTuning(OfPeft):
    """Attention to the keys [P_k; K] and the values [P_v; V] in each layer, where the prefixes P_k and P_v and the head train
    (Li and Liang 2021, section 4; P-tuning v2, Liu et al. 2022, for encoders).

    Prefixes begin with a standard normal distribution, as in the code of P-tuning v2, and change the outputs. They have no
    positions, and the windows of ModernBERT do not hide them.
    """

    mark: ClassVar[str] = ".prefix."

    length: int = Field(default=20, ge=1, description="the number of keys of the prefix in each layer")

    def misfit(self, config: Mapping[str, Any]) -> str | None:
        """An encoder with an attention of its own, such as DeBERTa, has no place for a prefix."""
        if (problem := super().misfit(config)) or FAMILIES.get(config["model_type"], BERT).attention:
            return problem
        return (
            f"prefixes have no positions, and the attention scores of an encoder of type {config['model_type']} have terms for "
            "positions: use an encoder of another type, or the methods lora and ia3"
        )

    def passes(self, name: str) -> int:
        """Prefixes are computed once for a batch, not for each token."""
        return 0 if self.mark in name else 1

    def install(self, model: "PreTrainedModel") -> None:
        check_fits(self, model)
        from xlgrid.methods.peft import modules

        modules.prefixes(model, self.length)
