"""The cost of a study before any of it has run: runs, cells, optimiser steps, GPU-hours and disk, for each exhibit.

The steps follow from the study and from the rows of local files. The hours are an estimate: the floating-point operations of `xlgrid.models.parameters.Count`
for every token that is trained on or evaluated, the dev sets during training included, over a speed, and for each step
some time that does not depend on its size: a GPU waits for its next kernel where a batch is small. Both are assumed, or
measured as one. Not in it: attention itself, except in pre-training, whose inputs are long; reading files, starting
processes, data, tokens.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from xlgrid.architectures import Architecture
from xlgrid.data.sources import SPLITS
from xlgrid.languages.sources import Target
from xlgrid.models.parameters import Count, count
from xlgrid.plan.lengths import Measured
from xlgrid.plan.plan import Plan
from xlgrid.plan.pretraining import Pretraining, attention_work
from xlgrid.plan.sizes import DataSizes, check_names
from xlgrid.products.encode import Encoder
from xlgrid.products.evaluate import Cell
from xlgrid.products.train import Run
from xlgrid.study.schema import Study
from xlgrid.tasks import Task
from xlgrid.training.encoders import EncoderEntry, configuration, encoders_before, vocabulary_size
from xlgrid.training.schedule import training_length

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

# A quarter of what an A100 can do in bf16, 312 TFLOP/s.
TFLOPS = 78.0
# Milliseconds of a step beside that; a batch of evaluation, which goes forward only, has a third of them.
STEP_MS = 25.0
WHOLE = "whole study"
PRETRAINING = "pre-training"
R = TypeVar("R", Run, Cell)


class Cost(NamedTuple):
    """The cost of an exhibit. Several runs or cells add up; what two exhibits share is in both.

    Attributes:
        text_runs: of the runs, those on text, which others begin with.
        cells: of the grid, without comparisons of attention, which count among the examples evaluated.
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
    """The numbers that the estimate assumes beside the study.

    Attributes:
        examples: sizes of data, which count instead of the study's: see `DataSizes.stated`.
        tokens: task, or kind of task -> tokens per example, which count instead of the study's, of measured ones and of `Task.tokens`.
        training, evaluation: the TFLOP/s that a GPU sustains.
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
        ValueError: something is assumed of a task that does not exist, or the size of some data is not known.
    """

    plan: Plan
    assumed: Assumed

    def __post_init__(self) -> None:
        check_names(self.study, "tokens", self.assumed.tokens)
        needed_sizes = dict.fromkeys(
            place for run in self._left(self.plan.runs) for place in (*self._data(run), *self._dev_data(run))
        )
        needed_sizes |= dict.fromkeys((cell.task, cell.target.data) for cell in self._left(self.plan.cells))
        missing = []
        for name in dict.fromkeys(name for name, _ in needed_sizes):
            codes = [code for task_name, code in needed_sizes if task_name == name]
            unknown_codes = [code for code in codes if None in self.sizes.of(name, code)]
            # One option is enough where no language has a known size.
            keys = [name] if len(unknown_codes) == len(codes) else [f"{name}:{code}" for code in unknown_codes]
            missing += [(key, f"--examples {key}={','.join(SPLITS).upper()}") for key in keys]
        if missing:
            names, options = zip(*missing, strict=True)
            raise ValueError(
                f"study {self.study.name} does not say how many examples {' and '.join(names)} have, which are neither "
                f"generated nor in files here: add `examples: {{train: ..., dev: ..., test: ...}}` to the task in the study, or "
                f"call this with {' '.join(options)}"
            )

    @property
    def study(self) -> Study:
        """The study that is planned."""
        return self.plan.study

    @cached_property
    def sizes(self) -> DataSizes:
        """The sizes of the study's data."""
        return DataSizes(self.study, self.assumed.examples)

    def exhibits(self) -> Iterator[tuple[str, Cost]]:
        """Name and cost of each exhibit, and at last of the whole study, in which nothing counts twice."""
        for name, exhibit in self.study.exhibits.items():
            shown = exhibit.cells(self.plan.cells, self.study.facts)
            others = map(self.plan.owned, exhibit.products(self.plan.cells))
            runs = [each for other in others for each in self.plan.rests_on(other) if isinstance(each, Run)]
            yield name, self._cost(dict.fromkeys([*self.plan.runs_of(shown), *runs]), shown)
        costs = {
            f"{PRETRAINING} of {name}": Cost(
                1, 1, 0, each.updates, each.evaluated, each.hours, 0.0, each.stored_gigabytes
            )
            for name, each in self.pretrainings.items()
        }
        yield from costs.items()
        whole = self._cost(self.plan.runs, self.plan.cells)
        yield WHOLE, total([whole, *costs.values()])

    def _cost(self, trained: Iterable[Run], evaluated: Iterable[Cell]) -> Cost:
        runs = self._left(trained)
        costs = [*map(self._of, runs), *map(self._of, self._left(evaluated))]
        costs += self._labellings(runs)
        return total(costs)

    def _of(self, result: Run | Cell) -> Cost:
        """The cost of a run or of evaluating a cell, computed once for all exhibits that show it."""
        if result not in self._costs:
            self._costs[result] = (
                self.run(result)
                if isinstance(result, Run)
                else self.evaluation(result.run, self._tests(result), [result.target.data])
            )
        return self._costs[result]

    @cached_property
    def _costs(self) -> dict[Run | Cell, Cost]:
        return {}

    def _labellings(self, runs: Iterable[Run]) -> list[Cost]:
        """The costs of labelling the training data of some runs by other runs, once for each language."""
        rows = {}
        for run in runs:
            for name, part in self._data(run):
                source = self.study.tasks[name].data
                if source and (labelled := source.labelled_in("train", part.data)):
                    rows[name, part.data] = self.plan.run_of(labelled.by), self.sizes.of(name, part.data).train or 0
        return [self.evaluation(by, number, [part])._replace(cells=0) for (_, part), (by, number) in rows.items()]

    def _left(self, results: Iterable[R]) -> list[R]:
        """The results that this study makes: those of a study that it extends cost it nothing."""
        return [result for result in results if result.study == self.study.name]

    def _tests(self, cell: Cell) -> int:
        return self.sizes.of(cell.task, cell.target.data).test or 0

    def _data(self, run: Run) -> list[tuple[str, Target]]:
        """The tasks and languages of the data on which a run trains; none if it is imported."""
        if self.study.methods[run.method].imported:
            return []
        name, entry = self.study.entry(run.task, "train")
        mix = self.study.recipe(*run[1:]).mix or entry.task.head.mixes[0]
        # A mix of shares has as many examples as one of its parts.
        return [(name, part) for part in run.source.parts[: None if mix == "whole" else 1]]

    def _dev_data(self, run: Run) -> list[tuple[str, Target]]:
        """The tasks and languages of the data with which a run chooses its checkpoint."""
        if not (data := self._data(run)):
            return []
        targets = self.study.recipe(*run[1:]).training.dev_targets
        return [(name, target) for name, _ in data[:1] for target in targets] or data

    def run(self, run: Run) -> Cost:
        """The cost of a training, with its evaluations on the dev set."""
        counted = self.count(run)
        stored = 4 * counted.stored / 1e9
        on_text = int(not self.study.tasks[run.task].task.target)
        data = self._data(run)
        if not data:
            return Cost(1, on_text, gigabytes=stored)
        settings = self.study.recipe(*run[1:]).training
        stored *= 1 + len(settings.snapshots)
        sizes = [self.sizes.of(*each) for each in data]
        name, parts, dev_data = data[0][0], [part for _, part in data], self._dev_data(run)
        vocabulary = run.vocabulary(self.plan)
        tokens = self.tokens(name, parts, vocabulary)
        train = sum(
            self._inputs(name, each.train or 0, [part], vocabulary) for part, each in zip(parts, sizes, strict=True)
        )
        dev = sum(self._inputs(name, self.sizes.of(*each).dev or 0, [each[1]], vocabulary) for each in dev_data)
        steps, examples = training_length(settings, train, tokens, self._options(name))
        scored = min(settings.evaluations, steps) * dev
        work = counted.training * examples * tokens
        hours = _hours(work, self.assumed.training, steps, self.assumed.step_ms)
        hours += self.evaluation(run._replace(task=name), scored, [part for _, part in dev_data]).evaluation_hours
        return Cost(1, on_text, 0, steps, scored, hours, 0.0, stored)

    @cached_property
    def pretrainings(self) -> dict[str, Pretraining]:
        """Encoder -> time, text and disk of its pre-training, for the encoders that the study pre-trains itself."""
        used: list[Run | Cell | Encoder] = [*self.plan.runs, *self.plan.cells, *self.plan.encoders_read]
        users = {each.encoder for each in used}
        named = users | {before for name in users for before in encoders_before(self.study.encoders, name)}
        encoders = [Encoder(self.study.name, name) for name in sorted(named) if self.study.encoders[name].is_trained]
        return {each.encoder: self.pretraining(each.encoder) for each in encoders if self.plan.owned(each) == each}

    def pretraining(self, encoder: str) -> Pretraining:
        """The time, text and disk of pre-training an encoder from scratch, or of training a language-modelling head, evaluations on
        text included."""
        recipe = self.study.pretraining(encoder)
        settings, name = recipe.training, recipe.task
        entry, length = self.study.tasks[name], self.tokens(name)
        task_of = self.study.encoders[encoder].parts
        sizes = {part: self.sizes.of(task, part) for part, task in task_of.items()}
        # A text has at most so many rows for the dev set.
        most: Any = entry.task.Options(**entry.options)
        dev = sum(
            self._inputs(task_of[part], most.dev_rows if each.dev is None else each.dev) for part, each in sizes.items()
        )
        known = {
            part: self._inputs(task_of[part], each.train) for part, each in sizes.items() if each.train is not None
        }
        inputs = sum(known.values()) if len(known) == len(sizes) else None
        of_languages = sum(number for part, number in known.items() if len(Target(part).languages) == 1)
        updates, examples = training_length(settings, inputs or 0, length, {})
        scored = min(settings.evaluations, updates) * dev
        vocabulary = self.study.all_vocabularies[self.study.vocabulary_of(encoder)]
        config = configuration(*self._origin(encoder), vocabulary_size(vocabulary))
        scratch = recipe.scratch
        # The dev sets are evaluated without what the architecture adds.
        without = self._count(config, entry.task, recipe.base, {}, pretraining=True)
        counted = self._count(config, entry.task, recipe.base, {}, pretraining=True, architecture=scratch)
        attention: float = attention_work(config.num_hidden_layers, config.hidden_size, length)
        output = config.hidden_size * config.vocab_size
        head_alone = recipe.lm_head is not None and recipe.lm_head.trains == "head"
        if scratch:
            attention = scratch.uncounted_work(attention, output, settings.tlm)
            of_token = scratch.work(without, counted, attention, settings.tlm)
        elif head_alone:
            # The encoder goes forward only, and gradients pass the output embeddings.
            of_token = without.evaluation + attention / 3 + 2 * entry.task.head.output_share * output
        else:
            of_token = without.training + attention
        work = of_token * examples * length
        hours = _hours(work, self.assumed.training, updates, self.assumed.step_ms)
        batches = scored * length / (settings.micro_batch_tokens or settings.batch_tokens)
        work = (without.evaluation + attention / 3) * scored * length
        hours += _hours(work, self.assumed.evaluation, batches, self.assumed.step_ms / 3)
        return Pretraining(
            updates=updates,
            update_tokens=examples * length // updates,
            evaluated=scored,
            hours=hours,
            inputs=inputs,
            tokens=None if inputs is None else inputs * length,
            text_tokens=None if inputs is None else of_languages * length,
            weights=counted.total,
            trained=counted.total - (counted.stored if head_alone else 0),
            snapshots=len(settings.snapshots),
        )

    def evaluation(self, run: Run, examples: int, parts: Sequence[Target] = ()) -> Cost:
        """The cost of one evaluation of a run on examples in some languages or pairs; by default, in any."""
        settings, length = (
            self.study.recipe(*run[1:]).training,
            self.tokens(run.task, parts, run.vocabulary(self.plan)),
        )
        tokens = examples * length
        batches = tokens / (settings.micro_batch_tokens or settings.batch_tokens)
        work = self.count(run).evaluation * tokens
        # A decoder computes the tokens of its hypotheses, about half of an example's, one after the other.
        has_decoder = self.study.tasks[run.task].task.head.has_decoder
        passes = batches * (1 + length / 2 if has_decoder else 1)
        hours = _hours(work, self.assumed.evaluation, passes, self.assumed.step_ms / 3)
        return Cost(cells=1, evaluated=examples, evaluation_hours=hours)

    def measured(self, run_json: str | Path) -> Assumed:
        """The speed that a run of this study really had, dev sets, loading and the time of each step included.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it is no run of this study, or one of other steps than the study now asks for.
        """
        try:
            record = json.loads(Path(run_json).read_text(encoding="utf-8"))
            run = Run(*(record["recipe"][axis] for axis in Run._fields))
            steps, seconds = int(record["steps"]), float(record["seconds"])
        except FileNotFoundError:
            raise FileNotFoundError(f"there is no {run_json}: give the run.json of a run that is done") from None
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{run_json} is no run.json ({error}): give that of a run that is done") from error
        if run not in self.plan.runs or seconds <= 0:
            raise ValueError(f"{run_json} is of {run.folder}, which is no run of study {self.study.name}")
        planned = self.run(run)
        if abs(planned.steps - steps) > 0.1 * steps:
            raise ValueError(
                f"{run_json} has {steps:,} steps, but {planned.steps:,} are expected of it: correct --examples and --tokens, "
                "or give a run of the study as it is now"
            )
        # In hours at 1 TFLOP/s.
        alone = Estimate(self.plan, replace(self.assumed, training=1.0, evaluation=1.0, step_ms=0.0)).run(run)
        speed = alone.hours * 3600 / seconds
        return replace(self.assumed, training=speed, evaluation=speed, step_ms=0.0)

    def tokens(self, name: str, parts: Sequence[Target] = (), vocabulary: str | None = None) -> int:
        """Tokens per input of a task, those of all its choices together.

        Args:
            parts, vocabulary: the languages or pairs, and the vocabulary, for tasks whose examples are measured; by default a mean over
                all of the study.
        """
        entry = self.study.tasks[name]
        if self._packs(name):
            return entry.max_length
        row_tokens = self._row_tokens(name, parts, vocabulary)
        return min(row_tokens, entry.max_length * max(1, len(entry.task.choices)))

    def _row_tokens(self, name: str, parts: Sequence[Target], vocabulary: str | None) -> int:
        entry = self.study.tasks[name]
        if stated := self.stated_tokens(name):
            return stated
        return self.measured_lengths.tokens(name, parts, vocabulary) or entry.task.tokens

    def stated_tokens(self, name: str) -> int | None:
        """Tokens per example that an option of the command or the study states."""
        entry = self.study.tasks[name]
        return self.assumed.tokens.get(name) or self.assumed.tokens.get(entry.kind) or entry.tokens

    @cached_property
    def measured_lengths(self) -> Measured:
        """The lengths of examples in local files."""
        return Measured(self.plan)

    def _packs(self, name: str) -> bool:
        return self.study.tasks[name].options.get("documents") == "pack"

    def _inputs(self, name: str, rows: int, parts: Sequence[Target] = (), vocabulary: str | None = None) -> int:
        """The inputs of so many rows of a task's data, which are fewer where texts are packed."""
        if not self._packs(name):
            return rows
        return math.ceil(rows * self._row_tokens(name, parts, vocabulary) / self.tokens(name))

    def count(self, run: Run) -> Count:
        """The parameters of a run's model."""
        study, kind = self.study, self.study.tasks[run.task].task
        vocabulary, own = run.vocabulary(self.plan), study.vocabulary_of(run.encoder)
        place = run.encoder, vocabulary, kind.head.name, len(kind.labels), run.method
        if place not in self._counts:
            method = study.methods[run.method]
            sizes = {name: size for name, entry in study.all_vocabularies.items() if (size := vocabulary_size(entry))}
            config = configuration(*self._origin(run.encoder), sizes.get(own))
            if vocabulary != own:
                config.vocab_size = sizes.get(vocabulary, config.vocab_size)
            is_new = bool(run.new_vocabulary(self.plan))
            self._counts[place] = self._count(config, kind, method.base, method.options, embeddings=is_new)
        return self._counts[place]

    def _origin(self, encoder: str) -> tuple[EncoderEntry, str]:
        """The entry and the folder of the encoder that has the shape of an encoder: itself, or the one that it is `of`."""
        name = self.study.encoders[encoder].of or encoder
        return self.study.encoders[name], self.plan.owned(Encoder(self.study.name, name)).folder

    def _count(
        self,
        config: "PreTrainedConfig",
        kind: Task,
        base: str,
        options: Mapping[str, float | int | str | bool],
        embeddings: bool = False,
        pretraining: bool = False,
        architecture: Architecture | None = None,
    ) -> Count:
        """`count`, once for all encoders and vocabularies of the same sizes."""
        name = architecture and architecture.architecture
        settings = json.dumps([config.to_dict(), base, options, embeddings, pretraining, name], sort_keys=True)
        shape = settings, kind.head.name, len(kind.labels)
        if shape not in self._counts_of_shapes:
            self._counts_of_shapes[shape] = count(
                config,
                kind.head,
                len(kind.labels),
                base,
                options,
                embeddings,
                pretraining,
                architecture.install if architecture else None,
            )
        return self._counts_of_shapes[shape]

    @cached_property
    def _counts_of_shapes(self) -> dict[tuple[str, str, int], Count]:
        return {}

    @cached_property
    def _counts(self) -> dict[tuple[str, str, str, int, str], Count]:
        return {}

    def _options(self, name: str) -> Mapping[str, object]:
        """The options of a generated task."""
        entry = self.study.tasks[name]
        return {} if entry.data else entry.task.Options(**entry.options).model_dump()


def _hours(work: float, tflops: float, batches: float, milliseconds: float) -> float:
    return (work / (tflops * 1e12) + batches * milliseconds / 1e3) / 3600
