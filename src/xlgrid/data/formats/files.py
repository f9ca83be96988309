"""Open files, compressed or not, by the suffix of their name; errors name the file and the line."""

import bz2
import codecs
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from xlgrid.base.errors import Damaged, check_is_whole_file

# Suffix -> a regular expression that matches the first bytes of files of this type.
BEGINNINGS = {
    ".gz": rb"\x1f\x8b",
    ".xz": rb"\xfd7zXZ\x00",
    ".bz2": rb"BZh[1-9](1AY&SY|\x17rE8P\x90)",
    ".zst": rb"\x28\xb5\x2f\xfd",
    ".zip": rb"PK(\x03\x04|\x05\x06)",
    ".parquet": rb"PAR1",
}
COMPRESSIONS = (".gz", ".xz", ".bz2", ".zst")
PARQUET = ".parquet"
# The advice for a text file that begins like one of these types.
_OTHERS = {".zip": "a zip archive: unpack it", PARQUET: "parquet: end its name in .parquet"}
# Files with a word and its labels on each line. For tasks with a label for each word, .txt and .tsv are such files,
# too.
WORDS = (".conllu", ".conll", ".iob2")
_WORDS_TOO = (".txt", ".tsv")
# This many bytes at the beginning of a file are enough to detect its encoding.
_START = 512


class Reading(NamedTuple):
    """Settings for reading a file that its name does not determine.

    Attributes:
        columns: the names of the columns of a file without a header, in their order (csv, tsv, and files of words); ()
            for a file with a header. `UNREAD` is the name of columns that are not read.
        quotes: whether values of csv or tsv may be in double quotes; None: in csv, but not in tsv.
        missing: the values of csv and tsv that are read as missing, unless they are in quotes.
        words: for a task with words, the names of the columns with the words and with their labels, if the words have
            labels; () for other tasks.
        conllu: the columns of CoNLL-U that get these names.
    """

    columns: tuple[str, ...] = ()
    quotes: bool | None = None
    missing: tuple[str, ...] = ("",)
    words: tuple[str, ...] = ()
    conllu: tuple[str, ...] = ("FORM", "UPOS")


# The name of a column that is not read.
UNREAD = "_"
# The default: only the suffix of a file's name determines how it is read.
BY_NAME = Reading()


def type_of(path: str | Path) -> str:
    """The suffix of a file's name that shows its type, such as `.tsv` of `en.tsv.gz`."""
    path = Path(path)
    return path.with_suffix("").suffix if path.suffix in COMPRESSIONS else path.suffix


def matches(pattern: str, file: str) -> bool:
    """Whether a file matches a glob pattern of `datasets`: * stays within a folder, ** matches folders, and [ab] lists
    characters."""
    parts = re.split(r"(\*\*/|\*|\?|\[[^]]+\])", pattern)
    expressions = {"**/": "(.*/)?", "*": "[^/]*", "?": "[^/]"}
    return bool(
        re.fullmatch(
            "".join(expressions.get(part) or (part if part[:1] == "[" else re.escape(part)) for part in parts), file
        )
    )


def has_words(path: str | Path, reading: Reading) -> bool:
    """Whether a file has a word and its labels on each line."""
    return type_of(path) in WORDS or (bool(reading.words) and type_of(path) in _WORDS_TOO)


def listed(types: tuple[str, ...]) -> str:
    """A list of types of files for errors."""
    return f"{', '.join(types[:-1])} or {types[-1]}; all except {PARQUET} may be compressed ({', '.join(COMPRESSIONS)})"


