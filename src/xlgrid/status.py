"""A study at a glance: source x target matrices of what is done, and why the rest is not."""

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from xlgrid.files import write_text
from xlgrid.grid import Cell, cells
from xlgrid.study import Study


class Failure(NamedTuple):
    """A job that ended in an error: the file it should have made, why not, its log, and the command to try again."""

    target: str
    reason: str
    log: str
    command: str


def jobs(study: Study, cell: Cell) -> Iterator[tuple[str, str]]:
    """File and log of every job that a cell rests on, in the order in which the rules run them; its own comes last."""
    results, logs = f"results/{study.name}", f"results/{study.name}/logs"
    sources = cell.source.split("+")
    if study.tasks[cell.task].data is None:
        yield f"{results}/data/{cell.task}/meanings.parquet", f"{logs}/data/{cell.task}/meanings.log"
    for code in dict.fromkeys([*sources, cell.target]):
        yield f"{results}/data/{cell.task}/{code}/test.parquet", f"{logs}/data/{cell.task}/{code}.log"
    mini = study.encoders[cell.encoder].mini
    for code in mini.languages if mini else ():
        yield f"{results}/text/{code}.parquet", f"{logs}/text/{code}.log"
    yield f"{cell.encoder_folder}/model.safetensors", f"{logs}/encoders/{cell.encoder}.log"
    for code, split in [*((code, split) for code in sources for split in ("train", "dev")), (cell.target, "test")]:
        place = f"tokens/{cell.task}/{cell.encoder}/{code}/{split}"
        yield f"{results}/{place}.arrow", f"{logs}/{place}.log"
    yield f"{cell.run.folder}/run.json", f"{cell.run.folder.replace(results, logs, 1)}.log"
    yield cell.path, cell.path.replace(results, logs, 1).replace(".json", ".log")


def reason_of(log: str | Path) -> str | None:
    """The last error in a log, or None if there is none."""
    if not Path(log).exists():
        return None
    lines = [line.strip() for line in Path(log).read_text(encoding="utf-8", errors="replace").splitlines()]
    errors = [
        line for line in lines if line.startswith("error:") or line.split(":")[0].endswith(("Error", "Exception"))
    ]
    return errors[-1].removeprefix("error: ") if errors else None


def failed_files(log: str | Path) -> set[str]:
    """The files that failed jobs should have made, from the log of a run of Snakemake."""
    text = Path(log).read_text(encoding="utf-8", errors="replace")
    found = re.findall(r"^Error in rule [^\n]*\n(?:[ ]+[^\n]*\n)*?[ ]+output: ([^\n]*)$", text, re.MULTILINE)
    return {name for line in found for name in line.split(", ")}


def failures(study: Study, planned: list[Cell], failed: Collection[str] = ()) -> dict[Cell, Failure]:
    """Why planned cells do not exist: for each the first job on the way to it that failed, if any did.

    Args:
        failed: files whose jobs are known to have failed, with or without a message in their log.
    """
    found: dict[Cell, Failure] = {}
    for cell in planned:
        if Path(cell.path).exists():
            continue
        for target, log in jobs(study, cell):
            reason = reason_of(log) or ("it ended without a message: was it killed?" if target in failed else None)
            if reason and not Path(target).exists():
                command = f"snakemake --cores all --config study={study.name} -- {target}"
                found[cell] = Failure(target, reason, log, command)
                break
    return found


def show(study: Study, report: Path | None = None, failed: Collection[str] = ()) -> None:
    """Print the matrices and the failures, see `failures`; write the failures to `report` too, if given."""
    from rich.console import Console
    from rich.table import Table

    planned = cells(study)
    broken = failures(study, planned, failed)
    console = Console()
    # Codes and counts are never cut: a matrix that is wider than the terminal goes on in the next line.
    wide = Console(width=1000)
    for task, encoder, method in dict.fromkeys((c.task, c.encoder, c.method) for c in planned):
        chosen = [c for c in planned if (c.task, c.encoder, c.method) == (task, encoder, method)]
        targets = list(dict.fromkeys(c.target for c in chosen))
        table = Table("source", *targets, title=f"{task} · {encoder} · {method}: seeds done of those planned")
        for source in dict.fromkeys(c.source for c in chosen):
            row = []
            for target in targets:
                here = [c for c in chosen if (c.source, c.target) == (source, target)]
                done = sum(Path(c.path).exists() for c in here)
                bad = any(c in broken for c in here)
                style = "red" if bad else "green" if done == len(here) else "dim"
                row.append(f"[{style}]{done}/{len(here)}{' ✗' if bad else ''}[/]" if here else "")
            table.add_row(source, *row)
        wide.print(table)
    reasons = list(dict.fromkeys(broken.values()))
    done = sum(Path(c.path).exists() for c in planned)
    console.print(f"{done} of {len(planned)} cells done, {len(broken)} wait for {len(reasons)} failed jobs (✗)")
    lines = [
        f"{f.target} ({sum(f == other for other in broken.values())} cells wait for it)\n"
        f"  reason: {f.reason}\n  log: {f.log}\n  again: {f.command}"
        for f in reasons
    ]
    for line in lines:
        console.print(line, style="red", markup=False, highlight=False, soft_wrap=True)
    if report:
        write_text(report, "\n\n".join(lines) + "\n")
