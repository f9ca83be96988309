"""Attachment scores as the evaluation script of CoNLL 2018 counts them (Zeman et al. 2018, section 4.1).

An outcome of a sentence is `[words with the right head, and with the right relation, too; words; content words with
both; content words in the data, and in the prediction]`. Relations are compared without their subtypes.
"""

from collections.abc import Sequence
from operator import itemgetter

from xlgrid.heads.metrics import Ratio, Share

# The relations of Universal Dependencies: of content words, and the others.
# fmt: off
CONTENT = {
    "nsubj", "obj", "iobj", "csubj", "ccomp", "xcomp", "obl", "vocative", "expl", "dislocated", "advcl", "advmod",
    "discourse", "nmod", "appos", "nummod", "acl", "amod", "conj", "fixed", "flat", "compound", "list", "parataxis",
    "orphan", "goeswith", "reparandum", "root", "dep",
}
# fmt: on
OTHERS = {"aux", "cop", "mark", "det", "clf", "case", "cc", "punct"}


def _content(outcome: list[int]) -> Share:
    return 2 * outcome[3], outcome[4] + outcome[5]


_SCRIPT = "as conll18_ud_eval.py has it for gold words, punctuation included, relations without subtypes"
LAS = Ratio(
    "las", f"xlgrid.heads.parsing: words with the right head and relation / all words, {_SCRIPT}", itemgetter(1, 2)
)
UAS = Ratio("uas", f"xlgrid.heads.parsing: words with the right head / all words, {_SCRIPT}", itemgetter(0, 2))
CLAS = Ratio("clas", f"xlgrid.heads.parsing: F1 of heads and relations of content words, {_SCRIPT}", _content)


def universal(relation: str) -> str:
    """A relation without its subtype: `nmod` for `nmod:poss`."""
    return relation.partition(":")[0]


def outcome(
    heads: Sequence[int], relations: Sequence[str], gold_heads: Sequence[int], gold_relations: Sequence[str]
) -> list[int]:
    """The outcome of a sentence. The predictions may cover only its first words; all others count as wrong."""
    guesses, answers = [*map(universal, relations)], [*map(universal, gold_relations)]
    attached = [head == gold for head, gold in zip(heads, gold_heads, strict=False)]
    right = [same and guess == gold for same, guess, gold in zip(attached, guesses, answers, strict=False)]
    return [
        sum(attached),
        sum(right),
        len(answers),
        sum(is_right and gold in CONTENT for is_right, gold in zip(right, answers, strict=False)),
        sum(gold in CONTENT for gold in answers),
        sum(guess in CONTENT for guess in guesses),
    ]