def existing(path: str | Path, types: tuple[str, ...], hint: str = "") -> Path:
    """The path of a file, after checks that it exists, is not empty and has a supported type.

    Args:
        hint: the end of the error about another type.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: the file has another type, is empty, or is a pointer of Git LFS.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}: check the path, or make it with the step before")
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file in it")
    if type_of(path) not in types or (type_of(path) == PARQUET and path.suffix != PARQUET):
        raise ValueError(f"{path} is of an unknown type: expected {listed(types)}{hint}")
    if not path.stat().st_size:
        raise damaged(path, "is empty")
    check_is_whole_file(path)
    return path


def damaged(path: Path, problem: str) -> Damaged:
    """The error about a file. The workflow itself writes only parquet; all other files belong to the user."""
    if path.suffix == PARQUET:
        return Damaged(f"{path} {problem}; fetch, copy or make it again", path)
    return Damaged(f"{path} {problem}; mend it")


class _Decompressed(io.RawIOBase):
    """The decompressed bytes of a file. A damaged file raises `Damaged` for all errors of the decompressor."""

    def __init__(self, path: Path) -> None:
        self.path, self.count = path, 0
        match path.suffix:
            case ".gz":
                self.file: Any = gzip.open(path)  # noqa: SIM115 (`close` closes it)
            case ".xz":
                self.file = lzma.open(path)  # noqa: SIM115
            case ".bz2":
                self.file = bz2.open(path)  # noqa: SIM115
            case ".zst":
                import pyarrow as pa

                self.file = pa.input_stream(str(path), compression="zstd")
            case _:
                self.file = path.open("rb")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            # Unlike `read`, this returns the bytes that were decompressed before the damage.
            content = self.file.read1(len(buffer))
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            place = " of its decompressed contents" if self.path.suffix in COMPRESSIONS else ""
            raise Damaged(
                f"{self.path} is damaged or cut short after byte {self.count:,}{place} ({error}); copy or download it "
                "again"
            ) from error
        buffer[: len(content)] = content
        self.count += len(content)
        return len(content)

    def close(self) -> None:
        self.file.close()
        super().close()


def opened(path: Path) -> IO[bytes]:
    """A file of text, opened as decompressed bytes.

    Raises:
        Damaged: the file is empty, its name does not show how it is compressed, or it is in UTF-16 or UTF-32;
            while reading: the compression is damaged, or the file cannot be read.
    """
    with path.open("rb") as file:
        start = file.read(16)
    kind = next((end for end, beginning in BEGINNINGS.items() if re.match(beginning, start)), "")
    if kind in _OTHERS:
        raise Damaged(f"{path} is {_OTHERS[kind]}")
    if kind and kind != path.suffix:
        raise Damaged(f"{path} is compressed, but its name does not show it: end the name in {kind}")
    if start and not kind and path.suffix in COMPRESSIONS:
        raise Damaged(
            f"{path} is damaged or not a {path.suffix} file, as its first bytes show: if it is not compressed, remove "
            f"{path.suffix} from its name, otherwise copy or download it again"
        )
    reader = io.BufferedReader(_Decompressed(path), 2**16)
    first = reader.peek(_START)[:_START]
    if not first:
        raise damaged(path, "is empty")
    if encoding := _other_encoding(first):
        raise Damaged(
            f"{path} is in {encoding}, but must be in UTF-8: save it in UTF-8, for instance with `iconv -f {encoding} "
            "-t UTF-8`"
        )
    return cast(IO[bytes], reader)


def _other_encoding(start: bytes) -> str:
    """The encoding of a file from its first bytes if it is UTF-16 or UTF-32; otherwise ""."""
    # UTF-32 is tested first, because its byte order mark begins with the mark of UTF-16.
    if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "UTF-32"
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "UTF-16"
    # Without a byte order mark, every second byte is 0 in UTF-16 text of digits, spaces and Latin letters.
    for name, zeros, others in (("LE", start[1::2], start[::2]), ("BE", start[::2], start[1::2])):
        if len(zeros) > 1 and zeros.count(0) > 0.4 * len(zeros) and not others.count(0):
            return f"UTF-16{name}"
    return ""


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The number, counted from 1, and the text of each line of a file, without the characters that end the line.

    Raises:
        Damaged: `opened` raises it, or a line is not UTF-8. The message has the numbers of the line and of the byte.
    """
    with opened(path) as file:
        # The file is read as bytes, because only "\n" ends a line, and no other line separator of Unicode.
        for number, line in enumerate(file, start=1):
            try:
                # A file that an editor on Windows wrote may begin with a byte order mark.
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                damage = " or damaged" if path.suffix in COMPRESSIONS else ""
                raise Damaged(
                    f"{path}, line {number}, byte {error.start + 1}: not UTF-8{damage} (0x{line[error.start]:02X}: "
                    f"{error.reason}); mend this line, or save the file in UTF-8 if it is in another encoding, such as "
                    "Latin-1"
                ) from None
