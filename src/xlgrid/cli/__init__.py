"""The commands `xlgrid ...`, which the rules call and people can paste.

Each command imports only the modules that it needs, when it runs.
"""

from typing import NoReturn


def main() -> NoReturn:
    """Run a command and end the process."""
    # The commands of papers import `xlgrid.cli.options`, so this package imports no command.
    from xlgrid.cli.app import main

    main()
