"""The commands `xlgrid ...`. The rules call them, and users can run them by hand.

Each command imports only the modules that it needs, when it runs.
"""

from collections.abc import Sequence


def main() -> None:
    """Run a command and end the process."""
    # The commands of papers import `xlgrid.cli.options`, so this package imports no command.
    from xlgrid.cli import app

    app.main()


def warm_up(arguments: Sequence[str]) -> None:
    """Prepare this process so that its forks can run a command quickly; the submitit executor calls this.

    Args:
        arguments: the command line of `xlgrid`, without the name of the program.
    """
    from xlgrid.cli import app

    app.warm_up(arguments)


def serves(arguments: Sequence[str]) -> bool:
    """Whether `serve` runs a command; the submitit executor asks this.

    Args:
        arguments: the command line of `xlgrid`, without the name of the program.
    """
    return list(arguments[:1]) == ["evaluate"]


def serve(arguments: Sequence[str]) -> int:
    """Run a command in a process that runs others after it, and return the exit status; the submitit executor calls this.

    Args:
        arguments: the command line of `xlgrid`, without the name of the program.
    """
    from xlgrid.cli import app

    return app.serve(arguments)
