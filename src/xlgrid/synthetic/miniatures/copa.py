"""COPA and XCOPA: the more plausible cause or effect of a premise (Roemmele et al. 2011; Ponti et al. 2020).

The miniature is generated in artificial languages. On the Hub, cambridgeltl/xcopa has dev and test sets in a
configuration for each language, and super_glue has English training data:
`data: {hub: cambridgeltl/xcopa, name: "{language}", train: {hub: aps/super_glue, name: copa, languages: [en]}, dev:
{hub: aps/super_glue, name: copa, languages: [en]}}`. The word `cause` or `effect` follows the premise, in English in
every language, as in AdapterHub's notebook on COPA.
"""

from functools import partial
from typing import Any

from xlgrid.synthetic import causality
from xlgrid.synthetic.causality import Example, Options, from_json, to_json
from xlgrid.synthetic.miniatures.wikiann import group, speaks

__all__ = ["CHOICES", "COLUMNS", "LABELS", "Options", "examples", "from_json", "group", "row", "speaks", "to_json"]

LABELS = ("0", "1")
CHOICES = ("choice1", "choice2")
COLUMNS = ("premise", *CHOICES, "question", "label")
examples = partial(causality.examples, choices=len(CHOICES))


def row(example: Example, language: str, options: Options) -> dict[str, Any]:
    """One row of data; `label` is the index of the right choice.

    Raises:
        ValueError: `language` is not an artificial language.
    """
    premise, choices = causality.sentences(example, language, options)
    texts = dict(zip(CHOICES, choices, strict=True))
    return {"premise": premise, **texts, "question": example.question, "label": example.right}
