"""The command that writes starting points."""

from typing import Annotated, Literal

import typer


def new(
    kind: Annotated[Literal["study", "task", "method", "language"], typer.Argument(help="what to begin")],
    name: Annotated[str, typer.Argument(help="its name; of a language, its ISO 639 code, or a code such as qa7")],
    like: Annotated[
        str | None, typer.Option(help="the language whose lexicon is the starting point", show_default="a related one")
    ] = None,
) -> None:
    """Write a commented starting point of a study, task, method or language, which runs at once."""
    from xlgrid.starters.new import begin

    begun = begin(kind, name, like)
    for path in begun.files:
        typer.echo(f"wrote {path}")
    typer.echo("next:")
    for command in begun.commands:
        typer.echo(f"  {command}")
