"""Commands that make data, text and tokens; the rules in rules/data.smk and rules/encode.smk call them."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from xlgrid.cli.options import (
    Columns,
    EncoderFolder,
    File,
    Json,
    OneSeparator,
    Output,
    RunFolder,
    VocabularyFolder,
    folder_of,
)


def meanings(kind: str, output: Output, options: Json = "{}") -> None:
    """Make the meanings of a generated task, which every language then says."""
    from xlgrid.data.generated import make_meanings

    make_meanings(kind, json.loads(options), output)


def data(kind: str, language: str, meanings: File, output: Output, options: Json = "{}") -> None:
    """Say the meanings of a generated task in a language or pair."""
    from xlgrid.data.generated import make_data

    make_data(kind, json.loads(options), language, meanings, output)


def fetch_data(
    kind: str,
    language: str,
    split: str,
    source: Json,
    lock: File,
    output: Output,
    columns: Columns = "{}",
    unlabelled: Annotated[bool, typer.Option("--unlabelled", help="without labels, which a run then gives")] = False,
) -> None:
    """Fetch one split (train, dev or test) of a task's data in a language from the Hub or from files."""
    from xlgrid.data.fetch import fetch_data

    fetch_data(kind, json.loads(source), language, split, output, lock, json.loads(columns), unlabelled)


def label_data(
    kind: str,
    language: str,
    data: Annotated[Path, typer.Argument(help="rows without labels")],
    run: RunFolder,
    encoder: EncoderFolder,
    vocabulary: VocabularyFolder,
    max_length: Annotated[int, typer.Option(help="tokens")],
    output: Output,
    columns: Columns = "{}",
) -> None:
    """Give data of a task the labels that the model of a run predicts."""
    from xlgrid.evaluation.labels import label_data

    folders = (folder_of(run), folder_of(encoder), folder_of(vocabulary))
    label_data(*folders, data, language, kind, max_length, output, json.loads(columns))


def text(
    language: str,
    output: Output,
    settings: Json = "{}",
    lock: Annotated[Path | None, typer.Option(help="the lock file, for text from the Hub")] = None,
) -> None:
    """Make or fetch text in a language to pre-train on; one id means the same in every language of a world."""
    from xlgrid.data.text import TextSettings, make_text

    make_text(language, output, TextSettings.model_validate_json(settings), lock)


def tokenize(
    kind: str,
    data: Annotated[list[Path], typer.Argument(help="data of a split, and of companions; or a text, or a pair's")],
    vocabulary: VocabularyFolder,
    max_length: Annotated[int, typer.Option(help="tokens")],
    output: Output,
    one_separator: OneSeparator = False,
    stride: Annotated[int, typer.Option(help="tokens that two windows of a long example share")] = 128,
    columns: Columns = "{}",
    split: Annotated[
        Literal["train", "dev", "test"] | None, typer.Option(help="the rows of a text to take", show_default="all")
    ] = None,
    documents: Annotated[Literal["cut", "split", "pack"], typer.Option(help="what becomes of rows of a text")] = "cut",
    dev_rows: Annotated[int, typer.Option(help="most rows for dev, every 50th, and for test, between")] = 10_000,
    lines: Annotated[Literal["joined", "segments"], typer.Option(help="what a line break in a row is")] = "joined",
    options: Json = "{}",
) -> None:
    """Turn a file of data, a text, or the parallel texts of a pair into the tokens of a vocabulary."""
    from xlgrid.data.tokenize import tokenize

    described, folder, of_text = json.loads(columns), folder_of(vocabulary), (split, documents, dev_rows, lines)
    tokenize(data, folder, kind, max_length, output, one_separator, stride, described, *of_text, json.loads(options))
