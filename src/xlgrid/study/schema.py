"""The schema of a study file: a YAML file that states what a paper trained, on which data, and its tables and figures.

The schema is strict: an unknown or misspelt key is an error that names the file, the line and the nearest key that exists.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, cached_property
from typing import Any, Self, cast

from pydantic import Field, ValidationError, field_validator, model_validator

from xlgrid.architectures import PRETRAINING
from xlgrid.base.chains import chain
from xlgrid.base.names import unknown
from xlgrid.base.settings import Name, Strict, plainly
from xlgrid.data.downloads import AnyDownload, Download
from xlgrid.data.text import TextSettings
from xlgrid.data.tokenizer import AnyTokenizer, TokenizerEntry
from xlgrid.exhibits.kinds import AnyExhibit
from xlgrid.languages import Language, language
from xlgrid.languages.sources import Source, Target
from xlgrid.methods.variants import plain, settings_of
from xlgrid.pairs import PairValues, pair_values
from xlgrid.pairs.table import AnyPairs
from xlgrid.products.choice import Choice
from xlgrid.products.together import RunGroup
from xlgrid.products.train import Run
from xlgrid.results.claims import Claim
from xlgrid.results.naming import Naming, Published
from xlgrid.study import groups, together
from xlgrid.study.encoders import AnyEncoder, Fact, TrainedEncoder, pretraining_task, replicas
from xlgrid.study.grids import Grid
from xlgrid.study.languages import LanguageCode, NewLanguage
from xlgrid.study.methods import MethodEntry
from xlgrid.study.replace import Replace, merge
from xlgrid.study.starts import StartEntry
from xlgrid.study.sweeps import Runs, Sweep, makers, swept
from xlgrid.study.tasks import TaskEntry
from xlgrid.study.together import Axes
from xlgrid.study.when import ForRuns
from xlgrid.training.grouping import name_of
from xlgrid.training.recipe import Recipe, Training
from xlgrid.training.sweep import Swept


class TrainingEntry(ForRuns):
    """Training settings for the runs that match `when`; a later entry wins over an earlier one."""

    set: dict[str, Any] = Field(description="settings of the training loop for these runs: see Settings of training")

    def problems(self, study: "Study", place: str) -> Iterator[str]:
        """Names that the study lacks, and settings that do not exist, each as `place: what is wrong`."""
        yield from self.problems_of_when(study, place)
        try:
            settings = groups.in_settings(self.set, study.expand)
        except ValueError as error:
            yield f"{place}.set.dev_targets: {error}"
            return
        try:
            training = Training(**settings)
        except ValidationError as error:
            yield f"{place}.set: {plainly(error)}"
            return
        for key in (key for key, setting in training.added.items() if setting.is_for_target):
            yield (
                f"{place}.set.{key}: only the variants of a grid are for one target each: write "
                f"`vary: {{{key}: [{settings[key]}]}}` in the grid"
            )


class Study(Strict):
    """One study."""

    extends: str | None = Field(
        None,
        description="a study from which this one inherits every key that it does not state: the name of a study in the same "
        "folder or of one that comes with xlgrid, or the path of a file from the folder of this one, such as ../demo.yaml",
    )
    replace: Replace = Field(Replace(), description="new names for the encoders and languages of the extended study")
    title: str = Field(description="the heading of the report")
    description: str = Field("", description="a text below the title of the report")
    languages: list[str] = Field(
        description="the languages of the study, by their codes of ISO 639, of artificial languages (qa1), or of `new_languages`"
    )
    new_languages: dict[LanguageCode, NewLanguage] = Field(
        {},
        description="code: a language that xlgrid does not know, or facts about a language that xlgrid lacks",
    )
    groups: dict[Name, list[str]] = Field(
        {}, description="named lists of languages or pairs, in addition to the built-in groups"
    )
    text: TextSettings = Field(
        TextSettings(), description="the text on which encoders from `scratch` and MLM runs (tasks of kind `mlm`) train"
    )
    downloads: dict[str, AnyDownload] = Field(
        {},
        description="path of a file that the study names, or a pattern for several files, with names in braces: "
        "where to get the files, if they are not on the Hub",
    )
    tokenizers: dict[Name, AnyTokenizer] = Field(
        {},
        description="name: a tokenizer, which several encoders may share; an encoder without the key `tokenizer` "
        "has its own tokenizer",
    )
    encoders: dict[Name, AnyEncoder] = Field(
        description="name: an encoder, from the Hub, from a folder, or pre-trained here"
    )
    tasks: dict[Name, TaskEntry] = Field(description="name: a task and its data")
    methods: dict[Name, MethodEntry] = Field(description="name: a method and its options")
    training: list[TrainingEntry] = Field(
        [], description="settings of the training loop; later entries win over earlier ones"
    )
    sweep: list[Sweep] = Field([], description="settings of training that are tried, and chosen by scores on dev sets")
    grids: dict[Name, Grid] = Field(
        min_length=1,
        description="name: a product of tasks, encoders, methods, sources, targets and seeds, which gives runs and cells",
    )
    pairs: dict[Name, AnyPairs] = Field(
        {},
        description="name: a table of values of pairs of a source and a target, such as distances, or the path of its "
        "file; exhibits also know the tables `same-family`, `same-script` and `great-circle`, which need no file",
    )
    exhibits: dict[Name, AnyExhibit] = Field({}, description="name: a table or figure")
    labels: dict[str, str] = Field(
        {},
        description="name: what exhibits print for it, such as {bitfit: BitFit, sw: Swahili}; a name of a method, encoder, task, "
        "language, metric, group, table of pairs, fact, setting or axis. CSV files keep the names",
    )
    claims: dict[Name, Claim] = Field({}, description="name: a statement, for example of a paper, which gets a verdict")
    published: Naming = Field(
        Naming(), description="study name: the paper's name, for all exhibits with published numbers"
    )
    name: Name = Field("", description="the name of the study; xlgrid sets it to the name of the file without .yaml")

    @field_validator("downloads")
    @classmethod
    def _paths(cls, downloads: dict[str, Download]) -> dict[str, Download]:
        for path, entry in downloads.items():
            for problem in entry.problems(path):
                raise ValueError(problem)
        return downloads

    @field_validator("methods", mode="before")
    @classmethod
    def _bases(cls, methods: Any) -> Any:
        if not isinstance(methods, dict):
            return methods
        return {name: {"base": name} | entry if isinstance(entry, dict) else entry for name, entry in methods.items()}

    @model_validator(mode="after")
    def _tokens_to_pretrain_on(self) -> Self:
        """Add the default task for encoders from scratch that name no task, unless the study has it."""
        if (task := pretraining_task(self.encoders.values())) and PRETRAINING not in self.tasks:
            self.tasks[PRETRAINING] = TaskEntry.model_validate(task)
        return self

    @model_validator(mode="after")
    def _encoders_of_languages_are_encoders(self) -> Self:
        """Add the encoder of each language, for an entry that describes one for each."""
        for name, entry in [*self.encoders.items()]:
            added = cast("dict[str, AnyEncoder]", entry.of_languages(name, self.languages))
            if double := next((key for key in added if key in self.encoders), None):
                raise ValueError(
                    f"encoders: {double} is the name of {name}'s encoder of a language: choose another name"
                )
            self.encoders.update(added)
        return self

    @model_validator(mode="after")
    def _variants_are_methods(self) -> Self:
        """Add the variants of methods. Unknown methods and impossible values are errors that `Grid.problems` reports."""
        for grid in self.grids.values():
            with suppress(ValueError):
                known = [name for name in grid.methods if plain(name) in self.methods]
                self.methods.update({name: self.methods[plain(name)] for name in known})
        for name in (name for entry in self.sweep for name in entry.variants(self)):
            self.methods[name] = self.methods[plain(name)]
        return self

    def expand(self, value: str, grid: Grid | None = None) -> tuple[str, ...]:
        """The languages, pairs or mixes that a source or target means: itself, or the members of a group.

        Built-in groups such as `mono` have the languages of `grid`, or of the study if `grid` is None.

        Raises:
            ValueError: there is no such language or group.
        """
        codes = grid.languages if grid else []
        languages = {code: self.language(code) for code in codes} or self.languages_used
        return groups.expand(value, languages, self.groups)

    def sources(self, grid: Grid) -> list[Source]:
        """The sources of a grid, groups expanded.

        Raises:
            ValueError: there is no such language or group.
        """
        return [Source(member) for value in grid.source for member in self.expand(value, grid)]

    def targets(self, grid: Grid) -> list[Target]:
        """The targets of a grid, groups expanded, without `checkpoints`.

        Raises:
            ValueError: there is no such language or group.
        """
        return [Target(member) for value in grid.target for member in self.expand(value, grid)]

    def trained(self, grid: Grid) -> list[Target]:
        """The languages and pairs in the sources of a grid.

        Raises:
            ValueError: there is no such language or group.
        """
        return [part for source in self.sources(grid) for part in source.parts]

    def with_first(self, tasks: Iterable[str]) -> list[str]:
        """Tasks, followed by the tasks that their `start` names, directly or through other tasks."""
        named = [*tasks]
        return list(
            dict.fromkeys(
                [*named, *(key for name in named for key in chain(name, lambda name: self.tasks[name].start))]
            )
        )

    def starts(self, method: str) -> list[StartEntry]:
        """The starts of a method, of the method of its MLM runs, and so on."""
        start = self.methods[method].start
        return [start, *self.starts(start.method)] if start else []

    def meant(self, axis: str, values: str | list[str]) -> list[str]:
        """The values that `when` of a training entry names for an axis, with the members of groups of sources.

        Raises:
            ValueError: there is no such source or group.
        """
        names = [values] if isinstance(values, str) else values
        return [member for value in names for member in self.expand(value)] if axis == "source" else names

    def belongs(self, group: str, source: str, target: str) -> bool:
        """Whether a cell belongs to a group of an exhibit: see `xlgrid.study.groups.belongs`.

        Raises:
            ValueError: there is no such group.
        """
        return groups.belongs(group, Source(source), Target(target), self.languages_used, self.groups)

    def group_facts(self, names: Sequence[str]) -> str:
        """The facts that decide which targets belong to some groups: see `xlgrid.study.groups.group_facts`."""
        return groups.group_facts(names, self.languages_used, self.groups)

    @cached_property
    def order(self) -> dict[str, list[object]]:
        """Axis -> its values in the order of the grids, each once."""
        values: dict[str, list[object]] = {
            axis: [] for axis in ("task", "encoder", "method", "source", "target", "seed")
        }
        for grid in self.grids.values():
            values["source"] += self.sources(grid)
            values["target"] += self.targets(grid)
            for axis in ("task", "encoder", "method", "seed"):
                values[axis] += getattr(grid, axis)
        values["method"] += (method for method in self.methods if settings_of(method))
        return {axis: list(dict.fromkeys(known)) for axis, known in values.items()}

    @property
    def defined_names(self) -> dict[str, list[str]]:
        """Axis -> the names that the study defines for it, whether or not a grid uses them."""
        bases = [entry.base for entry in self.methods.values()]
        return {"task": [*self.tasks], "encoder": [*self.encoders], "method": [*self.methods], "base": bases}

    @property
    def report_settings(self) -> list[str]:
        """The settings of the study that the report shows itself. Snakemake writes the report again if they change."""
        facts = [
            [language.code, language.name, language.family, language.script, language.direction]
            for language in self.languages_used.values()
        ]
        shown = [json.dumps([*self.exhibits]), json.dumps(facts, ensure_ascii=False)]
        return [self.title, self.description, *shown, *self._main_metrics]

    @property
    def claims_settings(self) -> list[str]:
        """The settings of the study that verdicts depend on. Snakemake judges the claims again if they change."""
        named = (side.group or () for claim in self.claims.values() for side in (claim.select, *claim.sides))
        stated = [f"{name}: {claim.model_dump_json()}" for name, claim in self.claims.items()]
        facts = self.group_facts([str(group) for groups in named for group in groups])
        return [self.title, *stated, facts, *self._main_metrics]

    @property
    def _main_metrics(self) -> list[str]:
        return [json.dumps(self.main_metrics)] if self.main_metrics else []

    def exhibit(self, name: str) -> AnyExhibit:
        """An exhibit. Entries that its `published` lacks are taken from the study's.

        Raises:
            ValueError: there is no such exhibit.
        """
        if name not in self.exhibits:
            raise ValueError(f"study {self.name}: {unknown('exhibit', name, self.exhibits)}")
        exhibit = self.exhibits[name]
        if exhibit.published_numbers is None:
            return exhibit
        of_study, of_exhibit = (
            naming.model_dump(exclude_unset=True) for naming in (self.published, exhibit.published_numbers)
        )
        return exhibit.model_copy(update={"published": Published(**merge(of_study, of_exhibit))})

    @property
    def facts(self) -> dict[str, dict[str, Fact]]:
        """Encoder -> its facts by name."""
        return {name: entry.known_facts(self) for name, entry in self.encoders.items()}

    @cached_property
    def replicas(self) -> dict[str, str]:
        """Encoder -> its first replica: the first encoder that differs from it only by seeds."""
        return replicas(self.encoders)

    @property
    def metrics(self) -> dict[str, tuple[str, ...]]:
        """Task -> the metrics that are shown where no others are named, the main one first."""
        return {name: entry.task.metrics for name, entry in self.tasks.items()}

    @cached_property
    def printed(self) -> dict[str, str]:
        """Name -> what exhibits and reports print for it: its label, or a metric as papers write it."""
        metrics = (each for entry in self.tasks.values() for each in entry.task.head.metrics(entry.task.labels))
        # A language may have the code of a metric, such as `las`.
        return {each.name: each.title for each in metrics if each.name not in self.languages} | self.labels

    @property
    def main_metrics(self) -> dict[str, str]:
        """Task -> its main metric, for tasks that do not have the main metric of their kind."""
        return {name: entry.task.metric for name, entry in self.tasks.items() if entry.task.metric}

    @cached_property
    def all_tokenizers(self) -> dict[str, TokenizerEntry]:
        """Name -> tokenizer, for the entries of `tokenizers` and for encoders with their own tokenizer."""
        own = {name: own for name, entry in self.encoders.items() if (own := entry.own_tokenizer)}
        return {**own, **self.tokenizers}

    @cached_property
    def single_encoders(self) -> dict[str, AnyEncoder]:
        """Name -> encoder, without the entries that describe one for each language."""
        return {name: entry for name, entry in self.encoders.items() if not entry.of_languages(name, self.languages)}

    def encoder_of(self, encoder: str, source: Source) -> str:
        """The name of the encoder of runs on a source, where a grid names `encoder`."""
        return self.encoders[encoder].for_source(encoder, source)

    def tokenizer_of(self, encoder: str) -> str:
        """The name of an encoder's tokenizer."""
        return self.encoders[encoder].tokenizer_of(self, encoder)

    def entry(self, name: str, split: str) -> tuple[str, TaskEntry]:
        """The name and the entry of the task that gives the data of a split.

        For the splits `train` and `dev`, this is the task in `trained_on`, if there is one.
        """
        other = self.tasks[name].trained_on
        name = other if other and split != "test" else name
        return name, self.tasks[name]

    @cached_property
    def declared_languages(self) -> dict[str, Language]:
        """Code -> language for every language that the study declares."""
        return {code: entry.language(code) for code, entry in self.new_languages.items()}

    def language(self, code: str) -> Language:
        """The language of a code that the study declares or that xlgrid knows.

        Raises:
            ValueError: there is none; the message names the nearest codes.
        """
        return language(code, self.declared_languages)

    @cached_property
    def languages_used(self) -> dict[str, Language]:
        """Code -> language for every language of the study, in the study's order."""
        return {code: self.language(code) for code in self.languages}

    @cached_property
    def pair_values(self) -> Callable[[str], PairValues]:
        """A function from the name of a table of pairs to its values, which raises the errors of `xlgrid.pairs.pair_values`."""
        # A table may have languages that a study declares and does not use.
        known = {**self.declared_languages, **self.languages_used}
        return cache(lambda name: pair_values(name, self.pairs, known))

    @cached_property
    def recipe_alone(self) -> Callable[[str, str, str, str, int], Recipe]:
        """A function from (task, encoder, method, source, seed) to the resolved recipe of this run, where it trains alone.

        Matching entries of `training` apply in order, and then the settings of a variant. A recipe does not depend on
        other languages of the study, so adding a language changes no run.
        """
        # The plan, the rules and the cost estimate call the function several times for each run.
        return cache(self._recipe)

    @cached_property
    def recipe(self) -> Callable[[str, str, str, str, int], Recipe]:
        """`recipe_alone`, with the runs with which the run trains together."""
        return cache(self._recipe_in_group) if self.groups_of_runs else self.recipe_alone

    def _recipe_in_group(self, *axes: Any) -> Recipe:
        alone = self.recipe_alone(*axes)
        members = self.groups_of_runs.get(axes, ())
        return alone.model_copy(update={"together": tuple(map(name_of, members))}) if members else alone

    def _recipe(self, task: str, encoder: str, method: str, source: str, seed: int) -> Recipe:
        entry = self.methods[method]
        matched = {
            "task": task,
            "encoder": encoder,
            "method": plain(method),
            "base": entry.base,
            "source": Source(source).data,
        }
        settings: dict[str, Any] = {}
        for rule in self.training:
            if rule.matches(self, matched):
                settings |= groups.in_settings(rule.set, self.expand)
        settings |= settings_of(method)
        training = Training(**settings)
        return Recipe(
            study=self.name,
            task=task,
            kind=self.tasks[task].kind,
            encoder=encoder,
            method=method,
            base=entry.base,
            options=entry.method.model_dump(mode="json", exclude_defaults=True),
            source=Source(source),
            seed=seed,
            training=training,
            start=entry.start.for_run(Source(source)) if entry.start else None,
            first=task if training.is_for_target else self.tasks[task].start,
            mix=self.tasks[task].mix_of(Source(source)),
            metric=self.tasks[task].task.metric,
            sweep=self.sweep_of(task, encoder, method, source),
            together=(),
            derived=entry.derived.recipe(Run(self.name, task, encoder, method, source, seed), self)
            if entry.derived
            else {},
        )

    @cached_property
    def _swept(self) -> dict[Runs, Swept]:
        return swept(self)

    def sweep_of(self, task: str, encoder: str, method: str, source: str) -> Swept | None:
        """The settings that are tried for some runs; None if the study tries none for them."""
        return self._swept.get(Runs(task, encoder, method, Source(source).data)) if self.sweep else None

    @cached_property
    def groups_of_runs(self) -> dict[tuple[Any, ...], tuple[Axes, ...]]:
        """Each run that trains together with others -> the runs of its group."""
        return together.groups(self)

    def group(self, run: Run) -> RunGroup | None:
        """The group with which a run trains; None if it trains alone."""
        members = self.groups_of_runs.get(run[1:]) if self.groups_of_runs else None
        return together.group_of(self, members) if members else None

    @property
    def makers_of_groups(self) -> dict[str, list[str]]:
        """The rules that take runs from groups, see `xlgrid.products.product.Product.makers`."""
        return together.makers(self, self.groups_of_runs)

    @property
    def makers_of_winners(self) -> dict[str, list[str]]:
        """The rules that make runs whose settings are chosen, see `xlgrid.products.product.Product.makers`."""
        return makers(self._swept)

    def is_oracle(self, run: Run) -> bool:
        """Whether the settings of a run, or of a run with which it begins or from which it is made, are chosen on the dev
        sets of targets."""
        if all(entry.choose_on == "source" for entry in self.sweep):
            return False
        swept = self.sweep_of(*run[1:5])
        return (swept is not None and swept.choose_on == "target") or any(map(self.is_oracle, run.starting_runs(self)))

    def choice(self, run: Run) -> Choice | None:
        """The choice of the settings of a run; None if the study tries none for it."""
        _, *axes, _ = run
        return Choice(self.name, *axes) if self.sweep_of(*axes) else None

    def pretraining(self, encoder: str) -> Recipe:
        """The resolved recipe of the training of an encoder that is trained here."""
        entry = self.encoders[encoder]
        assert isinstance(entry, TrainedEncoder)
        return entry.recipe(self.name, encoder)
