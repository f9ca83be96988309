"""The method MAD-X (Pfeiffer et al. 2020, section 4): its options, and the parameters that they train."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator

from xlgrid.heads.families import BERT, FAMILIES, has_modules, is_embedding, is_language_head, layer_of
from xlgrid.methods.method import Method, check_fits, is_head, of_encoders_only

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class MadX(Method):
    """Language adapters, trained on text in a language, and task adapters on top of them, trained on one language and
    evaluated with the language adapters of another (section 4).
    """

    tune: Literal["task", "language", "encoder"] = Field(
        default="task",
        description="the parameters that train. `task`: the task adapters and the head. `language`, for MLM runs: the "
        "language and invertible adapters. `encoder`: the head and all weights of the encoder except its embeddings, "
        "on top of frozen language adapters (Pfeiffer et al. 2022, footnote 7). Only models with `tune: task` have "
        "task adapters",
    )
    language: bool = Field(
        default=True,
        description="whether there are language adapters (section 4.1)",
    )
    invertible: bool = Field(
        default=True,
        description="whether there is an invertible adapter (section 4.3)",
    )
    language_reduction: int = Field(
        default=2,
        ge=1,
        description="the encoder's hidden size divided by the size of the language adapters (section 5.2: 2)",
    )
    invertible_reduction: int = Field(
        default=2,
        ge=1,
        description="the reduction of the two parts of the invertible adapter, whose inputs have half the hidden size",
    )
    task_reduction: int = Field(
        default=16,
        ge=1,
        description="the encoder's hidden size divided by the size of the task adapters (section 5.2: 16)",
    )
    activation: Literal["relu", "gelu", "gelu_new"] = Field(
        default="relu",
        description="the activation of all adapters. The published adapters of XLM-R have relu, as in the paper; most "
        "published adapters of mBERT have gelu_new",
    )
    wiring: Literal["library", "paper"] = Field(
        default="library",
        description="the connection of the task adapter to the language adapter: as in the library whose weights are "
        "published, or as in equations 1 and 2",
    )
    pre_norm: Literal["sum", "norm"] = Field(
        default="sum",
        description="the input of adapters in encoders whose layers have LayerNorms before the blocks, such as "
        "ModernBERT and EuroBERT. `sum`: the sum of the feed-forward block and its input, as in the library; `norm`: "
        "this sum after the next LayerNorm. The paper has no such layers",
    )
    inverse: bool = Field(
        default=True,
        description="whether the inverse of the invertible adapter comes before the decoder of the language-modelling "
        "head",
    )
    lm_head: Literal["trained", "frozen"] = Field(
        default="trained",
        description="whether MLM runs train the dense layer and the bias of the language-modelling head, as the "
        "library does. The decoder, whose weights are the frozen embeddings in most encoders, is not trained. The "
        "paper does not specify this",
    )
    leave_out_last: bool = Field(
        default=False,
        description="whether the last layer has neither language nor task adapters, as in MAD-X 2.0 (Pfeiffer et al. "
        "2021). Language adapters that were trained with an adapter in the last layer are used without it",
    )
    init: Literal["bert", "identity"] = Field(
        default="bert",
        description="the initial weights. `bert`: random weights as in BERT, as in the library; `identity`: weights "
        "with which the adapters do not change the output of the model",
    )

    @model_validator(mode="after")
    def _something_trains(self) -> Self:
        if self.tune == "language" and not (self.language or self.invertible):
            raise ValueError(
                "with `tune: language`, `language: false` and `invertible: false`, there is no adapter to train: set "
                "one of the last two to true"
            )
        return self

    def misfit(self, config: Mapping[str, Any]) -> str | None:
        """The reason why an encoder cannot have the adapters.

        An X-MOD has modules at the places of adapters. Layers with a LayerNorm after the feed-forward block have no
        other LayerNorm for `pre_norm: norm`.
        """
        if problem := of_encoders_only(config):
            return problem
        kind = config["model_type"]
        if has_modules(kind):
            return (
                f"adapters need an encoder without modules for languages, got one of type {kind}: use the methods xmod "
                "or full-ft, or another encoder"
            )
        # Unknown types are treated as BERT, as in `family_of`.
        if self.pre_norm == "sum" or not FAMILIES.get(config["model_type"], BERT).norm:
            return None
        return (
            "option pre_norm needs an encoder whose layers have LayerNorms before their blocks, got "
            f"{config['model_type']}, where adapters read the output of the last LayerNorm of the layer: leave it out"
        )

    def install(self, model: "PreTrainedModel") -> None:
        """Add new adapters to the layers and the embeddings.

        Raises:
            ValueError: the encoder does not support `pre_norm`, or `xlgrid.papers.pfeiffer2020.madx.modules.install`
                raises it.
        """
        check_fits(self, model)
        decoder = model.get_output_embeddings() if self.tune == "language" and self.lm_head == "trained" else None
        if decoder is not None:
            of_encoder = {id(parameter) for parameter in (*model.base_model.parameters(), decoder.weight)}
            of_head = [name for name, parameter in model.named_parameters() if id(parameter) not in of_encoder]
            if of_head and not any(map(is_language_head, of_head)):
                raise ValueError(
                    "with `lm_head: trained`, an MLM run trains the language-modelling head, but its weights have "
                    f"unknown names in an encoder of type {model.config.model_type}, such as {of_head[0]}: set "
                    "`lm_head: frozen`"
                )
        from xlgrid.papers.pfeiffer2020.madx.modules import install

        install(
            model,
            language=self.language_reduction if self.language else None,
            task=self.task_reduction if self.tune == "task" else None,
            invertible=self.invertible_reduction if self.invertible else None,
            activation=self.activation,
            wiring=self.wiring,
            pre_norm=self.pre_norm,
            inverse=self.inverse,
            leave_out_last=self.leave_out_last,
            init=self.init,
        )

    def trains(self, name: str) -> bool:
        """Whether a parameter trains: the adapters or the encoder, as `tune` selects, and the head of the task or of
        the language model."""
        if self.tune == "task":
            return adapter_kind(name) == "task" or is_head(name)
        if self.tune == "encoder":
            return adapter_kind(name) is None and not is_embedding(name)
        return adapter_kind(name) == "language" or (self.lm_head == "trained" and is_language_head(name))

    @property
    def trains_head(self) -> bool:
        return self.tune != "language"

    @property
    def apart(self) -> str | None:
        return super().apart if self.tune == "encoder" else None

    def is_language_specific(self, name: str) -> bool:
        """Whether a parameter belongs to the language or invertible adapters (sections 4.1 and 4.3)."""
        return adapter_kind(name) == "language"

    def leaves_out(self, name: str, layers: int) -> bool:
        return self.leave_out_last and adapter_kind(name) is not None and layer_of(name) == layers - 1

    def check_start(self, start: Method | None) -> None:
        if self.tune == "language" or not (self.language or self.invertible):
            return
        installed = [name for name in ("language", "invertible") if getattr(self, name)]
        if not isinstance(start, MadX) or start.tune != "language":
            raise ValueError(
                f"no run trains the {' and '.join(installed)} adapters of this method: add a `start` whose method has "
                f"`base: madx` and `tune: language`, or set {' and '.join(f'`{name}: false`' for name in installed)}"
            )
        if start.leave_out_last and not self.leave_out_last:
            raise ValueError(
                "no run trains the adapters of the last layer, because the method of the `start` has no adapters "
                "there: set `leave_out_last: true` here, too"
            )
        shared = "language", "invertible", "language_reduction", "invertible_reduction", "activation", "pre_norm"
        for name in shared:
            here, there = getattr(self, name), getattr(start, name)
            if here != there:
                raise ValueError(
                    f"option {name} is {here!r} here and {there!r} in the method of the `start`: set the same in both"
                )

    def stack(self, task: str, language: str | None) -> tuple[str, ...]:
        adapters = [f"{name}:{language or 'untrained'}" for name in ("invertible", "language") if getattr(self, name)]
        return (*adapters, *([f"task:{task}"] if self.tune == "task" else []))


def adapter_kind(name: str) -> Literal["language", "task"] | None:
    """The kind of adapters to which a parameter belongs, from the names of its modules in
    `xlgrid.papers.pfeiffer2020.madx.modules`; None if it belongs to no adapter. The invertible adapter counts as a
    language adapter."""
    modules = set(name.split("."))
    if "task" in modules:
        return "task"
    return None if modules.isdisjoint({"language", "invertible"}) else "language"
