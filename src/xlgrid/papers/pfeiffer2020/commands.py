"""The commands that import and export published adapters."""

from pathlib import Path
from typing import Annotated

import typer

from xlgrid.cli.options import EncoderFolder, HubLock, Output, RecipeJson, Revision, folder_of
from xlgrid.warm import MODELS

# Command -> the modules that it imports when it runs.
LIBRARIES = {"import-adapter": ("xlgrid.papers.pfeiffer2020.adapters", *MODELS)}


def export_adapter(
    run: Annotated[Path, typer.Argument(help="the folder of a run whose method has adapters")],
    encoder: EncoderFolder,
    output: Annotated[Path, typer.Option(help="the folder to write")],
) -> None:
    """Write the language or task adapter that a run has trained to a folder, as the `adapters` library saves it."""
    from xlgrid.papers.pfeiffer2020.adapters import export_adapter

    export_adapter(run, folder_of(encoder), output)
    print(f"{output}: written, for `model.load_adapter` of the adapters library")


def import_adapter(
    place: Annotated[str, typer.Argument(help="the folder of the adapter; with --lock, owner/name on the Hub")],
    recipe: RecipeJson,
    encoder: EncoderFolder,
    output: Output,
    revision: Revision = "main",
    lock: HubLock = None,
) -> None:
    """Import an adapter in the layout of AdapterHub as an MLM run, instead of training one."""
    from xlgrid.papers.pfeiffer2020.adapters import import_adapter
    from xlgrid.training.recipe import Recipe

    import_adapter(Recipe.model_validate_json(recipe), folder_of(encoder), place, output, revision, lock)
