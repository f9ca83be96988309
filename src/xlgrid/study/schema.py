"""The schema of a study file: one YAML that says what a paper trained, on what, and which tables and figures it drew.

Strict: an unknown or misspelt key is an error that names the file, the line and the nearest key that exists.
"""

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import (
    AfterValidator,
    Field,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
    field_validator,
    model_validator,
)

from xlgrid.base.names import unknown
from xlgrid.base.settings import Strict, plainly
from xlgrid.data.sources import DataSource
from xlgrid.data.text import TextSettings
from xlgrid.exhibits import AnyExhibit
from xlgrid.languages import Language, language, parts
from xlgrid.languages.sources import data_of
from xlgrid.results.claims import Claim
from xlgrid.results.naming import Naming, Published
from xlgrid.study.checks import problems
from xlgrid.tasks import MLM, task
from xlgrid.training.mini import MiniEncoder
from xlgrid.training.recipe import Recipe, Start, Training

# Where each key of a study stands: location -> (file, line).
Lines = dict[tuple[str, ...], tuple[Path, int]]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


def _name(value: str) -> str:
    if not NAME.fullmatch(value) or value.endswith("."):
        raise ValueError(f"{value!r} cannot be a name: it becomes part of a path; use letters, digits and . _ + -")
    return value


Name = Annotated[str, AfterValidator(_name)]


class TaskEntry(Strict):
    """A task: its kind, and its settings where the data are generated, or where the data come from."""

    kind: str = Field(description="key of xlgrid.tasks.TASKS")
    options: dict[str, Any] = {}
    data: DataSource | None = Field(None, description="absent: generated")
    max_length: PositiveInt = 512
    start: Name | None = Field(
        None,
        description="task of the study; runs begin with all weights, head too, of that task's run of the same method",
    )
    trained_on: str | None = Field(
        None, description="task of the study, of one head with this, whose training and dev sets the runs take"
    )
    stride: NonNegativeInt = Field(128, description="tokens that two windows of a long context share (head `span`)")
    separators: Literal["tokenizer", "one"] = Field(
        "tokenizer", description="between two segments: as the tokenizer has them, or one (Foroutan et al. 2023's code)"
    )

    @model_validator(mode="after")
    def _options_exist(self) -> Self:
        try:
            task(self.kind).Options(**self.options)
        except ValidationError as error:
            raise ValueError(f"options: {plainly(error)}") from None
        return self

    @model_validator(mode="after")
    def _probes_are_generated(self) -> Self:
        if self.data and self.options.get("probe", "none") != "none":
            raise ValueError(
                f"options: the probe {self.options['probe']} is made of generated statements only, and these come from "
                "`data`: leave out `data`, or take data whose statements have been changed and set `probe: none`"
            )
        return self

    @model_validator(mode="after")
    def _labels_exist(self) -> Self:
        if self.data:
            self.data.check_labels(task(self.kind))
        return self


class EncoderEntry(Strict):
    """An encoder: from the Hugging Face Hub, from a folder in its ordinary layout, or a tiny one pre-trained here."""

    hub: str | None = Field(None, description="owner/name")
    revision: str = Field("main", description="of `hub`; resolved to a commit at first fetch and kept in the lock file")
    path: str | None = None
    mini: MiniEncoder | None = None

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        given = [name for name in ("hub", "path", "mini") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"an encoder has one of hub, path and mini, got {' and '.join(given) or 'none'}")
        return self


class ImportedAdapters(Strict):
    """Where to read a method's runs on text, which are not trained here: adapters in the layout of AdapterHub."""

    hub: str | None = Field(None, description="owner/name, in which {language} and {encoder} stand for the run's")
    revision: str = Field("main", description="of `hub`; resolved to a commit at first fetch and kept in the lock file")
    path: str | None = Field(None, description="a folder, in which {language} and {encoder} stand for the run's")
    names: dict[str, str] = Field(
        {},
        description="languages and encoders, ours: theirs, where the names differ; an encoder's may have {language} in it",
    )

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if (self.hub is None) == (self.path is None):
            raise ValueError("imported adapters come from either `hub` or `path`: give exactly one")
        try:
            apart = all(
                self.place("one", name) != self.place("another", name)
                for name in [name for name, theirs in self.names.items() if "{language}" in theirs] or [""]
            )
        except (KeyError, IndexError, ValueError) as error:
            raise ValueError(
                f"{self.hub or self.path!r} has {error} in braces, where only {{language}} and {{encoder}} can stand"
            ) from None
        if not apart:
            raise ValueError(f"{self.hub or self.path!r} is the same for every language: put {{language}} in it")
        return self

    def place(self, language: str, encoder: str) -> str:
        """The repository or folder of a language's weights."""
        theirs = {"language": self.names.get(language, language)}
        theirs["encoder"] = self.names.get(encoder, encoder).format_map(theirs)
        return str(self.hub or self.path).format_map(theirs)


