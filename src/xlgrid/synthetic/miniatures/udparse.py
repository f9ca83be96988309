"""Dependency trees as in Universal Dependencies (de Marneffe et al. 2021). The miniature is in artificial languages.

The trees follow from the facts and the grammar that make the sentences. A study takes the data from the Hub with
`data: {hub: universal-dependencies/universal_dependencies, name: "{name}", names: {en: en_ewt, ...}}`.
"""

from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any

from xlgrid.synthetic.artificial import ArtificialLanguage, Token
from xlgrid.synthetic.miniatures.wikiann import Options, draw, from_json, group, speaks, to_json
from xlgrid.synthetic.world import Fact

__all__ = ["COLUMNS", "LABELS", "Options", "examples", "from_json", "group", "row", "speaks", "to_json"]

# The universal relations, in alphabetical order.
# fmt: off
LABELS = (
    "acl", "advcl", "advmod", "amod", "appos", "aux", "case", "cc", "ccomp", "clf", "compound", "conj", "cop", "csubj",
    "dep", "det", "discourse", "dislocated", "expl", "fixed", "flat", "goeswith", "iobj", "list", "mark", "nmod",
    "nsubj", "nummod", "obj", "obl", "orphan", "parataxis", "punct", "reparandum", "root", "vocative", "xcomp",
)
# fmt: on
COLUMNS = ("tokens", "head", "deprel")
examples = partial(draw, named=False)

# Words with their numbers, from 1; and an arc: the number of a word, that of its head, and their relation.
Words = list[tuple[int, Token]]
Arc = tuple[int, int, str]
_MODIFIERS = {"ADJ": "amod", "NUM": "nummod", "DET": "det", "ADP": "case"}


def row(fact: Fact, language: str, options: Options) -> dict[str, Any]:
    """One row of data: a sentence, with the number of each word's head (0 for the root) and `deprel` as indices into
    LABELS.

    Raises:
        ValueError: `language` is not an artificial language.
    """
    speaker, arcs = options.language(language), list[Arc]()
    tokens, numbers = speaker.realise(fact), count(1)
    parts = [(role, [(next(numbers), token) for token in words]) for role, words in speaker.constituents(fact)]
    root = _clause(speaker, fact, iter(parts), arcs)
    arcs += [(root, 0, "root"), (len(tokens), root, "punct")]
    return {
        "tokens": [token.form for token in tokens],
        "head": [head for _, head, _ in sorted(arcs)],
        "deprel": [LABELS.index(relation) for _, _, relation in sorted(arcs)],
    }


def _clause(speaker: ArtificialLanguage, fact: Fact, parts: Iterator[tuple[str, Words]], arcs: list[Arc]) -> int:
    """Add the arcs of a clause, and return the number of its root: the verb, or what `be` says of the subject.

    Args:
        parts: the rest of `ArtificialLanguage.constituents`, with the numbers of the words.
    """
    of_verb = {speaker.word("not"): "advmod", speaker.word("past"): "aux", speaker.word("future"): "aux"}
    verb = "cop" if fact.predicate == "be" else "root"
    heads: list[tuple[str, int]] = []
    for role, words in parts:
        if role == "verb":
            heads += [(of_verb.get(token, verb), number) for number, token in words]
        elif role == "that":
            assert fact.content
            content = _clause(speaker, fact.content, parts, arcs)
            arcs.append((words[0][0], content, "mark"))
            heads.append(("ccomp", content))
        else:
            of_patient = "root" if fact.predicate == "be" else "obj"
            heads.append((of_patient if role == "patient" else role, _phrase(speaker, words, arcs)))
    [root] = [number for role, number in heads if role == "root"]
    first, *others = [number for role, number in heads if role == "nsubj"]
    conjunctions = [number for role, number in heads if role == "cc"]
    for other, conjunction in zip(others, conjunctions, strict=True):
        arcs += [(other, first, "conj"), (conjunction, other, "cc")]
    arcs += [(number, root, role) for role, number in heads if number not in (root, *others, *conjunctions)]
    return root


def _phrase(speaker: ArtificialLanguage, words: Words, arcs: list[Arc]) -> int:
    """Add the arcs of a phrase, and return the number of its head: a noun, pronoun or name; otherwise the only word."""
    name = [(number, token) for number, token in words if token.ner != "O"]
    owner = _name(speaker, name, arcs) if name else None
    common = [number for number, token in words if token.upos in ("NOUN", "PRON")]
    head = common[0] if common else owner or words[0][0]
    if owner and owner != head:
        arcs.append((owner, head, "nmod"))
    for number, token in words:
        if token.ner == "O" and number != head:
            # The adposition of an owner is beside the owner's name.
            of = owner if owner and token == speaker.word("of") else head
            arcs.append((number, of, _MODIFIERS[token.upos]))
    return head


def _name(speaker: ArtificialLanguage, words: Words, arcs: list[Arc]) -> int:
    """Add the arcs of a name, and return the number of its head: an institution, whose owner is a modifier ("Bank of
    X"), or else the first word."""
    is_institution = words[0][1].ner == "B-ORG"
    proper = [number for number, token in words if token.upos == "PROPN"]
    if is_institution and speaker.grammar["genitive"] == "before":
        proper.reverse()
    head, *others = proper
    arcs += [(number, head, "nmod" if is_institution else "flat") for number in others]
    arcs += [(number, others[0], "case") for number, token in words if token.upos == "ADP"]
    return head
