"""The key `data` of a task, with one or more origins; find the origin of a split in a language."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, SerializeAsAny, model_validator

from xlgrid.base.keys import apart, describe
from xlgrid.base.names import unknown
from xlgrid.base.plugins import Extensible, is_subclass_of
from xlgrid.base.settings import Strict
from xlgrid.data.origins.files import Files, OfFiles
from xlgrid.data.origins.hub import Hub
from xlgrid.data.origins.origin import Origin
from xlgrid.data.origins.pools import Pools
from xlgrid.data.places import OfPackage
from xlgrid.tasks import Task

if TYPE_CHECKING:
    from xlgrid.plan.plan import Plan
    from xlgrid.study.schema import Study

ORIGINS: tuple[type[Origin], ...] = (Hub, Files, Pools, OfPackage)


def origin_of(fields: Any) -> Any:
    """The origin that a mapping from a study describes. Any other value, such as an `Origin`, is returned.

    Raises:
        ValueError: the keys belong to no kind of origin or to several, or a value is wrong.
    """
    return _chosen(fields, ORIGINS, "data come from either `hub` or `local`, or from a `place` of a package")


def _text_of(fields: Any) -> Any:
    return _chosen(fields, (Hub, Files), "text comes from either `hub` or `local`")


def _chosen(fields: Any, kinds: tuple[type[Origin], ...], allowed: str) -> Any:
    if not isinstance(fields, Mapping):
        return fields
    keys = {key: value for key, value in fields.items() if value is not None}
    fitting = [kind for kind in kinds if kind.describes(keys)]
    if misspelt := [str(key) for key in keys if key not in AllKeys.model_fields]:
        raise ValueError(unknown("key", misspelt[0], fitting[0].model_fields if fitting else AllKeys.model_fields))
    if len(fitting) != 1:
        raise ValueError(f"{allowed}: give exactly one")
    return fitting[0].model_validate(keys)


# This class combines the keys of all origins for the JSON Schema and the reference of the study file. It has no
# instances.
class AllKeys(*reversed(ORIGINS)):  # type: ignore[misc]
    """The origin of data that are not generated: a repository on the Hub (`hub`) at the commit in the lock file, local
    files (`local`), or a place that a package reads (`place`).

    In the pair en-fr, the first input, such as a context or premise, is in English, and the second input is in French.
    A pair is joined from the rows of its two languages, unless the origin has the pair itself, in a file such as
    `translations/en-fr/train.jsonl` or as a configuration in `names`.

    A study that extends another study can replace its `hub` by `{hub: null, name: null, local: ...}`. Add
    `splits: {dev: validation}` to use files from the Hub under their names there.
    """

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler.resolve_ref_schema(handler(core_schema))
        schema.pop("required", None)
        places = {key: schema["properties"][key] for key in ("hub", "files", "local", "place")}
        schema["properties"] = places | schema["properties"]
        return schema


AnyOrigin = Annotated[SerializeAsAny[Origin], BeforeValidator(origin_of, json_schema_input_type=AllKeys)]
# An origin of text, which is read row by row.
TextOrigin = Annotated[SerializeAsAny[OfFiles], BeforeValidator(_text_of, json_schema_input_type=AllKeys)]


class WithOrigin(Strict):
    """Settings whose keys are in the same mapping as the keys of an origin."""

    origin: SerializeAsAny[Origin]

    @model_validator(mode="before")
    @classmethod
    def _apart(cls, fields: Any) -> Any:
        if not isinstance(fields, Mapping):
            return fields
        own = {key: value for key, value in fields.items() if key in cls.model_fields and key != "origin"}
        known = [*cls.model_fields, *AllKeys.model_fields]
        for key in fields:
            if key == "origin" or key not in known:
                raise ValueError(unknown("key", str(key), [name for name in known if name != "origin"]))
        return own | {"origin": origin_of({key: value for key, value in fields.items() if key not in own})}

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler.resolve_ref_schema(handler(core_schema))
        of_origin = handler.resolve_ref_schema(handler(AllKeys.__pydantic_core_schema__))
        del schema["properties"]["origin"]
        schema["properties"] = of_origin["properties"] | schema["properties"]
        schema["required"] = [key for key in schema["required"] if key != "origin"]
        return schema


class DerivedData(WithOrigin):
    """Data of a task that a rule, for instance of a package, makes from the rows of an origin.

    A package declares a subclass as an entry point of the group `xlgrid.derived_data`. The name of the entry point is
    the key under `data` of a task.

    Attributes:
        about: the meaning of the key in the reference of the study file.
        rule: the rule that writes the files of data.
    """

    about: ClassVar[str]
    rule: ClassVar[str]

    @abstractmethod
    def has(self, split: str, language: str) -> bool:
        """Whether the rule makes a split in a language."""

    @abstractmethod
    def makes(self) -> Iterable[tuple[str, str]]:
        """The pairs of a language and a split that the rule makes."""

    def check_task(self, task: Task) -> None:
        """Raise ValueError if the data do not suit a task."""

    def of_rows(self, task: Task) -> Task:
        """The task that describes the rows of the origin, before the rule changes them."""
        return task

    @abstractmethod
    def inputs(self, plan: "Plan", task: str, language: str) -> dict[str, str | list[str]]:
        """The files from which the rule makes a split in a language."""

    @abstractmethod
    def settings(self, study: "Study", task: str) -> dict[str, str | int | list[str]]:
        """The settings of the rule's command."""

    def problems(self, study: "Study", task: str) -> Iterator[str]:
        """Each mistake in a study as `key: problem`."""
        yield from ()

    def problems_of_plan(self, plan: "Plan", task: str) -> Iterator[str]:
        """Each mistake that only the plan shows, as `place: problem`."""
        yield from ()


