"""The plans of the studies that a command is about, and how rules ask them."""

import gc
import shutil
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

from xlgrid.plan import workflow as plans
from xlgrid.plan.products import (
    Cell,
    Claims,
    Comparison,
    Contrast,
    Data,
    Encoder,
    Exhibit,
    Meanings,
    Partial,
    Report,
    Run,
    Summary,
    Text,
    Tokens,
    Unlabelled,
    Vocabulary,
)
from xlgrid.preflight.machine import elsewhere, unwritable

# A study of many cells is millions of objects of Snakemake, and looking for garbage among them takes half of the time.
gc.set_threshold(1_000_000, 50, 1000)

# The rules may be a module of a workflow of someone else, which has settings and files of its own.
IS_MODULE = workflow.modifier.namespace is not None

# Conda and containers bring a PATH of their own, and a workflow of someone else has results in a place of its own.
if not workflow.deployment_settings.deployment_method and shutil.which("xlgrid") is None:
    raise WorkflowError(elsewhere("xlgrid"))
if not IS_MODULE and (problem := unwritable(Path("results"))):
    raise WorkflowError(problem)

try:
    SETTINGS = plans.read_settings(config, IS_MODULE)
    NAMED = plans.load_plans(SETTINGS, sys.argv[1:], IS_MODULE)
except (ValueError, FileNotFoundError) as error:
    raise WorkflowError(str(error)) from None

# The studies that they extend make a part of their files.
PLANS = plans.with_ancestors(NAMED)


wildcard_constraints:
    study=plans.either(PLANS),
    task="[^/]+",
    vocabulary="[^/]+",
    encoder="[^/]+",
    method="[^/]+",
    source="[^/]+",
    target="[^/]+",
    other="[^/]+",
    language="[^/]+",
    split="train|dev|test",
    seed="0|[1-9][0-9]*",
    exhibit="[^/]+",


def study(wildcards):
    return PLANS[wildcards.study].study


def inputs(kind, **fixed):
    """The inputs, by name, of a rule that makes products of a kind; `fixed` has the fields that are no wildcards."""

    def of_rule(wildcards):
        try:
            product = plans.product(kind, wildcards, **fixed)
            files = plans.inputs_of(PLANS, product)
        except ValueError as error:
            raise WorkflowError(str(error)) from None
        if plans.lacks_results(product, files):
            # Snakemake leaves a deleted file alone while the files that were made from it are there, unless they have to be
            # made again, as after `--forcerun`.
            workflow.dag.forcefiles.add(product.path)
        return files

    return unpack(of_rule)


def setting(name, kind, **fixed):
    """A setting of the product of a kind that a rule makes; `fixed` has the fields that are no wildcards."""
    return lambda wildcards: plans.setting_of(PLANS, plans.product(kind, wildcards, **fixed), name)


def archives(file):
    """The archives from which a file of `downloads` is made."""
    try:
        return plans.archives_of(PLANS, file)
    except ValueError as error:
        raise WorkflowError(str(error)) from None


def studies_where(folder, section, applies, suffix=""):
    """The constraint of the wildcard `study` of a rule that makes the entries of a section to which the rule applies.

    `folder` is a regular expression of what is between the study and the entry in a path.
    """

    def names(plan):
        return [f"{name}{suffix}" for name, entry in getattr(plan.study, section).items() if applies(entry)]

    return plans.studies_with(PLANS, folder, names)


def study_file(wildcards, input):
    """The file of a study. Snakemake does not compare a param that also depends on inputs with that of the last time."""
    return str(PLANS[wildcards.study].path)


def recipe(wildcards):
    return study(wildcards).recipe(*plans.product(Run, wildcards)[1:])


def everything(wildcards):
    plan = PLANS[plans.study_path(SETTINGS.study).stem]
    page = Report(plan.study.name).path
    # The cells that no exhibit has, and the weights of runs, are made again after they were deleted because they are named here.
    return [page, *(cell.path for cell in plan.cells), *(run.delta for run in sorted(plan.runs))]
