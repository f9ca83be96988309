"""The sweeps of a study: settings of training that are tried for some runs, and chosen by scores on dev sets."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field, ValidationError, field_validator

from xlgrid.base.names import unknown
from xlgrid.base.settings import Seed, plainly
from xlgrid.languages.sources import Source
from xlgrid.methods.variants import Value, plain, same, settings_of, variant
from xlgrid.study.when import ForRuns
from xlgrid.training.recipe import ALL_SETTINGS, PACE, Training
from xlgrid.training.sweep import Swept

if TYPE_CHECKING:
    from xlgrid.study.schema import Study

# Settings that are not swept -> why not.
_NOT_SWEPT = {
    **dict.fromkeys(PACE, "it changes no result"),
    "checkpoints": "it changes no result",
    "dev_targets": "scores on different dev sets are not comparable",
    "mix_seed": "a seed is not chosen by its score",
}
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

    set: dict[str, tuple[Value, ...]] = Field(
        min_length=1,
        description="setting of training: at least two values, of which the first wins if scores are equal",
    )
    seeds: tuple[Seed, ...] = Field(
        (),
        description="the seeds with which the variants train; absent: the seeds of the grid, so that no winner trains again",
    )
    choose_on: Literal["source", "target"] = Field(
        "source",
        description="source: the dev set of the source; target: the `dev_targets` that `training` sets for these runs, whereupon "
        "everything that shows the winner calls it an oracle",
    )
    cells: Literal["winners", "all"] = Field(
        "winners",
        description="winners: only the winners have cells; all: the variants have cells, too, with the seeds of selection",
    )

    @field_validator("set")
    @classmethod
    def _can_be_swept(cls, swept: dict[str, tuple[Value, ...]]) -> dict[str, tuple[Value, ...]]:
        known = [key for key in (*Training.model_fields, *ALL_SETTINGS.names()) if key not in {*_NOT_SWEPT, "added"}]
        for key, values in swept.items():
            if key not in known:
                reason = (
                    f"`{key}` is not swept: {_NOT_SWEPT[key]}" if key in _NOT_SWEPT else unknown("setting", key, known)
                )
                raise ValueError(reason)
            if len(values) < 2:
                raise ValueError(
                    f"{key}: a sweep has at least two values, got {len(values)}: set a single value in `training`"
                )
            for at, value in enumerate(values):
                if value in values[:at]:
                    raise ValueError(f"{key}: {value} is there twice: remove one")
                variant("", {key: value})
                try:
                    is_for_target = Training.model_validate({key: value}).is_for_target
                except ValidationError as error:
                    raise ValueError(plainly(error)) from None
                if is_for_target:
                    raise ValueError(f"`{key}` is not swept: only the variants of a grid are for one target each")
        return {key: tuple(map(same, values)) for key, values in swept.items()}

    def variants(self, study: "Study") -> Iterator[str]:
        """The names of the variants of all methods for which the entry may be."""
        named = {key: [values] if isinstance(values, str) else values for key, values in self.when.items()}
        for name, entry in [*study.methods.items()]:
            is_meant = plain(name) in named.get("method", [plain(name)]) and entry.base in named.get(
                "base", [entry.base]
            )
            if is_meant and entry.is_trained and not entry.derived and not self._is_variant(name):
                for values in product(*self.set.values()):
                    yield variant(name, dict(zip(self.set, values, strict=True)))

    def _is_variant(self, method: str) -> bool:
        return not self.set.keys().isdisjoint(settings_of(method))

    def is_for(self, study: "Study", runs: Runs) -> bool:
        """Whether the entry is for some runs of the study."""
        entry = study.methods[runs.method]
        axes = runs._asdict() | {"method": plain(runs.method), "base": entry.base}
        return (
            entry.is_trained and not entry.derived and not self._is_variant(runs.method) and self.matches(study, axes)
        )

    def problems(self, study: "Study", at: int) -> Iterator[str]:
        """Mistakes in the entry, each as `place: what is wrong`. The grids of the study have none.

        Args:
            at: the place of the entry in the list.
        """
        place = f"sweep.{at}"
        wrong = [*self.problems_of_when(study, place)]
        yield from wrong
        if len(set(self.seeds)) < len(self.seeds):
            yield f"{place}.seeds: a seed is there twice among {', '.join(map(str, self.seeds))}: remove one"
        for encoder, facts in study.facts.items():
            for key in self.set.keys() & facts:
                yield f"encoders.{encoder}.facts.{key}: `sweep` tries values of a setting of this name: choose another name"
        tasks = self.when.get("task", [])
        texts = [task for task in ([tasks] if isinstance(tasks, str) else tasks) if not _has_dev_score(study, task)]
        if texts and not wrong:
            yield f"{place}.when.task: runs of {', '.join(texts)} are MLM runs, whose settings are not swept: leave them out"
        elif not wrong:
            matched = [runs for runs in seeds_of(study) if self.is_for(study, runs)]
            if not matched:
                yield f"{place}.when: no grid has runs that match: name other runs, or leave the entry out"
            # The same mistake in the runs of other sources is one mistake.
            yield from next(filter(None, ([*self._problems_of_runs(study, at, runs)] for runs in matched)), [])

    def _problems_of_runs(self, study: "Study", at: int, runs: Runs) -> Iterator[str]:
        place, named = f"sweep.{at}", f"runs of {runs.method} for {runs.task} on {runs.source} with {runs.encoder}"
        training = study.recipe(*runs, 0).training
        if others := [i for i, other in enumerate(study.sweep[:at]) if other.is_for(study, runs)]:
            yield f"{place}.when: `sweep.{others[0]}` is for {named}, too: restrict one of the two with `when`"
        for key in self.set:
            other = _LOSES_TO.get(key)
            if other and other not in self.set and getattr(training, other) is not None:
                yield f"{place}.set.{key}: `{other}`, which `training` sets for {named}, wins over `{key}`: sweep `{other}`, or leave it out there"
        if (self.choose_on == "target") != bool(training.dev_targets):
            yield f"{place}.choose_on: " + (
                f"`training` sets no `dev_targets` for {named}: set them, or choose on the source"
                if self.choose_on == "target"
                else f"`training` sets `dev_targets` for {named}, so that their dev score is not that of the source: leave "
                "`dev_targets` out there, or write `choose_on: target`"
            )


def seeds_of(study: "Study") -> dict[Runs, list[int]]:
    """Runs of the grids, and of tasks with which these begin -> their seeds."""
    found: dict[Runs, list[int]] = defaultdict(list)
    for grid in study.grids.values():
        methods = dict.fromkeys((*grid.methods, *grid.method))
        for axes in product(study.with_first(grid.task), grid.encoder, methods, study.sources(grid)):
            if _has_dev_score(study, axes[0]):
                found[Runs(*axes)] += (seed for seed in grid.seed if seed not in found[Runs(*axes)])
    return found


def _has_dev_score(study: "Study", task: str) -> bool:
    return study.tasks[task].task.head.has_cells


def swept(study: "Study") -> dict[Runs, Swept]:
    """The runs of the grids whose settings are swept."""
    return {
        runs: Swept(
            set=entry.set, seeds=entry.seeds or tuple(seeds), choose_on=entry.choose_on, has_cells=entry.cells == "all"
        )
        for runs, seeds in (seeds_of(study) if study.sweep else {}).items()
        for entry in study.sweep
        if entry.is_for(study, runs)
    }


def makers(study: "Study", swept: Mapping[Runs, Swept]) -> dict[str, list[str]]:
    """Rule -> the beginnings of the paths of the runs that it makes.

    A run with a seed of selection is the run of the winning variant; any other trains.
    """
    paths: dict[str, list[str]] = {"take_winner": [], "train_winner": []}
    for runs, seeds in (seeds_of(study) if swept else {}).items():
        for seed in seeds if runs in swept else ():
            rule = "take_winner" if seed in swept[runs].seeds else "train_winner"
            # Of some methods, each target has a run of its own.
            paths[rule] += ["/".join(("runs", *runs, f"seed{seed}")), "/".join(("runs", *runs)) + f"@*/seed{seed}"]
    return paths
