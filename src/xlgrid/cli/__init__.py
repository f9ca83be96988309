"""The commands `xlgrid ...`, which the rules call and people can paste.

Each command imports only the modules that it needs, when it runs.
"""


def main() -> None:
    """Run a command and end the process."""
    # The commands of papers import `xlgrid.cli.options`, so this package imports no command.
    from xlgrid.cli import app

    app.main()
