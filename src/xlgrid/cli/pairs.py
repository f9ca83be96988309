"""The command that writes tables of pairs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from xlgrid.cli.options import Output


def distances(
    package: Annotated[Literal["urielplus", "qwals"], typer.Argument(help="the package: urielplus or qwals")],
    languages: Annotated[str, typer.Option(help="codes of languages, as in en,de,sw")],
    output: Output,
    kind: Annotated[
        str | None,
        typer.Option(help="the kind of distance, such as syntactic or onehot", show_default="featural, ordinal"),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="for qwals: the folder with wals-data.csv")] = None,
) -> None:
    """Write distances of an installed package as a table of pairs, which a study names under `pairs`."""
    from xlgrid.languages import language
    from xlgrid.pairs.packages import write

    codes = dict.fromkeys(code.strip() for code in languages.split(",") if code.strip())
    said = write(package, [language(code) for code in codes], kind, data, output)
    typer.echo(f"wrote {output}: {said}")
    typer.echo(f"next:\n  pairs: {{{output.stem}: {output}}}  # in a study")