ALL_DERIVED = Extensible[type[DerivedData]](
    "key of data",
    "xlgrid.derived_data",
    {},
    fits=is_subclass_of(DerivedData),
    expected="a subclass of xlgrid.data.sources.DerivedData",
)


class DataSource(WithOrigin):
    """The origin of the test set and, unless `train` and `dev` name other origins, of the training and dev sets.
    Example:

        data:
          hub: google/xquad
          name: "xquad.{language}"
          splits: {test: validation}
          train: {hub: rajpurkar/squad, languages: [en]}
          dev: {hub: rajpurkar/squad, languages: [en]}

    `test` is another origin of the test sets in the languages that it lists. `translated` is another origin of the
    training and dev sets in its languages:
    `translated: {local: "translations/{language}/{split}.jsonl", languages: [de, fr]}`.
    """

    train: AnyOrigin | None = Field(None, description="origin of the training set; absent: the same as of the test set")
    dev: AnyOrigin | None = Field(None, description="origin of the dev set; absent: the same as of the test set")
    test: AnyOrigin | None = Field(None, description="another origin of the test sets in the `languages` that it lists")
    translated: AnyOrigin | None = Field(
        None,
        description="another origin of the training and dev sets in the `languages` that it lists: translations, for "
        "instance",
    )
    derived: dict[str, SerializeAsAny[DerivedData]] = {}

    @model_validator(mode="before")
    @classmethod
    def _made(cls, fields: Any) -> Any:
        if not isinstance(fields, Mapping):
            return fields
        known = [*AllKeys.model_fields, *(key for key in cls.model_fields if key not in ("origin", "derived"))]
        own, derived = apart(fields, known, ALL_DERIVED)
        return own | {"derived": derived}

    @model_validator(mode="after")
    def _of_some(self) -> Self:
        for name, origin in (("test", self.test), ("translated", self.translated)):
            if origin and not origin.languages:
                raise ValueError(
                    f"`{name}` must list its languages: add `languages` to it, or make it the origin of all languages"
                )
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = super().__get_pydantic_json_schema__(core_schema, handler)
        describe(schema, handler, "derived", ALL_DERIVED)
        return schema

    def of(self, split: str, language: str) -> Origin:
        """The origin of a split in a language. If a rule makes the split, this is the origin of the rule's input
        rows."""
        if derived := self.derived_data(split, language):
            return derived.origin
        of_some = self.test if split == "test" else self.translated
        other = of_some if of_some and of_some.has(language) else {"train": self.train, "dev": self.dev}.get(split)
        origin = other or self.origin
        is_repaired = split == "train" or not origin.misplaced
        return origin if is_repaired else origin.model_copy(update={"misplaced": None})

    def derived_data(self, split: str, language: str) -> DerivedData | None:
        """The entry whose rule makes a split in a language; None if the split is read directly from its origin."""
        return next((derived for derived in self.derived.values() if derived.has(split, language)), None)

    def lacks(self, task: str, split: str, language: str) -> str | None:
        """The error message if a task has no data of a split in a language; None if it has, or may have."""
        origin = self.of(split, language)
        return None if origin.has(language) else no_data(task, origin, split, language)

    def check_task(self, task: Task) -> None:
        """Raise ValueError if the settings of an origin, or data that a rule makes, do not suit a task."""
        for derived in self.derived.values():
            derived.check_task(task)
        for origin in filter(None, (self.origin, self.train, self.dev, self.test, self.translated)):
            origin.check_task(task)


def no_data(name: str, source: Origin, split: str, language: str) -> str:
    """The error message if the origin of a split does not have a language."""
    others = "" if split == "test" else f", or give `data.{split}` another source"
    return (
        f"{name} has no {split} data in {language}: `{'languages' if source.languages else 'names'}` of {source} lists "
        f"{', '.join(source.known or ())} only. Use one of these languages{others}"
    )
