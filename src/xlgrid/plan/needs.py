"""The files from which each product of a study is made: the one statement of how products depend on one another.

The rules ask it for their inputs, and `xlgrid status` for the jobs on which a cell rests.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from xlgrid.data.encoders import encoder_files, vocabulary_files
from xlgrid.data.sources import local_files
from xlgrid.languages.sources import Source, Target
from xlgrid.methods import ALL_METHODS
from xlgrid.plan.grid import first_stage, started_from, text_runs
from xlgrid.plan.products import (
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
    Vocabulary,
    product_of,
)
from xlgrid.results.claims import terms
from xlgrid.results.identity import Cell, Run

if TYPE_CHECKING:
    from xlgrid.plan.grid import Plan

# The inputs of a rule by name: one file, or several.
Inputs = dict[str, str | list[str]]


def inputs(plan: "Plan", product: Product) -> Inputs:
    """The files from which the rule of a product makes it.

    Raises:
        ValueError: the product is the claims, and a claim compares cells that no grid has.
    """
    study = plan.study
    match product:
        case Cell():
            return {
                "delta": [product.run.delta] if study.methods[product.method].is_trained else [],
                "encoder": Encoder(study.name, product.encoder).path,
                "tokens": test_tokens(plan, product).path,
                **_text_runs(plan, text_run=product),
            }
        case Run():
            return _of_run(plan, product)
        case Contrast():
            tokens = [test_tokens(plan, cell) for cell in product.cells]
            return {
                "delta": product.run.delta,
                "encoder": Encoder(study.name, product.encoder).path,
                "vocabulary": Vocabulary(study.name, tokens[0].vocabulary).path,
                "tokens": [each.path for each in tokens],
                **_text_runs(plan, text_run=product.cells[0], other_text_run=product.cells[1]),
            }
        case Meanings():
            return {}
        case Data():
            source = study.tasks[product.task].data
            if source is None:
                return {"meanings": Meanings(study.name, product.task).path}
            return {"files": local_files(source.of(product.split, product.language), product.language, product.split)}
        case Text():
            return {"files": study.text.local_files(product.language)}
        case Vocabulary():
            vocabulary = study.all_vocabularies[product.vocabulary]
            if vocabulary.languages:
                return {"texts": [Text(study.name, code).path for code in vocabulary.languages]}
            return {"files": vocabulary_files(vocabulary.path) if vocabulary.path else []}
        case Encoder():
            entry = study.encoders[product.encoder]
            named = {"vocabulary": Vocabulary(study.name, study.vocabulary_of(product.encoder)).path}
            if entry.of:
                return {"encoder": Encoder(study.name, entry.of).path}
            if entry.scratch:
                parts = Source(entry.scratch.source).parts
                named_vocabulary = study.vocabulary_of(product.encoder)
                of_split: Inputs = {
                    split: [
                        Tokens(study.name, entry.scratch.task, named_vocabulary, part, split).path for part in parts
                    ]
                    for split in ("train", "dev")
                }
                return {**named, **of_split}
            return {**named, "files": encoder_files(entry.path) if entry.path else []}
        case Tokens():
            data: list[Data | Text] = [Data(study.name, product.task, product.language, product.split)]
            if study.tasks[product.task].from_text:
                data = [Text(study.name, code) for code in Target(product.language).languages]
            return {
                "data": [each.path for each in data],
                "vocabulary": Vocabulary(study.name, product.vocabulary).path,
            }
        case Exhibit() | Comparison():
            exhibit = study.exhibit(product.exhibit)
            # The published numbers beside an exhibit are in its comparison only.
            reads_published = isinstance(product, Comparison) or not exhibit.is_compared
            results = [cell.path for cell in exhibit.cells(plan.cells)]
            results += [contrast.path for contrast in exhibit.contrasts(plan.cells)]
            return {
                "results": results,
                "encoders": [encoder.path for encoder in exhibit.encoders_read(study)],
                "published": exhibit.references if reads_published else [],
            }
        case Claims():
            judged = [terms(name, claim, plan.cells, study.belongs) for name, claim in study.claims.items()]
            return {"results": list(dict.fromkeys(term.cell.path for claim in judged for term in claim))}
        case Summary():
            shown_cells = {c for exhibit in study.exhibits.values() for c in exhibit.cells(plan.cells)}
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


def vocabulary_of(plan: "Plan", user: Run | Cell) -> str:
    """The vocabulary whose tokens a run trains on, or a cell is evaluated on: that of its task or, where the task names none, of
    the last run on text that it loads whose task names one; otherwise that of the encoder."""
    study = plan.study
    # The last run on text of a cell is that of its target.
    tasks = [user.task, *(run.task for run in reversed(text_runs(study, user)))]
    named = (study.tasks[task].vocabulary for task in tasks)
    return next(filter(None, named), None) or study.vocabulary_of(user.encoder)


def new_vocabulary(plan: "Plan", run: Run) -> list[Vocabulary]:
    """The vocabulary, other than the encoder's, for which a run on text trains embeddings: none or one."""
    vocabulary = plan.study.tasks[run.task].vocabulary
    is_new = vocabulary and vocabulary != plan.study.vocabulary_of(run.encoder)
    return [Vocabulary(run.study, vocabulary)] if vocabulary and is_new else []


