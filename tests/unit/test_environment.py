"""The lock: one file that fits the dependencies of both distributions, on each Python that they are for, with and without GPUs."""

import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "envs" / "lock.txt"
PROJECTS = [ROOT / "pyproject.toml", *(ROOT / "packages").glob("*/pyproject.toml")]
# The Python of the development environment is the first one.
PYTHONS = ["3.11", "3.12", "3.13"]
CUDA = re.compile(r"nvidia-|cuda-|triton")


def project(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())["project"]


OURS = {canonicalize_name(project(path)["name"]) for path in PROJECTS}


def required() -> list[Requirement]:
    """The dependencies of the distributions and of all their extras."""
    texts = []
    for path in PROJECTS:
        extras = project(path).get("optional-dependencies", {})
        texts += [*project(path)["dependencies"], *(text for extra in extras.values() for text in extra)]
    return [requirement for text in texts if (requirement := Requirement(text)).name not in OURS]


def lock() -> list[Requirement]:
    lines = LOCK.read_text().splitlines()
    return [Requirement(line) for line in lines if not line.startswith("#")]


def pinned(python: str) -> dict[str, str]:
    """Name -> version of the packages for a Python on Linux."""
    machine = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
    chosen = [line for line in lock() if line.marker is None or line.marker.evaluate(machine)]
    assert len(chosen) == len({line.name for line in chosen}), "a package has one version"
    return {canonicalize_name(line.name): str(line.specifier).removeprefix("==") for line in chosen}


def unfit(requirement: Requirement, versions: dict[str, str]) -> str | None:
    """The reason why the lock does not fit a requirement; None if it does."""
    version = versions.get(canonicalize_name(requirement.name))
    if version is None:
        return f"{requirement.name} is not pinned"
    fits = requirement.specifier.contains(version, prereleases=True)
    return None if fits else f"{requirement} is pinned to {version}"


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_is_current(python: str) -> None:
    versions = pinned(python)
    reasons = [reason for requirement in required() if (reason := unfit(requirement, versions))]
    assert reasons == [], "run `make lock`"


def test_a_line_of_the_lock_is_one_exact_version() -> None:
    assert [str(line) for line in lock() if not re.fullmatch(r"==[\w.!]+", str(line.specifier))] == []


def test_the_lock_is_for_cpus_and_gpus() -> None:
    """A CPU build of torch requires none of these libraries, and a CUDA build states its own versions of them."""
    assert [line.name for line in lock() if CUDA.match(line.name)] == []


def test_the_requirements_of_what_is_pinned_are_pinned() -> None:
    """As far as the packages of this environment have the versions of the lock."""
    versions = pinned(PYTHONS[0])
    reasons, seen = [], set[tuple[str, str]]()
    queue = [(requirement.name, extra) for requirement in required() for extra in ("", *requirement.extras)]
    while queue:
        name, extra = queue.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        if distribution.version.partition("+")[0] != versions.get(canonicalize_name(name)):
            continue
        for needed in map(Requirement, distribution.requires or ()):
            if CUDA.match(needed.name) or (needed.marker and not needed.marker.evaluate({"extra": extra})):
                continue
            reasons += filter(None, [unfit(needed, versions)])
            queue += [(needed.name, extra) for extra in ("", *needed.extras)]
    assert reasons == [], "run `make lock`"
    assert len({name for name, _ in seen}) > 100


def test_everything_installs_this_lock_on_a_python_that_it_is_for() -> None:
    assert re.findall(r"Python :: (3\.\d+)", " ".join(project(PROJECTS[0])["classifiers"])) == PYTHONS
    for file in ("Makefile", "envs/Containerfile", "envs/xlgrid.post-deploy.sh"):
        assert re.findall(r"envs/\w+\.txt", (ROOT / file).read_text()).count("envs/lock.txt"), file
    [image] = re.findall(r"^FROM .*python:([\d.]+)", (ROOT / "envs" / "Containerfile").read_text(), re.MULTILINE)
    [conda] = [
        line for line in yaml.safe_load((ROOT / "envs" / "xlgrid.yaml").read_text())["dependencies"] if "=" in line
    ]
    assert image in PYTHONS and conda.removeprefix("python=") in PYTHONS


@pytest.mark.parametrize("has_uv", [True, False])
def test_uv_installs_the_lock_where_it_is_at_hand_and_pip_elsewhere(has_uv: bool, tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("envs", "packages", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    make, uv = shutil.which("make"), tmp_path / "uv"
    assert make
    if has_uv:
        uv.touch(0o755)
    rest = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")} | {"PATH": str(tmp_path)}
    command = [make, "--dry-run", ".venv/installed", f"PYTHON={sys.executable}"]
    printed = subprocess.run(command, cwd=tmp_path, env=rest, capture_output=True, text=True, check=True).stdout
    lines = [line.strip() for line in printed.replace("\\\n", " ").splitlines() if "envs/lock.txt" in line]
    [install] = [" ".join(line.split()) for line in lines]
    pip = ".venv/bin/pip install --quiet --disable-pip-version-check --no-compile --no-deps -r envs/lock.txt"
    by_uv = f"{uv} pip install --quiet --python .venv/bin/python --no-deps -r envs/lock.txt || "
    assert install == (by_uv if has_uv else "") + pip
    assert ("--upgrade-deps" in printed) is not has_uv


def interpreters(version: str) -> Iterator[str]:
    """The Pythons of a version on this machine that start; the names that pyenv puts on the path may not."""
    candidates = [
        shutil.which(f"python{version}"),
        *map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")),
    ]
    for python in filter(None, candidates):
        process = subprocess.run(
            [python, "-c", "import sys; print(*sys.version_info[:2], sep='.')"], capture_output=True, text=True
        )
        if process.stdout.strip() == version:
            yield python


def interpreter(version: str) -> str:
    python = next(interpreters(version), None)
    if python is None:
        pytest.skip(f"no Python {version} here")
    return python


@pytest.mark.thorough
@pytest.mark.parametrize("python", PYTHONS)
def test_every_python_reads_all_code(python: str) -> None:
    """Such as `f"{a["b"]}"`, which Python 3.11 refuses."""
    files = [
        str(path) for folder in (ROOT / "src", *(ROOT / "packages").glob("*/src")) for path in folder.rglob("*.py")
    ]
    program = "import ast, sys\nfor path in sys.argv[1:]: ast.parse(open(path, encoding='utf-8').read(), path)"
    read = subprocess.run([interpreter(python), "-W", "error", "-c", program, *files], capture_output=True, text=True)
    assert read.returncode == 0, read.stderr[-2000:]


@pytest.mark.thorough
@pytest.mark.parametrize("python", [each for each in PYTHONS if not platform.python_version().startswith(f"{each}.")])
def test_the_lock_resolves_for_every_other_python(python: str, tmp_path: Path) -> None:
    """pip finds a distribution of each version for this Python, and no two of them contradict one another."""
    subprocess.run([interpreter(python), "-m", "venv", tmp_path / "venv"], check=True)
    resolve = [
        tmp_path / "venv/bin/pip",
        "install",
        "--dry-run",
        "--quiet",
        "--report",
        tmp_path / "report.json",
        "-r",
        LOCK,
    ]
    process = subprocess.run(resolve, capture_output=True, text=True)
    if "Temporary failure in name resolution" in process.stderr or "Network is unreachable" in process.stderr:
        pytest.skip("pip cannot reach its index")
    assert process.returncode == 0, process.stderr[-2000:]
