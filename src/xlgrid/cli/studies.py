"""Commands about a whole study, for people."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import typer

from xlgrid.cli.options import StudyName


def status(
    study: StudyName,
    watch: Annotated[
        bool, typer.Option("--watch", help="refresh the output until all cells are done or Ctrl-C is pressed")
    ] = False,
    matrix: Annotated[
        bool,
        typer.Option(
            "--matrix", help="show a matrix of sources and targets for each task, encoder and method, and all failures"
        ),
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html", help="write a page with all of it to this file instead, with `--watch` again and again"
        ),
    ] = None,
) -> None:
    """Show which jobs of a study are done, running, queued and failed, the reasons for failures, and the time left.

    The output fits one screen. Running and queued jobs are those of the submitit executor, which both profiles use.
    """
    from xlgrid.plan.load import load_plan
    from xlgrid.report import live, status
    from xlgrid.report.ledger import stated
    from xlgrid.report.overview import look

    plan = load_plan(study)
    if page and watch:
        with suppress(KeyboardInterrupt):
            live.follow({page: plan})
    elif page:
        live.write(plan, stated(), page)
    elif watch:
        status.watch(plan, stated(), matrix)
    else:
        status.show(look(plan, stated()), matrix)


def cost(
    study: StudyName,
    measured: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN.json", help="the record of a finished run of the study; its speed replaces the assumed speed"
        ),
    ] = None,
) -> None:
    """Estimate the cost of a study in runs, cells, steps, tokens, operations, GPU-hours and disk, by stage and exhibit.

    A second table shows the parameters that each method trains and stores.
    """
    from xlgrid.plan.load import load_plan
    from xlgrid.report import cost

    cost.show(load_plan(study), measured)


def rename(
    study: StudyName,
    part: Annotated[Literal["task", "encoder", "method"], typer.Argument(help="what has another name now")],
    old: Annotated[str, typer.Argument(help="the name before")],
    new: Annotated[str, typer.Argument(help="the name in the study now")],
) -> None:
    """Move all results of a task, an encoder or a method to its new name, so that nothing is computed again.

    Write the new name into the study first.
    """
    from xlgrid.plan.load import load_plan
    from xlgrid.plan.rename import rename

    print(rename(load_plan(study), part, old, new))


def compare(
    first: StudyName,
    second: Annotated[str, typer.Argument(metavar="OTHER", help="the other study")],
    output: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="also write settings.csv and scores.csv to this folder")
    ] = None,
) -> None:
    """Show what changed from one study to another: settings of their runs, and scores, with intervals.

    Cells with the same task, encoder, method, source, target and seed are compared.
    """
    from xlgrid.plan.load import load_plan
    from xlgrid.report import compare

    compare.show(load_plan(first), load_plan(second), output)


def efficiency(study: StudyName) -> None:
    """Show what the jobs of each rule used of their memory, time and cores, and what to request next time.

    The numbers are those of the submitit executor, which both profiles use, and Snakemake's benchmarks of other jobs.
    """
    from xlgrid.plan.load import load_plan
    from xlgrid.report import efficiency
    from xlgrid.report.ledger import stated

    efficiency.show(load_plan(study), stated())
