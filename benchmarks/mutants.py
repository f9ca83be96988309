"""Whether the tests notice mutations: small changes of the code, such as `<` for `<=`, each of which some test should fail on.

cosmic-ray lists every mutation of the packages that compute results, and of the executor. A random sample of them is tried on copies of
the repository: places in the code are drawn first, then a mutation of each, because `a / b` has a dozen that are alike. A mutation is
killed if a test fails. Three kinds of mutations change no result, and are not drawn: between `==` and `is`, which are the same for enums,
short strings and small numbers; of `if TYPE_CHECKING`; and without a `@cache`, which only saves time.

All unit tests run once without a mutation, in which coverage notes the tests that run each line. They have to pass, because tests that
fail anyway would kill every mutation. A mutation of the library is then tried with the tests that run its lines; one outside of functions
with those that run anything of its module. A mutation of the executor is tried with its fast tests, then with its slow ones, but with none
on a real Slurm.

Each mutation is printed with the test that failed. The score is the share of killed mutations; those that survive are printed as
diffs. Mutations that could not be tried are counted apart, and so are those that a time limit killed, which may be due to a busy machine.

Run from the repository root: make mutants, or python benchmarks/mutants.py [--sample 100] [--seed 1] [--packages heads results]
"""

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from cosmic_ray.commands import init
from cosmic_ray.modules import find_modules
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkResult
from coverage import CoverageData

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
PYTEST = f"{sys.executable} -m pytest -q -rfE -x -p no:cacheprovider"
UNIT = "-m 'slow or not slow' tests/unit"
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
    cores = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder:
        move_to_copy(folder)
        places = [(name, place) for name in arguments.packages for place in mutations(PACKAGES[name][0])]
        chance = random.Random(arguments.seed)
        drawn = chance.sample(places, min(arguments.sample, len(places)))
        tried = [(name, chance.choice(place)) for name, place in drawn]
        tests_of_line = run_unmutated(cores, any(name == "executor" for name, _ in tried))
        # Each process mutates a copy of its own.
        with ProcessPoolExecutor(cores, initializer=move_to_copy, initargs=(folder,)) as pool:
            trials = [
                pool.submit(outcome, name, mutation, covering_tests(mutation, tests_of_line))
                for name, mutation in tried
            ]
            results = []
            for (_, mutation), trial in zip(tried, trials, strict=True):
                results.append(trial.result())
                print(f"{len(results)}/{len(tried)}", *describe(mutation, results[-1]), flush=True)
    counts = Counter(result.test_outcome for result in results)
    tried_in_full = counts[TestOutcome.KILLED] + counts[TestOutcome.SURVIVED]
    print(
        f"{counts[TestOutcome.KILLED]} of {tried_in_full} mutations are killed; the code has {len(places):,} places to draw from"
    )
    if late := sum(result.output == "timeout" for result in results):
        print(f"{late} of the killed were killed by the limit of {SECONDS} s for the tests")
    if untried := len(drawn) - tried_in_full:
        print(f"{untried} more could not be tried")


def describe(mutation: MutationSpec, result: WorkResult) -> Iterator[str]:
    """Parts of the line about a tried mutation: its place, its outcome, and the test that failed or the diff."""
    yield f"{mutation.module_path}:{mutation.start_pos[0]}"
    yield str(result.test_outcome)
    if result.test_outcome == TestOutcome.SURVIVED:
        yield f"\n{result.diff}\n"
    else:
        failed = re.search(r"^(FAILED|ERROR) .*", result.output or "", re.MULTILINE)
        yield failed[0] if failed else (result.output or "")[-300:]


def move_to_copy(parent: str) -> None:
    """Make a copy of the repository in a folder, and work there."""
    folder = Path(tempfile.mkdtemp(dir=parent))
    copy_repository(folder)
    os.chdir(folder)
    # The tests import the copy, not the installed sources.
    os.environ["PYTHONPATH"] = os.pathsep.join([f"{folder}/src", f"{folder}/{EXECUTOR}/src"])
    # The mutations are tried side by side, each on a core.
    os.environ["OMP_NUM_THREADS"] = "1"


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


