"""The encoders of a study: one class for each origin of encoders, with everything that depends on the origin."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import Field, PositiveInt, StrictFloat, StrictInt, StrictStr, ValidationError, model_validator

from xlgrid.architectures import PRETRAINING, Architecture
from xlgrid.architectures.scratch import Scratch
from xlgrid.base.chains import chain, first_mistakes
from xlgrid.base.errors import Damaged, first_sentence
from xlgrid.base.names import among
from xlgrid.base.settings import plainly
from xlgrid.base.unions import by_key
from xlgrid.data.checkpoints import LAYER_COUNTS, first_layers
from xlgrid.data.encoders import encoder_files
from xlgrid.data.published import HUB, InFolder, Obtained, OnHub
from xlgrid.data.tokenizer import FolderTokenizer, HubTokenizer, TokenizerEntry, TrainedTokenizer
from xlgrid.heads import ALL_HEADS, Head
from xlgrid.heads.families import ADDED, MODULES
from xlgrid.heads.probe import head_problem, type_problem
from xlgrid.languages.sources import NONE, Source, Target
from xlgrid.methods import Method
from xlgrid.models.fit import misfit_of_method, mistake_of_package
from xlgrid.products.encode import Encoder, Tokenizer, Tokens
from xlgrid.products.product import Inputs, Settings
from xlgrid.results.records import COLUMNS
from xlgrid.study.by_language import ByLanguage
from xlgrid.study.languages import LANGUAGE
from xlgrid.synthetic.artificial import is_artificial
from xlgrid.tasks import mlm
from xlgrid.training.new_head import LmHead
from xlgrid.training.recipe import Recipe, Training

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

    from xlgrid.plan.plan import Plan
    from xlgrid.study.schema import Study

# The default settings of `Training` for encoders from scratch.
TRAINING: dict[str, Any] = {
    "steps": 1500,
    "lr": 1e-3,
    "batch_size": 32,
    "weight_decay": 0.01,
    "alpha": 0.7,
    "evaluations": 2,
    "keep": "last",
}

# The defaults for new language-modelling heads: fewer weights need fewer steps, and allow a higher learning rate.
HEAD_TRAINING: dict[str, Any] = TRAINING | {"steps": 500, "lr": 3e-3}

Fact = StrictInt | StrictFloat | StrictStr


class EncoderEntry(Obtained):
    """An encoder of a study. There is a subclass for each origin.

    Attributes:
        rule: the name of the Snakemake rule that makes the encoder.
        is_trained: whether weights of the encoder are trained here.
    """

    rule: ClassVar[str]
    is_trained: ClassVar[bool] = False
    facts: dict[str, Fact] = Field(
        {},
        description="names and values of your own, which exhibits use as axes: {variant: xmod, languages: 60, updates: "
        "125000}; for an encoder that is trained here, `languages` (their number) and `updates` (the steps) are added "
        "unless you write them",
    )

    def known_facts(self, study: "Study") -> dict[str, Fact]:
        """The facts in the entry, and further facts that follow from it."""
        return self.facts

    @property
    def before(self) -> str | None:
        """The encoder from which this one is made."""
        return None

    @property
    def parts(self) -> dict[Target, str]:
        """Language or pair -> the task whose tokens the encoder trains on; empty if the encoder is not trained here."""
        return {}

    @property
    def texts(self) -> dict[str, tuple[str, ...]]:
        """Key of the entry -> the languages of the texts that this key needs."""
        return {}

    @property
    def most_tokens(self) -> int | None:
        """The most tokens of an input; None if only the encoder's files show it."""
        return None

    def for_source(self, name: str, source: Source) -> str:
        """The name of the encoder of runs on a source: that of the entry, or of the source's language."""
        return name

    def of_languages(self, name: str, languages: Iterable[str]) -> "dict[str, EncoderEntry]":
        """Name -> encoder, if the entry describes one for each language; otherwise empty."""
        return {}

    @property
    def own_tokenizer(self) -> TokenizerEntry | None:
        """The encoder's own tokenizer; None if the encoder uses a tokenizer of the study or of another encoder."""
        return None

    def tokenizer_of(self, study: "Study", name: str) -> str:
        """The name of the encoder's tokenizer.

        Args:
            name: the name of the encoder, here and in the other methods.
        """
        raise NotImplementedError

    def modules_of(self, study: "Study") -> list[str] | None:
        """The languages of the encoder's modules; None if there are no such modules, or if only its files show them."""
        return None

    def seedless(self, first_replica: Mapping[str, str]) -> Self | None:
        """The entry without its seed, which is equal for all replicas; None if the encoder has no random weights.

        Args:
            first_replica: encoder -> its first replica, for the encoders from which this one is made.
        """
        return None

    def known_config(self, study: "Study", name: str) -> dict[str, Any]:
        """The known entries of the encoder's config.json; empty, or with at least `model_type`."""
        raise NotImplementedError

    def problems(self, study: "Study", name: str) -> Iterator[str]:
        """Names that the study lacks, and contradictions with other entries of the study, each as `place: what is wrong`."""
        for fact in self.facts:
            if fact in COLUMNS:
                yield f"encoders.{name}.facts.{fact}: an axis or a column of exhibits has this name: choose another"

    def problems_of_texts(self, study: "Study", name: str) -> Iterator[str]:
        """Mistakes in the tasks on whose tokens the encoder trains. The caller has checked that these tasks exist."""
        yield from ()

    def problems_in(self, study: "Study", name: str, grid: str) -> list[str]:
        """Why a grid cannot have the encoder, each as `place: what is wrong`. The names in both exist.

        Args:
            grid: the name of the grid, here and in the methods that follow.
        """
        return first_mistakes(
            self.problems_of_use(study, name, grid),
            self._problems_of_modules(study, name, grid),
            self._problems_of_family(study, name, grid, misfit_of_method),
            self._problems_of_lengths(study, name, grid),
        )

    def problems_of_use(self, study: "Study", name: str, grid: str) -> Iterator[str]:
        """Mistakes in a grid that only the description of an encoder from scratch shows."""
        yield from ()

    def _problems_of_modules(self, study: "Study", name: str, grid: str) -> Iterator[str]:
        """Every language has one module, if the encoder has modules: pre-trained, or from an MLM run that adds it."""
        axes, modules = study.grids[grid], self.modules_of(study)
        if modules is None:
            return
        place = f"grids.{grid}: encoder {name} has modules of {', '.join(modules)}"
        sources = [source for source in study.sources(axes) if source != NONE]
        for key in axes.method:
            entry = study.methods[key]
            adds = any(entry.method.is_language_specific(f"{dictionary}.{ADDED}.weight") for dictionary in MODULES)
            start = entry.start if adds else None
            texts = {part: start and start.of_source(Source(part)) for part in study.trained(axes)}
            first = sources[0] if sources else Source(NONE)
            texts |= {target: start and start.of_target(target, first) for target in study.targets(axes)}
            for part, text in texts.items():
                if part.is_pair:
                    yield f"{place}, each for inputs in one language: leave out {part}"
                elif part in modules and text:
                    yield (
                        f"{place}; method {key} would add {part} a second time: take an encoder without this module, or give "
                        f"the method a `start` with `pairs` that leave out {part}"
                    )
                elif part not in modules and text != part:
                    yield (
                        f"{place}, but not of {part}: leave {part} out, or name it in `pairs` of the `start` of method "
                        f"{key}; the method of these MLM runs needs `base: xmod` and `options: "
                        "{tune: language}`"
                    )

    def mistakes_of_packages(self, study: "Study", name: str, grid: str) -> Iterator[str]:
        """The mistakes that methods of packages show in small models of the encoder's type, each as `place: what is
        wrong`. `problems_in` has found none."""
        return self._problems_of_family(study, name, grid, mistake_of_package)

    def _problems_of_family(
        self,
        study: "Study",
        name: str,
        grid: str,
        problem_of: "Callable[[Mapping[str, Any], Method, Head], str | None]",
    ) -> Iterator[str]:
        """Every method and head supports the family of the encoder, if the family is known already.

        Args:
            problem_of: (configuration of the encoder, method, head) -> the problem with the method, or None.
        """
        axes, config, place = study.grids[grid], self.known_config(study, name), f"grids.{grid}"
        if config and (problem := type_problem(config)):
            yield f"encoders.{name}{f'.path: {self.folder}/' if self.folder else ': its '}config.json {problem}"
            return
        runs = [(key, task) for key in axes.method for task in axes.task]
        runs += [(start.method, start.task) for key in axes.method for start in study.starts(key)]
        heads = {task: study.tasks[task].task.head for _, task in runs}
        misfits = {task: head_problem(config, head) if config else None for task, head in heads.items()}
        yield from (f"{place}: task {task}, encoder {name}: {problem}" for task, problem in misfits.items() if problem)
        # Whether a method fits an encoder depends only on whether the task is text, and on what the head changes.
        asked: dict[tuple[str, str], Head] = {}
        for key, task in runs:
            if not misfits[task] and (described := heads[task].described(config)):
                asked.setdefault((key, json.dumps(described, sort_keys=True)), heads[task])
        wrong: dict[str, str] = {}
        for (key, _), head in asked.items():
            if key not in wrong and (problem := problem_of(config, study.methods[key].method, head)):
                wrong[key] = problem
        yield from (f"{place}: method {key}, encoder {name}: {problem}" for key, problem in wrong.items())

    def _problems_of_lengths(self, study: "Study", name: str, grid: str) -> Iterator[str]:
        """The inputs of tasks and MLM runs are not too long."""
        axes = study.grids[grid]
        texts = [start.task for key in axes.method for start in study.starts(key)]
        for task in dict.fromkeys([*study.with_first(axes.task), *texts]):
            yield from too_long(study, f"tasks.{task}", task, name)


