"""Write the reference of the `xlgrid` commands, with all their options: `python docs/command_reference.py`.

`docs/reference/xlgrid.md` has what `xlgrid --help` and `xlgrid COMMAND --help` print, in the same order.
"""

import inspect
import re
from pathlib import Path
from typing import Any

import typer

from xlgrid.cli.app import COMMANDS, app

PAGE = Path(__file__).parent / "reference" / "xlgrid.md"

INTRODUCTION = """# Commands of xlgrid

The commands in the first section are for people. Snakemake's rules call all others, each job one command, and
`snakemake --printshellcmds` prints them; they can be pasted into a shell. `python docs/command_reference.py` writes this page.
"""


def escaped(text: str) -> str:
    """Text for a cell of a Markdown table."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def default(parameter: Any) -> str:
    """The default of an option; – where there is none to state."""
    if parameter.required:
        return "required"
    if isinstance(shown := getattr(parameter, "show_default", None), str):
        return shown
    if parameter.is_flag or parameter.default in (None, (), ""):
        return "–"
    return f"`{parameter.default}`"


def section(command: Any) -> str:
    """The section of a command: its arguments in their order, its meaning, its options."""
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    listed = [each for each in command.params if each.param_type_name == "option" and "--help" not in each.opts]
    call = " ".join(["xlgrid", command.name, *((each.metavar or each.name.upper()) for each in arguments)])
    rows = [
        f"| `{each.name}` | {escaped(each.help or '')} | {'required' if each.required else '–'} |" for each in arguments
    ]
    for each in listed:
        names = ", ".join(f"`{name}`" for name in [*each.opts, *each.secondary_opts])
        rows.append(f"| {names} | {escaped(each.help or '')} | {escaped(default(each))} |")
    table = ["| Option | Meaning | Default |", "|---|---|---|", *rows] if rows else []
    about = inspect.cleandoc(command.help or "").replace("\f", "")
    return "\n".join([f"### `{call}`", "", about, "", *table]).rstrip() + "\n"


def page() -> str:
    """The whole page."""
    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    parts = [INTRODUCTION]
    for heading, functions in COMMANDS.items():
        parts.append(f"## {heading}\n")
        parts += [section(commands[function.__name__.replace("_", "-")]) for function in functions]
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
