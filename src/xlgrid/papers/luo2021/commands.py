"""The commands that the rules of this paper call."""

import json
from pathlib import Path
from typing import Annotated

import typer

from xlgrid.cli.options import (
    Columns,
    EncoderFolder,
    Kind,
    Language,
    LockFile,
    Output,
    OutputFolder,
    RunFolder,
    TokenizerFolder,
    folder_of,
)
from xlgrid.warm import MODELS

# Command -> the modules that it imports when it runs.
LIBRARIES = {"label-data": ("xlgrid.papers.luo2021.labels", *MODELS)}


def fetch_unlabelled(
    kind: Kind,
    language: Language,
    source: Annotated[str, typer.Option(help="where the rows come from, in the keys of `data` of a study, as JSON")],
    lock: LockFile,
    output: Output,
    columns: Columns = "{}",
) -> None:
    """Read the training set of a task in a language without labels, for `xlgrid label-data`."""
    from xlgrid.papers.luo2021.labels import fetch_unlabelled

    fetch_unlabelled(kind, json.loads(source), language, output, lock, json.loads(columns))


def label_data(
    kind: Kind,
    language: Language,
    data: Annotated[Path, typer.Argument(help="the file of rows without labels")],
    run: RunFolder,
    encoder: EncoderFolder,
    tokenizer: TokenizerFolder,
    max_length: Annotated[int, typer.Option(help="the maximum number of tokens of an input")],
    output: Output,
    columns: Columns = "{}",
) -> None:
    """Label rows of a task with the predictions of a run's model."""
    from xlgrid.papers.luo2021.labels import label_data

    folders = (folder_of(run), folder_of(encoder), folder_of(tokenizer))
    label_data(*folders, data, language, kind, max_length, output, json.loads(columns))


def join_bitext(
    pair: Annotated[str, typer.Argument(help="the pair of languages, such as en-de")],
    archives: Annotated[
        list[Path], typer.Argument(help="archives of OPUS, each with OPUS's name of the pair, such as de-en.txt.zip")
    ],
    output: OutputFolder,
) -> None:
    """Write the parallel sentences of archives of OPUS as a training, a dev and a test set."""
    from xlgrid.papers.luo2021.bitext import join_bitext

    join_bitext(archives, pair, output)
