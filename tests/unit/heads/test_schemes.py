"""Tagging schemes: which labels are of one, and their spans, which are those of seqeval."""

import random
import warnings

import numpy as np
import pytest
from seqeval.metrics import f1_score
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import BILOU, IOBES, Entities

from xlgrid.heads import HEADS
from xlgrid.heads.entities import SPANS, UNTYPED
from xlgrid.heads.schemes import Scheme, scheme_of

# Types with hyphens of their own, and such that differ by the case alone.
TYPES = ("PER", "LOC", "B-cell", "per")
# A span: its type, its first and its last word.
Span = tuple[str, int, int]
STRICT = {"BIES": IOBES, "BILU": BILOU}


def labels_of(letters: str, form: str = "{}-{}", outside: str = "O", types: tuple[str, ...] = TYPES) -> tuple[str, ...]:
    return (outside, *(form.format(letter, kind) for kind in types for letter in letters))


def found(labels: tuple[str, ...]) -> Scheme:
    scheme = scheme_of(labels)
    assert scheme is not None, labels
    return scheme


def spans(labels: tuple[str, ...], words: list[str]) -> set[Span]:
    """The spans of a sentence."""
    scheme = found(labels)
    kinds = [*dict.fromkeys(scheme.tag(label).type for label in labels if not scheme.is_outside(label))]
    numbers = np.array([labels.index(word) for word in words], np.int64)
    firsts, lasts, of_kind = scheme.finder(labels)(numbers, np.arange(len(words)) == 0)
    return {
        (kinds[kind], *place) for kind, *place in zip(of_kind.tolist(), firsts.tolist(), lasts.tolist(), strict=True)
    }


def sentences(labels: tuple[str, ...], rng: random.Random, count: int = 1000) -> list[list[str]]:
    """Sentences of random labels, which are seldom valid; one in three goes on with the type of the word before."""
    drawn = []
    for _ in range(count):
        words: list[str] = []
        for _ in range(rng.randint(1, 9)):
            last = [label for label in labels if words and label[2:] == words[-1][2:]]
            words.append(rng.choice(last if last and rng.random() < 0.7 else labels))
        drawn.append(words)
    return drawn


@pytest.mark.parametrize("letters", ["BI", "I", "B", "IE", "BIES", "BILU"])
def test_spans_and_their_f1_are_those_of_seqeval_in_the_matching_mode(letters: str) -> None:
    rng, labels = random.Random(letters), labels_of(letters)
    predicted, gold = sentences(labels, rng), sentences(labels, rng)
    # Half of the sentences are nearly right.
    for at in range(0, len(gold), 2):
        predicted[at] = [label if rng.random() < 0.8 else rng.choice(labels) for label in gold[at]]
    predicted = [(guess * 9)[: len(answer)] for guess, answer in zip(predicted, gold, strict=True)]
    for words in gold + predicted:
        assert spans(labels, words) == spans_of_seqeval(words, letters), words
    mode = {"mode": "strict", "scheme": STRICT[letters]} if letters in STRICT else {}
    assert f1(labels, predicted, gold) == pytest.approx(f1_of_seqeval(gold, predicted, **mode))


@pytest.mark.parametrize("letters", ["BI", "IE"])
def test_span_f1_is_that_of_seqeval_where_letters_follow_types(letters: str) -> None:
    rng, labels = random.Random(letters), labels_of(letters, "{1}-{0}")
    predicted, gold = sentences(labels, rng), sentences(labels, rng)
    predicted = [(guess * 9)[: len(answer)] for guess, answer in zip(predicted, gold, strict=True)]
    assert f1(labels, predicted, gold) == pytest.approx(f1_of_seqeval(gold, predicted, suffix=True))


def spans_of_seqeval(words: list[str], letters: str) -> set[Span]:
    if letters not in STRICT:
        return set(get_entities(words))
    [entities] = Entities([words], STRICT[letters]).entities
    return {(entity.tag, entity.start, entity.end - 1) for entity in entities}


def f1(labels: tuple[str, ...], predicted: list[list[str]], gold: list[list[str]]) -> float:
    pairs = zip(gold, predicted, strict=True)
    outcomes = [[[labels.index(label) for label in side] for side in pair] for pair in pairs]
    return HEADS["token"].metric(labels, "f1").score(outcomes)


def f1_of_seqeval(gold: list[list[str]], predicted: list[list[str]], **mode: object) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return 100 * float(f1_score(gold, predicted, **mode))


