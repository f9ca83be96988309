"""The run of a method whose settings a sweep has chosen: that of the winning variant, or one that trains with its settings."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from xlgrid.base.files import whole, write_text
from xlgrid.models.deltas import read_run
from xlgrid.training.recipe import Recipe
from xlgrid.training.sweep import read_choice, text_of


def make_winner(recipe: Recipe, choice: Path, folder: Path, train: Callable[[Recipe], None]) -> None:
    """Write the files of a run whose settings were chosen.

    If the winning variant has a run with the seed of the recipe, the files are copies of its files, and `run.json` says in
    `taken_from` which. Otherwise, the run trains with the settings of the winner.

    Args:
        recipe: the recipe with the sweep, before the choice.
        choice: the file of `xlgrid.training.sweep.choose`.
        folder: the folder of the run.
        train: trains by a recipe.

    Raises:
        FileNotFoundError: the choice, or a file of the winner, does not exist.
        ValueError: the choice is of another sweep, or a file is damaged.
    """
    made, swept = read_choice(choice), recipe.sweep
    assert swept
    if not made.items() >= swept.model_dump(mode="json", exclude={"chosen"}).items():
        raise ValueError(
            f"{choice} is the choice of another sweep than that of the recipe: delete it and run the study again"
        )
    fields = recipe.model_dump(mode="json")
    fields["training"] |= made["chosen"]
    fields["sweep"]["chosen"] = made["chosen"]
    winner = next(each for each in made["tried"] if each["settings"] == made["chosen"])
    runs = [Path(line["run"]) for line in winner["runs"] if line["seed"] == recipe.seed]
    print(f"{choice} chose {text_of(made['chosen'])}" + "".join(f", the run in {run}" for run in runs), flush=True)
    if not runs:
        train(Recipe.model_validate(fields))
        return
    record = read_run(runs[0])
    own: dict[str, Any] = {key: fields[key] for key in ("study", "method", "sweep")}
    # The training took its time in the other run. The digest stays that of the recipe by which the weights were trained.
    record |= {"recipe": {**record["recipe"], **own}, "taken_from": str(runs[0]), "seconds": 0.0, "cpu_seconds": 0.0}
    # A copy has a new time, and a link would have the time of the variant's file, which is older than the choice.
    for file in sorted([*runs[0].glob("*.safetensors"), runs[0] / "curve.jsonl"]):
        with whole(folder / file.name) as aside:
            shutil.copyfile(file, aside)
    # run.json comes last, because a run with this file is complete.
    write_text(folder / "run.json", json.dumps(record, ensure_ascii=False, indent=1) + "\n")
