"""The files from which each product of a study is made: the one statement of how products depend on one another.

The rules ask it for their inputs, and `xlgrid status` for the jobs on which a cell rests.
"""

from typing import TYPE_CHECKING, Protocol, TypeVar

from xlgrid.data.encoders import encoder_files, vocabulary_files
from xlgrid.data.sources import local_files
from xlgrid.languages.sources import Source, Target, accompanied, unaccompanied
from xlgrid.plan.grid import first_stage, started_from, teacher, text_runs
from xlgrid.plan.products import (
    Benchmark,
    Claims,
    Comparison,
    Contrast,
    Data,
    Encoder,
    Exhibit,
    Log,
    Meanings,
    Product,
    Report,
    Summary,
    Text,
    Tokens,
    Unlabelled,
    Vocabulary,
)
from xlgrid.results.claims import terms
from xlgrid.results.identity import Cell, Run

if TYPE_CHECKING:
    from xlgrid.study.schema import Study
    from xlgrid.study.tasks import TaskEntry

P = TypeVar("P", bound=Product)
# The inputs of a rule by name: one file, or several.
Inputs = dict[str, str | list[str]]


class Planned(Protocol):
    """The part of a plan (`xlgrid.plan.plan.Plan`) that is asked here."""

    @property
    def study(self) -> "Study": ...

    @property
    def cells(self) -> list[Cell]: ...

    def owned(self, product: P) -> P:
        """The product under the study that makes it."""


