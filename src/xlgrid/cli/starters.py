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
    task: Annotated[str | None, typer.Option(help="for a study: its data set on the Hub, owner/name")] = None,
    data: Annotated[
        str | None,
        typer.Option(help="for a study: the files of its data, such as 'names/{language}/{split}.conll'"),
    ] = None,
    encoder: Annotated[
        str | None, typer.Option(help="owner/name on the Hub, or a folder", show_default="FacebookAI/xlm-roberta-base")
    ] = None,
    languages: Annotated[str, typer.Option(help="codes with commas between them", show_default="all of the data")] = "",
    head: Annotated[str | None, typer.Option(help="the form of the task", show_default="guessed")] = None,
    inputs: Annotated[str, typer.Option(help="the columns that the encoder reads", show_default="guessed")] = "",
    target: Annotated[str | None, typer.Option(help="the column of the answer", show_default="guessed")] = None,
    labels: Annotated[
        str,
        typer.Option(help="the names of the labels, in the order of their numbers", show_default="those of the data"),
    ] = "",
) -> None:
    """Write the starting point of a study, task, method or language, with comments; it runs without changes.

    With --task or --data, the study is about data that exist: the command looks at them, and guesses the rest.

    The command prints the files that it has written and the commands to run next. It overwrites no file.
    """
    from xlgrid.starters.described import Wishes
    from xlgrid.starters.new import begin

    of_languages, of_inputs, of_labels = (
        tuple(part.strip() for part in text.split(",") if part.strip()) for text in (languages, inputs, labels)
    )
    wishes = Wishes(task, data, encoder, of_languages, head, of_inputs, target, of_labels)
    begun = begin(kind, name, like, wishes)
    for path in begun.files:
        typer.echo(f"wrote {path}")
    typer.echo("next:")
    for command in begun.commands:
        typer.echo(f"  {command}")
