"""Show the state of a study in the terminal, once or repeatedly: a summary on one screen, or source x target
matrices."""

import functools
import shlex
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from xlgrid.base.files import write_text
from xlgrid.base.profiles import profiles
from xlgrid.plan.load import options_of
from xlgrid.plan.plan import Plan
from xlgrid.products.exhibits import Exhibit
from xlgrid.products.report import Partial, Report
from xlgrid.products.train import Run
from xlgrid.report import screen
from xlgrid.report.overview import Failure, Overview, failed_files, look
from xlgrid.report.screen import Screen

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

# The maximum numbers of reasons of failures and of trainings in a summary. The first one is also used after a run of
# Snakemake.
REASONS, TRAININGS = 3, 6
# Between two looks, of `watch`.
SECONDS = 5
# The maximum number of printed combinations of task, encoder and method whose runs have learnt nothing.
KINDS = 3
# State of a cell or run -> its mark and colour. An entry of a matrix shows the first of these states that one of its
# seeds has.
STATES = {
    "failed": ("✗", "red"),
    "running": ("▶", "yellow"),
    "training": ("▷", "yellow"),
    "queued": ("…", "cyan"),
    "stale": ("↻", "yellow"),
    "waiting": ("", "dim"),
    "done": ("", "green"),
}


def matrices(overview: Overview, width: int) -> Iterator["Table | Text"]:
    """The title and table of each task, encoder and method: the numbers of finished and planned seeds for each source
    and target.

    A matrix that is wider than `width` continues in another table, so that codes and counts are never cut.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    for names, entries in by_method(overview).items():
        sources, targets = axes(entries)
        marks = {place: entry(states) for place, states in entries.items()}
        counts = max(len(text) for text, _ in marks.values())
        first = max(map(len, ["source", *sources])) + 2
        tables: list[list[str]] = [[]]
        room = width - first
        for target in targets:
            room -= max(len(target), counts) + 2
            if room < 0 and tables[-1]:
                tables.append([])
                room = width - first - max(len(target), counts) - 2
            tables[-1].append(target)
        for number, columns in enumerate(tables):
            yield Text(f"{' · '.join(names)}: seeds done of those planned{', continued' if number else ''}", "bold")
            table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
            table.add_column("source", no_wrap=True)
            for target in columns:
                table.add_column(target, no_wrap=True, min_width=counts)
            for source in sources:
                row = [marks.get((source, target), ("", "")) for target in columns]
                table.add_row(source, *(Text(*entry) for entry in row))
            yield table
            yield Text()


def by_method(overview: Overview) -> dict[tuple[str, str, str], dict[tuple[str, str], list[str]]]:
    """(task, encoder, method) -> (source, target) -> the states of the cells of all seeds."""
    groups: dict[tuple[str, str, str], dict[tuple[str, str], list[str]]] = defaultdict(lambda: defaultdict(list))
    for cell, state in overview.cells.items():
        groups[cell.task, cell.encoder, cell.method][cell.source.data, cell.target].append(state)
    return groups


def axes(entries: Collection[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """The sources and the targets of the entries of a matrix, each once, in order."""
    sources, targets = (list(dict.fromkeys(codes)) for codes in zip(*entries, strict=True))
    return sources, targets


def entry(states: list[str]) -> tuple[str, str]:
    """The text of an entry of a matrix, and its colour."""
    done = states.count("done")
    mark, style = STATES[next(state for state in STATES if state in states)]
    return f"{done}/{len(states)} {mark}".strip(), "" if done and style == "dim" else style


def totals(overview: Overview) -> "Text":
    """The numbers of cells and runs in each state, the cells and runs of other studies, the runs that have learnt
    nothing, the jobs in flight, and the remaining time."""
    from rich.text import Text

    lines = []
    for kind, states in (("cells", overview.cells), ("runs", overview.runs)):
        count = Counter(states.values())
        line = Text(f"{count['done']:,} of {len(states):,} {kind} ").append("done", STATES["done"][1])
        for state, (mark, style) in STATES.items():
            if state == "done" or not count[state]:
                continue
            words = f"{state} {mark}".strip()
            if state == "stale":
                words = f"older than their run, so that Snakemake makes them again {mark}"
            if state == "failed" and kind == "cells":
                jobs = len(set(overview.broken.values()))
                words = f"wait for {jobs:,} failed {'job' if jobs == 1 else 'jobs'} (✗)"
            line.append(f", {count[state]:,} ").append(words, style)
        lines.append(line)
    if overview.shared:
        lines.append(Text(overview.shared))
    lines += [Text(line, "yellow") for line in learnt_nothing(overview)]
    if overview.flight:
        flight = overview.flight
        parts = [
            f"{rule} {', '.join(f'{flight[rule, of]:,} {of}' for of in ('running', 'queued') if flight[rule, of])}"
            for rule in sorted({rule for rule, _ in flight})
        ]
        lines.append(Text(f"in flight: {'; '.join(parts)}"))
    if overview.left:
        lines.append(Text(overview.left))
    return Text("\n").join(lines)


def learnt_nothing(overview: Overview) -> list[str]:
    """Lines about the runs that have learnt nothing, by task, encoder and method; empty if all have learnt
    something."""
    groups: dict[tuple[str, str, str], list[Run]] = defaultdict(list)
    for run in overview.learnt_nothing:
        groups[run.task, run.encoder, run.method].append(run)
    if not groups:
        return []
    finished = [*overview.runs.values()].count("done")
    of_all = f"{len(overview.learnt_nothing):,} of {finished:,} finished runs {'has' if finished == 1 else 'have'} learnt nothing"
    lines = [f"{of_all}: try another `lr`, more steps or more examples"]
    for names, runs in [*groups.items()][:KINDS]:
        first = f"{runs[0].source} seed {runs[0].seed}: {overview.learnt_nothing[runs[0]]}"
        lines.append(f"  {' · '.join(names)}: {len(runs):,}, such as {first}")
    if len(groups) > KINDS:
        lines.append(f"  and those of {len(groups) - KINDS:,} more tasks, encoders and methods")
    return lines


def summary(overview: Overview, width: int) -> list["Text"]:
    """The summary of a study: the bars of all stages, `width` characters wide, the totals, a few trainings in progress,
    and the failures of a few reasons; or, before the study begins, the commands that begin it."""
    from rich.text import Text

    bars = screen.bars(overview.stages, width)
    lines = [Text(f"{overview.study}: jobs done of those planned", "bold"), *bars, *totals(overview).split("\n")]
    if not overview.has_begun:
        return [*lines, Text("\n".join(beginning(overview)))]
    texts = failures(overview, together=True)
    if more := len(texts[REASONS:]):
        reasons = f"{more:,} more {'reason' if more == 1 else 'reasons'}"
        texts[REASONS:] = [f"failures for {reasons}: xlgrid status {shlex.quote(overview.named)} --matrix"]
    return [*lines, *screen.training_lines(overview.trainings, TRAININGS), *(Text(text, "red") for text in texts)]


def beginning(overview: Overview) -> list[str]:
    """Lines with the commands that begin a study."""
    options = options_of(overview.named)
    command = ["--profile", "laptop", *options, *(["--"] if options else []), Report(overview.study).path]
    return [
        "The study has not begun. These commands check its requirements and run it:",
        f"  xlgrid check {shlex.quote(overview.named)}",
        f"  snakemake {shlex.join(command)}",
    ]


def on_one_screen(overview: Overview, title: str, width: int, height: int) -> list["Text"]:
    """The summary in at most `height` lines of `width` characters. The least urgent contents are left out."""
    broken = list(dict.fromkeys([*overview.broken.values(), *overview.others]))
    notes = [*totals(overview).plain.splitlines(), *([] if overview.has_begun else beginning(overview))]
    return screen.draw(Screen(title, overview.stages, overview.trainings, broken, notes), width, height)


class Trouble(NamedTuple):
    """Jobs that failed for the same reason: the file of the first one, with numbers; the reason; the log of the first one; and
    the command that runs the jobs again."""

    what: str
    reason: str
    log: str
    again: str

    def __str__(self) -> str:
        return f"{self.what}\n  reason: {self.reason}\n  log: {self.log}\n  again: {self.again}"


def troubles(overview: Overview, together: bool) -> Iterator[Trouble]:
    """The troubles of each failed job, or with `together`, of all jobs of a kind that failed for the same reason."""
    waiting = Counter(overview.broken.values())
    failed = list(dict.fromkeys([*waiting, *overview.others]))
    for group in screen.by_reason(failed) if together else [[failure] for failure in failed]:
        first, number = group[0], sum(waiting[failure] for failure in group)
        more = f" and {len(group) - 1:,} more" if len(group) > 1 else ""
        wait = f" ({number:,} cells wait for {'them' if more else 'it'})" if number else ""
        yield Trouble(f"{first.target}{more}{wait}", first.reason, first.log, _again(overview, group))


def failures(overview: Overview, together: bool) -> list[str]:
    """The text of each of the `troubles`."""
    return [*map(str, troubles(overview, together))]


def _again(overview: Overview, group: list[Failure]) -> str:
    """The command that deletes damaged files and runs the failed jobs again."""
    damaged = dict.fromkeys(path for failure in group for path in failure.damaged)
    delete = f"{shlex.join(['rm', '-r', *damaged])} && " if damaged else ""
    # The report needs all files, and its path is shorter than a long list of files.
    targets = [failure.target for failure in group] if len(group) <= 10 else [Report(overview.study).path]
    profile = profiles().get(group[0].cluster)
    options = f"--profile {profile}" if profile else "--cores all --rerun-incomplete"
    return f"{delete}snakemake {options} {shlex.join([*options_of(overview.named), '--', *targets])}"


def show(overview: Overview, matrix: bool = False) -> None:
    """Print the summary of a study or, with `matrix`, all matrices, the totals and all failures."""
    terminal = console()
    if not matrix:
        for line in summary(overview, terminal.width):
            terminal.print(line, soft_wrap=True)
        return
    for part in matrices(overview, terminal.width):
        terminal.print(part)
    terminal.print(totals(overview), soft_wrap=True)
    print_failures(terminal, failures(overview, together=True))


def print_failures(terminal: "Console", texts: list[str]) -> None:
    for text in texts:
        terminal.print(text, style="red", markup=False, highlight=False, soft_wrap=True)


def watch(plan: Plan, folder: str | Path, matrix: bool = False) -> None:
    """Show the state of a study repeatedly, until all cells are done or the user presses Ctrl-C: a summary on one
    screen or, with `matrix`, totals, failures and matrices.

    Args:
        folder: the executor's ledger.
    """
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    terminal, overview = console(), look(plan, folder)
    with suppress(KeyboardInterrupt), Live(console=terminal, auto_refresh=False, screen=True) as live:
        while True:
            title = f"{plan.study.name} at {time.strftime('%H:%M:%S')}, every {SECONDS} s until Ctrl-C"
            if matrix:
                reasons = [
                    Text(text.partition("\n  log:")[0].replace("\n  ", ": "), style="red")
                    for text in failures(overview, together=True)[:5]
                ]
                # The terminal cuts off the bottom, so the most informative parts come first.
                shown = Group(Text(title, style="dim"), totals(overview), *reasons, *matrices(overview, terminal.width))
            else:
                shown = Group(*on_one_screen(overview, title, terminal.width, terminal.height - 1))
            live.update(shown, refresh=True)
            if set(overview.cells.values()) == {"done"}:
                break
            time.sleep(SECONDS)
            overview = look(plan, folder)
    show(overview, matrix)


def console() -> "Console":
    """The console for the terminal. For a file or pipe, it has no limit of width."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=1000)


