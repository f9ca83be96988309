"""Workers whose jobs have all ended, and which wait for another bundle.

A worker says so again and again until it is answered. The answer names a bundle, sends the worker away, or lets it wait. Which
bundle a worker has is also in the ledger, so a lost message costs time only.
"""

import time
from collections.abc import Collection
from dataclasses import replace
from typing import Any, NamedTuple

from snakemake_executor_plugin_submitit.bundles import name_of, revoke
from snakemake_executor_plugin_submitit.messages import Mail
from snakemake_executor_plugin_submitit.resources import MINUTES, Request
from snakemake_executor_plugin_submitit.tasks import JobState, Task, Tasks, TaskState, Waiting

# Seconds by which a task of the cluster may have begun before its worker, or may be asked to end before its time.
MARGIN = 90.0


class Offer(NamedTuple):
    """A worker that waits for another bundle.

    Attributes:
        life: the name of its process.
        at: the name of its present bundle.
        began: unix time at which the process began.
        host: where it runs.
        sender: address of the worker.
    """

    life: str
    at: str
    began: float
    host: str
    sender: Any


class Pool:
    """Workers that wait for another bundle, and what they and the others have told.

    Attributes:
        offers: by the home of the worker.
    """

    def __init__(self, mail: Mail, tasks: Tasks) -> None:
        self.mail, self.tasks = mail, tasks
        self.offers: dict[Task, Offer] = {}
        self._unread: list[tuple[dict[str, Any], Any]] = []
        # The processes that have said that they leave.
        self._gone: set[str] = set()

    def hear(self) -> list[Task]:
        """Take the messages that have come, and return the tasks whose statuses may be new; then call `settle`."""
        self._unread = list(self.mail.read())
        names = {message[which]: None for message, _ in self._unread for which in ("home", "at")}
        heard = [self.tasks.by_name[name] for name in names if name in self.tasks.by_name]
        for task in heard:
            task.has_begun = True
        return heard

    def settle(self, is_queued: bool) -> list[Waiting]:
        """Note which workers wait for a bundle. Returns the jobs of guests that no worker begins, because the worker has left.

        Args:
            is_queued: whether the cluster keeps a queue, in which tasks may wait for the resources that the workers hold.
        """
        unread, self._unread = self._unread, []
        returned = []
        for message, sender in unread:
            home = self.tasks.by_name.get(message["home"])
            offer = Offer(message["life"], message["at"], time.time() - message["age"], message["host"], sender)
            if message["kind"] == "idle" and offer.life not in self._gone:
                self._answer(home, offer, is_queued)
            elif message["kind"] == "end":
                self._gone.add(offer.life)
                if home:
                    returned += self._part(home, offer)
        return returned

    def _answer(self, home: Task | None, offer: Offer, is_queued: bool) -> None:
        if home and home.guest:
            if offer.at == name_of(home.guest.folder):
                # The end of a job in it has not been read yet.
                self._send(offer, "stay")
            else:
                self._offer(home.guest, offer)
        elif home is None or home.state is not TaskState.ALIVE or home.request is None or not home.is_finished:
            self._send(offer, "leave" if home is None or home.is_finished else "stay")
        elif is_queued and any(self._is_queued(task, home.request) for task in self.tasks.alive()):
            self._send(offer, "leave")
        else:
            self.offers[home] = offer
            self._send(offer, "stay")

    def _part(self, home: Task, offer: Offer) -> list[Waiting]:
        if home in self.offers and self.offers[home].life == offer.life:
            del self.offers[home]
        guest = home.guest
        if guest is None or guest.has_begun or guest.taker != offer.life:
            return []
        revoke(guest.folder)
        claimed = [job for job in guest.jobs if job.state is JobState.CLAIMED]
        returned = [self.tasks.return_job(job) for job in claimed]
        self.tasks.leave(guest)
        return returned

    def fitting(self, request: Request, tmpdir: str | None, grace: float, excluded: Collection[str]) -> list[Task]:
        """The homes of workers that wait for a bundle and can run jobs with this request.

        Args:
            excluded: hosts to which no job is sent.
        """
        for home in [home for home in self.offers if home.state is not TaskState.ALIVE]:
            del self.offers[home]
        return [
            home
            for home, offer in self.offers.items()
            if home.request
            and offer.host not in excluded
            and _kind(home.request) == _kind(request)
            and home.bundle.tmpdir == tmpdir
            and self.seconds(home, request, grace) > 0
        ]

    def seconds(self, home: Task, request: Request, grace: float) -> float:
        """The seconds for which the worker may still start jobs, so that each has its minutes."""
        if home.bundle.limit is None:
            return float("inf")
        end = self.offers[home].began + home.bundle.limit - grace - MARGIN
        return end - 60 * (request.minutes or MINUTES) - time.time()

    def take(self, guest: Task) -> None:
        """Offer a guest to the worker of its home."""
        assert guest.home
        self._offer(guest, self.offers.pop(guest.home))

    def dismiss(self) -> None:
        """Send away the workers that wait."""
        for offer in self.offers.values():
            self._send(offer, "leave")
        self.offers.clear()

    def _offer(self, guest: Task, offer: Offer) -> None:
        guest.taker = offer.life
        self._send(offer, "take", bundle=name_of(guest.folder))

    def _send(self, offer: Offer, kind: str, **more: str) -> None:
        self.mail.send({"kind": kind, "life": offer.life, "at": offer.at, **more}, offer.sender)

    @staticmethod
    def _is_queued(task: Task, request: Request) -> bool:
        has_begun = task.home or task.has_begun or any(job.has_ended for job in task.jobs)
        return not has_begun and task.request is not None and _kind(task.request) == _kind(request)


def _kind(request: Request) -> Request:
    """What makes workers alike. Their time limits are compared with the time that is left."""
    return replace(request, minutes=None, bundle=1)
