"""One run of Snakemake: what its events say about jobs, and what follows from them: stages, failures, the time left."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from logging import LogRecord
from typing import NamedTuple

from xlgrid.base.clock import minutes
from xlgrid.report import ledger
from xlgrid.report.overview import Failure, last_error
from xlgrid.report.screen import Screen, total
from xlgrid.report.stages import OTHER, RULES, TRAINING, Stage, stage_of_rule
from xlgrid.report.trainings import Training, training

# A training counts for the time that a job takes once it has done this share of its steps.
SHARE = 0.05
# Seconds that a job of these stages is taken to need before one has ended.
SHORT = {"exhibits": 3.0, "report": 5.0}


class Job(NamedTuple):
    """A job that Snakemake has handed to an executor.

    Attributes:
        log: the last of its logs; empty without any.
        is_local: whether it runs where Snakemake runs, and at once.
    """

    rule: str
    outputs: tuple[str, ...]
    log: str
    is_local: bool


class Workflow:
    """The state of a run. Times are seconds on any clock that only moves forward.

    Attributes:
        jobs: the jobs that are queued or running, by Snakemake's number.
        running: the numbers of those that run, as of the last `look`.
        finished: the outputs of all jobs that are done.
        failures: job -> why it failed; a job that is tried again has no failure.
        trainings: job -> how far its training was at the last `look`.
        reports: the pages of reports that were made.
    """

    def __init__(self, now: float) -> None:
        self.began = self.looked = now
        # Whether Snakemake itself runs the jobs, so that they run as soon as they are handed over.
        self.runs_jobs = False
        self.planned: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.jobs: dict[int, Job] = {}
        # Rule -> its jobs in `jobs`, of which there may be tens of thousands.
        self.flight: Counter[str] = Counter()
        self.running: set[int] = set()
        self.finished: set[str] = set()
        self.failures: dict[int, Failure] = {}
        self.failed_rules: dict[int, str] = {}
        self.trainings: dict[int, Training] = {}
        # Job -> the share of its training that was done when it was first seen. A training may continue an earlier one.
        self.first_shares: dict[int, float] = {}
        self.reports: list[str] = []
        self.studies: dict[str, None] = {}
        # Rule -> seconds of this run that its jobs took; jobs that run at a time share them.
        self.spent: defaultdict[str, float] = defaultdict(float)
        # Rule -> jobs that ran at the last look.
        self.ran: Counter[str] = Counter()

    def plan(self, stats: Mapping[str, int]) -> None:
        """Note how many jobs of each rule there are. The target `all` makes nothing and is left out."""
        self.planned = Counter({rule: jobs for rule, jobs in stats.items() if rule not in ("total", "all")})

    def submit(self, record: LogRecord) -> None:
        """Note that Snakemake has handed a job to an executor, perhaps once more."""
        number, rule = record.__dict__["jobid"], record.__dict__["rule_name"]
        if rule not in self.planned:
            return
        outputs = tuple(record.__dict__["output"])
        log = "".join(record.__dict__["log"][-1:])
        self.leave(number)
        self.flight[rule] += 1
        self.jobs[number] = Job(rule, outputs, log, bool(record.__dict__["local"]) or self.runs_jobs)
        self.retry(number)
        for path in outputs[:1]:
            if path.startswith("results/"):
                self.studies[path.split("/")[1]] = None

    def finish(self, number: int) -> None:
        """Note that a job is done."""
        if job := self.leave(number):
            self.done[job.rule] += 1
            self.finished.update(job.outputs)
            if job.rule == "report_html":
                self.reports += job.outputs[:1]

    def fail(self, number: int, why: str) -> Failure | None:
        """Note that a job has failed; the failure, or None if the job is not known, or its failure is."""
        job = self.leave(number)
        if job is None:
            return None
        failure = Failure(next(iter(job.outputs), job.rule), why, job.log)
        self.failures[number], self.failed_rules[number] = failure, job.rule
        return failure

    def retry(self, number: int) -> Failure | None:
        """Note that a job is tried again; why it has failed, or None if it has not."""
        self.failed_rules.pop(number, None)
        return self.failures.pop(number, None)

    def leave(self, number: int) -> Job | None:
        """The job of a number, which is not queued or running any more."""
        self.running.discard(number)
        self.trainings.pop(number, None)
        self.first_shares.pop(number, None)
        job = self.jobs.pop(number, None)
        if job:
            self.flight[job.rule] -= 1
        return job

    def look(self, now: float, running: set[int], trainings: Mapping[int, Training]) -> None:
        """Note which jobs run, and how far trainings are.

        The time since the last look belongs to the rules of the jobs that ran then: a short job may end, and the next one of
        its rule begin, between two looks.
        """
        for rule, jobs in self.ran.items():
            self.spent[rule] += (now - self.looked) * jobs / self.ran.total()
        self.looked = now
        self.running = running & self.jobs.keys()
        self.ran = Counter(self.jobs[number].rule for number in self.running)
        self.trainings = {number: reached for number, reached in trainings.items() if number in self.running}
        for number, reached in self.trainings.items():
            self.first_shares.setdefault(number, reached.share)

    def stages(self) -> list[Stage]:
        """The jobs of this run in each stage that has any."""
        running = Counter(self.jobs[number].rule for number in self.running)
        failed = Counter(self.failed_rules.values())
        stages = []
        for name in (*RULES, OTHER):
            rules = [rule for rule in self.planned if stage_of_rule(rule) == name]
            jobs, done, runs, flight, fails = (
                sum(numbers[rule] for rule in rules)
                for numbers in (self.planned, self.done, running, self.flight, failed)
            )
            if jobs:
                stages.append(Stage(name, jobs, done, runs, flight - runs, fails))
        return stages

    def left(self) -> str:
        """The time left: "about 2 min left", "more than 5 min left" where a rule of no known duration is still to come, or ""."""
        shares: defaultdict[str, float] = defaultdict(float)
        gained: defaultdict[str, float] = defaultdict(float)
        for number, reached in self.trainings.items():
            shares[self.jobs[number].rule] += reached.share
            gained[self.jobs[number].rule] += reached.share - self.first_shares[number]
        failed = Counter(self.failed_rules.values())
        seconds, is_known = 0.0, True
        for rule, jobs in self.planned.items():
            rest = jobs - self.done[rule] - failed[rule]
            if rest <= 0:
                continue
            counted = self.done[rule] + (gained[rule] if gained[rule] >= SHARE else 0)
            if counted:
                seconds += max(0.0, rest - shares[rule]) * self.spent[rule] / counted
            elif stage_of_rule(rule) in SHORT:
                seconds += rest * SHORT[stage_of_rule(rule)]
            else:
                is_known = False
        if seconds < 60:
            return "less than a minute left" if is_known else ""
        return f"{'about' if is_known else 'more than'} {minutes(seconds)} left"

    def screen(self, now: float, notes: Sequence[str]) -> Screen:
        """The content of a terminal's screen at this moment."""
        stages = self.stages()
        sums = total(stages)
        parts = [f"{sums.done:,} of {sums.jobs:,} jobs done", clock(now - self.began), self.left()]
        title = f"{', '.join(self.studies) or 'xlgrid'}: {', '.join(filter(None, parts))}"
        return Screen(title, stages, [*self.trainings.values()], [*self.failures.values()], notes)

    def line(self) -> str:
        """The state in one line, for where there is no terminal."""
        stages = self.stages()
        parts = [f"{stage.name} {stage.done:,}/{stage.jobs:,}" for stage in stages]
        if failed := len(self.failures):
            parts.append(f"{failed:,} failed")
        return "; ".join(filter(None, [", ".join(parts), self.left()]))

    def end(self, now: float) -> str:
        """How the run has ended, in one line."""
        sums = total(self.stages())
        parts = [f"{sums.done:,} of {sums.jobs:,} jobs done in {clock(now - self.began)}"]
        if sums.failed:
            parts.append(f"{sums.failed:,} failed")
        if rest := sums.jobs - sums.done - sums.failed:
            parts.append(f"{rest:,} not done")
        return f"{', '.join(self.studies) or 'xlgrid'}: {', '.join(parts)}"


