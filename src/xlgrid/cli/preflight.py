"""Commands that people call before anything computes: check a study, check the machine, fetch what a study needs."""

import subprocess
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from xlgrid.cli.options import StudyName

if TYPE_CHECKING:
    from xlgrid.preflight import Line


def check(study: StudyName) -> None:
    """Check whether a study can run: exhibits, files, columns, labels, tokenizers, the Hub and disk.

    Nothing is computed. ✗ marks a problem, ✓ a thing in order, ? a check that was not possible or that you have to
    decide. The exit status is 1 if there is a problem.
    """
    from xlgrid.plan.load import load_plan
    from xlgrid.preflight.check import study_lines
    from xlgrid.preflight.fetch import lock_file

    _show(study_lines(load_plan(study), lock_file()))


def doctor(
    submit: Annotated[
        bool, typer.Option("--submit", help="also run a job of one second on each cluster that answers")
    ] = False,
) -> None:
    """Check this machine: Python, PATH, packages, clusters, GPUs, fonts, the folder of results and its disk.

    ✗ marks a problem, ✓ a thing in order, ? a check that was not possible or that you have to decide. The exit status
    is 1 if there is a problem.
    """
    from xlgrid.preflight.doctor import machine_lines

    _show(machine_lines(submit))


def fetch(study: StudyName) -> None:
    """Fetch everything that a study needs from the network, and list the files to copy to a machine without a network.

    The lock file keeps the commit of everything that comes from the Hub.
    """
    from xlgrid.plan.load import load_plan
    from xlgrid.preflight.doctor import elsewhere
    from xlgrid.preflight.fetch import advice, by_hand, command, targets

    plan = load_plan(study)
    wanted = targets(plan)
    for line in by_hand(plan):
        typer.echo(line)
    if not wanted:
        typer.echo(f"study {plan.study.name} needs nothing from the network: everything is generated or in files here")
        return
    if problem := elsewhere("snakemake"):
        raise ValueError(problem)
    process = subprocess.Popen(command(plan, wanted))
    try:
        status = process.wait()
    except (SystemExit, KeyboardInterrupt) as end:
        # Ctrl-C also reaches Snakemake, but a signal to this process does not.
        if isinstance(end, SystemExit):
            process.terminate()
        process.wait()
        raise
    if status:
        raise typer.Exit(status)
    for line in advice(plan, wanted):
        typer.echo(line)


def _show(lines: "Iterable[Line]") -> None:
    """Print lines, problems first, and end with status 1 if there is a problem."""
    from xlgrid.preflight import State

    by_state: dict[State, list[Line]] = {state: [] for state in State}
    for line in lines:
        by_state[line.state].append(line)
    for state, members in by_state.items():
        for line in members:
            # Error messages may have several lines.
            typer.echo(f"{state.value} {line.thing}: {' '.join(line.text.split())}")
    problems, still_open, good = map(len, by_state.values())
    typer.echo(f"{problems or 'no'} problem{'s' * (problems != 1)}, {still_open} open, {good} in order")
    if problems:
        raise typer.Exit(1)
