"""Tatoeba: retrieval of translations (Artetxe and Schwenk 2019; XTREME, Hu et al. 2020).

Targets are pairs such as `fr-en`: XTREME searches the French sentences for the translation of each English sentence. On
the Hub, google/xtreme has a configuration for each language, named by its code of three letters:
`data: {hub: google/xtreme, names: {fr-en: tatoeba.fra, de-en: tatoeba.deu}, splits: {test: validation}}`.

The miniature is in artificial languages: both sentences of an example state the same fact.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from xlgrid.synthetic.miniatures.pairs import sides
from xlgrid.synthetic.miniatures.wikiann import Options, draw, group, speaks
from xlgrid.synthetic.world import Fact, from_json, to_json

__all__ = ["COLUMNS", "LABELS", "Options", "examples", "from_json", "group", "row", "speaks", "to_json"]

LABELS: Sequence[str] = ()
COLUMNS = ("source_sentence", "target_sentence")


examples = partial(draw, named=False)


def row(fact: Fact, language: str, options: Options) -> dict[str, Any]:
    """One row of data: the fact in the first and in the second language of a pair.

    Raises:
        ValueError: a language of the pair is not an artificial language.
    """
    sentences = (options.language(code).sentence(fact) for code in sides(language))
    return dict(zip(COLUMNS, sentences, strict=True))
