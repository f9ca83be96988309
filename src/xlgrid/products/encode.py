"""Tokenizers, encoders and tokens."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.data.checkpoints import weights_problem
from xlgrid.data.encoders import older_tokenizer, tokenizer_files, without_tokenizer
from xlgrid.data.origins.origin import SPLITS
from xlgrid.data.published import Repository
from xlgrid.languages.sources import Target, unaccompanied
from xlgrid.products.data import Data, Text, columns_of
from xlgrid.products.product import Inputs, Product, Settings
from xlgrid.tasks import mlm

if TYPE_CHECKING:
    from xlgrid.data.tokenizer import TokenizerEntry
    from xlgrid.plan.plan import Plan
    from xlgrid.study.encoders import EncoderEntry
    from xlgrid.study.schema import Study


@dataclass(frozen=True)
class Tokenizer(Product):
    """A tokenizer, which several encoders may share."""

    template = "results/{study}/tokenizers/{tokenizer}/{file}"
    files = ("tokenizer.json", "tokenizer_config.json")
    stage = "encode"
    rules = ("tokenizer", "fetch_tokenizer")
    study: str
    tokenizer: str

    def inputs(self, plan: "Plan") -> Inputs:
        entry = plan.study.all_tokenizers[self.tokenizer]
        if entry.texts:
            return {"texts": [plan.owned(Text(self.study, code)).path for code in entry.texts]}
        return {"files": tokenizer_files(entry.folder) if entry.folder else []}

    def settings(self, study: "Study") -> Settings:
        return study.all_tokenizers[self.tokenizer].origin

    @classmethod
    def makers(cls, study: "Study") -> Mapping[str, Iterable[str]]:
        return _makers(cls, "tokenizers", study.all_tokenizers)

    def names(self, study: "Study") -> Mapping[str, Iterable[str]]:
        return {"tokenizer": study.all_tokenizers}

    def mistakes(self, plan: "Plan") -> Iterator[str]:
        folder = plan.study.all_tokenizers[self.tokenizer].folder
        names = [file.name for file in Path(folder).iterdir()] if folder and Path(folder).is_dir() else []
        if folder and "tokenizer.json" not in names and older_tokenizer(names):
            section = "tokenizers" if self.tokenizer in plan.study.tokenizers else "encoders"
            yield f"{section}.{self.tokenizer}.path: {without_tokenizer(folder, names)}"

    @property
    def thing(self) -> str:
        return f"tokenizer {self.tokenizer}"

    def repository(self, study: "Study") -> Repository | None:
        return study.all_tokenizers[self.tokenizer].repository

    def problem_there(self, study: "Study", files: list[str], answer: Any) -> str | None:
        if "tokenizer.json" in files:
            return None
        return f"{self.thing}: {without_tokenizer('the repository', files)}"


@dataclass(frozen=True)
class Encoder(Product):
    """An encoder with its tokenizer."""

    template = "results/{study}/encoders/{encoder}/{file}"
    files = ("model.safetensors", "config.json", "tokenizer.json")
    stage = "encode"
    rules = ("pretrain", "checkpoint_encoder", "fetch_encoder")
    study: str
    encoder: str

    def inputs(self, plan: "Plan") -> Inputs:
        return plan.study.encoders[self.encoder].inputs(plan, self)

    def settings(self, study: "Study") -> Settings:
        return study.encoders[self.encoder].settings(study, self.encoder)

    @classmethod
    def makers(cls, study: "Study") -> Mapping[str, Iterable[str]]:
        return _makers(cls, "encoders", study.single_encoders)

    def names(self, study: "Study") -> Mapping[str, Iterable[str]]:
        return {"encoder": study.single_encoders}

    def mistakes(self, plan: "Plan") -> Iterator[str]:
        folder = plan.study.encoders[self.encoder].folder
        if folder and normpath(folder) == normpath(self.folder):
            yield f"encoders.{self.encoder}.path: {folder} is where xlgrid copies the encoder to: name another folder"

    @property
    def thing(self) -> str:
        return f"encoder {self.encoder}"

    def repository(self, study: "Study") -> Repository | None:
        return study.encoders[self.encoder].repository

    def problem_there(self, study: "Study", files: list[str], answer: Any) -> str | None:
        place = f"{self.thing}: the repository"
        if "config.json" not in files:
            return f"{place} has no config.json: name one in the layout of transformers"
        return weights_problem(place, files)


@dataclass(frozen=True)
class Tokens(Product):
    """One split of a task's data in a language or pair, as the tokens of a tokenizer.

    Tokens of `fr~en` contain each French example and the parallel example in English, for methods that read both.
    """

    template = "results/{study}/tokens/{task}/{tokenizer}/{language}/{split}.arrow"
    stage = "encode"
    rules = ("tokens",)
    study: str
    task: str
    tokenizer: str
    language: str
    split: str

    def inputs(self, plan: "Plan") -> Inputs:
        return {
            "data": [plan.owned(each).path for each in self._data(plan)],
            "tokenizer": plan.owned(Tokenizer(self.study, self.tokenizer)).path,
        }

    def _data(self, plan: "Plan") -> list[Data] | list[Text]:
        """The data or texts that are tokenized. Data with the parallel examples come second."""
        entry = plan.study.tasks[self.task]
        if entry.from_text:
            return [Text(self.study, code) for code in Target(self.language).languages]
        language, parallel = unaccompanied(self.language)
        if parallel is None:
            return [Data(self.study, self.task, language, split) for split in entry.task.head.splits(self.split)]
        examples = Data(self.study, self.task, language, self.split)
        if entry.parallel and self.split == "test" and language != parallel:
            return [examples, Data(self.study, entry.parallel, language, "test")]
        return [examples, Data(self.study, self.task, parallel, self.split)]

    def settings(self, study: "Study") -> Settings:
        entry = study.tasks[self.task]
        given, head = entry.task.Options(**entry.options), entry.task.head
        # These options say which rows of a text are for the split, and what is done with long rows.
        options = given.model_dump() if isinstance(given, mlm.Options) else {}
        # Only a text needs the split here. Other data have a separate file for each split.
        options = options | {"split": self.split} if entry.from_text else options
        # Cells read the options of the head from the tokens.
        if evaluated := given.model_dump(mode="json", include={*head.options.model_fields}, exclude_none=True):
            options["options"] = shlex.quote(json.dumps(evaluated, separators=(",", ":"), ensure_ascii=False))
        return {
            "kind": entry.kind,
            "columns": columns_of(entry),
            "max_length": entry.max_length,
            "separators": "--one-separator" if entry.separators == "one" else "",
            "text": " ".join(f"--{name.replace('_', '-')} {value}" for name, value in options.items()),
        }

    def names(self, study: "Study") -> Mapping[str, Iterable[str]]:
        tokenizers = study.all_tokenizers
        return {"task": study.tasks, "tokenizer": tokenizers, "language": study.languages, "split": SPLITS}

    @property
    def languages(self) -> tuple[str, ...]:
        language, parallel = unaccompanied(self.language)
        return (*Target(language).languages, *([parallel] if parallel else []))


def _makers(
    kind: type[Product], folder: str, entries: "Mapping[str, EncoderEntry | TokenizerEntry]"
) -> dict[str, list[str]]:
    """Rule -> the beginnings of the paths in `folder` that the rule makes, see `Product.makers`."""
    return {rule: [f"{folder}/{name}" for name, entry in entries.items() if entry.rule == rule] for rule in kind.rules}
