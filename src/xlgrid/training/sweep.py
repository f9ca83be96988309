"""A sweep of a run: the settings of training that are tried, and the choice among them by their scores on dev sets."""

import json
from collections.abc import Mapping, Sequence
from math import fsum, isnan
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from xlgrid.base.errors import Damaged
from xlgrid.base.files import write_text
from xlgrid.base.settings import Seed, Strict
from xlgrid.heads import metric
from xlgrid.languages.sources import Source
from xlgrid.methods.variants import Value, combinations, settings_of
from xlgrid.models.deltas import read_run


class Swept(Strict):
    """The sweep of a run, in the recipe of the run. The settings of the recipe itself are those without the sweep."""

    set: dict[str, tuple[Value, ...]]
    seeds: tuple[Seed, ...]
    choose_on: Literal["source", "target"] = "source"
    chosen: dict[str, Value] = Field(default={}, description="in the record of a finished run: the settings that won")
    # Whether cells of the variants exist, which changes no result.
    has_cells: bool = Field(default=False, exclude=True)

    @property
    def tried(self) -> list[dict[str, Value]]:
        """All combinations of the values."""
        return combinations(self.set)


def text_of(settings: Mapping[str, Value]) -> str:
    """Settings in words, such as `lr 2e-05, epochs 5`."""
    return ", ".join(f"{key} {value}" for key, value in settings.items())


def choose(swept: Swept, runs: Sequence[Path], output: Path) -> None:
    """Choose the settings with the best dev score, and write a JSON of everything that was tried.

    The score of settings is the mean of `dev_score` (of the weights that each run keeps) over the seeds of selection. If
    several settings have the best mean, the first of them in the order of the study wins. A mean that is not a number
    never wins.

    Args:
        swept: the sweep.
        runs: the `run.json` of the runs of all variants with all seeds of selection.
        output: the file to write.

    Raises:
        FileNotFoundError: a run has not finished.
        ValueError: a run is missing or damaged, or no mean is a number.
    """
    found = {}
    for path in runs:
        record = read_run(path.parent)
        of_method = settings_of(record["recipe"]["method"])
        found[*(of_method.get(key) for key in swept.set), record["recipe"]["seed"]] = path, record
    tried: list[dict[str, Any]] = []
    for settings in swept.tried:
        lines: list[dict[str, Any]] = []
        for seed in swept.seeds:
            if (*settings.values(), seed) not in found:
                raise ValueError(
                    f"there is no run of {text_of(settings)} with seed {seed}: name the runs of all variants"
                )
            path, record = found[*settings.values(), seed]
            entries = {name: record.get(name) for name in ("dev_score", "best_step", "steps", "seconds")}
            lines.append({"seed": seed, "run": str(path.parent), **entries})
        mean = fsum(line["dev_score"] for line in lines) / len(lines)
        tried.append({"settings": settings, "mean": mean, "runs": lines})
    name, recipe = record["metric"], record["recipe"]
    numbers = [each for each in tried if not isnan(each["mean"])]
    if not numbers:
        raise ValueError(f"the {name} of all {len(tried)} settings on the dev set is not a number: try other settings")
    # Of equal means, `max` and `min` return the first.
    best = (max if metric(name).higher_is_better else min)(numbers, key=lambda each: each["mean"])
    choice = {
        **{axis: recipe[axis] for axis in ("task", "encoder", "source")},
        "metric": name,
        **swept.model_dump(mode="json", exclude={"chosen"}),
        "dev": recipe["training"]["dev_targets"] or [*Source(recipe["source"]).parts],
        "chosen": best["settings"],
        "mean": best["mean"],
        "ties": sum(each["mean"] == best["mean"] for each in tried) - 1,
        "at_bounds": at_bounds(swept, best["settings"]),
        "runs": len(tried) * len(swept.seeds),
        "seconds": fsum(line["seconds"] for each in tried for line in each["runs"]),
        "tried": tried,
    }
    write_text(output, json.dumps(choice, ensure_ascii=False, indent=1) + "\n")


def at_bounds(swept: Swept, chosen: Mapping[str, Value]) -> dict[str, str]:
    """Setting -> `smallest` or `largest`, for each number that is the smallest or the largest that was tried."""
    numbers = {key: values for key, values in swept.set.items() if not any(isinstance(v, bool | str) for v in values)}
    ends = {key: {min(values): "smallest", max(values): "largest"} for key, values in numbers.items()}
    return {key: ends[key][chosen[key]] for key in ends if chosen[key] in ends[key]}


def read_choice(path: Path) -> dict[str, Any]:
    """The contents of a file of `choose`.

    Raises:
        ValueError: the file is damaged.
    """
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise Damaged(f"{path} is damaged ({error}): delete it and run the study again", path) from error
