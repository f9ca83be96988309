"""Data sets on the Hub at the commit in the lock file, loaded as a table or streamed."""

import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from xlgrid.base.errors import Damaged
from xlgrid.base.names import unknown
from xlgrid.data import formats
from xlgrid.data import lock as locks
from xlgrid.data.origins.files import DELIMITED, OfFiles
from xlgrid.data.origins.origin import check_braces
from xlgrid.data.published import Repository
from xlgrid.tasks import Task

if TYPE_CHECKING:
    import pyarrow as pa

# The maximum number of values that an error lists.
_SHOWN = 20
# The number of rows that are read at once.
_ROWS = 1000


class Hub(OfFiles):
    """A data set on the Hub at the commit in the lock file."""

    hub: str = Field(description="owner/name on the Hub")
    files: str | None = Field(
        None,
        description="a pattern of the files in a repository that declares no configurations. {name} is replaced by the "
        "configuration of the language, and {split} by the name of the split",
    )

    @model_validator(mode="after")
    def _pattern_fits(self) -> Self:
        check_braces("files", self.files, ("name", "split"))
        return self

    @classmethod
    def describes(cls, fields: dict[str, Any]) -> bool:
        return "hub" in fields

    @property
    def pattern(self) -> str | None:
        return self.files

    @property
    def repository(self) -> Repository:
        return Repository("dataset", self.hub, self.revision)

    def named(self, split: str) -> str:
        return "validation" if split == "dev" and "dev" not in self.splits else super().named(split)

    def arguments(self, language: str, split: str) -> dict[str, Any]:
        """The arguments of `datasets.load_dataset` that select a language, without split and revision."""
        name = self.configuration(language)
        if self.files is None:
            return {"path": self.hub, "name": name}
        pattern = self.files.replace("{name}", name or language).replace("{split}", self.named(split))
        return {"path": self.hub, "data_files": {self.named(split): pattern}}

    def is_file(self, task: Task | None = None) -> bool:
        """Whether files of a repository are downloaded and read like local files, without the library `datasets`.

        `datasets` cannot read files of words, guesses the types of values in csv, and does not know `columns`, `quotes`
        and `missing`.
        """
        path = self.files or ""
        return formats.type_of(path) in DELIMITED or bool(self.columns) or formats.has_words(path, self.reading(task))

    def read(self, described: Task, language: str, split: str, lock: str | Path) -> "tuple[pa.Table, str]":
        from datasets import load_dataset

        commit, name, where = self._place(language, split, lock)
        arguments, reading = self.arguments(language, split), self.reading(described)
        try:
            if self.is_file(described):
                return _files(self.hub, arguments["data_files"][name], commit, reading)
            arguments |= {"split": name, "revision": commit}
            dataset = load_dataset(**arguments, **_as_text(arguments, reading))
        except Damaged:
            raise
        except Exception as error:  # whatever the Hub, the network or a file format raise: name what was being fetched
            raise ValueError(f"cannot fetch {where}: {locks.said(error, 'dataset', self.hub)}") from error
        return dataset.with_format("arrow")[:], where

    def rows(
        self, columns: Sequence[str], language: str, split: str, lock: str | Path | None
    ) -> tuple[formats.Rows, str]:
        if not lock:
            raise ValueError(f"text from the Hub ({self.hub}) needs a lock file: pass --lock")
        commit, name, where = self._place(language, split, lock)
        return _stream(self.arguments(language, split) | {"revision": commit}, name, columns, where), where

    def problem_there(self, described: Task | None, language: str, split: str, answer: Any) -> str | None:
        files = [sibling.rfilename for sibling in answer.siblings]
        script = f"{self.hub.rpartition('/')[2]}.py"
        if script in files and not (described and self.is_file(described)):
            return f"the repository is a script, {script}, which is not run: {_instead(self.hub, files)}"
        if self.files:
            [pattern] = self.arguments(language, split)["data_files"].values()
            if any(formats.matches(pattern, file) for file in files):
                return None
            # Files in the folder of the pattern come first.
            folder = pattern.split("*")[0].rpartition("/")[0]
            nearest = sorted(files, key=lambda file: not file.startswith(f"{folder}/"))[:_SHOWN]
            return f"{unknown('file', pattern, nearest)}: correct `files`"
        known, name = _configurations(self.revision, files, answer), self.configuration(language)
        if name and known and name not in known:
            return f"{unknown('configuration', name, known)}: correct `name` or `names`"
        return None

    def _place(self, language: str, split: str, lock: str | Path) -> tuple[str, str, str]:
        """The commit, the source's name of the split, and a name of the data for messages."""
        commit, name = locks.commit(lock, "dataset", self.hub, self.revision), self.named(split)
        return commit, name, f"{self.hub} ({self.configuration(language) or 'default'}, {name}, {commit[:7]})"

    def __str__(self) -> str:
        return self.hub


