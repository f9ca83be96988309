"""Translation of sentences. The miniature is in artificial languages, and both sentences of an example state one fact.

A source or target of a study is a pair, such as `de-en`: the language to translate from and the language to translate
into. On the Hub, WMT14 has both sentences in one column (Bojar et al. 2014; Luo et al. 2021, section 4.2): `data: {hub:
wmt/wmt14, names: {de-en: de-en, en-de: de-en}, rename: {"translation.{first}": source, "translation.{second}":
target}}`, where `{first}` and `{second}` stand for the languages of the pair. In data of a single language, a sentence
is its own translation.
"""

import sys
from functools import partial
from typing import Any

from xlgrid.papers.luo2021.seq2seq import HEAD
from xlgrid.papers.luo2021.seq2seq.bleu import Scoring
from xlgrid.synthetic.miniatures import wikiann
from xlgrid.synthetic.miniatures.pairs import sides
from xlgrid.synthetic.miniatures.wikiann import draw, from_json, group, speaks, to_json
from xlgrid.synthetic.world import Fact
from xlgrid.tasks import Task

__all__ = ["COLUMNS", "LABELS", "TASK", "Options", "examples", "from_json", "group", "row", "speaks", "to_json"]

LABELS = ()
COLUMNS = ("source", "target")
examples = partial(draw, named=False)


class Options(wikiann.Options, Scoring):
    """Size and content of the generated data, and how predictions are made and scored."""


def row(fact: Fact, language: str, options: Options) -> dict[str, Any]:
    """One row of data: a sentence in the first and in the second language of a pair.

    Raises:
        ValueError: `language` is neither an artificial language nor a pair of artificial languages.
    """
    source, target = (options.language(code).sentence(fact) for code in sides(language))
    return {"source": source, "target": target}


_THIS: Any = sys.modules[__name__]
TASK = Task("translation", COLUMNS[:1], COLUMNS[1], LABELS, (), HEAD, Options, _THIS, tokens=60)
