"""The parameters that methods add to encoders, beside a paper's numbers (Pfeiffer et al. 2020, table 5)."""

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import Field

from xlgrid.base.names import among, unknown
from xlgrid.exhibits.exhibit import Exhibit, Rendering
from xlgrid.products.encode import Encoder
from xlgrid.results.naming import Published

if TYPE_CHECKING:
    import pandas as pd
    from transformers import PreTrainedConfig, PreTrainedModel

    from xlgrid.exhibits.drawing.sheet import Sheet
    from xlgrid.plan.plan import Plan
    from xlgrid.study.schema import Study

MILLION = 1e6
# Column of the table -> column of the CSV and what it is divided by: millions, and percent of the encoder.
COUNTED = {
    "weights (M)": ("weights", MILLION),
    "% of the encoder": ("weights_percent", 1.0),
    "with biases (M)": ("parameters", MILLION),
    "with biases, %": ("parameters_percent", 1.0),
}
PAPER = {"paper (M)": ("published_millions", 1.0), "paper, %": ("published_percent", 1.0)}


class Added(NamedTuple):
    """Parameters that a method adds to an encoder.

    Attributes:
        weights: the number in matrices.
        biases: the number in everything else.
        encoder: the number in the encoder without the method, with its embeddings, without a head and a pooler.
    """

    weights: int
    biases: int
    encoder: int


class Parameters(Exhibit):
    """How many parameters methods add to encoders, counted on the methods' own modules; needs no runs or cells."""

    kind: Literal["parameters"] = "parameters"
    encoders: tuple[str, ...] = Field(min_length=1, description="encoders of the study")
    methods: tuple[str, ...] = Field(min_length=1, description="methods of the study that add modules")
    digits: int = Field(default=2, ge=0, le=6, description="digits after the decimal point")
    published: Published | None = Field(
        None, description="a CSV with the columns model, method, added_params_millions and percent_of_model"
    )

    @property
    def published_numbers(self) -> Published | None:
        return self.published

    def files(self, compare: bool = False) -> list[str]:
        return [str(self.published.path)] if self.published else []

    def encoders_read(self, study: "Study") -> list[Encoder]:
        """The encoders whose sizes the library does not know."""
        from xlgrid.data.published import HUB

        published = {name: study.encoders[name].repository for name in self.encoders}
        return [Encoder(study.name, name) for name, on_hub in published.items() if not on_hub or on_hub.name not in HUB]

    def settings(self, study: "Study") -> list[str]:
        methods = [study.methods[name].model_dump_json() for name in self.methods]
        # Without defaults, so that a field that encoders get later makes no exhibit again.
        encoders = [study.encoders[name].model_dump_json(exclude_defaults=True) for name in self.encoders]
        return [*super().settings(study), *methods, *encoders]

    def problems(self, study: "Study", axes: Mapping[str, Sequence[object]]) -> Iterator[str]:
        yield from among("encoders", "encoder", self.encoders, study.encoders)
        yield from among("methods", "method", self.methods, study.methods)

    def rendering(self, plan: "Plan") -> Rendering:
        counted = self.counts(plan)
        return Rendering(self.sheet(counted), counted)

    def counts(self, plan: "Plan") -> "pd.DataFrame":
        """The numbers of the exhibit.

        Returns:
            A row per encoder and method: `encoder`, `method`, `weights` (of matrices), `parameters` (biases included),
            `encoder_parameters`, `weights_percent` and `parameters_percent` (of those), and, with published numbers,
            `published_millions` and `published_percent` (NaN where the paper has none).

        Raises:
            ValueError: a method is not for an encoder, an encoder's size is not known, or the published numbers are damaged
                or of something else.
        """
        import pandas as pd

        study = plan.study
        rows: list[dict[str, Any]] = []
        for encoder in self.encoders:
            config = study.encoders[encoder].planned_configuration(plan, encoder)
            for method in self.methods:
                entry = study.methods[method]
                count = added(config, entry.base, entry.options)
                whole = count.weights + count.biases
                sizes = {"weights": count.weights, "parameters": whole, "encoder_parameters": count.encoder}
                shares = {
                    "weights_percent": 100 * count.weights / count.encoder,
                    "parameters_percent": 100 * whole / count.encoder,
                }
                rows.append({"encoder": encoder, "method": method} | sizes | shares)
        counted = pd.DataFrame(rows)
        return counted if self.published is None else _with_published(counted, self.published)

    def sheet(self, counted: "pd.DataFrame") -> "Sheet":
        """The numbers, as `counts` returns them, as a table."""
        import pandas as pd

        from xlgrid.exhibits.drawing.sheet import PRINTED, Sheet, number

        columns = COUNTED | (PAPER if self.published else {})
        lines = []
        for row in counted.to_dict("records"):
            for column, (name, unit) in columns.items():
                value = row[name] / unit
                state = "published" if column in PAPER else "complete"
                printed = ("–", "published", "no published number")
                if not isnan(value):
                    printed = (number(value, self.digits), state, f"{row[name]:,}" if unit > 1 else f"{value:.4f}")
                keys = {"encoder": row["encoder"], "method": row["method"], "column": column}
                lines.append(keys | dict(zip(PRINTED, printed, strict=True)))
        sizes = dict(zip(counted["encoder"], counted["encoder_parameters"], strict=True))
        encoders = ", ".join(f"{encoder} {count / MILLION:.1f}M" for encoder, count in sizes.items())
        notes = (
            "What one language and one task add, counted on the methods' own modules, without a head. Weights are those of "
            f"matrices; percentages are of all parameters of the encoder ({encoders})."
        )
        if self.published:
            notes += f" Paper: {self.published.path}, as printed."
        rows = ("encoder", "method")
        return Sheet(self.title, self.caption, notes, rows, [(column,) for column in columns], pd.DataFrame(lines))


