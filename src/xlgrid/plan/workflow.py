"""Functions for Snakemake rules: the studies of a command, the files that a rule makes, and the inputs of a rule."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field, ValidationError

from xlgrid.base.names import unknown
from xlgrid.base.settings import LocalPath, Strict, plainly
from xlgrid.data.downloads import Downloads
from xlgrid.plan.explain import explain
from xlgrid.plan.load import is_path, load_plan, study_named
from xlgrid.plan.load import study_path as study_path
from xlgrid.plan.plan import Plan
from xlgrid.products.product import Inputs, Product, flat
from xlgrid.study.load import read_lineage


class Settings(Strict):
    """The settings of the workflow: config.yaml, `--configfile`, `--config`, or the `config` of a module."""

    study: str = Field(
        default="demo",
        min_length=1,
        description="the study that is made if the command names no file: the name of a study in studies/ or of one "
        "that comes with xlgrid, or the path of any study file",
    )
    hub_lock: LocalPath = Field(
        default="hub.lock.yaml",
        min_length=1,
        description="the lock file, which keeps the commit of everything that is fetched from the Hugging Face Hub",
    )
    gpus: int = Field(
        default=0,
        ge=0,
        description="the number of GPUs of each job that trains or evaluates (resource `gpu`); a profile may set the "
        "resources of single rules",
    )
    page: int = Field(
        default=60,
        ge=0,
        description="the seconds between two writes of the page results/{study}/status.html about the run; 0 for no page",
    )


class Command(NamedTuple):
    """The targets of a Snakemake command.

    Attributes:
        files: the requested files in results/, or in a folder with a similar name, as paths from the working directory.
        job_studies: the study of each job, if another Snakemake process has started this one for some jobs.
        is_for_default: whether the command asks for the default target, or names the study of the settings.
    """

    files: list[str]
    job_studies: list[str]
    is_for_default: bool


def read_command(arguments: Sequence[str], default_study: str) -> Command:
    """The targets of the command with these arguments. Snakemake does not tell rules, but its parser is public."""
    from snakemake.cli import get_argument_parser

    # The options in profiles are not read, but they name no targets.
    command, _ = get_argument_parser().parse_known_args([*arguments])
    options = (command.forcerun, command.prioritize, command.until, command.omit_from)
    values = [*command.targets, *(value for option in options for value in sorted(option))]
    paths = map(os.path.relpath, values)
    return Command(
        files=[path for path in paths if "/" in path and get_close_matches(path.split("/")[0], ["results"])],
        job_studies=[job.wildcards_dict["study"] for job in command.target_jobs if "study" in job.wildcards_dict],
        # Without a target, Snakemake makes `all`.
        is_for_default="all" in values
        or not (command.targets or command.target_jobs)
        or f"study={default_study}" in (command.config or ()),
    )


def read_settings(config: Mapping[str, Any], is_module: bool = False) -> Settings:
    """The settings, with defaults for those that are missing.

    Args:
        config: the settings in config.yaml and from the command line.
        is_module: whether another workflow uses these rules as a module, and may have further settings.

    Raises:
        ValueError: there is no such setting, or a setting has a value that it cannot have.
    """
    if unknown_keys := [] if is_module else [key for key in config if key not in Settings.model_fields]:
        raise ValueError(f"config.yaml or --config: {unknown('setting', unknown_keys[0], Settings.model_fields)}")
    try:
        return Settings(**{key: value for key, value in config.items() if key in Settings.model_fields})
    except ValidationError as error:
        raise ValueError(f"config.yaml or --config: {plainly(error)}") from None


def load_plans(config: Settings, arguments: Sequence[str], is_module: bool = False) -> dict[str, Plan]:
    """Name -> plan, for the studies that a Snakemake command names by its targets or target jobs.

    If the command names no study, or also asks for the default target, the study of `config` is among them.

    Args:
        arguments: the command line without the name of the program.
        is_module: whether another workflow uses these rules as a module, and may have further settings and files.

    Raises:
        FileNotFoundError: a study does not exist.
        ValueError: a study has mistakes, does not make a target, or has the same name as another study.
    """
    default = _one([study_path(config.study), study_named(study_path(config.study).stem)])
    command = read_command(arguments, config.study)
    for path in () if is_module else command.files:
        if not path.startswith("results/"):
            raise ValueError(f"nothing makes {path}: {unknown('folder', path.split('/')[0], ['results'])}")
    names = dict.fromkeys([*command.job_studies, *(path.split("/")[1] for path in command.files)])
    if is_module:
        names = dict.fromkeys(name for name in names if _file_of(name, config.study).is_file())
    if command.is_for_default or not names:
        names[default.stem] = None
    plans = {name: load_plan(_file_of(name, config.study)) for name in names}
    for each in with_ancestors(plans).values():
        if each.ancestors and each.ancestors[-1].path and is_path(str(each.study.extends)):
            _one([each.ancestors[-1].path, study_named(each.ancestors[-1].study.name)])
    # For target jobs, the Snakemake process that started this one has checked the targets.
    for path in () if command.job_studies or is_module else command.files:
        if problem := explain(plans[path.split("/")[1]], path):
            raise ValueError(problem)
    return plans


def _file_of(name: str, default_study: str) -> Path:
    """The file of the study `name`, from a path in results/.

    The default study may be given by its path, and a study may extend a file by its path. Then the file may be anywhere.

    Raises:
        ValueError: studies extend several files with this name.
    """
    default, own = study_path(default_study) if is_path(default_study) else None, study_named(name)
    if default and name == default.stem:
        return default
    if not default and own.is_file():
        return own
    found: dict[Path, Path] = {}
    for path in [default] if default else sorted(Path("studies").glob("*.yaml")):
        # A mistake in a study does not matter if the command names another study.
        with suppress(ValueError, FileNotFoundError):
            found |= {file.path.resolve(): file.path for file in read_lineage(path) if file.path.stem == name}
    return _one([*found.values()] or [own])


def _one(files: Sequence[Path]) -> Path:
    """The file of a study, which is the only one with its name.

    Raises:
        ValueError: there is another one.
    """
    first, *others = [file for file in files if file.is_file()] or files
    if other := next((file for file in others if file.is_file() and not file.samefile(first)), None):
        raise ValueError(f"{first} and {other} would both make results/{first.stem}/: rename one of them")
    return first


def with_ancestors(plans: Mapping[str, Plan]) -> dict[str, Plan]:
    """Name -> plan, for these plans and for the studies that they extend."""
    return {each.study.name: each for plan in plans.values() for each in (*plan.ancestors, plan)} | {**plans}


def either(values: Iterable[str]) -> str:
    """A regular expression that matches exactly these values; if there are none, it matches nothing."""
    return "|".join(map(re.escape, sorted(set(values), key=lambda value: (-len(value), value)))) or "(?!)"


def made_by(plans: Mapping[str, Plan], rule: str, kind: type[Product]) -> str:
    """The constraint of the wildcard `study` of a rule: the studies in which the rule makes products of a kind.

    The regular expression also looks ahead at the rest of the path, because the rule that makes a file depends on the
    study. For example, one study generates the data of a task, and another study fetches them.
    """
    choices = []
    for study, plan in plans.items():
        makers = kind.makers(plan.study)
        own, others = [*makers[rule]], [path for each in makers if each != rule for path in makers[each]]
        longer = [path for path in others if any(fnmatchcase(path, f"{short}/*") for short in own)]
        choices.append(re.escape(study) + f"(?={beginning(own)})" + (f"(?!{beginning(longer)})" if longer else ""))
    return "|".join(choices)


def beginning(paths: Iterable[str]) -> str:
    """A regular expression for the beginning of a path: one of `paths`, up to the end of a folder or file name."""
    patterns = [re.escape(path).replace(r"\*", "[^/]+") for path in paths]
    return rf"/(?:{'|'.join(patterns) or '(?!)'})(?:/|\.[a-z]+$)"


def downloads_of(plans: Mapping[str, Plan]) -> Downloads:
    """The files that the rules download for all studies. A study's entries win over entries of its ancestors."""
    # A plan comes after the plans of the studies that it extends.
    return Downloads(plan.study.downloads for plan in reversed([*plans.values()]))


