"""The numbers of examples in the data of a study, and of tokens in an example.

If the data are on this machine, their rows are counted. The sizes of generated data follow from the options of the
task. For other data, the study states the sizes (`examples`), or they are counted in the user's files.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.data import generated
from xlgrid.data.origins.origin import SPLITS
from xlgrid.languages.sources import Target, unaccompanied
from xlgrid.products.data import Data, Text
from xlgrid.products.encode import Tokens
from xlgrid.tasks import mlm

if TYPE_CHECKING:
    from xlgrid.plan.plan import Plan


class DataSizes:
    """The sizes of a study's data. Each size is determined once, and cached."""

    def __init__(self, plan: "Plan") -> None:
        self.plan = plan
        self._numbers: dict[tuple[str, str, str], int] = {}

    def examples(self, tokens: Tokens) -> int:
        """The number of examples in the data from which the tokens of a task, language or pair, and split are made.

        Raises:
            ValueError: the number is not known.
        """
        name, part, split = key = tokens.task, Target(unaccompanied(tokens.language)[0]), tokens.split
        if key not in self._numbers:
            number = self._examples(*key)
            if number is None:
                raise ValueError(
                    f"study {self.plan.study.name} does not say how many examples the task {name} has in the {split} "
                    f"set of {part}, and the data are not here: add `examples: {{train: ..., dev: ..., test: ...}}` "
                    f"to tasks.{name}"
                )
            self._numbers[key] = number
        return self._numbers[key]

    def _examples(self, name: str, part: Target, split: str) -> int | None:
        entry = self.plan.study.tasks[name]
        stated = getattr(entry.examples and entry.examples.languages.get(part, entry.examples), split, None)
        options: Any = entry.task.Options(**entry.options)
        if entry.from_text:
            rows = [self._text(code) for code in part.languages]
            known = [number for number in rows if number is not None]
            if len(known) == len(rows):
                # A pair has the rows of its smaller text.
                return mlm.split_sizes(min(known), options.dev_rows)[SPLITS.index(split)]
            return stated or (None if split == "train" else options.dev_rows)
        if entry.is_generated and entry.task.generator:
            return generated.sizes(options.n, entry.task.generator.group(options))[SPLITS.index(split)]
        known_size = _rows(self.plan.owned(Data(self.plan.study.name, name, part, split))) or stated
        local = None if known_size else Data(self.plan.study.name, name, part, split).rows(self.plan.study)
        return known_size or (local and local.num_rows)

    def _text(self, code: str) -> int | None:
        """The number of rows in the text of a language; None for a text from elsewhere that is not fetched yet."""
        text, product = self.plan.study.text, self.plan.owned(Text(self.plan.study.name, code))
        return _rows(product) or (None if text.fetches(code) else text.sentences)

    def length(self, name: str) -> int:
        """The assumed tokens of an input of a task: `max_length` if texts fill inputs, otherwise `Task.tokens`."""
        entry = self.plan.study.tasks[name]
        fills = entry.options.get("documents", "cut") != "cut"
        return entry.max_length if fills else min(entry.task.tokens, entry.max_length)

    def of_example(self, name: str) -> int:
        """The tokens of an example of a task, which has an input for each of its choices."""
        return self.length(name) * max(1, len(self.plan.study.tasks[name].task.choices))


def _rows(product: Data | Text) -> int | None:
    """The number of rows in data or a text; None if the file is not on this machine yet."""
    import pyarrow.parquet as pq

    return int(pq.read_metadata(product.path).num_rows) if Path(product.path).is_file() else None
