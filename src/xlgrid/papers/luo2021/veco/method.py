"""The method plug-in: predictions from both streams of VECO, with a translation of each input (Luo et al. 2021, section
3.1)."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from xlgrid.base.arrays import Ints
from xlgrid.heads.tokens import PARALLEL_IDS, Tokens
from xlgrid.heads.transfer import on_device
from xlgrid.methods.method import Method, of_encoders_only
from xlgrid.papers.luo2021.veco.names import STREAM, is_cross_attention

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


class PlugIn(Method):
    """Fine-tuning with cross-attention: the head reads [H; S] of the input x, where S attends to H of its parallel
    example y.

    All weights train, including the weights of cross-attention. In training and evaluation, the parallel example is the
    same example in another language; for an example in this language, it is the example itself.
    """

    parallel: str = Field(
        default="en",
        description="the language of the parallel examples",
    )
    detach: bool = Field(
        default=False,
        description="whether H of the parallel example is a constant, as in pre-training. The paper does not specify "
        "this for fine-tuning",
    )
    shuffled: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="the share of the examples that get the parallel example of another example. With 1, as a "
        "control, S has no information about the label; a smaller share simulates translations with errors",
    )

    @property
    def parallel_language(self) -> str:
        return self.parallel

    def problems(self, study: Any, key: str, grid: str) -> Iterator[str]:
        from xlgrid.papers.luo2021.veco import parallel

        yield from parallel.problems(study, key, grid, self.parallel)

    def install(self, model: "PreTrainedModel") -> None:
        """Add the cross-attention in the folder from which the encoder was loaded, and the inputs from S to the head.

        The weights of the head that read H are unchanged. Torch's generator draws the weights that read S.

        Raises:
            ValueError: the encoder has no cross-attention, or the task's head cannot read two streams.
        """
        from xlgrid.papers.luo2021.veco import modules

        modules.plug_in(model, self.detach)

    def misfit(self, config: Mapping[str, Any]) -> str | None:
        if STREAM in config:
            return of_encoders_only(config)
        return (
            "the method needs cross-attention, which the encoder lacks: use an encoder from scratch with "
            "`architecture: veco`"
        )

    def passes(self, name: str) -> int:
        """The number of passes through a parameter: one for cross-attention, which is only in the second stream; all
        other layers compute both streams and the parallel example."""
        return 1 if is_cross_attention(name) else 3

    def forward_arguments(self, tokens: Tokens, rows: Ints, device: "torch.device", training: bool) -> dict[str, Any]:
        """The parallel examples of some rows."""
        import torch

        if PARALLEL_IDS not in tokens.columns:
            raise ValueError(
                "the tokens have no parallel examples, which plug-in needs: tokenize the data of the target together "
                f"with the data in {self.parallel}"
            )
        if self.shuffled:
            rows = _rows_of_other_examples(tokens, self.shuffled)[rows]
        other = tokens.columns[PARALLEL_IDS].take(_numbers(rows)).to_pylist()
        longest = max(map(len, other))
        ids, mask = np.full((len(rows), longest), tokens.pad_id), np.zeros((len(rows), longest), np.int64)
        for at, its_ids in enumerate(other):
            ids[at, : len(its_ids)], mask[at, : len(its_ids)] = its_ids, 1
        named = {"parallel_ids": ids, "parallel_mask": mask}
        return on_device({name: torch.from_numpy(array) for name, array in named.items()}, device)

    def stack(self, task: str, language: str | None) -> tuple[str, ...]:
        share = "" if self.shuffled in (0, 1) else f"{self.shuffled:g}-"
        return (f"parallel:{f'shuffled-{share}' if self.shuffled else ''}{self.parallel}",)

    def check_start(self, start: Method | None) -> None:
        if start is not None:
            raise ValueError("runs of this method begin with the encoder: leave out `start`")


def _rows_of_other_examples(tokens: Tokens, share: float) -> Ints:
    """[rows], the row whose parallel example each row gets.

    A share of the examples is put in a random order, and each of them gets the first row of the example before it. All
    other rows keep their own parallel examples.

    Raises:
        ValueError: there is only one example.
    """
    numbers = tokens.columns.get("example", np.arange(len(tokens)))
    _, first_rows, examples = np.unique(numbers, return_index=True, return_inverse=True)
    if len(first_rows) < 2:
        raise ValueError(
            "option shuffled gives an example the parallel example of another one, but the data have only one example"
        )
    # At least two examples exchange their parallel examples.
    order = np.random.default_rng(0).permutation(len(first_rows))[: max(2, round(share * len(first_rows)))]
    before = np.arange(len(first_rows))
    before[order] = np.roll(order, 1)
    rows: Ints = np.where(before[examples] == examples, np.arange(len(tokens)), first_rows[before[examples]])
    return rows


def _numbers(rows: Ints) -> Any:
    import pyarrow as pa

    return pa.array(rows)
