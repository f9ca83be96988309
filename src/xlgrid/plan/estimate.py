"""The cost of a study before any of it has run: runs, cells, optimiser steps, tokens, operations, GPU-hours and disk.

Runs and cells follow from the study, and steps and tokens from the sizes of its data. The floating-point operations of
a token follow from the parameters of the model and the length of the input. The hours are these operations divided by a
speed, plus a fixed time for each step, because a GPU waits for its next kernel when a batch is small. The speed is
assumed, or measured in a finished run.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from xlgrid.models.parameters import Count, attention_work
from xlgrid.plan.counts import Sizes, counted
from xlgrid.plan.plan import Plan
from xlgrid.plan.sizes import DataSizes
from xlgrid.products.encode import Encoder, Tokens
from xlgrid.products.evaluate import Cell
from xlgrid.products.train import Run
from xlgrid.study.encoders import encoders_before
from xlgrid.training.recipe import Training
from xlgrid.training.schedule import training_length

# The options of a generated task.
Options = Mapping[str, object]
# Bytes of a weight.
WEIGHT = 4


class Speed(NamedTuple):
    """How fast a machine trains and evaluates.

    Attributes:
        name: the machine, and the speed in words.
        operations: precision of a training -> floating-point operations per second.
        step: fixed seconds of a step, in addition to its operations; a batch of evaluation has only a forward pass, and
            takes a third of them.
    """

    name: str
    operations: Mapping[str, float]
    step: float


# The peaks are 312 TFLOP/s in bf16 and 19.5 in fp32.
A100 = Speed(
    "one A100, assumed: 78 TFLOP/s in bf16 (a quarter of its peak), 10 in fp32 (half of its peak), and 25 ms more for "
    "each step",
    {"bf16": 78e12, "fp32": 10e12},
    0.025,
)


class Work(NamedTuple):
    """The floating-point operations of training on a token, and of evaluation on a token."""

    training: float
    evaluation: float


class Cost(NamedTuple):
    """The cost of a part of a study; costs of several parts add up.

    Attributes:
        runs: trainings, pre-trainings included.
        cells: evaluations on test sets.
        steps: optimiser steps.
        tokens: tokens in all passes of training and in evaluations, including the dev sets.
        operations: floating-point operations.
        hours: hours on one GPU.
        gigabytes: the size of the files of runs and encoders.
    """

    runs: int = 0
    cells: int = 0
    steps: int = 0
    tokens: float = 0
    operations: float = 0.0
    hours: float = 0.0
    gigabytes: float = 0.0


def total(costs: Iterable[Cost]) -> Cost:
    """The sum."""
    return Cost(*map(sum, zip(Cost(), *costs, strict=True)))


class Estimate:
    """The cost of a study's parts at a speed.

    The methods raise a ValueError if the size of some data, or of an encoder, is not known.
    """

    def __init__(self, plan: Plan, speed: Speed = A100) -> None:
        self.plan, self.study, self.speed, self.sizes = plan, plan.study, speed, DataSizes(plan)
        self._costs: dict[Run | Cell, Cost] = {}
        self._models: dict[tuple[object, ...], tuple[Count, Sizes]] = {}

    def exhibits(self) -> dict[str, Cost]:
        """Exhibit -> the cost of the runs and cells that it needs. Runs that two exhibits share count in both."""
        costs = {}
        for name, exhibit in self.study.exhibits.items():
            shown = exhibit.cells(self.plan.cells, self.study.facts)
            others = map(self.plan.owned, exhibit.products(self.plan.cells))
            runs = (each for each in self.plan.rests_on(*others) if isinstance(each, Run))
            needed = dict.fromkeys([*self.plan.runs_of(shown), *runs])
            costs[name] = total(map(self.of, self._own(needed) + self._own(shown)))
        return costs

    def stages(self) -> dict[str, Cost]:
        """Stage -> its cost; the last entry is the whole study, in which nothing counts twice."""
        study, runs = self.study, self._own(self.plan.runs)
        on_text = [run for run in runs if not study.tasks[run.task].task.target]
        costs = {
            "pre-training": total(map(self.pretraining, self.pretrained)),
            "MLM runs": total(map(self.of, on_text)),
            "other runs": total(self.of(run) for run in runs if study.tasks[run.task].task.target),
            "evaluation": total(map(self.of, self._own(self.plan.cells))),
        }
        return {**costs, "whole study": total(costs.values())}

    def _own(self, results: Iterable[Run | Cell]) -> list[Run | Cell]:
        """The results that this study makes. Results of a study that it extends cost nothing."""
        return [result for result in results if result.study == self.study.name]

    def of(self, result: Run | Cell) -> Cost:
        """The cost of a run with its evaluations on the dev set, or of a cell."""
        if result not in self._costs:
            self._costs[result] = self._run(result) if isinstance(result, Run) else self._cell(result)
        return self._costs[result]

    def _run(self, run: Run) -> Cost:
        study, recipe = self.study, self.study.recipe(*run[1:])
        if derived := study.methods[run.method].derived:
            made, named = Cost(runs=1, gigabytes=self.stored(run)), run.under(study.name)
            read, gradients = derived.evaluated(named, self.plan), derived.gradients(named, study)
            made = self._evaluated(made, run, read) if read else made
            return total([made, *(self._gradients(of, most) for of, most in gradients.items() if most)])
        if choice := study.choice(run.under(study.name)):
            # A run with the seed of a variant is a copy. Another one has the settings of any variant.
            others = max((self.of(other) for other in choice.tried(study)), key=lambda cost: cost.hours)
            return Cost(gigabytes=self.stored(run)) if choice.taken(study, run.seed) else others
        name, entry = study.entry(run.task, "train")
        train, dev = run.tokens(self.plan, "train"), run.tokens(self.plan, "dev")
        # A mix of shares has as many examples as one of its parts.
        mixed = train if (recipe.mix or entry.task.head.mixes[0]) == "whole" else train[:1]
        options = {} if entry.data else entry.task.Options(**entry.options).model_dump()
        work = self._work(run, self.sizes.length(name))
        return self._training(recipe.training, mixed, dev, work, self.stored(run), options)

    def _cell(self, cell: Cell) -> Cost:
        return self._evaluated(Cost(cells=1), cell.run, [cell.tokens(self.plan)])

    def _evaluated(self, made: Cost, run: Run, tokens: Iterable[Tokens]) -> Cost:
        """The cost `made`, with evaluations of the model of a run on some tokens of its task."""
        evaluated = sum(map(self.sizes.examples, tokens)) * self.sizes.of_example(run.task)
        work = self._work(run, self.sizes.length(run.task))
        return self._priced(made, self.study.recipe(*run[1:]).training, work, evaluated)

    def _gradients(self, run: Run, most: int) -> Cost:
        """The cost of the gradients of a run's model for at most so many of its training examples, one at a time."""
        examples = min(most, sum(map(self.sizes.examples, run.tokens(self.plan, "train"))))
        made = Cost(steps=examples, tokens=examples * self.sizes.of_example(run.task))
        work = self._work(run, self.sizes.length(run.task))
        return self._priced(made, self.study.recipe(*run[1:]).training, work, 0)._replace(steps=0)

    def _work(self, run: Run, length: float) -> Work:
        parameters, sizes = self._model(run)
        attention = attention_work(sizes, length)
        return Work(parameters.training + 3 * attention, parameters.evaluation + attention)

    def _training(
        self, settings: Training, train: list[Tokens], dev: list[Tokens], work: Work, stored: float, options: Options
    ) -> Cost:
        """The cost of a training with its evaluations on the dev set; `options` are the options of a generated task."""
        of_example = self.sizes.of_example(train[0].task)
        of_epoch = 0 if settings.steps else sum(settings.used(self.sizes.examples(tokens)) for tokens in train)
        steps, examples = training_length(settings, of_epoch, of_example, options)
        evaluated = max(1, min(settings.evaluations, steps)) * sum(map(self.sizes.examples, dev)) * of_example
        trained = Cost(runs=1, steps=steps, tokens=examples * of_example, gigabytes=stored)
        return self._priced(trained, settings, work, evaluated)

    def _priced(self, trained: Cost, settings: Training, work: Work, evaluated: float) -> Cost:
        """The cost `trained`, with operations and hours, and with the evaluated tokens, added."""
        operations = trained.tokens * work.training + evaluated * work.evaluation
        batches = evaluated / (settings.micro_batch_tokens or settings.batch_tokens)
        seconds = operations / self.speed.operations[settings.precision]
        seconds += self.speed.step * (trained.steps + batches / 3)
        return trained._replace(tokens=trained.tokens + evaluated, operations=operations, hours=seconds / 3600)

    @cached_property
    def pretrained(self) -> list[str]:
        """The encoders that the study pre-trains itself."""
        used: list[Run | Cell | Encoder] = [*self.plan.runs, *self.plan.cells, *self.plan.encoders_read]
        users, entries = {each.encoder for each in used}, self.study.encoders
        named = users | {before for name in users for before in encoders_before(entries, name)}
        encoders = [Encoder(self.study.name, name) for name in sorted(named) if entries[name].is_trained]
        return [each.encoder for each in encoders if self.plan.owned(each) == each]

    def pretraining(self, encoder: str) -> Cost:
        """The cost of pre-training an encoder from scratch, or of training a language-modelling head, with its evaluations on text."""
        study, recipe = self.study, self.study.pretraining(encoder)
        settings, scratch, head = recipe.training, recipe.scratch, study.tasks[recipe.task].task.head
        tokenizer, parts = study.tokenizer_of(encoder), study.encoders[encoder].parts.items()
        train = [Tokens(study.name, task, tokenizer, part, "train") for part, task in parts]
        dev = [replace(tokens, split="dev") for tokens in train]
        options: Options = {}
        of_model = self.plan, encoder, head, 0, recipe.base, options
        # The evaluation on dev sets does not use the additional objectives of the architecture.
        plain, sizes = counted(*of_model, pretraining=True)
        whole = counted(*of_model, pretraining=True, scratch=scratch)[0] if scratch else plain
        attention = attention_work(sizes, self.sizes.length(recipe.task))
        output = sizes.hidden_size * sizes.vocab_size
        work = plain.training + 3 * attention
        if scratch:
            uncounted = scratch.uncounted_work(3 * attention, output, settings.tlm)
            work, attention = scratch.work(plain, whole, uncounted, settings.tlm), uncounted / 3
        elif recipe.lm_head and recipe.lm_head.trains == "head":
            # The encoder has only a forward pass; gradients flow through the output embeddings.
            work = plain.evaluation + attention + 2 * head.output_share * output
        stored = WEIGHT * whole.total * (1 + len(settings.checkpoints)) / 1e9
        return self._training(settings, train, dev, Work(work, plain.evaluation + attention), stored, {})

    def stored(self, run: Run) -> float:
        """The gigabytes that a run stores."""
        checkpoints = self.study.recipe(*run[1:]).training.checkpoints
        return WEIGHT * self.count(run).stored * (1 + len(checkpoints)) / 1e9

    def measured(self, run_json: str | Path) -> "Estimate":
        """The estimate at the measured speed of a run of this study, which includes dev sets, loading and waiting.

        Raises:
            ValueError: there is no such file, or it is not the record of a finished run of this study.
        """
        try:
            record = json.loads(Path(run_json).read_text(encoding="utf-8"))
            run = Run(*(record["recipe"][axis] for axis in Run._fields))
            steps, seconds = int(record["steps"]), float(record["seconds"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{run_json} is not a valid run.json ({error}): give the run.json of a finished run"
            ) from error
        if run not in self.plan.runs or min(steps, seconds) <= 0:
            raise ValueError(
                f"{run_json} is from {run.folder}, which is not a training of study {self.study.name}: give a run of "
                "this study"
            )
        planned = self.of(run)
        speed = planned.operations * steps / planned.steps / seconds
        name = f"that of {run_json}: {speed / 1e12:.3g} TFLOP/s, evaluation and the time between steps included"
        return Estimate(self.plan, Speed(name, {"bf16": speed, "fp32": speed}, 0.0))

    def count(self, run: Run) -> Count:
        """The parameters of a run's model."""
        return self._model(run)[0]

    def _model(self, run: Run) -> tuple[Count, Sizes]:
        """The parameters of a run's model, and the sizes of its encoder."""
        tokenizer, task = run.tokenizer(self.plan), self.study.tasks[run.task]
        kind, head = task.task, task.task.head.of(task.options)
        encoder = run.encoder_in(self.study).encoder
        place = encoder, tokenizer, head, len(kind.labels), run.method
        if place not in self._models:
            method = self.study.methods[run.method]
            is_own = tokenizer == self.study.tokenizer_of(encoder)
            self._models[place] = counted(
                self.plan,
                encoder,
                head,
                len(kind.labels),
                method.base,
                method.options,
                entries=None if is_own else self.study.all_tokenizers[tokenizer].most_entries,
                embeddings=bool(run.new_tokenizer(self.plan)),
            )
        return self._models[place]
