"""COPA and XCOPA: the more plausible cause or effect of a premise (Roemmele et al. 2011; Ponti et al. 2020), here told by
artificial languages.

On the Hub, cambridgeltl/xcopa has dev and test sets in a configuration for each language, and super_glue English training
data: `data: {hub: cambridgeltl/xcopa, name: "{language}", train: {hub: aps/super_glue, name: copa, languages: [en]},
dev: {hub: aps/super_glue, name: copa, languages: [en]}}`. The word `cause` or `effect` follows the premise, in English whatever
the language, as in AdapterHub's notebook on COPA.
"""

from collections.abc import Sequence
from typing import Any

from xlgrid.synthetic import causes
from xlgrid.synthetic.causes import Example, Options, from_json, to_json
from xlgrid.tasks.wikiann import group, speaks

__all__ = ["CHOICES", "COLUMNS", "LABELS", "Options", "examples", "from_json", "group", "row", "speaks", "to_json"]

LABELS = ("0", "1")
CHOICES = ("choice1", "choice2")
COLUMNS = ("premise", *CHOICES, "question", "label")


def examples(options: Options, sizes: Sequence[int]) -> list[Example]:
    """Distinct questions, those of the training split first."""
    return causes.examples(options, sizes, len(CHOICES))


def row(example: Example, language: str, options: Options) -> dict[str, Any]:
    """One question; `label` is the number of the right choice.

    Raises:
        ValueError: `language` is no artificial language.
    """
    premise, choices = causes.sentences(example, language, options)
    told = dict(zip(CHOICES, choices, strict=True))
    return {"premise": premise, **told, "question": example.question, "label": example.right}
