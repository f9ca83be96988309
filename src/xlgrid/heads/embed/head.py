"""The head `embed`: a sentence retrieves its translation by the vectors of an encoder (Tatoeba in XTREME, Hu et al.
2020)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, PositiveInt

from xlgrid.base.arrays import Ints
from xlgrid.base.settings import Strict
from xlgrid.heads.embed import search
from xlgrid.heads.encoding import IGNORED, Encoding
from xlgrid.heads.head import Evaluated, Example, Head, TaskColumns, without_labels
from xlgrid.heads.metrics import ACCURACY, Outcome
from xlgrid.heads.tokens import Tokens

if TYPE_CHECKING:
    import pyarrow as pa
    import torch
    from transformers import PreTrainedModel

# The column of a tokens file with the language of a sentence: 0 for the first language of the pair, 1 for the second.
SIDE = "side"


def _layer(value: Any) -> Any:
    numbers = [*value, *value.values()] if isinstance(value, dict) else [value]
    if value is None or all(str(number).isdecimal() for number in numbers):
        return value
    raise ValueError(
        "expected the number of a layer, at least 0, or a number for each size of encoder, as in {12: 8, 24: 14}, "
        f"got {value!r}"
    )


class Embedding(Strict):
    """The options for computing and comparing the vectors of sentences."""

    layer: Annotated[int | dict[int, int] | None, BeforeValidator(_layer)] = Field(
        None,
        description="the layer whose output is used: 1 is the first layer, 0 the embeddings. `{12: 8, 24: 14}` chooses "
        "layer 8 of encoders with 12 layers and layer 14 of encoders with 24 layers. Absent: the last layer. XTREME's "
        "`--specific_layer 18` counts from 0, so it is 19 here",
    )
    pool: Literal["mean", "cls"] = Field(
        "mean", description="the mean over the tokens of a sentence, or the first token"
    )
    special_tokens: bool = Field(
        True, description="true: the mean includes the special tokens at the start and the end, as in XTREME"
    )
    score: search.Score = Field("cosine", description="the cosine, or its margin over the nearest neighbours")
    k: PositiveInt = Field(4, description="the number of nearest neighbours from which a margin is computed")


class Retrieval(Embedding):
    """The options of a task of retrieval."""

    queries: Literal["first", "second"] = Field(
        "second",
        description="the language of the pair whose sentences are the queries; in the pair `fr-en`, XTREME searches "
        "the French sentences for each English sentence",
    )


class EmbeddingHead(Head):
    """Sentences as vectors: a row is a sentence, and its prediction is a vector from an encoder without a head.

    The head has no parameters and is never trained. Each cell is for a pair of languages. The vectors are in single
    precision on every device.
    """

    has_target = False
    has_labels = False
    is_pretrained = True
    is_trained = False
    has_pairs_only = True
    options: ClassVar[type[Embedding]] = Embedding

    def model_class(self, family: str) -> Any:
        """The class of the family's encoders without a head."""
        import transformers

        return getattr(transformers, family if family == "AutoModel" else f"{family}Model")

    def language_of(self, segments: NDArray[np.int16], columns: Mapping[str, Any]) -> NDArray[np.int16]:
        """The language of each sentence, for both segments."""
        return np.repeat(segments[columns[SIDE]][:, None], 2, axis=1)

    def batch_labels(self, tokens: Tokens, rows: Ints, arrays: Mapping[str, np.ndarray], positions: Ints) -> np.ndarray:
        return np.full(len(rows), IGNORED)

    def predict(
        self, model: "PreTrainedModel", batch: dict[str, "torch.Tensor"], tokens: Tokens, rows: Ints
    ) -> list[search.Vectors]:
        """The vector of each sentence.

        Raises:
            ValueError: the encoder has fewer layers than `layer`, or a vector has a value that is not a number.
        """
        import torch

        settings = self.options.model_validate(tokens.options)
        inputs, _ = without_labels(batch)
        # Vectors in lower precision would have different neighbours.
        with torch.autocast(model.device.type, enabled=False):
            states = _states(model, inputs, settings.layer)
        if settings.pool == "cls":
            vectors = states[:, 0]
        else:
            pooled = inputs["attention_mask"].bool()
            if not settings.special_tokens:
                lengths = pooled.sum(1)
                pooled[:, 0] = False
                pooled[torch.arange(len(rows), device=lengths.device), lengths - 1] = False
            # A sentence that consists of special tokens only has the vector 0.
            weights = pooled.to(states.dtype).unsqueeze(-1)
            vectors = (states * weights).sum(1) / weights.sum(1).clamp(min=1)
        found = vectors.detach().float().cpu().numpy()
        if not np.isfinite(found).all():
            raise ValueError(
                "the vector of a sentence has values that are not numbers: the encoder has diverged, use another one"
            )
        return list(found)


