"""A study at a glance: source x target matrices of what is done, and why the rest is not."""

from pathlib import Path
from typing import NamedTuple

from xlgrid.files import write_text
from xlgrid.grid import Cell, Run, cells
from xlgrid.study import Study


class Failure(NamedTuple):
    """A command that ended in an error, and the cells that wait for it."""

    what: Cell | Run
    reason: str
    log: Path
    command: str


def log_of(what: Cell | Run) -> Path:
    """Where the rules keep the log of a run or cell."""
    if isinstance(what, Cell):
        return Path(what.path.replace("/cells/", "/logs/cells/", 1)).with_suffix(".log")
    return Path(what.folder.replace("/runs/", "/logs/runs/", 1) + ".log")


def reason_of(log: Path) -> str | None:
    """The last error in a log, or None if there is none."""
    if not log.exists():
        return None
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    errors = [
        line for line in lines if line.startswith("error:") or line.split(":")[0].endswith(("Error", "Exception"))
    ]
    return errors[-1].removeprefix("error: ") if errors else None


def failures(planned: list[Cell]) -> list[Failure]:
    """What failed among the planned cells and their runs; a run once, however many cells wait for it."""
    found: dict[Cell | Run, Failure] = {}
    for cell in planned:
        if Path(cell.path).exists():
            continue
        trained = Path(cell.run.folder, "run.json").exists()
        what: Cell | Run = cell if trained else cell.run
        target = cell.path if trained else f"{cell.run.folder}/run.json"
        reason = reason_of(log_of(what))
        if reason and what not in found:
            command = f"snakemake --cores all --config study={cell.study} -- {target}"
            found[what] = Failure(what, reason, log_of(what), command)
    return list(found.values())


def show(study: Study, report: Path | None = None) -> None:
    """Print the matrices and the failures; write the failures to `report` too, if given."""
    from rich.console import Console
    from rich.table import Table

    planned = cells(study)
    failed = failures(planned)
    broken = {failure.what for failure in failed}
    console = Console()
    for task, encoder, method in dict.fromkeys((c.task, c.encoder, c.method) for c in planned):
        chosen = [c for c in planned if (c.task, c.encoder, c.method) == (task, encoder, method)]
        targets = list(dict.fromkeys(c.target for c in chosen))
        table = Table("source", *targets, title=f"{task} · {encoder} · {method}: cells done of seeds planned")
        for source in dict.fromkeys(c.source for c in chosen):
            row = []
            for target in targets:
                here = [c for c in chosen if (c.source, c.target) == (source, target)]
                done = sum(Path(c.path).exists() for c in here)
                bad = any(c in broken or c.run in broken for c in here)
                style = "red" if bad else "green" if done == len(here) else "dim"
                row.append(f"[{style}]{done}/{len(here)}{' ✗' if bad else ''}[/]" if here else "")
            table.add_row(source, *row)
        console.print(table)
    done = sum(Path(c.path).exists() for c in planned)
    console.print(f"{done} of {len(planned)} cells done, {len(failed)} failed")
    lines = [f"{f.what}\n  reason: {f.reason}\n  log: {f.log}\n  again: {f.command}" for f in failed]
    for line in lines:
        console.print(line, style="red", markup=False, highlight=False, soft_wrap=True)
    if report:
        write_text(report, "\n".join(lines) + "\n")
