"""Downloads from a server on this machine that behaves as servers do: it cuts transfers, is busy, or has moved the file."""

import gzip
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest
import yaml

from xlgrid.data.downloads import curl
from xlgrid.data.downloads.curl import download

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
CONTENT = bytes(i * i % 251 for i in range(100_000))


class Server(ThreadingHTTPServer):
    """A server of one file.

    Attributes:
        content: the file.
        etag: its version.
        behaviours: what it does at each request, and in the end what it should: busy, gone, moved, cut (half of what is asked for), stalled (half,
            and then nothing until `released`), or whole.
        ranges: whether it sends parts of files.
        released: set when stalled transfers may end.
        asked: the range of each request, and the version that it names.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.etag, self.ranges = CONTENT, '"one"', True
        self.behaviours: list[str] = []
        self.asked: list[tuple[str | None, str | None]] = []
        self.released = Event()

    def url(self, name: str = "file.bin") -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{name}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server = self.server
        server.asked.append((self.headers["Range"], self.headers["If-Range"]))
        behaviour = server.behaviours.pop(0) if server.behaviours else "whole"
        if behaviour in ("busy", "gone"):
            self.send_error(503 if behaviour == "busy" else 404)
            return
        if behaviour == "moved":
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            return
        content, status, first = server.content, 200, 0
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers["Range"] or "")
        if wanted and server.ranges and self.headers["If-Range"] in (None, server.etag):
            first, status = int(wanted[1]), 206
            if first >= len(content):
                self.send_error(416)
                return
        rest = content[first:]
        self.send_response(status)
        self.send_header("Content-Length", str(len(rest)))
        self.send_header("ETag", server.etag)
        if status == 206:
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        self.wfile.write(rest[: len(rest) // 2] if behaviour in ("cut", "stalled") else rest)
        if behaviour == "stalled":
            self.server.released.wait(60)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(curl, "PAUSE", 0.01)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with Server() as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.released.set()
        server.shutdown()


@pytest.mark.parametrize(
    "behaviours",
    [[], ["busy"], ["busy", "busy", "busy"], ["cut"], ["cut", "cut", "busy", "cut"], ["moved"]],
)
def test_a_file_comes_whole_from_a_server_that_is_busy_or_cuts_transfers(
    server: Server, tmp_path: Path, behaviours: list[str]
) -> None:
    server.behaviours = behaviours
    download(server.url(), tmp_path / "a/file.bin", tmp_path / "lock.yaml")
    assert (tmp_path / "a/file.bin").read_bytes() == CONTENT
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["file.bin"]


def test_a_cut_transfer_is_continued_where_it_was_cut(server: Server, tmp_path: Path) -> None:
    server.behaviours = ["cut", "busy", "cut"]
    download(server.url(), tmp_path / "file.bin", tmp_path / "lock.yaml")
    assert server.asked == [
        (None, None),
        ("bytes=50000-", '"one"'),
        ("bytes=50000-", '"one"'),
        ("bytes=75000-", '"one"'),
    ]


def test_transfers_that_bring_something_do_not_count_as_failures(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curl, "ATTEMPTS", 2)
    server.behaviours = ["cut"] * 8
    download(server.url(), tmp_path / "file.bin", tmp_path / "lock.yaml")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


def test_what_a_failed_download_has_got_is_continued_by_the_next_one(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curl, "ATTEMPTS", 2)
    server.behaviours = ["cut", "busy"]
    with pytest.raises(
        ValueError, match=r"cannot download .*503.*Run the same command again.* put the file at .*file\.bin"
    ):
        download(server.url(), tmp_path / "file.bin", tmp_path / "lock.yaml")
    assert not (tmp_path / "file.bin").exists()
    server.asked.clear()
    download(server.url(), tmp_path / "file.bin", tmp_path / "lock.yaml")
    assert server.asked == [("bytes=50000-", '"one"')] and (tmp_path / "file.bin").read_bytes() == CONTENT


def test_a_part_of_another_version_is_not_continued(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curl, "ATTEMPTS", 1)
    server.behaviours = ["cut"]
    with pytest.raises(ValueError, match="cannot download"):
        download(server.url(), tmp_path / "file.bin", tmp_path / "lock.yaml")
    monkeypatch.undo()
    monkeypatch.setattr(curl, "PAUSE", 0.01)
    server.content, server.etag = CONTENT[::-1], '"two"'
    download(server.url(), tmp_path / "file.bin", tmp_path / "lock.yaml")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT[::-1]


@pytest.mark.parametrize(("etag", "content"), [('"one"', CONTENT), ('"two"', CONTENT[::-1])], ids=["same", "changed"])
def test_a_download_that_was_killed_is_continued_if_the_file_is_the_same(
    server: Server, tmp_path: Path, etag: str, content: bytes
) -> None:
    out, part, server.behaviours = tmp_path / "file.bin", tmp_path / "file.bin.part", ["stalled"]
    code = f"from xlgrid.data.downloads.curl import download; download({server.url()!r}, {str(out)!r}, 'lock.yaml')"
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, start_new_session=True) as process:
        deadline = time.monotonic() + 60
        while not (part.exists() and part.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    got = part.stat().st_size
    server.released.set()
    server.asked.clear()
    server.content, server.etag = content, etag
    download(server.url(), out, tmp_path / "lock.yaml")
    assert server.asked[0] == (f"bytes={got}-", '"one"') and out.read_bytes() == content


def test_a_part_of_an_unknown_version_is_not_continued(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(b"of an earlier version")
    download(server.url(), tmp_path / "file.bin", tmp_path / "lock.yaml")
    assert server.asked == [(None, None)] and (tmp_path / "file.bin").read_bytes() == CONTENT


def test_a_server_without_ranges_sends_all_of_the_file_again(server: Server, tmp_path: Path) -> None:
    server.ranges, server.behaviours = False, ["cut"]
    download(server.url(), tmp_path / "file.bin", tmp_path / "lock.yaml")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


def test_a_part_that_is_the_whole_file_is_fetched_anew(server: Server, tmp_path: Path) -> None:
    """The process ended between the last byte and the new name."""
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    (tmp_path / "file.bin.part.version").write_text('"one"')
    download(server.url(), tmp_path / "file.bin", tmp_path / "lock.yaml")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


def test_a_file_that_is_gone_fails_at_once_and_says_where_else_it_is(server: Server, tmp_path: Path) -> None:
    server.behaviours = ["gone"] * 9
    with pytest.raises(ValueError, match=r"404.*put the file at .*file\.bin by hand; the mirror has it"):
        download(server.url(), tmp_path / "file.bin", tmp_path / "lock.yaml", by_hand="the mirror has it")
    assert len(server.asked) == 1


def test_a_server_that_does_not_answer_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curl, "PAUSE", 0.01)
    with Server() as closed:
        url = closed.url()
    with pytest.raises(ValueError, match="cannot download"):
        download(url, tmp_path / "file.bin", tmp_path / "lock.yaml")


def test_the_checksum_of_the_first_download_is_kept_and_another_one_refused(server: Server, tmp_path: Path) -> None:
    lock = tmp_path / "lock.yaml"
    download(server.url(), tmp_path / "file.bin", lock)
    assert yaml.safe_load(lock.read_text()) == {server.url(): hashlib.sha256(CONTENT).hexdigest()}
    server.content = b"other"
    with pytest.raises(ValueError, match=r"the file at this address has changed.*delete the line of this address"):
        download(server.url(), tmp_path / "again.bin", lock)
    assert not list(tmp_path.glob("again*"))


def test_a_known_checksum_is_compared(server: Server, tmp_path: Path) -> None:
    lock = tmp_path / "lock.yaml"
    download(server.url(), tmp_path / "file.bin", lock, hashlib.sha256(CONTENT).hexdigest())
    assert (tmp_path / "file.bin").exists() and not lock.exists()
    digest = hashlib.sha256(CONTENT).hexdigest()
    with pytest.raises(
        ValueError, match=f"has the SHA-256 {digest}, and the study expects {'0' * 64}.*correct `sha256`"
    ):
        download(server.url(), tmp_path / "again.bin", lock, "0" * 64)
    assert not list(tmp_path.glob("again*"))


def test_a_page_in_place_of_an_archive_is_refused_and_its_checksum_is_not_kept(server: Server, tmp_path: Path) -> None:
    server.content = b"<html>Please log in</html>"
    with pytest.raises(ValueError, match=r"is not en\.txt\.gz: it begins with b'<html>.*the mirror has it"):
        download(server.url(), tmp_path / "en.txt.gz", tmp_path / "lock.yaml", by_hand="the mirror has it")
    assert not list(tmp_path.iterdir())
    server.content = gzip.compress(b"text")
    download(server.url(), tmp_path / "en.txt.gz", tmp_path / "lock.yaml")


def test_files_of_the_hub_come_from_its_mirror(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", server.url(""))
    download("https://huggingface.co/a/b/resolve/main/config.json", tmp_path / "config.json", tmp_path / "lock.yaml")
    assert (tmp_path / "config.json").read_bytes() == CONTENT
    # A study has one checksum wherever the file came from.
    assert [*yaml.safe_load((tmp_path / "lock.yaml").read_text())] == [
        "https://huggingface.co/a/b/resolve/main/config.json"
    ]


def test_local_files_are_read_and_missing_ones_fail_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curl.time, "sleep", lambda seconds: pytest.fail("it waited"))
    (tmp_path / "mine.txt").write_text("text\n")
    download((tmp_path / "mine.txt").as_uri(), tmp_path / "copy.txt", tmp_path / "lock.yaml")
    assert (tmp_path / "copy.txt").read_text() == "text\n"
    with pytest.raises(ValueError, match="cannot download file://"):
        download((tmp_path / "none.txt").as_uri(), tmp_path / "copy.txt", tmp_path / "lock.yaml")


def test_a_missing_curl_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="there is no `curl` on PATH"):
        download("https://a.test/x", tmp_path / "x", tmp_path / "lock.yaml")