class EmbedHead(EmbeddingHead):
    """Retrieval of translations: each sentence of one language retrieves the nearest of all sentences of the other.

    The inputs are two columns of text, with a sentence in each language. The outcome of an example is 1 if its own
    translation is retrieved, and 0 otherwise. A sentence that occurs twice competes with its copy.
    """

    name = "embed"
    all_metrics = (ACCURACY,)
    inputs_allowed = (2, 2)
    keeps_answers = True
    options = Retrieval

    def second(self, task: TaskColumns) -> str:
        return task.inputs[1]

    def fields(self) -> list["pa.Field"]:
        import pyarrow as pa

        return [pa.field(SIDE, pa.int32()), pa.field("example", pa.int32())]

    def encode(self, table: "pa.Table", task: TaskColumns, encoding: Encoding) -> dict[str, list[Any]]:
        """The rows of a tokens file: two for each example, its first and its second sentence."""
        columns = zip(*(table[column].to_pylist() for column in task.inputs), strict=True)
        encoded = encoding.cut([[sentence for pair in columns for sentence in pair]], task.inputs[-1])
        return {
            **encoded,
            SIDE: [0, 1] * table.num_rows,
            "example": [example for example in range(table.num_rows) for _ in range(2)],
        }

    def answers(self, tokens: Tokens, predictions: Sequence[search.Vectors]) -> list[int]:
        """The number of the example whose sentence each sentence retrieves."""
        settings, sides = Retrieval.model_validate(tokens.options), tokens.columns[SIDE]
        vectors = np.stack(predictions)
        queries = int(settings.queries == "second")
        # The rows of each language are in the order of the examples.
        retrieved = search.search(vectors[sides == queries], vectors[sides != queries], settings.score, settings.k)
        answers: list[int] = retrieved.tolist()
        return answers

    def outcomes(self, tokens: Tokens, answers: Sequence[int]) -> list[Outcome]:
        return [int(answer == example) for example, answer in enumerate(answers)]

    def examples(self, seen: Evaluated) -> list[Example]:
        """The translation of each sentence, and the sentence that is retrieved."""
        queries = Retrieval.model_validate(seen.options).queries
        texts = seen.data[seen.task.inputs[int(queries == "first")]].to_pylist()
        found = (texts[answer] for answer in seen.answers)
        return seen.rows(zip(texts, found, map(bool, seen.outcomes), strict=True))

    def chance(self, tokens: Tokens) -> dict[str, float]:
        """The accuracy of a random choice, since one of all sentences is correct."""
        return {ACCURACY.name: 100 / tokens.examples}


def _states(
    model: "PreTrainedModel", inputs: Mapping[str, "torch.Tensor"], layer: int | Mapping[int, int] | None
) -> "torch.Tensor":
    """The output of a layer (see `Embedding.layer`), [rows, tokens, size].

    Raises:
        ValueError: the encoder has fewer layers than `layer`, or `layer` has no entry for its number of layers.
    """
    layers = int(model.config.num_hidden_layers)
    if isinstance(layer, Mapping):
        if layers not in layer:
            known = " or ".join(map(str, layer))
            raise ValueError(
                f"option `layer` is for encoders of {known} layers, and the encoder has {layers}: add {layers}"
            )
        layer = layer[layers]
    if layer is None:
        last: torch.Tensor = model(**inputs).last_hidden_state
        return last
    if layer > layers:
        raise ValueError(f"option `layer` is {layer}, but the encoder has {layers} layers: write 0 to {layers}")
    states: torch.Tensor = model(**inputs, output_hidden_states=True).hidden_states[layer]
    return states
