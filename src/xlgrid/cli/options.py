"""What the commands of `xlgrid` share: how an error is printed, options that several have, and how they name files."""

import logging
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from xlgrid.base.errors import Damaged

Output = Annotated[Path, typer.Option(help="the file or folder to write")]
OutputFolder = Annotated[Path, typer.Option("--output", help="the folder to write to")]
File = Annotated[Path, typer.Option(help="a file or folder that an earlier step made")]
Ledger = Annotated[
    Path | None,
    typer.Option(
        exists=True, file_okay=False, help="the submitit executor's folder", show_default=".snakemake/submitit"
    ),
]
StudyName = Annotated[str, typer.Argument(metavar="STUDY", help="a study's name, such as demo, or its file")]
Json = Annotated[str, typer.Option(help="settings as JSON")]
Layers = Annotated[int | None, typer.Option(min=1, help="that are kept, the first ones", show_default="all")]
Columns = Annotated[str, typer.Option(help="columns and labels of a task of your own, as JSON")]
OneSeparator = Annotated[bool, typer.Option("--one-separator", help="between two segments")]
RunFolder = Annotated[Path, typer.Option(help="a run: its folder or its delta.safetensors")]
OfStudy = Annotated[str | None, typer.Option(help="the study", show_default="that of the run")]
EncoderFolder = Annotated[Path, typer.Option(help="an encoder: its folder or its model.safetensors")]
VocabularyFolder = Annotated[Path, typer.Option(help="a vocabulary: its folder or its tokenizer.json")]


class Commands(TyperGroup):
    """The group of commands. An error that a person can act on is a line without a traceback, the last line of a log, unless
    a line with the damaged results to delete follows. `xlgrid status` reads both lines."""

    def invoke(self, ctx: Any) -> Any:
        logging.basicConfig(level=logging.WARNING, format="%(message)s")
        try:
            return super().invoke(ctx)
        except (ValueError, OSError, FloatingPointError) as error:
            print(f"error: {error}", file=sys.stderr)
            paths = map(os.path.relpath, error.paths if isinstance(error, Damaged) else ())
            # All other files are the user's own, and the workflow cannot make them again.
            if results := [path for path in paths if path.startswith("results/")]:
                print(f"delete: {shlex.join(results)}", file=sys.stderr)
            raise typer.Exit(1) from None


def folder_of(path: Path) -> Path:
    """The folder of a run, encoder or vocabulary that is named by the folder or by a file in it."""
    return path.parent if path.suffix in (".safetensors", ".json") else path


def by_target(option: str, values: list[str]) -> dict[str, Path]:
    """Target -> path, of values TARGET=PATH."""
    pairs = [value.partition("=") for value in values]
    if wrong := [value for value, (_, equals, path) in zip(values, pairs, strict=True) if not (equals and path)]:
        raise ValueError(f"--{option} takes TARGET=PATH, such as en-fr={wrong[0]}, got {wrong[0]!r}")
    return {target: Path(path) for target, _, path in pairs}