def run_unmutated(cores: int, executor: bool) -> dict[tuple[str, int], set[str]]:
    """The unit tests that run each line of the library, as module and line. Exits with a message if a test fails."""
    coverage = f"--cov=xlgrid --cov-context=test --cov-report= --numprocesses {cores} --dist loadfile {UNIT}"
    runs = [f"{PYTEST} {coverage}"]
    if executor:
        runs.append(f"{PYTEST} -m 'slow or not slow' {PACKAGES['executor'][1]}")
    Path(".coveragerc").write_text("[run]\nrelative_files = true\n", encoding="utf-8")
    for command in runs:
        if subprocess.run(command, shell=True).returncode:
            sys.exit(
                f"{command} fails without a mutation: mend it first, because its failure would kill every mutation"
            )
    data = CoverageData()
    data.read()
    # Names of tests that differ from run to run, such as those with addresses of objects, stand for their files.
    listed = {
        *subprocess.run(
            f"{PYTEST} --verbose --collect-only {UNIT}", shell=True, capture_output=True, text=True
        ).stdout.split("\n")
    }
    tests_of_line: dict[tuple[str, int], set[str]] = defaultdict(set)
    for path in data.measured_files():
        for line, contexts in data.contexts_by_lineno(path).items():
            for context in filter(None, contexts):
                test, phase = context.rsplit("|", 1)
                # What a fixture makes may serve all tests of its file.
                tests_of_line[path, line].add(test if phase == "run" and test in listed else test.split("::")[0])
    return tests_of_line


def covering_tests(mutation: MutationSpec, tests_of_line: dict[tuple[str, int], set[str]]) -> list[str]:
    """The tests that run the statement of a mutation, those of its package first.

    A statement outside of functions runs at import, where coverage notes the first test only: then all tests that run something of
    the module.
    """
    path = Path(mutation.module_path)
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    statements = [
        (start, end)
        for function in functions
        for statement in ast.walk(function)
        if isinstance(statement, ast.stmt) and statement is not function
        for start, end in [header(statement)]
        if start <= mutation.start_pos[0] <= end
    ]
    whole_module = (1, len(source.splitlines()))
    start, end = min(statements, key=lambda lines: lines[1] - lines[0], default=whole_module)
    tests = set().union(*(tests_of_line.get((str(path), line), set()) for line in range(start, end + 1)))
    files = {test for test in tests if "::" not in test}
    package = f"tests/unit/{path.parts[2]}/"
    return sorted(
        files | {test for test in tests if test.split("::")[0] not in files},
        key=lambda test: (not test.startswith(package), test),
    )


def header(statement: ast.stmt) -> tuple[int, int]:
    """The first and the last line of a statement, or of what stands before the body of a compound one."""
    body = getattr(statement, "body", None)
    end = body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
    return statement.lineno, max(statement.lineno, end)


def outcome(name: str, mutation: MutationSpec, tests: list[str]) -> WorkResult:
    """What the tests say of a mutation. The outcome is INCOMPETENT or None if the mutation could not be tried."""
    folder = PACKAGES[name][1]
    if name == "executor":
        commands = [f"-m 'not slow' {folder}", f"-m slow {folder}"]
    elif tests:
        Path("tests.txt").write_text("\n".join(tests), encoding="utf-8")
        commands = ["-m 'slow or not slow' @tests.txt"]
    else:
        # Only other processes that tests start may run the statement.
        commands = [f"-m 'slow or not slow' {folder}"]
    for command in commands:
        result = mutate_and_test([mutation], f"{PYTEST} {command}", SECONDS)
        if result.test_outcome != TestOutcome.SURVIVED:
            break
    return result


if __name__ == "__main__":
    main()
