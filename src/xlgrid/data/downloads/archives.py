"""Check that a downloaded file has the type that its suffix says, and extract a file from an archive."""

import re
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from xlgrid.base.errors import Damaged
from xlgrid.base.files import whole
from xlgrid.data.formats.files import BEGINNINGS

# Suffix -> the last bytes of files of this type.
_ENDS = {".xz": b"YZ", ".parquet": b"PAR1"}
# An error lists at most this many members of an archive.
_SHOWN = 20


def problem(path: Path, name: str) -> str | None:
    """Why a file does not have the type that the suffix of its name says; None if it does, or if the suffix is unknown.
    Only the first and last bytes of the file are read.

    Args:
        path: the file.
        name: the final name of the file. An unfinished download is stored under another name.
    """
    suffix = Path(name).suffix.replace(".tgz", ".gz")
    with path.open("rb") as file:
        first = file.read(16)
        file.seek(-min(8, path.stat().st_size), 2)
        last = file.read()
    # For example, a page that says "not found" does not begin like an archive.
    if suffix in BEGINNINGS and not re.match(BEGINNINGS[suffix], first):
        return f"it begins with {first!r}, as no {suffix} does"
    if suffix in _ENDS and not last.endswith(_ENDS[suffix]):
        return f"it ends with {last!r}, as no whole {suffix} does"
    if suffix == ".zip" and not zipfile.is_zipfile(path):
        return "it has no list of members at its end, as a whole .zip has"
    return None


def unpack(archive: str | Path, member: str, out: str | Path) -> None:
    """Extract a file from an archive (zip, or tar with any compression).

    Args:
        member: the path of the file in the archive, or the end of the path.

    Raises:
        Damaged: the archive is damaged.
        ValueError: the archive has no such file, or several.
    """
    archive = Path(archive)
    with whole(out) as aside, aside.open("wb") as target, opened(archive) as members:
        names = [name for name in members if f"/{name}".endswith(f"/{member.removeprefix('./')}")]
        if len(names) != 1:
            problem = f"several files {member!r}: " if names else f"no file {member!r}; it has: "
            raise ValueError(f"{archive} has {problem}{shown(names or members)}. Correct `member` in `downloads`")
        with reading(archive), members[names[0]]() as source:
            shutil.copyfileobj(source, target, 2**20)


def shown(names: Collection[str]) -> str:
    """The files of an archive as a phrase for errors."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join([*names][:_SHOWN])}{more}" or "nothing"


@contextmanager
def opened(archive: Path) -> Iterator[dict[str, Callable[[], IO[bytes]]]]:
    """The files of an archive: path -> a function that opens it.

    Raises:
        Damaged: the archive is damaged.
    """
    with reading(archive):
        container = zipfile.ZipFile(archive) if zipfile.is_zipfile(archive) else tarfile.open(archive)  # noqa: SIM115
    with container:
        with reading(archive):
            members: dict[str, Callable[[], IO[bytes]]] = {}
            if isinstance(container, zipfile.ZipFile):
                for info in container.infolist():
                    if not info.is_dir():
                        members[info.filename] = partial(container.open, info)
            else:
                for entry in container.getmembers():
                    if entry.isfile():
                        members[entry.name] = partial(_file, container, entry)
        yield members


def _file(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> IO[bytes]:
    file = archive.extractfile(entry)
    assert file, "the entry is a file"
    return file


@contextmanager
def reading(archive: Path) -> Iterator[None]:
    """Convert the errors of the libraries that read archives to `Damaged`, with a message that names the archive."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (
        Exception
    ) as error:  # zlib, bz2, lzma, zipfile and tarfile have errors of their own, and raise EOFError and OSError, too.
        if getattr(error, "errno", None):  # an error of the disk
            raise
        raise Damaged(f"{archive} is damaged or no archive ({type(error).__name__}: {error})", archive) from error
