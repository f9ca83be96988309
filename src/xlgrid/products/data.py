"""Data of tasks, and text."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from xlgrid.data.fetch import read_data
from xlgrid.data.sources import SPLITS, local_files
from xlgrid.languages.sources import Target
from xlgrid.products.product import Inputs, Product, Repository, Settings

if TYPE_CHECKING:
    import pyarrow as pa

    from xlgrid.data.sources import Labelled, Origin
    from xlgrid.plan.plan import Plan
    from xlgrid.study.schema import Study
    from xlgrid.study.tasks import TaskEntry


@dataclass(frozen=True)
class Meanings(Product):
    """The meanings of a generated task, which every language expresses."""

    template = "results/{study}/data/{task}/meanings.parquet"
    stage = "data"
    rules = ("meanings",)
    study: str
    task: str

    def settings(self, study: "Study") -> Settings:
        return _of_generated(study.tasks[self.task])

    def names(self, study: "Study") -> Mapping[str, Iterable[str]]:
        return {"task": [name for name, entry in study.tasks.items() if entry.is_generated]}


@dataclass(frozen=True)
class Data(Product):
    """One split of a task's data in a language or pair."""

    template = "results/{study}/data/{task}/{language}/{split}.parquet"
    stage = "data"
    rules = ("data", "fetch_data", "label_data")
    study: str
    task: str
    language: str
    split: str

    def inputs(self, plan: "Plan") -> Inputs:
        task = plan.study.tasks[self.task]
        if task.data is None:
            return {"meanings": plan.owned(Meanings(self.study, self.task)).path}
        if labelled := task.data.labelled_in(self.split, self.language):
            rows = plan.owned(Unlabelled(self.study, self.task, self.language)).path
            return {"rows": rows, **plan.run_of(labelled.by).weights(plan)}
        origin = task.data.of(self.split, self.language)
        return {"files": local_files(origin, self.language, self.split, task.task.head.has_pairs_only)}

    def settings(self, study: "Study") -> Settings:
        task = study.tasks[self.task]
        if task.data is None:
            return _of_generated(task)
        if task.data.labelled_in(self.split, self.language):
            return {"kind": task.kind, "columns": columns_of(task), "max_length": task.max_length}
        source = task.data.of(self.split, self.language).concerning(self.language)
        return {"kind": task.kind, "columns": columns_of(task), "source": source.model_dump_json(exclude_none=True)}

    @classmethod
    def makers(cls, study: "Study") -> Mapping[str, Iterable[str]]:
        labelled = _labelled(study)
        return {
            "data": [f"data/{name}" for name, task in study.tasks.items() if not task.data],
            "fetch_data": [f"data/{name}" for name, task in study.tasks.items() if task.data],
            "label_data": [f"data/{name}/{code}/train" for name in labelled for code in labelled[name].languages or ()],
        }

    def names(self, study: "Study") -> Mapping[str, Iterable[str]]:
        tasks = [name for name, entry in study.tasks.items() if not entry.from_text]
        return {"task": tasks, "language": study.languages, "split": SPLITS}

    @property
    def languages(self) -> tuple[str, ...]:
        return Target(self.language).languages

    def of_job(self, study: "Study") -> Self:
        return replace(self, split="test") if study.tasks[self.task].is_generated else self

    def job(self, study: "Study") -> str:
        job = super().job(study)
        return job.rpartition("/")[0] if study.tasks[self.task].is_generated else job

    @property
    def thing(self) -> str:
        return f"data {self.task}"

    def repository(self, study: "Study") -> Repository | None:
        return _repository(self.origin(study))

    def origin(self, study: "Study") -> "Origin | None":
        data = study.tasks[self.task].data
        is_fetched = data and not data.labelled_in(self.split, self.language)
        return data.of(self.split, self.language) if data and is_fetched else None