class _WithTokenizer(EncoderEntry):
    """An encoder with its own configuration, and with its own tokenizer or a tokenizer that it names."""

    tokenizer: str | None = Field(
        None,
        description="a tokenizer of the study, or an encoder whose tokenizer this one shares; absent: a tokenizer of its own",
    )

    def tokenizer_of(self, study: "Study", name: str) -> str:
        return self.tokenizer or name

    def configuration(self, folder: str | Path, most_entries: int | None = None) -> "PreTrainedConfig":
        """The configuration of the encoder, with only the layers that it keeps.

        Args:
            folder: the folder in which the encoder is or will be.
            most_entries: the most entries of the tokenizer that the encoder names, if the number is known.

        Raises:
            ValueError: the configuration is not known yet (an encoder of the Hub has not been fetched, and is not in
                `xlgrid.data.published.HUB`; or an encoder from scratch has not been made, and its tokenizer is not
                trained here), or the encoder or its copy in the folder has fewer layers than it should keep.
        """
        raise NotImplementedError

    def planned_configuration(self, plan: "Plan", name: str) -> "PreTrainedConfig":
        """The result of `configuration`, with the folder from a plan."""
        tokenizer = plan.study.all_tokenizers[self.tokenizer_of(plan.study, name)]
        return self.configuration(plan.owned(Encoder(plan.study.name, name)).folder, tokenizer.most_entries)

    def basis(self, plan: "Plan", name: str) -> list[Any]:
        """Everything on which `planned_configuration` depends: the entry, the tokenizer, and what folders state."""
        tokenizer = plan.study.all_tokenizers[self.tokenizer_of(plan.study, name)]
        folders = filter(None, (self.folder, plan.owned(Encoder(plan.study.name, name)).folder))
        stated = [_read(Path(folder, file)) for folder in folders for file in ("config.json", "encoder.json")]
        return [self.model_dump(mode="json"), tokenizer.most_entries, *stated]

    def problems(self, study: "Study", name: str) -> Iterator[str]:
        yield from super().problems(study, name)
        yield from among(f"encoders.{name}", "tokenizer", filter(None, [self.tokenizer]), study.all_tokenizers)


