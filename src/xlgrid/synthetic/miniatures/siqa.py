"""Social IQa: questions about the causes and effects of people's actions (Sap et al. 2019).

The miniature is generated in artificial languages. Columns are those of the Hub's lighteval/siqa, which has no test
set: `data: {hub: lighteval/siqa, splits: {test: validation}}`.
"""

from functools import partial
from typing import Any

from xlgrid.synthetic import causality
from xlgrid.synthetic.causality import Example, Options, from_json, to_json
from xlgrid.synthetic.miniatures.wikiann import group, speaks

__all__ = ["CHOICES", "COLUMNS", "LABELS", "Options", "examples", "from_json", "group", "row", "speaks", "to_json"]

LABELS = ("1", "2", "3")
CHOICES = ("answerA", "answerB", "answerC")
COLUMNS = ("context", "question", *CHOICES, "label")
examples = partial(causality.examples, choices=len(CHOICES))


def row(example: Example, language: str, options: Options) -> dict[str, Any]:
    """One row of data; `label` is the number of the right answer, counted from 1.

    Raises:
        ValueError: `language` is not an artificial language.
    """
    context, answers = causality.sentences(example, language, options)
    texts = dict(zip(CHOICES, answers, strict=True))
    question = causality.question_sentence(example, language, options)
    return {"context": context, "question": question, **texts, "label": LABELS[example.right]}
