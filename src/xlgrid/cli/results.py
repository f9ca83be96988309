"""Commands that show results: exhibits, claims and reports."""

from pathlib import Path
from typing import Annotated

import typer

from xlgrid.cli.options import Ledger, Output, OutputFolder, StudyName


def exhibit(
    study: StudyName,
    name: str,
    output: OutputFolder,
    published: Annotated[bool, typer.Option("--published", help="compare it with published numbers instead")] = False,
) -> None:
    """Render a table or figure from whatever cells exist."""
    from xlgrid.plan.load import load_plan

    plan = load_plan(study)
    plan.study.exhibit(name).render(name, plan, output, compare=published)


def claims(study: StudyName, output: OutputFolder) -> None:
    """Judge a study's claims from whatever cells exist: effect, interval, p, verdict."""
    from xlgrid.exhibits.claims import render
    from xlgrid.plan.load import load_plan

    plan = load_plan(study)
    render(plan.study, plan.cells, output)


def report(
    study: StudyName,
    notebook: Annotated[Path, typer.Argument(help="the notebook without outputs")],
    output: Annotated[Path, typer.Option(help="the notebook with its outputs, to write")],
    summary: Annotated[Path, typer.Option(help="the table of scores, to write")],
) -> None:
    """Run the notebook of the report, and write the scores of a study, from whatever results exist."""
    from xlgrid.report.notebook import write_report

    write_report(study, notebook, output, summary)


def report_html(
    notebook: Annotated[Path, typer.Argument(help="the notebook with its outputs")], output: Output
) -> None:
    """Make a page of the notebook of a report."""
    from xlgrid.report.notebook import write_page

    write_page(notebook, output)


def partial(
    study: StudyName,
    output: OutputFolder,
    log: Annotated[Path | None, typer.Option(help="Snakemake's log of the run")] = None,
    ledger: Ledger = None,
) -> None:
    """After a failure: list the failed jobs; render every exhibit and judge the claims from whatever cells exist."""
    from xlgrid.plan.load import load_plan
    from xlgrid.report import status
    from xlgrid.report.ledger import FOLDER

    status.partial(load_plan(study), output, ledger or FOLDER, log)