class _Published(ByLanguage, _WithTokenizer):
    """An encoder from the Hub or from a folder."""

    rule: ClassVar[str] = "fetch_encoder"
    layers: PositiveInt | None = Field(None, description="the number of layers to keep, the first ones; absent: all")
    modules: dict[str, str] = Field(
        {},
        description="for an encoder with language modules, such as X-MOD: language of the study: name of its module in "
        "the checkpoint, if the two differ, as in {en: en_XX}; modules that are not listed keep their names",
    )

    @model_validator(mode="after")
    def _modules_differ(self) -> Self:
        names = [*self.modules.values()]
        if doubles := sorted({name for name in names if names.count(name) > 1}):
            codes = [code for code, name in self.modules.items() if name == doubles[0]]
            raise ValueError(
                f"modules: {' and '.join(codes)} have the same module {doubles[0]}: name one for each language"
            )
        return self

    def inputs(self, plan: "Plan", encoder: Encoder) -> Inputs:
        """The files from which the encoder is made."""
        files = encoder_files(self.folder, plan.study.downloads) if self.folder else []
        return {"tokenizer": _tokenizer(plan, encoder), "files": files}

    def settings(self, study: "Study", name: str) -> Settings:
        """The settings for the command that makes the encoder."""
        modules = json.dumps(self.modules, separators=(",", ":"), sort_keys=True)
        changes = [f"--modules={modules}"] if self.modules else []
        changes += [f"--layers={self.layers}"] if self.layers else []
        return self.origin | {"changes": changes}

    def known_config(self, study: "Study", name: str) -> dict[str, Any]:
        """The known entries of the encoder's config.json; empty, or with at least `model_type`."""
        config = self.whole_config(Path(Encoder(study.name, name).folder))
        return config | dict.fromkeys(config.keys() & {*LAYER_COUNTS}, self.layers) if self.layers else config

    def whole_config(self, copy: Path) -> dict[str, Any]:
        """The known entries of config.json before layers are cut; empty, or with at least `model_type`.

        Args:
            copy: the folder in which the encoder is or will be.
        """
        raise NotImplementedError

    def modules_of(self, study: "Study") -> list[str] | None:
        return [*self.modules] or None

    def configuration(self, folder: str | Path, most_entries: int | None = None) -> "PreTrainedConfig":
        config = self._whole_configuration(Path(folder))
        for entry, value in (first_layers(config.to_dict(), self.layers) if self.layers else {}).items():
            setattr(config, entry, value)
        return config

    def _whole_configuration(self, copy: Path) -> "PreTrainedConfig":
        """The result of `configuration` before layers are cut."""
        kept = _read(copy / "encoder.json").get("layers")
        own = [Path(self.folder)] if self.folder else []
        # The copy may have been cut to fewer layers than the study asks for now.
        places = [*own, copy] if self.layers or kept else [copy, *own]
        place = next((place for place in places if (place / "config.json").is_file()), None)
        if place is None:
            raise _size_is_unknown(self.origin["place"], copy)
        if place == copy and kept and not (self.layers and self.layers <= kept):
            raise ValueError(
                f"{copy} has only the first {kept} layers, but the study asks for {self.layers or 'all'}: delete "
                f"{copy}, and the encoder is fetched again"
            )
        return _configuration_in(place)

    def problems(self, study: "Study", name: str) -> Iterator[str]:
        yield from super().problems(study, name)
        yield from among(f"encoders.{name}.modules", LANGUAGE, self.modules, study.languages)


