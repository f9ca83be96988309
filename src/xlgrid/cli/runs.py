"""Commands that train and evaluate, and that exchange adapters with other libraries."""

from pathlib import Path
from typing import Annotated

import typer

from xlgrid.cli.options import (
    EncoderFolder,
    HubLock,
    Output,
    Pace,
    RecipeJson,
    Revision,
    folder_of,
)


def train(
    recipe: RecipeJson,
    encoder: EncoderFolder,
    train: Annotated[list[Path], typer.Option(help="the tokens to train on, of a part of the source")],
    dev: Annotated[
        list[Path],
        typer.Option(help="the tokens to evaluate on, of a part of the source or of one of the `dev_targets`"),
    ],
    output: Output,
    pace: Pace = "{}",
    start: Annotated[
        Path | None, typer.Option(help="the run on text with whose weights the run begins (`start` of the method)")
    ] = None,
    first: Annotated[
        Path | None,
        typer.Option(help="the run of another task with whose weights the run begins (`start` of the task)"),
    ] = None,
    vocabulary: Annotated[
        Path | None, typer.Option(help="the vocabulary of the tokens, where it is not the encoder's")
    ] = None,
) -> None:
    """Train one run; a training that was stopped continues from its last saved state.

    Repeat --train and --dev for each part of a mix.
    """
    from xlgrid.training.loop import train as train_run
    from xlgrid.training.recipe import Recipe

    parsed = Recipe.parse(recipe, pace)
    begun = (path and folder_of(path) for path in (start, first, vocabulary))
    train_run(parsed, folder_of(encoder), train, dev, output, *begun)


def evaluate(
    encoder: EncoderFolder,
    tokens: Annotated[Path, typer.Option(help="the tokens of the target's test set")],
    cell: Annotated[
        str,
        typer.Option(
            help="STUDY/TASK/ENCODER/METHOD/SOURCE/TARGET/SEED; a target qu@1000 is qu with the run on text as it was after step 1000"
        ),
    ],
    output: Output,
    run: Annotated[
        Path | None,
        typer.Argument(help="the run: the folder, or delta.safetensors in it; absent: the encoder without training"),
    ] = None,
    text_run: Annotated[
        Path | None,
        typer.Argument(help="the run on text of the target, if there is one: the folder, or delta.safetensors in it"),
    ] = None,
) -> None:
    """Make a cell: evaluate a run, or an encoder without training, on the tokens of a target."""
    from xlgrid.evaluation.cell import evaluate, evaluate_bare
    from xlgrid.products.evaluate import Cell

    identity = Cell.named(cell)._asdict()
    if run:
        evaluate(folder_of(run), folder_of(encoder), tokens, identity, output, text_run and folder_of(text_run))
    else:
        evaluate_bare(identity, folder_of(encoder), tokens, output)


def export_adapter(
    run: Annotated[Path, typer.Argument(help="the folder of a run whose method has adapters")],
    encoder: EncoderFolder,
    output: Annotated[Path, typer.Option(help="the folder to write")],
    safetensors: Annotated[
        bool, typer.Option("--safetensors", help="write adapter.safetensors instead of pytorch_adapter.bin")
    ] = False,
) -> None:
    """Write the language or task adapter that a run has trained to a folder, as the `adapters` library saves it."""
    from xlgrid.training.adapters import export_adapter

    export_adapter(run, folder_of(encoder), output, safetensors)
    print(f"{output}: written, for `model.load_adapter` of the adapters library")


def import_adapter(
    place: Annotated[str, typer.Argument(help="the folder of the adapter; with --lock, owner/name on the Hub")],
    recipe: RecipeJson,
    encoder: EncoderFolder,
    output: Output,
    revision: Revision = "main",
    lock: HubLock = None,
) -> None:
    """Take an adapter in the layout of AdapterHub as a run on text, instead of training one."""
    from xlgrid.training.adapters import import_adapter
    from xlgrid.training.recipe import Recipe

    import_adapter(Recipe.model_validate_json(recipe), folder_of(encoder), place, output, revision, lock)
