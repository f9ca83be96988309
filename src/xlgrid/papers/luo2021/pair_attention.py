"""The self-attention of encoders on two texts in one input (Luo et al. 2021, figure 1)."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from pydantic import Field, PositiveInt, model_validator

from xlgrid.base.names import among
from xlgrid.exhibits.exhibit import Exhibit, Rendering
from xlgrid.papers.luo2021.mbart.architecture import MBart
from xlgrid.products.encode import Encoder

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from xlgrid.exhibits.drawing.plots import Look
    from xlgrid.exhibits.drawing.sheet import Sheet
    from xlgrid.plan.plan import Plan
    from xlgrid.study.schema import Study

# The places to which a token of a text may attend.
SHARES = ("own text", "other text", "special tokens")
TEXTS = ("first text", "second text")
# The largest side of a token, and the room beside a matrix, in inches.
LARGEST, ASIDE = 0.16, 0.85


class Weights(NamedTuple):
    """The attention of an encoder on an input of two texts.

    Attributes:
        tokens: the tokens of the input, special tokens included.
        text_of: [L], 0 for a token of the first text, 1 for a token of the second text, -1 for a special token.
        matrix: [L, L], the mean over the heads of a layer. Each row belongs to a query and sums to 1.
    """

    tokens: list[str]
    text_of: "NDArray[np.int64]"
    matrix: "NDArray[np.float64]"

    @property
    def shares(self) -> "NDArray[np.float64]":
        """[2, 3], the mean share of attention from the tokens of each text to each of `SHARES`."""
        import numpy as np

        keys = [self.text_of == 0, self.text_of == 1, self.text_of == -1]
        sums = np.stack([self.matrix[:, key].sum(-1) for key in keys], -1)
        first, second = (sums[self.text_of == text].mean(0) for text in (0, 1))
        return np.stack([first, second[[1, 0, 2]]])


class PairAttention(Exhibit):
    """The attention of encoders without training on two texts, such as a sentence and its translation: the shares
    within and between the texts, and the matrix of one layer.

    Cross-attention of an encoder is not used here.
    """

    kind: Literal["pair-attention"] = "pair-attention"
    encoders: tuple[str, ...] = Field(min_length=1, description="encoders of the study, each with a row and a picture")
    texts: tuple[str, str] = Field(description="the two texts, which form one input")
    layer: PositiveInt | Literal["middle"] = Field(
        "middle", description="a layer, counted from 1; middle: the layer at half of their number"
    )
    digits: int = Field(default=1, ge=0, le=6, description="digits after the decimal point")
    is_table: ClassVar[bool] = False

    @model_validator(mode="after")
    def _texts_have_words(self) -> "PairAttention":
        if not all(text.strip() for text in self.texts):
            raise ValueError("`texts` needs two texts with at least one word each")
        return self

    def encoders_read(self, study: "Study") -> list[Encoder]:
        return [Encoder(study.name, name) for name in self.encoders]

    def problems(self, study: "Study", axes: Mapping[str, Sequence[object]]) -> Iterator[str]:
        yield from among("encoders", "encoder", self.encoders, study.encoders)
        for name in self.encoders:
            entry = study.encoders.get(name)
            scratch = getattr(entry, "scratch", None)
            if entry and entry.modules_of(study):
                yield f"encoders: {name} has a module for each language, but the input has two languages: leave it out"
            if isinstance(scratch, MBart):
                yield f"encoders: {name} is an encoder-decoder, whose attention is not that of an encoder: leave it out"
            if scratch and isinstance(self.layer, int) and self.layer > scratch.layers:
                yield f"layer: encoder {name} has {scratch.layers} layers, got {self.layer}: lower it, or write middle"

    def rendering(self, plan: "Plan") -> Rendering:
        folders = {name: Path(plan.owned(Encoder(plan.study.name, name)).folder) for name in self.encoders}
        weights = {
            name: attention_on(folder, self.texts, self.layer) if (folder / "config.json").exists() else None
            for name, folder in folders.items()
        }
        return Rendering(self.sheet(weights), self.data(weights), partial(draw, weights), room=1.6 * len(weights))

    def data(self, weights: Mapping[str, Weights | None]) -> "pd.DataFrame":
        """A row for each encoder, text and place, with the columns `encoder`, `text`, `attends_to`, `percent` (NaN if
        the encoder does not exist yet)."""
        import pandas as pd

        rows = [
            {"encoder": name, "text": text, "attends_to": place}
            | {"percent": 100 * float(each.shares[i, j]) if each else float("nan")}
            for name, each in weights.items()
            for i, text in enumerate(TEXTS)
            for j, place in enumerate(SHARES)
        ]
        return pd.DataFrame(rows)

    def sheet(self, weights: Mapping[str, Weights | None]) -> "Sheet":
        """The shares as a table."""
        import pandas as pd

        from xlgrid.exhibits.drawing.sheet import PRINTED, Sheet, number

        lines = []
        for row in self.data(weights).to_dict("records"):
            known = weights[row["encoder"]] is not None
            printed = number(row["percent"], self.digits) if known else "–"
            text = (printed, "complete" if known else "missing", "" if known else "the encoder does not exist yet")
            keys = {"encoder": row["encoder"], "tokens": row["text"], "column": row["attends_to"]}
            lines.append(keys | dict(zip(PRINTED, text, strict=True)))
        layer = "the layer in the middle" if self.layer == "middle" else f"layer {self.layer}"
        notes = (
            "Percent of the attention of the tokens of a text, as the mean over these tokens and all heads of "
            f"{layer}, for one input with both texts: {self.texts[0]!r} and {self.texts[1]!r}."
        )
        columns = [(place,) for place in SHARES]
        return Sheet(self.title, self.caption, notes, ("encoder", "tokens"), columns, pd.DataFrame(lines))


def attention_on(encoder: Path, texts: tuple[str, str], layer: int | Literal["middle"] = "middle") -> Weights:
    """The self-attention of an encoder, without dropout and in full precision, on an input of two texts.

    Args:
        encoder: the folder of the encoder.
        layer: a layer, counted from 1; middle: half the number of layers, rounded down, and at least 1.

    Raises:
        ValueError: a file of the encoder is damaged, the encoder has fewer layers, or the input is too long for it.
    """
    import numpy as np
    import torch
    from tokenizers import Tokenizer
    from transformers import AutoModel

    from xlgrid.base.errors import Damaged

    tokenizer_file = encoder / "tokenizer.json"
    try:
        model = AutoModel.from_pretrained(encoder, local_files_only=True, attn_implementation="eager").eval()
        tokenizer = Tokenizer.from_file(str(tokenizer_file))
    except Exception as error:  # The tokenizers library raises bare Exceptions.
        raise Damaged(f"the encoder in {encoder} cannot be read ({error}): make or fetch it again", encoder) from error
    layers = model.config.num_hidden_layers
    chosen = max(1, layers // 2) if layer == "middle" else layer
    if chosen > layers:
        raise ValueError(f"the encoder in {encoder} has {layers} layers, got layer {layer}: lower it, or write middle")
    tokenizer.no_padding()
    tokenizer.no_truncation()
    encoded = tokenizer.encode(*texts)
    if len(encoded.ids) > model.config.max_position_embeddings - 2:
        raise ValueError(
            f"the two texts have {len(encoded.ids)} tokens, too many for the encoder in {encoder}: shorten the `texts`"
        )
    with torch.inference_mode():
        outputs = model(torch.tensor([encoded.ids]), output_attentions=True)
    matrix = outputs.attentions[chosen - 1][0].double().mean(0).numpy()
    text_of = np.array([-1 if text is None else text for text in encoded.sequence_ids])
    return Weights(encoded.tokens, text_of, matrix)


def draw(weights: Mapping[str, Weights | None], look: "Look") -> "Axes":
    """Draw the matrices of the encoders side by side. The largest weight is black, and lines separate the texts.

    Returns:
        The first panel.
    """
    import numpy as np
    from matplotlib.figure import Figure

    from xlgrid.exhibits.drawing import plots

    longest = max((len(each.tokens) for each in weights.values() if each), default=20)
    side = min(max(0.5, (look.room + ASIDE) / len(weights) - ASIDE), LARGEST * longest)
    size = min(6.0, 60 * side / longest)
    figure = Figure(figsize=(1, 1), dpi=plots.DPI)
    for at, (name, each) in enumerate(weights.items()):
        ax = plots.axes_at(figure, at * (side + ASIDE), 0, side, side)
        ax.set_title(look.label(name), loc="left")
        if each is None:
            ax.text(0.5, 0.5, "not there yet", transform=ax.transAxes, ha="center", va="center")
            ax.set(xticks=[], yticks=[])
            continue
        length = len(each.tokens)
        ax.imshow(each.matrix, cmap="Greys", vmin=0, interpolation="nearest", extent=(0, length, length, 0))
        ax.set_xticks(np.arange(length) + 0.5, each.tokens, fontsize=size, rotation=90)
        ax.set_yticks(np.arange(length) + 0.5, each.tokens, fontsize=size)
        ax.tick_params(length=0, pad=2)
        ax.set_xlabel("key")
        ax.set_ylabel("query")
        seam = int(np.flatnonzero(each.text_of == 1)[0])
        for line in (ax.axvline, ax.axhline):
            line(seam, color=plots.COLOURS[1], linewidth=0.7, linestyle=(0, (4, 2)))
    axes: Axes = figure.axes[0]
    return axes