class HubEncoder(OnHub, _Published):
    """An encoder from the Hugging Face Hub."""

    @property
    def own_tokenizer(self) -> TokenizerEntry | None:
        return None if self.tokenizer or self.is_family else HubTokenizer(hub=self.hub, revision=self.revision)

    def whole_config(self, copy: Path) -> dict[str, Any]:
        known = HUB.get(self.hub, {})
        # The folder may still hold an encoder from an earlier version of the study.
        is_fetched = not known and _read(copy / "encoder.json").get("hub") == self.hub
        return _described(copy) if is_fetched else known

    def _whole_configuration(self, copy: Path) -> "PreTrainedConfig":
        from transformers import AutoConfig

        return AutoConfig.for_model(**HUB[self.hub]) if self.hub in HUB else super()._whole_configuration(copy)


class FolderEncoder(InFolder, _Published):
    """An encoder from a folder."""

    @property
    def own_tokenizer(self) -> TokenizerEntry | None:
        return None if self.tokenizer or self.is_family else FolderTokenizer(path=self.path)

    def whole_config(self, copy: Path) -> dict[str, Any]:
        return _described(Path(self.path))

    def problems(self, study: "Study", name: str) -> Iterator[str]:
        yield from super().problems(study, name)
        path = Path(self.path, "config.json")
        if self.layers and path.is_file():
            try:
                first_layers(json.loads(path.read_text(encoding="utf-8")), self.layers)
            except ValueError as error:
                yield f"encoders.{name}.layers: {error}"


