"""The methods of a study: a base with options, and the MLM runs with which runs of the method begin."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from pydantic import (
    Field,
    GetJsonSchemaHandler,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from xlgrid.base.chains import circle, first_mistakes
from xlgrid.base.keys import apart, describe
from xlgrid.base.settings import Strict
from xlgrid.heads import HEADS
from xlgrid.languages.sources import NONE
from xlgrid.methods import Method, make
from xlgrid.study.starts import AnyStart
from xlgrid.training.derived import ALL_DERIVED_RUNS, DerivedRuns

if TYPE_CHECKING:
    from xlgrid.study.schema import Study


class MethodEntry(Strict):
    """A method: the base, and the options that differ from the defaults of the base."""

    base: str = Field(
        description="the method of xlgrid, or of an installed package, that the entry varies: see Options of methods; "
        "absent: the method with the name of the entry"
    )
    options: dict[str, float | int | str | bool] = Field(
        {}, description="options of the base that differ from the defaults"
    )
    start: AnyStart | None = Field(None, description="the MLM runs with whose weights runs of the method begin")
    # The value of the key of a part, if a rule makes the runs without training. There is at most one such key.
    derived: SerializeAsAny[DerivedRuns] | None = None

    @model_validator(mode="before")
    @classmethod
    def _derived(cls, fields: Any) -> Any:
        if not isinstance(fields, Mapping):
            return fields
        own, found = apart(fields, [name for name in cls.model_fields if name != "derived"], ALL_DERIVED_RUNS)
        if len(found) > 1:
            raise ValueError(f"runs of a method come from one place, got {' and '.join(found)}: leave out all but one")
        return own | {"derived": next(iter(found.values()), None)}

    @model_serializer(mode="wrap")
    def _stated(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The entry as a study states it."""
        fields: dict[str, Any] = handler(self)
        value = fields.pop("derived", None)
        kinds = {**ALL_DERIVED_RUNS.own, **ALL_DERIVED_RUNS.imported}.items() if self.derived else ()
        return fields | {key: value for key, kind in kinds if kind is type(self.derived)}

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler.resolve_ref_schema(handler(core_schema))
        describe(schema, handler, "derived", ALL_DERIVED_RUNS)
        return schema

    @model_validator(mode="after")
    def _base_and_options_exist(self) -> Self:
        _ = self.method
        return self

    @cached_property
    def method(self) -> Method:
        """The base with its options."""
        return make(self.base, self.options)

    @property
    def is_trained(self) -> bool:
        """Whether the method has runs of its own, which train."""
        return self.method.is_trained

    @property
    def before(self) -> list[str]:
        """The methods of the runs with which runs of the method begin, or from which they are made."""
        return [*([self.start.method] if self.start else []), *(self.derived.methods if self.derived else [])]

    def is_aimed(self, study: "Study") -> bool:
        """Whether there is a run for each target, source@target."""
        by_start, by_derivation = self.start and self.start.is_aimed, self.derived and self.derived.is_aimed(study)
        return bool(by_start or by_derivation)

    def problems(self, study: "Study", name: str) -> list[str]:
        """MLM runs that cannot be, each as `place: what is wrong`.

        Args:
            name: the name of the method.
        """
        place = f"methods.{name}"
        return first_mistakes(
            (f"{place}.{problem}" for problem in (self.derived.problems(study, name) if self.derived else ())),
            self.start.problems(study, f"{place}.start") if self.start else (),
            self._problems_of_begin(study, name),
        )

    def _problems_of_begin(self, study: "Study", name: str) -> Iterator[str]:
        """The MLM runs train the weights that this method does not train, and do not begin with one another in a circle."""
        before = study.methods[self.start.method] if self.start else None
        try:
            self.method.check_start(before.method if before else None)
        except ValueError as error:
            yield f"methods.{name}: {error}"
        if names := circle(name, lambda key: study.methods[key].before if key in study.methods else ()):
            yield (
                f"methods.{name}: runs would be made from one another in a circle, {' -> '.join(names)}: add a method whose "
                "runs begin with the encoder, and name it here"
            )

    def problems_in(self, study: "Study", name: str, grid: str) -> list[str]:
        """Why a grid cannot have the method, each as `place: what is wrong`. The names in both exist.

        Args:
            name, grid: the names of the method and of the grid.
        """
        return first_mistakes(
            self._problems_of_training(study, name, grid),
            self._problems_of_start(study, name, grid),
            self.method.problems(study, name, grid),
            self.derived.problems_in(study, name, grid) if self.derived else (),
        )

    def _problems_of_training(self, study: "Study", name: str, grid: str) -> Iterator[str]:
        """A method that trains nothing has the source `none`, and tasks whose head is a part of the encoder."""
        place, axes = f"grids.{grid}", study.grids[grid]
        wrong = [source for source in study.sources(axes) if (source == NONE) == self.is_trained]
        if wrong and self.is_trained:
            yield (
                f"{place}.source: runs of method {name} train on a language, a pair or a mix, got `{NONE}`: put it "
                "into a grid of its own, with a method of base `as-is`"
            )
        elif wrong:
            yield (
                f"{place}.source: method {name} trains on nothing, got {', '.join(wrong)}: write `source: [{NONE}]`, "
                "and put methods that train into another grid"
            )
        for task in axes.task:
            head = study.tasks[task].task.head
            if self.is_trained and not head.is_trained:
                yield (
                    f"{place}.task: nothing trains the head of {task}, so that there are no runs of method {name}: put the "
                    f"task into a grid of its own, with a method of base `as-is` and `source: [{NONE}]`"
                )
            elif not self.is_trained and not head.is_pretrained:
                kinds = [f"`{other.name}`" for other in HEADS.values() if other.is_pretrained and other.has_cells]
                yield (
                    f"{place}.task: method {name} trains nothing, and the weights of the head of {task} would be random: "
                    f"name a task of kind {' or '.join(kinds)}, or a method that trains"
                )

    def _problems_of_start(self, study: "Study", name: str, grid: str) -> Iterator[str]:
        """Each run and each target has exactly one MLM run, if the method needs one."""
        place, axes, start = f"grids.{grid}", study.grids[grid], self.start
        if not self.method.trains_head:
            yield (
                f"{place}.method: {name}, with its options {self.options}, is for MLM runs and trains no "
                "head: name a method that begins with it"
            )
        if axes.checkpoints and not (start and start.follows_targets):
            yield (
                f"{place}.checkpoints: cells of method {name} are not evaluated with the MLM runs of their targets: "
                "leave the method out of this grid, or give it a `start` without `source` and `at`"
            )
        if start is None:
            return
        sources, targets = study.sources(axes), study.targets(axes)
        wrong: list[str] = [source for source in sources if len(source.parts) > 1 or source.parts[0].is_pair]
        wrong += [target for target in targets if target.is_pair]
        if start.is_aimed and wrong:
            yield (
                f"{place}: runs of method {name} begin with the MLM run of their target, so that sources and targets "
                f"must be single languages: leave out {', '.join(dict.fromkeys(wrong))}"
            )
            return
        try:
            without = [part for source in sources if start.of_source(source) is None for part in source.parts]
            if start.follows_targets and not without:
                without = [target for target in targets if start.of_target(target, sources[0]) is None]
        except ValueError as error:
            yield f"{place}.source: method {name}: {error}"
            return
        if without and self.method.needs_start:
            parts = ", ".join(dict.fromkeys(without))
            yield (
                f"{place}: method {name} has no MLM run of {parts}, so that some of its weights would stay untrained: "
                f"add {parts} to `pairs` of its `start`, which has {', '.join(start.parts)}, or leave {parts} out here"
            )
