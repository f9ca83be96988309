"""Tatoeba: which sentence of another language translates an English one? (Artetxe and Schwenk 2019; XTREME, Hu et al. 2020)

Targets are pairs such as `fr-en`: XTREME searches the French sentences for each English one. On the Hub, google/xtreme has a
configuration for each language, by its code of three letters:
`data: {hub: google/xtreme, names: {fr-en: tatoeba.fra, de-en: tatoeba.deu}, splits: {test: validation}}`.

The miniature is in artificial languages: both sentences of an example state one fact.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from xlgrid.heads.embed.head import Retrieval
from xlgrid.languages.sources import Target
from xlgrid.synthetic.world import from_json, to_json
from xlgrid.tasks import wikiann
from xlgrid.tasks.wikiann import group, speaks

__all__ = ["COLUMNS", "LABELS", "Options", "examples", "from_json", "group", "row", "speaks", "to_json"]

LABELS: Sequence[str] = ()
COLUMNS = ("source_sentence", "target_sentence")


class Options(wikiann.Options, Retrieval):
    """The size of generated data, how much the artificial languages differ, and how sentences are compared."""


examples = partial(wikiann.draw, named=False)


def row(fact: wikiann.Fact, language: str, options: Options) -> dict[str, Any]:
    """One row of data: the fact in the first and in the second language of a pair.

    Raises:
        ValueError: a language is no artificial language.
    """
    codes = Target(language).languages
    sentences = (options.language(code).sentence(fact) for code in (codes[0], codes[-1]))
    return dict(zip(COLUMNS, sentences, strict=True))
