"""The questions of the rules to the plans: the studies of a command, the files that a rule makes, and the inputs of a rule."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field, ValidationError

from xlgrid.base.names import unknown
from xlgrid.base.settings import LocalPath, Strict, plainly
from xlgrid.data.downloads import Downloads
from xlgrid.plan.explain import explain, refusal
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
        description="the study that is made if no file is named: a study in studies/ or one that comes with xlgrid, by its name, or any "
        "study file by its path",
    )
    hub_lock: LocalPath = Field(
        default="hub.lock.yaml",
        min_length=1,
        description="the file that keeps the commits of everything fetched from the Hugging Face Hub",
    )
    gpus: int = Field(
        default=0,
        ge=0,
        description="the GPUs of each job that trains or evaluates (resource `gpu`); a profile may set resources of single rules",
    )


class Command(NamedTuple):
    """The request of a Snakemake command.

    Attributes:
        files: the files below results/, or below a folder of nearly this name, as paths from the working directory.
        job_studies: the study of each job that another Snakemake has started.
        is_for_default: whether the default target or the study of the settings is named.
    """

    files: list[str]
    job_studies: list[str]
    is_for_default: bool


def read_command(arguments: Sequence[str], default_study: str) -> Command:
    """The request of the command with these arguments. Rules cannot ask Snakemake for its targets, but its parser is public."""
    from snakemake.cli import get_argument_parser

    # The options of profiles are unknown, but they name no targets.
    command, _ = get_argument_parser().parse_known_args([*arguments])
    options = (command.forcerun, command.prioritize, command.until, command.omit_from)
    values = [*command.targets, *(value for option in options for value in sorted(option))]
    paths = map(os.path.relpath, values)
    return Command(
        files=[path for path in paths if "/" in path and get_close_matches(path.split("/")[0], ["results"])],
        job_studies=[job.wildcards_dict["study"] for job in command.target_jobs if "study" in job.wildcards_dict],
        # Snakemake makes `all` where no target is named, whatever other options name.
        is_for_default="all" in values
        or not (command.targets or command.target_jobs)
        or f"study={default_study}" in (command.config or ()),
    )


def read_settings(config: Mapping[str, Any], is_module: bool = False) -> Settings:
    """The settings, with defaults for those that are missing.

    Args:
        config: the settings in config.yaml and from the command line.
        is_module: whether the rules belong to a workflow of someone else, whose settings may stand beside these.

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
    """Name -> plan of the studies that a Snakemake command names by its targets or target jobs; if it names none, or the
    default target beside them, of the study of `config`, too.

    Args:
        arguments: the command line without the name of the program.
        is_module: whether the rules belong to a workflow of someone else, which may have settings and files of its own.

    Raises:
        FileNotFoundError: a study does not exist.
        ValueError: a study has mistakes, it does not make a target, or it has the name of another study.
    """
    default = study_path(config.study)
    namesake = study_named(default.stem)
    if default.is_file() and namesake.is_file() and not namesake.samefile(default):
        raise ValueError(f"{default} and {namesake} would both make results/{default.stem}/: rename one of them")
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
    # The process that started target jobs has checked its targets.
    for path in () if command.job_studies or is_module else command.files:
        if problem := explain(plans[path.split("/")[1]], path):
            raise ValueError(problem)
    return plans


def _file_of(name: str, default_study: str) -> Path:
    """The file of a study that a path below results/ names. The default study, if it is named by its path, may be anywhere, and
    so may those that it extends."""
    if is_path(default_study):
        default = study_path(default_study)
        if name == default.stem:
            return default
        # A broken default study does not disturb a named one.
        with suppress(ValueError, FileNotFoundError):
            for file in read_lineage(default):
                if file.path.stem == name:
                    return file.path
    return study_named(name)


def with_ancestors(plans: Mapping[str, Plan]) -> dict[str, Plan]:
    """The plans, and those of the studies that they extend, by name."""
    return {each.study.name: each for plan in plans.values() for each in (*plan.ancestors, plan)} | {**plans}


def either(values: Iterable[str]) -> str:
    """A regular expression that matches exactly these values; without any, it matches nothing."""
    return "|".join(map(re.escape, sorted(set(values), key=lambda value: (-len(value), value)))) or "(?!)"


def made_by(plans: Mapping[str, Plan], rule: str, kind: type[Product]) -> str:
    """A constraint of the wildcard `study` of a rule: each study where the rule makes products of a kind, and what follows it in
    their paths.

    Which rule makes a file depends on the study: one generates the data of a task that another fetches.
    """
    choices = []
    for study, plan in plans.items():
        makers = kind.makers(plan.study)
        own, others = [*makers[rule]], [path for each in makers if each != rule for path in makers[each]]
        longer = [path for path in others if any(path.startswith(f"{short}/") for short in own)]
        choices.append(re.escape(study) + f"(?={_begin(own)})" + (f"(?!{_begin(longer)})" if longer else ""))
    return "|".join(choices)


def _begin(paths: Iterable[str]) -> str:
    """A regular expression that matches a path which begins with one of some paths, up to the end of a name."""
    patterns = [re.escape(path).replace(r"\*", "[^/]+") for path in paths]
    return rf"/(?:{'|'.join(patterns) or '(?!)'})(?:/|\.[a-z]+$)"


def downloads_of(plans: Mapping[str, Plan]) -> Downloads:
    """The files that the rules download for all studies. The entries of a study win over those of the studies that it extends."""
    # Among the plans, a study follows those that it extends.
    return Downloads(plan.study.downloads for plan in reversed([*plans.values()]))


def product(kind: type[Product], wildcards: Any, **fixed: str) -> Product:
    """The product of a kind that a rule makes.

    Args:
        wildcards: of the rule, named as the fields of the kind.
        fixed: the fields that are no wildcards of the rule.
    """
    # Data classes and named tuples name their fields in `__match_args__`.
    fields: tuple[str, ...] = kind.__match_args__  # type: ignore[attr-defined]
    return kind(*(fixed.get(name) or getattr(wildcards, name) for name in fields))


def inputs_of(plans: Mapping[str, Plan], wanted: Product) -> Inputs:
    """The inputs of the rule that makes a product.

    Raises:
        ValueError: the study does not have the product; the message names what is near it.
    """
    plan = plans[wanted.study]
    if problem := refusal(plan, wanted):
        raise ValueError(f"{wanted.path}: {problem}")
    return wanted.inputs(plan)


def lacks_results(wanted: Product, files: Inputs) -> bool:
    """Whether an exhibit, claims or a report is there, but not all results from which it was made.

    Encoders are left out, although a few exhibits read them: whoever deletes encoders because they are large does not want to
    train everything again.
    """
    if not wanted.shows_results or not os.path.exists(wanted.path):
        return False
    return not all(map(os.path.exists, flat({name: paths for name, paths in files.items() if name != "encoders"})))
