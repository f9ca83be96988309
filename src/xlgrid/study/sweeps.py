"""The sweeps of a study: settings of training that are tried for some runs, and chosen by scores on dev sets."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import Field, ValidationError

from xlgrid.base.chains import first_mistakes
from xlgrid.base.settings import Seed, plainly
from xlgrid.languages.sources import Source
from xlgrid.methods.variants import Stated, Value, combinations, plain, settings_of, variant
from xlgrid.study.when import ForRuns
from xlgrid.training.recipe import PACE, Training
from xlgrid.training.sweep import Swept

if TYPE_CHECKING:
    from xlgrid.study.schema import Study

# Setting -> a setting that wins over it.
_LOSES_TO = {"epochs": "steps", "batch_tokens": "batch_size"}


class Runs(NamedTuple):
    """Runs that differ in their seed, or in their target if the method has a run for each target."""

    task: str
    encoder: str
    method: str
    source: Source


class Sweep(ForRuns):
    """Settings of training that are tried for the runs that match `when`. Each combination of values is a variant of the method,
    with runs of its own. The variant with the best mean dev score over the seeds of selection gives the run of the method.

    Runs of tasks of kind `mlm` are not swept, because their dev score is not that of the runs which begin with them, nor are
    encoders, whose training is a key of their own.
    """

    set: dict[str, Annotated[tuple[Stated, ...], Field(min_length=2)]] = Field(
        min_length=1,
        description="setting of training: at least two values, of which the first wins if scores are equal",
    )
    seeds: tuple[Seed, ...] = Field(
        (),
        description="the seeds with which the variants train; absent: the seeds of the grid, so that no winner trains again",
    )
    choose_on: Literal["source", "target"] = Field(
        "source",
        description="source: the dev set of the source; target: the `dev_targets` that `training` sets for these runs; "
        "everything that shows the winner calls it an oracle",
    )
    cells: Literal["winners", "all"] = Field(
        "winners",
        description="winners: only the winners have cells; all: the variants have cells, too, with the seeds of selection",
    )

    def variants(self, study: "Study") -> Iterator[str]:
        """The names of the variants of all methods for which the entry may be."""
        for name in [*study.methods]:
            if self.is_for(study, name):
                with suppress(ValueError):  # `problems` reports a value that cannot be part of a name.
                    yield from [variant(name, settings) for settings in combinations(self.set)]

    def is_for(self, study: "Study", method: str, **axes: str) -> bool:
        """Whether the entry is for the runs of a method with some values on other axes, or for some of these runs."""
        entry = study.methods[method]
        if not entry.is_trained or entry.derived or not self.set.keys().isdisjoint(settings_of(method)):
            return False
        return self.matches(study, {"method": plain(method), "base": entry.base, **axes})

    def problems(self, study: "Study", at: int) -> Iterator[str]:
        """Mistakes in the entry, each as `place: what is wrong`. The grids of the study have none.

        Args:
            at: the place of the entry in the list.
        """
        place = f"sweep.{at}"
        names = [*problems_of_values(self.set, f"{place}.set"), *self.problems_of_when(study, place)]
        yield from first_mistakes(names, self._problems_of_settings(study, place), self._problems_of_runs(study, at))

    def _problems_of_settings(self, study: "Study", place: str) -> Iterator[str]:
        for key, (value, *_) in self.set.items():
            if key == "mix_seed":
                yield f"{place}.set.{key}: a seed is not chosen by its score: leave it out"
            if Training.model_validate({key: value}).is_for_target:
                yield f"{place}.set.{key}: only the variants of a grid are for one target each: leave it out"
        if len(set(self.seeds)) < len(self.seeds):
            yield f"{place}.seeds: a seed is there twice among {', '.join(map(str, self.seeds))}: remove one"
        for encoder, facts in study.facts.items():
            for key in self.set.keys() & facts:
                yield f"encoders.{encoder}.facts.{key}: `sweep` tries values of a setting of this name: choose another name"

    def _problems_of_runs(self, study: "Study", at: int) -> Iterator[str]:
        place = f"sweep.{at}"
        matched = [runs for runs in seeds_of(study) if self.is_for(study, **runs._asdict())]
        # A study that extends another may have fewer runs, and still inherit its sweeps: `training_problems` is a remark then.
        if not matched and not study.extends:
            yield f"{place}.when: no grid has runs that match, except MLM runs, which are not swept: name other runs"
        for runs in matched:
            problems = [*self._problems_of_one(study, at, runs)]
            yield from problems
            if problems:  # The same mistake in the runs of other sources is one mistake.
                return

    def _problems_of_one(self, study: "Study", at: int, runs: Runs) -> Iterator[str]:
        place, named = f"sweep.{at}", f"runs of {runs.method} for {runs.task} on {runs.source} with {runs.encoder}"
        training = study.recipe(*runs, 0).training
        if others := [i for i, other in enumerate(study.sweep[:at]) if other.is_for(study, **runs._asdict())]:
            yield f"{place}.when: `sweep.{others[0]}` is for {named}, too: restrict one of the two with `when`"
        for key, other in _LOSES_TO.items():
            if key in self.set and other not in self.set and getattr(training, other) is not None:
                yield f"{place}.set.{key}: `{other}`, which `training` sets for {named}, wins over `{key}`: sweep `{other}`"
        if self.choose_on == "target" and not training.dev_targets:
            yield f"{place}.choose_on: `training` sets no `dev_targets` for {named}: set them, or choose on the source"
        if self.choose_on == "source" and training.dev_targets:
            yield (
                f"{place}.choose_on: `training` sets `dev_targets` for {named}, so that their dev score is not that of "
                "the source: leave `dev_targets` out there, or write `choose_on: target`"
            )


def problems_of_values(settings: Mapping[str, Sequence[Value]], place: str) -> Iterator[str]:
    """Settings of training and values of which there are no variants, each as `place: what is wrong`."""
    for key, values in settings.items():
        if key in PACE:
            yield f"{place}.{key}: the setting changes no result: leave it out, or set it in `training`"
        if twice := [value for i, value in enumerate(values) if value in values[:i]]:
            yield f"{place}.{key}: {twice[0]} is there twice: leave it out once"
        for value in values:
            try:
                Training.model_validate({key: value})
                variant("", {key: value})
            except ValidationError as error:
                yield f"{place}: {plainly(error)}"
                return
            except ValueError as error:
                yield f"{place}.{key}: {error}"


def seeds_of(study: "Study") -> dict[Runs, list[int]]:
    """Runs of the grids, and of tasks with which these begin -> their seeds."""
    found: dict[Runs, list[int]] = defaultdict(list)
    for grid in study.grids.values():
        methods = dict.fromkeys((*grid.methods, *grid.method))
        for axes in product(study.with_first(grid.task), grid.encoder, methods, study.sources(grid)):
            # The dev score of an MLM run is not that of the runs that begin with it.
            if study.tasks[axes[0]].task.head.has_cells:
                found[Runs(*axes)] += (seed for seed in grid.seed if seed not in found[Runs(*axes)])
    return found


def swept(study: "Study") -> dict[Runs, Swept]:
    """The runs of the grids whose settings are swept."""
    return {
        runs: Swept(
            set=each.set, seeds=each.seeds or (*seeds,), choose_on=each.choose_on, has_cells=each.cells == "all"
        )
        for runs, seeds in (seeds_of(study) if study.sweep else {}).items()
        for each in study.sweep
        if each.is_for(study, **runs._asdict())
    }


def makers(swept: Mapping[Runs, Swept]) -> dict[str, list[str]]:
    """Rule -> the beginnings of the paths of the runs that it makes.

    A run with a seed of selection is the run of the winning variant; any other trains.
    """
    taken: list[str] = []
    for runs, each in swept.items():
        folder = "/".join(("runs", *runs))
        for seed in each.seeds:
            # Of some methods, each target has a run of its own.
            taken += [f"{folder}/seed{seed}", f"{folder}@*/seed{seed}"]
    return {"take_winner": taken}
