"""Generate the data of a task: its meanings once, and then rows with these meanings in each language or pair."""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from xlgrid.base.errors import Damaged
from xlgrid.base.files import whole
from xlgrid.base.settings import plainly
from xlgrid.data.fetch import checked, write_rows
from xlgrid.data.formats import read_table
from xlgrid.data.origins.origin import SPLITS
from xlgrid.tasks import task
from xlgrid.tasks.task import Generator

_SHARES = (0.7, 0.1, 0.2)


def sizes(n: int, group: int = 1) -> tuple[int, int, int]:
    """The numbers of examples in train, dev and test: 70, 10 and 20 percent of `n`, in multiples of `group`. Test gets
    the rest.

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
    """Generate the meanings of a task, as a parquet file with the columns `split` and `meaning`. Every language
    expresses the same meanings.

    Raises:
        ValueError: the task cannot be generated, or an option does not exist or does not suit the others.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    generator, settings = _generator(kind, options)
    counts = sizes(settings.n, generator.group(settings))
    lines = [generator.to_json(meaning) for meaning in generator.examples(settings, counts)]
    splits = [split for split, count in zip(SPLITS, counts, strict=True) for _ in range(count)]
    with whole(out) as aside:
        pq.write_table(pa.table({"split": splits, "meaning": lines}), aside)


def make_data(kind: str, options: dict[str, Any], language: str, meanings: str | Path, folder: str | Path) -> None:
    """Write the data of a language or pair to `folder`/{train,dev,test}.parquet. Row i has the same meaning in every
    language.

    Raises:
        FileNotFoundError: there is no file of meanings.
        ValueError: the file is damaged, or the language does not exist.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    generator, settings = _generator(kind, options)
    table = read_table(meanings)
    for column in ("split", "meaning"):
        if column not in table.column_names:
            raise Damaged(f"{meanings} has no column {column!r}: it is no file of meanings, make it again", meanings)
    for split in SPLITS:
        lines = table.filter(pc.equal(table["split"], split))["meaning"].to_pylist()
        try:
            examples = [generator.from_json(line) for line in lines]
        except (ValueError, TypeError, KeyError) as error:
            raise Damaged(
                f"{meanings}, {split}: a meaning is damaged ({error}): make the file again", meanings
            ) from error
        rows = [generator.row(example, language, settings) for example in examples]
        of_split = checked(pa.Table.from_pylist(rows), task(kind), f"{meanings}, {split}")
        write_rows(of_split, Path(folder) / f"{split}.parquet")


def _generator(kind: str, options: dict[str, Any]) -> tuple[Generator, Any]:
    """The generator of a task and its options."""
    described = task(kind)
    if described.generator is None:
        raise ValueError(f"data of {kind} cannot be generated: name their source in the study's `data`")
    try:
        return described.generator, described.Options(**options)
    except ValidationError as error:
        raise ValueError(f"options of {kind}: {plainly(error)}") from error
