"""The files that a study needs from the network, the Snakemake command that fetches them, and advice."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from xlgrid.base.yaml_files import read_yaml
from xlgrid.data.downloads import find
from xlgrid.plan.load import named, options_of
from xlgrid.plan.plan import Plan
from xlgrid.plan.workflow import read_settings
from xlgrid.preflight import pairs
from xlgrid.preflight.files import by_hand_lines, downloads_of, materials

# The settings of a project: at the top of a clone, or in config/ of a folder that snakedeploy has made.
CONFIGS = (Path("config.yaml"), Path("config/config.yaml"))
# The folder in which Snakemake records the settings with which it made each file.
RECORDS = ".snakemake/metadata"
# Files that are fetched at a time.
AT_A_TIME = 4


def lock_file() -> str:
    """The lock file that the settings of the project in this folder name.

    Raises:
        ValueError: the folder has no settings, so that it is no project of xlgrid, or a setting is wrong.
    """
    config = next((path for path in CONFIGS if path.is_file()), None)
    if config is None:
        raise ValueError(
            f"no {CONFIGS[0]} in {Path.cwd()}, which names the lock file: run this in the folder of a project"
        )
    _, values = read_yaml(config)
    if values is not None and not isinstance(values, dict):
        raise ValueError(
            f"{config} has settings, each with a value (study: demo), got {str(values)[:40]!r}: correct the file"
        )
    # A workflow that uses xlgrid as a module may have further settings in this file.
    return read_settings(values or {}, is_module=True).hub_lock


def project_lock() -> str:
    """The lock file of the project in this folder; the default one if another workflow uses xlgrid, without its settings."""
    return lock_file() if any(path.is_file() for path in CONFIGS) else read_settings({}).hub_lock


def targets(plan: Plan) -> list[str]:
    """The files that rules fetch for a study: from the Hub, and from the addresses in `downloads` of the study."""
    taken = materials(plan)
    tables = ((entry.file, find(plan.study.downloads, entry.file)) for entry in plan.study.pairs.values())
    found = downloads_of(plan, taken) | {file: entry for file, entry in tables if entry}
    downloads = (file for file, entry in found.items() if entry.urls)
    return list(dict.fromkeys([*(material.product.path for material in taken if material.repository), *downloads]))


def command(plan: Plan, wanted: Sequence[str]) -> list[str]:
    """The command that fetches the missing files of a study, each at its commit in the lock file.

    Args:
        wanted: the result of `targets`.
    """
    options = ["--cores", str(AT_A_TIME), "--keep-going", "--rerun-incomplete", *options_of(named(plan))]
    return ["snakemake", *options, "--", *wanted]


def by_hand(plan: Plan) -> Iterator[str]:
    """Lines about files that the study needs and that a person has to get."""
    for line in (*by_hand_lines(plan, materials(plan)), *pairs.by_hand_lines(plan)):
        yield f"not fetched: {line.thing}: {line.text}"


def advice(plan: Plan, wanted: Sequence[str]) -> Iterator[str]:
    """Lines about what to do with the fetched files.

    Args:
        wanted: the result of `targets`.
    """
    # The folders of encoders and data of a study, and of files from elsewhere.
    folders = dict.fromkeys("/".join(path.split("/")[: 3 if path.startswith("results/") else 1]) for path in wanted)
    study = plan.study.name
    lock = project_lock()
    is_locked = Path(lock).exists()
    committed = f"; commit {lock} to git beside {plan.path or study}" if is_locked else ""
    yield f"{len(wanted)} files are there{committed}"
    yield "For a machine without a network, copy these to the same places in a clone of this project there, with their times:"
    copied = [*([lock] if is_locked else []), RECORDS, *folders]
    yield f"  rsync -aR {shlex.join(copied)} HOST:PROJECT/"
    words = ["snakemake", "--profile", "laptop", *options_of(named(plan)), "--", f"results/{study}/report.html"]
    yield f"and there run: HF_HUB_OFFLINE=1 {shlex.join(words)}"
