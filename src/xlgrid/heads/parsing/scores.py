"""Attachment scores as the evaluation script of CoNLL 2018 counts them (Zeman et al. 2018, section 4.1).

An outcome of a sentence is `[gold heads, gold relations, predicted heads, predicted relations]`, four lists with a number
for each word. The predicted lists may have the first words only; all others count as wrong. Relations are compared
without their subtypes.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from xlgrid.heads.classification import LABEL, Array, Cases, OfCounts, averaged, measure

# The relations of Universal Dependencies: of content words, and the others.
# fmt: off
CONTENT = {
    "nsubj", "obj", "iobj", "csubj", "ccomp", "xcomp", "obl", "vocative", "expl", "dislocated", "advcl", "advmod",
    "discourse", "nmod", "appos", "nummod", "acl", "amod", "conj", "fixed", "flat", "compound", "list", "parataxis",
    "orphan", "goeswith", "reparandum", "root", "dep",
}
# fmt: on
OTHERS = {"aux", "cop", "mark", "det", "clf", "case", "cc", "punct"}


def universal(relation: str) -> str:
    """A relation without its subtype: `nmod` for `nmod:poss`."""
    return relation.partition(":")[0]


def _relations(labels: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(universal, labels)))


def _content(labels: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in _relations(labels) if name in CONTENT)


def _heads(outcomes: Sequence[Any], labels: Sequence[str]) -> Array:
    """The numbers of words whose head is right, of all words, and of predicted heads, [examples, 1, 3]."""
    rows = [(sum(map(int.__eq__, gold, heads)), len(gold), len(heads)) for gold, _, heads, _ in outcomes]
    return np.array(rows).reshape(-1, 1, 3)


def _arcs(outcomes: Sequence[Any], labels: Sequence[str]) -> Array:
    """The numbers of words with each relation, [examples, relations, 3]; of the right ones, the head is right, too."""
    names = _relations(labels)
    number = np.array([names.index(universal(label)) for label in labels])
    counts = np.zeros((len(outcomes), len(names), 3), np.int32)
    for example, (gold_heads, gold_relations, heads, relations) in enumerate(outcomes):
        gold, predicted = number[gold_relations], number[relations]
        right = (np.array(gold_heads[: len(heads)]) == heads) & (gold[: len(heads)] == predicted)
        for column, found in enumerate((predicted[right], gold, predicted)):
            np.add.at(counts[example, :, column], found, 1)
    return counts


def _content_arcs(outcomes: Sequence[Any], labels: Sequence[str]) -> Array:
    return _arcs(outcomes, labels)[:, [name in CONTENT for name in _relations(labels)]]


HEADS = Cases("heads", lambda labels: ("",), _heads)
ARCS = Cases("heads and relations", _relations, _arcs)
CONTENT_ARCS = Cases("heads and relations of content words", _content, _content_arcs)
_FOLLOWS = "conll18_ud_eval.py has it for gold words, with punctuation, without subtypes of relations"
_SHARE = partial(averaged, "micro", "recall")
LAS = OfCounts("las", f"xlgrid.heads.parsing: right heads with right relations / words, as {_FOLLOWS}", _SHARE, ARCS)
UAS = OfCounts("uas", f"xlgrid.heads.parsing: right heads / words, as {_FOLLOWS}", _SHARE, HEADS)
CLAS = measure("clas", "micro", "f1", CONTENT_ARCS, _FOLLOWS)
OF_RELATION = measure(f"las{LABEL}", "micro", "f1", ARCS, "of the words that are gold or predicted", only=True)