def _stream(arguments: dict[str, Any], split: str, columns: Sequence[str], where: str) -> formats.Rows:
    from datasets import load_dataset_builder
    from pyarrow.dataset import ParquetFragmentScanOptions

    count = 0
    try:
        # These lines do the same as `load_dataset(..., streaming=True)`, and set options that only some builders have.
        builder = load_dataset_builder(**arguments)
        if hasattr(builder.config, "fragment_scan_options"):
            # With `pre_buffer`, all data read from a file would stay in memory until the end of the file.
            builder.config.fragment_scan_options = ParquetFragmentScanOptions(pre_buffer=False)
        if hasattr(builder.config, "keep_default_na"):
            # In csv, words such as NA and null are text, as in local files.
            builder.config.keep_default_na, builder.config.na_filter = False, False
        dataset = builder.as_streaming_dataset(split=split)
        # The iterator is closed here. If its threads lived until the end of the process, they would abort it.
        with closing(iter(dataset.with_format("arrow").iter(_ROWS))) as tables:
            del dataset
            for table in tables:
                formats.check_columns(columns, table.column_names, where)
                yield from formats.batch_rows(table, columns)
                count += table.num_rows
    except Damaged:
        raise
    except Exception as error:  # whatever the Hub, the network or a file format raise: name what was being fetched
        raise ValueError(
            f"cannot fetch {where}, after {count:,} rows: {locks.said(error, 'dataset', arguments['path'])}; "
            "if the network failed, run the same command again, which starts from the beginning"
        ) from error


def _as_text(arguments: Mapping[str, Any], reading: formats.Reading) -> dict[str, Any]:
    """The arguments with which `datasets` reads values of csv and tsv as text; empty for files of other types."""
    from datasets import Features, Value, load_dataset, load_dataset_builder

    whole_set = {key: value for key, value in arguments.items() if key != "split"}
    if not hasattr(load_dataset_builder(**whole_set).config, "keep_default_na"):
        return {}
    missing: dict[str, Any] = {"keep_default_na": False, "na_values": [*reading.missing]}
    first: dict[str, Any] = next(iter(load_dataset(**arguments, **missing, streaming=True)), {})
    return missing | ({"features": Features({column: Value("string") for column in first})} if first else {})


def _files(repository: str, pattern: str, commit: str, reading: formats.Reading) -> tuple["pa.Table", str]:
    """The rows of the files of a repository that match a pattern, in the order of their names, and a name for
    messages."""
    import pyarrow as pa
    from huggingface_hub import hf_hub_download, list_repo_files

    where = f"{repository} ({pattern}, {commit[:7]})"
    present = list_repo_files(repository, repo_type="dataset", revision=commit)
    # A file name may contain brackets, so an exact match is tried before the pattern.
    paths = [pattern] if pattern in present else sorted(path for path in present if formats.matches(pattern, path))
    if not paths:
        raise Damaged(f"{where}: {unknown('file', pattern, sorted(present)[:_SHOWN])}: correct `files`")
    files = [hf_hub_download(repository, path, repo_type="dataset", revision=commit) for path in paths]
    first, *others = (formats.read_table(file, reading) for file in files)
    for path, other in zip(paths[1:], others, strict=True):
        if {*other.column_names} != {*first.column_names}:
            raise Damaged(
                f"{where}: {path} has the columns {', '.join(other.column_names)}, and {paths[0]} has "
                f"{', '.join(first.column_names)}: choose files with the same columns"
            )
    return pa.concat_tables([first, *(other.select(first.column_names) for other in others)]), where


def _instead(repository: str, files: Sequence[str]) -> str:
    """The advice for a data set whose revision is a script: how to read the Hub's parquet copy, or a file of the
    revision."""
    try:
        copied = [
            sibling.rfilename
            for sibling in locks.ask("dataset", repository, locks.PARQUET_BRANCH, locks.PATIENCE).siblings or ()
        ]
    except ValueError:  # There is no copy, or no answer.
        copied = []
    for example in sorted(copied):
        # The layout is en/train/0000.parquet, or en/name-train.parquet in copies made before August 2023.
        if new := re.fullmatch(r"[^/]+/[^/]+/[^/]+\.parquet", example):
            return f'write `revision: {locks.PARQUET_BRANCH}` and `files: "{{name}}/{{split}}/*.parquet"`, where files are such as {new[0]}'
        if old := re.fullmatch(r"[^/]+/(.+)-(train|validation|test)(-.*)?\.parquet", example):
            return f'write `revision: {locks.PARQUET_BRANCH}` and `files: "{{name}}/{old[1]}-{{split}}*.parquet"`, where files are such as {old[0]}'
    tables = [file for file in files if re.search(r"\.(tsv|csv|conll|txt|iob2|conllu)$", file)]
    if tables:
        return f"write the path of its files as `files`, with `quotes` or `columns`; it has {', '.join(tables[:3])}"
    return f"the Hub has no copy of it on {locks.PARQUET_BRANCH}: name another repository, or put its files here as `local`"


def _configurations(revision: str, files: Sequence[str], answer: Any) -> list[str]:
    """The configurations of a data set that its card, or the folders of its parquet branch, list."""
    if revision == locks.PARQUET_BRANCH:
        return sorted({file.split("/")[0] for file in files if "/" in file})
    card = getattr(answer, "card_data", None)
    listed = getattr(card, "configs", None) or []
    return [entry["config_name"] for entry in listed if isinstance(entry, dict) and "config_name" in entry]
