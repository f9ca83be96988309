"""The plans of the studies that a Snakemake command names, and functions with which rules read them."""

import gc
import inspect
import shutil
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

from xlgrid.base.papers import rule_files
from xlgrid.plan import workflow as plans
from xlgrid.products.data import Data, Meanings, Text
from xlgrid.products.encode import Encoder, Tokens, Tokenizer
from xlgrid.products.evaluate import Cell
from xlgrid.products.exhibits import PublishedExhibit, Exhibit
from xlgrid.products.report import Claims, Partial, Report, Summary
from xlgrid.products.train import Run
from xlgrid.preflight.doctor import elsewhere, unwritable

# For a study with many cells, Snakemake creates millions of objects, and garbage collection would take half of the
# time.
gc.set_threshold(1_000_000, 50, 1000)

# Another workflow may use these rules as a module, with further settings and files.
IS_MODULE = workflow.modifier.namespace is not None

# Conda and containers have their own PATH, and another workflow may have its results in another place.
if not workflow.deployment_settings.deployment_method and shutil.which("xlgrid") is None:
    raise WorkflowError(elsewhere("xlgrid"))
if not IS_MODULE and (problem := unwritable(Path("results"))):
    raise WorkflowError(problem)

try:
    SETTINGS = plans.read_settings(config, IS_MODULE)
    NAMED = plans.load_plans(SETTINGS, sys.argv[1:], IS_MODULE)
except (ValueError, FileNotFoundError) as error:
    raise WorkflowError(str(error)) from None

# The rules of papers and of other packages are elsewhere.
ENVIRONMENT = workflow.source_path("../envs/xlgrid.yaml")
# Snakemake looks for this script, which installs xlgrid, beside its copy of the file above.
workflow.source_path("../envs/xlgrid.post-deploy.sh")

# Some files of a study are made by the studies that it extends.
PLANS = plans.with_ancestors(NAMED)
DOWNLOADS = plans.downloads_of(PLANS)


wildcard_constraints:
    study=plans.either(PLANS),
    task="[^/]+",
    tokenizer="[^/]+",
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


def described(function):
    """The function, with its signature, for which Snakemake asks several times for each job."""
    function.__signature__ = inspect.signature(function)
    return function


def inputs(kind, **fixed):
    """The inputs, by name, of a rule that makes products of a kind; `fixed` has the fields that are not wildcards."""

    def of_rule(wildcards):
        try:
            product = plans.product(kind, wildcards, **fixed)
            files = plans.inputs_of(PLANS, product)
        except ValueError as error:
            raise WorkflowError(str(error)) from None
        if plans.lacks_results(product, files):
            # If an input was deleted, Snakemake makes it again only if the files made from it have to be made again,
            # for example with `--forcerun`.
            workflow.dag.forcefiles.add(product.path)
        return files

    return unpack(described(of_rule))


def setting(name, kind, **fixed):
    """A setting of the product that a rule makes; `fixed` has the fields that are not wildcards."""

    def of_rule(wildcards):
        return plans.product(kind, wildcards, **fixed).settings(study(wildcards))[name]

    return of_rule


def lock(kind):
    """The option with the lock file, for a product of a kind that comes from the Hub; none for any other."""

    def of_rule(wildcards):
        is_fetched = plans.product(kind, wildcards).repository(study(wildcards))
        return [f"--lock={SETTINGS.hub_lock}"] if is_fetched else []

    return of_rule


def made_by(rule, kind):
    """The constraint of the wildcard `study` of one of several rules that make products of a kind."""
    return plans.made_by(PLANS, rule, kind)


def job(**differing):
    """The resources of a job. By default, memory grows with the encoder and with each attempt, and the time is one hour."""
    return {"mem_mb": described(plans.megabytes), "runtime": 60, **differing}


def archives(file):
    """The archives from which a file of `downloads` is made."""
    try:
        return DOWNLOADS.archives(file)
    except ValueError as error:
        raise WorkflowError(str(error)) from None


def study_file(wildcards, input):
    """The file of a study. Snakemake does not compare a param that also depends on inputs with that of the last time."""
    return str(PLANS[wildcards.study].path)


def recipe(wildcards):
    return study(wildcards).recipe(*plans.product(Run, wildcards)[1:])


def everything(wildcards):
    return plans.everything(PLANS[plans.study_path(SETTINGS.study).stem])
