"""Workers whose jobs have ended get the next jobs, and no message that is lost, late or doubled loses or doubles a job."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from stub import Stub, finish
from submitter import Queue

from snakemake_executor_plugin_submitit.bundles import Bundle, Job, Status, name_of, read_bundle
from snakemake_executor_plugin_submitit.dispatch import Dispatcher
from snakemake_executor_plugin_submitit.messages import Address, Line, Mail
from snakemake_executor_plugin_submitit.resources import Request
from snakemake_executor_plugin_submitit.submission import Settings
from snakemake_executor_plugin_submitit.tasks import TaskState


class Machine(Stub):
    """A machine with two cores."""

    free = 2

    def __init__(self) -> None:
        super().__init__()
        self.over: dict[str, str] = {}

    def room(self, request: Request) -> tuple[int, int]:
        return self.free, 2

    def states(self, tasks: Any) -> dict[str, str | None]:
        return {task: self.over.get(task) for task in tasks}


class Hand:
    """A worker: its messages, and the answers."""

    def __init__(self, address: Address, home: Path, life: str = "first") -> None:
        self.line, self.home, self.life = Line(address), home, life

    def tell(self, kind: str, at: Path, age: float = 0) -> None:
        about = {"home": name_of(self.home), "at": name_of(at), "life": self.life, "age": age, "host": "node"}
        self.line.send({"kind": kind, **about})

    def answers(self) -> list[tuple[str, str | None]]:
        """The answers that have come: their kind and the bundle."""
        answers = []
        while answer := self.line.receive(0.05, lambda: False):
            assert answer["life"] == self.life
            answers.append((answer["kind"], answer.get("bundle")))
        return answers


class Office:
    """A head that hears, its cluster, and the worker of its first task.

    Attributes:
        tasks: the name of the task of each job, as Snakemake learns it.
    """

    def __init__(self, folder: Path, cluster: Stub) -> None:
        self.folder, self.cluster = folder / "ledger", cluster
        self.tasks: dict[str, str] = {}
        self.head = self.start()
        self.add("a")
        self.causes = self.poll()
        self.home = cluster.submitted[0]
        assert self.mail.address
        self.hand = Hand(self.mail.address, self.home)

    def start(self) -> Dispatcher:
        self.mail = Mail()
        self.mail.listen(is_local=True)
        bundle = Bundle((), str(self.folder.parent), head=self.mail.address, idle=5)
        settings = Settings(self.folder, 1000, 600, bundle)
        return Dispatcher(self.cluster, settings, self.submitted, say=print, mail=self.mail)

    def submitted(self, job: Job, task: str) -> None:
        self.tasks[job.key] = task

    def add(self, *keys: str, request: Request | None = None) -> None:
        job_request = request or Request(bundle=200)
        self.head.add([(Job(key, "rule", "shell", "true", outputs=(f"{key}.txt",)), job_request, None) for key in keys])

    def poll(self) -> dict[str, str | None]:
        return {verdict.job.key: verdict.cause for verdict in self.head.poll()}

    def rest(self, at: Path) -> None:
        """Let the worker be idle in a bundle, and the head know."""
        self.hand.tell("idle", at)
        self.poll()
        self.hand.answers()

    def wait(self) -> None:
        """Let the worker end its jobs and rest."""
        finish(self.home)
        self.rest(self.home)

    def lent(self) -> Path:
        """Let the worker end its jobs and rest, and give it the job `b`."""
        self.wait()
        self.add("b")
        self.poll()
        [(kind, bundle)] = self.hand.answers()
        assert kind == "take" and bundle
        return self.folder / bundle

    def arrays(self) -> int:
        """How many tasks the cluster has got."""
        return len(self.cluster.submitted)


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def office(tmp_path: Path, machine: Machine) -> Office:
    return Office(tmp_path, machine)


def keys(folder: Path) -> list[str]:
    bundle = read_bundle(folder)
    return [job.key for job in bundle.jobs] if bundle else []


def test_a_worker_whose_jobs_have_ended_gets_the_next_job(office: Office) -> None:
    guest = office.lent()
    assert keys(guest) == ["b"]
    assert office.arrays() == 1, "the job was submitted"
    assert office.tasks["b"] == office.tasks["a"]
    about = json.loads((guest.parent / "array.json").read_text())
    assert about["tasks"] == [office.tasks["a"]], "another head would not find the task"


def test_a_worker_gets_one_bundle_after_the_other(office: Office) -> None:
    guest = office.lent()
    finish(guest)
    office.hand.tell("news", guest)
    assert office.poll() == {"b": None}
    office.rest(guest)
    office.add("c")
    office.poll()
    [(kind, bundle)] = office.hand.answers()
    assert kind == "take" and keys(office.folder / str(bundle)) == ["c"]


def test_an_answer_that_was_lost_is_repeated(office: Office) -> None:
    guest = office.lent()
    office.hand.tell("idle", office.home)
    office.poll()
    assert office.hand.answers() == [("take", name_of(guest))]
    assert office.arrays() == 1


def test_jobs_that_no_worker_begins_are_submitted_when_their_worker_has_left(office: Office) -> None:
    guest = office.lent()
    office.hand.tell("end", office.home)
    office.poll()
    assert office.arrays() == 2
    assert keys(office.cluster.submitted[1]) == ["b"]
    assert not guest.exists(), "another life of the worker would run the job"


def test_a_worker_that_has_left_gets_nothing(office: Office) -> None:
    office.wait()
    office.hand.tell("end", office.home)
    office.hand.tell("idle", office.home)
    office.poll()
    office.add("b")
    office.poll()
    assert office.arrays() == 2


@pytest.mark.parametrize("late", ["another life", "after the beginning"])
def test_a_late_word_of_an_end_returns_no_job(office: Office, late: str) -> None:
    guest = office.lent()
    if late == "another life":
        assert office.mail.address
        Hand(office.mail.address, office.home, "second").tell("end", office.home)
    else:
        office.hand.tell("news", guest)
        office.poll()
        office.hand.tell("end", office.home)
    office.poll()
    office.poll()
    assert office.arrays() == 1, "the job would run twice"
    assert guest.exists() and not (guest / "revoked").exists()


@pytest.mark.parametrize(
    ("state", "is_submitted"), [(None, True), ("running", False), ("done", False)], ids=["not begun", "running", "done"]
)
def test_the_end_of_the_task_decides_about_the_jobs_that_its_worker_got(
    office: Office, machine: Machine, state: Any, is_submitted: bool
) -> None:
    guest = office.lent()
    if state:
        Status(state, time.time(), "host").write(guest, 0)
    machine.over[office.tasks["a"]] = "ENDED"
    causes = {**office.poll(), **office.poll()}
    assert office.arrays() == 1 + is_submitted
    assert causes.get("b", "none") == {None: "none", "running": "killed", "done": None}[state]
    for task in office.head.tasks.all:
        assert task.state is not TaskState.LENT


@pytest.mark.parametrize("why", ["another request", "excluded host"])
def test_a_job_that_a_waiting_worker_may_not_run_gets_a_task_of_its_own(
    office: Office, machine: Machine, why: str
) -> None:
    office.wait()
    if why == "excluded host":
        machine.excluded = ["node"]
        office.head.judge.breaker.forgive = lambda: None  # type: ignore[method-assign]
    office.add("b", request=Request(cpus=2) if why == "another request" else None)
    office.poll()
    assert office.arrays() == 2
    assert office.hand.answers() == []


def test_a_worker_without_jobs_is_sent_away_if_others_need_its_cores(office: Office, machine: Machine) -> None:
    office.wait()
    machine.free = 0
    office.add("b", request=Request(cpus=2))
    office.poll()
    assert office.hand.answers() == [("leave", None)]
    machine.free = 1
    office.poll()
    assert office.arrays() == 2


def test_jobs_are_shared_between_a_worker_and_a_free_core(office: Office, machine: Machine) -> None:
    machine.free = 1
    office.wait()
    # The head knows that such jobs take a minute.
    office.head.judge.durations["rule"] = (1, 60.0)
    office.add("b", "c")
    office.poll()
    assert [kind for kind, _ in office.hand.answers()] == ["take"]
    assert office.arrays() == 2
    assert office.head.submitter.buffer == []


def test_the_end_of_a_run_sends_the_workers_away(office: Office, machine: Machine) -> None:
    office.wait()
    machine.over[office.tasks["a"]] = "ENDED"
    office.head.rest()
    assert office.hand.answers() == [("leave", None)]


def test_a_job_whose_submission_was_not_answered_is_not_given_to_a_worker(tmp_path: Path) -> None:
    queue = Queue()
    office = Office(tmp_path, queue)
    finish(office.home)
    queue.errors = [TimeoutError("no answer")]
    queue.known = OSError("no answer")
    office.add("b", request=Request(mem_mb=1))
    office.poll()
    assert office.head.submitter.pending
    # Now a worker with the same request offers itself.
    office.head.tasks.all[0].request = Request(mem_mb=1)
    office.rest(office.home)
    office.poll()
    assert office.hand.answers() == []
    assert [entry.job.key for entry in office.head.submitter.buffer] == ["b"]


# On a cluster with a queue.


@pytest.mark.parametrize(("age", "is_given"), [(0, True), (500, True), (800, False)])
def test_a_worker_gets_a_job_only_if_the_job_can_have_all_its_minutes(
    tmp_path: Path, age: float, is_given: bool
) -> None:
    """The first task has 10 minutes, and those of a bundle: 600 s and the grace."""
    queue = Queue()
    office = Office(tmp_path, queue)
    office.head.judge.durations["rule"] = (1, 1.0)
    request = Request(minutes=10, bundle=200)
    finish(office.home)
    office.poll()
    office.add("b", request=request)
    office.poll()
    home = queue.submitted[-1]
    assert keys(home) == ["b"]
    assert office.mail.address
    hand = Hand(office.mail.address, home)
    finish(home)
    hand.tell("idle", home, age)
    office.poll()
    office.add("c", request=request)
    office.poll()
    assert [kind for kind, _ in hand.answers()] == ["stay", "take" if is_given else "leave"]


def test_a_worker_holds_no_resources_for_which_a_task_waits(tmp_path: Path) -> None:
    queue = Queue()
    office = Office(tmp_path, queue)
    office.head.judge.durations["rule"] = (1, 600.0)
    finish(office.home)
    office.poll()
    office.add("b")
    office.poll()
    assert office.arrays() == 2
    office.hand.tell("idle", office.home)
    office.poll()
    assert office.hand.answers() == [("leave", None)]


# After a restart of the head.


@pytest.mark.parametrize("lost", ["nothing", "record", "pointer"])
@pytest.mark.parametrize("is_over", [False, True])
def test_another_head_finds_the_job_that_a_worker_got(
    office: Office, machine: Machine, lost: str, is_over: bool
) -> None:
    """The head, or the worker, has noted who has the job; both have unless a node has crashed."""
    guest = office.lent()
    if lost != "pointer":
        (office.home / "next").write_text(json.dumps(name_of(guest)))
    if lost == "record":
        (guest.parent / "array.json").unlink()
    Status("running", time.time(), "host").write(guest, 0)
    name = office.tasks["a"]
    office.head.hold.close()
    if is_over:
        machine.over[name] = "ENDED"
    office.head = office.start()
    office.tasks.clear()
    office.add("b")
    office.poll()
    if is_over:
        assert office.arrays() == 2
        return
    assert (office.arrays(), office.tasks) == (1, {"b": name})
    assert [task.folder for task in office.head.tasks.alive()] == [guest], "the cluster is asked twice"
    finish(guest)
    assert office.poll() == {"b": None}


def test_another_head_asks_for_no_bundle_that_a_worker_has_left(office: Office) -> None:
    guest = office.lent()
    finish(guest)
    office.head.hold.close()
    office.head = office.start()
    assert [task.folder for task in office.head.tasks.alive()] == [office.home]


def test_the_files_of_a_bundle_that_went_well_are_deleted(office: Office, machine: Machine) -> None:
    office.causes |= office.poll()
    guest = office.lent()
    finish(guest)
    office.hand.tell("news", guest)
    office.poll()
    for task_job in list(office.head.tasks.by_key.values()):
        office.head.close(task_job.job)
    assert not guest.parent.exists()
    assert office.home.exists(), "the worker that is started again would not find its first bundle"
    machine.over[office.tasks["a"]] = "ENDED"
    office.poll()
    assert not office.home.exists()


def test_the_log_of_a_worker_stays_if_a_job_of_any_of_its_bundles_has_failed(office: Office, machine: Machine) -> None:
    guest = office.lent()
    Status("failed", time.time(), "host", cause="exception").write(guest, 0)
    office.hand.tell("news", guest)
    assert office.poll()["b"] == "exception"
    for task_job in list(office.head.tasks.by_key.values()):
        office.head.close(task_job.job)
    machine.over[office.tasks["a"]] = "ENDED"
    office.poll()
    assert office.home.exists() and guest.exists()


def test_a_ledger_that_cannot_be_written_leaves_the_jobs_in_the_buffer(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.wait()

    def refuse(*_: Any) -> None:
        raise OSError("no space")

    monkeypatch.setattr(Bundle, "write", refuse)
    office.add("b")
    office.poll()
    assert [entry.job.key for entry in office.head.submitter.buffer] == ["b"]
    assert office.hand.answers() == []
    monkeypatch.undo()
    office.head.submitter.retry_at = 0
    office.poll()
    assert office.head.submitter.buffer == []


# Messages.


def test_a_message_of_a_stranger_is_ignored() -> None:
    mail = Mail()
    mail.listen(is_local=True)
    assert mail.address
    for key in ("stranger", mail.address.key):
        Line(Address(mail.address.hosts, mail.address.port, key)).send({"kind": key})
    assert mail.wait(5)
    time.sleep(0.1)
    assert [message["kind"] for message, _ in mail.read()] == [mail.address.key]


def test_the_thread_that_waits_is_woken_by_a_call_and_by_a_message() -> None:
    mail = Mail()
    assert not mail.wait(0)
    mail.ring()
    assert mail.wait(0) and not mail.wait(0)
    mail.listen(is_local=True)
    assert mail.address
    Line(mail.address).send({})
    assert mail.wait(5)


def test_a_worker_finds_the_head_at_one_of_several_addresses() -> None:
    mail = Mail()
    mail.listen(is_local=True)
    assert mail.address
    line = Line(Address(("192.0.2.99", "127.0.0.1"), mail.address.port, mail.address.key))
    line.send({"kind": "idle"})
    assert mail.wait(5)
    [(_, sender)] = mail.read()
    mail.send({"kind": "stay"}, sender)
    assert line.receive(5, lambda: False) == {"kind": "stay"}
    assert line.hosts == ("127.0.0.1",)
