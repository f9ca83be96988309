"""Artificial languages: the same everywhere, the same meaning in all of them, and dials that move what they say."""

import hashlib
import os
import subprocess
import sys
import unicodedata
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xlgrid.synthetic import world
from xlgrid.synthetic.artificial import (
    CONTENT,
    GRAMMAR,
    NER,
    QUESTIONS,
    UPOS,
    ArtificialLanguage,
    artificial,
    is_artificial,
)

FAMILIES = "abcdefghijklmnopqrst"
FACTS = world.facts(400, 0)
UNICODE = {
    "Latn": "LATIN", "Cyrl": "CYRILLIC", "Deva": "DEVANAGARI", "Arab": "ARABIC", "Geor": "GEORGIAN", "Grek": "GREEK",
    "Hebr": "HEBREW", "Armn": "ARMENIAN", "Beng": "BENGALI", "Ethi": "ETHIOPIC",
}  # fmt: skip
codes = st.builds("q{}{}".format, st.sampled_from(FAMILIES), st.integers(1, 60))
shares = st.floats(0, 1)
languages = st.builds(artificial, codes, shares, shares, shares)
DIGEST = """
import hashlib
from xlgrid.synthetic import world
from xlgrid.synthetic.artificial import artificial
text = "".join(artificial(code).sentence(fact) for code in ("qa1", "qh3", "qt9") for fact in world.facts(60, 0))
print(hashlib.sha256(text.encode()).hexdigest())
"""


def test_text_is_the_same_in_every_process() -> None:
    def digest(hash_seed: str) -> str:
        environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        process = subprocess.run(
            [sys.executable, "-c", DIGEST], env=environment, capture_output=True, text=True, check=True
        )
        return process.stdout.strip()

    text = "".join(artificial(code).sentence(fact) for code in ("qa1", "qh3", "qt9") for fact in world.facts(60, 0))
    assert digest("1") == digest("2") == hashlib.sha256(text.encode()).hexdigest()


def test_text_stays_what_it_was() -> None:
    """Published miniature results depend on these very sentences; change them only on purpose."""
    fact = world.Fact(
        "find", (world.Phrase("per17"),), world.Phrase("book", "red", definite=True), time="yesterday", tense="past"
    )
    assert [artificial(code).sentence(fact) for code in ("qa1", "qa2", "qb1")] == [
        "Sonpo Pirano zo ruris gilo shumnil shovi boma.",
        "Sonpo Pirano chone ruris shik hemeshu shobi voma.",
        "Сонфо Пирано усазу мизан кума рурисаси.",
    ]


def test_question_words_left_all_others_as_they_were() -> None:
    """Every word and affix of languages with several dials, before there were any questions."""
    digest = hashlib.sha256()
    for code in ("qa1", "qa2", "qb1", "qf3", "qh3", "qt9", "qk2"):
        for dials in ((0.8, 0.1, 1.0), (0.5, 0.3, 0.5)):
            roots = sorted(artificial(code, *dials)._roots.items())
            digest.update(" ".join(f"{name}={form}" for name, form in roots if name not in QUESTIONS).encode())
    assert digest.hexdigest() == "69ab70b5c14c3c3270be16929b8984c145f7ffb51668a3806de8e9922cd6a02a"


@settings(max_examples=60)
@given(languages)
def test_question_words_are_like_no_other_word(language: ArtificialLanguage) -> None:
    words = {name: token.form for name, token in language._words.items()}
    forms = [words.pop(word) for word in QUESTIONS]
    assert len(set(forms)) == len(QUESTIONS)
    assert not set(forms) & set(words.values())


@settings(max_examples=60)
@given(languages, st.sampled_from(FACTS))
def test_a_named_entity_is_found_in_its_sentence(language: ArtificialLanguage, fact: world.Fact) -> None:
    for entity in world.mentions(fact):
        start, end = language.mention(fact, entity)
        tokens = [token for token in language.realise(fact) if token.ner != "O"]
        assert set(language.sentence(fact)[start:end].split()) <= {token.form for token in tokens}
    with pytest.raises(ValueError, match="is not mentioned in"):
        language.mention(fact, next(name for name in world.entities() if name not in world.mentions(fact)))


