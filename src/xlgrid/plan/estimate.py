"""What a study will take before any of it is run: runs, cells, optimiser steps, GPU-hours and disk, for each exhibit.

The steps follow from the study. The hours are an estimate: the floating-point operations of `xlgrid.models.parameters.Count`
for every token that is trained on or evaluated, the dev sets during training included, over a speed, and for each step
some time that does not depend on its size: a GPU waits for its next kernel where a batch is small. Both are assumed, or
measured as one. Not in it: attention itself, reading files, starting processes, data, tokens, mini encoders.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from xlgrid.base.names import unknown
from xlgrid.data import sources as data
from xlgrid.data.tokenize import DEV_EVERY
from xlgrid.evaluation.attention import SAMPLES
from xlgrid.languages import parts
from xlgrid.languages.sources import data_of
from xlgrid.models.parameters import Count, configuration, count
from xlgrid.plan.grid import cells, runs
from xlgrid.results.identity import Cell, Run
from xlgrid.study.schema import Study
from xlgrid.tasks import MLM, task
from xlgrid.training.recipe import Training

# Tokens per example, by kind of task: of ruletaker and lot what 300 generated examples have on average over nine
# languages, in pieces of XLM-R's vocabulary cut to 21,000; of sentences and pairs of them, and of questions with a paragraph or with all their choices, a guess. Others: OTHER.
TOKENS = {"ruletaker": 140, "lot": 50, "xnli": 60, "wikiann": 30, "udpos": 30, MLM: 60}
TOKENS |= {"xquad": 200, "copa": 50, "siqa": 110}
OTHER = 128
# A quarter of what an A100 can do in bf16, 312 TFLOP/s.
TFLOPS = 78.0
# Milliseconds of a step beside that; a batch of evaluation, which goes forward only, has a third of them.
STEP_MS = 25.0
WHOLE = "whole study"


class Cost(NamedTuple):
    """What an exhibit takes. Several runs or cells add up; what two exhibits share is in both.

    Attributes:
        text_runs: of the runs, those on text, which others begin with.
        cells: and comparisons of attention.
        steps: of the optimiser.
        evaluated: examples, those of the dev sets during training included.
        training_hours, evaluation_hours: of one GPU; the dev sets' are training.
        gigabytes: what the runs store.
    """

    runs: int = 0
    text_runs: int = 0
    cells: int = 0
    steps: int = 0
    evaluated: int = 0
    training_hours: float = 0.0
    evaluation_hours: float = 0.0
    gigabytes: float = 0.0

    @property
    def hours(self) -> float:
        """GPU-hours in all."""
        return self.training_hours + self.evaluation_hours


def total(costs: Iterable[Cost]) -> Cost:
    """The sum."""
    columns = list(zip(*costs, strict=True))
    return Cost(*map(sum, columns)) if columns else Cost()


@dataclass(frozen=True)
class Assumed:
    """What the study does not say.

    Attributes:
        examples: task, or kind of task -> examples in train, dev and test (of text, in train and dev, for each part of a
            source), where data are not generated; `wikiann:jv` are those in one language or pair, where it has others.
        tokens: likewise -> tokens per example, where not as in `TOKENS`.
        training, evaluation: TFLOP/s that a GPU sustains.
        step_ms: milliseconds of a step of training whatever its size.
    """

    examples: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    tokens: Mapping[str, int] = field(default_factory=dict)
    training: float = TFLOPS
    evaluation: float = TFLOPS
    step_ms: float = STEP_MS


@dataclass(frozen=True)
class Estimate:
    """The cost of a study's parts.

    Raises:
        ValueError: something is assumed of a task that does not exist, or the study has data whose size it does not say
            and nobody else did.
    """

    study: Study
    assumed: Assumed

    def __post_init__(self) -> None:
        known = dict.fromkeys([*self.study.tasks, *(entry.kind for entry in self.study.tasks.values()), MLM])
        for option, given in (("examples", self.assumed.examples), ("tokens", self.assumed.tokens)):
            for name in given:
                name, _, code = name.partition(":")
                if name not in known:
                    raise ValueError(f"--{option}: {unknown('task or kind of task', name, known)}")
                if code and (option == "tokens" or any(part not in self.study.languages for part in parts(code))):
                    raise ValueError(f"--{option} {name}: {unknown('language', code, self.study.languages)}")
        for name, sizes in self.assumed.examples.items():
            if len(sizes) != (wanted := 2 if name.partition(":")[0] == MLM else 3):
                splits = ",".join(split.upper() for split in data.SPLITS[:wanted])
                raise ValueError(f"--examples {name} takes {wanted} numbers, {splits}, got {len(sizes)}")
        trained = [run for run in self.all if self._trains(run)]
        texts = dict.fromkeys(code for run in trained if run.task == MLM for code in data_of(run.source).split("+"))
        tasks = dict.fromkeys(run.task for run in trained if run.task != MLM)
        tasks |= dict.fromkeys(self.study.entry(name, "train")[0] for name in tasks)
        untold = [code for code in texts if self.sizes(MLM, code) is None]
        # One number for all texts is enough where none has a known one.
        missing = [MLM] * bool(untold) if len(untold) == len(texts) else [f"{MLM}:{code}" for code in untold]
        asked = [f"--examples {name}=TRAIN,DEV" for name in missing]
        for name in tasks:
            if self.sizes(name) is None:
                missing.append(name)
                asked.append(f"--examples {name}=TRAIN,DEV,TEST")
        if missing:
            raise ValueError(
                f"study {self.study.name} does not say how many examples {' and '.join(missing)} have, whose data are "
                f"not generated: add {' '.join(asked)}"
            )

    @cached_property
    def planned(self) -> list[Cell]:
        """The study's cells."""
        return cells(self.study)

    @cached_property
    def all(self) -> list[Run]:
        """The study's runs."""
        return runs(self.study, self.planned)

    def exhibits(self) -> Iterator[tuple[str, Cost]]:
        """Name and cost of each exhibit, and at last of the whole study, in which nothing counts twice."""
        compared = set()
        for name, exhibit in self.study.exhibits.items():
            shown, looked = exhibit.cells(self.planned), exhibit.contrasts(self.planned)
            compared |= {*looked}
            rested = [*shown, *(cell for one in looked for cell in one.cells)]
            yield name, self._cost(runs(self.study, rested), shown, (one.run for one in looked))
        yield WHOLE, self._cost(self.all, self.planned, (one.run for one in compared))

    def _cost(self, trained: Iterable[Run], evaluated: Iterable[Cell], compared: Iterable[Run]) -> Cost:
        found = [*map(self.run, trained)]
        found += [self.evaluation(cell.run, self._known(cell.task, data_of(cell.target))[2]) for cell in evaluated]
        found += [self.evaluation(run, 2 * min(SAMPLES, self._known(run.task)[2])) for run in compared]
        return total(found)

    def run(self, run: Run) -> Cost:
        """The cost of a training, with its evaluations on the dev set."""
        counted = self.count(run)
        stored = 4 * counted.stored / 1e9
        if not self._trains(run):
            return Cost(1, 1, gigabytes=stored)
        settings = self.study.recipe(*run[1:]).training
        stored *= 1 + len(settings.snapshots)
        name = run.task if run.task == MLM else self.study.entry(run.task, "train")[0]
        # A mix has as many examples as one of its parts, but for text.
        codes = data_of(run.source).split("+")[: None if run.task == MLM else 1]
        train, dev, *_ = map(sum, zip(*(self._known(name, code) for code in codes), strict=True))
        steps, examples = length(settings, train, self.tokens(name), self._options(name))
        scored = min(settings.evaluations, steps) * dev
        work = counted.training * examples * self.tokens(name)
        hours = _hours(work, self.assumed.training, steps, self.assumed.step_ms)
        hours += self.evaluation(run._replace(task=name), scored).evaluation_hours
        return Cost(1, int(run.task == MLM), 0, steps, scored, hours, 0.0, stored)

    def evaluation(self, run: Run, examples: int) -> Cost:
        """The cost of one evaluation of a run."""
        settings, tokens = self.study.recipe(*run[1:]).training, examples * self.tokens(run.task)
        batches = tokens / (settings.micro_batch_tokens or settings.batch_tokens)
        work = self.count(run).evaluation * tokens
        hours = _hours(work, self.assumed.evaluation, batches, self.assumed.step_ms / 3)
        return Cost(cells=1, evaluated=examples, evaluation_hours=hours)

    def measured(self, run_json: str | Path) -> Assumed:
        """The speed that a run of this study really had, dev sets, loading and the time of each step included.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it is no run of this study, or one of other steps than the study now asks for.
        """
        try:
            told = json.loads(Path(run_json).read_text(encoding="utf-8"))
            found = Run(*(told["recipe"][axis] for axis in Run._fields))
            steps, seconds = int(told["steps"]), float(told["seconds"])
        except FileNotFoundError:
            raise FileNotFoundError(f"there is no {run_json}: give the run.json of a run that is done") from None
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{run_json} is no run.json ({error}): give that of a run that is done") from error
        if found not in self.all or seconds <= 0:
            raise ValueError(f"{run_json} is of {found.folder}, which is no run of study {self.study.name}")
        planned = self.run(found)
        if abs(planned.steps - steps) > 0.1 * steps:
            raise ValueError(
                f"{run_json} has {steps:,} steps, but {planned.steps:,} are expected of it: correct --examples and --tokens, "
                "or give a run of the study as it is now"
            )
        # In hours at 1 TFLOP/s.
        alone = Estimate(self.study, replace(self.assumed, training=1.0, evaluation=1.0, step_ms=0.0)).run(found)
        speed = alone.hours * 3600 / seconds
        return replace(self.assumed, training=speed, evaluation=speed, step_ms=0.0)

    def sizes(self, name: str, code: str = "") -> tuple[int, ...] | None:
        """Examples in each split of a task, or of a text, in a language or pair; None if unknown."""
        entry = self.study.tasks.get(name)
        names = [name, entry.kind if entry else name]
        for key in (*(f"{one}:{code}" for one in names), *names):
            if key in self.assumed.examples:
                return self.assumed.examples[key]
        if entry is None:
            text = self.study.text
            dev = min(math.ceil(text.sentences / DEV_EVERY), text.dev_inputs)
            return None if any(map(text.fetches, parts(code))) else (text.sentences - dev, dev)
        if entry.data:
            return None
        kind = task(entry.kind)
        options = kind.Options(**entry.options)
        return data.sizes(options.n, kind.group(options))  # type: ignore[attr-defined]

    def tokens(self, name: str) -> int:
        """Tokens per example of a task, those of all its choices together, or of text."""
        entry = self.study.tasks.get(name)
        kind = entry.kind if entry else MLM
        given = self.assumed.tokens.get(name) or self.assumed.tokens.get(kind) or TOKENS.get(kind, OTHER)
        return min(given, entry.max_length * max(1, len(task(kind).choices))) if entry else given

    def count(self, run: Run) -> Count:
        """The parameters of a run's model."""
        entry = self.study.tasks.get(run.task)
        kind = task(entry.kind) if entry else None
        head, labels = (kind.head, len(kind.labels)) if kind else (MLM, 0)
        place = run.encoder, head, labels, run.method
        if place not in self._counts:
            method = self.study.methods[run.method]
            config = configuration(self.study, run.encoder)
            self._counts[place] = count(config, head, labels, method.base, method.options)
        return self._counts[place]

    @cached_property
    def _counts(self) -> dict[tuple[str, str, int, str], Count]:
        return {}

    def _trains(self, run: Run) -> bool:
        """Whether a run is trained, and not imported."""
        return run.task != MLM or self.study.methods[run.method].imported is None

    def _known(self, name: str, code: str = "") -> tuple[int, ...]:
        found = self.sizes(name, code)
        assert found
        return found

    def _options(self, name: str) -> Mapping[str, object]:
        entry = self.study.tasks.get(name)
        if entry is None or entry.data:
            return {}
        return task(entry.kind).Options(**entry.options).model_dump()


def length(settings: Training, train: int, tokens: int, options: Mapping[str, object]) -> tuple[int, int]:
    """Steps of a training, as `batches.plan` has them, and examples that it sees, those of each pass counted again.

    Of phases limited in depth, the generator's equal share of every depth counts; limits in tokens are not considered.

    Args:
        train: training examples.
        tokens: of an example.
        options: of a generated task.
    """
    batch = settings.batch_size or max(1, settings.batch_tokens // tokens)
    if settings.steps:
        return settings.steps, settings.steps * batch
    deepest = options.get("max_depth")
    passes = [(settings.epochs, train)]
    for phase in settings.curriculum:
        if phase.epochs:
            depths = deepest + 1 if isinstance(deepest, int) else 1
            share = 1.0 if phase.max_depth is None else min(1.0, (phase.max_depth + 1) / depths)
            passes.append((phase.epochs, round(train * share)))
    steps = sum(max(1, round(epochs * math.ceil(pool / batch))) for epochs, pool in passes)
    return steps, round(sum(epochs * pool for epochs, pool in passes))


def _hours(work: float, tflops: float, batches: float, milliseconds: float) -> float:
    return (work / (tflops * 1e12) + batches * milliseconds / 1e3) / 3600
