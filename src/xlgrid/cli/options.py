"""Code that the commands of `xlgrid` share: the printing of errors, common options, and the resolution of folders."""

import logging
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from xlgrid.base.errors import Damaged, is_result

Output = Annotated[Path, typer.Option(help="the file or folder to write")]
OutputFolder = Annotated[Path, typer.Option("--output", help="the folder to write to")]
LockFile = Annotated[
    Path, typer.Option(help="the lock file, which keeps the commit of everything that is fetched from the Hub")
]
HubLock = Annotated[Path | None, typer.Option(help="the lock file, if it comes from the Hub")]
Revision = Annotated[str, typer.Option(help="the branch, tag or commit on the Hub")]
Kind = Annotated[str, typer.Argument(help="the kind of task, such as wikiann or sequence")]
Language = Annotated[str, typer.Argument(help="the language, or the pair, such as en-fr")]
StudyName = Annotated[
    str, typer.Argument(metavar="STUDY", help="the name of a study, such as demo, or the path of a study file")
]
TaskOptions = Annotated[str, typer.Option(help="the options of the task, as JSON")]
RecipeJson = Annotated[str, typer.Option(help="the settings that decide the result, as JSON")]
Pace = Annotated[
    str, typer.Option(help="the settings that do not change the result, such as checkpoint_seconds, as JSON")
]
Modules = Annotated[str, typer.Option(help="language -> name of its module in an X-MOD, as JSON")]
Layers = Annotated[
    int | None, typer.Option(min=1, help="the number of layers to keep, the first ones", show_default="all")
]
Columns = Annotated[str, typer.Option(help="the columns and labels of a task that a study describes, as JSON")]
OneSeparator = Annotated[
    bool, typer.Option("--one-separator", help="put one separator between two segments, whatever the tokenizer does")
]
RunFolder = Annotated[Path, typer.Option(help="the run: the folder, or delta.safetensors in it")]
EncoderFolder = Annotated[Path, typer.Option(help="the encoder: the folder, or model.safetensors in it")]
TokenizerFolder = Annotated[Path, typer.Option(help="the tokenizer: the folder, or tokenizer.json in it")]


class Commands(TyperGroup):
    """The group of commands. An error that a user can act on is printed as one line, without a traceback.

    This is the last line of a log, unless a line with the damaged results to delete follows. `xlgrid status` reads
    both.
    """

    def invoke(self, ctx: Any) -> Any:
        logging.basicConfig(level=logging.WARNING, format="%(message)s")
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # A reader such as `head` has read enough: typer ends the process without a word.
        except (ValueError, OSError, FloatingPointError) as error:
            print(f"error: {error}", file=sys.stderr)
            paths = error.paths if isinstance(error, Damaged) else ()
            if results := [os.path.relpath(path) for path in paths if is_result(path)]:
                print(f"delete: {shlex.join(results)}", file=sys.stderr)
            raise typer.Exit(1) from None


def folder_of(path: Path) -> Path:
    """The folder of a run, encoder or tokenizer, from the path of the folder or of a file in it."""
    return path.parent if path.suffix in (".safetensors", ".json") else path