def inputs(plan: Planned, product: Product) -> Inputs:
    """The files from which the rule of a product makes it, each below the results of the study that makes the file.

    Raises:
        ValueError: the product is the claims, and a claim compares cells that no grid has.
    """
    study = plan.study
    match product:
        case Cell():
            return {
                "delta": [plan.owned(product.run).delta] if study.methods[product.method].is_trained else [],
                "encoder": plan.owned(Encoder(study.name, product.encoder)).path,
                "tokens": plan.owned(test_tokens(plan, product)).path,
                **_text_runs(plan, text_run=product),
            }
        case Run():
            return _of_run(plan, product)
        case Contrast():
            tokens = [test_tokens(plan, cell) for cell in product.cells]
            return {
                "delta": plan.owned(product.run).delta,
                "encoder": plan.owned(Encoder(study.name, product.encoder)).path,
                "vocabulary": plan.owned(Vocabulary(study.name, tokens[0].vocabulary)).path,
                "tokens": [plan.owned(each).path for each in tokens],
                **_text_runs(plan, text_run=product.cells[0], other_text_run=product.cells[1]),
            }
        case Meanings():
            return {}
        case Data():
            source = study.tasks[product.task].data
            if source is None:
                return {"meanings": plan.owned(Meanings(study.name, product.task)).path}
            if labelled := source.labelled_in(product.split, product.language):
                run = teacher(study, labelled.by)
                return {
                    "rows": plan.owned(Unlabelled(study.name, product.task, product.language)).path,
                    "delta": plan.owned(run).delta,
                    "encoder": plan.owned(Encoder(study.name, run.encoder)).path,
                    "vocabulary": plan.owned(Vocabulary(study.name, vocabulary_of(plan, run))).path,
                }
            origin, whole = (
                source.of(product.split, product.language),
                study.tasks[product.task].task.head.has_pairs_only,
            )
            return {"files": local_files(origin, product.language, product.split, whole)}
        case Unlabelled():
            data_source = study.tasks[product.task].data
            assert data_source and data_source.labelled
            return {"files": local_files(data_source.labelled, product.language, "train")}
        case Text():
            return {"files": study.text.local_files(product.language)}
        case Vocabulary():
            vocabulary = study.all_vocabularies[product.vocabulary]
            if vocabulary.languages:
                return {"texts": [plan.owned(Text(study.name, code)).path for code in vocabulary.languages]}
            return {"files": vocabulary_files(vocabulary.path) if vocabulary.path else []}
        case Encoder():
            entry = study.encoders[product.encoder]
            if entry.of and not entry.lm_head:
                return {"encoder": plan.owned(Encoder(study.name, entry.of)).path}
            named_vocabulary = study.vocabulary_of(product.encoder)
            named: Inputs = {"vocabulary": plan.owned(Vocabulary(study.name, named_vocabulary)).path}
            if entry.is_trained:
                of_part = [(study.name, task, named_vocabulary, part) for part, task in entry.parts.items()]
                for split in ("train", "dev"):
                    named[split] = [plan.owned(Tokens(*place, split)).path for place in of_part]
                begin = [plan.owned(Encoder(study.name, entry.begin)).path] if entry.begin else []
                return {**named, "begin": begin}
            return {**named, "files": encoder_files(entry.path, study.downloads) if entry.path else []}
        case Tokens():
            data: list[Data | Text]
            if study.tasks[product.task].from_text:
                data = [Text(study.name, code) for code in Target(product.language).languages]
            elif study.tasks[product.task].task.head.reads_dev:
                data = [Data(study.name, product.task, product.language, split) for split in (product.split, "dev")]
            else:
                language, _ = unaccompanied(product.language)
                examples = Data(study.name, product.task, language, product.split)
                data = [examples, *_companions(study.tasks[product.task], product)]
            return {
                "data": [plan.owned(each).path for each in data],
                "vocabulary": plan.owned(Vocabulary(study.name, product.vocabulary)).path,
            }
        case Exhibit() | Comparison():
            exhibit = study.exhibit(product.exhibit)
            # The published numbers beside an exhibit are in its comparison only.
            reads_published = isinstance(product, Comparison) or not exhibit.is_compared
            results = [cell.path for cell in exhibit.cells(plan.cells, study.facts)]
            results += [plan.owned(contrast).path for contrast in exhibit.contrasts(plan.cells)]
            return {
                "results": results,
                "encoders": [plan.owned(encoder).path for encoder in exhibit.encoders_read(study)],
                "published": exhibit.references if reads_published else [],
            }
        case Claims():
            judged = [terms(name, claim, plan.cells, study.belongs) for name, claim in study.claims.items()]
            return {"results": list(dict.fromkeys(term.cell.path for claim in judged for term in claim))}
        case Summary():
            shown_cells = {c for exhibit in study.exhibits.values() for c in exhibit.cells(plan.cells, study.facts)}
            return {
                # The other cells are inputs of exhibits.
                "cells": [cell.path for cell in plan.cells if cell not in shown_cells],
                "exhibits": [Exhibit(study.name, name).path for name in study.exhibits],
                "comparisons": [
                    Comparison(study.name, name).path for name, e in study.exhibits.items() if e.is_compared
                ],
                "claims": [Claims(study.name).path] if study.claims else [],
            }
        case Report():
            return {"summary": Summary(study.name).path}


def flat(files: Inputs) -> list[str]:
    """All files among the inputs of a rule."""
    return [path for value in files.values() for path in ([value] if isinstance(value, str) else value)]


def vocabulary_of(plan: Planned, user: Run | Cell) -> str:
    """The vocabulary whose tokens a run trains on, or a cell is evaluated on: that of its task or, where the task names none, of
    the last run on text that it loads whose task names one; otherwise that of the encoder.

    A method may count embeddings among the parameters of a language. Then a cell has the vocabulary of its target's run on text,
    or that of the encoder if there is no such run.
    """
    study = plan.study
    entry = study.methods[user.method]
    if isinstance(user, Cell) and entry.method.exchanges_embeddings:
        texts = [each for run in started_from(entry.start, user) for each in (*text_runs(study, run), run)]
    else:
        # The last run on text of a cell is that of its target.
        texts = text_runs(study, user)
    users = [user, *reversed(texts)]
    named = (study.tasks[each.task].vocabulary_in(each.source) for each in users)
    return next(filter(None, named), None) or study.vocabulary_of(user.encoder)


def new_vocabulary(plan: Planned, run: Run) -> list[Vocabulary]:
    """The vocabulary, other than the encoder's, for which a run on text trains embeddings: none or one."""
    vocabulary = plan.study.tasks[run.task].vocabulary_in(run.source)
    is_new = vocabulary and vocabulary != plan.study.vocabulary_of(run.encoder)
    return [Vocabulary(run.study, vocabulary)] if vocabulary and is_new else []