def test_a_name_that_begins_with_an_adposition_is_found_at_the_beginning_of_a_sentence() -> None:
    language = artificial("qb1", 0, 0, 0.5)
    fact = next(fact for fact in FACTS if fact.predicate == "lie" and fact.agents[0].head == "org51")
    start, end = language.mention(fact, "org51")
    assert language.sentence(fact)[start:end] == "Ло Фимапола Вуро"


def _meaning(language: ArtificialLanguage, fact: world.Fact) -> tuple[Counter[str], Counter[str]]:
    tokens = language.realise(fact)
    words = Counter(
        token.upos for token in tokens if token.upos in {"NOUN", "PROPN", "VERB", "ADJ", "ADV", "NUM", "PRON"}
    )
    return words, Counter(token.ner for token in tokens if token.ner[0] == "B")


@settings(max_examples=60)
@given(languages, st.sampled_from(FACTS))
def test_a_fact_means_the_same_in_every_language(language: ArtificialLanguage, fact: world.Fact) -> None:
    words, named = _meaning(language, fact)
    assert (words, named) == _meaning(artificial("qa1"), fact)
    assert named == Counter(f"B-{world.entities()[name].type}" for name in world.mentions(fact))
    assert words.total() == world.content_words(fact)


@settings(max_examples=60)
@given(languages, st.sampled_from(FACTS))
def test_tags_are_valid(language: ArtificialLanguage, fact: world.Fact) -> None:
    tokens = language.realise(fact)
    assert {token.upos for token in tokens} <= set(UPOS)
    assert {token.ner for token in tokens} <= set(NER)
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.ner[0] == "I":
            assert before is not None and before.ner[1:] == token.ner[1:], f"{token} continues no entity in {tokens}"


@settings(max_examples=60)
@given(languages)
def test_sentences_have_5_to_14_tokens(language: ArtificialLanguage) -> None:
    lengths = {len(language.realise(fact)) for fact in FACTS}
    assert min(lengths) >= 5
    assert max(lengths) <= 14


@settings(max_examples=60)
@given(languages, st.sampled_from(FACTS))
def test_letters_belong_to_the_script(language: ArtificialLanguage, fact: world.Fact) -> None:
    for token in language.realise(fact)[:-1]:
        foreign = [char for char in token.form if not unicodedata.name(char).startswith(UNICODE[language.script])]
        assert not foreign, f"{foreign} in {token.form!r}, written in {language.script}"
        assert unicodedata.is_normalized("NFC", token.form)


@settings(max_examples=30)
@given(codes)
def test_direction_is_that_of_the_letters(code: str) -> None:
    language = artificial(code)
    rtl = unicodedata.bidirectional(language.realise(FACTS[0])[0].form[0]) in ("R", "AL")
    assert language.direction == ("rtl" if rtl else "ltr")


def test_scripts_follow_the_alphabet_of_families() -> None:
    assert [artificial(f"q{letter}1").script for letter in FAMILIES] == list(UNICODE) * 2


@pytest.mark.parametrize("code", ["qa1", "qb1", "qf1", "qh1"])
def test_capitals_begin_sentences_and_names_and_nothing_else(code: str) -> None:
    for fact in FACTS:
        first, *rest = artificial(code).realise(fact)
        assert first.form[0].isupper()
        assert all(token.form[0].isupper() == (token.upos == "PROPN") for token in rest)


@settings(max_examples=40)
@given(codes, shares, shares)
def test_no_two_words_are_written_alike(code: str, overlap: float, loans: float) -> None:
    language = artificial(code, overlap, loans)
    fact = world.Fact("be", (world.Phrase("i"),))
    heads = [*world.NOUNS, *world.ADJECTIVES]
    forms = [language.realise(fact._replace(patient=world.Phrase(head)))[:-1] for head in heads]
    written = Counter(token.form for tokens in forms for token in tokens if token.upos in ("NOUN", "ADJ"))
    assert written.most_common(1)[0][1] == 1, written.most_common(3)
    assert len(written) == len(heads)


