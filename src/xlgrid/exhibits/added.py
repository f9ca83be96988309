"""The parameters that methods add to encoders as an exhibit, beside a paper's numbers (Pfeiffer et al. 2020, table 5)."""

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from xlgrid.base.files import write_text
from xlgrid.base.names import unknown
from xlgrid.exhibits.tables import PRINTED, Sheet, latex, markdown, number, to_html

if TYPE_CHECKING:
    from xlgrid.exhibits.schema import Parameters, Published
    from xlgrid.study.schema import Study

MILLION = 1e6
# Column of the table -> columns of the CSV: millions, and percent of the encoder.
OURS = {
    "weights (M)": ("weights", MILLION),
    "% of the encoder": ("weights_percent", 1.0),
    "with biases (M)": ("parameters", MILLION),
    "with biases, %": ("parameters_percent", 1.0),
}
PAPER = {"paper (M)": ("published_millions", 1.0), "paper, %": ("published_percent", 1.0)}


def render(name: str, exhibit: "Parameters", study: "Study", folder: str | Path) -> None:
    """Make the files of an exhibit of parameters, each atomically; the CSV is as `counts` returns it.

    Args:
        name: the exhibit's name, and the stem of its files.
        study: has its encoders and methods.
        folder: where the files go.

    Raises:
        FileNotFoundError: there are no such published numbers.
        ValueError: a method is not for an encoder, an encoder's size is not known, or the published numbers are damaged or
            of something else.
    """
    found = counts(exhibit, study)
    made = sheet(found, exhibit)
    stem = Path(folder) / name
    write_text(f"{stem}.csv", found.to_csv(index=False, lineterminator="\n"))
    write_text(f"{stem}.md", markdown(made))
    write_text(f"{stem}.tex", latex(made, name))
    write_text(f"{stem}.html", to_html(made))


def counts(exhibit: "Parameters", study: "Study") -> pd.DataFrame:
    """A row per encoder and method: `encoder`, `method`, `weights` (of matrices), `parameters` (biases included),
    `encoder_parameters`, `weights_percent` and `parameters_percent` (of those), and, with published numbers,
    `published_millions` and `published_percent` (NaN where the paper has none)."""
    from xlgrid.models.parameters import added, configuration

    rows: list[dict[str, Any]] = []
    for encoder in exhibit.encoders:
        config = configuration(study, encoder)
        for method in exhibit.methods:
            entry = study.methods[method]
            one = added(config, entry.base, entry.options)
            whole = one.weights + one.biases
            sizes = {"weights": one.weights, "parameters": whole, "encoder_parameters": one.encoder}
            shares = {
                "weights_percent": 100 * one.weights / one.encoder,
                "parameters_percent": 100 * whole / one.encoder,
            }
            rows.append({"encoder": encoder, "method": method} | sizes | shares)
    found = pd.DataFrame(rows)
    return found if exhibit.published is None else _beside(found, exhibit.published)


def _beside(found: pd.DataFrame, published: "Published") -> pd.DataFrame:
    paper = read(published.path)
    names = published.names
    keys = [
        (names.get("encoder", {}).get(encoder, encoder), names.get("method", {}).get(method, method))
        for encoder, method in zip(found["encoder"], found["method"], strict=True)
    ]
    known = list(paper.index)
    if not set(keys) & set(known):
        told = unknown("model and method", " ".join(map(str, keys[0])), [" ".join(key) for key in known])
        raise ValueError(f"{published.path} has no number for any entry of the exhibit: {told}")
    theirs = paper.reindex(pd.MultiIndex.from_tuples(keys))
    return found.assign(
        published_millions=theirs["added_params_millions"].to_numpy(),
        published_percent=theirs["percent_of_model"].to_numpy(),
    )


def read(path: str | Path) -> pd.DataFrame:
    """A paper's `added_params_millions` and `percent_of_model`, indexed by `model` and `method`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a column is missing, or a number is none.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no published numbers in {path}: `file` names a CSV in reference/, without its ending")
    try:
        found = pd.read_csv(path, keep_default_na=False).set_index(["model", "method"])
        return found[["added_params_millions", "percent_of_model"]].astype(float)
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"{path} should have the columns model, method, added_params_millions and percent_of_model: {error}"
        ) from error


def sheet(found: pd.DataFrame, exhibit: "Parameters") -> Sheet:
    """The counts as a table.

    Args:
        found: as `counts` returns it.
    """
    columns = OURS | (PAPER if exhibit.published else {})
    lines = []
    for row in found.to_dict("records"):
        for column, (name, unit) in columns.items():
            value = row[name] / unit
            state = "published" if column in PAPER else "complete"
            printed = ("–", "published", "no published number")
            if not isnan(value):
                printed = (number(value, exhibit.digits), state, f"{row[name]:,}" if unit > 1 else f"{value:.4f}")
            keys = {"encoder": row["encoder"], "method": row["method"], "column": column}
            lines.append(keys | dict(zip(PRINTED, printed, strict=True)))
    size = {encoder: count for encoder, count in zip(found["encoder"], found["encoder_parameters"], strict=True)}
    told = ", ".join(f"{encoder} {count / MILLION:.1f}M" for encoder, count in size.items())
    notes = (
        "What one language and one task add, counted on the methods' own modules, without a head. Weights are those of matrices; "
        f"percentages are of all parameters of the encoder ({told})."
    )
    if exhibit.published:
        notes += f" Paper: {exhibit.published.path}, as printed."
    rows = ("encoder", "method")
    return Sheet(exhibit.title, exhibit.caption, notes, rows, [(column,) for column in columns], pd.DataFrame(lines))
