"""The command that takes the results of a study to other programs."""

from pathlib import Path
from typing import Annotated

import typer

from xlgrid.cli.options import StudyName


def export(
    study: StudyName,
    output: Annotated[
        Path | None, typer.Option(help="the parquet file to write", show_default="results/STUDY/cells.parquet")
    ] = None,
    tensorboard: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="also write the learning curves to this folder, as TensorBoard event files"
        ),
    ] = None,
    predictions: Annotated[
        bool,
        typer.Option(
            "--predictions",
            help="also write what the models answer in each test example, as predictions.parquet beside the cells",
        ),
    ] = False,
    every_eval_ever: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="also write the cells and their examples to this folder, in the schema of Every Eval Ever",
        ),
    ] = None,
) -> None:
    """Write the cells of a study as one parquet file, with a row for each planned cell.

    A cell without a result has a row without a score.
    """
    from xlgrid.plan.load import read_plan
    from xlgrid.report import every_eval_ever as logs
    from xlgrid.report import export
    from xlgrid.report import predictions as answers

    plan = read_plan(study)
    if tensorboard:
        print(export.export_curves(plan, tensorboard))
    output = output or export.cells_path(plan)
    print(export.export_cells(plan, output))
    if predictions:
        print(answers.export(plan, output.with_name("predictions.parquet")))
    if every_eval_ever:
        print(logs.export(plan, every_eval_ever))


def crate(
    study: StudyName,
    output: Annotated[Path, typer.Option(help="the folder, or the file .zip, to write")],
    licence: Annotated[
        str | None, typer.Option("--license", help="the licence of the results, by its address", show_default="none")
    ] = None,
) -> None:
    """Write a study as a Provenance Run Crate (RO-Crate 1.1): workflow, results, exhibits, and the jobs that made them.

    Weights, tokens and data are not copied: the crate has their SHA-256.
    """
    from xlgrid.plan.load import read_plan
    from xlgrid.report import crate

    print(crate.write(read_plan(study), output, licence))
