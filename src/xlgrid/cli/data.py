"""Commands that make data, text and tokens; the rules in rules/data.smk and rules/encode.smk call them."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from xlgrid.cli.options import (
    Columns,
    Kind,
    Language,
    LockFile,
    OneSeparator,
    Output,
    TaskOptions,
    TokenizerFolder,
    folder_of,
)


def meanings(kind: Kind, output: Output, options: TaskOptions = "{}") -> None:
    """Generate the meanings of a task's examples, which `xlgrid data` then expresses in each language."""
    from xlgrid.data.generated import make_meanings

    make_meanings(kind, json.loads(options), output)


def data(
    kind: Kind,
    language: Language,
    meanings: Annotated[Path, typer.Option(help="the file that `xlgrid meanings` has written")],
    output: Output,
    options: TaskOptions = "{}",
) -> None:
    """Write the examples of a generated task in a language or pair, from their meanings."""
    from xlgrid.data.generated import make_data

    make_data(kind, json.loads(options), language, meanings, output)


def fetch_data(
    kind: Kind,
    language: Language,
    split: Annotated[str, typer.Argument(help="train, dev or test")],
    source: Annotated[str, typer.Option(help="where the data come from, in the keys of `data` of a study, as JSON")],
    lock: LockFile,
    output: Output,
    columns: Columns = "{}",
) -> None:
    """Read one split of a task's data in a language from the Hub or from files, and check its rows."""
    from xlgrid.data.fetch import fetch_data

    fetch_data(kind, json.loads(source), language, split, output, lock, json.loads(columns))


def download(
    url: Annotated[str, typer.Argument(help="the address")],
    lock: LockFile,
    output: Output,
    sha256: Annotated[
        str | None, typer.Option(help="the known checksum", show_default="that of the first download")
    ] = None,
    by_hand: Annotated[str | None, typer.Option(help="how a person can get the file; shown in errors")] = None,
) -> None:
    """Download a file, or continue an interrupted download, and check the file."""
    from xlgrid.data.downloads.curl import download

    download(url, output, lock, sha256, by_hand)


def unpack(
    archive: Annotated[Path, typer.Argument(help="the archive: zip, or tar however it is compressed")],
    member: Annotated[str, typer.Argument(help="the path of the file in the archive, or the end of the path")],
    output: Output,
) -> None:
    """Extract a file from an archive."""
    from xlgrid.data.downloads.archives import unpack

    unpack(archive, member, output)


def text(
    language: Annotated[str, typer.Argument(help="the language")],
    output: Output,
    settings: Annotated[str, typer.Option(help="the keys of `text` of a study, as JSON")] = "{}",
    lock: Annotated[Path | None, typer.Option(help="the lock file, for text from the Hub")] = None,
) -> None:
    """Generate or fetch the text in a language.

    Rows of generated texts with the same id have the same meaning.
    """
    from xlgrid.data.text import TextSettings, make_text

    make_text(language, output, TextSettings.model_validate_json(settings), lock)


def tokenize(
    kind: Kind,
    data: Annotated[
        list[Path],
        typer.Argument(
            help="the file of a split, and that of its parallel examples; or a text, or the two texts of a pair"
        ),
    ],
    tokenizer: TokenizerFolder,
    max_length: Annotated[int, typer.Option(help="the most tokens of an input")],
    output: Output,
    one_separator: OneSeparator = False,
    columns: Columns = "{}",
    split: Annotated[
        Literal["train", "dev", "test"] | None,
        typer.Option(help="the split to take of a text", show_default="all rows"),
    ] = None,
    documents: Annotated[
        Literal["cut", "split", "pack"],
        typer.Option(
            help="how rows of a text become inputs: long rows are shortened (cut) or become several inputs (split); "
            "pack fills inputs with several rows"
        ),
    ] = "cut",
    dev_rows: Annotated[int, typer.Option(help="the most rows of a text in its dev set, and in its test set")] = 10_000,
    lines: Annotated[
        Literal["joined", "segments"],
        typer.Option(
            help="how to read a line break in a row of a text: as a space (joined), or as the beginning of the second "
            "segment (segments)"
        ),
    ] = "joined",
    options: TaskOptions = "{}",
) -> None:
    """Write a file of data, a text, or the parallel texts of a pair as tokens of a tokenizer."""
    from xlgrid.data.tokenize import tokenize

    described, folder, of_text = json.loads(columns), folder_of(tokenizer), (split, documents, dev_rows, lines)
    tokenize(data, folder, kind, max_length, output, one_separator, described, *of_text, json.loads(options))
