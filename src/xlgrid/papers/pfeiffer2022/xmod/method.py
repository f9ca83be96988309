"""The method X-MOD (Pfeiffer et al. 2022, section 3): fine-tuning, and adding languages after pre-training."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator

from xlgrid.heads.families import ADDED, EMBEDDINGS, is_embedding, module_of
from xlgrid.methods.method import Method, is_head, of_encoders_only

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


class XMod(Method):
    """The training of X-MOD: runs on a task train the shared weights, and MLM runs add a language (section 3).

    The method supports encoders with a module for each language, SHARED, and encoders without modules. They differ in
    the modules that can be frozen or added.
    """

    tune: Literal["shared", "language"] = Field(
        default="shared",
        description="the parameters that train. `shared`: the head and all weights except modules and embeddings. "
        "`language`, for MLM runs: the parameters of a new language, which are a module (unless the encoder has no "
        "modules for languages), word embeddings, and position embeddings (footnote 6)",
    )
    overlap: Literal["copy", "random"] = Field(
        default="copy",
        description="the first word embeddings of tokens that the encoder's tokenizer also has: copied from the "
        "encoder, or random as for all other tokens. Only with `tune: language`",
    )
    embedding_norm: Literal["frozen", "trained"] = Field(
        default="frozen",
        description="whether the LayerNorm of the embeddings trains, which the paper does not specify. Only with "
        "`tune: language`",
    )

    @model_validator(mode="after")
    def _embeddings_train(self) -> Self:
        idle = [name for name in self.model_dump(exclude_defaults=True) if name != "tune"]
        if self.tune == "shared" and idle:
            raise ValueError(
                f"{' and '.join(idle)}: embeddings do not train with `tune: shared`: leave out the option, or set it "
                "in the method with `tune: language`"
            )
        return self

    def misfit(self, config: Mapping[str, Any]) -> str | None:
        return of_encoders_only(config)

    def problems_of_plan(self, plan: Any, key: str) -> Iterator[str]:
        """Only runs with another tokenizer than the encoder's have embeddings to draw."""
        runs = (run for run in plan.runs if run.method == key and not run.new_tokenizer(plan))
        if self.overlap == "random" and (run := next(runs, None)):
            yield (
                f"methods.{key}.options: {run.folder} has the tokenizer and the embeddings of the encoder, so that "
                f"`overlap: random` does nothing: leave it out, or name another `tokenizer` in task {run.task}"
            )

    def install(self, model: "PreTrainedModel") -> None:
        """Add a module for a new language. Runs on a task need it for cells of added languages, and do not train it.

        Raises:
            ValueError: the type of the encoder is unknown, so that its embeddings are unknown.
        """
        from xlgrid.papers.pfeiffer2022.xmod.modules import add_module

        table = model.get_input_embeddings().weight
        name = next(name for name, parameter in model.base_model.named_parameters() if parameter is table)
        if not (is_embedding(name) and f"{model.base_model_prefix}.{name}".endswith(EMBEDDINGS)):
            raise ValueError(
                "method xmod trains embeddings only in MLM runs, and does not know the name of the embeddings in an "
                f"encoder of type {model.config.model_type}, {name}: use full-ft"
            )
        add_module(model)

    def trains(self, name: str) -> bool:
        if self.tune == "shared":
            return is_head(name) or (module_of(name) is None and not is_embedding(name))
        trained = [
            *("word_embeddings", "tok_embeddings", "embed_tokens", "position_embeddings"),
            *(["LayerNorm", "norm"] if self.embedding_norm == "trained" else []),
        ]
        return module_of(name) == ADDED or (is_embedding(name) and name.split(".")[-2] in trained)

    @property
    def trains_head(self) -> bool:
        return self.tune == "shared"

    def begin_embeddings(
        self, new: "torch.Tensor", old: "torch.Tensor", before: Mapping[str, int], after: Mapping[str, int]
    ) -> None:
        if self.overlap == "copy":
            super().begin_embeddings(new, old, before, after)

    def is_language_specific(self, name: str) -> bool:
        """Whether a parameter belongs to the module of an added language, or to its embeddings."""
        return module_of(name) == ADDED or is_embedding(name)

    def check_start(self, start: Method | None) -> None:
        if self.tune == "shared" and start is not None and not (isinstance(start, XMod) and start.tune == "language"):
            raise ValueError(
                "runs of this method begin with the encoder, or with MLM runs that add languages: give the method of "
                "the `start` `base: xmod` and `tune: language`, or leave out `start`"
            )

    def stack(self, task: str, language: str | None) -> tuple[str, ...]:
        return (f"embeddings:{language}",) if language else ()
