"""Commands about a whole study, for people."""

from pathlib import Path
from typing import Annotated

import typer

from xlgrid.cli.options import Ledger, StudyName


def status(
    study: StudyName,
    ledger: Ledger = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="refresh the output until all cells are done or Ctrl-C is pressed")
    ] = False,
    every: Annotated[float, typer.Option(min=0.1, help="the seconds between two refreshes, with --watch")] = 5,
    matrix: Annotated[
        bool,
        typer.Option(
            "--matrix", help="show a matrix of sources and targets for each task, encoder and method, and all failures"
        ),
    ] = False,
) -> None:
    """Show which jobs of a study are done, running, queued and failed, the reasons of failures, and the time left.

    The output fits one screen. Running and queued jobs are those of the submitit executor, which both profiles use.
    """
    from xlgrid.plan.load import load_plan
    from xlgrid.report import status
    from xlgrid.report.ledger import stated
    from xlgrid.report.overview import look

    plan = load_plan(study)
    if watch:
        status.watch(plan, ledger or stated(), every, matrix)
    else:
        status.show(look(plan, ledger or stated()), matrix)


def cost(
    study: StudyName,
    examples: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TASK=TRAIN,DEV,TEST",
            help="the sizes of a task's data, where the study does not state them; TASK:LANGUAGE=... for one language",
        ),
    ] = None,
    tokens: Annotated[
        list[str] | None,
        typer.Option(metavar="TASK=NUMBER", help="the mean number of tokens of an example; TASK may be a kind of task"),
    ] = None,
    tflops: Annotated[
        float,
        typer.Option(help="the TFLOP/s that a GPU sustains in training; the default is 25 % of the peak of an A100"),
    ] = 78,
    evaluation_tflops: Annotated[
        float | None, typer.Option(help="the TFLOP/s that a GPU sustains in evaluation", show_default="as in training")
    ] = None,
    step_ms: Annotated[float, typer.Option(help="the milliseconds that every step takes beside the arithmetic")] = 25,
    measured: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN.json", help="a finished run of the study, whose times replace the three options above"
        ),
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="also write the table of exhibits to this file")] = None,
    gpus: Annotated[int, typer.Option(min=1, help="the number of GPUs that share a pre-training")] = 1,
) -> None:
    """Estimate what a study takes: runs, cells, steps, GPU-hours and disk, for each exhibit.

    Further tables show the time, text and disk of each pre-training, the parameters of each method, and the rows and the pieces per word of
    local data.
    """
    from xlgrid.plan.load import load_plan
    from xlgrid.report import cost

    assumed = cost.assumptions(examples or [], tokens or [], tflops, evaluation_tflops, step_ms)
    cost.show(load_plan(study), assumed, measured, csv, gpus)
