"""What the jobs of a study have used of the memory and time that they requested, and what to request next time."""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from xlgrid.base.clock import duration
from xlgrid.plan.plan import Plan
from xlgrid.plan.workflow import beginning
from xlgrid.products import product_of
from xlgrid.products.product import Product
from xlgrid.report import ledger
from xlgrid.report.status import console
from xlgrid.study.schema import Study

if TYPE_CHECKING:
    from rich.table import Table

# A request for next time: so many times the largest use, and so many MB for the process that starts the job; or at least so many
# minutes. A job that lacked memory or time needs so many times what it had.
MEMORY, WORKER, TIME, LEAST, LACKED = 1.25, 500, 1.5, 5, 2
UNKNOWN = "–"


class Use(NamedTuple):
    """What a job has requested and used; None for what is not known.

    Attributes:
        cause: why the job failed, in the executor's words; empty for a job that is done.
        seconds: wall time, with that of attempts that a time limit cut short.
        memory: resident memory of the largest process in MB.
        cpu_seconds: of all processes.
        mem_mb, runtime, cpus, gpus: what was requested: MB, minutes, cores and GPUs.
    """

    rule: str
    output: str
    cause: str = ""
    seconds: float | None = None
    memory: float | None = None
    cpu_seconds: float | None = None
    mem_mb: float | None = None
    runtime: float | None = None
    cpus: float | None = None
    gpus: float | None = None


def read(plan: Plan, folder: str | Path) -> list[Use]:
    """What the jobs of a study have used: all attempts in the executor's ledger, and Snakemake's benchmarks of other jobs.

    Args:
        folder: the ledger; it need not exist.
    """
    uses = [_of_line(line) for line in ledger.lines(f"{folder}/usage.jsonl")]
    uses = [use for use in uses if use.output.startswith(f"results/{plan.study.name}/")]
    known = {product.job(plan.study) for use in uses if (product := product_of(use.output))}
    for product in plan.products:
        if product.study != plan.study.name or product.job(plan.study) in known:
            continue
        try:
            names, values = Path(product.benchmark(plan.study).path).read_text(encoding="utf-8").splitlines()[:2]
        except (OSError, ValueError):
            continue
        measured = dict(zip(names.split("\t"), values.split("\t"), strict=False))
        numbers = [_number(measured.get(name)) for name in ("s", "max_rss", "cpu_time")]
        uses.append(Use(_rule(product, plan.study), product.path, "", *numbers))
    return uses


def _of_line(line: dict[str, Any]) -> Use:
    rule, output, cause = (str(line.get(name) or "") for name in ("rule", "output", "cause"))
    names = ("seconds", "memory_mb", "cpu_seconds", "mem_mb", "runtime", "cpus", "gpus")
    use = Use(rule, output, cause, *(_number(line.get(name)) for name in names))
    requeues = _number(line.get("requeues"))
    if not (requeues and use.seconds is not None and use.runtime is not None):
        return use
    # The worker has measured the last attempt alone.
    return use._replace(seconds=use.seconds + 60 * use.runtime * requeues, cpu_seconds=None)


