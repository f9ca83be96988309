"""The error about a damaged file that has to be deleted, because Snakemake makes only files that are missing; errors of libraries."""

import os
from pathlib import Path

# How a file begins that Git LFS has not fetched (https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md).
_POINTER = b"version https://git-lfs"


def first_sentence(error: Exception) -> str:
    """The type and first sentence of a library's error. Later sentences often concern only the library's own code."""
    return f"{type(error).__name__}: {' '.join(str(error).split()).partition('. ')[0]}"


def is_result(path: str | Path) -> bool:
    """Whether a path is in results/. The workflow can make such files again; all other files belong to the user."""
    return os.path.relpath(path).startswith("results" + os.sep)


def whole_again(path: str | Path) -> str:
    """The advice in an error about a damaged file or folder. It never says to delete a file of the user's own,
    except from the cache of the Hub.
    """
    if is_result(path):
        return f"delete {os.path.relpath(path)} and run the same command again, which makes it anew"
    if any(part.startswith("models--") for part in Path(path).parts):
        return "delete the file, which the cache of the Hub has, and fetch it again"
    return "copy or fetch it again from where it is from, or name another one"


def check_is_whole_file(path: str | Path) -> None:
    """Check that a file is not a Git LFS pointer, which replaces a large file in a clone without Git LFS.

    Raises:
        Damaged: the file is a pointer.
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
