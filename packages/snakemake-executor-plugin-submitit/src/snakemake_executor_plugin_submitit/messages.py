"""Messages between the head and its workers, so that neither has to look into the ledger again and again.

A worker says that a job has ended, that it waits for another bundle, or that it leaves. The head names the next bundle, or
sends the worker away. A message is one datagram, which may be lost, doubled or late, so that the ledger decides in each case:
without messages all goes on as with them, but later.
"""

import contextlib
import fcntl
import hmac
import json
import secrets
import select
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

# Bytes of the digest that begins a message, and bytes that a message has at most.
DIGEST, LONGEST = 16, 4096
# The call of the kernel that tells the IPv4 address of an interface.
SIOCGIFADDR = 0x8915


@dataclass(frozen=True)
class Address:
    """Where a head takes messages.

    Attributes:
        hosts: IPv4 addresses of its machine; a worker may reach only some of them.
        key: signs each message, so that those of strangers are ignored.
    """

    hosts: tuple[str, ...]
    port: int
    key: str


def seal(message: dict[str, Any], key: str) -> bytes:
    """The datagram of a message."""
    body = json.dumps(message).encode()
    return hmac.digest(key.encode(), body, "sha256")[:DIGEST] + body


def unseal(datagram: bytes, key: str) -> dict[str, Any] | None:
    """The message of a datagram; None if a stranger has sent it."""
    digest, body = datagram[:DIGEST], datagram[DIGEST:]
    if not hmac.compare_digest(digest, hmac.digest(key.encode(), body, "sha256")[:DIGEST]):
        return None
    message: dict[str, Any] = json.loads(body)
    return message


class Mail:
    """The head's end: takes messages, and wakes the thread that waits for them.

    Attributes:
        address: where the workers send messages; None without a network, or before `listen`.
    """

    def __init__(self) -> None:
        self.address: Address | None = None
        self._socket: socket.socket | None = None
        self._bell, self._ringer = socket.socketpair()
        self._bell.setblocking(False)
        self._ringer.setblocking(False)

    def listen(self, is_local: bool) -> None:
        """Take messages of workers from now on.

        Args:
            is_local: whether all workers run on this machine.
        """
        with contextlib.suppress(OSError):
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
            self._socket.bind(("127.0.0.1" if is_local else "", 0))
            hosts = ("127.0.0.1",) if is_local else _hosts()
            self.address = Address(hosts, self._socket.getsockname()[1], secrets.token_hex(16))

    def ring(self) -> None:
        """Wake the thread that waits; may be called from any thread."""
        # A full buffer has woken the thread already.
        with contextlib.suppress(BlockingIOError):
            self._ringer.send(b"!")

    def wait(self, seconds: float) -> bool:
        """Wait until a message comes or `ring` is called, for so many seconds at most; whether one of the two has happened."""
        has_woken = self.is_waiting(seconds)
        with contextlib.suppress(BlockingIOError):
            while self._bell.recv(4096):
                pass
        return has_woken

    def is_waiting(self, seconds: float = 0) -> bool:
        """Whether a message has come or `ring` was called, or will be in so many seconds."""
        return _readable([self._bell, *([self._socket] if self._socket else [])], seconds)

    def read(self) -> Iterator[tuple[dict[str, Any], Any]]:
        """Yield the messages that have come, each with the address of its sender."""
        while self._socket and self.address:
            try:
                datagram, sender = self._socket.recvfrom(LONGEST)
            except BlockingIOError:
                return
            except OSError:
                # The kernel tells here that an earlier answer has reached nobody.
                continue
            if message := unseal(datagram, self.address.key):
                yield message, sender

    def send(self, message: dict[str, Any], receiver: Any) -> None:
        """Answer a worker."""
        if self._socket and self.address:
            with contextlib.suppress(OSError):
                self._socket.sendto(seal(message, self.address.key), receiver)


class Line:
    """The worker's end."""

    def __init__(self, address: Address) -> None:
        """Prepare to send messages to a head.

        Raises:
            OSError: this machine has no network.
        """
        self.address = address
        self.hosts = address.hosts
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def send(self, message: dict[str, Any]) -> None:
        """Send a message to the head, if the head can be reached."""
        datagram = seal(message, self.address.key)
        for host in self.hosts:
            with contextlib.suppress(OSError):
                self._socket.sendto(datagram, (host, self.address.port))

    def receive(self, seconds: float, has_to_end: Callable[[], bool]) -> dict[str, Any] | None:
        """Wait for a message of the head; None if none comes in so many seconds, or `has_to_end` says so."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and not has_to_end():
            # The signals of a worker are blocked, so none of them ends the wait.
            _readable([self._socket], min(left, 0.1))
            with contextlib.suppress(OSError):
                datagram, (host, _) = self._socket.recvfrom(LONGEST)
                if message := unseal(datagram, self.address.key):
                    self.hosts = (host,)
                    return message
        return None


def _readable(ends: Iterable[socket.socket], seconds: float) -> bool:
    """Wait until a socket can be read, for so many seconds at most; whether one can."""
    # `select` refuses the descriptors of a process that has opened many files.
    poll = select.poll()
    for end in ends:
        poll.register(end, select.POLLIN)
    return bool(poll.poll(1000 * max(0.0, seconds)))


def _hosts() -> tuple[str, ...]:
    """The IPv4 addresses of this machine, by which other machines may reach it."""
    hosts = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, interface in socket.if_nameindex():
            # An interface may have no such address.
            with contextlib.suppress(OSError):
                answer = fcntl.ioctl(any_socket, SIOCGIFADDR, struct.pack("256s", interface.encode()))
                hosts.append(socket.inet_ntoa(answer[20:24]))
    return tuple(host for host in hosts if not host.startswith("127.")) or ("127.0.0.1",)