def _companions(entry: "TaskEntry", tokens: Tokens) -> list[Data]:
    """The data with the companions of the examples of tokens: none, or one file."""
    language, companion = unaccompanied(tokens.language)
    if companion is None:
        return []
    if entry.companions and tokens.split == "test" and language != companion:
        return [Data(tokens.study, entry.companions, language, "test")]
    return [Data(tokens.study, tokens.task, companion, tokens.split)]


def test_tokens(plan: Planned, cell: Cell) -> Tokens:
    """The tokens on which a cell is evaluated."""
    language = accompanied(Target(cell.target).data, _companion(plan, cell))
    return Tokens(cell.study, cell.task, vocabulary_of(plan, cell), language, "test")


def source_tokens(plan: Planned, run: Run, split: str) -> list[Tokens]:
    """The tokens on which a run trains (`train`), for each part of its source, or chooses its checkpoint (`dev`), for each part
    or for each of its `dev_targets`."""
    task, _ = plan.study.entry(run.task, split)
    vocabulary = vocabulary_of(plan, run)
    parts = plan.study.recipe(*run[1:]).dev_parts if split == "dev" else Source(run.source).parts
    languages = [accompanied(part, _companion(plan, run)) for part in parts]
    return [Tokens(run.study, task, vocabulary, language, split) for language in languages]


def _companion(plan: Planned, user: Run | Cell) -> str | None:
    """The language in which the model of a run or cell reads each example a second time."""
    return plan.study.methods[user.method].method.companion_language


def _of_run(plan: Planned, run: Run) -> Inputs:
    encoder = plan.owned(Encoder(run.study, run.encoder)).path
    entry = plan.study.methods[run.method]
    if entry.imported:
        adapter_format = entry.method.adapter_format
        assert adapter_format
        place = entry.imported.place(run.source, run.encoder)
        return {"encoder": encoder, "adapter": [] if entry.imported.hub else adapter_format.files(place)}
    return {
        "train": [plan.owned(tokens).path for tokens in source_tokens(plan, run, "train")],
        "dev": [plan.owned(tokens).path for tokens in source_tokens(plan, run, "dev")],
        "encoder": encoder,
        "vocabulary": [plan.owned(vocabulary).path for vocabulary in new_vocabulary(plan, run)],
        "first": [plan.owned(earlier).delta for earlier in first_stage(plan.study.tasks[run.task].start, run)],
        **_text_runs(plan, start=run),
    }


def _text_runs(plan: Planned, **users: Run | Cell) -> Inputs:
    """The run on text of each run or cell, none or one, and under `earlier` those with which these runs on text, or the run
    of a cell, began."""
    starts = {name: started_from(plan.study.methods[user.method].start, user) for name, user in users.items()}
    named = {run for runs in starts.values() for run in runs}
    earlier = dict.fromkeys(run for user in users.values() for run in text_runs(plan.study, user) if run not in named)
    texts = {name: [plan.owned(run).delta for run in runs] for name, runs in starts.items()}
    return {**texts, "earlier": [plan.owned(run).delta for run in earlier]}


def makes_all_splits(plan: Planned, product: Product) -> bool:
    """Whether one job makes all splits of the data."""
    return isinstance(product, Data) and plan.study.tasks[product.task].is_generated


def log(plan: Planned, product: Product) -> str:
    """The log of the job that makes a product: named as its path, or as its folder if the job makes several files there."""
    makes_folder = product.template.endswith("/{file}") or makes_all_splits(plan, product)
    stem = product.folder if makes_folder else product.path.rpartition(".")[0]
    return Log(product.study, stem.removeprefix(f"{Report(product.study).folder}/")).path


def benchmark(plan: Planned, product: Product) -> Benchmark:
    """Snakemake's measurement of the job that makes a product, which is named as the job's log."""
    _, study, _, stage, job = log(plan, product).removesuffix(".log").split("/", 4)
    return Benchmark(study, stage, job)
