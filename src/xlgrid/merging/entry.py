"""The key `merge` of a method in a study: which runs are merged, and how."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, FiniteFloat, PositiveInt, ValidationError, model_validator

from xlgrid.base.names import among
from xlgrid.base.settings import Name, Seed, Strict, plainly
from xlgrid.languages.sources import Source, accompanied
from xlgrid.merging import ALL_OPERATIONS
from xlgrid.merging.operation import Operation
from xlgrid.methods.variants import plain, settings_of
from xlgrid.training.derived import DerivedRuns
from xlgrid.training.recipe import Training

if TYPE_CHECKING:
    from xlgrid.plan.plan import Plan
    from xlgrid.products.encode import Tokens
    from xlgrid.products.train import Run
    from xlgrid.study.schema import Study


class Nearest(Strict):
    """The sources that are nearest to the target by a table of pairs."""

    table: str = Field(description="a table of `pairs` in the study, or a built-in one")
    count: PositiveInt = Field(description="the number of sources")

    def among(self, parts: Iterable[str], target: str, study: "Study") -> list[str]:
        """At most `count` of the parts of a source, the nearest first, without the target and parts without a value.

        Raises:
            FileNotFoundError: there is no file of the table.
            ValueError: there is no such table, or its file has mistakes.
        """
        known = study.pair_values(self.table)
        valued = [part for part in parts if part != target and (part, target) in known.values]
        sign = 1 if known.lowest_is_nearest else -1
        order = sorted(valued, key=lambda part: sign * known.values[part, target])
        for last, following in zip(order[self.count - 1 : self.count], order[self.count :], strict=False):
            if known.values[last, target] == known.values[following, target]:
                raise ValueError(
                    f"merge.of: by table {self.table}, {last} and {following} are equally near to {target}, so that it does not "
                    f"decide which {self.count} are the nearest: write another `count`, or take a table without ties"
                )
        return order[: self.count]


class Members(Strict):
    """Runs that are merged. Their encoder is that of the merged run."""

    method: str = Field(description="the method of the runs, which may be a variant")
    task: Name | None = Field(None, description="the task of the runs; absent: the task of the merged run")
    source: str | None = Field(
        None,
        description="the source of the runs: a language, pair or mix; `target`: the target, so that there is a merged run for "
        "each target; `each`: a run for each part of the merged run's source; absent: that of the merged run",
    )
    seeds: PositiveInt | Annotated[list[Seed], Field(min_length=1)] | None = Field(
        None,
        description="a list: a run for each of these seeds; a number n: n runs, of seeds 1 to n for the merged run of seed 1, n + 1 "
        "to 2n for that of seed 2, and so on; absent: the seed of the merged run, or 1 if only these runs are MLM runs",
    )
    nearest: Nearest | None = Field(
        None,
        description="with `source: each`: only runs on the sources that are nearest to the target, for each target",
    )

    def of(self, run: "Run", study: "Study") -> "list[Run]":
        """The runs that are merged into `run`."""
        target, data = run.source.for_target, run.source.data
        each: list[str] = [*data.parts]
        if self.nearest and target:
            each = self.nearest.among(each, target, study)
        named: dict[str | None, list[str]] = {None: [data], "each": each, "target": [target] if target else []}
        sources = [Source(source) for source in named.get(self.source, [str(self.source)])]
        if target and study.methods[self.method].is_aimed(study):
            sources = [source.aimed_at(target) for source in sources]
        if isinstance(self.seeds, int):
            seeds = [*range((run.seed - 1) * self.seeds + 1, run.seed * self.seeds + 1)]
        else:
            seeds = self.seeds or [run.seed if self.follows_seed(run.task, study) else 1]
        run = run._replace(task=self.task or run.task, method=self.method)
        return [run._replace(source=source, seed=seed) for source in sources for seed in seeds]

    def follows_seed(self, task: str, study: "Study") -> bool:
        """Whether merged runs of a task that differ by their seed are merged from different runs."""
        is_other = has_head(task, study) and not has_head(self.task or task, study)
        return isinstance(self.seeds, int) or not (self.seeds or is_other)

    def problems(self, study: "Study", name: str) -> Iterator[str]:
        """Runs that a study lacks, or that cannot be merged into runs of a method, each as `key: what is wrong`."""
        try:
            source = Source(self.source if self.source not in (None, "each", "target") else study.languages[0])
        except ValueError as error:
            yield f"source: {error}"
            return
        yield from among("source", "language", source.languages, study.languages)
        if self.nearest and self.source != "each":
            yield f"nearest: these are some of the sources of `source: each`, got {f'`source: {self.source}`' if self.source else 'no `source`'}: write both, or neither"
        try:
            _ = self.nearest and self.nearest.among((), "", study)
        except (ValueError, FileNotFoundError) as error:
            yield f"nearest.table: {error}"
        yield from among("task", "task", [self.task] if self.task else [], study.tasks)
        yield from among("method", "method", [self.method], study.methods)
        if self.method not in study.methods:
            return
        other, entry = study.methods[self.method], study.methods[name]
        if not other.is_trained:
            yield f"method: method {self.method} trains nothing and has no runs: name a method with runs"
        elif reason := other.method.unmergeable:
            yield f"method: runs of {self.method} cannot be merged: {reason}. Merge runs of full-ft, bitfit or adapters"
        elif Training.model_validate(dict(settings_of(self.method))).is_for_target:
            yield f"method: each run of {self.method} is for one target: merge runs of {plain(self.method)}"
        if isinstance(self.seeds, list) and len({*self.seeds}) < len(self.seeds):
            yield f"seeds: a seed is twice in {self.seeds}, and its run would count twice: leave it out once"
        theirs, ours = (
            {"base": each.base, "options": each.method.model_dump(exclude_defaults=True), "start": each.start}
            for each in (other, entry)
        )
        if wrong := [key for key, value in ours.items() if theirs[key] != value]:
            yield (
                f"method: {self.method} differs from {name} by `{'`, `'.join(wrong)}`, so that their weights do not have the same "
                "meaning: write the same in both"
            )


class Merge(DerivedRuns, Strict):
    """Runs that are merged from other runs, without training."""

    about = "the runs from which runs of the method are merged, without training: see docs/how-to/merging.md"
    rule = "merge"
    by: str = Field(description="the operation: average, sum, task-arithmetic, ties, dare, fisher, or one of a package")
    options: dict[str, float | int | str | bool] = Field(
        {},
        description="options of the operation: ties has `density` and `scale`, dare has `rate`, fisher `examples` and `floor`",
    )
    of: list[Members] = Field(min_length=1, description="the runs that are merged")
    weights: list[FiniteFloat] | Annotated[list[list[FiniteFloat]], Field(min_length=2)] | None = Field(
        None,
        description="a weight for each entry of `of`, which the runs of the entry share in equal parts; absent: equal weights, "
        "for average, ties and fisher; a list of such lists: the one with the best score on the dev set of the source is taken",
    )

    @model_validator(mode="after")
    def _one_weight_each(self) -> Self:
        for weights in self.tried:
            if weights is not None and len(weights) != len(self.of):
                raise ValueError(f"there are {len(weights)} weights for {len(self.of)} entries of `of`: write as many")
            self.operation.weigh(weights, len(self.of))
        return self

    @cached_property
    def operation(self) -> Operation:
        """The operation with its options."""
        try:
            return ALL_OPERATIONS.find(self.by).model_validate(self.options)
        except ValidationError as error:
            raise ValueError(f"options of {self.by}: {plainly(error)}") from None

    @property
    def tried(self) -> list[list[float] | None]:
        """The lists of weights that are tried; a single one is taken without a trial."""
        weights: Any = self.weights
        return weights if weights and isinstance(weights[0], list) else [weights]

    @property
    def methods(self) -> list[str]:
        return [members.method for members in self.of]

    def weighed(self, run: "Run", study: "Study") -> "list[dict[Run, float]]":
        """For each list of weights: the runs that are merged into `run`, each once, with their weights."""
        groups = [members.of(run, study) for members in self.of]
        members = [member for group in groups for member in group]
        results: list[dict[Run, float]] = []
        for stated in self.tried:
            if not all(groups):
                # `mistakes` tells that there are too few sources near the target.
                return [dict.fromkeys(members, 0.0)]
            shares = [weight / len(group) for group, weight in zip(groups, stated or (), strict=False) for _ in group]
            weights = dict.fromkeys(members, 0.0)
            for member, weight in zip(members, self.operation.weigh(shares or None, len(members)), strict=True):
                weights[member] += weight
            results.append(weights)
        return results

    def runs(self, run: "Run", study: "Study") -> "list[Run]":
        return [*self.weighed(run, study)[0]]

    def gradients(self, run: "Run", study: "Study") -> "dict[Run, int]":
        return dict.fromkeys(self.runs(run, study), self.operation.gradients)

    def evaluated(self, run: "Run", plan: "Plan") -> "list[Tokens]":
        if len(self.tried) == 1:
            return []
        [tokens, *_] = run.tokens(plan, "dev")
        second = run.second_language(plan)
        return [replace(tokens, language=accompanied(part, second)) for part in run.source.parts] * len(self.tried)

    def inputs(self, run: "Run", plan: "Plan") -> dict[str, str | list[str]]:
        members = self.runs(run, plan.study)
        read = [tokens for member in members for tokens in self.operation.reads(member, plan)]
        return {
            "members": [plan.owned(member).delta for member in members],
            "tokens": [plan.owned(tokens).path for tokens in read],
            "dev": [plan.owned(tokens).path for tokens in dict.fromkeys(self.evaluated(run, plan))],
        }

    def recipe(self, run: "Run", study: "Study") -> dict[str, Any]:
        tried, members = self.weighed(run, study), []
        for member in tried[0]:
            digest = hashlib.sha256(study.recipe(*member[1:]).identity().encode()).hexdigest()[:12]
            axes = {axis: value for axis, value in member._asdict().items() if axis != "study"}
            members.append(axes | {"recipe": digest})
        described = {"members": members, "weights": [[*weights.values()] for weights in tried]}
        chosen = {"metric": study.tasks[run.task].task.metric} if len(tried) > 1 else {}
        options = self.operation.model_dump(mode="json", exclude_defaults=True)
        return {"by": self.by, "options": options, **described, **chosen}

    def is_aimed(self, study: "Study") -> bool:
        own = any(members.source == "target" or members.nearest for members in self.of)
        return own or any(study.methods[name].is_aimed(study) for name in self.methods)

    def problems(self, study: "Study", name: str) -> Iterator[str]:
        for i, members in enumerate(self.of):
            yield from (f"merge.of.{i}.{problem}" for problem in members.problems(study, name))

    def problems_in(self, study: "Study", name: str, grid: str) -> Iterator[str]:
        """Merged runs that differ by their source or seed must not be copies, which tests would count as independent."""
        axes, grids = study.grids[grid], [other for other in study.grids.values() if name in other.method]
        seeds = dict.fromkeys(seed for other in grids for seed in other.seed)
        follow_source = any(members.source in (None, "each") for members in self.of)
        for axis, values, follows in (
            ("seed", [*map(str, seeds)], all(any(m.follows_seed(task, study) for m in self.of) for task in axes.task)),
            ("source", [*dict.fromkeys(study.sources(axes))], follow_source),
        ):
            if len(values) > 1 and not follows:
                yield (
                    f"grids.{grid}.{axis}: merge of method {name} names the same runs for every {axis}, got {', '.join(values)}: write "
                    f"one {axis}, or let the runs in `of` follow the {axis} of the merged run"
                )

    def mistakes(self, run: "Run", plan: "Plan") -> Iterator[str]:
        study = plan.study
        for i, members in enumerate(self.of):
            near = members.nearest
            if len(members.of(run, study)) < (near.count if near else 1):
                reason = (
                    "the run has no target, as its source is the target's language already: leave out `source: target`"
                )
                if near:
                    reason = f"table {near.table} has values of too few sources and this target: add values, or lower `count`"
                yield f"merge.of.{i}: there are not enough runs to merge into {run.folder}: {reason}"
                return
        tried = self.weighed(run, study)
        task = study.tasks[run.task].task
        for member in tried[0]:
            other = study.tasks[member.task].task
            if other.head.has_cells and (other.head, other.labels) != (task.head, task.labels):
                yield (
                    f"merge.of: the head of task {member.task} does not fit task {run.task} of {run.folder}: merge runs of tasks of "
                    "one kind with the same labels, and MLM runs"
                )
                return
            name, entry = study.entry(member.task, "train")
            for part in member.source.parts:
                lack = entry.data.lacks(name, "train", part) if entry.data else None
                if lack or (entry.is_generated and not all(map(entry.task.speaks, part.languages))):
                    yield f"merge.of: {member.folder} has no data: {lack or f'{name} cannot be generated in {part}'}"
            if (tokenizer := member.tokenizer(plan)) != study.tokenizer_of(run.encoder):
                yield (
                    f"merge.of: {member.folder} has embeddings of tokenizer {tokenizer}, and only those of the encoder's tokenizer "
                    "can be merged: leave out the `tokenizer` of the task"
                )
        of_heads = min(sum(w for member, w in weights.items() if has_head(member.task, study)) for weights in tried)
        if task.head.has_cells and of_heads <= 0:
            yield (
                f"merge.weights: the weights of the runs with a head for task {run.task} add up to {of_heads:g} in {run.folder}, "
                "and must add up to more than 0: add runs of the task, or change their weights"
            )


def has_head(task: str, study: "Study") -> bool:
    """Whether runs of a task store a head, as MLM runs do not."""
    return study.tasks[task].task.head.has_cells
