"""Trees of artificial languages."""

from collections import Counter

import pytest

from xlgrid.heads.parsing.trees import problem_of
from xlgrid.synthetic.artificial import artificial
from xlgrid.synthetic.miniatures import udpos
from xlgrid.synthetic.miniatures.udparse import LABELS, Options, examples, row
from xlgrid.synthetic.world import Fact, Phrase

# Families of the three orders of words, with articles and without, with cases and with adpositions.
LANGUAGES = ("qa1", "qb1", "qc1", "qd2", "qe1", "qf3")
TAGS = {"amod": {"ADJ"}, "nummod": {"NUM"}, "det": {"DET"}, "case": {"ADP"}, "cop": {"AUX"}, "aux": {"AUX"}}
TAGS |= {"punct": {"PUNCT"}, "cc": {"CCONJ"}, "mark": {"SCONJ"}, "flat": {"PROPN"}, "advmod": {"ADV", "PART"}}
NOMINAL = {"NOUN", "PROPN", "PRON"}
OPTIONS = Options(n=200)
FACTS = examples(OPTIONS, (200, 0, 0))


def arcs(fact: Fact, language: str) -> dict[str, tuple[str, str]]:
    """Each form of a sentence, which has no form twice -> the form of its head, and the relation."""
    sentence = row(fact, language, OPTIONS)
    forms = ["", *sentence["tokens"]]
    assert len({*forms}) == len(forms)
    relations = [LABELS[number] for number in sentence["deprel"]]
    return dict(zip(forms[1:], zip((forms[head] for head in sentence["head"]), relations, strict=True), strict=True))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_sentence_is_a_tree_over_the_words_of_its_fact(language: str) -> None:
    for fact in FACTS:
        sentence = row(fact, language, OPTIONS)
        assert sentence["tokens"] == udpos.row(fact, language, OPTIONS)["tokens"]
        assert len(sentence["tokens"]) == len(sentence["head"]) == len(sentence["deprel"])
        assert problem_of(sentence["head"]) is None


@pytest.mark.parametrize("language", LANGUAGES)
def test_relations_fit_the_parts_of_speech(language: str) -> None:
    for fact in FACTS:
        sentence, tags = row(fact, language, OPTIONS), udpos.row(fact, language, OPTIONS)["pos_tags"]
        upos = [udpos.LABELS[tag] for tag in tags]
        for tag, head, relation in zip(
            upos, sentence["head"], map(LABELS.__getitem__, sentence["deprel"]), strict=True
        ):
            assert (head == 0) == (relation == "root")
            assert tag in TAGS.get(relation, {*upos}), relation
            if relation in ("nsubj", "obj", "obl", "nmod", "conj"):
                assert tag in NOMINAL
            if relation in ("amod", "nummod", "det", "flat", "nmod"):
                assert upos[head - 1] in NOMINAL
            if relation in ("obj", "aux") and fact.predicate != "be":
                assert upos[head - 1] in ("VERB", "NOUN", "ADJ")


def test_all_languages_have_the_same_relations_between_content_words() -> None:
    """Word order, cases and articles change the order of words and the function words alone."""
    own = {"case", "det", "aux", "cop", "advmod"}
    for fact in FACTS:
        counts = [
            Counter(name for number in row(fact, language, OPTIONS)["deprel"] if (name := LABELS[number]) not in own)
            for language in LANGUAGES
        ]
        assert all(count == counts[0] for count in counts), fact


def test_a_sentence_with_an_owner_and_a_content() -> None:
    """`she said that the brother of per2 did not buy two apples from a bank`."""
    language = artificial("qa1")
    words = {concept: language.word(concept).form for concept in ("that", "not", "of", "the", "from")}
    brother = Phrase("brother", owner="per2", definite=True)
    content = Fact(
        "buy", (brother,), Phrase("apple", numeral="two", plural=True), (("from", Phrase("bank")),), positive=False
    )
    found = arcs(Fact("say", (Phrase("she"),), tense="past", content=content), "qa1")
    said = next(form for form, (_, relation) in found.items() if relation == "root")
    bought = next(form for form, (_, relation) in found.items() if relation == "ccomp")
    [of_said, of_bought] = [form for form, (_, relation) in found.items() if relation == "nsubj"]
    assert found[bought][0] == said and found[of_said][0] == said and found[of_bought][0] == bought
    assert found[words["that"]] == (bought, "mark") and found[words["not"]] == (bought, "advmod")
    owner = next(form for form, (head, relation) in found.items() if relation == "nmod")
    assert found[owner][0] == of_bought and found[words["of"]] == (owner, "case")
    assert found[words["the"]] == (of_bought, "det")
    bank = next(form for form, (_, relation) in found.items() if relation == "obl")
    assert found[bank][0] == bought and found[words["from"]] == (bank, "case")
    assert found["."] == (said, "punct")
