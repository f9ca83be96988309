"""The head `mlm`: masked language modelling on text (Devlin et al. 2019)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from xlgrid.base.arrays import Ints
from xlgrid.base.settings import Strict
from xlgrid.heads.encoding import IGNORED, Encoding
from xlgrid.heads.families import FAMILIES, family_of
from xlgrid.heads.head import Head, TaskColumns, without_labels
from xlgrid.heads.metrics import ACCURACY
from xlgrid.heads.tokens import Tokens, Vocabulary
from xlgrid.heads.transfer import labelled

if TYPE_CHECKING:
    import pyarrow as pa
    import torch
    from transformers import PreTrainedModel

# The share of the tokens of a text that are masked and predicted (Devlin et al. 2019).
MASKED = 0.15


class Masked(Strict):
    """The shares of tokens that training masks and predicts, in texts of one language and in pairs of languages."""

    mono: float = Field(default=MASKED, gt=0, lt=1, description="the share in a text in one language")
    bitext: float = Field(
        default=MASKED, gt=0, lt=1, description="the share in both texts of a pair (Luo et al. 2021, table 8: 0.25)"
    )


class MlmHead(Head):
    """Masked language modelling on text in one language, or on parallel texts in two languages as two segments.

    The inputs are one or two columns of text, and there is no target. An outcome is `[correct, masked]` for an input.
    """

    name = "mlm"
    model_suffix = "MaskedLM"
    all_metrics = (ACCURACY,)
    inputs_allowed = (1, 2)
    has_target = False
    has_labels = False
    mixes = ("whole",)
    output_share = MASKED
    is_pretrained = True
    has_cells = False

    def __init__(self, masked: Masked | None = None) -> None:
        """Create the head.

        Args:
            masked: the shares of tokens that training masks. Evaluation always masks the share `MASKED`, so that
                encoders can be compared.
        """
        self.masked = masked or Masked()

    def second(self, task: TaskColumns) -> str | None:
        return task.inputs[1] if len(task.inputs) == 2 else None

    def check_tokenizer(self, tokenizer: Any) -> None:
        if tokenizer.mask_token_id is None:
            raise ValueError(
                "the tokenizer has no mask token, which training and evaluation on text need: write `mask_token` into "
                "its tokenizer_config.json, or use another tokenizer"
            )

    def fields(self) -> list["pa.Field"]:
        return []

    def encode(self, table: "pa.Table", task: TaskColumns, encoding: Encoding) -> dict[str, list[Any]]:
        """The inputs from the rows of one text or of two parallel texts. The column `example` has the row of each
        input.

        `encoding.documents` and `encoding.lines` determine how rows of one text become inputs. If documents are split
        or packed, a row without tokens becomes no input. Otherwise, a row that is too long loses tokens at the end of
        its longer segment and is counted as truncated.

        Raises:
            ValueError: the tokenizer has no mask token.
        """
        self.check_tokenizer(encoding.tokenizer)
        columns = [table[column].to_pylist() for column in task.inputs]
        if len(columns) == 1 and encoding.lines == "segments":
            return self._of_lines(columns[0], encoding)
        segments = [[text.replace("\n", " ") for text in texts] for texts in columns]
        if len(segments) == 1 and encoding.documents == "pack":
            texts = encoding.tokenizer(segments[0], add_special_tokens=False, return_attention_mask=False)["input_ids"]
            return _whole_rows(encoding.packed(texts))
        split = encoding.documents == "split" and len(segments) == 1
        encoded = encoding.tokenizer(
            *segments,
            truncation=True,
            max_length=encoding.max_length,
            return_overflowing_tokens=split,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        if split:
            empty = encoding.tokenizer.num_special_tokens_to_add(pair=False)
            rows = zip(encoded["overflow_to_sample_mapping"], encoded["input_ids"], strict=True)
            kept = [(row, numbers) for row, numbers in rows if len(numbers) > empty]
            return {
                "input_ids": [numbers for _, numbers in kept],
                "context_length": [len(numbers) for _, numbers in kept],
                "example": [row for row, _ in kept],
            }
        return {**encoding.columns(encoded), "example": list(range(len(table)))}

    def _of_lines(self, texts: list[str], encoding: Encoding) -> dict[str, list[Any]]:
        """Inputs with two segments: the first line of a text, and its other lines. A text of one line has one
        segment."""
        inputs: dict[int, tuple[list[int], int]] = {}
        for has_two in (False, True):
            rows = [row for row, text in enumerate(texts) if ("\n" in text) is has_two]
            if not rows:
                continue
            segments = zip(*(texts[row].split("\n", 1) for row in rows), strict=True)
            encoded = encoding.tokenizer(
                *([line.replace("\n", " ") for line in segment] for segment in segments),
                truncation=True,
                max_length=encoding.max_length,
            )
            inputs |= dict(zip(rows, zip(*encoding.columns(encoded).values(), strict=True), strict=True))
        rows = sorted(inputs)
        return {
            "input_ids": [inputs[row][0] for row in rows],
            "context_length": [inputs[row][1] for row in rows],
            "example": rows,
        }

    def remainder(self, encoding: Encoding) -> dict[str, list[Any]]:
        return _whole_rows(encoding.last_packed())

    def collate(self, tokens: Tokens, rows: Ints, token_types: bool) -> dict[str, "torch.Tensor"]:
        batch = super().collate(tokens, rows, token_types)
        mask(batch, tokens.vocabulary, self.shares(tokens, rows))
        return batch

    def shares(self, tokens: Tokens, rows: Ints) -> "torch.Tensor":
        """The share of tokens that training masks in each row, [rows, 1]."""
        import torch

        is_pair = torch.from_numpy(tokens.segments(rows).switched[:, None])
        return torch.where(is_pair, self.masked.bitext, self.masked.mono)

    def evaluation_batch(self, tokens: Tokens, rows: Ints, token_types: bool) -> dict[str, "torch.Tensor"]:
        """A batch in which the masked tokens of a row depend only on the number of the row.

        All evaluations of all encoders with the same tokenizer thus mask the same tokens (Pfeiffer et al. 2022,
        section 4).
        """
        batch = super().collate(tokens, rows, token_types)
        mask(batch, tokens.vocabulary, draws=_fixed_draws(rows, batch["input_ids"]))
        return batch

    def batch_labels(self, tokens: Tokens, rows: Ints, arrays: Mapping[str, np.ndarray], positions: Ints) -> np.ndarray:
        ids = arrays["input_ids"]
        return np.where(np.isin(ids, tokens.vocabulary.special_ids), IGNORED, ids)

    def scores(
        self, model: "PreTrainedModel", batch: dict[str, "torch.Tensor"]
    ) -> tuple["torch.Tensor", "torch.Tensor"]:
        """The logits at the masked tokens, [masked tokens, vocabulary], and the token ids that were masked.

        The logits at other tokens would cost more than the encoder. They are computed only for model types whose
        language-modelling head is not known.
        """
        if (output := language_head(model)) is None:
            return with_labels(*super().scores(model, batch))
        inputs, labels = without_labels(batch)
        states, labels = with_labels(model.base_model(**inputs).last_hidden_state, labels)
        return output(states), labels

    def predict(
        self, model: "PreTrainedModel", batch: dict[str, "torch.Tensor"], tokens: Tokens, rows: Ints
    ) -> list[Any]:
        import torch

        logits, labels = self.scores(model, batch)
        due = batch["labels"] != IGNORED
        right = due.masked_scatter(due, logits.argmax(-1) == labels)
        return list(torch.stack([right.sum(1), due.sum(1)], 1).tolist())


def _whole_rows(inputs: list[list[int]]) -> dict[str, list[Any]]:
    """The columns of a tokens file for inputs of one segment that contain texts of several rows."""
    return {"input_ids": inputs, "context_length": [len(ids) for ids in inputs], "example": [0] * len(inputs)}


def with_labels(states: "torch.Tensor", labels: "torch.Tensor") -> tuple["torch.Tensor", "torch.Tensor"]:
    """The states, [..., size] -> [predicted tokens, size], and the labels, [...], of the tokens that have a label."""
    at = labelled(labels)
    return states.flatten(0, -2)[at], labels.flatten()[at]


def language_head(model: "PreTrainedModel") -> "torch.nn.Module | None":
    """The module of a language model that computes logits over the vocabulary; None for models without it.

    None also for types that are not in `FAMILIES`, because their head may not read the encoder's states directly.
    """
    from torch import nn

    kind = getattr(getattr(model, "config", None), "model_type", "")
    if kind and kind not in FAMILIES:
        return None
    names = family_of(model).lm_head
    modules = [module for name in names if isinstance(module := getattr(model, name, None), nn.Module)]
    if len(modules) < len(names):
        return None
    return modules[0] if len(modules) == 1 else nn.Sequential(*modules)


def mask(
    batch: dict[str, "torch.Tensor"],
    vocabulary: Vocabulary,
    share: "torch.Tensor | float" = MASKED,
    draws: "torch.Tensor | None" = None,
) -> None:
    """Mask a share of the tokens that have labels, and remove the labels of all other tokens (Devlin et al. 2019).

    80 % of the chosen tokens are replaced by the mask token, 10 % by a random token, and 10 % stay as they are.

    Args:
        share: the share of tokens in all rows, or [rows, 1], the share in each row.
        draws: [3, rows, longest], uniform random numbers from 0 to 1; None: torch's generator draws them.
    """
    import torch

    ids, labels = batch["input_ids"], batch["labels"]
    if draws is None:
        draws = torch.rand((3, *ids.shape), device=ids.device)
    choice, dice, other = draws
    chosen = (choice < share) & (labels != IGNORED)
    others = (other * vocabulary.size).long()
    batch["labels"] = labels.masked_fill(~chosen, IGNORED)
    ids = torch.where(chosen & (dice < 0.8), vocabulary.mask_id, ids)
    batch["input_ids"] = torch.where(chosen & (dice >= 0.9), others, ids)


def _fixed_draws(rows: Ints, ids: "torch.Tensor") -> "torch.Tensor":
    """The argument `draws` of `mask` for some rows: random numbers that do not depend on the length of the batch.

    Args:
        rows: [rows], the numbers of the rows, which seed the random numbers.
        ids: [rows, longest], the inputs of the batch.
    """
    import torch

    draws = np.stack([np.random.default_rng(row).random((ids.shape[1], 3), np.float32) for row in rows])
    return torch.from_numpy(draws).movedim(-1, 0)
