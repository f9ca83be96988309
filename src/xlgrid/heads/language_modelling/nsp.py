"""Masked language modelling and next sentence prediction together (Devlin et al. 2019, section 3.1): only training uses it.

Half of the inputs with two segments of one language get the second segment of another input of this language, and the model
tells from the first token which inputs they are.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from xlgrid.base.arrays import Flags, Ints
from xlgrid.heads.encoding import IGNORED
from xlgrid.heads.language_modelling.mlm import Masked, MlmHead, language_head
from xlgrid.heads.tokens import Tokens

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

# The attribute of a model with the layer that only this objective uses.
MODULE = "next_sentence"
# The entry of a batch that says which inputs kept their second segment: 1 if so, 0 if not, `IGNORED` for other inputs.
KEPT = "kept"


class NextSentenceHead(MlmHead):
    """The objective of BERT: the losses `MLM` and `NSP`."""

    loss_names = ("MLM", "NSP")
    allows_smoothing = False

    def __init__(self, max_length: int, masked: Masked | None = None) -> None:
        """Inputs whose second segment is exchanged are cut to `max_length` tokens."""
        super().__init__(masked)
        self.max_length = max_length

    def attach(self, model: "PreTrainedModel") -> None:
        """Give a language model the pooler and the classifier that the objective trains. Torch's generator draws them.

        BERT's pooler is part of its encoder, with which sequence classification begins.
        """
        import torch
        from transformers.models.bert.modeling_bert import BertPooler

        pooler, classifier = BertPooler(model.config), torch.nn.Linear(model.config.hidden_size, 2)
        if model.config.model_type == "bert":
            model.base_model.pooler = pooler
            model.add_module(MODULE, torch.nn.ModuleList([classifier]))
        else:
            model.add_module(MODULE, torch.nn.ModuleList([classifier, pooler]))

    def collate(
        self, tokens: Tokens, rows: Ints, token_types: bool, device: "torch.device | str" = "cpu"
    ) -> dict[str, "torch.Tensor"]:
        import torch

        others = self._others(tokens, rows)
        two_segments, others_have = (tokens.contexts[each] < tokens.sizes[each] for each in (rows, others))
        two_segments &= others_have & ~tokens.segments(rows).switched & (others != rows)
        exchanged = two_segments & (torch.rand(len(rows)) < 0.5).numpy()
        drawn = exchange(tokens, rows, exchanged, others, self.max_length)
        batch = super().collate(drawn, np.arange(len(rows)), token_types, device)
        kept = np.where(two_segments, (~exchanged).astype(np.int64), IGNORED)
        return batch | {KEPT: torch.from_numpy(kept).to(device)}

    @staticmethod
    def _others(tokens: Tokens, rows: Ints) -> Ints:
        """For each row, another random row of the same part of a mix; the row itself where the part has no other."""
        import torch

        begins, ends = np.zeros(len(rows), np.int64), np.full(len(rows), len(tokens))
        if (parts := tokens.parts) is not None:
            begins, ends = np.searchsorted(parts, parts[rows]), np.searchsorted(parts, parts[rows], side="right")
        choices = ends - begins - 1
        others: Ints = begins + (torch.rand(len(rows), dtype=torch.float64).numpy() * choices).astype(np.int64)
        # The rows from the row itself on move up by one, so that it is not among them.
        return others + ((others >= rows) & (choices > 0))

    def terms_of_losses(self, batch: dict[str, "torch.Tensor"]) -> dict[str, int]:
        return {"MLM": self.terms(batch), "NSP": int((batch[KEPT] != IGNORED).sum())}

    def losses(self, model: "PreTrainedModel", batch: dict[str, "torch.Tensor"]) -> dict[str, "torch.Tensor"]:
        from torch.nn.functional import cross_entropy

        output = language_head(model)
        if output is None:
            raise ValueError(f"next sentence prediction is for the families of BERT, not for {model.config.model_type}")
        inputs = {name: tensor for name, tensor in batch.items() if name not in (KEPT, "labels")}
        states = model.base_model(**inputs).last_hidden_state
        due = batch["labels"] != IGNORED
        layers: list[Any] = [*model.get_submodule(MODULE).children(), model.base_model.pooler]
        classifier, *poolers = layers
        answers = classifier(poolers[0](states)).float()
        return {
            "MLM": cross_entropy(output(states[due]).float(), batch["labels"][due], reduction="sum"),
            "NSP": cross_entropy(answers, batch[KEPT], ignore_index=IGNORED, reduction="sum"),
        }


def exchange(tokens: Tokens, rows: Ints, exchanged: Flags, others: Ints, max_length: int) -> Tokens:
    """Some rows as inputs of their own, of which those that are `exchanged` have the second segment of another row.

    Args:
        exchanged, others: [rows], whether a row loses its second segment, and the row from which it gets another one.
        max_length: the tokens to which an exchanged input is cut, by the end of its first segment.
    """
    inputs, contexts = [], tokens.contexts[rows].copy()
    for at, (row, other) in enumerate(zip(rows.tolist(), others.tolist(), strict=True)):
        ids = tokens.ids(row)
        if exchanged[at]:
            context = int(contexts[at])
            second = tokens.ids(other)[tokens.contexts[other] :]
            # The first token and the separator that closes the segment stay.
            room = min(context, max(2, max_length - len(second)))
            contexts[at] = room
            ids = np.concatenate([ids[: room - 1], ids[context - 1 : context], second])[:max_length]
        inputs.append(ids)
    return tokens.with_inputs(inputs, contexts, tokens.language_of[rows])
