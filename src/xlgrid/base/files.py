"""Atomic files: each is written to a temporary path, flushed to disk and renamed."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# The studies that come with xlgrid and belong to no paper, in a folder of the same name as in a project.
SHIPPED = Path(__file__).parents[1] / "shipped"


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` when the block succeeds, remove it otherwise.

    Raises:
        OSError: the disk is full or does not permit writing; the message names the file and states what to do. An earlier
            file at `path` is unchanged.
    """
    path = Path(path)
    # The process id separates two attempts at the same file. The suffix stays last because writers choose a format by it.
    aside = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield aside
        with aside.open("rb") as file:
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError as error:
        advice = {
            errno.ENOSPC: "the disk is full: free some space",
            errno.EDQUOT: "the disk quota is used up: free some space",
            errno.EFBIG: "the file is larger than this process may write: raise `ulimit -f`",
            errno.EROFS: "the file system is read-only: choose another folder",
            errno.EACCES: "permission denied: check who owns the folder",
        }.get(error.errno or 0, error.strerror or error)
        raise OSError(error.errno, f"cannot write {path}: {advice}, then run the same command again") from error
    finally:
        aside.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write `text` as UTF-8 to `path`, atomically."""
    with whole(path) as aside:
        aside.write_text(text, encoding="utf-8")
