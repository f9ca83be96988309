"""Downloads by curl: continued after an interruption, tried again, and checked before the file gets its name."""

import hashlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from xlgrid.data import lock as locks
from xlgrid.data.downloads import archives

# Attempts in a row that bring nothing before a download fails, and the seconds before the second one, which double from then on.
ATTEMPTS = 6
PAUSE = 2.0
# curl's exit codes for what another attempt does not change: an address that it cannot read, a disk that it cannot write, a local file.
_FINAL = {1, 3, 23, 37}
_HTTP, _NO_RANGES = 22, 33
# Answers of a server after which another attempt may succeed; 416 is about the part that is there.
_PASSING = {408, 416, 425, 429}
_HUB = "https://huggingface.co/"


def download(
    url: str, out: str | Path, lock: str | Path, sha256: str | None = None, by_hand: str | None = None
) -> None:
    """Download a file. What was got before an interruption is kept beside it in `{out}.part`, and is continued.

    curl compares the number of bytes with the one that the server has named. A compressed file has to begin and end as such files do. The
    checksum is compared with the known one or, if there is none, with that of the first download, which the lock file keeps.

    Args:
        url: the address. Files of the Hub are taken from `HF_ENDPOINT` where it is set.
        lock: the lock file, see `xlgrid.data.lock`.
        sha256: the known checksum.
        by_hand: where else the file is.

    Raises:
        ValueError: the file cannot be got, or is not the right one; the message says what to do.
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
        # A whole file that is the wrong one is not continued.
        for path in (part, *_traces(part)):
            path.unlink(missing_ok=True)


def _get(url: str, part: Path) -> str | None:
    """Download to `part`, continuing what is there; why it failed, or None."""
    headers, validator = _traces(part)
    # A try that was killed has left the headers of its answer alone.
    if not validator.exists():
        _keep_validator(headers, validator)
    if not validator.exists() and not (headers.exists() and headers.stat().st_size):
        # Nothing says of which version of the file the part is.
        part.unlink(missing_ok=True)
    failures = 0
    while True:
        before = part.stat().st_size if part.exists() else 0
        words = ["curl", "--fail", "--location", "--silent", "--show-error", "--globoff"]
        # A transfer that has stalled ends, and is continued.
        words += ["--connect-timeout", "30", "--speed-limit", "1000", "--speed-time", "120"]
        words += ["--dump-header", str(headers), "--write-out", "%{http_code}", "--output", str(part)]
        if before:
            words += ["--continue-at", "-"]
            if validator.exists():
                # A server with another version of the file sends all of it, which curl does not append to the part.
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
    """The files of a download beside its part: the headers of the last answer, and what tells the version of the file."""
    return part.with_name(f"{part.name}.headers"), part.with_name(f"{part.name}.version")


def _keep_validator(headers: Path, validator: Path) -> None:
    """Keep the ETag or the date of the file whose first bytes have come, for `If-Range`."""
    text = headers.read_text(encoding="latin-1") if headers.exists() else ""
    answer = re.split(r"(?m)^(?=HTTP/)", text)[-1]
    # A weak ETag, and that of an error, say nothing of bytes.
    if re.match(r"HTTP/\S+ 20[06]", answer) and (
        found := re.search(r'(?im)^etag:\s*("[^"\r\n]*")', answer)
        or re.search(r"(?im)^last-modified:\s*([^\r\n]+)", answer)
    ):
        validator.write_text(found[1], encoding="latin-1")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
