"""Data of tasks, and text."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from xlgrid.data.fetch import read_data
from xlgrid.data.origins.origin import SPLITS, Origin
from xlgrid.data.sources import ALL_DERIVED
from xlgrid.languages.sources import Target
from xlgrid.products.product import Inputs, Product, Settings

if TYPE_CHECKING:
    import pyarrow as pa

    from xlgrid.plan.plan import Plan
    from xlgrid.study.schema import Study
    from xlgrid.study.tasks import TaskEntry


@dataclass(frozen=True)
class Meanings(Product):
    """The meanings of a generated task. The data of every language express the same meanings."""

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
    rules = ("data", "fetch_data")
    study: str
    task: str
    language: str
    split: str

    def inputs(self, plan: "Plan") -> Inputs:
        task = plan.study.tasks[self.task]
        if task.data is None:
            return {"meanings": plan.owned(Meanings(self.study, self.task)).path}
        if derived := task.data.derived_data(self.split, self.language):
            return derived.inputs(plan, self.task, self.language)
        origin = task.data.of(self.split, self.language)
        return {"files": origin.paths_of(self.language, self.split, task.task.head.has_pairs_only)}

    def settings(self, study: "Study") -> Settings:
        task = study.tasks[self.task]
        if task.data is None:
            return _of_generated(task)
        if derived := task.data.derived_data(self.split, self.language):
            return derived.settings(study, self.task)
        return settings_of_rows(task, task.data.of(self.split, self.language), self.language)

    @classmethod
    def makers(cls, study: "Study") -> Mapping[str, Iterable[str]]:
        makers: dict[str, list[str]] = {kind.rule: [] for kind in ALL_DERIVED.known()}
        makers["data"] = [f"data/{name}" for name, task in study.tasks.items() if not task.data]
        makers["fetch_data"] = [f"data/{name}" for name, task in study.tasks.items() if task.data]
        for name, task in study.tasks.items():
            for derived in task.data.derived.values() if task.data else ():
                makers[derived.rule] += [f"data/{name}/{code}/{split}" for code, split in derived.makes()]
        return makers

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

    def origin(self, study: "Study") -> "Origin | None":
        data = study.tasks[self.task].data
        is_fetched = data and not data.derived_data(self.split, self.language)
        return data.of(self.split, self.language) if data and is_fetched else None

    def problem_there(self, study: "Study", files: list[str], answer: Any) -> str | None:
        origin, task = self.origin(study), study.tasks[self.task].task
        problem = origin.problem_there(task, self.language, self.split, answer) if origin else None
        return problem and f"{self.task}, {self.language}, {self.split}: {problem}"

    def rows(self, study: "Study") -> "pa.Table | None":
        entry = study.tasks[self.task]
        if entry.data is None:
            return None
        origin, derived = entry.data.of(self.split, self.language), entry.data.derived_data(self.split, self.language)
        described = derived.of_rows(entry.task) if derived else entry.task
        files = origin.paths_of(self.language, self.split, described.head.has_pairs_only)
        if not files or not origin.has(self.language) or not all(Path(file).is_file() for file in files):
            return None
        return read_data(origin, described, self.language, self.split, "")


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

    def origin(self, study: "Study") -> "Origin | None":
        is_read = study.text.fetches(self.language) and self.language not in study.text.files
        return study.text.data if is_read else None

    def problem_there(self, study: "Study", files: list[str], answer: Any) -> str | None:
        origin = self.origin(study)
        # A text has no splits.
        problem = origin.problem_there(None, self.language, "train", answer) if origin else None
        return problem and f"text, {self.language}: {problem}"


def settings_of_rows(task: "TaskEntry", origin: Origin, language: str) -> Settings:
    """The settings of a command that reads rows of a task in a language from an origin."""
    source = origin.concerning(language).model_dump_json(exclude_none=True)
    return {"kind": task.kind, "columns": columns_of(task), "source": source}


def columns_of(task: "TaskEntry") -> str:
    """The columns, as JSON, of a task that the study describes by its head, so that the library does not know them."""
    return json.dumps(task.columns, ensure_ascii=False)


def _of_generated(task: "TaskEntry") -> Settings:
    # Generated data do not depend on the options of the head.
    evaluated = task.task.head.options.model_fields
    options = {name: value for name, value in task.options_without_defaults.items() if name not in evaluated}
    return {"kind": task.kind, "options": json.dumps(options)}