def product(kind: type[Product], wildcards: Any, **fixed: str) -> Product:
    """The product of a kind that a rule makes.

    Args:
        wildcards: the wildcards of the rule, with the names of fields of the kind.
        fixed: the fields that are not wildcards of the rule.
    """
    # Data classes and named tuples name their fields in `__match_args__`.
    fields: tuple[str, ...] = kind.__match_args__  # type: ignore[attr-defined]
    return kind(*(fixed.get(name) or getattr(wildcards, name) for name in fields))


def inputs_of(plans: Mapping[str, Plan], wanted: Product) -> Inputs:
    """The inputs of the rule that makes a product.

    Raises:
        ValueError: the study does not have the product; the message names the nearest one.
    """
    plan = plans[wanted.study]
    if problem := plan.refusal(wanted):
        raise ValueError(f"{wanted.path}: {problem}")
    return wanted.inputs(plan)


def everything(plan: Plan) -> list[str]:
    """The files that Snakemake makes, or makes again, if no file is named.

    They are all files of results and pages, and of each other product of which some files, but not all, exist. A user
    may delete whole encoders, tokens and data, from which all results are made already, to save disk.
    """
    results = *map(plan.owned, plan.choices), *plan.runs, *plan.cells, *plan.shown, *plan.pages
    files = [file for result in results for file in result.outputs(plan.study)]
    for product in plan.needed:
        outputs = product.outputs(plan.study)
        if 0 < sum(map(os.path.exists, outputs)) < len(outputs):
            files += outputs
    return files


def megabytes(wildcards: Any, input: Any, attempt: int) -> int:
    """The memory that a job requests, for each attempt: 4 GB and twice the size of the encoder that it reads, but at least 8 GB.

    A process on a GPU holds the best weights, and for a moment a second copy. If the file of the encoder does not exist
    yet, its size is 0; Snakemake asks again before it submits the job.
    """
    files = flat({name: getattr(input, name, []) for name in ("encoder", "begin")})
    sizes = [os.path.getsize(file) for file in files if os.path.exists(file)]
    return attempt * max(8000, 4000 + 2 * sum(sizes) // 10**6)


def lacks_results(wanted: Product, files: Inputs) -> bool:
    """Whether an exhibit, claims or a report exists, but some results from which it was made do not.

    Encoders do not count, although a few exhibits read them: a user who deletes large encoders does not want to train
    everything again.
    """
    if not wanted.shows_results or not os.path.exists(wanted.path):
        return False
    return not all(map(os.path.exists, flat({name: paths for name, paths in files.items() if name != "encoders"})))
