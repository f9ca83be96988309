"""Data of a task in a language: a parquet file per split, made from meanings or fetched from the Hub or local files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from xlgrid.base.files import whole
from xlgrid.base.names import unknown
from xlgrid.base.settings import Strict, plainly
from xlgrid.data import lock as locks
from xlgrid.data.formats import read_table
from xlgrid.languages.sources import Target
from xlgrid.tasks import Task, task

if TYPE_CHECKING:
    import pyarrow as pa

SPLITS = ("train", "dev", "test")
_SHARES = (0.7, 0.1, 0.2)


def _written(value: Any) -> str:
    """A label as a study's YAML and its JSON write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _written_labels(value: Any) -> Any:
    return {_written(theirs): _written(ours) for theirs, ours in value.items()} if isinstance(value, dict) else value


class Origin(Strict):
    """Where data come from that are not generated: the Hub, at a commit that the lock file fixes, or one's own files.

    Bring your own translations as `local` files: one for each language, in which row i says the same, at a path such as
    `translations/{language}/{split}.jsonl`. A pair (en-fr: the first input, such as a context or premise, in English,
    the second in French) is joined from the rows of its two languages. A pair that stands in a file of its own
    (`translations/en-fr/train.jsonl`) or has a configuration in `names` is taken from there instead.

    A study's `hub` becomes `local` where it is extended by `{hub: null, name: null, local: ...}`; files that were
    downloaded from the Hub keep their names with `splits: {dev: validation}`.
    """

    hub: str | None = Field(None, description="owner/name")
    name: str | None = Field(None, description="configuration on the Hub; {language} stands for the language")
    names: dict[str, str] = Field({}, description="configuration of a language; wins over name")
    revision: str = "main"
    splits: dict[Literal["train", "dev", "test"], str] = Field(
        {}, description="ours: theirs, where the names differ; the Hub's validation is our dev without being told"
    )
    local: str | None = Field(
        None, description="path, in which {language} and {split} stand for theirs, ending in .parquet, .jsonl or .csv"
    )
    where: dict[str, str | int | float | bool] = Field({}, description="keep rows with these values, column: value")
    rename: dict[str, str] = Field({}, description="columns to rename, theirs: ours")
    labels: Annotated[dict[str, str], BeforeValidator(_written_labels)] = Field(
        {}, description="labels to translate, theirs (text, a number, true or false): ours; one label a row only"
    )
    limit: int | None = Field(None, gt=0, description="keep at most so many rows of a split, the first ones")
    languages: list[str] | None = Field(None, description="those that it has; absent: all that are asked for")

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if (self.hub is None) == (self.local is None):
            raise ValueError("data come from either `hub` or `local`: give exactly one")
        return self

    def named(self, split: str) -> str:
        """What the source calls one of our splits."""
        usual = "validation" if self.hub and split == "dev" else split
        return next((theirs for ours, theirs in self.splits.items() if ours == split), usual)

    def has(self, language: str) -> bool:
        """Whether it has a language, or those of a pair, so far as the study says."""
        return (
            self.languages is None or language in self.languages or {*Target(language).languages} <= {*self.languages}
        )

    def configuration(self, language: str) -> str | None:
        """The Hub's name for a language's part of the data; None for the only one."""
        return self.names.get(language) or (self.name and self.name.replace("{language}", language))

    def path(self, language: str, split: str) -> str:
        """The local file of a split in a language."""
        return str(self.local).replace("{language}", language).replace("{split}", self.named(split))

    def check_labels(self, made: Task) -> None:
        """Raise ValueError if `labels` does not go with a task."""
        if self.labels and not made.head.target_is_name:
            raise ValueError(f"`labels` is for tasks with one label a row, which {made.name} is not: leave it out")
        for label in self.labels.values():
            if label not in made.labels:
                raise ValueError(unknown(f"label of {made.name} in `labels`", label, made.labels))


