"""The report as a notebook with its outputs, and as a page of HTML."""

from pathlib import Path
from typing import Any

import nbformat

from xlgrid.base.files import write_text
from xlgrid.base.provenance import provenance
from xlgrid.plan.plan import Plan
from xlgrid.products.report import Partial, Report

# The cell of the notebook that names the study.
FIRST = "load"


def execute(study: str, notebook: Path, output: Path, *, partial: bool = False) -> None:
    """Run the report's notebook for a study in the working directory, and save it with its outputs, or with the error
    of a cell.

    The metadata of the saved notebook have the version of the code and the command that makes the notebook. The
    notebook names the study, but no folder: it reads the results around it, so a copy in another project reads that
    project.

    Args:
        study: the name of the study.
        notebook: the notebook without outputs.
        partial: whether the report is of what `xlgrid partial` has made.

    Raises:
        ValueError: a cell of the notebook failed.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    report = for_study(nbformat.read(notebook, as_version=4), study, partial=partial)
    # The command line of this process has a temporary path of the notebook. The recorded command makes the same report.
    command = (
        f"xlgrid partial {study} --report {notebook}" if partial else f"snakemake --cores all {Report(study).path}"
    )
    report.metadata["made_by"] = provenance() | {"command": command}
    try:
        # Jupyter warns that its kernel and this process talk through a port of this machine.
        quiet = ["--log-level=ERROR"]
        NotebookClient(report, timeout=None, resources={"metadata": {"path": "."}}, extra_arguments=quiet).execute()
    except CellExecutionError as error:
        raise ValueError(f"a cell of {output} failed: {error}") from None
    finally:
        write_text(output, nbformat.writes(report) + "\n")


def for_study(notebook: Any, study: str, *, partial: bool = False) -> Any:
    """The notebook with the name of a study in its first cell."""
    [first] = [cell for cell in notebook.cells if cell.get("id") == FIRST]
    first.source = first.source.replace('"demo"', f'"{study}", partial=True' if partial else f'"{study}"')
    return notebook


def to_html(notebook: Any) -> str:
    """A page with the texts and outputs of a notebook, without scripts and without links to files on the network."""
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
    """Run the report's notebook for a study, and write a table of the existing scores and copies of the study files.

    The copies are those of the study file and of the files that it extends. With them, the notebook can read the
    results after they are moved.

    Args:
        study: the name or the file of the study.
        notebook, output: see `execute`.
        summary: the path of the table.

    Raises:
        ValueError: a cell of the notebook failed.
    """
    from xlgrid.plan.load import copy_study, read_plan
    from xlgrid.report import page

    plan = read_plan(study)
    copy_study(plan)
    execute(plan.study.name, notebook, output)
    write_text(summary, page.summary(page.load(study, Path()).cells).to_csv(index=False, lineterminator="\n"))


def write_partial(plan: Plan, notebook: Path) -> str:
    """Write the report of the cells that exist, after their exhibits and verdicts; returns the path of the page.

    Args:
        notebook: the notebook without outputs.

    Raises:
        ValueError: a cell of the notebook failed.
    """
    from xlgrid.plan.load import copy_study

    copy_study(plan)
    page = Path(Partial(plan.study.name).path_of(Report(plan.study.name).path))
    output = page.with_suffix(".ipynb")
    execute(plan.study.name, notebook, output, partial=True)
    write_page(output, page)
    return str(page)
