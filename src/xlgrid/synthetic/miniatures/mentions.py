"""Several labels for a sentence, in the form of SemEval 2025 task 11 and BRIGHTER (Muhammad et al. 2025).

The miniature is in artificial languages. The labels of a sentence are the types of the named entities that it mentions:
none, one, or several. In files of data, `labels` has 1 or 0 for each label, in the order of LABELS. A study describes
data with a column of 0 and 1 for each label, such as emotions, with `kind: multilabel`: see docs/how-to/task.md.
"""

from functools import partial
from typing import Any

from xlgrid.synthetic import world
from xlgrid.synthetic.miniatures.wikiann import Options, draw, group, speaks
from xlgrid.synthetic.world import Fact, from_json, to_json

__all__ = ["COLUMNS", "LABELS", "Options", "examples", "from_json", "group", "row", "speaks", "to_json"]

LABELS = ("PER", "ORG", "LOC")
COLUMNS = ("text", "labels")
examples = partial(draw, named=False)


def row(fact: Fact, language: str, options: Options) -> dict[str, Any]:
    """One row of data: a sentence, with 1 or 0 for each label.

    Raises:
        ValueError: `language` is not an artificial language.
    """
    present = {world.entities()[name].type for name in world.mentions(fact)}
    labels = [int(label in present) for label in LABELS]
    return {"text": options.language(language).sentence(fact), "labels": labels}
