"""A small LSF on this machine: `bsub`, `bjobs`, `bkill` and `bqueues` are this file with their name as its first argument. Jobs are local processes.

`FAKE_LSF` names the folder of its jobs, and `FAKE_LSF_MINUTE` how many seconds a minute of `bsub -W` takes.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

FOLDER = Path(os.environ["FAKE_LSF"])
MINUTE = float(os.environ.get("FAKE_LSF_MINUTE", "60"))
TASK = re.compile(r"(\d+)\[(\d+)\]")


def write(path: Path, about: dict[str, str]) -> None:
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(about))
    temporary.replace(path)


def bsub(arguments: list[str]) -> None:
    """Start a process for each job of an array, which watches over the job."""
    parser = argparse.ArgumentParser()
    for option in ("J", "o", "n", "W", "wa", "wt", "Q", "M", "q", "P"):
        parser.add_argument(f"-{option}", default="")
    parser.add_argument("-R", action="append")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    asked = parser.parse_args(arguments)
    name, count = re.fullmatch(r"([\w-]+)\[1-(\d+)\]%\d+", asked.J).groups()  # type: ignore[union-attr]
    if asked.q == "closed":
        sys.exit("closed: User cannot use the queue. Job not submitted.")
    number = 1 + max((int(path.name.partition(".")[0]) for path in FOLDER.glob("*.json")), default=0)
    for place in range(1, int(count) + 1):
        write(FOLDER / f"{number}.{place}.json", {"name": f"{name}[{place}]", "state": "PEND", "reason": ""})
        subprocess.Popen(
            [sys.executable, __file__, "watch", str(number), str(place), json.dumps(vars(asked))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    print(f"Job <{number}> is submitted to queue <{asked.q or 'normal'}>.")


def watch(number: str, place: str, text: str) -> None:
    """Run a job as LSF does: with limits of time and memory, a warning, and another run after the exit status of `-Q`."""
    asked, about = json.loads(text), FOLDER / f"{number}.{place}.json"
    name = json.loads(about.read_text())["name"]
    minutes, early = float(asked["W"]), float(asked["wt"] or 0)
    memory = float(asked["M"].removesuffix("MB") or "inf")
    while True:
        process = subprocess.Popen(
            asked["command"], env={**os.environ, "LSB_JOBID": number, "LSB_JOBINDEX": place}, start_new_session=True
        )
        write(about, {"name": name, "state": "RUN", "reason": ""})
        began, reason, is_warned = time.monotonic(), "", False
        while process.poll() is None:
            time.sleep(0.05)
            ran = (time.monotonic() - began) / MINUTE
            if about.with_suffix(".kill").exists():
                reason, ends = "TERM_OWNER: job killed by owner", [signal.SIGTERM, signal.SIGKILL]
            elif ran > minutes:
                reason, ends = "TERM_RUNLIMIT: job killed after reaching LSF run time limit", [signal.SIGKILL]
            elif resident(process.pid) > memory:
                reason, ends = "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit", [signal.SIGKILL]
            elif ran > minutes - early and not is_warned:
                is_warned = True
                os.killpg(process.pid, getattr(signal, f"SIG{asked['wa']}"))
                continue
            else:
                continue
            for end in ends:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, end)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(10)
        if reason or process.returncode != int(asked["Q"] or -1):
            break
        write(about, {"name": name, "state": "PEND", "reason": ""})
    state = "EXIT" if reason or process.returncode else "DONE"
    write(about, {"name": name, "state": state, "reason": reason})


def resident(session: int) -> float:
    """Resident memory in MB of all processes of a session."""
    pages = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            fields = stat.read_text().rpartition(")")[2].split()
            pages += int(fields[21]) if int(fields[3]) == session else 0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def bjobs(arguments: list[str]) -> None:
    """List all jobs, or those of an array, in the columns that the example asks for."""
    parser = argparse.ArgumentParser()
    for option in ("a", "noheader"):
        parser.add_argument(f"-{option}", action="store_true")
    parser.add_argument("-o")
    parser.add_argument("-J")
    asked = parser.parse_args(arguments)
    assert asked.o == "jobid jobindex job_name stat exit_reason delimiter='|'"
    rows = []
    for path in sorted(FOLDER.glob("*.json")):
        number, place, _ = path.name.split(".")
        about = json.loads(path.read_text())
        if asked.J in (None, about["name"].partition("[")[0]):
            rows.append(f"{number}|{place}|{about['name']}|{about['state']}|{about['reason'] or '-'}")
    if not rows:
        sys.exit("No job found")
    print("\n".join(rows))


def bkill(tasks: list[str]) -> None:
    for task in tasks:
        number, place = TASK.fullmatch(task).groups()  # type: ignore[union-attr]
        (FOLDER / f"{number}.{place}.kill").touch()


def bqueues(arguments: list[str]) -> None:
    print("normal\nclosed")


if __name__ == "__main__":
    called, *words = sys.argv[1:]
    if called == "watch":
        watch(*words)
    else:
        {"bsub": bsub, "bjobs": bjobs, "bkill": bkill, "bqueues": bqueues}[called](words)
