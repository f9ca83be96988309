"""Whether the tests notice mutations: small changes of the code, such as `<` for `<=`, each of which some test should fail on.

cosmic-ray lists every mutation of the packages that compute results, and of the executor. A random sample of them is
tried, one after another, on a copy of the repository: places in the code are drawn first, then a mutation of each, because `a / b`
has a dozen that are alike. A mutation is killed if a test fails: the fast tests of its own package are run
first, then the fast tests of all packages, then the slow tests of its own package, but none on a real Slurm. Three kinds of mutations
change no result, and are not drawn: between `==` and `is`, which are the same for enums, short strings and small numbers; of
`if TYPE_CHECKING`; and without a `@cache`, which only saves time. The score is the share of killed mutations; those that survive are
printed as diffs. Mutations that could not be tried are counted apart, and so are those that a time limit killed, which may be due to a
busy machine. The tests are run without a mutation first, because tests that fail anyway would kill every mutation.

Run from the repository root: make mutants, or python benchmarks/mutants.py [--sample 100] [--seed 1] [--packages heads results]
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from cosmic_ray.commands import init
from cosmic_ray.modules import find_modules
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkResult
from rich.progress import track

ROOT = Path(__file__).parents[1]
EXECUTOR = "packages/snakemake-executor-plugin-submitit"
# Package -> its sources and its tests.
PACKAGES = {
    name: (f"src/xlgrid/{name}", f"tests/unit/{name}")
    for name in (
        "synthetic",
        "languages",
        "heads",
        "methods",
        "data",
        "models",
        "training",
        "evaluation",
        "results",
        "tasks",
        "plan",
    )
} | {"executor": (f"{EXECUTOR}/src/snakemake_executor_plugin_submitit", f"{EXECUTOR}/tests")}
PYTEST = f"{sys.executable} -m pytest -q -x -p no:cacheprovider"
# Operators of cosmic-ray whose mutations hardly ever change what the code does, by the ends of their names.
WITHOUT_EFFECT = ("Eq_Is", "Is_Eq", "NotEq_IsNot", "IsNot_NotEq")
# A test that takes longer counts as failed.
SECONDS = 900


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=100, help="number of mutations")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--packages", nargs="+", choices=PACKAGES, default=[*PACKAGES])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copy_repository(Path(folder))
        os.chdir(folder)
        # The tests import the copy, not the installed sources.
        os.environ["PYTHONPATH"] = os.pathsep.join([f"{folder}/src", f"{folder}/{EXECUTOR}/src"])
        places = [(name, place) for name in arguments.packages for place in mutations(PACKAGES[name][0])]
        chance = random.Random(arguments.seed)
        drawn = chance.sample(places, min(arguments.sample, len(places)))
        tried = [(name, chance.choice(place)) for name, place in drawn]
        check_unmutated({command for name, _ in drawn for command in commands(name)})
        outcomes = []
        for name, mutation in track(tried, "Trying mutations"):
            outcomes.append(outcome(name, mutation))
            if outcomes[-1].test_outcome == TestOutcome.SURVIVED:
                # At once, because the whole sample takes hours.
                print(outcomes[-1].diff, end="\n\n", flush=True)
    counts = Counter(result.test_outcome for result in outcomes)
    tried_in_full = counts[TestOutcome.KILLED] + counts[TestOutcome.SURVIVED]
    print(
        f"{counts[TestOutcome.KILLED]} of {tried_in_full} mutations are killed; the code has {len(places):,} places to draw from"
    )
    if late := sum(result.output == "timeout" for result in outcomes):
        print(f"{late} of the killed were killed by the limit of {SECONDS} s for the tests")
    if untried := len(drawn) - tried_in_full:
        print(f"{untried} more could not be tried")


def copy_repository(folder: Path) -> None:
    """Copy the tracked files, and make a repository of them, because the results name their commit."""
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in files.rstrip("\0").split("\0"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    commit = ["-c", "user.name=mutants", "-c", "user.email=mutants@localhost", "commit", "--quiet", "--message=copy"]
    for command in (["init", "--quiet"], ["add", "--all"], commit):
        subprocess.run(["git", *command], cwd=folder, check=True)


def mutations(sources: str) -> list[list[MutationSpec]]:
    """The mutations of each place in a package, but those that change no result."""
    with tempfile.TemporaryDirectory() as folder, use_db(f"{folder}/session.sqlite", WorkDB.Mode.create) as session:
        init(sorted(find_modules([Path(sources)])), session, {})
        specs = [mutation for item in session.work_items for mutation in item.mutations]
    idle = {path: [*without_effect(path)] for path in {spec.module_path for spec in specs}}
    places: dict[tuple[str, tuple[int, int]], list[MutationSpec]] = {}
    for spec in sorted(specs, key=lambda spec: (str(spec.module_path), spec.operator_name, spec.occurrence)):
        position = tuple(spec.start_pos)
        is_idle = any(start <= position < end for start, end in idle[spec.module_path])
        if not is_idle and not spec.operator_name.endswith(WITHOUT_EFFECT):
            places.setdefault((str(spec.module_path), position), []).append(spec)
    return [*places.values()]


def without_effect(path: Path) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """The first and the last position, as line and column, of each type hint, `TYPE_CHECKING` and `@cache` of a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for hint in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if hint:
                yield (hint.lineno, hint.col_offset), (hint.end_lineno, hint.end_col_offset)
        for decorator in getattr(node, "decorator_list", []):
            if ast.unparse(decorator) == "cache":
                # The `@` stands before the expression.
                yield (decorator.lineno, decorator.col_offset - 1), (decorator.end_lineno, decorator.end_col_offset)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            # cosmic-ray adds `not` at the `if`.
            yield (node.lineno, node.col_offset), (node.test.end_lineno, node.test.end_col_offset)


def commands(name: str) -> list[str]:
    """The commands that run the tests which may notice a mutation of a package, in the order in which they run."""
    tests = PACKAGES[name][1]
    # The fast tests of all packages take two minutes, so those of the package come first.
    fast = [f"{PYTEST} -m 'not slow' {folder}" for folder in ([tests] if name == "executor" else [tests, "tests/unit"])]
    return [*fast, f"{PYTEST} -m 'slow or not slow' {tests}"]


def check_unmutated(runs: Iterable[str]) -> None:
    """Exit with a message if one of these commands, which run tests, fails without a mutation."""
    for command in sorted(runs):
        if subprocess.run(command, shell=True).returncode:
            sys.exit(
                f"{command} fails without a mutation: mend it first, because its failure would kill every mutation"
            )


def outcome(name: str, mutation: MutationSpec) -> WorkResult:
    """What the tests say of a mutation. The outcome is INCOMPETENT or None if the mutation could not be tried."""
    for command in commands(name):
        result = mutate_and_test([mutation], command, SECONDS)
        if result.test_outcome != TestOutcome.SURVIVED:
            break
    return result


if __name__ == "__main__":
    main()