class DataSource(Origin):
    """An `Origin`, of the test set and, unless these come from elsewhere, of the training and dev sets:
    `{hub: google/xquad, name: "xquad.{language}", splits: {test: validation}, train: {hub: rajpurkar/squad, languages: [en]}, dev: ...}`.

    `test` is for the languages, listed in it, whose test set is not where the others have theirs.
    """

    train: Origin | None = Field(None, description="where the training set comes from; absent: as the test set")
    dev: Origin | None = Field(None, description="where the dev set comes from; absent: as the test set")

    test: Origin | None = Field(None, description="where the test sets of its `languages` come from")

    @model_validator(mode="after")
    def _of_some(self) -> Self:
        if self.test and not self.test.languages:
            raise ValueError(
                "`test` is for some languages: list them in it as `languages`, or write it in place of all"
            )
        return self

    def of(self, split: str, language: str) -> Origin:
        """Where a split in a language comes from."""
        own = self.test if self.test and self.test.has(language) else None
        elsewhere = {"train": self.train, "dev": self.dev, "test": own}[split]
        fields = {name: getattr(self, name) for name in self.model_fields_set & Origin.model_fields.keys()}
        return elsewhere or Origin(**fields)

    def check_labels(self, made: Task) -> None:
        """Raise ValueError if `labels`, of any split, does not go with a task."""
        super().check_labels(made)
        for other in filter(None, (self.train, self.dev, self.test)):
            other.check_labels(made)


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


def fetch_data(kind: str, source: dict[str, Any], language: str, split: str, out: str | Path, lock: str | Path) -> None:
    """Fetch a split of the data of a task in a language or pair: a parquet file with the task's columns.

    A pair is joined from its two languages row by row, unless the source has it as such, see `Origin`: the second
    input comes from the second language and all else from the first (Foroutan et al. 2023).

    Args:
        kind: key of `xlgrid.tasks.TASKS`.
        source: fields of a `DataSource`.
        language: a language or pair.
        split: train, dev or test.
        out: where to write.
        lock: the lock file, see `xlgrid.data.lock`.

    Raises:
        FileNotFoundError: a local file does not exist.
        ValueError: a field of `source` or a split does not exist; the source does not have the language; the Hub refuses; data
            are damaged, empty or not what the task needs; a pair is asked of a task that has none, or of languages whose
            rows are not parallel.
    """
    made = task(kind)
    if split not in SPLITS:
        raise ValueError(unknown("split", split, SPLITS))
    try:
        whole_source = DataSource(**source)
    except ValidationError as error:
        raise ValueError(f"source of data: {plainly(error)}") from error
    whole_source.check_labels(made)
    wanted = whole_source.of(split, language)
    codes = Target(language).languages
    if len(codes) == 2 and made.second is None:
        reads = "reads one text and " if len(made.inputs) == 1 else ""
        raise ValueError(f"{kind} {reads}has no pairs such as {language}: ask for one language")
    if not wanted.has(language):
        raise ValueError(lacking(kind, wanted, split, language))
    if _has(wanted, language):
        codes = (language,)
    found = [fetch_table(wanted, code, split, lock) for code in codes]
    tables = [_labelled(table, made, wanted) for table, _ in found]
    places = [place for _, place in found]
    table = tables[0] if len(tables) == 1 else _joined(made, codes, tables, places)
    _write(table, made.name, Path(out), " and ".join(places))


def local_files(source: Origin, language: str, split: str) -> list[str]:
    """The files from which a split in a language or pair is read: none if it comes from the Hub, two if a pair is joined."""
    if source.hub:
        return []
    codes = (language,) if _has(source, language) else Target(language).languages
    return [source.path(code, split) for code in codes]


def lacking(name: str, source: Origin, split: str, language: str) -> str:
    """That the source of a split does not have a language, and what to do."""
    others = "" if split == "test" else f", or give `data.{split}` another source"
    return (
        f"{name} has no {split} data in {language}: {source.hub or source.local}, where they come from, has "
        f"{', '.join(source.languages or ())} only, as its `languages` say: use one of these{others}"
    )


def fetch_table(source: Origin, language: str, split: str, lock: str | Path) -> tuple["pa.Table", str]:
    """A split of a source in a language, its rows selected and its columns renamed, and a name for it in messages.

    Raises:
        FileNotFoundError: a local file does not exist.
        ValueError: the Hub refuses; data are damaged; a column of `where` or `rename` is missing, or nothing is left.
    """
    if source.hub:
        table, where = _from_hub(source.hub, source, language, split, Path(lock))
    else:
        where = source.path(language, split)
        table = read_table(where)
    return _selected(table, source, where), where


