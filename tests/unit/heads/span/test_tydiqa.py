"""TyDiQA-GoldP: its scores are those of SQuAD v1.1's evaluation, in every language (Clark et al. 2020, section 8).

The README of the gold passage task names the evaluation script of SQuAD v1.1. Its algorithm is written out here without regular
expressions and counters.
"""

from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

from xlgrid.heads.span.head import SpanHead, answer_outcome
from xlgrid.tasks import task

PUNCTUATION = r"""!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~"""
HEAD = task("tydiqa").head
# Words of all nine languages, with articles of other languages, punctuation of other scripts, and digits.
TEXT = "the The a An cat U.S. 3,5 (kaksi) la el кот «Анна» القطة، বিড়াল। 고양이 పిల్లి paka x-y thea _a_"
WORDS = TEXT.split()
ANSWERS = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)


def is_word(character: str) -> bool:
    """Whether a character belongs to a word for an article's borders."""
    return character.isalnum() or character == "_"


def official_words(text: str) -> list[str]:
    """Lower case, no ASCII punctuation, no English articles, split at spaces: in this order."""
    text = "".join(character for character in text.lower() if character not in PUNCTUATION)
    kept, at = "", 0
    while at < len(text):
        article = next((word for word in ("an", "the", "a") if text.startswith(word, at)), None)
        starts = at == 0 or not is_word(text[at - 1])
        ends = article and (at + len(article) == len(text) or not is_word(text[at + len(article)]))
        if article and starts and ends:
            kept, at = kept + " ", at + len(article)
        else:
            kept, at = kept + text[at], at + 1
    return kept.split()


def official(predicted: str, gold: list[str]) -> list[float]:
    """F1 and exact match, each the best over the gold answers."""
    f1, match = 0.0, 0.0
    for answer in gold:
        guess, right = official_words(predicted), official_words(answer)
        rest, shared = list(right), 0
        for word in guess:
            if word in rest:
                rest.remove(word)
                shared += 1
        if shared:
            precision, recall = shared / len(guess), shared / len(right)
            f1 = max(f1, 2 * precision * recall / (precision + recall))
        match = max(match, float(guess == right))
    return [f1, match]


@given(
    ANSWERS,
    st.lists(ANSWERS, min_size=1, max_size=3),
    st.sampled_from(["en", "ar", "bn", "fi", "id", "ko", "ru", "sw", "te"]),
)
def test_scores_are_those_of_the_official_algorithm(predicted: str, gold: list[str], language: str) -> None:
    assert isinstance(HEAD, SpanHead)
    normalised = [HEAD.normalised(text, language) for text in (predicted, *gold)]
    assert answer_outcome(*normalised) == approx(official(predicted, gold))


def test_articles_go_in_every_language_and_punctuation_of_other_scripts_stays() -> None:
    assert official_words("the القطة، a.") == ["القطة،"] == HEAD.normalised("the القطة، a.", "ar").split()
    assert HEAD.normalised("La «Анна»", "ru") == "la «анна»"


def test_the_metrics_are_those_of_squad() -> None:
    assert task("tydiqa").metrics == ("squad-f1", "squad-em")
