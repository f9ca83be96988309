"""Data of a task in a language: three parquet files, made from meanings or fetched from the Hub or from local files."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, ValidationError, model_validator

from xlgrid import lock as locks
from xlgrid.files import whole
from xlgrid.recipe import Strict, plainly
from xlgrid.tasks import task

if TYPE_CHECKING:
    import pyarrow as pa

SPLITS = ("train", "dev", "test")
_SHARES = (0.7, 0.1, 0.2)


class DataSource(Strict):
    """Where data come from that are not generated: the Hub, at a commit that the lock file fixes, or one's own files."""

    hub: str | None = Field(None, description="owner/name")
    name: str | None = Field(None, description="configuration on the Hub; {language} stands for the language")
    names: dict[str, str] = Field({}, description="configuration of a language; wins over name")
    revision: str = "main"
    splits: dict[str, str] = Field({"train": "train", "dev": "validation", "test": "test"}, description="ours: theirs")
    local: str | None = Field(None, description="path with {language} and {split}, ending in .parquet, .jsonl or .csv")
    where: dict[str, str | int | float | bool] = Field({}, description="keep rows with these values, column: value")
    rename: dict[str, str] = Field({}, description="columns to rename, theirs: ours")
    limit: int | None = Field(None, gt=0, description="keep at most so many rows of a split, the first ones")

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if (self.hub is None) == (self.local is None):
            raise ValueError("data come from either `hub` or `local`: give exactly one")
        return self


def sizes(n: int, group: int = 1) -> tuple[int, int, int]:
    """Examples in train, dev and test: 70, 10 and 20 percent of `n`, in multiples of `group`; test takes the rest.

    Raises:
        ValueError: `n` is too small for three splits.
    """
    groups = n // group
    train = int(groups * _SHARES[0] + 0.5)
    dev = int(groups * _SHARES[1] + 0.5)
    if min(train, dev, groups - train - dev) < 1:
        raise ValueError(f"n is {n}, too few for three splits in multiples of {group}: take at least {10 * group}")
    return train * group, dev * group, n - (train + dev) * group


def make_meanings(kind: str, options: dict[str, Any], out: str | Path) -> None:
    """Make the meanings of a task, which every language says: a parquet file with the columns `split` and `meaning`.

    Raises:
        ValueError: an option that does not exist or does not go with the others.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    made = task(kind)
    chosen = _options(kind, options)
    counts = sizes(chosen.n, made.group(chosen))
    lines = [made.to_json(meaning) for meaning in made.examples(chosen, counts)]
    names = [split for split, count in zip(SPLITS, counts, strict=True) for _ in range(count)]
    with whole(out) as aside:
        pq.write_table(pa.table({"split": names, "meaning": lines}), aside)


def make_data(kind: str, options: dict[str, Any], language: str, meanings: str | Path, folder: str | Path) -> None:
    """Say the meanings in a language or pair: `folder`/{train,dev,test}.parquet. Row i is the same in every language.

    Raises:
        FileNotFoundError: there is no file of meanings.
        ValueError: it is damaged, or the language does not exist.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    made = task(kind)
    chosen = _options(kind, options)
    table = read_table(meanings)
    for column in ("split", "meaning"):
        if column not in table.column_names:
            raise ValueError(f"{meanings} has no column {column!r}: it is no file of meanings, make it again")
    for split in SPLITS:
        lines = table.filter(pc.equal(table["split"], split))["meaning"].to_pylist()
        rows = [made.row(made.from_json(line), language, chosen) for line in lines]
        _write(pa.Table.from_pylist(rows), made.name, Path(folder) / f"{split}.parquet", f"{meanings}, {split}")


