"""Translation of sentences; the miniature is in artificial languages, which state one fact each.

A source or target is a pair, such as `de-en`, of the language of the sources and that of the targets. On the Hub, WMT14 has both
sentences in one column (Bojar et al. 2014; Luo et al. 2021, section 4.2): `data: {hub: wmt/wmt14, names: {de-en: de-en, en-de:
de-en}, rename: {"translation.{first}": source, "translation.{second}": target}}`, where `{first}` and `{second}` stand for the
languages of the pair. A language alone has its own sentences as targets.
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
    """One sentence in the first language of a pair, and in the second.

    Raises:
        ValueError: `language` is no artificial language, or pair of them.
    """
    source, target = (options.language(code).sentence(fact) for code in sides(language))
    return {"source": source, "target": target}


_THIS: Any = sys.modules[__name__]
TASK = Task("translation", COLUMNS[:1], COLUMNS[1], LABELS, (), HEAD, Options, _THIS, tokens=60)
