"""Records a terminal session of the demo: `python docs/terminal.py` runs `make demo` in a copy of this project, on a terminal of its
own, and writes docs/terminal.svg, a picture of two moments.

`--study FILE` records another study instead, such as one that takes a minute.
"""

import argparse
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT / "packages" / "snakemake-logger-plugin-xlgrid" / "tests"))

from pseudo_terminal import Emulator, Recording, record  # noqa: E402

COLUMNS, ROWS = 100, 26
COMMAND = "make demo"
# Most lines of the picture.
LINES = 40
# A rule of CSS that says from where a font is loaded.
FONT = re.compile(r" *@font-face \{.*?\}\n", re.DOTALL)


def copy(folder: Path, study: Path | None) -> Path:
    """A copy of the files of this project, with the environment in which this script runs."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name, follow_symlinks=False)
    if study:
        shutil.copy(study, folder / "studies" / "demo.yaml")
    (folder / ".venv").mkdir()
    (folder / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    (folder / ".venv" / "installed").touch()
    return folder


def session(study: Path | None) -> Recording:
    """The demo on a terminal."""
    with tempfile.TemporaryDirectory() as folder:
        place = copy(Path(folder).resolve(), study)
        return record(COMMAND.split(), place, os.environ, COLUMNS, ROWS, seconds=24 * 3600)


def rows(recording: Recording) -> list[str]:
    """The rows of the picture: the command, the screen at a moment when trainings have scores, and the end."""
    emulator, moments = Emulator(), []
    for _, text in recording.pieces:
        emulator.feed(text)
        plain = emulator.plain
        # The last line of a screen is there, so that all of it is.
        if plain[-1].startswith("full log: ") and any(row.startswith("▶") and "  dev " in row for row in plain):
            moments.append([*emulator.rows])
    end = [*emulator.rows]
    moment = moments[len(moments) // 2] if moments else []
    return [f"$ {COMMAND}", *trimmed(moment), "", "…", "", *trimmed(end)]


def trimmed(screen: list[str]) -> list[str]:
    """A screen without the empty rows at its end."""
    while screen and not Text.from_ansi(screen[-1]).plain.strip():
        screen = screen[:-1]
    return screen


def picture(lines: list[str]) -> str:
    """The picture as SVG, in a monospaced font of the reader's system: rich's own picture loads a font from the network."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in lines:
        console.print(Text.from_ansi(line), overflow="crop", no_wrap=True)
    return FONT.sub("", console.export_svg(title=COMMAND))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", type=Path, help="a study to record instead of studies/demo.yaml")
    recording = session(parser.parse_args().study)
    if recording.code != 0:
        raise SystemExit(f"{COMMAND} ended with status {recording.code}:\n{recording.text}")
    lines = rows(recording)
    if len(lines) > LINES:
        raise SystemExit(f"the picture has {len(lines)} lines, more than {LINES}")
    (DOCS / "terminal.svg").write_text(picture(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
