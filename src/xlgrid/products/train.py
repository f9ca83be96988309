"""Runs: one training each."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter, ne
from typing import TYPE_CHECKING, NamedTuple, Self

from xlgrid.base.names import unknown, unknown_or_unused
from xlgrid.data.published import Repository
from xlgrid.languages.sources import Source, accompanied
from xlgrid.methods.variants import plain, settings_of
from xlgrid.products.encode import Encoder, Tokenizer, Tokens
from xlgrid.products.product import Inputs, Product, Settings
from xlgrid.training.derived import ALL_DERIVED_RUNS

if TYPE_CHECKING:
    from xlgrid.plan.plan import Plan
    from xlgrid.study.schema import Study
    from xlgrid.study.starts import StartEntry

# The most bytes in the name of a file or folder on common file systems; a character of a source is one byte.
LONGEST_NAME = 255


class OfGrids(Product):
    """A product that the grids of a study list: a run or a cell.

    The fields are the study and the axes of a grid. The class is a tuple, because a study may have hundreds of
    thousands of these products.
    """

    __slots__ = ()
    task: str
    encoder: str
    method: str
    source: Source
    seed: int

    def planned(self, plan: "Plan") -> "Iterable[OfGrids]":
        """All products of this kind that the grids have."""
        raise NotImplementedError

    def under(self, study: str) -> Self:
        # Sources and targets are parsed already.
        return self if self.study == study else self._replace(study=study)  # type: ignore[attr-defined]

    def is_in(self, plan: "Plan") -> bool:
        return self in plan.results

    def problem(self, plan: "Plan") -> str | None:
        if self.is_in(plan):
            return None
        planned = [*self.planned(plan)]
        axes: tuple[str, ...] = type(self).__match_args__[1:]  # type: ignore[attr-defined]
        for axis in axes:
            value, values = str(getattr(self, axis)), dict.fromkeys(str(getattr(each, axis)) for each in planned)
            if value not in values:
                return unknown_or_unused(axis, value, values, plan.study.defined_names.get(axis, ()))
        problem = f"each part exists, but no grid of study {plan.study.name} has this combination: see {plan.path}"
        values_of = attrgetter(*axes)
        neighbours = [each.path for each in planned if sum(map(ne, values_of(each), values_of(self))) == 1]
        near = difflib.get_close_matches(self.path, neighbours, n=1)
        return f"{problem}; the nearest is {near[0]}" if near else problem

    def on_text(self, start: "StartEntry | None") -> "list[Run]":
        """The MLM run that `start` names, as a list of at most one run."""
        text = start and self._text(start)
        return [Run(self.study, start.task, self.encoder, start.method, text, start.seed)] if start and text else []

    def _text(self, start: "StartEntry") -> str | None:
        """The source of the MLM run that `start` names; None if there is no such run."""
        return start.of_run(self.source)

    def mlm_runs(self, study: "Study") -> "list[Run]":
        """The MLM runs whose weights the model loads, in this order."""
        start = study.methods[self.method].start
        if start is None:
            return []
        texts = self.on_text(start)
        # An MLM run that began with another one stores only its own changes, so the earlier run is loaded first.
        return list(dict.fromkeys(each for run in texts for each in (*run.mlm_runs(study), run)))

    def starting_runs(self, study: "Study") -> "list[Run]":
        """The runs whose weights are loaded before the training or evaluation, in this order."""
        return self.mlm_runs(study)

    def encoder_in(self, study: "Study") -> Encoder:
        """The encoder, which may be that of the source's language."""
        return Encoder(self.study, study.encoder_of(self.encoder, self.source))

    def tokenizer(self, plan: "Plan") -> str:
        """The tokenizer of the model's inputs.

        It is the tokenizer of the task; otherwise, of the last MLM run whose task names a tokenizer; otherwise, of the
        encoder.
        """
        study = plan.study
        users: list[OfGrids] = [self, *reversed(self.texts_read(plan))]
        named = (study.tasks[each.task].tokenizer_in(each.source) for each in users)
        return next(filter(None, named), None) or study.tokenizer_of(self.encoder_in(study).encoder)

    def texts_read(self, plan: "Plan") -> "list[Run]":
        """The MLM runs that may have trained the word embeddings of the model."""
        return self.mlm_runs(plan.study)

    def second_language(self, plan: "Plan") -> str | None:
        """The language of the parallel example that the model reads with each example; None if it reads none."""
        return plan.study.methods[self.method].method.parallel_language


class _RunAxes(NamedTuple):
    study: str
    task: str
    encoder: str
    method: str
    source: Source
    seed: int


