"""A copy of this project whose demo takes a minute, and commands in it."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import forked
import pytest
import yaml
from plugin_fixture import install
from shipped import STUDIES

ROOT = Path(__file__).parents[2]
# A test that adds packages of its own changes it.
PYTHONPATH = os.environ.get("PYTHONPATH")
SIZES = {"vocab": 300, "hidden": 16, "layers": 1, "heads": 2, "intermediate": 16}
FEW = {"steps": 5}


def small() -> dict[str, Any]:
    """The demo with every axis cut down, every exhibit kept, and no claims, whose languages and seeds are cut."""
    study = yaml.safe_load((STUDIES["demo"]).read_text())
    del study["claims"]
    study["languages"] = ["qa1", "qa2", "qb1", "en", "fr"]
    study["text"] |= {"sentences": 200}
    for name, languages, pair in (
        ("mini-xlmr", ["qa1", "qa2", "qb1"], "qa1 qb1"),
        ("mini-bert", ["en", "fr"], "en fr"),
    ):
        study["encoders"][name]["scratch"] |= {"languages": languages, "bitext": [pair.split()], **SIZES}
        study["encoders"][name]["training"] = FEW
    for task in study["tasks"].values():
        task["options"]["n"] = 100
    study["training"] = [{"set": {"steps": 4, "batch_tokens": 256, "evaluations": 2}}]
    study["grids"]["ner"] |= {"languages": ["qa1", "qa2", "qb1"], "source": ["qa1"], "seed": [1]}
    study["grids"]["ruletaker"] |= {"languages": ["en", "fr"], "method": ["full-ft"], "seed": [1]}
    return study


def project(folder: Path, study: dict[str, Any], name: str = "demo") -> Path:
    """A copy of this project with one study, which finds the environment of the tests where `make` looks for it."""
    for part in ("workflow", "rules", "notebooks", "envs", "laptop", "slurm"):
        shutil.copytree(ROOT / part, folder / part)
    for file in ("Snakefile", "config.yaml", "Makefile", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / file, folder)
    # A test of the page about a run asks for it.
    config = folder / "config.yaml"
    config.write_text(re.sub(r"^page: .*$", "page: 0", config.read_text(), flags=re.MULTILINE))
    # One worker imports the libraries, and another process of pytest uses the other core.
    with (folder / "laptop" / "profile.v9+.yaml").open("a") as profile:
        profile.write("submitit-array-parallelism: 1\n")
    (folder / ".venv").mkdir()
    (folder / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    (folder / ".venv" / "installed").touch()
    (folder / "studies").mkdir()
    write(folder, study, name)
    return folder


def blocks(page: str, language: str) -> list[str]:
    """The blocks of code that a page of this project shows in a language: `sh`, `yaml`, or "" for a plain block."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    return [code for label, code in fenced if label == language]


def commands(page: str) -> list[str]:
    """The lines of a page's `sh` blocks, without comments."""
    lines = [line.partition("  #")[0].strip() for block in blocks(page, "sh") for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def tiny(study: dict[str, Any], encoder: str = "mini-xlmr", steps: int = 5) -> dict[str, Any]:
    """A study in one seed, with its encoder, its texts and its training cut down."""
    study["encoders"][encoder]["scratch"] |= SIZES
    study["encoders"][encoder]["training"] = FEW
    study["text"] = {"sentences": 200}
    study["training"] = [{"set": {"steps": steps, "batch_tokens": 512, "evaluations": 2}}]
    study["grids"]["all"]["seed"] = [1]
    return study


def first() -> dict[str, Any]:
    """The study `first`, which the studies of several pages extend, cut down and with sources of one language."""
    study = tiny(yaml.safe_load(STUDIES["first"].read_text()))
    study["tasks"]["ner"]["options"]["n"] = 100
    study["grids"]["all"]["source"] = ["qa1"]
    return study


def shown(page: str) -> str:
    """The study that a page of docs/ shows."""
    [study] = blocks(page, "yaml")
    return study


def write(folder: Path, study: dict[str, Any], name: str = "demo") -> None:
    (folder / "studies" / f"{name}.yaml").write_text(yaml.safe_dump(study, sort_keys=False))


@contextmanager
def on_path(packages: Path) -> Iterator[None]:
    """Let the Python of each command find packages in a folder, without a change of the environment of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        paths = [str(packages), os.environ.get("PYTHONPATH")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        yield


@contextmanager
def installed(page: str, folder: Path) -> Iterator[None]:
    """The package that a page shows, as `pip install` leaves it in `installed` of the folder."""
    [code], [about] = blocks(page, "python"), blocks(page, "toml")
    package = tomllib.loads(about)["project"]
    install(folder / "installed", package["name"], package["version"], code, package["entry-points"])
    with on_path(folder / "installed"):
        yield


def shell(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a person would whose environment is active."""
    if is_short(command):
        return forked.run(shlex.split(command), folder)
    path = f"{folder / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    # These tests may be running under `make test`, of which a `make` in here should know nothing.
    rest = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**rest, "PATH": path},
        capture_output=True,
        text=True,
        timeout=900,
    )


def succeeds(folder: Path, *commands: str) -> None:
    """Run commands, and fail with the end of the output of one that fails."""
    for command in commands:
        process = shell(folder, command)
        assert process.returncode == 0, f"{command}\n{process.stdout[-2000:]}{process.stderr[-4000:]}"


def refused(folder: Path, command: str) -> str:
    """The output of a command that fails."""
    process = shell(folder, command)
    assert process.returncode != 0, process.stdout
    return process.stdout + process.stderr


def make(folder: Path, *files: str) -> None:
    """Make files as a person would on a laptop."""
    succeeds(folder, " ".join(["snakemake --profile laptop", *files]))


def is_short(command: str) -> bool:
    """Whether a command is one of Snakemake or of ours, of which the import of its packages would be a large part."""
    is_plain = not re.search(r"[&|;<>$`*]", command) and os.environ.get("PYTHONPATH") == PYTHONPATH
    return is_plain and re.match(r"(snakemake|xlgrid) ", command) is not None


def dry_run(folder: Path, *arguments: str) -> tuple[dict[str, int], set[tuple[str, str]]]:
    """Rule -> jobs that a dry run announces; and (study, kind) of the files that these jobs make."""
    process = shell(folder, " ".join(["snakemake --dry-run", *arguments]))
    assert process.returncode == 0, process.stderr
    output = process.stdout + process.stderr
    rows = [line.split() for line in output.partition("Job stats:")[2].partition("\n\n")[0].splitlines()]
    jobs = {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdecimal() and row[0] != "total"}
    files = [
        file.split("/") for line in re.findall(r"^    output: (.*)$", output, re.MULTILINE) for file in line.split(", ")
    ]
    return jobs, {(file[1], file[2]) for file in files if file[0] == "results"}


def planned(folder: Path, *arguments: str) -> dict[str, int]:
    """Rule -> jobs that a dry run announces."""
    return dry_run(folder, *arguments)[0]


# What a cell records of the machine and the moment.
CIRCUMSTANCES = {"seconds", "cpu_seconds", "versions", "commit", "command", "device", "threads"}
CELLS = "results/demo/cells"


def cells(folder: Path) -> dict[str, dict[str, Any]]:
    """Path -> contents, without timings."""
    contents = {}
    for path in sorted((folder / CELLS).rglob("*.json")):
        cell = json.loads(path.read_text())
        contents[str(path.relative_to(folder))] = {k: v for k, v in cell.items() if k not in CIRCUMSTANCES}
    return contents
