"""The pre-training objective of mBART: the decoder restores a text from a damaged copy (Liu et al. 2020, section 2.2),
or writes the translation of a damaged text (Luo et al. 2021, section 7).

For a text x, its damaged copy g(x), and its translation y, training minimises

    -log P(x | g(x))                        for a text in one language
    -log P(y | g(x)) - log P(x | g(y))      for bitext

each as the mean over all predicted tokens of a step. A text has the layout of mBART, `text </s> language`. The decoder
reads `language text </s>` and predicts the token after each of these tokens.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from xlgrid.base.arrays import Ints
from xlgrid.base.settings import Strict
from xlgrid.heads.encoding import IGNORED
from xlgrid.heads.head import without_labels
from xlgrid.heads.language_modelling.mlm import Masked, MlmHead, mask, with_labels
from xlgrid.heads.language_modelling.pairs import pairs_of
from xlgrid.heads.tokens import Tokens, Vocabulary
from xlgrid.papers.luo2021.mbart.models import PRE_TRAINED

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray
    from transformers import PreTrainedModel

    Batch = dict[str, torch.Tensor]


class Denoising(Strict):
    """The noise in texts, and the tokens that the decoder predicts. The defaults follow Liu et al. 2020, section
    2.2."""

    noise: Literal["spans", "tokens"] = Field(
        default="spans",
        description="spans: each of several spans of tokens becomes one mask, and an empty span inserts a mask "
        "between two tokens; tokens: single tokens are masked as in MLM, with the shares of `masked` (the masked "
        "sequence of Luo et al. 2021, section 7)",
    )
    share: float = Field(default=0.35, gt=0, lt=1, description="with spans: the share of a text's tokens in spans")
    span: float = Field(
        default=3.5, gt=0, le=100, description="with spans: the mean of the Poisson distribution of their lengths"
    )
    permute: bool = Field(
        default=True,
        description="shuffle the parts of a text between separators; a packed text has several parts",
    )
    predict: Literal["all", "masked"] = Field(
        default="all",
        description="for a text in one language, the decoder predicts all tokens (Liu et al. 2020), or only the masked "
        "tokens (Luo et al. 2021); it always predicts all tokens of a translation",
    )

    @model_validator(mode="after")
    def _share_and_span_are_of_spans(self) -> Self:
        idle = " and ".join(name for name in ("share", "span") if name in self.model_fields_set)
        if self.noise == "tokens" and idle:
            raise ValueError(
                f"`noise: tokens` reads the shares of `masked`, not {idle}: leave out {idle}, or set `noise: spans`"
            )
        return self


class Damaged(NamedTuple):
    """A damaged text.

    Attributes:
        ids: [tokens], the token ids, at most as many as in the text.
        is_masked: [tokens of the text], whether each token of the text is masked.
    """

    ids: Ints
    is_masked: "NDArray[np.bool_]"


def damage(
    ids: Ints, vocabulary: Vocabulary, settings: Denoising, share: float, generator: np.random.Generator
) -> Damaged:
    """A damaged copy of a text.

    Special tokens are not masked. Parts of the text between separators are shuffled before tokens are masked.

    Args:
        ids: [tokens], a text that ends with a separator.
        share: the share of tokens to mask, without special tokens.
        generator: the generator that draws the noise.
    """
    order = _permuted(ids, generator) if settings.permute else np.arange(len(ids))
    permuted = ids[order]
    maskable = np.flatnonzero(~np.isin(permuted, vocabulary.special_ids))
    is_masked = np.zeros(len(ids), bool)
    if settings.noise == "tokens":
        noisy, chosen = _masked_tokens(permuted, maskable, vocabulary, share, generator)
    else:
        noisy, chosen = _masked_spans(permuted, maskable, vocabulary.mask_id, share, settings.span, generator)
    is_masked[order[chosen]] = True
    return Damaged(noisy, is_masked)


def _permuted(ids: Ints, generator: np.random.Generator) -> Ints:
    """[tokens], the order of the tokens of a text after its parts are shuffled. Separators stay between parts."""
    is_separator = ids == ids[-1]
    bounds = np.flatnonzero(np.diff(is_separator.astype(np.int8))) + 1
    pieces = np.split(np.arange(len(ids)), bounds)
    parts = [number for number, piece in enumerate(pieces) if len(piece) and not is_separator[piece[0]]]
    shuffled = [*pieces]
    for place, number in zip(parts, generator.permutation(parts).tolist(), strict=True):
        shuffled[place] = pieces[number]
    order: Ints = np.concatenate(shuffled)
    return order


def _masked_tokens(
    ids: Ints, maskable: Ints, vocabulary: Vocabulary, share: float, generator: np.random.Generator
) -> tuple[Ints, Ints]:
    """The text with single masked tokens as in MLM, and the places of these tokens."""
    import torch

    labels = np.full(len(ids), IGNORED, np.int64)
    labels[maskable] = ids[maskable]
    batch = {"input_ids": torch.from_numpy(ids.astype(np.int64))[None], "labels": torch.from_numpy(labels)[None]}
    mask(batch, vocabulary, share, torch.from_numpy(generator.random((3, 1, len(ids)), np.float32)))
    return batch["input_ids"][0].numpy(), np.flatnonzero(batch["labels"][0].numpy() != IGNORED)


def _masked_spans(
    ids: Ints, maskable: Ints, mask_id: int, share: float, mean: float, generator: np.random.Generator
) -> tuple[Ints, Ints]:
    """The text with a mask in the place of each span, and the places of the tokens in spans.

    The spans have exactly the share of the tokens that can be masked, rounded, and at least one token. Spans do not
    touch, unless there are more spans than gaps between the other tokens. A span that contains a special token becomes
    a mask on each side of it.
    """
    if not len(maskable):
        return ids, maskable
    count = max(1, round(share * len(maskable)))
    lengths = np.zeros(0, np.int64)
    while lengths.sum() < count:
        # This draws about as many spans as are missing. Spans after the last needed one are dropped below.
        lengths = np.append(lengths, generator.poisson(mean, 1 + int((count - lengths.sum()) / mean)))
    totals = lengths.cumsum()
    lengths = lengths[: np.searchsorted(totals, count) + 1]
    lengths[-1] -= lengths.sum() - count
    lengths = generator.permutation(lengths)
    gaps = len(maskable) - count + 1
    starts = np.sort(generator.choice(gaps, len(lengths), replace=len(lengths) > gaps))
    # A span begins after the unmasked tokens before it and the tokens of earlier spans.
    starts = starts + lengths.cumsum() - lengths
    span_of = np.full(len(maskable), -1)
    for number, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        span_of[start : start + length] = number
    spans = np.full(len(ids), -1)
    spans[maskable] = span_of
    chosen = np.flatnonzero(spans >= 0)
    continues = (spans >= 0) & (spans == np.append(-1, spans[:-1]))
    kept = ~continues
    noisy = np.where(spans >= 0, mask_id, ids)[kept]
    # An empty span is before the token at its place, or after the last token. A longer text might exceed the positions,
    # so there are at most as many empty spans as tokens that the other spans have removed.
    places = np.append(maskable, maskable[-1] + 1)[starts[lengths == 0]]
    places = generator.permutation(places)[: len(ids) - len(noisy)]
    before = np.append(0, kept.cumsum())[places]
    return np.insert(noisy, before, mask_id), chosen


class DenoisingHead(MlmHead):
    """Denoising of texts and of bitext by an mBART, for pre-training only. It reads the tokens of the head `mlm`.

    A batch has an input for each row, followed by a second input for each row of bitext, with the two texts swapped. An
    outcome is `[correct, predicted]`, over the tokens of a row that the decoder predicts from the tokens before them.
    """

    name = PRE_TRAINED

    def __init__(self, languages: Mapping[str, int], denoising: Denoising, masked: Masked | None = None) -> None:
        """Create the head.

        Args:
            languages: code -> the token of the language.
            denoising: the settings of the objective.
            masked: the shares of masked tokens, for `noise: tokens`.
        """
        super().__init__(masked)
        self.languages, self.denoising = languages, denoising

    def collate(self, tokens: Tokens, rows: Ints, token_types: bool) -> "Batch":
        """The tensors `input_ids` and `attention_mask` of damaged texts, [inputs, longest], and `decoder_input_ids` and
        `labels`, [inputs, longest target]. Torch's generator draws a seed for each row."""
        import torch

        return self._batch(tokens, rows, torch.randint(2**62, (len(rows),)).numpy())

    def evaluation_batch(self, tokens: Tokens, rows: Ints, token_types: bool) -> "Batch":
        """A batch in which the noise of a row depends only on the number of the row."""
        return self._batch(tokens, rows, rows)

    def _batch(self, tokens: Tokens, rows: Ints, seeds: Ints) -> "Batch":
        import torch

        is_bitext = tokens.segments(rows).switched
        pairs = pairs_of(tokens, rows[is_bitext]) if is_bitext.any() else None
        number_of_pairs, pair = int(is_bitext.sum()), 0
        first, second = [], []
        for row, seed, of_bitext in zip(rows.tolist(), seeds.tolist(), is_bitext.tolist(), strict=True):
            generator = np.random.default_rng(seed)
            x_language, y_language = (self._language(tokens, number) for number in tokens.language_of[row])
            if of_bitext:
                assert pairs is not None
                x, y = _text(pairs, pair), _text(pairs, number_of_pairs + pair)
                pair += 1
                first.append(self._input(x, x_language, y, y_language, tokens.vocabulary, generator))
                second.append(self._input(y, y_language, x, x_language, tokens.vocabulary, generator))
            else:
                x = _text(tokens, row)
                first.append(self._input(x, x_language, None, x_language, tokens.vocabulary, generator))
        sources, targets, labels = zip(*first, *second, strict=True)
        arrays = {
            "input_ids": _padded(sources, tokens.pad_id),
            "attention_mask": _padded([np.ones(len(ids), np.int64) for ids in sources], 0),
            "decoder_input_ids": _padded(targets, tokens.pad_id),
            "labels": _padded(labels, IGNORED),
        }
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def _language(self, tokens: Tokens, number: int) -> int:
        return self.languages[tokens.languages[number]]

    def _input(
        self,
        source: Ints,
        source_language: int,
        translation: Ints | None,
        language: int,
        vocabulary: Vocabulary,
        generator: np.random.Generator,
    ) -> tuple[Ints, Ints, Ints]:
        """A damaged text, the input of the decoder, and its labels.

        Args:
            translation: the text that the decoder writes; None: the source.
            language: the token of the language in which the decoder writes.
        """
        settings, is_pair = self.denoising, translation is not None
        share = settings.share
        if settings.noise == "tokens":
            share = self.masked.bitext if is_pair else self.masked.mono
        noisy, is_masked = damage(source, vocabulary, settings, share, generator)
        target = source if translation is None else translation
        labels = np.append(target, language)
        if not is_pair and settings.predict == "masked":
            labels = np.where(np.append(is_masked, False), labels, IGNORED)
        return np.append(noisy, source_language), np.append(language, target), labels

    def scores(self, model: "PreTrainedModel", batch: "Batch") -> tuple["torch.Tensor", "torch.Tensor"]:
        """The logits at the predicted tokens, [predicted tokens, vocabulary], and the ids of these tokens."""
        inputs, labels = without_labels(batch)
        states = model.base_model(**inputs, use_cache=False).last_hidden_state
        states, labels = with_labels(states, labels)
        return model.lm_head(states) + model.final_logits_bias, labels

    def predict(self, model: "PreTrainedModel", batch: "Batch", tokens: Tokens, rows: Ints) -> list[Any]:
        import torch

        logits, labels = self.scores(model, batch)
        due = batch["labels"] != IGNORED
        right = due.masked_scatter(due, logits.argmax(-1) == labels)
        counts = torch.stack([right.sum(1), due.sum(1)], 1).cpu().numpy()
        of_rows = counts[: len(rows)]
        of_rows[tokens.segments(rows).switched] += counts[len(rows) :]
        return [list(pair) for pair in of_rows.tolist()]


def _text(tokens: Tokens, number: int) -> Ints:
    """The token ids of an input without the special token at its beginning: `text </s>`."""
    ids: Ints = np.asarray(tokens.ids(number)[1:], np.int64)
    return ids


def _padded(rows: Any, padding: int) -> Ints:
    """Some rows as an array, [rows, longest], with padding at the ends."""
    filled: Ints = np.full((len(rows), max(map(len, rows))), padding, np.int64)
    for at, row in enumerate(rows):
        filled[at, : len(row)] = row
    return filled
