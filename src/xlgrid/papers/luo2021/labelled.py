"""Training sets that a run of the study labels: the key `labelled` of `data` (Luo et al. 2021, section 4.1)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from xlgrid.base.names import among
from xlgrid.base.settings import Seed, Strict
from xlgrid.data.sources import DerivedData
from xlgrid.languages.sources import Source
from xlgrid.products.data import Data, columns_of, settings_of_rows
from xlgrid.products.product import Inputs, Product, Settings
from xlgrid.products.train import Run
from xlgrid.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from xlgrid.data.origins.origin import Origin
    from xlgrid.plan.plan import Plan
    from xlgrid.study.schema import Study


class Teacher(Strict):
    """The run of the study whose model labels the rows."""

    task: str = Field(description="a task of words, with the same labels")
    encoder: str = Field(description="the encoder of the run")
    method: str = Field(description="the method of the run, without `start` and `parallel`")
    source: Source = Field(description="what the run trains on; not a language that it labels")
    seed: Seed = Field(1, description="the seed of the run")

    def run(self, study: str) -> Run:
        """The run under a study."""
        return Run(study, self.task, self.encoder, self.method, self.source, self.seed)


def labels_words(task: Task) -> bool:
    """Whether the data of a task have a label for each word, and nothing else about it."""
    return task.head.reads_words and len(task.head.columns(task)) == 2


class Labelled(DerivedData):
    """Training sets without labels in some `languages`, and the run that labels them.

    Luo et al. (2021, section 4.1) label translations of English sentences with a model that was trained on English.
    Labels in the data are not read.
    """

    about = "training sets without labels in the `languages` that it lists, and the run of the study that labels them"
    rule = "label_data"
    by: Teacher = Field(description="the run that labels, which a grid of the study has")

    @model_validator(mode="after")
    def _unlabelled(self) -> Self:
        if not self.origin.languages:
            raise ValueError("`labelled` applies to some languages: list them as its `languages`")
        if self.origin.labels:
            raise ValueError("the labels of `labelled` come from the run under `by`: leave out `labels`")
        return self

    def has(self, split: str, language: str) -> bool:
        return split == "train" and self.origin.has(language)

    def makes(self) -> Iterable[tuple[str, str]]:
        return product(self.origin.languages or (), ["train"])

    def check_task(self, task: Task) -> None:
        if not labels_words(task):
            raise ValueError(
                f"`labelled` needs a task with a label for each word, and {task.name} has no labels of words alone: give the "
                "training data as `train`"
            )

    def of_rows(self, task: Task) -> Task:
        return without_answers(task)

    def inputs(self, plan: "Plan", task: str, language: str) -> Inputs:
        study = plan.study.name
        rows = plan.owned(Unlabelled(study, task, language)).path
        return {"rows": rows, **self.by.run(study).weights(plan)}

    def settings(self, study: "Study", task: str) -> Settings:
        entry = study.tasks[task]
        return {"kind": entry.kind, "columns": columns_of(entry), "max_length": entry.max_length}

    def problems(self, study: "Study", task: str) -> Iterator[str]:
        """The mistakes in the run: its task or method cannot label, or it trains on data that it labels itself."""
        by = self.by
        known: dict[str, Iterable[str]] = {"task": study.tasks, "encoder": study.encoders, "method": study.methods}
        unknown_names = [
            text for axis, names in known.items() for text in among(f"by.{axis}", axis, [getattr(by, axis)], names)
        ]
        if unknown_names:
            yield from unknown_names
            return
        teacher, entry, labels = study.tasks[by.task].task, study.methods[by.method], study.tasks[task].task.labels
        if not labels_words(teacher) or teacher.labels != labels:
            yield (
                f"by.task: {by.task} has the labels {', '.join(teacher.labels) or 'none'}, and {task} has "
                f"{', '.join(labels)}: name a task of words with the same labels"
            )
        parallel = entry.method.parallel_language
        if not entry.is_trained or entry.start or parallel:
            reason = "begins with an MLM run" if entry.start else f"reads parallel examples in {parallel}"
            yield (
                f"by.method: {by.method} {reason if entry.is_trained else 'has no runs'}: name a method that trains, "
                "without `start` and `parallel`"
            )
        chain = [by]
        for following in chain:
            teachers = labellers(study, following.task, following.source)
            chain += [each for each in teachers if each not in chain]
            if by in teachers:
                names = " -> ".join(f"{each.task} on {each.source}" for each in chain)
                yield (
                    f"by.source: the run would train on labels that come from itself ({names}): name a source in none "
                    "of the languages that `labelled` lists"
                )
                break

    def problems_of_plan(self, plan: "Plan", task: str) -> Iterator[str]:
        """A message if the run is not in the study's grids."""
        users = [run for run in plan.runs if self.by in labellers(plan.study, run.task, run.source.data)]
        teacher = self.by.run(plan.study.name)
        if users and not teacher.is_in(plan):
            yield (
                f"grids: {users[-1].folder} trains on labels from {teacher.folder}, which no grid has "
                f"({plan.refusal(teacher)}): add that run to a grid"
            )


@dataclass(frozen=True)
class Unlabelled(Product):
    """The training data of a task in a language before a run of the study labels them."""

    template = "results/{study}/unlabelled/{task}/{language}.parquet"
    stage = "data"
    # The second rule labels these rows.
    rules = ("fetch_unlabelled", "label_data")
    study: str
    task: str
    language: str

    def inputs(self, plan: "Plan") -> Inputs:
        origin = self.origin(plan.study)
        assert origin
        return {"files": origin.paths_of(self.language, "train")}

    def settings(self, study: "Study") -> Settings:
        origin = self.origin(study)
        assert origin
        return settings_of_rows(study.tasks[self.task], origin, self.language)

    def names(self, study: "Study") -> "Mapping[str, Iterable[str]]":
        origin = self.origin(study)
        tasks = [name for name in study.tasks if labelled_in(study, name)]
        return {"task": tasks, "language": (origin and origin.languages) or []}

    @property
    def thing(self) -> str:
        return f"data {self.task}"

    def origin(self, study: "Study") -> "Origin | None":
        labelled = labelled_in(study, self.task)
        return labelled.origin if labelled else None

    def problem_there(self, study: "Study", files: list[str], answer: Any) -> str | None:
        origin, task = self.origin(study), study.tasks[self.task].task
        problem = origin.problem_there(task, self.language, "train", answer) if origin else None
        return problem and f"{self.task}, {self.language}: {problem}"

    def rows(self, study: "Study") -> "pa.Table | None":
        return Data(self.study, self.task, self.language, "train").rows(study)


def without_answers(task: Task) -> Task:
    """A task without the column of the answer."""
    return replace(task, target="", generator=None)


def labelled_in(study: "Study", task: str) -> Labelled | None:
    """The training data of a task that a run of the study labels."""
    entry = study.tasks.get(task)
    labelled = entry.data.derived.get("labelled") if entry and entry.data else None
    return labelled if isinstance(labelled, Labelled) else None


def labellers(study: "Study", task: str, source: Source) -> list[Teacher]:
    """The runs that label training data of the runs of a task on a source, or of the runs with which these begin."""
    names = [study.entry(name, "train")[0] for name in study.with_first([task])]
    found = [labelled for name in names if (labelled := labelled_in(study, name))]
    return list(dict.fromkeys(each.by for each in found if any(map(each.origin.has, source.parts))))
