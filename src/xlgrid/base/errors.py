"""The error about a damaged file that has to be deleted, because Snakemake makes only files that are missing; errors of libraries."""

from pathlib import Path


def first_sentence(error: Exception) -> str:
    """The first sentence of an error of a library, whose others may be about its own version or code, after the error's type."""
    return f"{type(error).__name__}: {' '.join(str(error).split()).partition('. ')[0]}"


class Damaged(ValueError):
    """A file cannot be used. The message names the file, the line where one is known, and what to do.

    Attributes:
        paths: the files and folders to delete, so that the workflow makes them again; empty if the user has to mend a file.
    """

    def __init__(self, message: str, *paths: str | Path) -> None:
        super().__init__(message)
        self.paths = paths