class Run(OfGrids, _RunAxes):
    """One training. The source is a language, a pair, a mix, or one of these for a target (`en@qu`).

    Raises:
        ValueError: the source cannot be parsed, or the seed is not a number.
    """

    __slots__ = ()
    template = "results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/{file}"
    files = ("run.json", "delta.safetensors", "curve.jsonl")
    stage = "train"
    rules = ("train", "take_winner", "take_run")

    def __new__(cls, study: str, task: str, encoder: str, method: str, source: str, seed: int | str) -> "Run":
        return super().__new__(cls, study, task, encoder, method, Source(source), int(seed))

    @property
    def delta(self) -> str:
        """The file with the weights that the run changed."""
        return self.file("delta.safetensors")

    def inputs(self, plan: "Plan") -> Inputs:
        # A run of a group has the inputs of its training, too, and their changes make it anew.
        group = plan.study.group(self)
        return {**self.inputs_alone(plan), "together": [plan.owned(group).path] if group else []}

    def inputs_alone(self, plan: "Plan") -> Inputs:
        """The input files of the run where it trains alone."""
        encoder = plan.owned(self.encoder_in(plan.study)).path
        entry = plan.study.methods[self.method]
        if entry.derived:
            return {"encoder": encoder, **entry.derived.inputs(self, plan), **inputs_on_text(plan, start=self)}
        return {
            "train": [plan.owned(tokens).path for tokens in self.tokens(plan, "train")],
            "dev": [plan.owned(tokens).path for tokens in self.tokens(plan, "dev")],
            "encoder": encoder,
            "tokenizer": [plan.owned(tokenizer).path for tokenizer in self.new_tokenizer(plan)],
            "first": [plan.owned(earlier).delta for earlier in self.first(plan.study)],
            **inputs_on_text(plan, start=self),
            **self._inputs_of_choice(plan),
        }

    def _inputs_of_choice(self, plan: "Plan") -> Inputs:
        """The choice of the settings of the run, and the runs of which the run is one; no choice if they are not chosen."""
        if choice := plan.study.choice(self):
            taken = [plan.owned(run).delta for run in choice.taken(plan.study, self.seed)]
            return {"choice": [plan.owned(choice).path], "taken": taken}
        return {"choice": []}

    def settings(self, study: "Study") -> Settings:
        recipe = study.recipe(*self[1:]).identity()
        derived = study.methods[self.method].derived
        return {"recipe": recipe, **(derived.settings(self) if derived else {})}

    @classmethod
    def makers(cls, study: "Study") -> Mapping[str, Iterable[str]]:
        makers: dict[str, list[str]] = {"train": [], **{kind.rule: [] for kind in ALL_DERIVED_RUNS.known()}}
        for name, method in study.methods.items():
            makers[method.derived.rule if method.derived else "train"].append(f"runs/*/*/{name}")
        return {**makers, **study.makers_of_winners, **study.makers_of_groups}

    def planned(self, plan: "Plan") -> "list[Run]":
        return plan.runs

    def problem(self, plan: "Plan") -> str | None:
        entry = plan.study.methods.get(self.method)
        if entry and not entry.is_trained:
            return f"method {self.method} trains nothing and has no runs: ask for a cell"
        return super().problem(plan)

    def mistakes(self, plan: "Plan") -> Iterator[str]:
        study = plan.study
        if len(self.source) > LONGEST_NAME:
            yield (
                f"grids: the source {self.source[:40]}... has {len(self.source)} characters, but it becomes the "
                f"name of a run's folder, which can have {LONGEST_NAME}: mix fewer languages, or choose shorter codes"
            )
        if study.tasks[self.task].from_text and not study.methods[self.method].derived:
            for lacking in filter(None, map(study.text.lacks, self.source.languages)):
                yield f"text: runs of method {self.method} train on text, but {lacking}"
        # The last entry that sets a key wins.
        entries: dict[str, str] = {
            key: f"training.{i}.set" for i, entry in enumerate(study.training) for key in entry.set
        }
        varied = settings_of(self.method)
        entries |= {
            key: f"grids.{name}.vary" for name, grid in study.grids.items() for key in grid.vary if key in varied
        }
        entries |= {key: f"sweep.{i}.set" for i, entry in enumerate(study.sweep) for key in entry.set if key in varied}
        training, head = study.recipe(*self[1:]).training, study.tasks[self.task].task.head
        method = study.methods[self.method]
        config = head.described(study.encoders[self.encoder].known_config(study, self.encoder))
        misfits = (
            (key, setting.misfit(head) or (None if method.derived else setting.unfit(method.method, config)))
            for key, setting in training.added.items()
        )
        if conflict := training.conflict or next(((key, text) for key, text in misfits if text), None):
            key, text = conflict
            yield f"{entries[key]}: in {self.folder}, {text}, or restrict the entry with `when`"
        elif problem := next(self._problems_of_dev(study), None):
            yield f"{entries['dev_targets']}.dev_targets: {problem}; leave it out, or restrict it with `when`"
        yield from self._problems_of_tokenizer(plan)
        if derived := study.methods[self.method].derived:
            yield from (f"methods.{self.method}.{mistake}" for mistake in derived.mistakes(self, plan))

    def _problems_of_dev(self, study: "Study") -> Iterator[str]:
        """Reasons why the run cannot be evaluated on its `dev_targets` while it trains."""
        name, entry = study.entry(self.task, "dev")
        start = study.methods[self.method].start
        known, text = study.encoders[self.encoder].modules_of(study), start.of_run(self.source) if start else None
        # The MLM run has added a module, with which this run begins.
        added = text.languages if text else ()
        for target in study.recipe(*self[1:]).training.dev_targets:
            if not entry.task.target:
                yield f"{self.folder} is an MLM run, which is evaluated on the text that it trains on"
            elif entry.data and (problem := entry.data.lacks(name, "dev", target)):
                yield problem
            elif not entry.data and not all(entry.task.speaks(code) for code in target.languages):
                yield f"task {name} cannot be generated in {target}"
            elif known and not {*target.languages} <= {*known, *added}:
                yield f"{self.folder} cannot be evaluated on {target}: encoder {self.encoder} has no module of it"
            elif start and start.of_cell(self.source, target) != start.of_run(self.source):
                # Each evaluation would have to load the weights of another MLM run.
                yield (
                    f"{self.folder} cannot be evaluated on {target} while it trains, because cells of {target} have weights of "
                    "another MLM run"
                )

    def _problems_of_tokenizer(self, plan: "Plan") -> Iterator[str]:
        """An MLM run with another tokenizer than the encoder's begins with the encoder, and is trained."""
        study = plan.study
        tokenizer = study.tasks[self.task].tokenizer_in(self.source)
        chain = [*self.mlm_runs(study), self] if not study.tasks[self.task].task.target else []
        other = [each.task for each in chain if each.new_tokenizer(plan)]
        if tokenizer and tokenizer not in study.all_tokenizers:
            yield f"tasks.{self.task}.tokenizer: {self.folder} has {unknown('tokenizer', tokenizer, study.all_tokenizers)}"
        elif other and study.methods[self.method].derived:
            yield f"tasks.{other[0]}.tokenizer: the runs of method {self.method} are made without training, and have no new embeddings: leave it out"
        elif other and len(chain) > 1:
            yield (
                f"tasks.{other[0]}.tokenizer: {self.folder} begins with {chain[-2].folder}, but an MLM run that "
                "begins with another must have the encoder's tokenizer: leave out `tokenizer`, or the `start` of "
                "one method"
            )

    @property
    def thing(self) -> str:
        return f"runs of method {self.method}"

    def repository(self, study: "Study") -> Repository | None:
        derived = study.methods[self.method].derived
        return derived.repository(self) if derived else None

    def first(self, study: "Study") -> "list[Run]":
        """The run of another task, or on the source of a run for one target, with which this run begins, as a list of at
        most one run.

        Runs of all variants of a method begin with the same run.
        """
        if study.recipe(*self[1:]).training.is_for_target:
            return [self._replace(method=plain(self.method), source=self.source.data)]
        task = study.tasks[self.task].start
        return [self._replace(task=task, method=plain(self.method))] if task else []

    def starting_runs(self, study: "Study") -> "list[Run]":
        derived = study.methods[self.method].derived
        chosen = choice.tried(study) if (choice := study.choice(self)) else ()
        return [*self.mlm_runs(study), *(derived.runs(self, study) if derived else self.first(study)), *chosen]

    def tokens(self, plan: "Plan", split: str) -> list[Tokens]:
        """The tokens of a split, in each language or pair on which the run uses it.

        `train` has the tokens of each part of the source, or those of the one target that the run is for. `dev`, with which the run chooses its checkpoint, has the
        tokens of each part of the source or of each of the `dev_targets`.
        """
        task, _ = plan.study.entry(self.task, split)
        recipe = plan.study.recipe(*self[1:])
        parts = recipe.dev_parts if split == "dev" else recipe.train_parts
        tokenizer, second = self.tokenizer(plan), self.second_language(plan)
        return [Tokens(self.study, task, tokenizer, accompanied(part, second), split) for part in parts]

    def new_tokenizer(self, plan: "Plan") -> list[Tokenizer]:
        """The tokenizer, other than the encoder's, for which an MLM run trains embeddings, as a list of at most one."""
        tokenizer = plan.study.tasks[self.task].tokenizer_in(self.source)
        is_new = tokenizer and tokenizer != plan.study.tokenizer_of(self.encoder_in(plan.study).encoder)
        return [Tokenizer(self.study, tokenizer)] if tokenizer and is_new else []

    def weights(self, plan: "Plan") -> Inputs:
        """The files that are needed to use the trained model on untokenized data, including the tokenizer."""
        return {
            "delta": plan.owned(self).delta,
            "encoder": plan.owned(self.encoder_in(plan.study)).path,
            "tokenizer": plan.owned(Tokenizer(self.study, self.tokenizer(plan))).path,
        }


def inputs_on_text(plan: "Plan", **users: OfGrids) -> Inputs:
    """The files of the MLM runs with which runs or cells begin.

    Each keyword is the name of an input, for the MLM run (none or one) of that run or cell. The input `earlier` has the
    MLM runs with which these MLM runs, or the run of a cell, began.
    """
    starts = {name: user.on_text(plan.study.methods[user.method].start) for name, user in users.items()}
    named = {run for runs in starts.values() for run in runs}
    earlier = dict.fromkeys(run for user in users.values() for run in user.mlm_runs(plan.study) if run not in named)
    texts: Inputs = {name: [plan.owned(run).delta for run in runs] for name, runs in starts.items()}
    return {**texts, "earlier": [plan.owned(run).delta for run in earlier]}
