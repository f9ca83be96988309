"""A synthetic study with gaps, and the report's notebook run on it."""

from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest

from xlgrid.languages import Language
from xlgrid.report import notebook
from xlgrid.report import page as report
from xlgrid.results.records import MEASURED

NOTEBOOKS = Path(__file__).parents[3] / "notebooks"
NAN = float("nan")
# Nothing before training has been measured.
PREPARATION = pd.DataFrame(columns=["study", "stage", "seconds"])
LANGUAGES = {
    "en": Language("en", "English", "Germanic", "Latn", "ltr"),
    "ar": Language("ar", "العربية", "Semitic", "Arab", "rtl"),
}
RECIPE = {"study": "demo", "task": "logic", "encoder": "mini", "method": "full"}
# As in `run.json`, some keys are those of the recipe, with paths.
RUNS = [
    {
        "recipe": RECIPE,
        "encoder": "results/demo/encoders/mini",
        "seconds": 50,
        "cpu_seconds": 90,
        "device": "cpu",
        "versions": {"torch": "2.13"},
    },
    {
        "recipe": RECIPE,
        "encoder": "results/demo/encoders/mini",
        "seconds": 70,
        "cpu_seconds": 110,
        "device": "cuda",
        "versions": {"torch": "2.13"},
    },
]


def frame(**scores: list[float]) -> pd.DataFrame:
    """Cells of source `en`: method__target -> score by seed."""
    rows = []
    for name, values in scores.items():
        method, target = name.split("__")
        for seed, score in enumerate(values):
            rows.append(("demo", "logic", "mini", method, "en", target, seed, "accuracy", score, 100, 2.0, 3.0, ""))
    names = ["study", "task", "encoder", "method", "source", "target", "seed", "metric", *MEASURED]
    return pd.DataFrame(rows, columns=names)


def study_of(cells: pd.DataFrame, **parts: Any) -> report.Report:
    """A study called demo with these cells."""
    empty: dict[str, Any] = {"exhibits": {}, "curves": pd.DataFrame(), "runs": [], "preparation": pd.DataFrame()}
    texts = ("demo", "A title", "What it is.")
    return report.Report(*texts, languages=LANGUAGES, cells=cells, **empty | parts)


def run_notebook(study: report.Report, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The notebook with its outputs, its cells run here rather than in a kernel, which would take seconds."""
    monkeypatch.setattr(report, "load", lambda name, root=None, partial=False: study if name == study.name else None)
    executed = notebook.for_study(nbformat.read(NOTEBOOKS / "report.ipynb", as_version=4), study.name)
    names: dict[str, Any] = {}
    for cell in executed.cells:
        if cell.cell_type == "code":
            *before, last = cell.source.splitlines()
            exec("\n".join(before), names)
            if " = " in last:
                exec(last, names)
            elif isinstance(value := eval(last, names), report.Html):
                cell.outputs = [nbformat.v4.new_output("display_data", {"text/html": value._repr_html_()})]
    return executed
