"""The sizes of a study's data: from its settings where data are generated, counted where files are there, or as it says.

Fetched text is not counted where the study says its size: to read it may take hours.
"""

import math
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import accumulate, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from xlgrid.base.names import unknown
from xlgrid.data import generated, pools
from xlgrid.data.formats import BY_NAME, Reading, count_rows
from xlgrid.data.sources import SPLITS, local_files
from xlgrid.data.text import fetched_text
from xlgrid.languages.sources import Target
from xlgrid.plan.lengths import local_rows
from xlgrid.tasks import mlm

if TYPE_CHECKING:
    from xlgrid.data.text import TextSettings
    from xlgrid.study.schema import Study
    from xlgrid.study.tasks import Sizes


class Splits(NamedTuple):
    """Examples in each split; None if it is not known how many."""

    train: int | None
    dev: int | None
    test: int | None


@dataclass(frozen=True)
class DataSizes:
    """The sizes of a study's data.

    Attributes:
        stated: task or kind of task -> examples in train, dev and test, which replace the study's; the key `wikiann:jv` is
            for one language or pair.

    Raises:
        ValueError: sizes are given for a task or language that the study does not have, or of another number of splits.
    """

    study: "Study"
    stated: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    _known: dict[tuple[str, str], Splits] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        check_names(self.study, "examples", self.stated)
        for name, numbers in self.stated.items():
            if len(numbers) != len(SPLITS):
                wanted = ",".join(SPLITS).upper()
                raise ValueError(f"--examples {name} takes {len(SPLITS)} numbers, {wanted}, got {len(numbers)}")

    def of(self, name: str, code: str) -> Splits:
        """The sizes of a task's data in a language or pair."""
        if (name, code) not in self._known:
            self._known[name, code] = self._find(name, code)
        return self._known[name, code]

    def _find(self, name: str, code: str) -> Splits:
        entry = self.study.tasks[name]
        for key in (f"{name}:{code}", f"{entry.kind}:{code}", name, entry.kind):
            if key in self.stated:
                return Splits(*self.stated[key])
        sizes: Sizes | None = entry.examples_of.get(code, entry.examples)
        train, dev, test = (sizes.train, sizes.dev, sizes.test) if sizes else (None, None, None)
        if entry.from_text:
            # The test set of a text has as many rows as its dev set.
            stated = Splits(train, dev, test or dev)
            is_fetched = any(self.study.text.fetches(each) for each in Target(code).languages)
            return stated if sizes and is_fetched else self._of_text(name, code) or stated
        if entry.data is None:
            options: Any = entry.task.Options(**entry.options)
            assert entry.task.generator
            return Splits(*generated.sizes(options.n, entry.task.generator.group(options)))
        counted = {split: self._counted(name, code, split) for split in SPLITS}
        return Splits(counted["train"] or train, counted["dev"] or dev, counted["test"] or test)

    def _of_text(self, name: str, code: str) -> Splits | None:
        """The rows of a text that is generated or in files; of a pair, the rows of its smaller text."""
        text = self.study.text
        rows = [_count_text(text, each) if text.fetches(each) else text.sentences for each in Target(code).languages]
        if None in rows:
            return None
        smallest = min(number for number in rows if number is not None)
        entry = self.study.tasks[name]
        options: Any = entry.task.Options(**entry.options)
        return Splits(*mlm.split_sizes(smallest, options.dev_rows))

    def _counted(self, name: str, code: str, split: str) -> int | None:
        data, head = self.study.tasks[name].data, self.study.tasks[name].task.head
        assert data
        origin = data.of(split, code)
        if origin.local and (origin.where or origin.begins or origin.unanswerable or origin.misplaced):
            table = local_rows(self.study.tasks[name], code, split)
            return None if table is None else table.num_rows
        files = local_files(origin, code, split, head.has_pairs_only)
        reading = origin.reading(self.study.tasks[name].task)
        number = pools.count(files) if origin.has_parts else _count(files[:1], reading=reading)
        return min(number, origin.limit) if number and origin.limit else number


def _count(files: Iterable[str], documents: bool = False, reading: Reading = BY_NAME) -> int | None:
    """The rows of a file; None if there is none."""
    return next((count_rows(file, documents, reading) for file in files if Path(file).is_file()), None)


def _count_text(text: "TextSettings", language: str) -> int | None:
    """The rows of a local text that `xlgrid text` keeps; None if it is not there. Empty rows of a table count, too, unless rows are selected."""
    files = text.local_files(language)
    if not files or not all(Path(file).is_file() for file in files):
        return None
    selects = text.data and language not in text.files and (text.data.where or text.data.limit or text.once)
    if not selects and text.most_characters is None:
        return _count(files[:1], text.documents)
    texts, _ = fetched_text(language, text, None)
    with closing(texts):
        ends = accumulate(len(row) for _, row in texts if row.strip())
        most = text.most_characters or math.inf
        return sum(1 for _ in takewhile(lambda end: end <= most, ends))


def check_names(study: "Study", option: str, keys: Iterable[str]) -> None:
    """Raise a ValueError if an option of `xlgrid cost` is about a task or language that the study does not have."""
    known = dict.fromkeys([*study.tasks, *(entry.kind for entry in study.tasks.values())])
    for key in keys:
        name, _, code = key.partition(":")
        if name not in known:
            raise ValueError(f"--{option}: {unknown('task or kind of task', name, known)}")
        if code and (option == "tokens" or not {*Target(code).languages} <= {*study.languages}):
            raise ValueError(f"--{option} {name}: {unknown('language', code, study.languages)}")
