"""The grids of a study: the products of axes that give its cells and runs."""

from collections.abc import Iterator
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, PositiveInt

from xlgrid.base.chains import first_mistakes
from xlgrid.base.names import among
from xlgrid.base.settings import Name, Seed, Strict
from xlgrid.languages.sources import Source, Target
from xlgrid.methods.variants import Stated, combinations, variant
from xlgrid.study.languages import LANGUAGE
from xlgrid.study.sweeps import problems_of_values
from xlgrid.training.recipe import Training

if TYPE_CHECKING:
    from xlgrid.study.schema import Study


class Grid(Strict):
    """A product of axes. Sources and targets name languages, pairs (en-fr), mixes (en+en-fr, sources only) or groups; the source
    `mix:nli` is one mix of all members of the group `nli`.
    The source of a method without training is `none`.

    A group is a group of the study, or `mono` (every language), `en-X` and `X-en` (pairs of English with every other
    language), `family:Romance`, `script:Cyrl`.
    """

    task: list[Name] = Field(min_length=1, description="tasks of the study")
    encoder: list[Name] = Field(min_length=1, description="encoders of the study")
    method: list[Name] = Field(min_length=1, description="methods of the study")
    source: list[str] = Field(min_length=1, description="what runs train on: languages, pairs, mixes or groups")
    target: list[str] = Field(min_length=1, description="what runs are evaluated on: languages, pairs or groups")
    seed: list[Seed] = Field(min_length=1, description="one run for each seed; a verdict on a claim needs three")
    languages: list[str] = Field(
        [], description="the languages over which groups such as `mono` range; absent: the study's languages"
    )
    checkpoints: list[PositiveInt] = Field(
        [],
        description="steps of the targets' MLM runs. For each step there is a cell target@step, which evaluates with the "
        "weights after that step instead of the last weights. Add the steps to `checkpoints` in the training of these "
        "MLM runs, too",
    )
    vary: dict[str, Annotated[list[Stated], Field(min_length=1)]] = Field(
        {},
        description="setting of training: its values. Each combination of them gives variants of the methods, whose "
        "cells the grid has instead of those of the methods. Exhibits use the settings as axes. See `examples` and "
        "`shots` in Settings of training",
    )

    @cached_property
    def methods(self) -> list[str]:
        """The methods of the cells: those of `method`, or their variants.

        Raises:
            ValueError: a value of `vary` cannot be part of the name of a variant.
        """
        settings = combinations(self.vary)
        return [variant(method, each) if each else method for method in self.method for each in settings]

    @cached_property
    def is_for_target(self) -> bool:
        """Whether each run is for one target: see `xlgrid.training.setting.Setting`."""
        return any(Training.model_validate({key: value}).is_for_target for key, (value, *_) in self.vary.items())

    def problems(self, study: "Study", name: str) -> Iterator[str]:
        """Names that the study lacks, each as `place: what is wrong`.

        Args:
            name: the name of the grid, here and in the other methods.
        """
        place = f"grids.{name}"
        if unknown := [*among(f"{place}.languages", LANGUAGE, self.languages, study.languages)]:
            yield from unknown
            return
        for axis, known in (("task", study.tasks), ("encoder", study.encoders), ("method", study.methods)):
            yield from among(f"{place}.{axis}", axis, getattr(self, axis), known)
        for key in self.task:
            if key in study.tasks and not study.tasks[key].task.head.has_cells:
                yield (
                    f"{place}.task: {key} is of kind {study.tasks[key].kind}, whose runs are MLM runs without "
                    "cells: leave it out, and name it in the `start` of methods; or evaluate on a task of kind "
                    "`perplexity`"
                )
        for axis, kind in (("source", Source), ("target", Target)):
            for value in getattr(self, axis):
                try:
                    members = [*map(kind, study.expand(value, self))]
                except ValueError as error:
                    yield f"{place}.{axis}: {error}"
                else:
                    if not members:
                        yield f"{place}.{axis}: group {value!r} has no members: add some to it, or name another group"
        if len(self.checkpoints) > len(set(self.checkpoints)):
            yield f"{place}.checkpoints: a step is twice in {self.checkpoints}: remove one"
        yield from self._problems_of_vary(study, f"{place}.vary")

    def _problems_of_vary(self, study: "Study", place: str) -> Iterator[str]:
        """Settings and values of which there are no variants, each as `place: what is wrong`."""
        yield from problems_of_values(self.vary, place)
        for key in self.method if self.vary else ():
            entry = study.methods.get(key)
            if entry and (entry.derived or not entry.is_trained):
                yield f"{place}: method {key} trains nothing: put it into a grid without `vary`"
            elif entry and entry.start and entry.start.follows_targets and self.is_for_target:
                yield (
                    f"{place}: cells of method {key} have weights of the MLM run of their target, with which the run on "
                    "their source has not begun: leave the method out, or give it a `start` with `at: source`"
                )

    def problems_of_parts(self, study: "Study", name: str) -> list[str]:
        """Why methods, encoders or tasks of the study do not go together in this grid. `problems` has found none."""
        return first_mistakes(
            (problem for key in self.method for problem in study.methods[key].problems_in(study, key, name)),
            (problem for key in self.encoder for problem in study.encoders[key].problems_in(study, key, name)),
            (
                problem
                for key in study.with_first(self.task)
                for problem in study.tasks[key].problems_in(study, key, name)
            ),
        )

    def problems_of_checkpoints(self, study: "Study", name: str) -> Iterator[str]:
        """MLM runs keep the checkpoints for which the grid asks. The study has no other mistakes."""
        place = f"grids.{name}.checkpoints"
        for encoder, method in product(self.encoder, self.method) if self.checkpoints else ():
            start = study.methods[method].start
            assert start
            if study.methods[start.method].derived:
                yield (
                    f"{place}: cells of {method} are evaluated with the runs of method {start.method}, "
                    "which are made without training and have no steps: leave out `checkpoints`, or train these runs here"
                )
                continue
            texts = {start.of_target(t, s): t for t, s in product(study.targets(self), study.sources(self))}
            for text, target in texts.items():
                if text is None:
                    yield f"{place}: method {method} has no MLM run for target {target}: leave {target} out"
                    continue
                kept = study.recipe(start.task, encoder, start.method, text, start.seed).training.checkpoints
                if missing := [step for step in self.checkpoints if step not in kept]:
                    yield (
                        f"{place}: the MLM run of method {start.method} in {text} keeps "
                        f"{', '.join(map(str, kept)) or 'none'}, not {', '.join(map(str, missing))}: add them to the "
                        f"`checkpoints` that `training` sets {{when: {{task: {start.task}, method: {start.method}}}}}"
                    )
                    break