class MethodEntry(Strict):
    """A method: its base in xlgrid.methods.METHODS and what differs from the defaults."""

    base: str = Field(description="absent: the entry's own name")
    options: dict[str, float | int | str | bool] = {}
    start: Start | None = None
    imported: ImportedAdapters | None = Field(None, description="its runs on text are read from here, not trained")


class TrainingEntry(Strict):
    """Training settings for the runs that match `when`; a later entry wins over an earlier one."""

    when: dict[Literal["task", "encoder", "method", "base", "source"], str | list[str]] = Field(
        {},
        description="what a run is of; `base` means every method of that base; a source may be a group, as in grids, and "
        "each of its members is meant",
    )
    set: dict[str, Any]


class Grid(Strict):
    """A product of axes. Sources and targets name languages, pairs (en-fr), mixes (en+en-fr, sources only) or groups.

    A group is one of the study's, or `mono` (every language), `en-X` and `X-en` (pairs of English with every other),
    `family:Romance`, `script:Cyrl`.
    """

    task: list[Name] = Field(min_length=1)
    encoder: list[Name] = Field(min_length=1)
    method: list[Name] = Field(min_length=1)
    source: list[str] = Field(min_length=1)
    target: list[str] = Field(min_length=1)
    seed: list[NonNegativeInt] = Field(min_length=1)
    languages: list[str] = Field([], description="what the groups range over; absent: the study's languages")
    snapshots: list[PositiveInt] = Field(
        [],
        description="steps of the targets' runs on text: cells speak each target as of each step, target@step, instead of "
        "as of the end; the training of those runs has them among its own `snapshots`",
    )