FORMS = ["{}-{}", "{}_{}", "{} {}", "{1}-{0}", "{1}_{0}", "{1} {0}"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_upper", [True, False])
@pytest.mark.parametrize("letters", ["BI", "IE", "BIES", "BILU", "BMES", "BMEW"])
def test_a_scheme_is_the_same_in_each_notation(form: str, is_upper: bool, letters: str) -> None:
    """A type with the separator and with letters of the scheme stays whole."""
    types = ("PER", "B-cell_I", "drug_name")
    usual = labels_of(letters, types=types)
    cased = letters if is_upper else letters.lower()
    labels = labels_of(cased, form, outside="O" if is_upper else "o", types=types)
    assert found(labels).name == found(usual).name
    rng = random.Random(1)
    for _ in range(100):
        numbers = rng.choices(range(len(usual)), k=8)
        assert spans(labels, [labels[n] for n in numbers]) == spans(usual, [usual[n] for n in numbers])


@pytest.mark.parametrize(
    ("labels", "tags", "expected"),
    [
        ("O B-A I-A", "O O", set()),
        ("O B-A I-A", "B-A I-A O B-A", {("A", 0, 1), ("A", 3, 3)}),
        ("O B-A I-A", "I-A I-A", {("A", 0, 1)}),
        ("O B-A I-A B-B I-B", "B-A I-B I-B", {("A", 0, 0), ("B", 1, 2)}),
        ("O B I", "B I B O I", {("_", 0, 1), ("_", 2, 2), ("_", 4, 4)}),
        ("O I-A E-A", "I-A E-A I-A O E-A", {("A", 0, 1), ("A", 2, 2), ("A", 4, 4)}),
        ("O B-A I-A E-A S-A", "B-A E-A I-A S-A", {("A", 0, 1), ("A", 3, 3)}),
        ("O B-A I-A L-A U-A", "U-A U-A B-A I-A L-A B-A", {("A", 0, 0), ("A", 1, 1), ("A", 2, 4)}),
        ("O B-A M-A E-A S-A", "B-A M-A E-A S-A B-A M-A", {("A", 0, 2), ("A", 3, 3)}),
        # A letter before the type would be B in both labels.
        ("O B-cell-B B-cell-I", "B-cell-B B-cell-I", {("B-cell", 0, 1)}),
        ("B M E S", "B E S B M M E", {("_", 0, 1), ("_", 2, 2), ("_", 3, 6)}),
    ],
)
def test_spans(labels: str, tags: str, expected: set[Span]) -> None:
    assert spans(tuple(labels.split()), tags.split()) == expected


UPOS = "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X"
PENN = "CC CD DT EX FW IN JJ LS MD NN NNP PDT POS PRP PRP$ RB SYM TO UH VB WP$ -LRB- -RRB- HYPH , . : `` ''"


@pytest.mark.parametrize(
    "labels",
    [
        UPOS,
        PENN,
        # Parts of speech of tweets (Gimpel et al. 2011), and others of one letter.
        "N O ^ S Z L M V A R ! D P & T X Y # @ ~ U E $ , G",
        "A B C D",
        "A B I N",
        "N-S V-S B",
        "VBD-HL IN-TL NN",
        "O PER LOC",
        "E-mail S-mail",
        f"{PENN} O",
        f"{UPOS} O",
        "O BAD IN BIG INK",
        "BPER IPER",
    ],
)
def test_parts_of_speech_and_other_classes_are_of_no_scheme(labels: str) -> None:
    assert scheme_of(tuple(labels.split())) is None


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("O B-PER I-PER LOC", "B-PER, I-PER mark spans, and LOC does not: .*such as B-LOC and I-LOC"),
        ("OTHER PER-B PER-I", "OTHER does not: if OTHER stands for .* write O, and `labels: {OTHER: O}` in `data`"),
        ("0 B-PER I-PER", "and 0 does not: if 0 stands for words outside of spans, write O, and `labels: {0: O}`"),
        ("LOC MISC B-PER I-PER", "B-PER, I-PER mark spans, and LOC, MISC do not: write O for words outside of spans"),
        ("O B- I-", "write B, I, and `labels: {B-: B, ...}`"),
        ("O BPER IPER", "BPER, IPER seem to mark spans, .*: write B-PER, I-PER, and `labels: {BPER: B-PER, ...}`"),
        ("O PERB PERI", "write B-PER, I-PER, and"),
        ("O B+PER I+PER", "write B-PER, I-PER, and"),
        ("O B-PER PER-I", "B-PER mark.* and PER-I does not: .*such as B-PER and I-PER"),
        ("O o B-PER I-PER", "both O and o"),
        (
            "O B-PER I-PER E-PER",
            r"letters are B, E and I; BIOES has B, I, E and S: list .*\(B-PER, I-PER, E-PER, S-PER\)",
        ),
        ("O B-PER U-PER", r"letters are B and U; BILOU has B, I, L and U: list labels with all four"),
        ("O U-PER", r"only letter is U; BILOU .* all four \(B-PER, I-PER, L-PER, U-PER\), even if .* of one word only"),
        ("O B-PER M-PER I-PER", "the letters B, I, M mark spans in no scheme"),
    ],
)
def test_labels_of_half_a_scheme_are_refused(labels: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scheme_of(tuple(labels.split()))


@pytest.mark.parametrize("letters", ["BI", "IE", "BIES"])
def test_no_span_crosses_sentences_that_are_counted_together(letters: str) -> None:
    rng, labels = random.Random(letters), labels_of(letters)
    drawn = [*sentences(labels, rng, 200), [], [], *sentences(labels, rng, 200)]
    outcomes = [
        [[labels.index(word) for word in words], [rng.randrange(len(labels)) for _ in words]] for words in drawn
    ]
    for cases in (SPANS, UNTYPED):
        together = cases.matrices(outcomes, labels)
        assert np.array_equal(together, np.concatenate([cases.matrices([each], labels) for each in outcomes]))
        assert together[:, :, 0].any()