def problems_of_copies(study: "Study") -> Iterator[str]:
    """Grids of methods that train nothing have one seed for each encoder, because cells of a second seed would be copies that tests
    count as independent. Encoders that differ only by their seeds have different seeds in these grids, because exhibits and claims
    count them as seeds of one encoder.
    """
    # (first replica of an encoder, seed in a grid) -> the replica that has cells with this seed.
    replica_of: dict[tuple[str, int], str] = {}
    seed_of: dict[str, int] = {}
    for name, grid in study.grids.items():
        is_trained = all(study.methods[key].is_trained for key in grid.method)
        for encoder, seed in product(grid.encoder, () if is_trained else grid.seed):
            place = f"grids.{name}.seed"
            if seed_of.setdefault(encoder, seed) != seed:
                yield (
                    f"{place}: without training, all seeds of encoder {encoder} have the same scores, got "
                    f"{seed_of[encoder]}, {seed}: write `seed: [{seed_of[encoder]}]` in all grids of methods that "
                    "train nothing"
                )
            elif (other := replica_of.setdefault((study.replicas[encoder], seed), encoder)) != encoder:
                yield (
                    f"{place}: encoder {encoder} differs from {other} only by its seed, so that exhibits "
                    f"count both as seeds of one encoder, got seed {seed} for both: write another seed for "
                    f"{encoder}, in a grid of its own"
                )
