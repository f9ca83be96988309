"""The report as a notebook with its outputs, and as a page of HTML."""

from pathlib import Path
from typing import Any

import nbformat

from xlgrid.base.files import write_text

# The cell of the notebook that names the study.
FIRST = "load"


def execute(study: str, notebook: Path, output: Path) -> None:
    """Run the report's notebook for a study in the working directory, and save it with its outputs.

    The saved notebook names the study, but no folder, so that a copy of it reads the project in which it is run.

    Args:
        study: its name.
        notebook: the notebook without outputs.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed; the notebook is saved with the error.
    """
    from nbclient import NotebookClient

    report = for_study(nbformat.read(notebook, as_version=4), study)
    try:
        NotebookClient(report, timeout=None, resources={"metadata": {"path": "."}}).execute()
    finally:
        write_text(output, nbformat.writes(report) + "\n")


def for_study(notebook: Any, study: str) -> Any:
    """The notebook with the name of this study in its first cell."""
    [first] = [cell for cell in notebook.cells if cell.get("id") == FIRST]
    first.source = first.source.replace('"demo"', f'"{study}"')
    return notebook


def to_html(notebook: Any) -> str:
    """One page without scripts or anything from the network, made of a notebook's texts and outputs."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(
        template_name="template",
        extra_template_basedirs=[str(Path(__file__).parent)],
        exclude_input=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    page: str = exporter.from_notebook_node(notebook)[0]
    return page
