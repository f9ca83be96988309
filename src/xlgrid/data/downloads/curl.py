"""Download files with curl: resume interrupted downloads, retry, and check a file before it gets its final name."""

import hashlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from xlgrid.data import lock as locks
from xlgrid.data.downloads import archives

# A download fails after this many attempts in a row without any new bytes. The second number is the seconds before the
# second attempt; they double with each further attempt.
ATTEMPTS = 6
PAUSE = 2.0
# curl's exit codes for errors that another attempt does not solve: a malformed address, or a file that cannot be read
# or written.
_FINAL = {1, 3, 23, 37}
_HTTP, _NO_RANGES = 22, 33
# HTTP status codes after which another attempt may succeed. 416 means that the server rejects the requested byte range.
_PASSING = {408, 416, 425, 429}
_HUB = "https://huggingface.co/"


def download(
    url: str, out: str | Path, lock: str | Path, sha256: str | None = None, by_hand: str | None = None
) -> None:
    """Download a file. An interrupted download is kept in `{out}.part` and resumed by the next call.

    curl compares the number of bytes with the length that the server states. The first and last bytes of a compressed
    file must match its type. The checksum must equal `sha256` or, if it is None, the checksum of the first download,
    which is in the lock file.

    Args:
        url: the address. If `HF_ENDPOINT` is set, it replaces the address of the Hugging Face Hub.
        lock: the lock file, see `xlgrid.data.lock`.
        sha256: the expected checksum.
        by_hand: a sentence for errors about another way to get the file.

    Raises:
        ValueError: the file cannot be downloaded, or its contents are wrong; the message says what to do.
    """
    out = Path(out)
    part = out.with_name(f"{out.name}.part")
    out.parent.mkdir(parents=True, exist_ok=True)
    advice = f"; {by_hand}" if by_hand else ""
    endpoint = os.environ.get("HF_ENDPOINT")
    place = url.replace(_HUB, f"{endpoint.rstrip('/')}/", 1) if endpoint and url.startswith(_HUB) else url
    if problem := _get(place, part):
        raise ValueError(
            f"cannot download {place}: {problem}. Run the same command again, which continues the download; or put the file at {out} by hand{advice}"
        )
    digest = _digest(part)
    try:
        if problem := archives.problem(part, out.name):
            raise ValueError(
                f"what came from {place} is not {out.name}: {problem}. Put the file at {out} by hand{advice}"
            )
        if sha256 and digest != sha256:
            raise ValueError(
                f"what came from {place} has the SHA-256 {digest}, and the study expects {sha256}: if the file at this address is the right "
                f"one, correct `sha256` in `downloads`; else get the expected file elsewhere, and put it at {out} by hand{advice}"
            )
        if not sha256:
            locks.keep_checksum(lock, url, digest)
        print(f"{url}: {part.stat().st_size:,} bytes, SHA-256 {digest}", file=sys.stderr)
        part.replace(out)
    finally:
        # A complete download with wrong contents must not be resumed.
        for path in (part, *_traces(part)):
            path.unlink(missing_ok=True)


def _get(url: str, part: Path) -> str | None:
    """Download to `part`, and resume if it exists. Returns the reason of a failure, or None on success."""
    headers, validator = _traces(part)
    # If an attempt was killed, only the headers of its response are left.
    if not validator.exists():
        _keep_validator(headers, validator)
    if not validator.exists() and not (headers.exists() and headers.stat().st_size):
        # Without ETag or date, it is unknown to which version of the file the part belongs.
        part.unlink(missing_ok=True)
    failures = 0
    while True:
        before = part.stat().st_size if part.exists() else 0
        words = ["curl", "--fail", "--location", "--silent", "--show-error", "--globoff"]
        # A stalled transfer is ended and resumed.
        words += ["--connect-timeout", "30", "--speed-limit", "1000", "--speed-time", "120"]
        words += ["--dump-header", str(headers), "--write-out", "%{http_code}", "--output", str(part)]
        if before:
            words += ["--continue-at", "-"]
            if validator.exists():
                # If the file on the server has changed, the server sends the whole file, which curl does not append.
                words += ["--header", f"If-Range: {validator.read_text(encoding='latin-1')}"]
        try:
            done = subprocess.run([*words, "--", url], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return "there is no `curl` on PATH: install it"
        if not done.returncode:
            return None
        status, said = int(done.stdout.strip() or 0), done.stderr.strip() or f"curl ended with {done.returncode}"
        print(f"{url}: {said}", file=sys.stderr, flush=True)
        _keep_validator(headers, validator)
        is_final = done.returncode in _FINAL
        if done.returncode == _HTTP:
            is_final = status < 500 and status not in _PASSING
        if done.returncode == _NO_RANGES or status == 416:
            for path in (part, validator):
                path.unlink(missing_ok=True)
        grew = part.exists() and part.stat().st_size > before
        failures = 1 if grew else failures + 1
        if is_final or failures >= ATTEMPTS:
            return said
        time.sleep(PAUSE * 2 ** (failures - 1))


def _traces(part: Path) -> tuple[Path, Path]:
    """Two files next to the part: the headers of the last response, and the ETag or date of the file's version."""
    return part.with_name(f"{part.name}.headers"), part.with_name(f"{part.name}.version")


def _keep_validator(headers: Path, validator: Path) -> None:
    """Store the ETag or the date in the headers of a response, for the header `If-Range` of the next request."""
    text = headers.read_text(encoding="latin-1") if headers.exists() else ""
    answer = re.split(r"(?m)^(?=HTTP/)", text)[-1]
    # A weak ETag, and the ETag of an error page, do not identify the bytes of the file.
    if re.match(r"HTTP/\S+ 20[06]", answer) and (
        found := re.search(r'(?im)^etag:\s*("[^"\r\n]*")', answer)
        or re.search(r"(?im)^last-modified:\s*([^\r\n]+)", answer)
    ):
        validator.write_text(found[1], encoding="latin-1")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