def test_tokens(plan: "Plan", cell: Cell) -> Tokens:
    """The tokens on which a cell is evaluated."""
    return Tokens(cell.study, cell.task, vocabulary_of(plan, cell), Target(cell.target).data, "test")


def source_tokens(plan: "Plan", run: Run, split: str) -> list[Tokens]:
    """The tokens on which a run trains (`train`) or chooses its checkpoint (`dev`), for each part of its source."""
    task, _ = plan.study.entry(run.task, split)
    vocabulary = vocabulary_of(plan, run)
    return [Tokens(run.study, task, vocabulary, part, split) for part in Source(run.source).parts]


def _of_run(plan: "Plan", run: Run) -> Inputs:
    encoder = Encoder(run.study, run.encoder).path
    entry = plan.study.methods[run.method]
    if entry.imported:
        adapter_format = ALL_METHODS.find(entry.base).adapter_format
        assert adapter_format
        place = entry.imported.place(run.source, run.encoder)
        return {"encoder": encoder, "adapter": [] if entry.imported.hub else adapter_format.files(place)}
    return {
        "train": [tokens.path for tokens in source_tokens(plan, run, "train")],
        "dev": [tokens.path for tokens in source_tokens(plan, run, "dev")],
        "encoder": encoder,
        "vocabulary": [vocabulary.path for vocabulary in new_vocabulary(plan, run)],
        "first": [earlier.delta for earlier in first_stage(plan.study.tasks[run.task].start, run)],
        **_text_runs(plan, start=run),
    }


def _text_runs(plan: "Plan", **users: Run | Cell) -> Inputs:
    """The run on text of each run or cell, none or one, and under `earlier` those with which these runs on text, or the run
    of a cell, began."""
    starts = {name: started_from(plan.study.methods[user.method].start, user) for name, user in users.items()}
    named = {run for runs in starts.values() for run in runs}
    earlier = dict.fromkeys(run for user in users.values() for run in text_runs(plan.study, user) if run not in named)
    texts = {name: [run.delta for run in runs] for name, runs in starts.items()}
    return {**texts, "earlier": [run.delta for run in earlier]}


def rests_on(plan: "Plan", product: Product) -> list[Product]:
    """The product and everything from which it is made, each after what it is made from, and one for each job."""
    if isinstance(product, Data) and _makes_all_splits(plan, product):
        product = replace(product, split="test")
    if product not in plan.chains:
        chain: dict[Product, None] = {}
        for files in inputs(plan, product).values():
            for file in [files] if isinstance(files, str) else files:
                # A file of another study, such as an encoder at a `path` below its results, has a plan of its own.
                if (needed := product_of(file)) and needed.study == product.study:
                    chain |= dict.fromkeys(rests_on(plan, needed))
        plan.chains[product] = [*chain, product]
    return plan.chains[product]


def _makes_all_splits(plan: "Plan", product: Product) -> bool:
    """Whether one job makes all splits of the data."""
    return isinstance(product, Data) and plan.study.tasks[product.task].is_generated


def log(plan: "Plan", product: Product) -> str:
    """The log of the job that makes a product: named as its path, or as its folder if the job makes several files there."""
    makes_folder = product.template.endswith("/{file}") or _makes_all_splits(plan, product)
    stem = product.folder if makes_folder else product.path.rpartition(".")[0]
    return Log(product.study, stem.removeprefix(f"{Report(product.study).folder}/")).path