def partial(plan: Plan, ledger: Path, log: Path | None) -> None:
    """After an incomplete run, report failed jobs, render every exhibit and judge the claims from the existing cells.

    Failed jobs are printed, and `failed.txt` lists all of them. The files are those of `xlgrid.products.report.Partial`.

    Args:
        ledger: the folder of the executor.
        log: Snakemake's log of the run.
    """
    from xlgrid.exhibits import claims

    overview, results = look(plan, ledger, failed_files(log) if log else ()), Partial(plan.study.name)
    listed, texts = Path(results.path), failures(overview, together=False)
    # The jobs may have failed because the disk is full.
    try:
        if texts:
            print_failures(console(), failures(overview, together=True)[:REASONS])
            console().print(f"{listed} lists all failed jobs.", soft_wrap=True)
            write_text(listed, "\n\n".join(texts) + "\n")
        else:
            # The run was stopped, and the failures of an earlier run are resolved.
            listed.unlink(missing_ok=True)
            console().print("No job has failed.", soft_wrap=True)
    except OSError as error:
        print(f"{listed}: {error}", file=sys.stderr)
    jobs: dict[str, Callable[[], None]] = {}
    if plan.study.claims:
        jobs["claims"] = functools.partial(claims.render, plan.study, plan.cells, Path(results.folder))
    for name, exhibit in ((name, plan.study.exhibit(name)) for name in plan.study.exhibits):
        folder = results.path_of(Exhibit(plan.study.name, name).folder)
        jobs[f"exhibit {name}"] = functools.partial(exhibit.render, name, plan, folder)
        if exhibit.is_compared:
            jobs[f"comparison of {name}"] = functools.partial(exhibit.render, name, plan, folder, compare=True)
    for name, render in jobs.items():
        # An exhibit without results does not prevent the others from being rendered.
        try:
            render()
        except (ValueError, OSError) as error:
            print(f"{name}: {error}", file=sys.stderr)
