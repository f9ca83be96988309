"""Commands that train and evaluate."""

import json
from operator import add
from pathlib import Path
from typing import Annotated

import typer

from xlgrid.cli.options import EncoderFolder, Output, Pace, RecipeJson, folder_of


def train(
    recipe: RecipeJson,
    encoder: EncoderFolder,
    train: Annotated[list[Path], typer.Option(help="the tokens to train on, of a part of the source")],
    dev: Annotated[
        list[Path],
        typer.Option(help="the tokens to evaluate on, of a part of the source or of one of the `dev_targets`"),
    ],
    output: Output,
    pace: Pace = "{}",
    start: Annotated[
        Path | None, typer.Option(help="the MLM run with whose weights the run begins (`start` of the method)")
    ] = None,
    first: Annotated[
        Path | None,
        typer.Option(help="the run of another task with whose weights the run begins (`start` of the task)"),
    ] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="the tokenizer of the tokens, if it is not the encoder's")
    ] = None,
    choice: Annotated[
        Path | None,
        typer.Option(help="the choice of the settings of the run, of `xlgrid choose` (`sweep` of the study)"),
    ] = None,
    together: Annotated[
        Path | None,
        typer.Option(help="the runs of the group of the run, of `xlgrid train-many`, from which it is taken"),
    ] = None,
) -> None:
    """Train one run; a training that was stopped continues from its last saved state.

    Repeat --train and --dev for each part of a mix.
    """
    from xlgrid.training.loop import train as train_run
    from xlgrid.training.recipe import Recipe
    from xlgrid.training.winner import make_winner

    parsed = Recipe.parse(recipe, pace)
    if together:
        from xlgrid.training.together.archive import take

        take(together, parsed, output)
        return
    begun = [path and folder_of(path) for path in (start, first, tokenizer)]

    def train_by(recipe: Recipe) -> None:
        train_run(recipe, folder_of(encoder), train, dev, output, *begun)

    if choice:
        make_winner(parsed, choice, output, train_by)
    else:
        train_by(parsed)


def train_many(
    recipes: Annotated[list[str], typer.Argument(help="the recipe of each run, as JSON", metavar="RECIPE...")],
    files: Annotated[
        list[str],
        typer.Option(
            help="the inputs of the runs, each as JSON in the order of the recipes: paths by the names of the options of "
            "`xlgrid train`, and `pace`"
        ),
    ],
    encoder: EncoderFolder,
    output: Output,
) -> None:
    """Train several runs on one encoder together, in one forward pass, and write their results to one file.

    A training that was stopped continues from its last saved state.
    """
    from xlgrid.training.recipe import Recipe
    from xlgrid.training.together.archive import train_group
    from xlgrid.training.together.group import Files

    given = [json.loads(text) for text in files]
    parsed = [Recipe.parse(recipe, each["pace"]) for recipe, each in zip(recipes, given, strict=True)]
    begun = [
        [next((folder_of(Path(path)) for path in each.get(name, ())), None) for name in ("start", "first", "tokenizer")]
        for each in given
    ]
    data = [[[Path(path) for path in each[split]] for split in ("train", "dev")] for each in given]
    train_group(parsed, folder_of(encoder), [Files(*each) for each in map(add, data, begun)], output)


def choose(
    sweep: Annotated[str, typer.Option(help="the settings that are tried, and the seeds, as JSON")],
    runs: Annotated[list[Path], typer.Argument(help="the run.json of each run of the variants")],
    output: Output,
) -> None:
    """Choose the settings of training with the best score on the dev set."""
    from xlgrid.training import sweep as sweeps

    sweeps.choose(sweeps.Swept.model_validate_json(sweep), runs, output)


def merge(
    recipe: RecipeJson,
    encoder: EncoderFolder,
    member: Annotated[list[Path], typer.Option(help="a run that is merged, in the order of the recipe")],
    output: Output,
    pace: Pace = "{}",
    start: Annotated[Path | None, typer.Option(help="the MLM run with which these runs begin")] = None,
    tokens: Annotated[list[Path] | None, typer.Option(help="tokens that the operation reads, in this order")] = None,
    dev: Annotated[list[Path] | None, typer.Option(help="tokens that choose among weights, in this order")] = None,
) -> None:
    """Merge runs into one run, without training. Repeat --member, --tokens and --dev for each file."""
    from xlgrid.merging.merge import merge as merge_runs
    from xlgrid.training.recipe import Recipe

    folders = [folder_of(path) for path in member]
    begun = start and folder_of(start)
    merge_runs(Recipe.parse(recipe, pace), folder_of(encoder), folders, output, begun, tokens or [], dev or [])


def evaluate(
    encoder: EncoderFolder,
    tokens: Annotated[Path, typer.Option(help="the tokens of the target's test set")],
    output: Annotated[
        Path,
        typer.Option(
            help="the cell, below any folder: results/STUDY/cells/TASK/ENCODER/METHOD/SOURCE/TARGET/seedSEED.json; the "
            "target qu@1000 means qu, with the checkpoint of its MLM run after step 1000"
        ),
    ],
    run: Annotated[
        Path | None,
        typer.Argument(help="the run: the folder, or delta.safetensors in it; absent: the encoder without training"),
    ] = None,
    mlm_run: Annotated[
        Path | None,
        typer.Argument(help="the MLM run of the target, if there is one: the folder, or delta.safetensors in it"),
    ] = None,
) -> None:
    """Make a cell: evaluate a run, or an encoder without training, on the tokens of a target."""
    from xlgrid.evaluation.cell import evaluate, evaluate_bare
    from xlgrid.products.evaluate import Cell

    cell = Cell.of_file(output)
    cell.check_tokens(tokens)
    identity = cell._asdict()
    if run:
        evaluate(folder_of(run), folder_of(encoder), tokens, identity, output, mlm_run and folder_of(mlm_run))
    else:
        evaluate_bare(identity, folder_of(encoder), tokens, output)