class TrainedEncoder(EncoderEntry):
    """An encoder that is trained here.

    Attributes:
        key: the key of the entry that describes what is trained.
        defaults: the default settings of the training.
        refused: name of a setting that this training does not allow -> the reason and advice.
    """

    rule: ClassVar[str] = "pretrain"
    is_trained: ClassVar[bool] = True
    key: ClassVar[str]
    defaults: ClassVar[dict[str, Any]] = TRAINING
    refused: ClassVar[dict[str, str]] = {
        "dev_targets": "pre-training is evaluated on the text of its languages: leave out `dev_targets`"
    }
    if TYPE_CHECKING:
        training: dict[str, Any]

    @model_validator(mode="after")
    def _training_exists(self) -> Self:
        try:
            conflict = self.pretraining.conflict
        except ValidationError as error:
            raise ValueError(f"training: {plainly(error)}") from None
        for setting, problem in self.refused.items():
            if setting in self.training:
                raise ValueError(f"training: {problem}")
        head = ALL_HEADS.find("mlm")
        for problem in filter(None, (setting.misfit(head) for setting in self.pretraining.added.values())):
            raise ValueError(f"training: {problem}")
        for given, default in (("batch_tokens", "batch_size"), ("epochs", "steps")):
            if given in self.training and default not in self.training:
                raise ValueError(
                    f"training: `{default}` has a default for encoders, which wins over `{given}`: add "
                    f"`{default}: null`, or replace `{given}` by `{default}`"
                )
        if conflict:
            raise ValueError(f"training: {conflict[1]}")
        return self

    @property
    def described(self) -> Architecture | LmHead:
        """The description of the encoder or head that is trained."""
        described: Architecture | LmHead = getattr(self, self.key)
        return described

    @property
    def texts(self) -> dict[str, tuple[str, ...]]:
        return {self.key: self.described.languages}

    @property
    def pretraining(self) -> Training:
        """The settings of the training."""
        return Training.model_validate(self.defaults | self.training)

    def recipe(self, study: str, encoder: str) -> Recipe:
        """The resolved recipe of the training.

        Args:
            study: the name of the study.
            encoder: the name of the encoder.
        """
        names = {"study": study, "task": self.described.task, "kind": "mlm", "encoder": encoder}
        method = {"method": "full-ft", "base": "full-ft"}
        fields = {"source": "+".join(self.parts), "seed": self.described.seed, "training": self.pretraining}
        return Recipe.model_validate({**names, **method, **fields, self.key: self.described})

    def inputs(self, plan: "Plan", encoder: Encoder) -> Inputs:
        study, tokenizer = encoder.study, self.tokenizer_of(plan.study, encoder.encoder)
        inputs: Inputs = {"tokenizer": _tokenizer(plan, encoder)}
        for split in ("train", "dev"):
            of_parts = [Tokens(study, task, tokenizer, part, split) for part, task in self.parts.items()]
            inputs[split] = [plan.owned(tokens).path for tokens in of_parts]
        return {**inputs, "begin": [plan.owned(Encoder(study, self.before)).path] if self.before else []}

    def settings(self, study: "Study", name: str) -> Settings:
        return {"recipe": self.recipe(study.name, name).identity()}

    def problems(self, study: "Study", name: str) -> Iterator[str]:
        yield from super().problems(study, name)
        texts = [key for key, entry in study.tasks.items() if entry.kind == "mlm"]
        yield from among(f"encoders.{name}.{self.key}.task", "task of kind `mlm`", [self.described.task], texts)


