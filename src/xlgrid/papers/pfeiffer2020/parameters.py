"""A table of the parameters that methods add to encoders, with a paper's numbers (Pfeiffer et al. 2020, table 5)."""

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
# Column of the table -> column of the CSV, and the divisor of its values.
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
        weights: the number of parameters in matrices.
        biases: the number of all other parameters.
        encoder: the number of parameters of the encoder without the method, including its embeddings, without a head
            and a pooler.
    """

    weights: int
    biases: int
    encoder: int


class Parameters(Exhibit):
    """A table of the numbers of parameters that methods add to encoders, counted in the modules of the methods. It
    needs no results."""

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

    def files(self, study: "Study", compare: bool = False) -> list[str]:
        return [str(self.published.path)] if self.published else []

    def encoders_read(self, study: "Study") -> list[Encoder]:
        """The encoders whose sizes are known only from their files."""
        from xlgrid.data.published import HUB

        published = {name: study.encoders[name].repository for name in self.encoders}
        return [Encoder(study.name, name) for name, on_hub in published.items() if not on_hub or on_hub.name not in HUB]

    def settings(self, study: "Study") -> list[str]:
        methods = [study.methods[name].model_dump_json() for name in self.methods]
        # Defaults are left out, so that new fields of encoders do not render the exhibit again.
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
            A row per encoder and method, with the columns `encoder`, `method`, `weights` (in matrices), `parameters`
            (including biases), `encoder_parameters`, `weights_percent` and `parameters_percent` (of the encoder's
            parameters) and, with published numbers, `published_millions` and `published_percent` (NaN if the paper has
            no number).

        Raises:
            ValueError: a method does not support an encoder, the size of an encoder is unknown, or the published
                numbers are damaged or do not match the exhibit.
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
        """The result of `counts` as a table."""
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
            "The parameters that a language and a task add, counted in the modules of the methods, without a head. "
            f"Weights are those in matrices; percentages are of all parameters of the encoder ({encoders})."
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
        raise ValueError(
            f"{published.path}: {error}, but expected a number: leave out rows without a number"
        ) from error
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
    """Count the parameters that a method adds to an encoder, including parameters that do not train.

    Args:
        config: the configuration of the encoder.
        base, options: see `xlgrid.methods.make`.

    Raises:
        ValueError: the method does not exist, or does not support this encoder.
    """
    from xlgrid.heads import HEADS
    from xlgrid.methods import make
    from xlgrid.models.load import shapes

    model = shapes(config, HEADS["token"])
    # Only numbers are compared, because a method may rename a module.
    matrices, others = _split(model)
    encoder = sum(p.numel() for p in model.base_model.parameters())
    make(base, options).install(model)
    weights, biases = _split(model)
    return Added(weights - matrices, biases - others, encoder)


def _split(model: "PreTrainedModel") -> tuple[int, int]:
    """The number of parameters in matrices, and the number of all other parameters."""
    sizes = [(p.dim() > 1, p.numel()) for p in model.parameters()]
    return sum(size for matrix, size in sizes if matrix), sum(size for matrix, size in sizes if not matrix)
