"""The report as a notebook with its outputs, and as a page of HTML."""

from pathlib import Path
from typing import Any

import nbformat

from xlgrid.base.files import write_text
from xlgrid.base.provenance import provenance
from xlgrid.products.report import Report

# The cell of the notebook that names the study.
FIRST = "load"


def execute(study: str, notebook: Path, output: Path) -> None:
    """Run the report's notebook for a study in the working directory, and save it with its outputs, or with the error of a cell.
    Its metadata say which code made it, and which command makes it.

    The saved notebook names the study, but no folder: it reads the results around it, and a copy of it in another project reads
    that project.

    Args:
        study: its name.
        notebook: the notebook without outputs.

    Raises:
        ValueError: a cell of the notebook failed.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    report = for_study(nbformat.read(notebook, as_version=4), study)
    # The command line of this process has a path of the notebook that Snakemake deletes; this command makes the same report.
    report.metadata["made_by"] = provenance() | {"command": f"snakemake --cores all {Report(study).path}"}
    try:
        NotebookClient(report, timeout=None, resources={"metadata": {"path": "."}}).execute()
    except CellExecutionError as error:
        raise ValueError(f"a cell of {output} failed: {error}") from None
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


def write_page(notebook: Path, output: Path) -> None:
    """Write the page of a notebook with its outputs."""
    write_text(output, to_html(nbformat.read(notebook, as_version=4)))


def write_report(study: str, notebook: Path, output: Path, summary: Path) -> None:
    """Run the notebook of the report for a study, and write the table of the scores that exist, and copies of the study file and
    those that it extends: with these, the notebook reads the results wherever they are moved.

    Args:
        study: its name, or its file.
        notebook, output: see `execute`.
        summary: the table, to write.

    Raises:
        ValueError: a cell of the notebook failed.
    """
    from xlgrid.plan.load import copy_study, read_plan
    from xlgrid.report import page

    plan = read_plan(study)
    copy_study(plan)
    execute(plan.study.name, notebook, output)
    write_text(summary, page.summary(page.load(study, Path()).cells).to_csv(index=False, lineterminator="\n"))
