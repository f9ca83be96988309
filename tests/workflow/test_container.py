"""The steps of the container, without a container engine: the same commands in an empty folder.

The base image and Debian's packages are not taken: no engine and no registry of images is at hand. For the base image stands a new virtual
environment of this Python, and apt only simulates. In that environment pip finds the packages of the environment of the tests, which
`make` has installed from the same lock, so `pip install -r` checks each version and downloads none.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from fnmatch import fnmatch
from pathlib import Path

import pytest
from project import ROOT

pytestmark = pytest.mark.thorough


def steps() -> list[tuple[str, str]]:
    """Instruction and argument of each step of the Containerfile."""
    text = re.sub(r"^#.*\n", "", (ROOT / "envs" / "Containerfile").read_text(), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines) if word]


def copied(source: Path, target: Path) -> None:
    """COPY, without what .dockerignore names."""
    patterns = [line.removeprefix("**/").rstrip("/") for line in (ROOT / ".dockerignore").read_text().split()]

    def ignored(folder: str, names: list[str]) -> list[str]:
        paths = {name: str((Path(folder) / name).relative_to(ROOT)) for name in names}
        return [name for name in names if any(fnmatch(name, each) or fnmatch(paths[name], each) for each in patterns)]

    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True, symlinks=True, ignore=ignored)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def environment(folder: Path) -> Path:
    """A new virtual environment in which the packages of this one are seen; its folder of programs."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    [site] = folder.glob("lib/python*/site-packages")
    paths = [path for path in sys.path if path.endswith("site-packages")] or [sysconfig.get_path("purelib")]
    (site / "environment_of_the_tests.pth").write_text("\n".join(paths))
    # pip writes no program of a package that it finds installed; that of the tests would run in their environment.
    snakemake = folder / "bin" / "snakemake"
    snakemake.write_text(f'#!/bin/sh\nexec {shlex.quote(str(folder / "bin" / "python"))} -m snakemake "$@"\n')
    snakemake.chmod(0o755)
    return folder / "bin"


def run(command: str, folder: Path, programs: Path) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=variables | {"PATH": path}, capture_output=True, text=True, timeout=600
    )
    assert process.returncode == 0, f"{command}\n{process.stdout[-2000:]}\n{process.stderr[-2000:]}"
    return process


def test_the_steps_of_the_container_lead_to_a_workflow_that_plans_its_study(tmp_path: Path) -> None:
    programs, folder = environment(tmp_path / "python"), tmp_path
    # Absolute paths of the image are below the empty folder.
    inside = re.compile(r"(?<![\w.])/(?=tmp/|xlgrid\b)")
    last = ""
    for instruction, argument in steps():
        argument = inside.sub(f"{tmp_path}/", argument)
        match instruction:
            case "FROM" | "ARG":
                continue
            case "WORKDIR":
                folder = Path(argument)
                folder.mkdir()
            case "COPY":
                source, target = argument.split()
                copied(ROOT / source, folder / target)
            case "RUN" if argument.startswith("apt-get"):
                packages = re.findall(r"--no-install-recommends ([\w .-]+?) +&&", argument)
                if (
                    shutil.which("apt-get")
                    and run(f"apt-cache pkgnames {packages[0].split()[0]}", folder, programs).stdout
                ):
                    run(f"apt-get install --simulate --no-install-recommends {packages[0]}", folder, programs)
            case "RUN":
                run(argument, folder, programs)
            case "CMD":
                last = shlex.join(eval(argument))
            case _:
                pytest.fail(f"an instruction that this test does not know: {instruction}")
    assert folder == tmp_path / "xlgrid"
    planned = run(f"{last} --dry-run", folder, programs)
    assert re.search(r"report_html +1\n", planned.stdout + planned.stderr)
    where = run("python -c 'import xlgrid; print(xlgrid.__file__)'", folder, programs).stdout.strip()
    assert where == str(folder / "src/xlgrid/__init__.py"), "the image's own copy is what runs"