class Study(Strict):
    """One study."""

    extends: str | None = None
    title: str
    description: str = ""
    languages: list[str]
    groups: dict[Name, list[str]] = Field(
        {}, description="named lists of languages or pairs, beside the built-in groups"
    )
    text: TextSettings = Field(TextSettings(), description="what mini encoders are pre-trained on")
    encoders: dict[Name, EncoderEntry]
    tasks: dict[Name, TaskEntry]
    methods: dict[Name, MethodEntry]
    training: list[TrainingEntry] = []
    grids: dict[Name, Grid]
    exhibits: dict[Name, AnyExhibit] = {}
    claims: dict[Name, Claim] = Field({}, description="what the paper says; each gets a verdict from our cells")
    published: Naming = Field(Naming(), description="for every exhibit that has `published`, whose own entries win")
    name: Name = ""

    @field_validator("methods", mode="before")
    @classmethod
    def _bases(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {name: {"base": name} | entry if isinstance(entry, dict) else entry for name, entry in given.items()}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if found := problems(self):
            raise ValueError("\n".join(found))
        return self

    def expand(self, value: str, grid: Grid | None = None) -> tuple[str, ...]:
        """The languages, pairs or mixes that a source or target stands for: itself, or the members of a group.

        Groups range over the languages of `grid`, or of the study.

        Raises:
            ValueError: no such language or group.
        """
        codes = (grid.languages if grid else []) or self.languages
        if value in self.groups:
            return tuple(self.groups[value])
        if value == "mono":
            return tuple(codes)
        if value.startswith(("family:", "script:")):
            kind, _, name = value.partition(":")
            known = {code: getattr(language(code), kind) for code in codes}
            if name not in known.values():
                raise ValueError(unknown(kind, name, known.values()))
            return tuple(code for code in codes if known[code] == name)
        if value.endswith("-X") and value[:-2] in codes:
            return tuple(f"{value[:-2]}-{code}" for code in codes if code != value[:-2])
        if value.startswith("X-") and value[2:] in codes:
            return tuple(f"{code}-{value[2:]}" for code in codes if code != value[2:])
        for part in value.split("+"):
            if len(parts(part)) > 2:
                raise ValueError(
                    f"{part!r} is neither a language nor a pair, context-question, such as {codes[0]}-{codes[-1]}"
                )
            for code in parts(part):
                if code not in codes:
                    groups = ["mono", *(f"{c}-X" for c in codes), *(f"X-{c}" for c in codes), *self.groups]
                    raise ValueError(unknown("language or group", code, [*codes, *groups]))
        return (value,)

    def meant(self, axis: str, values: str | list[str]) -> list[str]:
        """The values that `when` of a training entry names for an axis: of groups of sources, the members.

        Raises:
            ValueError: no such source or group.
        """
        given = [values] if isinstance(values, str) else values
        return [one for value in given for one in self.expand(value)] if axis == "source" else given

    def belongs(self, group: str, source: str, target: str) -> bool:
        """Whether a cell belongs to a group of an exhibit, named by its target or by how its target relates to its source.

        `zero-shot:en-X` are the targets of `en-X` that are `zero-shot`, and so on.

        Raises:
            ValueError: no such group.
        """
        trained = source.split("+")
        known = {code for part in trained for code in parts(part)}
        families = {language(code).family for code in known}
        scripts = {language(code).script for code in known}
        ends = parts(target)
        relation = {
            "all": True,
            "in-language": target in trained,
            "zero-shot": target not in trained,
            "new-language": any(code not in known for code in ends),
            "same-family": target not in trained and all(language(code).family in families for code in ends),
            "other-family": any(language(code).family not in families for code in ends),
            "same-script": target not in trained and all(language(code).script in scripts for code in ends),
            "other-script": any(language(code).script not in scripts for code in ends),
            "mono": len(ends) == 1,
        }
        if group in relation:
            return relation[group]
        if group in self.groups:
            return target in self.groups[group]
        narrowed, _, wide = group.partition(":")
        if wide and narrowed in relation:
            return self.belongs(wide, source, target) and relation[narrowed]
        if group.startswith(("family:", "script:")):
            kind, _, name = group.partition(":")
            of = {getattr(each, kind) for each in self.languages_used().values()}
            if name not in of:
                raise ValueError(unknown(kind, name, sorted(of)))
            return all(getattr(language(code), kind) == name for code in ends)
        if group.endswith("-X") and group[:-2] in self.languages:
            return len(ends) == 2 and ends[0] == group[:-2]
        if group.startswith("X-") and group[2:] in self.languages:
            return len(ends) == 2 and ends[1] == group[2:]
        pairs = [f"{code}-X" for code in self.languages] + [f"X-{code}" for code in self.languages]
        raise ValueError(unknown("group", group, [*relation, *self.groups, *pairs, "family:NAME", "script:NAME"]))

    def exhibit(self, name: str) -> AnyExhibit:
        """An exhibit, with the study's `published` where its own does not say.

        Raises:
            ValueError: no such exhibit.
        """
        if name not in self.exhibits:
            raise ValueError(f"study {self.name}: {unknown('exhibit', name, self.exhibits)}")
        exhibit = self.exhibits[name]
        if exhibit.published_numbers is None:
            return exhibit
        of_study, of_exhibit = (
            naming.model_dump(exclude_unset=True) for naming in (self.published, exhibit.published_numbers)
        )
        return exhibit.model_copy(update={"published": Published(**_merge(of_study, of_exhibit))})

    @property
    def metrics(self) -> dict[str, tuple[str, ...]]:
        """Task -> the metrics of its cells, the main one first."""
        return {name: task(entry.kind).metrics for name, entry in self.tasks.items()}

    def entry(self, name: str, split: str) -> tuple[str, TaskEntry]:
        """The task that a split is of, which runs or cells of a task take: its own, or the one that it is `trained_on`."""
        other = self.tasks[name].trained_on
        name = other if other and split != "test" else name
        return name, self.tasks[name]

    def languages_used(self) -> dict[str, Language]:
        """Code -> language for every language of the study, in the study's order."""
        return {code: language(code) for code in self.languages}

    def recipe(self, task: str, encoder: str, method: str, source: str, seed: int) -> Recipe:
        """The resolved recipe of one run: training entries that match are applied in order.

        Nothing in it depends on which other languages the study has, so that adding one leaves runs as they are.
        """
        entry = self.methods[method]
        identity = {"task": task, "encoder": encoder, "method": method, "base": entry.base, "source": source}
        matched = identity | {"source": data_of(source)}
        settings: dict[str, Any] = {}
        for rule in self.training:
            if all(matched[axis] in self.meant(axis, values) for axis, values in rule.when.items()):
                settings |= rule.set
        return Recipe(
            study=self.name,
            kind=MLM if task == MLM else self.tasks[task].kind,
            options=entry.options,
            seed=seed,
            training=Training(**settings),
            start=entry.start if task != MLM else None,
            first=self.tasks[task].start if task != MLM else None,
            **identity,
        )


def load_study(path: str | Path) -> Study:
    """Read a study file and what it extends.

    Raises:
        FileNotFoundError: no such study; names those that exist.
        ValueError: the file is not a valid study; every problem with its file and line.
    """
    path = Path(path)
    if not path.is_file():
        others = sorted(p.stem for p in path.parent.glob("*.yaml"))
        raise FileNotFoundError(f"no study file {path}: {unknown('study', path.stem, others)}")
    raw, lines = _read(path)
    try:
        return Study(**{**raw, "name": path.stem})
    except ValidationError as error:
        problems = [line for problem in error.errors() for line in _explain(problem, lines, path)]
        raise ValueError("\n".join(problems)) from None


def _read(path: Path, seen: tuple[Path, ...] = ()) -> tuple[dict[str, Any], Lines]:
    """The merged mapping of a study file and its parents, and where each key stands: location -> (file, line)."""
    if path in seen:
        raise ValueError(
            f"{path}: studies extend one another in a circle: {' -> '.join(p.name for p in (*seen, path))}"
        )
    if not path.is_file():
        others = sorted(p.stem for p in path.parent.glob("*.yaml"))
        raise FileNotFoundError(f"{seen[-1]}: extends a study that is not there: {unknown('study', path.stem, others)}")
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), yaml.SafeLoader)
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: not valid YAML: {error}") from None
    if not isinstance(raw, dict):
        raise ValueError(f"{path}: a study is a mapping (title: ..., grids: ...), got {type(raw).__name__}")
    lines: Lines = {}
    _locate(node, (), path, lines)
    if "extends" in raw:
        parent, above = _read(path.with_name(f"{raw['extends']}.yaml"), (*seen, path))
        raw, lines = _merge(parent, raw), above | lines
    return raw, lines


