"""The plans of the studies that a command is about, and how rules ask them."""

import gc
import json
import sys

from snakemake.exceptions import WorkflowError

from xlgrid.plan import workflow as plans
from xlgrid.plan.products import (
    Cell,
    Claims,
    Contrast,
    Data,
    Encoder,
    Exhibit,
    Meanings,
    Report,
    Run,
    Summary,
    Text,
    Tokens,
    delta,
)

# A study of many cells is millions of objects of Snakemake, and looking for garbage among them takes half of the time.
gc.set_threshold(1_000_000, 50, 1000)

try:
    PLANS = plans.load_plans(config, sys.argv[1:], is_module=workflow.modifier.namespace is not None)
except (ValueError, FileNotFoundError) as error:
    raise WorkflowError(str(error)) from None


wildcard_constraints:
    study=plans.either(PLANS),
    task="[^/]+",
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
            return plans.inputs_of(PLANS, plans.product(kind, wildcards, **fixed))
        except ValueError as error:
            raise WorkflowError(str(error)) from None

    return unpack(of_rule)


def studies(folder, names):
    """The constraint of the wildcard `study` of a rule that makes what has one of its study's `names` in a folder."""
    return plans.studies_with(PLANS, folder, names)


# A task that is described by its columns has them in no table of the library.
def task_columns(wildcards):
    return json.dumps(study(wildcards).tasks[wildcards.task].columns, ensure_ascii=False)


# Other languages' settings do not change the text of a language.
def text_settings(wildcards):
    return json.dumps(study(wildcards).text.concerning(wildcards.language), separators=(",", ":"), ensure_ascii=False)
