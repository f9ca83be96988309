"""Encoder-decoders of transformers whose two parts begin with the weights of one encoder.

Source: Rothe et al. 2020; Luo et al. 2021, section 3.2.
"""

from functools import cache, cached_property
from pathlib import Path
from typing import Any

from xlgrid.base.errors import Damaged

# Stem of the names of the classes of transformers -> the class of a causal language model.
CAUSAL = {"Bert": "BertLMHeadModel", "XLMRoberta": "XLMRobertaForCausalLM", "Roberta": "RobertaForCausalLM"}
# The modules of a decoder's layer that an encoder may lack.
CROSS = "crossattention"


class WithTokenizer:
    """A model with the tokenizer of its encoder.

    Attributes:
        tokenizer_file: the path of the encoder's tokenizer.json; None for a model that was made from a configuration.
    """

    tokenizer_file: Path | None = None

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer of the encoder.

        Raises:
            ValueError: the tokenizer is missing or damaged.
        """
        from tokenizers import Tokenizer

        path = self.tokenizer_file
        try:
            return Tokenizer.from_file(str(path))
        except Exception as error:  # The tokenizers library raises bare Exceptions.
            raise Damaged(
                f"{path} is missing or damaged ({error}): make or fetch the encoder again", *filter(None, [path])
            ) from error


def usual_generation() -> Any:
    """The settings of generation if a method has none of its own: beam search with four hypotheses."""
    from transformers import GenerationConfig

    return GenerationConfig(num_beams=4, max_new_tokens=200, early_stopping=True)


def no_decoder(family: str) -> str | None:
    """The error message, with advice, for a family of encoders without a decoder; None if the family has a decoder.

    Args:
        family: the stem of the names of the family's classes.
    """
    if family in CAUSAL:
        return None
    return (
        "transformers has no decoder for encoders of this type: name an encoder of type bert, roberta or xlm-roberta "
        "for a task of kind seq2seq or translation"
    )


@cache
def encoder_decoder(family: str) -> Any:
    """The class of encoder-decoders whose two parts belong to a family of encoders.

    The class is a subclass of transformers' `EncoderDecoderModel`. Like the class of an encoder with a head, its
    objects are made from the configuration of an encoder or from an encoder's folder.

    Args:
        family: the stem of the names of the family's classes.

    Raises:
        ValueError: transformers has no decoder of the family.
    """
    if problem := no_decoder(family):
        raise ValueError(problem)
    import transformers

    make_encoder, make_decoder = (getattr(transformers, name) for name in (f"{family}Model", CAUSAL[family]))

    class EncoderDecoder(WithTokenizer, transformers.EncoderDecoderModel):
        """An encoder, and a decoder with a causal mask and a cross-attention in each layer.

        The encoder, the decoder and the output share their word embeddings.

        Attributes:
            stores_cross: whether the weights of the cross-attention are stored with the encoder; otherwise, they are
                random.
            drawn: the names of the parameters that were drawn at random because the encoder's folder lacks them.
        """

        stores_cross = False
        drawn: frozenset[str] = frozenset()

        def __init__(self, config: Any, parts: tuple[Any, Any] | None = None) -> None:
            """Make the parts from the configuration of an encoder, unless `parts` has an encoder and a decoder."""
            encoder, decoder = parts or (
                make_encoder(config, add_pooling_layer=False),
                make_decoder(
                    type(config).from_dict(config.to_dict() | {"is_decoder": True, "add_cross_attention": True})
                ),
            )
            super().__init__(encoder=encoder, decoder=decoder)
            decoder.set_input_embeddings(encoder.get_input_embeddings())
            decoder.get_output_embeddings().weight = encoder.get_input_embeddings().weight
            self.generation_config = usual_generation()

        @classmethod
        def from_pretrained(cls, folder: Path, **settings: Any) -> tuple[Any, dict[str, Any]]:
            """The encoder-decoder of an encoder's folder, and the names of missing and of unused parameters.

            The folder lacks the parameters in `missing_keys`. Neither part uses the parameters in `unexpected_keys`.
            Torch's generator draws the weights of a cross-attention that is not stored with the encoder.
            """
            settings["output_loading_info"] = True
            encoder, about = make_encoder.from_pretrained(folder, add_pooling_layer=False, **settings)
            decoder, of_decoder = make_decoder.from_pretrained(
                folder, is_decoder=True, add_cross_attention=True, **settings
            )
            model = cls(encoder.config, (encoder, decoder))
            missing = of_decoder["missing_keys"]
            model.stores_cross = not any(f".{CROSS}." in name for name in missing)
            model.drawn = frozenset(f"{cls.base_model_prefix}.decoder.{name}" for name in missing)
            model.tokenizer_file = folder / "tokenizer.json"
            unused = {*about["unexpected_keys"]} & {*of_decoder["unexpected_keys"]}
            # A parameter that both parts lack is one of the encoder.
            return model, {"missing_keys": {*about["missing_keys"], *model.drawn}, "unexpected_keys": unused}

        @property
        def position_table(self) -> Any:
            """The embeddings of the positions of the decoder."""
            embeddings: Any = self.decoder.base_model.embeddings
            return embeddings.position_embeddings

    return EncoderDecoder


def texts(model: Any, sequences: list[list[int]]) -> list[str]:
    """The texts of sequences of token ids, without special tokens, by the tokenizer of the model's encoder.

    Raises:
        ValueError: the tokenizer is missing or damaged.
    """
    decoded: list[str] = model.tokenizer.decode_batch(sequences, skip_special_tokens=True)
    return [text.strip() for text in decoded]