def _merge(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """Mappings merge key by key; anything else, lists too, is replaced; a null deletes."""
    merged = dict(base)
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(base.get(key), dict):
            merged[key] = _merge(base[key], value)
        else:
            merged[key] = value
    return merged


def _locate(node: yaml.Node | None, at: tuple[str, ...], path: Path, lines: Lines) -> None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*at, str(key.value))
            if here in lines and lines[here][0] == path:
                raise ValueError(
                    f"{path}:{key.start_mark.line + 1}: {'.'.join(here)} stands twice (first in line {lines[here][1]})"
                )
            lines[here] = (path, key.start_mark.line + 1)
            _locate(value, here, path, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines[(*at, str(index))] = (path, item.start_mark.line + 1)
            _locate(item, (*at, str(index)), path, lines)


def _explain(problem: Any, lines: Lines, path: Path) -> list[str]:
    """One line per mistake, with file and line."""
    place: tuple[str, ...] = ()
    for part in map(str, problem["loc"]):
        # Pydantic adds the kind of an exhibit or of data, which is no key of the file.
        if (*place, part) in lines:
            place = (*place, part)
    text = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "unknown_keys":
        return [_placed((*place, key), told, lines, path) for key, told in problem["ctx"]["keys"].items()]
    if problem["type"] == "missing":
        return [_placed(place, f"`{problem['loc'][-1]}` is missing", lines, path)]
    if not place:  # a problem of the whole study names its own places
        places = {".".join(known): known for known in lines}
        return [_placed(places.get(line.partition(": ")[0], ()), line, lines, path) for line in text.splitlines()]
    return [_placed(place, text, lines, path)]


def _placed(place: tuple[str, ...], text: str, lines: Lines, path: Path) -> str:
    file, line = lines.get(place, (path, 1))
    where = ".".join(place)
    return f"{file}:{line}: {text if text.startswith(where) else f'{where}: {text}'}"
