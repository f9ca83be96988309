"""Two pools of sentences and their gold pairs, in three files as in BUCC (Zweigenbaum et al. 2018).

A line of a pool has an id, a tab and a sentence. A line of the gold file has the id of a sentence in the first
language, a tab, and the id of its translation in the second language.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from xlgrid.base.settings import LocalPath
from xlgrid.data.formats.files import text_lines
from xlgrid.data.origins.files import Files
from xlgrid.languages.sources import Target
from xlgrid.tasks import Task

if TYPE_CHECKING:
    import pyarrow as pa

# The value of `{part}` for the file of gold pairs.
GOLD = "gold"


class Pools(Files):
    """A split in three local files: a pool of sentences in each language of a pair, and the ids of translations."""

    local: LocalPath = Field(
        description="the path of the files. {language}, {split} and {name}, the language's entry in `names`, are "
        "replaced; docs/how-to/data.md lists the types of files. In a task of kind `bucc`, {part} is replaced by each "
        "language of the pair, for the file with the ids and sentences of a pool, and by `gold`, for the file with the "
        "ids of translations",
    )
    braces = (*Files.braces, "part")

    @model_validator(mode="after")
    def _has_no_columns(self) -> Self:
        if self.rename or self.where or self.begins:
            raise ValueError(
                "files with `{part}` in their path have no named columns: leave out `where`, `begins` and `rename`"
            )
        return self

    @classmethod
    def describes(cls, fields: dict[str, Any]) -> bool:
        return "{part}" in str(fields.get("local"))

    def has_pair(self, pair: str) -> bool:
        return True

    def paths(self, language: str, split: str) -> list[str]:
        path = self.path(language, split)
        return [path.replace("{part}", part) for part in (*Target(language).languages, GOLD)]

    def read(self, described: Task, language: str, split: str, lock: str | Path) -> "tuple[pa.Table, str]":
        files = self.paths(language, split)
        return read_pools(files), " and ".join(files)


def read_pools(files: Sequence[str | Path]) -> "pa.Table":
    """Read the sentences of two pools as a table.

    The columns are `id`, `side` (0 for the first pool, 1 for the second), `sentence`, and `gold`, the ids of the
    sentence's translations in the second pool.

    Args:
        files: the first pool, the second pool and the gold file.

    Raises:
        FileNotFoundError: a file does not exist.
        ValueError: a pool is empty, a line has no tab, or the first pool lacks ids of the gold file. The head makes the
            other checks.
    """
    import pyarrow as pa

    first, second, gold_file = files
    pools = [[*_fields(path)] for path in (first, second)]
    for path, pool in zip(files, pools, strict=False):
        if not pool:
            raise ValueError(
                f"{path} is empty, but mining needs a pool of sentences in each language: get the file again"
            )
    gold: dict[str, list[str]] = {number: [] for number, _ in pools[0]}
    pairs = [*_fields(gold_file)]
    if missing := sorted({number for number, _ in pairs} - {*gold}):
        raise ValueError(
            f"the pool {first} lacks {len(missing)} of the {len(pairs)} ids in {gold_file}, such as {missing[0]!r}: "
            "use the pools and the gold pairs of the same release"
        )
    for number, translation in pairs:
        gold[number].append(translation)
    rows = [(number, side, sentence) for side, pool in enumerate(pools) for number, sentence in pool]
    ids, sides, sentences = zip(*rows, strict=True)
    names = [gold[number] if side == 0 else [] for number, side in zip(ids, sides, strict=True)]
    return pa.table(
        {
            "id": pa.array(ids, pa.string()),
            "side": pa.array(sides, pa.int32()),
            "sentence": pa.array(sentences, pa.string()),
            "gold": pa.array(names, pa.list_(pa.string())),
        }
    )


def _fields(path: str | Path) -> Iterator[tuple[str, str]]:
    """The two fields of each line that is not empty, without surrounding spaces."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no file {path}: check the path, or get the files of this pair; `{{part}}` in `local` is "
            "replaced by the code of each language and by `gold`"
        )
    for number, line in text_lines(path):
        if not line.strip():
            continue
        first, tab, second = line.partition("\t")
        if not tab or not first.strip() or not second.strip():
            raise ValueError(
                f"{path}, line {number}: expected two fields with a tab between them, got {line[:80]!r}; mend this line"
            )
        yield first.strip(), second.strip()
