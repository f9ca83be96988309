"""The head `seq2seq`: an encoder-decoder generates a text, such as a translation, from a text.

Source: Luo et al. 2021, section 3.2.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xlgrid.base.arrays import Ints
from xlgrid.heads.encoding import IGNORED, Encoding
from xlgrid.heads.head import Evaluated, Example, Head, TaskColumns, without_labels
from xlgrid.heads.metrics import Metric, Outcome
from xlgrid.heads.tokens import Tokens
from xlgrid.models.load import positions
from xlgrid.papers.luo2021.seq2seq import bleu
from xlgrid.papers.luo2021.seq2seq.model import CROSS, encoder_decoder, no_decoder, texts

if TYPE_CHECKING:
    import pyarrow as pa
    import torch
    from transformers import PreTrainedModel

    from xlgrid.languages import Language

# The tensors of a batch that `generate` does not take.
_OF_TRAINING = {"labels", "token_type_ids", "decoder_input_ids", "decoder_attention_mask"}


class Seq2SeqHead(Head):
    """Generation of a text from a text.

    The input is the source. The target is the text to generate, in the second language of a pair. Sources and targets
    that are too long lose their ends, and are counted as truncated.

    Tokens files have these columns:

    - `target_ids`: the tokens of the target with the special tokens around them, as in an encoder's input
    - `target_size`: the number of these tokens
    - `reference`: the text of the target, with which hypotheses are compared

    The decoder reads the target from its first special token on, and predicts each next token: the tokens of the text,
    and the last special token, which ends the text. Hypotheses come from beam search by transformers' `generate` with
    the `generation_config` of the model. They have no special tokens.

    An outcome is the ten statistics of a sentence that BLEU sums up: see `xlgrid.papers.luo2021.seq2seq.bleu`. The
    language of the target determines BLEU's tokenizer.
    """

    name = "seq2seq"
    modules = (CROSS,)
    all_metrics = (bleu.CORPUS_BLEU,)
    has_labels = False
    keeps_answers = True
    mixes = ("whole",)
    options = bleu.Scoring
    # About half of the tokens of an example pass through the encoder, and the others through the decoder and the output
    # embeddings.
    output_share = 0.5

    def without_class(self, family: str) -> str | None:
        return no_decoder(family)

    def model_class(self, family: str) -> Any:
        return encoder_decoder(family)

    def described(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """The configuration of the encoder with transformers' mark for encoder-decoders.

        The configuration of an encoder-decoder contains that of its encoder.
        """
        return {**config.get("encoder", config), "is_encoder_decoder": True}

    def computed(self, model: Any, name: str, is_output: bool) -> tuple[float, float]:
        """Beam search computes each token of the decoder once for each hypothesis."""
        in_encoder = not is_output and name.startswith(f"{model.base_model_prefix}.encoder.")
        share = self.output_share
        return share, share * (1 if in_encoder else model.generation_config.num_beams)

    def problems_of_grid(self, study: Any, task: str, grid: str) -> Iterator[str]:
        for key in study.grids[grid].method:
            if study.methods[key].start:
                yield (
                    f"grids.{grid}.method: runs of {key} begin with an MLM run, but the encoder-decoders of task "
                    f"{task} can begin only with an encoder: leave out `start`"
                )

    def second(self, task: TaskColumns) -> str:
        return task.target

    def parallel(self, task: TaskColumns) -> str:
        """No column: the texts of two languages differ."""
        return ""

    def texts(self, task: TaskColumns) -> Sequence[str]:
        return [*task.inputs, task.target]

    def fields(self) -> list["pa.Field"]:
        import pyarrow as pa

        return [
            pa.field("target_ids", pa.list_(pa.int32())),
            pa.field("target_size", pa.int32()),
            pa.field("reference", pa.string()),
        ]

    def encode(self, table: "pa.Table", task: TaskColumns, encoding: Encoding) -> dict[str, list[Any]]:
        references = table[task.target].to_pylist()
        sources, targets = (
            encoding.columns(encoding.tokenizer(column, truncation=True, max_length=encoding.max_length))
            for column in (table[task.inputs[0]].to_pylist(), references)
        )
        ids = targets["input_ids"]
        return sources | {"target_ids": ids, "target_size": [len(row) for row in ids], "reference": references}

    def collate(self, tokens: Tokens, rows: Ints, token_types: bool) -> dict[str, "torch.Tensor"]:
        """The tensors of a batch of sources, and the tensors of the decoder.

        Both `decoder_input_ids` and `decoder_attention_mask` are [rows, tokens of the longest target - 1].
        """
        import torch

        batch = super().collate(tokens, rows, token_types)
        ids, real = self._targets(tokens, rows)
        # The decoder does not read the last token of a target, after which there is nothing to predict.
        arrays = {"decoder_input_ids": ids[:, :-1], "decoder_attention_mask": real[:, 1:].astype(np.int64)}
        return batch | {name: torch.from_numpy(array) for name, array in arrays.items()}

    def batch_labels(self, tokens: Tokens, rows: Ints, arrays: Mapping[str, np.ndarray], positions: Ints) -> np.ndarray:
        """The tokens that follow the tokens that the decoder reads: [rows, tokens of the longest target - 1]."""
        ids, real = self._targets(tokens, rows)
        return np.where(real, ids, IGNORED)[:, 1:]

    def _targets(self, tokens: Tokens, rows: Ints) -> tuple[np.ndarray, np.ndarray]:
        """The token ids of targets, and a mask that is false at padding; both [rows, tokens of the longest target]."""
        import pyarrow as pa

        sizes = tokens.columns["target_size"][rows]
        real = np.arange(sizes.max())[None, :] < sizes[:, None]
        ids = np.full(real.shape, tokens.pad_id, np.int64)
        ids[real] = np.from_dlpack(tokens.columns["target_ids"].take(pa.array(rows)).flatten())
        return ids, real

    def scores(
        self, model: "PreTrainedModel", batch: dict[str, "torch.Tensor"]
    ) -> tuple["torch.Tensor", "torch.Tensor"]:
        inputs, labels = without_labels(batch)
        return model(**inputs, use_cache=False).logits.flatten(0, -2), labels.flatten()

    def predict(
        self, model: "PreTrainedModel", batch: dict[str, "torch.Tensor"], tokens: Tokens, rows: Ints
    ) -> list[str]:
        """The hypothesis for each row."""
        sources = {name: tensor for name, tensor in batch.items() if name not in _OF_TRAINING}
        return texts(model, generate(model, sources, tokens))

    def outcomes(self, tokens: Tokens, answers: Sequence[str]) -> list[Outcome]:
        references = tokens.columns["reference"].to_pylist()
        by_language = self._tokenizers(tokens)
        tokenizers = [by_language[language] for language in tokens.language_of[:, 1].tolist()]
        return [bleu.statistics(*row) for row in zip(answers, references, tokenizers, strict=True)]

    def examples(self, seen: Evaluated) -> list[Example]:
        references = seen.data[seen.task.target].to_pylist()
        return seen.rows(zip(references, seen.answers, [None] * len(references), strict=True))

    def implementation(self, tokens: Tokens, metric: Metric) -> str:
        """The implementation of BLEU, with sacrebleu's signature for the tokenizer of each language of the targets."""
        signatures = dict.fromkeys(map(bleu.signature, self._tokenizers(tokens).values()))
        return f"{super().implementation(tokens, metric)}: {', '.join(signatures)}"

    def _tokenizers(self, tokens: Tokens) -> dict[int, str]:
        """Language of targets, by its position in `languages` -> the tokenizer of BLEU."""
        choice = bleu.Scoring.model_validate(tokens.options).bleu_tokenizer
        present = np.unique(tokens.language_of[:, 1]).tolist()
        return {language: bleu.tokenizer_of(tokens.languages[language], choice) for language in present}

    def unscorable(self, options: bleu.Scoring, targets: Sequence[Sequence["Language"]]) -> list[str]:
        generated = dict.fromkeys(languages[-1] for languages in targets)
        return [*bleu.problems([*generated], options.bleu_tokenizer)]

    def counts(self, tokens: Tokens, outcomes: Sequence[Outcome]) -> dict[str, int]:
        return {
            "target_tokens": int(tokens.columns["target_size"].sum()),
            "empty_hypotheses": sum(bleu.is_empty(outcome) for outcome in outcomes),
        }


def generate(model: Any, sources: Mapping[str, "torch.Tensor"], tokens: Tokens, **settings: Any) -> list[list[int]]:
    """The token ids of the hypothesis for each source, special tokens included.

    The only special token that is generated is the one that ends a hypothesis. A hypothesis has at most as many tokens
    as the decoder has positions.

    Args:
        sources: `input_ids` and `attention_mask`, both [rows, longest], and further arguments of the model's
            `generate`.
        tokens: the data of the sources, whose targets show the first and the last special token.
        settings: entries that replace those of the model's `generation_config`.
    """
    first, *_, last = tokens.columns["target_ids"][0].as_py()
    ending: dict[str, Any] = {
        "decoder_start_token_id": first,
        "eos_token_id": last,
        "pad_token_id": tokens.pad_id,
        "suppress_tokens": [number for number in tokens.vocabulary.special_ids if number != last],
        "max_new_tokens": min(model.generation_config.max_new_tokens, positions(model.position_table) - 1),
    }
    sequences = model.generate(**sources, **{**ending, **settings})
    return list(sequences.tolist())
