"""Commands that make vocabularies and encoders; the rules in rules/encode.smk call them."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from xlgrid.cli.options import EncoderFolder, File, Json, Layers, Output, VocabularyFolder, folder_of


def vocabulary(texts: list[Path], spec: Json, output: Output) -> None:
    """Train a vocabulary on texts."""
    from xlgrid.data.vocabulary import VocabularyEntry, make_vocabulary

    make_vocabulary(VocabularyEntry.model_validate_json(spec), texts, output)


def fetch_vocabulary(hub: str, lock: File, output: Output, revision: Annotated[str, typer.Option()] = "main") -> None:
    """Fetch a vocabulary from the Hub at the commit that the lock file fixes."""
    from xlgrid.data.encoders import fetch_vocabulary

    fetch_vocabulary(hub, revision, output, lock)


def copy_vocabulary(path: Path, output: Output) -> None:
    """Take over a vocabulary from a folder with tokenizer.json."""
    from xlgrid.data.encoders import copy_vocabulary

    copy_vocabulary(path, output)


def pretrain(
    recipe: Json,
    vocabulary: VocabularyFolder,
    train: Annotated[list[Path], typer.Option(help="tokens of the text of a language or pair")],
    dev: Annotated[list[Path], typer.Option(help="likewise, for evaluations")],
    output: Output,
    pace: Json = "{}",
    begin: Annotated[Path | None, typer.Option(help="the encoder with whose weights it begins")] = None,
    processes: Annotated[int, typer.Option(min=1, help="that share the work, each with a GPU if there is one")] = 1,
) -> None:
    """Pre-train an encoder; repeat --train and --dev for each part of the source. A stopped training goes on from where it was."""
    from xlgrid.training.processes import is_shared, launch

    if processes > 1 and not is_shared():
        raise typer.Exit(launch([sys.executable, "-P", "-m", "xlgrid", *sys.argv[1:]], processes))
    from xlgrid.training.pretraining import pretrain
    from xlgrid.training.recipe import Recipe

    pretrain(Recipe.parse(recipe, pace), folder_of(vocabulary), train, dev, output, begin and folder_of(begin))


def snapshot_encoder(encoder: EncoderFolder, step: Annotated[int, typer.Option()], output: Output) -> None:
    """Make an encoder of the weights that a pre-training has kept after a step."""
    from xlgrid.training.pretraining import take_snapshot

    take_snapshot(folder_of(encoder), step, output)


def fetch_encoder(
    hub: str,
    vocabulary: VocabularyFolder,
    lock: File,
    output: Output,
    revision: Annotated[str, typer.Option()] = "main",
    modules: Json = "{}",
    layers: Layers = None,
) -> None:
    """Fetch an encoder from the Hub at the commit that the lock file fixes."""
    from xlgrid.data.encoders import fetch_encoder

    fetch_encoder(hub, revision, folder_of(vocabulary), output, lock, json.loads(modules), layers)


def copy_encoder(
    path: Path, vocabulary: VocabularyFolder, output: Output, modules: Json = "{}", layers: Layers = None
) -> None:
    """Take over an encoder from a folder in the ordinary Hugging Face layout."""
    from xlgrid.data.encoders import copy_encoder

    copy_encoder(path, folder_of(vocabulary), output, json.loads(modules), layers)
