"""Files by the ends of their names: which types are read, how compressed ones are opened, and how errors name a file and a line."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple, cast

from xlgrid.base.errors import Damaged

COMPRESSIONS = (".gz", ".xz", ".bz2")
# What the modules of decompression raise about a damaged file.
COMPRESSION_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError)
PARQUET = ".parquet"
# Files of words with their labels, one word a line. With labels of words, .txt and .tsv are such files, too.
WORDS = (".conllu", ".conll", ".iob2")
_WORDS_TOO = (".txt", ".tsv")


class Reading(NamedTuple):
    """How a file is read where its name does not say it.

    Attributes:
        columns: the names of the columns of a file without a header, in their order (csv, tsv, and files of words). `UNREAD` stands
            for a column that is not read; () for a file with a header.
        quotes: whether a value of csv or tsv may stand in double quotes; None: in csv, but not in tsv.
        words: of a task of words, the column of the words and, unless they have none, that of their labels; () for other tasks.
    """

    columns: tuple[str, ...] = ()
    quotes: bool | None = None
    words: tuple[str, ...] = ()


# The name of a column that is not read.
UNREAD = "_"
# A file is read as its name says.
BY_NAME = Reading()


def type_of(path: str | Path) -> str:
    """The end of a file's name that says its type, such as `.tsv` of `en.tsv.gz`."""
    path = Path(path)
    return path.with_suffix("").suffix if path.suffix in COMPRESSIONS else path.suffix


def has_words(path: str | Path, reading: Reading) -> bool:
    """Whether a file has a word and its labels on each line."""
    return type_of(path) in WORDS or (bool(reading.words) and type_of(path) in _WORDS_TOO)


def listed(types: tuple[str, ...]) -> str:
    """Types of files, as errors list them."""
    return f"{', '.join(types[:-1])} or {types[-1]}, of which all but {PARQUET} may be compressed ({', '.join(COMPRESSIONS)})"


def existing(path: str | Path, types: tuple[str, ...], hint: str = "") -> Path:
    """The path of a file that has contents and a type that is read.

    Args:
        hint: what the error about another type says at its end.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is of another type, or empty.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}: check the path, or make it with the step before")
    if type_of(path) not in types or (type_of(path) == PARQUET and path.suffix != PARQUET):
        raise ValueError(f"{path} is of an unknown type: expected {listed(types)}{hint}")
    if not path.stat().st_size:
        raise damaged(path, "is empty")
    return path


def damaged(path: Path, problem: str) -> Damaged:
    """The error about a file. The workflow itself writes parquet only; all other files are the user's."""
    if path.suffix == PARQUET:
        return Damaged(f"{path} {problem}; fetch, copy or make it again", path)
    return Damaged(f"{path} {problem}; mend it")


def opened(path: Path) -> IO[bytes]:
    """A file, decompressed, as bytes."""
    match path.suffix:
        case ".gz":
            return cast(IO[bytes], gzip.open(path))
        case ".xz":
            return lzma.open(path)
        case ".bz2":
            return bz2.open(path)
    return path.open("rb")


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number, counted from 1, and text of each line of a file, without the characters that end the line.

    Raises:
        Damaged: a line is not UTF-8; the message has the line's number. Or the file's compression is damaged, which may show in the
            same way.
    """
    try:
        with opened(path) as file:
            # The file is read as bytes, because only "\n" ends a line, and no other line separator of Unicode.
            for number, line in enumerate(file, start=1):
                try:
                    # A file that an editor on Windows wrote may begin with a byte order mark.
                    yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    if path.suffix in COMPRESSIONS:
                        raise damaged(path, f"is damaged, or line {number} is not UTF-8 ({error})") from None
                    raise Damaged(f"{path}, line {number}: no UTF-8 ({error}); mend this line") from None
    except COMPRESSION_ERRORS as error:
        raise damaged(path, f"is damaged: {error}") from error
