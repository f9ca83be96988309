"""A study on one screen: a bar for each stage, trainings in progress, and failures, in a limited number of lines."""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from xlgrid.report.overview import Failure
from xlgrid.report.stages import Stage
from xlgrid.report.trainings import Training, name_of

if TYPE_CHECKING:
    from rich.text import Text

T = TypeVar("T")
# The lengths of the longest and the shortest bar in characters. A narrower terminal shows only the numbers.
LONGEST, SHORTEST = 40, 6
# State of jobs -> the character and colour of their part of a bar, in the order of the parts. The parts also differ
# without colours.
PARTS = {"done": ("█", "green"), "failed": ("▞", "red"), "running": ("▒", "yellow")}
REST = ("░", "dim")


class Screen(NamedTuple):
    """The contents of a screen.

    Attributes:
        title: the first line.
        stages: see `xlgrid.report.stages.Stage`.
        trainings: the trainings in progress.
        failures: the jobs that have failed.
        notes: the last lines, such as the path of the full log.
    """

    title: str
    stages: Sequence[Stage]
    trainings: Sequence[Training] = ()
    failures: Sequence[Failure] = ()
    notes: Sequence[str] = ()


def draw(screen: Screen, width: int, height: int) -> list["Text"]:
    """The lines of a screen, at most `height` lines of at most `width` characters. If there are too few lines, the
    least urgent contents are left out.

    The title and the bars come first, then failures, then trainings. A third of the lines is reserved for trainings.
    """
    from rich.text import Text

    title, notes = Text(screen.title, "bold"), [Text(note, "dim") for note in screen.notes]
    stages = bars(screen.stages, width)
    if 1 + len(stages) + len(notes) > height:
        stages = bars([total(screen.stages)], width)
    room = height - 1 - len(stages) - len(notes)
    below: list[Text] = []
    if room > 1:
        # An empty line separates the bars from the lines below.
        for_trainings = min(len(screen.trainings), (room - 1) // 3)
        failed = failure_lines(screen.failures, room - 1 - for_trainings)
        training = training_lines(screen.trainings, room - 1 - len(failed))
        below = [Text(), *failed, *training] if failed or training else []
    lines = [title, *stages, *below, *notes][: max(1, height)]
    for line in lines:
        line.truncate(max(1, width), overflow="ellipsis")
    return lines


def total(stages: Sequence[Stage]) -> Stage:
    """The sums over all stages."""
    sums = [sum(numbers) for numbers in zip(*(stage[1:] for stage in stages), strict=True)]
    return Stage("all", *sums) if sums else Stage("all", 0)


def bars(stages: Sequence[Stage], width: int) -> list["Text"]:
    """A line for each stage: its name, a bar, the numbers of finished and of all jobs, and the numbers of jobs in other
    states."""
    from rich.text import Text

    names = max((len(stage.name) for stage in stages), default=0)
    counts = [f"{stage.done:,}/{stage.jobs:,}" for stage in stages]
    longest = max(map(len, counts), default=0)
    states = [_states(stage) for stage in stages]
    room = width - names - longest - max(map(len, states), default=0) - 4
    length = min(LONGEST, room) if room >= SHORTEST else 0
    lines = []
    for stage, count, state in zip(stages, counts, states, strict=True):
        line = Text(f"{stage.name:<{names}} ", no_wrap=True)
        if length:
            line.append_text(_bar(stage, length)).append(" ")
        line.append(f"{count:>{longest}}", "green" if stage.done == stage.jobs else "")
        line.append(f"  {state}" if state else "", "red" if stage.failed else "yellow")
        lines.append(line)
    return lines


def _states(stage: Stage) -> str:
    """The numbers of jobs that are running, queued and failed, as words."""
    return ", ".join(
        f"{number:,} {state}" for state in ("running", "queued", "failed") if (number := getattr(stage, state))
    )


def _bar(stage: Stage, length: int) -> "Text":
    from rich.text import Text

    bar, jobs, at = Text(), 0, 0
    for state, (character, style) in PARTS.items():
        jobs += getattr(stage, state)
        # The length is rounded down, so that a bar is full only when all jobs are done.
        end = length * jobs // max(1, stage.jobs)
        bar.append(character * (end - at), style)
        at = end
    return bar.append(REST[0] * (length - at), REST[1])


def training_lines(trainings: Sequence[Training], most: int) -> list["Text"]:
    """A line for each training with its step and score, at most `most` lines. The training nearest to its end is
    first."""
    from rich.text import Text

    ordered = sorted(trainings, key=lambda training: (-training.share, training.name))
    shown, more = _first(ordered, most)
    names = max((len(training.name) for training in shown), default=0)
    lines = []
    for training in shown:
        step = f"step {training.step:,}/{training.steps:,}" if training.steps else "starts"
        score = "" if training.score is None else f"  dev {training.score:.2f}"
        lines.append(Text(f"▶ {training.name:<{names}}  {step}{score}", "yellow"))
    return [*lines, *([Text(f"  and {more:,} more trainings", "yellow")] if more else [])][: max(0, most)]


def failure_lines(failures: Sequence[Failure], most: int) -> list["Text"]:
    """The failures by reason, at most `most` lines: three lines for each reason, or one line if there is no room."""
    from rich.text import Text

    groups = by_reason(failures)
    lines = [line for group in groups for line in (f"✗ {_who(group)}", *_why(group[0]))]
    if len(lines) > most:
        shown, _ = _first(groups, most)
        lines = [f"✗ {_who(group)}: {group[0].reason} ({group[0].log})" for group in shown]
        if more := sum(map(len, groups[len(shown) :])):
            lines.append(f"✗ {more:,} more failed")
        lines = lines[: max(0, most)]
    return [Text(line, "red") for line in lines]


def by_reason(failures: Sequence[Failure]) -> list[list[Failure]]:
    """The failures in groups of jobs of the same kind that failed for the same reason."""
    groups: dict[tuple[str, str, str], list[Failure]] = defaultdict(list)
    for failure in failures:
        kind = failure.target.split("/")[2] if failure.target.count("/") > 1 else failure.target
        groups[kind, failure.reason, failure.cluster].append(failure)
    return [*groups.values()]


def _who(group: Sequence[Failure]) -> str:
    more = f" and {len(group) - 1:,} more" if len(group) > 1 else ""
    return f"{name_of(group[0].target)}{more}"


def _why(failure: Failure) -> tuple[str, str]:
    return f"  reason: {failure.reason}", f"  log: {failure.log}"


def _first(values: Sequence[T], most: int) -> tuple[Sequence[T], int]:
    """The first values, with a line each, and the number of other values, which need one more line."""
    if len(values) <= most:
        return values, 0
    shown = values[: max(0, most - 1)]
    return shown, len(values) - len(shown)
