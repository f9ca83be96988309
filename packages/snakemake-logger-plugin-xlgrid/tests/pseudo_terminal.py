"""A command on a pseudo-terminal, and what a person sees there."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

# What the program may print between its text: a colour, a movement or an order about the cursor, the end of a line.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n")


class Recording(NamedTuple):
    """The output of a command.

    Attributes:
        pieces: the seconds since the beginning, and the text.
        code: the exit status.
    """

    pieces: list[tuple[float, str]]
    code: int

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.pieces)


def record(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    columns: int = 80,
    rows: int = 24,
    seconds: float = 600,
    interrupt: str = "",
) -> Recording:
    """Run a command on a terminal of a size.

    Args:
        seconds: the longest time that the command may take.
        interrupt: text after which Ctrl-C is pressed, once.

    Raises:
        TimeoutError: the command takes longer; the message has what it has printed.
    """
    head, tail = pty.openpty()
    fcntl.ioctl(tail, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    # The size of the terminal counts, not that of the one in which the tests run.
    rest = {name: value for name, value in environment.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**rest, "TERM": "xterm-256color"},
        stdin=tail,
        stdout=tail,
        stderr=tail,
        start_new_session=True,
        preexec_fn=_own_terminal,
    )
    os.close(tail)
    began, pieces, is_interrupted = time.monotonic(), [], False
    try:
        while data := _read(head, began + seconds):
            pieces.append((time.monotonic() - began, data.decode(errors="replace")))
            if interrupt and not is_interrupted and interrupt in "".join(text for _, text in pieces):
                os.write(head, b"\x03")
                is_interrupted = True
        return Recording(pieces, process.wait(timeout=60))
    except TimeoutError:
        os.killpg(process.pid, 9)
        raise TimeoutError("".join(text for _, text in pieces)) from None
    finally:
        os.close(head)


def _own_terminal() -> None:
    """Take the terminal on which the process reads as its own, so that Ctrl-C there is heard. A shell in the background ignores it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _read(head: int, until: float) -> bytes:
    """The next output; empty when the command has ended."""
    ready, _, _ = select.select([head], [], [], max(0, until - time.monotonic()))
    if not ready:
        raise TimeoutError
    try:
        return os.read(head, 65536)
    except OSError:  # the other end is closed
        return b""


class Emulator:
    """The rows of a terminal that text is printed to, with the colours in them.

    Attributes:
        rows: all rows, those that have scrolled off the top, too.
        row: the row of the cursor.
        highest: the most rows between the cursor and a row to which it has gone back.
    """

    def __init__(self) -> None:
        self.rows = [""]
        self.row = 0
        self.highest = 0
        self.is_hidden = False
        self._lowest = 0

    def feed(self, text: str) -> None:
        """Print text. Only what rich prints is known: colours, the beginning of the line, rows up and erased."""
        at = 0
        for match in _CONTROL.finditer(text):
            self._print(text[at : match.start()])
            self._control(match.group())
            at = match.end()
        self._print(text[at:])

    def _print(self, text: str) -> None:
        self.rows[self.row] += text
        if text:
            self._lowest = self.row

    def _control(self, code: str) -> None:
        if code == "\n":
            self.row += 1
            if self.row == len(self.rows):
                self.rows.append("")
        elif code.endswith("A"):
            self.row -= int(code[2:-1] or 1)
            self.highest = max(self.highest, self._lowest - self.row)
        elif code.endswith("K"):
            self.rows[self.row] = ""
        elif code.endswith("m"):
            self.rows[self.row] += code
        elif code in ("\x1b[?25l", "\x1b[?25h"):
            self.is_hidden = code.endswith("l")

    @property
    def plain(self) -> list[str]:
        """The rows without colours."""
        return [re.sub(r"\x1b\[[0-9;]*m", "", row).rstrip() for row in self.rows]
