"""Commands that make tokenizers and encoders; the rules in rules/encode.smk call them."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from xlgrid.cli.options import (
    EncoderFolder,
    HubLock,
    Layers,
    Modules,
    Output,
    Pace,
    RecipeJson,
    Revision,
    TokenizerFolder,
    folder_of,
)

Place = Annotated[str, typer.Argument(help="a folder; with --lock, owner/name on the Hub")]


def tokenizer(
    texts: Annotated[list[Path], typer.Argument(help="the files of the texts")],
    spec: Annotated[str, typer.Option(help="the keys of `tokenizers.NAME` of a study, as JSON")],
    output: Output,
) -> None:
    """Train a tokenizer on texts."""
    from xlgrid.data.tokenizer import TrainedTokenizer, make_tokenizer

    make_tokenizer(TrainedTokenizer.model_validate_json(spec), texts, output)


def fetch_tokenizer(place: Place, output: Output, revision: Revision = "main", lock: HubLock = None) -> None:
    """Fetch a tokenizer from the Hub at the commit that the lock file fixes, or copy one from a folder."""
    from xlgrid.data.encoders import copy_tokenizer, fetch_tokenizer

    if lock:
        fetch_tokenizer(place, revision, output, lock)
    else:
        copy_tokenizer(place, output)


def pretrain(
    recipe: RecipeJson,
    tokenizer: TokenizerFolder,
    train: Annotated[list[Path], typer.Option(help="the tokens to train on, of a language or pair")],
    dev: Annotated[list[Path], typer.Option(help="the tokens to evaluate on, of a language or pair")],
    output: Output,
    pace: Pace = "{}",
    begin: Annotated[Path | None, typer.Option(help="the encoder with whose weights the pre-training begins")] = None,
    processes: Annotated[
        int, typer.Option(min=1, help="the number of processes that share the work, each with a GPU if there is one")
    ] = 1,
) -> None:
    """Pre-train an encoder; a training that was stopped continues from its last saved state.

    Repeat --train and --dev for each language or pair.
    """
    from xlgrid.training.processes import is_shared, launch

    if processes > 1 and not is_shared():
        raise typer.Exit(launch([sys.executable, "-P", "-m", "xlgrid", *sys.argv[1:]], processes))
    from xlgrid.training.pretraining import pretrain
    from xlgrid.training.recipe import Recipe

    pretrain(Recipe.parse(recipe, pace), folder_of(tokenizer), train, dev, output, begin and folder_of(begin))


def checkpoint_encoder(
    encoder: EncoderFolder, step: Annotated[int, typer.Option(help="the step of the pre-training")], output: Output
) -> None:
    """Make an encoder of the weights that a pre-training has stored after a step."""
    from xlgrid.training.pretraining import take_checkpoint

    take_checkpoint(folder_of(encoder), step, output)


def fetch_encoder(
    place: Place,
    tokenizer: TokenizerFolder,
    output: Output,
    revision: Revision = "main",
    lock: HubLock = None,
    modules: Modules = "{}",
    layers: Layers = None,
) -> None:
    """Fetch an encoder from the Hub at the commit that the lock file fixes, or copy one from a folder."""
    from xlgrid.data.encoders import copy_encoder, fetch_encoder

    changes = json.loads(modules), layers
    if lock:
        fetch_encoder(place, revision, folder_of(tokenizer), output, lock, *changes)
    else:
        copy_encoder(place, folder_of(tokenizer), output, *changes)