class ScratchEncoder(TrainedEncoder, _WithTokenizer):
    """An encoder that is pre-trained here, on texts of the study."""

    key: ClassVar[str] = "scratch"
    refused: ClassVar[dict[str, str]] = TrainedEncoder.refused | {
        "dropout": "an encoder from scratch has the dropout of `scratch`, also in later runs: state it there"
    }
    scratch: Scratch = Field(description="what the encoder is made of, and how it is pre-trained")
    training: dict[str, Any] = Field(
        {},
        description=f"settings of the pre-training; defaults: {', '.join(f'{k} {v}' for k, v in TRAINING.items())}",
    )

    @model_validator(mode="after")
    def _one_size_of_tokenizer(self) -> Self:
        if self.tokenizer and "vocab" in self.scratch.model_fields_set:
            raise ValueError(
                "scratch.vocab is the size of the encoder's own tokenizer, but the encoder names a `tokenizer`: "
                "leave out one of the two"
            )
        return self

    def known_facts(self, study: "Study") -> dict[str, Fact]:
        updates = self.pretraining.steps or 0
        return {"languages": len(self.scratch.languages), "updates": updates, **self.facts}

    @property
    def before(self) -> str | None:
        return self.scratch.begins_with

    @property
    def parts(self) -> dict[Target, str]:
        return {part: self.scratch.task_of(part) for part in Source(self.scratch.source).parts}

    @property
    def most_tokens(self) -> int | None:
        return self.scratch.max_length

    @property
    def own_tokenizer(self) -> TokenizerEntry | None:
        if self.tokenizer:
            return None
        scratch = self.scratch
        return TrainedTokenizer(
            kind=scratch.kind, languages=scratch.languages, size=scratch.vocab, max_length=scratch.max_length
        )

    def known_config(self, study: "Study", name: str) -> dict[str, Any]:
        return self.scratch.known

    def modules_of(self, study: "Study") -> list[str] | None:
        return [*self.scratch.modules] or None

    def configuration(self, folder: str | Path, most_entries: int | None = None) -> "PreTrainedConfig":
        folder = Path(folder)
        if (folder / "config.json").is_file():
            return _configuration_in(folder)
        if most_entries or not self.tokenizer:
            return self.scratch.configuration(most_entries or self.scratch.vocab)
        raise _size_is_unknown(folder.name, folder)

    def seedless(self, first_replica: Mapping[str, str]) -> Self | None:
        scratch = self.scratch.seedless(first_replica.get(self.scratch.begins_with or ""))
        return self.model_copy(update={"scratch": scratch})

    def problems(self, study: "Study", name: str) -> Iterator[str]:
        yield from super().problems(study, name)
        scratch, place = self.scratch, f"encoders.{name}.scratch"
        aligned = [code for pair in scratch.bitext for code in pair]
        yield from among(f"{place}.bitext", "language of this encoder", aligned, scratch.languages)
        has_customs = study.text.customs.facts and any(map(is_artificial, aligned))
        if has_customs and not scratch.bitext_task:
            yield (
                f"{place}.bitext: texts with customs are not parallel, because each artificial language has its own "
                "customs: leave out `bitext`, or `text.customs`"
            )
        of_pairs = [
            key
            for key, entry in study.tasks.items()
            if entry.kind == "mlm" and entry.data and len(entry.task.inputs) == 2
        ]
        wanted = "task of kind `mlm` with `data` and two `inputs`"
        yield from among(f"{place}.bitext_task", wanted, filter(None, [scratch.bitext_task]), of_pairs)
        yield from self._problems_of_beginning(study, name)
        shared = study.all_tokenizers.get(self.tokenizer or "")
        if isinstance(shared, TrainedTokenizer) and scratch.kind != shared.kind:
            yield (
                f"encoders.{name}: the encoder is of kind {scratch.kind}, but its tokenizer {self.tokenizer} of kind "
                f"{shared.kind}: give both the same `kind`"
            )

    def _problems_of_beginning(self, study: "Study", name: str) -> Iterator[str]:
        """An encoder and the encoder in its `begin` have the same type, sizes and tokenizer, and form no circle."""
        if not (begin := self.before):
            return
        place, others = f"encoders.{name}.scratch.begin", [key for key in study.encoders if key != name]
        if begin not in others:
            yield from among(place, "encoder that is there before", [begin], others)
        elif name in (before := encoders_before(study.encoders, name)):
            yield f"{place}: {' begins with '.join([name, *before])}: name an encoder that is there before"
        elif (tokenizer := study.tokenizer_of(begin)) != study.tokenizer_of(name):
            yield (
                f"{place}: {begin} has the tokenizer {tokenizer}, but {name} has {study.tokenizer_of(name)}, so that "
                f"tokens would get embeddings of other tokens: add `tokenizer: {tokenizer}`"
            )
        elif (config := study.encoders[begin].known_config(study, begin)) and (problem := self.scratch.misfit(config)):
            yield f"{place}: {begin} {problem}"

    def problems_of_use(self, study: "Study", name: str, grid: str) -> Iterator[str]:
        for key, problem in self.scratch.problems(study, grid):
            yield f"grids.{grid}{f'.{key}' if key else ''}: encoder {name}: {problem}"

    def problems_of_texts(self, study: "Study", name: str) -> Iterator[str]:
        scratch, place = self.scratch, f"encoders.{name}.scratch"
        for task in dict.fromkeys(self.parts.values()):
            yield from too_long(study, place, task, name)
        if scratch.bitext_task and (data := study.tasks[scratch.bitext_task].data):
            for part in map(Target, map("-".join, scratch.bitext)):
                for split in ("train", "dev"):
                    if problem := data.lacks(scratch.bitext_task, split, part):
                        yield f"{place}.bitext: {problem}"
        options = mlm.Options(**study.tasks[scratch.task].options)
        for key, problem in scratch.problems_of_text(options.lines, options.documents):
            yield f"{place}.{key}: {problem}"


