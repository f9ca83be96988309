"""All checks of a study before anything computes: exhibits, claims, the Hub, files, tokenizers and disk."""

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from xlgrid.data.downloads import find
from xlgrid.plan.checks import inherited_problems, training_problems
from xlgrid.plan.estimate import Estimate
from xlgrid.plan.plan import Plan
from xlgrid.plan.sizes import DataSizes
from xlgrid.preflight import Line, State
from xlgrid.preflight.doctor import RESULTS, existing
from xlgrid.preflight.files import file_lines, materials, tokenizer_lines
from xlgrid.preflight.hub import hub_lines
from xlgrid.preflight.pairs import pair_lines
from xlgrid.products.encode import Encoder
from xlgrid.results.claims import problem_of_plan, terms
from xlgrid.results.verdicts import LEAST_SEEDS, smallest_effect

# An effect that is larger than most, in standard deviations over seeds. Five seeds show smaller effects even among a
# hundred claims; three seeds do not even among four claims.
LARGE = 5.0
ENOUGH = 5


def study_lines(plan: Plan, lock: str | Path) -> Iterator[Line]:
    """A line for each thing that a study needs, in the order of use.

    Args:
        plan: the plan of the study.
        lock: the lock file, see `xlgrid.data.lock`.

    Raises:
        ValueError: the lock file is damaged.
    """
    shared = f"; {plan.shared}" if plan.shared else ""
    yield Line(State.GOOD, f"study {plan.study.name}", f"{len(plan.cells):,} cells, {len(plan.runs):,} runs{shared}")
    yield from (Line(State.PROBLEM, "report", problem) for problem in inherited_problems(plan))
    if plan.ancestors:
        yield from (Line(State.OPEN, "training", problem) for problem in training_problems(plan))
    yield from method_lines(plan)
    yield from sample_lines(plan)
    yield from exhibit_lines(plan)
    yield from pair_lines(plan)
    yield from claim_lines(plan)
    taken = materials(plan)
    if not taken:
        yield Line(State.GOOD, "files", "everything is generated here: the study needs neither files nor the Hub")
    yield from hub_lines(plan.study, taken, lock)
    yield from file_lines(plan, taken)
    yield from tokenizer_lines(plan)
    yield disk_line(plan)


def method_lines(plan: Plan) -> Iterator[Line]:
    """A line for each mistake that a method of a package shows in a small model of an encoder's type."""
    encoders = plan.study.encoders
    for name, grid in plan.study.grids.items():
        for key in grid.encoder:
            for problem in encoders[key].mistakes_of_packages(plan.study, key, name):
                yield Line(State.PROBLEM, "methods", problem)


def exhibit_lines(plan: Plan) -> Iterator[Line]:
    """A line for each exhibit that cannot be rendered, for example because an entry would average over two methods, and for
    each table that is too wide for a paper.

    Learning curves are not checked, because they show runs that have started; neither are exhibits of files that are not
    downloaded yet.
    """
    rendered, are_good, unmade = 0, True, plan.unmade
    for name in plan.study.exhibits:
        exhibit = plan.study.exhibit(name)
        absent = [file for file in exhibit.files(plan.study) if not Path(file).is_file()]
        if exhibit.shows_runs or any(find(plan.study.downloads, file) for file in absent):
            continue
        try:
            if misfit := exhibit.misfit(exhibit.rendering(unmade)._replace(labels=plan.study.printed)):
                yield Line(State.OPEN, f"exhibit {name}", misfit)
        except (ValueError, OSError) as error:
            are_good = False
            yield Line(State.PROBLEM, f"exhibit {name}", str(error))
        rendered += 1
    if rendered and are_good:
        yield Line(State.GOOD, "exhibits", f"{rendered} can be rendered, as far as the planned cells show")


def sample_lines(plan: Plan) -> Iterator[Line]:
    """A line for each setting that needs more training examples than a language has, if their number is known."""
    sizes, problems = DataSizes(plan), dict[tuple[str, str], str]()
    for run in plan.runs:
        # A setting that lacks nothing without any examples needs no number.
        added = {key: each for key, each in plan.study.recipe(*run[1:]).training.added.items() if each.lacking(0)}
        for tokens in run.under(plan.study.name).tokens(plan, "train") if added else ():
            with suppress(ValueError):  # The number is not known.
                examples = sizes.examples(tokens)
                for key, setting in added.items():
                    if problem := setting.lacking(examples):
                        problems.setdefault((key, tokens.task), f"{tokens.language}: {problem}")
    for (key, task), problem in problems.items():
        yield Line(State.PROBLEM, key, f"{task} in {problem}")


def claim_lines(plan: Plan) -> Iterator[Line]:
    """A line for each number of planned seeds: the smallest effects that claims can show, or why there is no verdict.

    Each claim that pairs cells that are not planned has its own line. `inherited_problems` reports claims without
    cells.
    """
    study = plan.study
    of_seeds: Counter[int] = Counter()
    for name, claim in study.claims.items():
        if problem_of_plan(claim, plan.cells, study.belongs):
            continue
        try:
            planned = terms(name, claim, plan.cells, study.belongs)
        except ValueError as error:
            yield Line(State.PROBLEM, "claims", str(error))
            continue
        of_seeds[len({term.cell.seed for term in planned})] += 1
    total = len(study.claims)
    without = sum(number for seeds, number in of_seeds.items() if seeds < LEAST_SEEDS)
    for seeds, number in sorted(of_seeds.items(), reverse=True):
        planned_seeds = f"{number} of {total} claims: {seeds} seed{'s' * (seeds > 1)}"
        if seeds < LEAST_SEEDS:
            advice = f"a verdict needs {LEAST_SEEDS}: add seeds, or read the effects without verdicts"
            yield Line(State.OPEN, "claims", f"{planned_seeds}, and {advice}")
            continue
        # A claim without a verdict counts like a claim that does not hold.
        steps = dict.fromkeys([total, 1 + without])
        first, *last = [smallest_effect(seeds, step) for step in steps]
        effects = (
            f"the first of the claims to hold must exceed its margin by {first:.1f} standard deviations over seeds"
        )
        effects += "".join(f", the last by {effect:.1f}" for effect in last)
        if first > LARGE:
            effects += f"; with {ENOUGH} seeds {' and '.join(f'{smallest_effect(ENOUGH, step):.1f}' for step in steps)}"
        yield Line(State.OPEN if first > LARGE else State.GOOD, "claims", f"{planned_seeds}; {effects}")


def disk_line(plan: Plan) -> Line:
    """The disk space that a study still needs, and the free space on this machine."""
    estimate = Estimate(plan)
    try:
        runs = [run for run in plan.runs if run.study == plan.study.name and not Path(run.delta).exists()]
        missing = [name for name in estimate.pretrained if not Path(Encoder(plan.study.name, name).path).exists()]
        encoders = sum(estimate.pretraining(name).gigabytes for name in missing)
        needed = sum(map(estimate.stored, runs)) + encoders
    except ValueError as error:
        return Line(State.OPEN, "disk", f"not estimated: {error}")
    free = shutil.disk_usage(existing(RESULTS)).free / 1e9
    text = (
        f"runs and encoders that are trained need about {needed:,.3g} GB, data and states for resuming not counted; "
        f"{free:,.3g} GB are free in {existing(RESULTS).resolve()}"
    )
    if needed > free:
        return Line(State.PROBLEM, "disk", f"{text}: free some space, or let results/ be a link to a larger disk")
    return Line(State.GOOD, "disk", text)
