"""Universal parts of speech (de Marneffe et al. 2021; as in XTREME, Hu et al. 2020).

The miniature is in artificial languages.
"""

from functools import partial
from typing import Any

from xlgrid.synthetic.artificial import UPOS
from xlgrid.synthetic.miniatures.wikiann import Options, draw, from_json, group, speaks, to_json
from xlgrid.synthetic.world import Fact

__all__ = ["COLUMNS", "LABELS", "Options", "examples", "from_json", "group", "row", "speaks", "to_json"]

LABELS = UPOS
COLUMNS = ("tokens", "pos_tags")
examples = partial(draw, named=False)


def row(fact: Fact, language: str, options: Options) -> dict[str, Any]:
    """One row of data: a sentence, with `pos_tags` as indices into LABELS.

    Raises:
        ValueError: `language` is not an artificial language.
    """
    tokens = options.language(language).realise(fact)
    return {"tokens": [token.form for token in tokens], "pos_tags": [LABELS.index(token.upos) for token in tokens]}
