"""The tasks of a study: what an example is, and where the data come from."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, PositiveInt, ValidationError, model_validator

from xlgrid.base.chains import chain
from xlgrid.base.names import among
from xlgrid.base.settings import Name, Strict, plainly
from xlgrid.data.origins.origin import SPLITS
from xlgrid.data.sources import DataSource
from xlgrid.heads.head import Mix
from xlgrid.languages.sources import Source, Target
from xlgrid.study.languages import LANGUAGE
from xlgrid.synthetic.artificial import Dials
from xlgrid.tasks import Columns, Task, mlm, task

if TYPE_CHECKING:
    from xlgrid.study.schema import Study


class Splits(Strict):
    """Numbers of examples in the splits of data."""

    train: PositiveInt | None = Field(None, description="examples of the training set; for a text: all rows")
    dev: PositiveInt | None = Field(None, description="examples of the dev set")
    test: PositiveInt | None = Field(None, description="examples of the test set")


class Sizes(Splits):
    """Numbers of examples in the splits of a task's data in each language or pair."""

    languages: dict[str, Splits] = Field({}, description="language or pair: its numbers, if they differ")


class TaskEntry(Columns):
    """A task and its data. `kind` is a benchmark with columns of its own, or a head, which needs `inputs`, `target` and `labels`.

    `data` says where the data come from. Without `data`, the kinds `mlm` and `perplexity` use the texts of the study,
    and data of other kinds are generated as `options` say. Runs of a task of kind `mlm` have no cells: they are MLM
    runs, with whose weights runs of other tasks begin (`start` of a method).
    """

    kind: str = Field(
        description="a head, such as sequence, token or span, or a benchmark with columns of its own, such as xnli or "
        "wikiann: docs/how-to/task.md lists both"
    )
    options: dict[str, Any] = Field(
        {}, description="options of the kind, such as the size and content of generated data"
    )
    data: DataSource | None = Field(
        None, description="where the data come from; absent: they are generated, or are the texts of the study"
    )
    examples: Sizes | None = Field(
        None,
        description="numbers of examples in each language, which `xlgrid cost` uses until the data are here; not "
        "needed for generated data",
    )
    max_length: PositiveInt = Field(512, description="most tokens of an input")
    metric: str | None = Field(
        None,
        description="the main metric, such as `macro-f1` or `f1:positive`, which chooses checkpoints on the dev set and "
        "is shown where an exhibit or claim names no other: docs/how-to/task.md lists those of each kind; absent: the "
        "first one of the kind",
    )
    start: Name | None = Field(
        None,
        description="a task of the study; a run begins with all weights of that task's run with the same method, "
        "including the head",
    )
    tokenizer: str | None = Field(
        None,
        description="for tasks of kind `mlm`: the tokenizer of their runs, and of runs that begin with them, if it "
        "is not the encoder's; the runs train embeddings of its tokens. {language} is replaced by the language of "
        "the run",
    )
    trained_on: str | None = Field(
        None, description="another task of the study with the same head; the runs train on its training and dev sets"
    )
    mix: Mix | None = Field(
        None,
        description="how the runs of the task use the parts of a mix. shares: the parts are parallel, and each "
        "example comes from one of them; whole: all rows of each part (translate-train-all); absent: `whole` for "
        "kinds whose examples have no labels, such as `mlm`, else `shares`",
    )
    parallel: str | None = Field(
        None,
        description="for methods with the option `parallel`: another task of the study with this head. Its test set in a "
        "language has the test examples of this task in that language, translated into the language of parallel "
        "examples. Absent: the parallel examples are this task's own test set in the language of parallel examples",
    )
    separators: Literal["tokenizer", "one"] = Field(
        "tokenizer",
        description="separators between two segments: as many as the tokenizer writes, or one (Foroutan et al. 2023's "
        "code)",
    )

    def mix_of(self, source: Source) -> Mix | None:
        """How a run on a source uses the parts of a mix; None if there is no mix, or for the default of the head."""
        return self.mix if len(source.parts) > 1 and self.mix != self.task.head.mixes[0] else None

    def tokenizer_in(self, language: str) -> str | None:
        """The name of the tokenizer of a run in a language; None for the encoder's tokenizer."""
        return self.tokenizer and self.tokenizer.replace("{language}", language)

    @cached_property
    def task(self) -> Task:
        """The task that the entry names or describes."""
        described = task(self.kind, self.columns)
        main, usual = (described.head.metric(described.labels, name).name for name in (self.metric, None))
        return described if main == usual else replace(described, metric=main)

    @property
    def columns(self) -> dict[str, Any]:
        """The columns and labels that the entry describes; empty if its kind is a benchmark."""
        return {name: value for name in Columns.model_fields if (value := getattr(self, name))}

    @model_validator(mode="after")
    def _has_data(self) -> Self:
        if self.from_text and (self.task.target or self.task.head.has_pairs_only):
            labels = " with `labels` of their own" if self.labels and not self.inputs else ""
            raise ValueError(f"data of kind {self.kind}{labels} cannot be generated: name their source in `data`")
        return self

    @model_validator(mode="after")
    def _mixes(self) -> Self:
        allowed = self.task.head.mixes if self.task.head.is_trained else ()
        if self.mix and self.mix not in allowed:
            raise ValueError(
                f"mixes of kind {self.kind} take their parts by {' or '.join(allowed)}, got `mix: {self.mix}`: leave it out"
                if allowed
                else f"runs of kind {self.kind} train on nothing: leave out `mix`"
            )
        return self

    @model_validator(mode="after")
    def _options_exist(self) -> Self:
        try:
            _ = self.options_without_defaults
        except ValidationError as error:
            raise ValueError(f"options: {plainly(error)}") from None
        return self

    @cached_property
    def options_without_defaults(self) -> dict[str, Any]:
        """The options that differ from the task's defaults, as JSON, in the order of the task's `Options`."""
        options = self.task.Options.model_validate(self.options, context={"fetched": self.data is not None})
        return options.model_dump(mode="json", exclude_defaults=True)

    @model_validator(mode="after")
    def _data_suit(self) -> Self:
        if self.data:
            self.data.check_task(self.task)
        return self

    @model_validator(mode="after")
    def _text_is_text(self) -> Self:
        wrong = [name for name in ("start", "trained_on") if getattr(self, name)]
        if wrong and not self.task.target:
            raise ValueError(
                f"runs of a task of kind {self.kind} begin with the encoder, and train on the task's own data: leave "
                f"out {' and '.join(f'`{name}`' for name in wrong)}"
            )
        if self.tokenizer and self.task.head.has_cells:
            raise ValueError(
                "only the runs of a task of kind mlm train embeddings of another tokenizer: leave out `tokenizer`"
            )
        if self.inputs and self.from_text:
            raise ValueError(
                "`inputs` names columns of `data`, but this task reads the texts of the study: leave it out"
            )
        return self

    def problems(self, study: "Study", name: str) -> Iterator[str]:
        """Names that the study lacks, and other tasks that do not suit this one, each as `place: what is wrong`.

        Args:
            name: the name of the task, here and in the other methods.
        """
        place = f"tasks.{name}"
        # A study that extends another may generate its data instead, in other languages.
        parts = self.examples.languages if self.examples and self.data else ()
        codes = [code for part in parts for code in Target(part).languages]
        yield from among(f"{place}.examples.languages", LANGUAGE, codes, study.languages)
        # The plan knows the languages of a tokenizer with {language}.
        if self.tokenizer and "{language}" not in self.tokenizer:
            yield from among(place, "tokenizer", [self.tokenizer], study.all_tokenizers)
        others = {key: other for key, other in study.tasks.items() if key != name}
        if self.trained_on:
            alike = [key for key, other in others.items() if other.task.head is self.task.head and not other.trained_on]
            yield from among(f"{place}.trained_on", "task with this head", [self.trained_on], alike)
        if self.parallel:
            mine = (self.kind, self.columns, True)
            alike = [key for key, other in others.items() if (other.kind, other.columns, bool(other.data)) == mine]
            yield from among(f"{place}.parallel", f"task of kind {self.kind} with data", [self.parallel], alike)
        if self.start:
            yield from self._problems_of_start(study, name, self.start)

    def _problems_of_start(self, study: "Study", name: str, first: str) -> Iterator[str]:
        """The task of the start has the same head, and starts form no circle."""
        place, tasks = f"tasks.{name}.start", study.tasks
        others = chain(name, lambda key: tasks[key].start if key in tasks else None)
        if first not in tasks:
            yield from among(place, "task", [first], tasks)
        elif name in others:
            yield f"{place}: tasks begin with one another in a circle: {' -> '.join([name, *others])}"
        else:
            later, earlier = self.task, tasks[first].task
            has_labels = later.head.output_per_label
            for what, here, there in (
                ("head", later.head.name, earlier.head.name),
                *([("labels", later.labels, earlier.labels)] if has_labels else []),
            ):
                if here != there:
                    yield (
                        f"{place}: runs also begin with the head of task {first}, which has {what} {there}, "
                        f"but {name} has {what} {here}: name a task of the same kind"
                    )

    def problems_in(self, study: "Study", name: str, grid: str) -> Iterator[str]:
        """Why a grid cannot have the task, such as languages in which there are no data, each as `place: what is wrong`. The names in the grid exist."""
        axes, place = study.grids[grid], f"grids.{grid}"
        if name in axes.task:
            yield from self.task.head.problems_of_grid(study, name, grid)
        trained, targets = study.trained(axes), study.targets(axes)
        parts = dict.fromkeys([*trained, *targets])
        if misuse := next(filter(None, map(self.task.problem_of, parts)), None):
            yield f"{place}: task {name} {misuse}"
        for split in SPLITS:
            key, entry = study.entry(name, split)
            on_targets = split == "test" or (split == "train" and axes.is_for_target)
            for part in dict.fromkeys(targets if on_targets else trained):
                if entry.data and (problem := entry.data.lacks(key, split, part)):
                    yield f"{place}: {problem}"
        codes = dict.fromkeys(code for part in parts for code in part.languages)
        if self.from_text:
            yield from (f"{place}: task {name}: {problem}" for problem in filter(None, map(study.text.lacks, codes)))
        elif missing := [code for code in codes if self.data is None and not self.task.speaks(code)]:
            yield (
                f"{place}: task {name} cannot be generated in {', '.join(missing)}: give it `data`, leave out "
                f"{'this language' if len(missing) == 1 else 'these languages'}, or see CONTRIBUTING.md on how to add a language"
            )

    def problems_of_data(self, study: "Study", name: str) -> Iterator[str]:
        """Mistakes in the data and in how they are scored, each as `place: what is wrong`. The grids have no mistakes."""
        place, options = f"tasks.{name}", self.task.Options(**self.options)
        for key, derived in self.data.derived.items() if self.data else ():
            yield from (f"{place}.data.{key}.{problem}" for problem in derived.problems(study, name))
        grids = [grid for grid in study.grids.values() if name in study.with_first(grid.task)]
        if parts := dict.fromkeys(part for grid in grids for part in (*study.targets(grid), *study.trained(grid))):
            evaluated = self.task.head.options
            of_head = evaluated.model_validate(options.model_dump(include={*evaluated.model_fields}))
            languages = [[*map(study.language, part.languages)] for part in parts]
            yield from (f"{place}.options.{problem}" for problem in self.task.head.unscorable(of_head, languages))
        if (
            isinstance(options, Dials)
            and self.data is None
            and any(each.is_trained for each in study.encoders.values())
        ):
            for dial in Dials.model_fields:
                if (here := getattr(options, dial)) != (of_text := getattr(study.text.dials, dial)):
                    yield (
                        f"{place}: its artificial languages have {dial} {here}, but the text has "
                        f"{of_text}: set the same value in `text.dials`; otherwise the same code means two languages"
                    )
        if self.from_text and self.task.head.has_cells:
            yield from self._problems_of_held_out(study, name)

    def _problems_of_held_out(self, study: "Study", name: str) -> Iterator[str]:
        """No task on the texts of the study trains on rows that are test rows of this one."""
        held_out = {
            key: options.dev_rows
            for key, entry in study.tasks.items()
            if entry.from_text and isinstance(options := entry.task.Options(**entry.options), mlm.Options)
        }
        # A package's head may read the texts of the study in another way.
        if (own := held_out.get(name)) is None:
            return
        for other, rows in held_out.items():
            # With a larger `dev_rows`, the held-out rows include the held-out rows of a smaller one.
            if rows < own:
                yield (
                    f"tasks.{name}: test rows of {name} are training rows of task {other}, because `dev_rows` is "
                    f"{own} in {name} and {rows} in {other}: write at most {rows} in the `options` of {name}, "
                    f"or at least {own} in the `options` of {other}"
                )

    @property
    def is_generated(self) -> bool:
        """Whether the data are generated."""
        return self.data is None and self.task.generator is not None

    @property
    def from_text(self) -> bool:
        """Whether the data are the texts of the study."""
        return self.data is None and self.task.generator is None
