"""Social IQa: what follows from, or is behind, what people do (Sap et al. 2019), here told by artificial languages.

Columns are those of the Hub's lighteval/siqa, which has no test set:
`data: {hub: lighteval/siqa, splits: {test: validation}}`.
"""

from collections.abc import Sequence
from typing import Any

from xlgrid.synthetic import causes
from xlgrid.synthetic.causes import Example, Options, from_json, to_json
from xlgrid.tasks.copa import group, speaks

__all__ = ["CHOICES", "COLUMNS", "LABELS", "Options", "examples", "from_json", "group", "row", "speaks", "to_json"]

LABELS = ("1", "2", "3")
CHOICES = ("answerA", "answerB", "answerC")
COLUMNS = ("context", "question", *CHOICES, "label")


def examples(options: Options, sizes: Sequence[int]) -> list[Example]:
    """Distinct questions, those of the training split first."""
    return causes.examples(options, sizes, len(CHOICES))


def row(example: Example, language: str, options: Options) -> dict[str, Any]:
    """One question; `label` is the number of the right answer, counted from 1.

    Raises:
        ValueError: `language` is no artificial language.
    """
    context, answers = causes.sentences(example, language, options)
    told = dict(zip(CHOICES, answers, strict=True))
    question = causes.asking(example, language, options)
    return {"context": context, "question": question, **told, "label": LABELS[example.right]}
