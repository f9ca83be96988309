"""External commands with a time limit."""

import contextlib
import os
import signal
import subprocess
import threading

# Seconds that a command of the cluster may take: usually, and once the head is ending.
COMMAND_LIMIT, LAST_LIMIT = 60.0, 5.0


class Commands:
    """External commands, each with a time limit. `hurry` stops those under way."""

    def __init__(self) -> None:
        self.limit = COMMAND_LIMIT
        self.processes: set[subprocess.Popen[str]] = set()
        self.lock = threading.Lock()

    def run(self, *command: str) -> str:
        """Run a command and return its standard output.

        Raises:
            TimeoutError: it took longer than the limit, or was stopped by `hurry`.
            OSError: it is missing, or it failed: the message is its standard error.
        """
        # The command has a process group of its own: its children are killed with it, and Ctrl-C reaches the head alone.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            process_group=0,
        )
        with self.lock:
            self.processes.add(process)
        try:
            out, err = process.communicate(timeout=self.limit)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{command[0]} did not answer within {self.limit:g} s") from None
        finally:
            with self.lock:
                stopped = process not in self.processes
                self.processes.discard(process)
            _kill_group(process)
        if stopped:
            raise TimeoutError(f"{command[0]} was stopped, because the head is ending")
        if process.returncode:
            raise OSError(f"{command[0]}: {' '.join(err.split()) or f'exit code {process.returncode}'}")
        return out

    def hurry(self) -> None:
        """Stop the commands under way, and limit later commands to a few seconds."""
        self.limit = LAST_LIMIT
        with self.lock:
            while self.processes:
                _kill_group(self.processes.pop())


def _kill_group(process: "subprocess.Popen[str]") -> None:
    """Kill a process that leads its group, and all processes of the group, unless the process has been waited for."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
