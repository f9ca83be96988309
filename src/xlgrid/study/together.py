"""The groups of runs that train together, in one forward pass of their encoder (`together` of `training`)."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from xlgrid.languages.sources import Source
from xlgrid.methods.variants import plain, variant
from xlgrid.products.together import RunGroup

if TYPE_CHECKING:
    from xlgrid.study.schema import Study

# The settings of training that are the same in the runs of a group: those that decide about the length of a training and
# its batches, about the modules that runs share, and the arithmetic. Runs may differ in all other settings.
SAME = ("steps", "epochs", "batch_tokens", "batch_size", "dropout", "precision", "together")


class Axes(NamedTuple):
    """A run, without its study."""

    task: str
    encoder: str
    method: str
    source: Source
    seed: int


def groups(study: "Study") -> dict[tuple[Any, ...], tuple[Axes, ...]]:
    """Each run that trains together with others -> the runs of its group, itself among them.

    The runs with equal values of what a group shares are taken by their seeds, and those of a seed in the order of the
    study, so that a new seed changes at most the last group. A run that would be alone in a group is in none. Runs whose
    settings a sweep chooses, or that are for one target, are in none either; the variants that a sweep tries are.
    """
    if not any("together" in entry.set for entry in study.training):
        return {}
    alike: dict[str, list[Axes]] = defaultdict(list)
    for run in sorted(dict.fromkeys(_runs(study)), key=lambda run: run.seed):
        training = study.recipe_alone(*run).training
        if "together" in training.added and not training.is_for_target:
            values = training.model_dump(mode="json")
            shared = [values[name] for name in SAME]
            axes = [run.task, study.encoder_of(run.encoder, run.source), plain(run.method), shared]
            alike[json.dumps(axes)].append(run)
    parts = []
    for key, runs in alike.items():
        size = json.loads(key)[-1][SAME.index("together")]
        parts += [runs[at : at + size] for at in range(0, len(runs), size)]
    return {run: tuple(part) for part in parts if len(part) > 1 for run in part}


def _runs(study: "Study") -> Iterator[Axes]:
    """The runs of the grids that train on a source, the runs with which these begin, and the runs of variants."""
    for grid in study.grids.values():
        methods = [name for name in grid.methods if _trains(study, name)]
        for axes in product(grid.task, grid.encoder, methods, study.sources(grid), grid.seed):
            run: Axes | None = Axes(*axes)
            while run:
                yield from _tried(study, run)
                run = _first(study, run)


def _trains(study: "Study", method: str) -> bool:
    entry = study.methods[method]
    return entry.is_trained and not entry.derived and not entry.is_aimed(study)


def _tried(study: "Study", run: Axes) -> Iterator[Axes]:
    """The run, or the runs of the variants that a sweep tries for it."""
    swept = study.sweep_of(*run[:4])
    if not swept:
        yield run
        return
    for settings, seed in product(swept.tried, swept.seeds):
        yield run._replace(method=variant(run.method, settings), seed=seed)


def _first(study: "Study", run: Axes) -> Axes | None:
    """The run on the source with which a run begins; see `xlgrid.products.train.Run.first`."""
    is_for_target = study.recipe_alone(*run).training.is_for_target
    task = run.task if is_for_target else study.tasks[run.task].start
    return run._replace(task=task, method=plain(run.method)) if task else None


def group_of(study: "Study", members: tuple[Axes, ...]) -> RunGroup:
    """The product of a group, which has the name of its first run."""
    return RunGroup(study.name, *members[0])


def makers(study: "Study", groups: Mapping[tuple[Any, ...], tuple[Axes, ...]]) -> dict[str, list[str]]:
    """Rule -> the beginnings of the paths of the runs that it takes from groups."""
    beginnings = []
    alike: dict[tuple[str, ...], list[Axes]] = defaultdict(list)
    for run in dict.fromkeys(_runs(study)) if groups else ():
        alike[run[:3]].append(run)
    for axes, runs in alike.items():
        if all(run in groups for run in runs):
            # Studies have thousands of runs, and one pattern matches those of a method.
            beginnings.append(f"runs/{'/'.join(axes)}/*")
        else:
            beginnings += [f"runs/{'/'.join(run[:4])}/seed{run.seed}" for run in runs if run in groups]
    return {"take_run": beginnings}