def fetch_data(kind: str, source: dict[str, Any], language: str, folder: str | Path, lock: str | Path) -> None:
    """Fetch the data of a task in a language: `folder`/{train,dev,test}.parquet with the task's columns.

    Args:
        kind: key of `xlgrid.tasks.TASKS`.
        source: fields of a `DataSource`.
        language: a language or pair.
        folder: where to write.
        lock: the lock file, see `xlgrid.lock`.

    Raises:
        FileNotFoundError: a local file does not exist.
        ValueError: a field of `source` does not exist; the Hub refuses; data are damaged, empty or not what the task
            needs.
    """
    made = task(kind)
    try:
        wanted = DataSource(**source)
    except ValidationError as error:
        raise ValueError(f"source of data: {plainly(error)}") from error
    for split in SPLITS:
        if wanted.hub:
            table, where = _from_hub(wanted.hub, wanted, language, split, Path(lock))
        else:
            where = str(wanted.local).replace("{language}", language).replace("{split}", split)
            table = read_table(where)
        table = _selected(table, wanted, where)
        _write(table, made.name, Path(folder) / f"{split}.parquet", where)


def read_table(path: str | Path) -> "pa.Table":
    """A parquet, jsonl or csv file.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is empty, damaged or of another type.
    """
    import pyarrow as pa

    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}: check the path, or make it with the step before")
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty: delete it and make or fetch it again")
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            return pq.read_table(path)
        if path.suffix == ".jsonl":
            import pyarrow.json

            return pyarrow.json.read_json(path)
        if path.suffix == ".csv":
            import pyarrow.csv

            return pyarrow.csv.read_csv(path, parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True))
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path} is damaged or not {path.suffix[1:]}: {error}; delete it and make it again") from error
    raise ValueError(f"{path} is of an unknown type: expected .parquet, .jsonl or .csv")


def _options(kind: str, options: dict[str, Any]) -> Any:
    try:
        return task(kind).Options(**options)
    except ValidationError as error:
        raise ValueError(f"options of {kind}: {plainly(error)}") from error


def _from_hub(hub: str, source: DataSource, language: str, split: str, lock: Path) -> tuple["pa.Table", str]:
    from datasets import load_dataset

    commit = locks.commit(lock, "dataset", hub, source.revision)
    name = source.names.get(language) or (source.name and source.name.replace("{language}", language))
    if split not in source.splits:
        raise ValueError(f"`splits` of {hub} says nothing about {split}: expected {split}: <their name>")
    where = f"{hub} ({name or 'default'}, {source.splits[split]}, {commit[:7]})"
    try:
        found = load_dataset(hub, name, split=source.splits[split], revision=commit)
    except Exception as error:  # of whatever the Hub, the network or a file format raise, say what was being fetched
        raise ValueError(f"cannot fetch {where}: {type(error).__name__}: {error}") from error
    return found.with_format("arrow")[:], where


def _selected(table: "pa.Table", source: DataSource, where: str) -> "pa.Table":
    import pyarrow.compute as pc

    for column, value in source.where.items():
        if column not in table.column_names:
            raise ValueError(f"{where} has no column {column!r} to select by (it has: {', '.join(table.column_names)})")
        found = table.filter(pc.equal(table[column], value))
        if not found.num_rows and table.num_rows:
            values = ", ".join(sorted(map(str, table[column].unique().to_pylist()))[:20])
            raise ValueError(f"{where} has no row whose {column} is {value!r} (there are: {values})")
        table = found
    missing = [column for column in source.rename if column not in table.column_names]
    if missing:
        raise ValueError(f"{where} has no column {missing[0]!r} to rename (it has: {', '.join(table.column_names)})")
    table = table.rename_columns([source.rename.get(column, column) for column in table.column_names])
    return table.slice(0, source.limit) if source.limit else table


def _write(table: "pa.Table", kind: str, out: Path, where: str) -> None:
    import pyarrow.parquet as pq

    made = task(kind)
    made.check(table, where)
    extra = [column for column in ("depth", "id") if column in table.column_names]
    with whole(out) as aside:
        pq.write_table(table.select([*made.columns, *extra]).replace_schema_metadata(None), aside)