def _number(value: object) -> float | None:
    """A finite number, from JSON or from the text of a benchmark; None for anything else."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _rule(product: Product, study: Study) -> str:
    """The rule that makes a product in a study."""
    path = product.path.removeprefix(f"results/{study.name}")
    rules = [
        (len(begin), rule)
        for rule, begins in product.makers(study).items()
        for begin in begins
        if re.match(beginning([begin]), path)
    ]
    return max(rules)[1] if rules else product.rules[0]


def by_rule(uses: Sequence[Use]) -> dict[str, list[Use]]:
    """Rule -> the uses of its jobs."""
    rules: dict[str, list[Use]] = defaultdict(list)
    for use in uses:
        rules[use.rule].append(use)
    return rules


def unused(pairs: Sequence[tuple[float | None, float | None]]) -> float | None:
    """The share of what was requested that was not used, over the jobs of which both are known.

    Args:
        pairs: what each job has used and requested.
    """
    known = [(used, requested) for used, requested in pairs if used is not None and requested]
    return 1 - sum(used for used, _ in known) / sum(requested for _, requested in known) if known else None


def advice(uses: Sequence[Use]) -> dict[str, str]:
    """`mem_mb` and `runtime` (in minutes) to request for the jobs of a rule, as far as their use is known.

    As in the rules of xlgrid, the memory grows with the attempt.
    """
    done = {use.output for use in uses if not use.cause}
    lacking = [use for use in uses if use.output not in done]
    memory = [MEMORY * use.memory + WORKER for use in uses if use.memory is not None]
    # The cause may be the memory of a GPU; then the request is larger than needed, and not too small.
    memory += [LACKED * use.mem_mb for use in lacking if use.cause == "out of memory" and use.mem_mb]
    minutes = [TIME * use.seconds / 60 for use in uses if use.seconds is not None]
    minutes += [LACKED * use.runtime for use in lacking if use.cause == "timeout" and use.runtime]
    asked = {"mem_mb": f"{100 * math.ceil(max(memory) / 100)} * attempt"} if memory else {}
    return asked | ({"runtime": f"{max(LEAST, math.ceil(max(minutes)))}"} if minutes else {})


def tables(rules: dict[str, list[Use]]) -> Iterator["Table"]:
    """A table of the memory of each rule, and one of its time, cores and GPUs."""
    from rich import box
    from rich.table import Table

    spread = ("median", "95 %", "most", "asked", "unused")
    for head in (("memory in MB", "jobs", "failed", *spread), ("time", *spread, "cores unused", "GPUs asked")):
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
        for number, column in enumerate(head):
            table.add_column(column, no_wrap=True, justify="right" if number else "left")
        for rule, uses in rules.items():
            if "jobs" in head:
                failed = sum(bool(use.cause) for use in uses)
                row = [
                    f"{len(uses):,}",
                    f"{failed:,}",
                    *_spread([(use.memory, use.mem_mb) for use in uses], "{:,.0f}".format),
                ]
            else:
                row = _spread([(use.seconds, use.runtime and 60 * use.runtime) for use in uses], duration)
                cores = [(use.cpu_seconds, use.cpus and use.seconds and use.cpus * use.seconds) for use in uses]
                gpus = sorted({use.gpus for use in uses if use.gpus is not None})
                row += [_percent(unused(cores)), " to ".join(f"{number:.0f}" for number in gpus) or UNKNOWN]
            table.add_row(rule, *row)
        yield table


def _spread(pairs: Sequence[tuple[float | None, float | None]], text: Callable[[float], str]) -> list[str]:
    """Median, 95th percentile and largest of what was used, the range of what was requested, and the share that was not used."""
    import numpy as np

    used = [used for used, _ in pairs if used is not None]
    requested = {requested for _, requested in pairs if requested}
    # Each is the use of a job, and not a mean of two.
    shown = np.quantile(used, [0.5, 0.95, 1], method="inverted_cdf").tolist() if used else []
    ends = dict.fromkeys(text(end(requested)) for end in (min, max)) if requested else {}
    return [*(map(text, shown) if used else [UNKNOWN] * 3), " to ".join(ends) or UNKNOWN, _percent(unused(pairs))]


def _percent(share: float | None) -> str:
    return UNKNOWN if share is None else f"{share:.0%}"


def show(plan: Plan, folder: str | Path) -> None:
    """Print what the jobs of each rule have used, what is not known, and lines for a profile with what to request.

    Args:
        folder: the executor's ledger.
    """
    terminal, uses = console(), read(plan, folder)
    if not uses:
        terminal.print(f"No job of {plan.study.name} has been measured: run it, or some of its jobs.")
        return
    rules = by_rule(uses)
    for table in tables(rules):
        terminal.print(table)
    lines = ["set-resources:"]
    for rule, asked in ((rule, advice(of_rule)) for rule, of_rule in rules.items()):
        lines += [f"  {rule}:", *(f"    {name}: {value}" for name, value in asked.items())] if asked else []
    terminal.print(*notes(uses), "", *lines, sep="\n", soft_wrap=True, markup=False)


def notes(uses: Sequence[Use]) -> Iterator[str]:
    """Sentences about what the tables do not have, and how the lines for a profile follow from them."""
    if free := sum(use.runtime is None for use in uses):
        yield (
            f"{free:,} of {len(uses):,} jobs have no request: on one machine, none is limited; and of jobs of other executors than submitit, "
            "Snakemake's benchmarks have only the use."
        )
    if unmeasured := sum(use.memory is None for use in uses):
        yield f"The memory of {unmeasured:,} jobs is not known, such as that of a job that was killed with its worker."
    yield "Memory is that of the largest process of a job. What jobs use of a GPU is not recorded: see `nvidia-smi` on its node."
    yield (
        f"Next time, in a profile (memory: {MEMORY:g} times the most, and {WORKER} MB for the process that starts the job; runtime: {TIME:g} times "
        f"the most, at least {LEAST} minutes; {LACKED} times the request of a job that lacked one of them):"
    )
