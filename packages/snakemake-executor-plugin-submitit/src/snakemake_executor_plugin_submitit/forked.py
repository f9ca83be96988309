"""Runs the command of a console script in a fork of a process that has imported the script's libraries.

A fork runs one command, or, if the script can, one after another (`snakemake_executor_plugin_submitit.resident`).

To start Python and import torch takes seconds; a short job takes less. A command that cannot run here exactly as a shell
would run it is left to the shell.
"""

import atexit
import importlib
import io
import os
import random
import re
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

# A piece of a command. A `joint` is nothing, `blank` and `operator` end a word, and `other` is what only a shell can interpret.
_PIECE = re.compile(
    r"""(?P<joint>\\\n)
    | \\(?P<escaped>.)
    | '(?P<single>[^']*)'
    | "(?P<double>(?:[^"\\$`]|\\.)*)"
    | (?P<blank>[\ \t]+)
    | (?P<operator>>>|>&|>(?![|(])|<(?![<>&|(]))
    | (?P<bare>[^\ \t\r\n'"\\<>$`*?\[\]{}~;&|()!#]+)
    | (?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)


class Plain(NamedTuple):
    """A shell command that consists of words and redirections only.

    Attributes:
        redirections: (file descriptor, operator, path or descriptor) in order.
    """

    words: list[str]
    redirections: list[tuple[int, str, str]]


def plain(command: str) -> Plain | None:
    """Split a command as a POSIX shell would; None if only a shell can interpret it."""
    words: list[str] = []
    redirections: list[tuple[int, str, str]] = []
    word: list[re.Match[str]] = []
    waiting: tuple[int, str] | None = None

    def end() -> None:
        nonlocal waiting
        text = "".join(map(_text, word))
        if word and waiting:
            redirections.append((*waiting, text))
            waiting = None
        elif word:
            words.append(text)
        word.clear()

    for piece in _PIECE.finditer(command.strip()):
        if piece.lastgroup == "other":
            return None
        if piece.lastgroup == "blank":
            end()
        elif piece.lastgroup == "operator":
            number = int(piece[0] != "<")
            if word and all(part.lastgroup == "bare" for part in word) and _is_number("".join(map(_text, word))):
                number = int("".join(map(_text, word)))
                word.clear()
            end()
            if waiting:
                return None
            waiting = (number, piece[0])
        elif piece.lastgroup != "joint":
            word.append(piece)
    end()
    # `A=1 command` sets a variable, and shells differ about `>&word` if the word is no descriptor.
    if waiting or not words or "=" in words[0]:
        return None
    if any(operator == ">&" and not _is_number(target) for _, operator, target in redirections):
        return None
    return Plain(words, redirections)


def _text(piece: re.Match[str]) -> str:
    """The text that a piece of a shell word has after the shell has removed quotes and backslashes."""
    text = piece[piece.lastgroup or 0]
    return re.sub(r'\\(?:([\\"$`])|\n)', r"\1", text) if piece.lastgroup == "double" else text


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


@cache
def script(name: str) -> tuple[str, Any] | None:
    """Path and entry point of a console script of this Python's own environment, or None."""
    path = shutil.which(name)
    if path is None or Path(path).parent.resolve() != Path(sys.executable).parent.resolve():
        return None
    entries = list(entry_points(group="console_scripts", name=name))
    return (path, entries[0]) if entries else None


def runnable(command: str, scripts: Sequence[str]) -> Plain | None:
    """The words and redirections of a command that one of `scripts` can run in a fork; None for any other command."""
    words = plain(command)
    return words if words and words.words[0] in scripts and script(words.words[0]) else None


def prepare(words: Sequence[str]) -> None:
    """Import the libraries of a command before the fork. The script's module may define `warm_up(arguments)` for more.

    That function may import and load, but must not initialise CUDA or start threads, which do not survive a fork. An
    exception is printed only, because it will occur again in the command itself, with the right exit code.
    """
    try:
        warm_up: Callable[[Sequence[str]], None] | None = getattr(_module(words[0]), "warm_up", None)
        if warm_up:
            warm_up(words[1:])
    except Exception:
        traceback.print_exc()


def _module(name: str) -> Any:
    """The module of a console script."""
    path_and_entry = script(name)
    assert path_and_entry
    return importlib.import_module(path_and_entry[1].module)


def is_served(command: Plain) -> bool:
    """Whether a process that runs further commands may run this one, which has been prepared.

    The script's module says so: `serves(arguments)` is true, and `serve(arguments)` runs the command and returns its exit code.
    A command that succeeds must leave no process, thread or exit handler behind, and nothing that changes what the next one does.
    """
    # The process has other descriptors for itself.
    own = any(number > 2 for number, _, _ in command.redirections)
    try:
        serves: Callable[[Sequence[str]], bool] | None = getattr(_module(command.words[0]), "serves", None)
        return not own and serves is not None and serves(command.words[1:])
    except Exception:
        traceback.print_exc()
        return False


def forkable() -> bool:
    """Whether CUDA has not been initialised, after which a forked process could not use it."""
    torch = sys.modules.get("torch")
    return torch is None or not torch.cuda.is_initialized()


def redirect(redirections: Sequence[tuple[int, str, str]]) -> None:
    """Redirect descriptors of this process as a shell does.

    Raises:
        OSError: a file cannot be opened.
    """
    flags = {">": os.O_WRONLY | os.O_CREAT | os.O_TRUNC, ">>": os.O_WRONLY | os.O_CREAT | os.O_APPEND, "<": os.O_RDONLY}
    for number, operator, target in redirections:
        if operator == ">&":
            os.dup2(int(target), number)
            continue
        descriptor = os.open(target, flags[operator], 0o666)
        os.dup2(descriptor, number)
        if descriptor != number:
            os.close(descriptor)


def run(words: Sequence[str]) -> NoReturn:
    """Run a console script in this process, which is a fork, and end the process."""
    path, entry = _begin(words[0])
    call(entry.load(), [path, *words[1:]])


def begin_serving(name: str) -> tuple[str, Callable[[Sequence[str]], Any]]:
    """Prepare this process, which is a fork, for commands of a console script; returns the path and the `serve` of the script."""
    path, _ = _begin(name)
    _open_streams()
    return path, _module(name).serve


def _begin(name: str) -> tuple[str, Any]:
    """Begin as Python begins with a console script. Returns its path and its entry point."""
    path_and_entry = script(name)
    assert path_and_entry
    # Python adds the script's folder for a script, but not for the worker (python -P).
    sys.path.insert(0, str(Path(path_and_entry[0]).parent))
    return path_and_entry


def run_snakemake(arguments: Sequence[str]) -> NoReturn:
    """Run `python -m snakemake ARGUMENTS` in this process, which is a fork, and end the process."""
    from snakemake.cli import main
    from snakemake.rules import Rule

    # The head retries jobs. The option `--retries 0` of the nested Snakemake leaves the `retries` of rules in force.
    Rule.restart_times = property(lambda rule: 0, lambda rule, times: None)
    sys.path.insert(0, os.getcwd())
    call(main, ["snakemake", *arguments])


def call(main: Callable[[], Any], argv: list[str]) -> NoReturn:
    """Call a script's main function with fresh streams, and end the process as Python ends."""
    sys.argv = argv
    _open_streams()
    draw_anew()
    end(outcome(main))


def _open_streams() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    streams = [io.FileIO(1, "w", closefd=False), io.FileIO(2, "w", closefd=False)]
    for raw, errors in zip(streams, ("strict", "backslashreplace"), strict=True):
        # As in a new Python, standard error is flushed line by line, and standard output if it is a terminal.
        below = raw if unbuffered else io.BufferedWriter(raw)
        lines = raw.fileno() == 2 or raw.isatty()
        stream = io.TextIOWrapper(below, "utf-8", errors, line_buffering=lines, write_through=unbuffered)
        setattr(sys, "stdout" if raw.fileno() == 1 else "stderr", stream)


def draw_anew() -> None:
    """Let this process draw other random numbers than those before, and than other forks of the same process."""
    random.seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()


def outcome(main: Callable[[], Any]) -> int:
    """Call a script's main function; returns the exit code."""
    code: Any = 0
    try:
        code = main()
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    return _flushed(code or 0)


def _flushed(code: int) -> int:
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        return code or 120
    return code


def end(code: int) -> NoReturn:
    """End this process as Python ends."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
        code = code or 120
    os._exit(_flushed(code) & 0xFF)