def test_arguments_change_places_between_word_orders() -> None:
    fact = world.Fact("see", (world.Phrase("per1"),), world.Phrase("dog"))
    upos = {code: [token.upos for token in artificial(code).realise(fact)] for code in ("qa1", "qb1", "qc1")}
    orders = {code: [tag for tag in tags if tag in ("PROPN", "VERB", "NOUN")] for code, tags in upos.items()}
    assert orders["qa1"][-2:] == ["VERB", "NOUN"]
    assert orders["qb1"][-2:] == ["NOUN", "VERB"]
    assert orders["qc1"][:2] == ["VERB", "PROPN"]


DIALS = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]


def lexical_overlap(a: ArtificialLanguage, b: ArtificialLanguage) -> float:
    """Share of roots that two languages have from the same source."""
    return sum(a.origins[root] == b.origins[root] for root in CONTENT) / len(CONTENT)


def typological_distance(a: ArtificialLanguage, b: ArtificialLanguage) -> float:
    """Share of the features of GRAMMAR that have different values in two languages."""
    return sum(a.grammar[feature] != b.grammar[feature] for feature in GRAMMAR) / len(GRAMMAR)


def test_overlap_moves_likeness_within_a_family() -> None:
    within = [lexical_overlap(artificial("qa1", overlap=x), artificial("qa2", overlap=x)) for x in DIALS]
    assert within == sorted(set(within)), f"not increasing: {within}"
    assert within[-1] == 1


@pytest.mark.parametrize("other", ["qb1", "qk1"])
def test_loans_move_likeness_across_families(other: str) -> None:
    across = [lexical_overlap(artificial("qa1", loans=x), artificial(other, loans=x)) for x in DIALS]
    assert across == sorted(set(across)), f"not increasing: {across}"
    assert (across[0], across[-1]) == (0, 1)


def test_distance_moves_grammars_apart() -> None:
    def mean(distance: float) -> float:
        grammars = [artificial(f"q{letter}1", distance=distance) for letter in FAMILIES]
        return sum(typological_distance(a, b) for a in grammars for b in grammars) / len(grammars) ** 2

    means = [mean(x) for x in DIALS]
    assert means == sorted(set(means)), f"not increasing: {means}"
    assert means[0] == 0


@settings(max_examples=40)
@given(st.sampled_from(FAMILIES), st.sampled_from(FAMILIES), st.integers(1, 30), st.integers(31, 60))
def test_families_are_families(family: str, other: str, a: int, b: int) -> None:
    if family == other:
        return
    language, cousin, unrelated = artificial(f"q{family}{a}"), artificial(f"q{family}{b}"), artificial(f"q{other}{b}")
    assert lexical_overlap(language, cousin) > 0.5
    assert lexical_overlap(language, unrelated) < 0.2


def test_a_higher_dial_keeps_what_a_lower_one_decided() -> None:
    low, high = artificial("qa1", overlap=0.3, distance=0.3), artificial("qa1", overlap=0.7, distance=0.7)
    assert {root for root in CONTENT if low.origins[root] == "qa"} < {
        root for root in CONTENT if high.origins[root] == "qa"
    }
    free = round(0.3 * len(GRAMMAR))
    assert list(low.grammar.items())[:free] == list(high.grammar.items())[:free]


@pytest.mark.parametrize(
    "code", ["", "en", "qa", "qa0", "qa01", "qu1", "QA1", "qa1x", "qa-1", "qaa", "qa12345", "qa1\n"]
)
def test_bad_codes_are_refused(code: str) -> None:
    assert not is_artificial(code)
    with pytest.raises(ValueError, match="a family letter a-t and a member number"):
        artificial(code)
