"""Commands that train and evaluate, and that exchange adapters with other libraries."""

from pathlib import Path
from typing import Annotated

import typer

from xlgrid.cli.options import (
    EncoderFolder,
    File,
    Json,
    OfStudy,
    Output,
    RunFolder,
    VocabularyFolder,
    by_target,
    folder_of,
)


def train(
    recipe: Json,
    encoder: EncoderFolder,
    train: Annotated[list[Path], typer.Option(help="tokens of a part of the source")],
    dev: Annotated[list[Path], typer.Option(help="likewise, or of one of the recipe's `dev_targets`, for selection")],
    output: Output,
    pace: Json = "{}",
    start: Annotated[Path | None, typer.Option(help="the run on text that the recipe's `start` names")] = None,
    first: Annotated[Path | None, typer.Option(help="the run of the task that the recipe's `first` names")] = None,
    vocabulary: Annotated[
        Path | None, typer.Option(help="that of the tokens, for text in another vocabulary than the encoder's")
    ] = None,
) -> None:
    """Train one run; repeat --train and --dev for each part of a mix. An interrupted run goes on from where it was."""
    from xlgrid.training.loop import train as train_run
    from xlgrid.training.recipe import Recipe

    parsed = Recipe.parse(recipe, pace)
    begun = (path and folder_of(path) for path in (start, first, vocabulary))
    train_run(parsed, folder_of(encoder), train, dev, output, *begun)


def evaluate(
    encoder: EncoderFolder,
    tokens: File,
    target: Annotated[str, typer.Option(help="a language or pair; as of a step of its run on text: qu@1000")],
    output: Annotated[Path, typer.Option(help="the file to write; without a run, its path says what the cell is")],
    run: Annotated[Path | None, typer.Argument(help="a run, if any: its folder or delta.safetensors")] = None,
    text_run: Annotated[
        Path | None, typer.Argument(help="the target's run on text, if there is one: its folder or delta.safetensors")
    ] = None,
    study: OfStudy = None,
) -> None:
    """Make a cell: evaluate a run, or an encoder without training, on the tokens of a target."""
    from xlgrid.evaluation.cell import evaluate, evaluate_bare
    from xlgrid.results.identity import bare_cell

    if run:
        evaluate(folder_of(run), folder_of(encoder), tokens, target, output, text_run and folder_of(text_run), study)
    else:
        evaluate_bare(bare_cell(output, target)._asdict(), folder_of(encoder), tokens, output)


def attention(
    run: RunFolder,
    encoder: EncoderFolder,
    vocabulary: VocabularyFolder,
    tokens: Annotated[list[str], typer.Option(metavar="TARGET=FILE", help="tokens of a target; give it twice")],
    output: Output,
    text_run: Annotated[
        list[str] | None, typer.Option(metavar="TARGET=RUN", help="the target's run on text, if there is one")
    ] = None,
    study: OfStudy = None,
) -> None:
    """Compare the attention of a run on two targets."""
    from xlgrid.evaluation.attention import compare

    files, runs = (by_target(option, values) for option, values in (("tokens", tokens), ("text-run", text_run or [])))
    if len(files) != 2:
        raise ValueError(f"attention is compared on two targets, got {len(files)}: give --tokens twice")
    folders = {target: folder_of(path) for target, path in runs.items()}
    compare(folder_of(run), folder_of(encoder), folder_of(vocabulary), files, output, folders, study)


def export_adapter(
    run: Annotated[Path, typer.Argument(help="the folder of a run whose method has adapters")],
    encoder: File,
    output: Output,
    safetensors: Annotated[bool, typer.Option("--safetensors", help="instead of pytorch_adapter.bin")] = False,
) -> None:
    """Write the language or task adapters that a run has trained to a folder, as the `adapters` library saves them."""
    from xlgrid.training.adapters import export_adapter

    export_adapter(run, encoder, output, safetensors)
    print(f"{output}: written, for `model.load_adapter` of the adapters library")


def import_adapter(
    place: Annotated[str, typer.Argument(help="a folder; with --lock, owner/name on the Hub")],
    recipe: Json,
    encoder: File,
    output: Output,
    revision: Annotated[str, typer.Option()] = "main",
    lock: Annotated[Path | None, typer.Option(help="the lock file, for weights from the Hub")] = None,
) -> None:
    """Take over an adapter in the layout of AdapterHub as a run on text."""
    from xlgrid.training.adapters import import_adapter
    from xlgrid.training.recipe import Recipe

    import_adapter(Recipe.model_validate_json(recipe), encoder, place, output, revision, lock)
