"""The commands `xlgrid ...`. The rules call them, and users can run them by hand.

Each command imports only the modules that it needs, when it runs.
"""


def main() -> None:
    """Run a command and end the process."""
    # The commands of papers import `xlgrid.cli.options`, so this package imports no command.
    from xlgrid.cli import app

    app.main()
