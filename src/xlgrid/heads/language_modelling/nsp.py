"""Masked language modelling with next sentence prediction (Devlin et al. 2019, section 3.1), for training only.

Half of the inputs with two segments of one language get the second segment of another input in this language. From the
first token, the model predicts whether the second segment was exchanged.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from xlgrid.base.arrays import Flags, Ints
from xlgrid.heads.encoding import IGNORED
from xlgrid.heads.language_modelling.mlm import Masked, MlmHead, language_head, with_labels
from xlgrid.heads.tokens import Tokens

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

# The attribute of a model that holds the layer which only this objective uses.
MODULE = "next_sentence"
# The entry of a batch with the labels: 1 for inputs that kept their second segment, 0 for inputs in which it was
# exchanged, `IGNORED` for other inputs.
KEPT = "kept"


class NextSentenceHead(MlmHead):
    """The pre-training objective of BERT, with the losses `MLM` and `NSP`."""

    loss_names = ("MLM", "NSP")
    allows_smoothing = False

    def __init__(self, max_length: int, masked: Masked | None = None) -> None:
        """Create the head.

        Args:
            max_length: the number of tokens to which inputs with an exchanged segment are cut.
            masked: see `MlmHead`.
        """
        super().__init__(masked)
        self.max_length = max_length

    def attach(self, model: "PreTrainedModel") -> None:
        """Add the pooler and the classifier of the objective to a language model. Torch's generator initializes them.

        The pooler is part of BERT's encoder, and sequence classification begins with it.
        """
        import torch
        from transformers.models.bert.modeling_bert import BertPooler

        pooler, classifier = BertPooler(model.config), torch.nn.Linear(model.config.hidden_size, 2)
        if model.config.model_type == "bert":
            model.base_model.pooler = pooler
            model.add_module(MODULE, torch.nn.ModuleList([classifier]))
        else:
            model.add_module(MODULE, torch.nn.ModuleList([classifier, pooler]))

    def collate(self, tokens: Tokens, rows: Ints, token_types: bool) -> dict[str, "torch.Tensor"]:
        import torch

        others = self._others(tokens, rows)
        two_segments, others_have = (tokens.contexts[each] < tokens.sizes[each] for each in (rows, others))
        two_segments &= others_have & ~tokens.segments(rows).switched & (others != rows)
        exchanged = two_segments & (torch.rand(len(rows)) < 0.5).numpy()
        drawn = exchange(tokens, rows, exchanged, others, self.max_length)
        batch = super().collate(drawn, np.arange(len(rows)), token_types)
        kept = np.where(two_segments, (~exchanged).astype(np.int64), IGNORED)
        return batch | {KEPT: torch.from_numpy(kept)}

    @staticmethod
    def _others(tokens: Tokens, rows: Ints) -> Ints:
        """For each row, another random row of the same part of the mix; the row itself if the part has no other row."""
        import torch

        begins, ends = np.zeros(len(rows), np.int64), np.full(len(rows), len(tokens))
        if (parts := tokens.parts) is not None:
            begins, ends = np.searchsorted(parts, parts[rows]), np.searchsorted(parts, parts[rows], side="right")
        choices = ends - begins - 1
        others: Ints = begins + (torch.rand(len(rows), dtype=torch.float64).numpy() * choices).astype(np.int64)
        # Choices from the row itself on move up by one, so that the row itself is never chosen.
        return others + ((others >= rows) & (choices > 0))

    def terms_of_losses(self, batch: dict[str, "torch.Tensor"]) -> dict[str, int]:
        return {"MLM": self.terms(batch), "NSP": int((batch[KEPT] != IGNORED).sum())}

    def losses(self, model: "PreTrainedModel", batch: dict[str, "torch.Tensor"]) -> dict[str, "torch.Tensor"]:
        from torch.nn.functional import cross_entropy

        output = language_head(model)
        if output is None:
            raise ValueError(
                "next sentence prediction needs an encoder of the family of BERT or XLM-R, got "
                f"{model.config.model_type}"
            )
        inputs = {name: tensor for name, tensor in batch.items() if name not in (KEPT, "labels")}
        states = model.base_model(**inputs).last_hidden_state
        at_labels, labels = with_labels(states, batch["labels"])
        layers: list[Any] = [*model.get_submodule(MODULE).children(), model.base_model.pooler]
        classifier, *poolers = layers
        answers = classifier(poolers[0](states)).float()
        return {
            "MLM": cross_entropy(output(at_labels).float(), labels, reduction="sum"),
            "NSP": cross_entropy(answers, batch[KEPT], ignore_index=IGNORED, reduction="sum"),
        }


def exchange(tokens: Tokens, rows: Ints, exchanged: Flags, others: Ints, max_length: int) -> Tokens:
    """Some rows of a data set, where `exchanged` rows have the second segment of another row.

    Args:
        exchanged: [rows], whether a row gets the second segment of another row.
        others: [rows], this other row.
        max_length: the maximum number of tokens of an exchanged input; the end of the first segment is cut.
    """
    inputs, contexts = [], tokens.contexts[rows].copy()
    for at, (row, other) in enumerate(zip(rows.tolist(), others.tolist(), strict=True)):
        ids = tokens.ids(row)
        if exchanged[at]:
            context = int(contexts[at])
            second = tokens.ids(other)[tokens.contexts[other] :]
            # The first token and the separator at the end of the segment stay.
            room = min(context, max(2, max_length - len(second)))
            contexts[at] = room
            ids = np.concatenate([ids[: room - 1], ids[context - 1 : context], second])[:max_length]
        inputs.append(ids)
    return tokens.with_inputs(inputs, contexts, tokens.language_of[rows])