def running_jobs(jobs: Mapping[int, Job], known: Mapping[str, ledger.Job]) -> set[int]:
    """The numbers of the jobs that run: those that run where Snakemake runs, and those that the executor's ledger knows to run,
    or to be done, which Snakemake has not heard yet."""
    states = {path: job.state for path, job in known.items()}
    return {
        number
        for number, job in jobs.items()
        if job.is_local or (job.outputs and states.get(job.outputs[0]) in ("running", "done"))
    }


def trainings(jobs: Mapping[int, Job], running: set[int]) -> dict[int, Training]:
    """How far the trainings among the running jobs are, from the ends of their logs."""
    return {
        number: training(job.outputs[0], job.log)
        for number, job in jobs.items()
        if number in running and job.rule in TRAINING
    }


def reason(record: LogRecord) -> str:
    """Why a job has failed: the last error in its logs, and the executor's cause where that says more than an exit status."""
    error = ""
    for path in record.__dict__["log"]:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                error = last_error(file.read()).message or error
        except OSError:
            continue
    said = (record.__dict__["rule_msg"] or "").strip().partition("\n")[0]
    is_exit = said.startswith("exception: ")
    if error and (is_exit or not said):
        return error
    return ": ".join(filter(None, [said, error])) or "it ended without a message: was it killed?"


def clock(seconds: float) -> str:
    """A number of seconds as on a stopwatch: `0:07`, `1:02:03`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