@dataclass(frozen=True)
class Unlabelled(Product):
    """The training data of a task in a language before a run of the study labels them."""

    template = "results/{study}/unlabelled/{task}/{language}.parquet"
    stage = "data"
    rules = ("fetch_unlabelled",)
    study: str
    task: str
    language: str

    def inputs(self, plan: "Plan") -> Inputs:
        origin = self.origin(plan.study)
        assert origin
        return {"files": local_files(origin, self.language, "train")}

    def settings(self, study: "Study") -> Settings:
        task, origin = study.tasks[self.task], self.origin(study)
        assert origin
        source = origin.concerning(self.language).model_dump_json(exclude_none=True, exclude={"by"})
        return {"kind": task.kind, "columns": columns_of(task), "source": source}

    def names(self, study: "Study") -> Mapping[str, Iterable[str]]:
        labelled = _labelled(study)
        languages = labelled[self.task].languages if self.task in labelled else []
        return {"task": labelled, "language": languages or []}

    @property
    def thing(self) -> str:
        return f"data {self.task}"

    def repository(self, study: "Study") -> Repository | None:
        return _repository(self.origin(study))

    def origin(self, study: "Study") -> "Origin | None":
        data = study.tasks[self.task].data
        return data.labelled if data else None


@dataclass(frozen=True)
class Text(Product):
    """The text of a language."""

    template = "results/{study}/text/{language}.parquet"
    stage = "data"
    rules = ("text", "fetch_text")
    study: str
    language: str

    def inputs(self, plan: "Plan") -> Inputs:
        return {"files": plan.study.text.local_files(self.language)}

    def settings(self, study: "Study") -> Settings:
        # Other languages' settings do not change the text of a language.
        concerning = study.text.concerning(self.language)
        return {"settings": json.dumps(concerning, separators=(",", ":"), ensure_ascii=False)}

    @classmethod
    def makers(cls, study: "Study") -> Mapping[str, Iterable[str]]:
        fetched = [code for code in study.languages if study.text.is_from_hub(code)]
        return {
            "text": [f"text/{code}" for code in study.languages if code not in fetched],
            "fetch_text": [f"text/{code}" for code in fetched],
        }

    def names(self, study: "Study") -> Mapping[str, Iterable[str]]:
        return {"language": study.languages}

    @property
    def thing(self) -> str:
        return "text"

    def repository(self, study: "Study") -> Repository | None:
        return _repository(self.origin(study)) if study.text.is_from_hub(self.language) else None

    def origin(self, study: "Study") -> "Origin | None":
        return study.text.data if study.text.fetches(self.language) else None


def local_rows(entry: "TaskEntry", code: str, split: str) -> "pa.Table | None":
    """The rows of a split in a language or pair, as `xlgrid fetch-data` writes them; None if they are not in local files.

    Raises:
        ValueError: the files are damaged, or do not fit the task.
    """
    if entry.data is None:
        return None
    origin = entry.data.of(split, code)
    files = local_files(origin, code, split, entry.task.head.has_pairs_only)
    if not files or not origin.has(code) or not all(Path(file).is_file() for file in files):
        return None
    described = entry.task.unlabelled if entry.data.labelled_in(split, code) else entry.task
    return read_data(origin, described, code, split, "")


def columns_of(task: "TaskEntry") -> str:
    """The columns of a task that its study describes, as JSON; the library has no table of them."""
    return json.dumps(task.columns, ensure_ascii=False)


def _of_generated(task: "TaskEntry") -> Settings:
    # Generated data do not depend on the settings of evaluation.
    evaluated = task.task.head.options.model_fields
    options = {name: value for name, value in task.options_without_defaults.items() if name not in evaluated}
    return {"kind": task.kind, "options": json.dumps(options)}


def _labelled(study: "Study") -> "dict[str, Labelled]":
    """Task -> its training data that a run labels, of the tasks that have such data."""
    return {name: data.labelled for name, task in study.tasks.items() if (data := task.data) and data.labelled}


def _repository(origin: "Origin | None") -> Repository | None:
    return Repository("dataset", origin.hub, origin.revision) if origin and origin.hub else None
