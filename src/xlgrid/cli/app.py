"""The program `xlgrid`: its commands, in sections, and the start and end of its process."""

import gc
import os
import signal
import sys
from collections.abc import Sequence
from functools import cache
from types import FrameType
from typing import Any, NoReturn

import typer

from xlgrid import warm
from xlgrid.base.plugins import Extensible
from xlgrid.cli import data, encoders, export, pairs, preflight, results, runs, starters, studies
from xlgrid.cli.options import Commands

# The commands that papers add.
_OF_PAPERS = Extensible[Any]("command", "xlgrid.commands", {}, lambda name, value: callable(value), "a function")
# Section of `xlgrid --help` -> its commands, in the order of use.
COMMANDS = {
    "For people": (
        starters.new,
        preflight.check,
        preflight.fetch,
        preflight.doctor,
        studies.status,
        results.partial,
        studies.efficiency,
        studies.cost,
        results.trace,
        results.checklist,
        studies.compare,
        studies.rename,
        export.export,
        export.crate,
        pairs.distances,
    ),
    "Called by the rules: data": (
        data.meanings,
        data.data,
        data.fetch_data,
        data.download,
        data.unpack,
        data.text,
        data.tokenize,
    ),
    "Called by the rules: tokenizers and encoders": (
        encoders.tokenizer,
        encoders.fetch_tokenizer,
        encoders.pretrain,
        encoders.checkpoint_encoder,
        encoders.fetch_encoder,
    ),
    "Called by the rules: runs, cells and results": (
        runs.train,
        runs.train_many,
        runs.choose,
        runs.merge,
        runs.evaluate,
        results.exhibit,
        results.claims,
        results.report,
        results.report_html,
    ),
    "Commands of single papers": tuple(_OF_PAPERS.own.values()),
}

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Grids of cross-lingual transfer. `xlgrid COMMAND --help` lists the options of a command.",
)
for section, commands in COMMANDS.items():
    for command in commands:
        app.command(rich_help_panel=section)(command)


@cache
def parser() -> Any:
    """The parser of the command line. Building it for all commands takes longer than some commands take to run."""
    return typer.main.get_command(app)


def warm_up(arguments: Sequence[str]) -> None:
    """Prepare this process so that its forks can run a command quickly.

    Args:
        arguments: the command line of `xlgrid`, without the name of the program.
    """
    parser()
    # The module of a paper's command lists the libraries that its commands import.
    modules = {sys.modules[command.__module__] for command in _OF_PAPERS.own.values()}
    warm.warm_up(arguments, {name: each for module in modules for name, each in module.LIBRARIES.items()})


def serve(arguments: Sequence[str]) -> int:
    """Run a command as `main` does, in a process that runs others after it; returns the exit status.

    The process keeps the encoder of an evaluation for the next one.

    Args:
        arguments: the command line of `xlgrid`, without the name of the program.
    """
    from xlgrid.evaluation import trained

    trained.keep()
    return _run(arguments)


def main() -> None:
    """Run a command and end the process.

    The normal end of a process with the thousands of modules that torch and transformers import takes half a second.
    """
    code = _run(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _run(arguments: Sequence[str]) -> int:
    """Run a command; returns the exit status.

    A grid runs thousands of short commands, so their overhead matters: garbage collection among the modules of torch and
    transformers takes half a second.
    """
    gc.set_threshold(200_000)
    # A scheduler's signals end a command like an error, so that half-written files are removed. A download first
    # finishes the files that it has begun. A training handles these signals itself, and saves its state.
    for number in (signal.SIGTERM, signal.SIGUSR2):
        signal.signal(number, _end)
    code: str | int | None = 0
    try:
        parser().main(args=[*arguments])
    except SystemExit as end:
        code = end.code
    return code if isinstance(code, int) else 1 if code else 0


def _end(number: int, frame: FrameType | None) -> NoReturn:
    """End with the exit status that a shell reports for a program that was ended by a signal."""
    raise SystemExit(128 + number)
