"""Commands about a whole study, for people."""

from pathlib import Path
from typing import Annotated

import typer

from xlgrid.cli.options import Ledger, StudyName


def status(
    study: StudyName,
    ledger: Ledger = None,
    watch: Annotated[bool, typer.Option("--watch", help="show it anew until all is done or Ctrl-C is pressed")] = False,
    every: Annotated[float, typer.Option(min=0.1, help="seconds between two looks of --watch")] = 5,
    matrix: Annotated[
        bool, typer.Option("--matrix", help="show all source x target matrices and all failures")
    ] = False,
) -> None:
    """Show on one screen what of a study is done, running, queued and failed; the time left; why failures failed.

    What runs and what is queued is known of jobs that the submitit executor runs.
    """
    from xlgrid.plan.load import load_plan
    from xlgrid.report import status
    from xlgrid.report.ledger import FOLDER
    from xlgrid.report.overview import look

    plan = load_plan(study)
    if watch:
        status.watch(plan, ledger or FOLDER, every, matrix)
    else:
        status.show(look(plan, ledger or FOLDER), matrix)


def cost(
    study: StudyName,
    examples: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TASK=TRAIN,DEV,TEST",
            help="how many, where the study does not say; in one language TASK:LANGUAGE=...",
        ),
    ] = None,
    tokens: Annotated[
        list[str] | None, typer.Option(metavar="TASK=NUMBER", help="tokens per example; a kind of task goes too")
    ] = None,
    tflops: Annotated[float, typer.Option(help="TFLOP/s that a GPU sustains in training: 25 % of an A100's")] = 78,
    evaluation_tflops: Annotated[
        float | None, typer.Option(help="the same of evaluation", show_default="as in training")
    ] = None,
    step_ms: Annotated[float, typer.Option(help="milliseconds of a step beside that, whatever its size")] = 25,
    measured: Annotated[
        Path | None, typer.Option(metavar="RUN.json", help="a run of the study that is done, instead of these three")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="write the table of exhibits there, too")] = None,
    gpus: Annotated[int, typer.Option(min=1, help="that share a pre-training, for its days")] = 1,
) -> None:
    """Estimate what a study takes: runs, cells, steps, GPU-hours and disk per exhibit; time, text and disk per pre-training;
    parameters per method; rows and pieces per word of local data."""
    from xlgrid.plan.load import load_plan
    from xlgrid.report import cost

    assumed = cost.assumptions(examples or [], tokens or [], tflops, evaluation_tflops, step_ms)
    cost.show(load_plan(study), assumed, measured, csv, gpus)