def read_text(path: str | Path) -> dict[int, str]:
    """Id -> text, of a file that `xlgrid.data.text` wrote.

    Raises:
        FileNotFoundError, ValueError: as `read_table`, or a column is missing.
    """
    table = read_table(path)
    for column in ("id", "text"):
        if column not in table.column_names:
            raise ValueError(f"{path} has no column {column!r}: expected a text with the columns id and text")
    return dict(zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True))


def _options(kind: str, options: dict[str, Any]) -> Any:
    try:
        return task(kind).Options(**options)
    except ValidationError as error:
        raise ValueError(f"options of {kind}: {plainly(error)}") from error


def _has(source: Origin, pair: str) -> bool:
    """Whether a source has a pair as such. One file of it is enough: that another is missing should not go unnoticed."""
    if source.hub:
        return pair in source.names
    return any(Path(source.path(pair, split)).exists() for split in SPLITS)


def _from_hub(hub: str, source: Origin, language: str, split: str, lock: Path) -> tuple["pa.Table", str]:
    from datasets import load_dataset

    commit = locks.commit(lock, "dataset", hub, source.revision)
    name = source.configuration(language)
    theirs = source.named(split)
    where = f"{hub} ({name or 'default'}, {theirs}, {commit[:7]})"
    try:
        found = load_dataset(hub, name, split=theirs, revision=commit)
    except Exception as error:  # of whatever the Hub, the network or a file format raise, say what was being fetched
        raise ValueError(f"cannot fetch {where}: {type(error).__name__}: {error}") from error
    return found.with_format("arrow")[:], where


def _selected(table: "pa.Table", source: Origin, where: str) -> "pa.Table":
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


def _labelled(table: "pa.Table", made: Task, source: Origin) -> "pa.Table":
    """The table with our names of its labels; what `labels` does not mention stays, and the task's check judges it."""
    import pyarrow as pa

    if not source.labels or made.target not in table.column_names:
        return table
    theirs = (label if label is None else _written(label) for label in table[made.target].to_pylist())
    ours = pa.array([label and source.labels.get(label, label) for label in theirs], pa.string())
    return table.set_column(table.column_names.index(made.target), made.target, ours)


def _joined(made: Task, codes: tuple[str, ...], tables: list["pa.Table"], places: list[str]) -> "pa.Table":
    """The first table with the second one's column `Task.second`."""
    compared = made.head.parallel(made)
    for table, place in zip(tables, places, strict=True):
        made.check(table, place)
        if compared not in table.column_names:
            raise ValueError(
                f"{place} has no column {compared!r}, which tells that rows of a pair belong together: add it"
            )
    pair = "-".join(codes)
    if places[0] == places[1] and codes[0] != codes[1]:
        raise ValueError(
            f"{pair} is joined from {codes[0]} and {codes[1]}, but {places[0]} is what the source has for both: "
            "put {language} into `name`, or give each a configuration in `names`"
        )
    if tables[0].num_rows != tables[1].num_rows:
        raise ValueError(
            f"{pair} takes parallel data, but {places[0]} has {tables[0].num_rows} rows and {places[1]} has "
            f"{tables[1].num_rows}: row i must say the same in both"
        )
    labels = (table[compared].to_pylist() for table in tables)
    for i, (one, other) in enumerate(zip(*labels, strict=True)):
        if one != other:
            raise ValueError(
                f"{pair} takes parallel data, but in row {i} the {compared} is {one!r} in {places[0]} and {other!r} in {places[1]}: "
                "row i must say the same in both"
            )
    second = made.second
    assert second
    return tables[0].set_column(tables[0].column_names.index(second), second, tables[1][second])


def _write(table: "pa.Table", kind: str, out: Path, where: str) -> None:
    import pyarrow.parquet as pq

    made = task(kind)
    made.check(table, where)
    known = dict.fromkeys((*made.columns, "depth", "id"))
    with whole(out) as aside:
        kept = table.select([column for column in known if column in table.column_names])
        pq.write_table(kept.replace_schema_metadata(None), aside)