class _OfAnother(EncoderEntry):
    """An encoder that is made from another encoder of the study, and has its shape and its tokenizer."""

    of: str

    @property
    def before(self) -> str | None:
        return self.of

    def tokenizer_of(self, study: "Study", name: str) -> str:
        return study.tokenizer_of(self.of)

    def known_facts(self, study: "Study") -> dict[str, Fact]:
        return study.encoders[self.of].known_facts(study) | self.facts

    def known_config(self, study: "Study", name: str) -> dict[str, Any]:
        return study.encoders[self.of].known_config(study, self.of)

    def modules_of(self, study: "Study") -> list[str] | None:
        return study.encoders[self.of].modules_of(study)

    def planned_configuration(self, plan: "Plan", name: str) -> "PreTrainedConfig":
        return plan.study.encoders[self.of].planned_configuration(plan, self.of)

    def basis(self, plan: "Plan", name: str) -> list[Any]:
        return plan.study.encoders[self.of].basis(plan, self.of)

    def problems_of_use(self, study: "Study", name: str, grid: str) -> Iterator[str]:
        return study.encoders[self.of].problems_of_use(study, name, grid)


class Checkpoint(_OfAnother):
    """The checkpoint of an encoder from scratch after a step of its pre-training."""

    rule: ClassVar[str] = "checkpoint_encoder"
    of: str = Field(description="an encoder of the study from `scratch`")
    step: PositiveInt = Field(description="the step, one of the `checkpoints` in the `training` of that encoder")

    def known_facts(self, study: "Study") -> dict[str, Fact]:
        return study.encoders[self.of].known_facts(study) | {"updates": self.step} | self.facts

    def inputs(self, plan: "Plan", encoder: Encoder) -> Inputs:
        return {"encoder": plan.owned(Encoder(encoder.study, self.of)).path}

    def settings(self, study: "Study", name: str) -> Settings:
        return {"step": self.step}

    def seedless(self, first_replica: Mapping[str, str]) -> Self | None:
        return self.model_copy(update={"of": first_replica.get(self.of, self.of)})

    def problems(self, study: "Study", name: str) -> Iterator[str]:
        yield from super().problems(study, name)
        others = {key: entry for key, entry in study.encoders.items() if isinstance(entry, ScratchEncoder)}
        yield from among(f"encoders.{name}.of", "encoder from scratch", [self.of], others)
        kept = others[self.of].pretraining.checkpoints if self.of in others else (self.step,)
        if self.step not in kept:
            yield (
                f"encoders.{name}.step: the pre-training of {self.of} keeps the steps {', '.join(map(str, kept)) or 'none'}, "
                f"not {self.step}: add it to `checkpoints` in its `training`"
            )


class EncoderWithHead(_OfAnother, TrainedEncoder):
    """An encoder from the Hub or a folder, with a language-modelling head that is trained here."""

    key: ClassVar[str] = "lm_head"
    defaults: ClassVar[dict[str, Any]] = HEAD_TRAINING
    refused: ClassVar[dict[str, str]] = TrainedEncoder.refused | {
        "checkpoints": "the training of a head has no checkpoints: leave out `checkpoints`"
    }
    of: str = Field(description="an encoder of the study, from `hub` or `path`")
    lm_head: LmHead = Field(description="the head, which all runs on this encoder share")
    training: dict[str, Any] = Field(
        {},
        description="settings of the training; the defaults are the defaults of `scratch`, except for steps "
        f"{HEAD_TRAINING['steps']} and lr {HEAD_TRAINING['lr']}",
    )

    @property
    def parts(self) -> dict[Target, str]:
        return dict.fromkeys(map(Target, self.lm_head.languages), self.lm_head.task)

    def seedless(self, first_replica: Mapping[str, str]) -> Self | None:
        head = self.lm_head.model_copy(update={"seed": 0})
        return self.model_copy(update={"of": first_replica.get(self.of, self.of), "lm_head": head})

    def problems(self, study: "Study", name: str) -> Iterator[str]:
        published = [key for key, entry in study.encoders.items() if isinstance(entry, _Published)]
        yield from among(f"encoders.{name}.of", "encoder from `hub` or `path`", [self.of], published)
        yield from super().problems(study, name)


