"""The command that the rule of this paper calls."""

from pathlib import Path
from typing import Annotated

import typer

from xlgrid.cli.options import EncoderFolder, Output, RunFolder, TokenizerFolder, folder_of
from xlgrid.warm import MODELS

# Command -> the modules that it imports when it runs.
LIBRARIES = {"attention": ("xlgrid.papers.foroutan2023.compare", "tokenizers", *MODELS)}


def attention(
    run: RunFolder,
    encoder: EncoderFolder,
    tokenizer: TokenizerFolder,
    tokens: Annotated[
        list[str], typer.Option(metavar="TARGET=FILE", help="the tokens of a target; give the option twice")
    ],
    output: Output,
    mlm_run: Annotated[
        list[str] | None, typer.Option(metavar="TARGET=RUN", help="the MLM run of a target, if there is one")
    ] = None,
    study: Annotated[
        str | None, typer.Option(help="the study of the comparison", show_default="the study of the run")
    ] = None,
) -> None:
    """Compare the attention of a run on two targets."""
    from xlgrid.papers.foroutan2023.compare import compare

    files, runs = (by_target(option, values) for option, values in (("tokens", tokens), ("mlm-run", mlm_run or [])))
    if len(files) != 2:
        raise ValueError(f"attention is compared on two targets, got {len(files)}: give --tokens twice")
    folders = {target: folder_of(path) for target, path in runs.items()}
    compare(folder_of(run), folder_of(encoder), folder_of(tokenizer), files, output, folders, study)


def by_target(option: str, values: list[str]) -> dict[str, Path]:
    """Target -> path, from values of the form TARGET=PATH."""
    pairs = [value.partition("=") for value in values]
    if wrong := [value for value, (_, equals, path) in zip(values, pairs, strict=True) if not (equals and path)]:
        raise ValueError(f"--{option} must be TARGET=PATH, such as en-fr={wrong[0]}, got {wrong[0]!r}")
    return {target: Path(path) for target, _, path in pairs}
