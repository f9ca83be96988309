"""The error about a damaged file that has to be deleted, because Snakemake makes only files that are missing; errors of libraries."""

import os
from pathlib import Path

# How a file begins that Git LFS has not fetched (https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md).
_POINTER = b"version https://git-lfs"


def first_sentence(error: Exception) -> str:
    """The first sentence of an error of a library, whose others may be about its own version or code, after the error's type."""
    return f"{type(error).__name__}: {' '.join(str(error).split()).partition('. ')[0]}"


def is_result(path: str | Path) -> bool:
    """Whether a file or folder is among the results, which the workflow makes again. All others are the user's own."""
    return os.path.relpath(path).startswith("results" + os.sep)


def whole_again(path: str | Path) -> str:
    """What to do about a damaged file or folder, as an error says it: a result is deleted, and a file of the user's own never is."""
    if is_result(path):
        return f"delete {os.path.relpath(path)} and run the same command again, which makes it anew"
    if any(part.startswith("models--") for part in Path(path).parts):
        return "delete the file, which the cache of the Hub has, and fetch it again"
    return "copy or fetch it again from where it is from, or name another one"


def check_is_whole_file(path: str | Path) -> None:
    """Check that a file is no pointer of Git LFS, which a clone without Git LFS has in place of a large file.

    Raises:
        Damaged: it is one.
    """
    with open(path, "rb") as file:
        if file.read(len(_POINTER)) == _POINTER:
            raise Damaged(
                f"{path} is a pointer of Git LFS, without the contents of the file: run `git lfs pull` in its folder"
            )


class Damaged(ValueError):
    """A file cannot be used. The message names the file, the line where one is known, and what to do.

    Attributes:
        paths: the files and folders to delete, so that the workflow makes them again; empty if the user has to mend a file.
    """

    def __init__(self, message: str, *paths: str | Path) -> None:
        super().__init__(message)
        self.paths = paths