# Key -> the class of the encoders whose entries have this key.
MEMBERS: dict[str, type[EncoderEntry]] = {
    "hub": HubEncoder,
    "path": FolderEncoder,
    "scratch": ScratchEncoder,
    "step": Checkpoint,
    "lm_head": EncoderWithHead,
}
AnyEncoder = Annotated[
    HubEncoder | FolderEncoder | ScratchEncoder | Checkpoint | EncoderWithHead, by_key("an encoder", MEMBERS)
]


def encoders_before(encoders: Mapping[str, EncoderEntry], name: str) -> list[str]:
    """The names of the encoders from which an encoder is made (`EncoderEntry.before`), the nearest first.

    If they form a circle, the list ends with the first name that comes again.
    """
    return chain(name, lambda key: encoders[key].before if key in encoders else None)


def replicas(encoders: Mapping[str, EncoderEntry]) -> dict[str, str]:
    """Encoder -> its first replica, which is itself if there is no earlier one.

    Replicas differ only by seeds: by their own, or by the seed of an encoder from which they are made.
    """
    first_replica: dict[str, str] = {}
    with_recipe: dict[str, str] = {}
    # An encoder comes after the encoders from which it is made.
    for name in sorted(encoders, key=lambda name: len(encoders_before(encoders, name))):
        recipe = encoders[name].seedless(first_replica)
        key = json.dumps(recipe.model_dump(mode="json"), sort_keys=True) if recipe else name
        first_replica[name] = with_recipe.setdefault(key, name)
    return first_replica


def too_long(study: "Study", place: str, task: str, encoder: str) -> Iterator[str]:
    """The message that the inputs of a task are too long for an encoder, or else for its tokenizer, if their limits are known.

    Args:
        place: the place of the mistake in the study.
    """
    key, entry = study.tokenizer_of(encoder), study.tasks[task]
    parts = (("encoder", encoder, study.encoders[encoder]), ("tokenizer", key, study.all_tokenizers[key]))
    for what, name, part in parts:
        if (most := part.most_tokens) and entry.max_length > most:
            yield (
                f"{place}: task {task} has inputs of up to {entry.max_length} tokens, too long for "
                f"{what} {name}, which takes {most}: give tasks.{task} {f'`kind: {entry.kind}` and ' * (task == PRETRAINING)}"
                f"`max_length: {most}`, or raise the max_length of the {what}"
            )
            return


def pretraining_task(encoders: Iterable[EncoderEntry]) -> dict[str, Any] | None:
    """The default task on whose tokens encoders from scratch and new language-modelling heads train.

    None if each of them names another task.
    """
    if not any(PRETRAINING in entry.parts.values() for entry in encoders):
        return None
    # The task must not depend on the encoders. Otherwise another encoder in a study would change the tokens of all.
    return {"kind": "mlm", "options": {"lines": "segments"}, "max_length": 512}


def _tokenizer(plan: "Plan", encoder: Encoder) -> str:
    """The path of the tokenizer of an encoder."""
    return plan.owned(Tokenizer(encoder.study, plan.study.tokenizer_of(encoder.encoder))).path


def _read(path: Path) -> dict[str, Any]:
    """The contents of a JSON file; empty if it is missing or damaged (the job that copies the encoder reports it)."""
    try:
        contents = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return contents if isinstance(contents, dict) else {}


def _described(folder: Path) -> dict[str, Any]:
    """The contents of a config.json with `model_type`; empty if there is no such file."""
    config = _read(folder / "config.json")
    return config if "model_type" in config else {}


def _configuration_in(folder: Path) -> "PreTrainedConfig":
    from transformers import AutoConfig

    try:
        return AutoConfig.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # Transformers raises errors of many types.
        raise Damaged(
            f"{folder}/config.json describes no encoder ({first_sentence(error)}): take the config.json that was saved with the weights",
            folder,
        ) from error


def _size_is_unknown(encoder: str, folder: Path) -> ValueError:
    return ValueError(
        f"the size of the encoder {encoder} is not known before the encoder is there: make it with `snakemake --cores 1 "
        f"{folder}/model.safetensors`"
    )