def _with_published(counted: "pd.DataFrame", published: Published) -> "pd.DataFrame":
    import pandas as pd

    from xlgrid.results.published import read_csv

    printed = ["added_params_millions", "percent_of_model"]
    paper = read_csv(published.path, ["model", "method", *printed]).set_index(["model", "method"])[printed]
    try:
        paper = paper.astype(float)
    except ValueError as error:
        raise ValueError(f"{published.path}: {error}, where a number should be: leave out rows without one") from error
    names = published.names
    keys = [
        (names.get("encoder", {}).get(encoder, encoder), names.get("method", {}).get(method, method))
        for encoder, method in zip(counted["encoder"], counted["method"], strict=True)
    ]
    known = list(paper.index)
    if not set(keys) & set(known):
        missing = unknown("model and method", " ".join(map(str, keys[0])), [" ".join(key) for key in known])
        raise ValueError(f"{published.path} has no number for any entry of the exhibit: {missing}")
    numbers = paper.reindex(pd.MultiIndex.from_tuples(keys))
    return counted.assign(
        published_millions=numbers["added_params_millions"].to_numpy(),
        published_percent=numbers["percent_of_model"].to_numpy(),
    )


def added(config: "PreTrainedConfig", base: str, options: Mapping[str, float | int | str | bool]) -> Added:
    """Count what a method adds to an encoder, whether it trains or not.

    Args:
        base, options: of the method, see `xlgrid.methods.make`.

    Raises:
        ValueError: there is no such method, or it is not for this encoder.
    """
    from xlgrid.heads import HEADS
    from xlgrid.methods import make
    from xlgrid.models.load import shapes

    model = shapes(config, HEADS["token"])
    # By numbers, for a method may give a module another name.
    matrices, others = _split(model)
    encoder = sum(p.numel() for p in model.base_model.parameters())
    make(base, options).install(model)
    weights, biases = _split(model)
    return Added(weights - matrices, biases - others, encoder)


def _split(model: "PreTrainedModel") -> tuple[int, int]:
    """Parameters in matrices, and all others."""
    sizes = [(p.dim() > 1, p.numel()) for p in model.parameters()]
    return sum(size for matrix, size in sizes if matrix), sum(size for matrix, size in sizes if not matrix)
