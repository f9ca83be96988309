"""Commands that show results: exhibits, claims and reports, and everything behind them."""

import json
from pathlib import Path
from typing import Annotated

import typer

from xlgrid.cli.options import OutputFolder, StudyName


def exhibit(
    study: StudyName,
    name: Annotated[str, typer.Argument(help="the name of the exhibit in the study")],
    output: OutputFolder,
    published: Annotated[
        bool, typer.Option("--published", help="write the comparison with published numbers instead")
    ] = False,
) -> None:
    """Write a table or figure from the cells that exist."""
    from xlgrid.plan.load import read_plan

    plan = read_plan(study)
    plan.study.exhibit(name).render(name, plan, output, compare=published)


def claims(study: StudyName, output: OutputFolder) -> None:
    """Judge the claims of a study from the cells that exist: effect, interval, p, verdict."""
    from xlgrid.exhibits.claims import render
    from xlgrid.plan.load import read_plan

    plan = read_plan(study)
    render(plan.study, plan.cells, output)


def report(
    study: StudyName,
    notebook: Annotated[Path, typer.Argument(help="the notebook without outputs")],
    output: Annotated[Path, typer.Option(help="the notebook with outputs, to write")],
    summary: Annotated[Path, typer.Option(help="the table of scores, to write")],
) -> None:
    """Run the notebook of the report, and write the table of scores, from the results that exist."""
    from xlgrid.report.notebook import write_report

    write_report(study, notebook, output, summary)


def report_html(
    notebook: Annotated[Path, typer.Argument(help="the notebook with outputs")],
    output: Annotated[Path, typer.Option(help="the page to write")],
) -> None:
    """Write the notebook of a report as a page of HTML."""
    from xlgrid.report.notebook import write_page

    write_page(notebook, output)


def partial(
    study: StudyName,
    report: Annotated[
        Path | None,
        typer.Option(
            help="also write a report, from this notebook without outputs: notebooks/report.ipynb", metavar="NOTEBOOK"
        ),
    ] = None,
    log: Annotated[Path | None, typer.Option(help="the log of the run of Snakemake that failed")] = None,
) -> None:
    """List the jobs that failed, and write every exhibit and verdict from the cells that exist.

    The files are in results/{study}/partial/. The report of what exists is report.html there.
    """
    from xlgrid.plan.load import named, read_plan
    from xlgrid.products.report import Partial
    from xlgrid.report import notebook, status
    from xlgrid.report.ledger import stated

    plan = read_plan(study)
    status.partial(plan, stated(), log)
    if report:
        print(f"Open {notebook.write_partial(plan, report)}")
    else:
        print(
            f"{Partial(plan.study.name).folder} has the exhibits of the existing cells. A report of them: "
            f"xlgrid partial {named(plan)} --report notebooks/report.ipynb"
        )


def trace(
    file: Annotated[Path, typer.Argument(help="a table, such as results/demo/exhibits/table03.csv, or a cell")],
    row: Annotated[
        list[str] | None,
        typer.Option(
            help="the row as the table prints it: a label, or all labels with blanks between; repeat it for several"
        ),
    ] = None,
    column: Annotated[list[str] | None, typer.Option(help="the column as the table prints it, likewise")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print all of it as JSON")] = False,
) -> None:
    """Show everything behind a number of a table, and the command that makes it again.

    These are its cells and runs, versions, hashes of files, and locks. Without --row and --column, everything behind the
    whole table is shown.
    """
    from xlgrid.report import trace

    traced = trace.trace(file, row or (), column or ())
    if as_json:
        print(json.dumps(traced, ensure_ascii=False, indent=1, default=float))
    else:
        trace.show(traced)


def checklist(study: StudyName) -> None:
    """Print the Responsible NLP checklist of ACL Rolling Review as Markdown, with what the results of a study say.

    What they do not say is marked for the author.
    """
    from xlgrid.report.checklist import checklist

    print(checklist(study), end="")
