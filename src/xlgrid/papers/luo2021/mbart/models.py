"""mBART with the heads `sequence` and `seq2seq` (Liu et al. 2020): models of transformers that read tokens files.

A text in the layout of mBART is `text </s> language`, and its decoder reads `language text </s>`. Tokens files have
`<s> text </s>`, as XLM-R does, and their tokenizer has no tokens of languages. These tokens are the last rows of the
embeddings, after the tokens of the tokenizer, in the order of the entry `languages` of config.json.
"""

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from xlgrid.base.arrays import Segments
from xlgrid.base.family import KnownType
from xlgrid.base.names import unknown
from xlgrid.heads.transfer import transferred

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedConfig, PreTrainedModel

    from xlgrid.heads import Head

# The head of pre-training, and the heads of the tasks on which an mBART can be fine-tuned.
PRE_TRAINED = "denoising"
FINE_TUNED = ("sequence", "seq2seq")
# The entry of config.json with the codes of the languages, and the argument of the models' forward with the tokens of
# languages.
LANGUAGES = "languages"


class MBartType(KnownType):
    """The model type of mBART, which supports some of the heads."""

    dropout = ("dropout", "attention_dropout", "classifier_dropout")

    def problem(self, head: "Head") -> str | None:
        if head.name in (PRE_TRAINED, *FINE_TUNED):
            return None
        return (
            f"an mBART supports the heads {' and '.join(FINE_TUNED)}, got {head.name}: put the encoder into a separate "
            "grid without the task"
        )

    def model_class(self, head: "Head") -> Any:
        """The class of an mBART with a head.

        For pre-training, this is the class of transformers. The core asks for it with the head `mlm`, as for all
        encoders from scratch.
        """
        import transformers

        if head.name == "mlm":
            return transformers.MBartForConditionalGeneration
        if problem := self.problem(head):
            raise ValueError(problem)
        if head.name == "sequence":
            return _classifier(transformers.MBartForSequenceClassification)
        return _generator(transformers.MBartForConditionalGeneration)


TYPE = MBartType()


def language_tokens(config: "PreTrainedConfig") -> dict[str, int]:
    """The code of each language of an mBART -> the id of its token.

    Raises:
        ValueError: the configuration does not list the languages.
    """
    codes = getattr(config, LANGUAGES, None)
    if not codes:
        raise ValueError(
            "config.json of the mBART has no list `languages` of the tokens of languages: pre-train an mBART with "
            "`architecture: mbart`"
        )
    first = config.vocab_size - len(codes)
    return {code: first + number for number, code in enumerate(codes)}


def languages_of(model: "PreTrainedModel", segments: Segments) -> dict[str, "Tensor"]:
    """The argument of the forward of an mBART with a head: the tokens of the languages of both segments, [inputs, 2].

    Raises:
        ValueError: the encoder has no token for a language.
    """
    import torch

    known = language_tokens(model.config)
    tokens = np.zeros(len(segments.languages), np.int64)
    for number in np.unique(segments.language_of).tolist():
        code = segments.languages[number]
        if code not in known:
            raise ValueError(
                f"the mBART has no token for {unknown('language', code, known)}: pre-train an mBART with this "
                "language, or leave the language out"
            )
        tokens[number] = known[code]
    return {LANGUAGES: transferred(torch.from_numpy(tokens[segments.language_of]), model.device)}


def in_layout(input_ids: "Tensor", attention_mask: "Tensor", languages: "Tensor", padding: int) -> "Tensor":
    """Inputs `<s> text </s>` in the layout `text </s> language`, [inputs, longest].

    Args:
        input_ids, attention_mask: [inputs, longest], with padding at the ends.
        languages: [inputs], the token of the language of each input.
        padding: the padding token.
    """
    ids = input_ids.roll(-1, 1)
    ids[:, -1] = padding
    return ids.scatter(1, attention_mask.sum(1, keepdim=True) - 1, languages[:, None])


@cache
def _classifier(known: Any) -> Any:
    class Classifier(known):
        """An mBART for classification: encoder and decoder read the same input, and the classifier reads the state in
        which the decoder predicts the last `</s>`."""

        def language_arguments(self, segments: Segments) -> dict[str, "Tensor"]:
            return languages_of(self, segments)

        def forward(
            self, input_ids: "Tensor", attention_mask: "Tensor", languages: "Tensor | None" = None, **others: Any
        ) -> Any:
            """The forward of transformers. With `languages`, [inputs, 2], the inputs have the layout of tokens
            files."""
            if languages is not None:
                # A code-switched pair gets the language token of its second text.
                input_ids = in_layout(input_ids, attention_mask, languages[:, 1], self.config.pad_token_id)
            return super().forward(input_ids, attention_mask=attention_mask, **{"use_cache": False, **others})

    return Classifier


@cache
def _generator(known: Any) -> Any:
    from xlgrid.papers.luo2021.seq2seq.model import WithTokenizer, usual_generation

    class Generator(WithTokenizer, known):
        """An mBART for generation: the decoder begins with the token of the language in which it writes."""

        def __init__(self, config: Any, *arguments: Any, **settings: Any) -> None:
            super().__init__(config, *arguments, **settings)
            self.generation_config = usual_generation()

        @classmethod
        def from_pretrained(cls, folder: Any, **settings: Any) -> Any:
            model, about = super().from_pretrained(folder, **settings)
            model.generation_config, model.tokenizer_file = usual_generation(), folder / "tokenizer.json"
            return model, about

        def language_arguments(self, segments: Segments) -> dict[str, "Tensor"]:
            return languages_of(self, segments)

        @property
        def position_table(self) -> Any:
            """The embeddings of the positions of the decoder."""
            return self.model.decoder.embed_positions

        def forward(
            self,
            input_ids: Any = None,
            attention_mask: Any = None,
            decoder_input_ids: Any = None,
            languages: "Tensor | None" = None,
            **others: Any,
        ) -> Any:
            """The forward of transformers. With `languages`, [inputs, 2], sources and targets have the layout of tokens
            files."""
            import torch

            if languages is not None:
                input_ids = in_layout(input_ids, attention_mask, languages[:, 0], self.config.pad_token_id)
                decoder_input_ids = torch.cat([languages[:, 1:], decoder_input_ids[:, 1:]], 1)
            return super().forward(
                input_ids, attention_mask=attention_mask, decoder_input_ids=decoder_input_ids, **others
            )

        def generate(
            self, input_ids: "Tensor", attention_mask: "Tensor", languages: "Tensor | None" = None, **settings: Any
        ) -> Any:
            """The method of transformers. With `languages`, sources have the layout of tokens files, and no token of a
            language is generated."""
            if languages is not None:
                input_ids = in_layout(input_ids, attention_mask, languages[:, 0], self.config.pad_token_id)
                settings["decoder_start_token_id"] = languages[:, 1].tolist()
                others = language_tokens(self.config).values()
                settings["suppress_tokens"] = [*settings.get("suppress_tokens", ()), *others]
            return super().generate(input_ids=input_ids, attention_mask=attention_mask, **settings)

    return Generator
