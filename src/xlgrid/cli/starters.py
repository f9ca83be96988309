"""The command that writes starting points."""

from typing import Annotated, Literal

import typer


def new(
    kind: Annotated[
        Literal["study", "task", "method", "language"], typer.Argument(help="study, task, method or language")
    ],
    name: Annotated[
        str, typer.Argument(help="the name of the study, task or method, or the code of the language (sw, qa7)")
    ],
    like: Annotated[
        str | None, typer.Option(help="the language whose lexicon is the starting point", show_default="a related one")
    ] = None,
) -> None:
    """Write the starting point of a study, task, method or language, with comments; it runs without changes.

    The command prints the files that it has written and the commands to run next. It overwrites no file.
    """
    from xlgrid.starters.new import begin

    begun = begin(kind, name, like)
    for path in begun.files:
        typer.echo(f"wrote {path}")
    typer.echo("next:")
    for command in begun.commands:
        typer.echo(f"  {command}")
