"""The plugin as the real Snakemake uses it, with a terminal and without one."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pseudo_terminal import Emulator, Recording, record

LOAD = """
import sys
import snakemake_interface_logger_plugins.base, snakemake_interface_logger_plugins.settings
before = set(sys.modules)
import snakemake_logger_plugin_xlgrid
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
"""
# Rules of xlgrid's names, with jobs that only touch files. The command of `onerror` prints after some time, as `xlgrid partial` does:
# Snakemake passes its messages on in a thread, which the command does not wait for.
SNAKEFILE = """
rule all:
    input: expand("results/s/cells/{n}", n=range(12))

rule data:
    output: "results/s/data/{n}"
    log: "results/s/logs/data/{n}.log"
    shell: "touch {output} 2> {log}"

rule evaluate:
    input: "results/s/data/{n}"
    output: "results/s/cells/{n}"
    log: "results/s/logs/cells/{n}.log"
    shell: "{COMMAND}"

onerror:
    shell("sleep 2; echo the commands of onerror")
"""
WORKS = "touch {output}"
FAILS = "echo 'error: no cell {wildcards.n}' > {log}; test {wildcards.n} -lt 9 && touch {output}"
WAITS = "sleep 60"
ROWS = 12


def workflow(folder: Path, command: str) -> Path:
    (folder / "Snakefile").write_text(SNAKEFILE.replace("{COMMAND}", command))
    return folder


def snakemake(*options: str) -> list[str]:
    return [sys.executable, "-m", "snakemake", "--cores", "2", "--logger", "xlgrid", "--keep-going", *options]


def on_terminal(folder: Path, *options: str, columns: int = 70, interrupt: str = "") -> tuple[Recording, Emulator]:
    recording = record(snakemake(*options), folder, os.environ, columns, ROWS, interrupt=interrupt)
    emulator = Emulator()
    emulator.feed(recording.text)
    return recording, emulator


def without_terminal(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(snakemake(*options), cwd=folder, capture_output=True, text=True, timeout=600)


def test_loading_it_imports_nothing_that_takes_time() -> None:
    loaded = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=True).stdout.split()
    assert {"xlgrid", "rich", "numpy", "snakemake"}.isdisjoint(loaded), loaded


def test_a_screen_never_exceeds_its_terminal_and_leaves_a_summary(tmp_path: Path) -> None:
    recording, screen = on_terminal(workflow(tmp_path, WORKS))
    assert recording.code == 0, recording.text
    assert 3 <= screen.highest + 1 < ROWS
    assert max(map(len, screen.plain)) <= 70
    at = next(number for number, row in enumerate(screen.plain) if row.startswith("s: 24 of 24 jobs done in "))
    assert screen.plain[at + 1].endswith("█ 12/12") and screen.plain[at + 3].startswith("full log: .snakemake/log/")
    assert not screen.is_hidden


def test_a_narrow_terminal_is_enough(tmp_path: Path) -> None:
    recording, screen = on_terminal(workflow(tmp_path, FAILS), columns=20)
    assert recording.code == 1 and screen.highest + 1 < ROWS, recording.text


def test_failures_stay_with_reason_and_log_and_the_commands_of_onerror_come_after_the_screen(tmp_path: Path) -> None:
    recording, screen = on_terminal(workflow(tmp_path, FAILS))
    assert recording.code == 1
    text = "\n".join(screen.plain)
    assert "s: 21 of 24 jobs done in" in text and "3 failed" in text
    assert "reason: no cell 9\n  log: results/s/logs/cells/9.log" in text
    assert text.count("the commands of onerror") == 1 and text.index("full log") < text.index("the commands of onerror")
    assert not screen.is_hidden


def test_an_interrupt_gives_the_terminal_back(tmp_path: Path) -> None:
    recording, screen = on_terminal(workflow(tmp_path, WAITS), interrupt="2 running")
    assert recording.code != 0 and not screen.is_hidden, recording.text
    assert "Terminating processes on user request" in recording.text and "failed" not in recording.text
    assert any(re.match(r"s: \d+ of 24 jobs done in .*, \d+ not done", row) for row in screen.plain), screen.plain


def test_without_a_terminal_a_run_is_a_few_lines_with_each_failure(tmp_path: Path) -> None:
    process = without_terminal(workflow(tmp_path, FAILS))
    printed = process.stderr.splitlines()
    assert process.returncode == 1 and len(printed) < 20, process.stderr
    assert "\x1b" not in process.stderr
    for number in (9, 10, 11):
        assert (
            f"failed: results/s/cells/{number}: no cell {number} (log: results/s/logs/cells/{number}.log)"
            in process.stderr
        )
    log = next(line.partition("full log: ")[2] for line in printed if "full log: " in line)
    assert (tmp_path / log).read_text().count("Finished jobid") == 21


@pytest.mark.parametrize("option", ["--dry-run", "--printshellcmds"])
def test_details_are_printed_where_they_are_asked_for(tmp_path: Path, option: str) -> None:
    process = without_terminal(workflow(tmp_path, WORKS), option)
    output = process.stdout + process.stderr
    assert process.returncode == 0 and output.count("rule evaluate:") == 12, output


def test_quiet_says_how_it_ended_and_no_more(tmp_path: Path) -> None:
    workflow(tmp_path, WORKS)
    assert without_terminal(tmp_path, "--quiet", "all").stderr == ""
    process = without_terminal(tmp_path, "--forceall", "--quiet")
    assert process.returncode == 0 and len(process.stderr.splitlines()) <= 5, process.stderr
