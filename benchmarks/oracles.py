"""The metrics of xlgrid beside those of other libraries, on examples that are drawn at random: cases, and the largest difference."""

import argparse
import random
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version

import sacrebleu
from seqeval.metrics import f1_score
from seqeval.scheme import BILOU, IOBES
from sklearn.metrics import accuracy_score

from xlgrid.heads import HEADS
from xlgrid.papers.luo2021.seq2seq.bleu import CORPUS_BLEU, statistics, tokenizer_of, unavailable

WORDS = {
    "de": ["der", "Hund", "sah", "die", "Häuser,", '"gut"', "3,5", "10%", "Straße", "."],
    "en": ["the", "dog", "Dog", "saw", '"sees"', "house,", "3.5", "10%", "don't", "."],
    "zh": ["我", "非常", "喜欢", "新加坡", "的", "天气", "BBC", "3.5", "，", "。"],
    "ja": ["私", "は", "町", "の", "天気", "が", "とても", "好き", "です", "。"],
    "ko": ["나는", "이", "도시의", "날씨를", "아주", "좋아한다", "개가", "달린다", "."],
}
# seqeval's options for the letters of a scheme.
SCHEMES = {"BI": {}, "IE": {}, "BIES": {"mode": "strict", "scheme": IOBES}, "BILU": {"mode": "strict", "scheme": BILOU}}


def accuracy(rng: random.Random) -> tuple[float, float]:
    """Accuracy of up to 50 predictions of four classes, here and by scikit-learn."""
    gold = rng.choices(range(4), k=rng.randint(1, 50))
    predicted = [label if rng.random() < 0.6 else rng.randrange(4) for label in gold]
    own = HEADS["sequence"].metric("abcd", "accuracy").score([*map(list, zip(gold, predicted, strict=True))])
    return own, 100 * float(accuracy_score(gold, predicted))


def span_f1(letters: str) -> Callable[[random.Random], tuple[float, float]]:
    """F1 of the spans of ten sentences, here and by seqeval in the mode for the scheme. Most labels are no valid sequence."""
    labels = ("O", *(f"{letter}-{kind}" for kind in ("PER", "LOC") for letter in letters))
    metric = HEADS["token"].metric(labels, "f1")

    def pair(rng: random.Random) -> tuple[float, float]:
        gold = [rng.choices(range(len(labels)), k=rng.randint(1, 9)) for _ in range(10)]
        predicted = [[label if rng.random() < 0.8 else rng.randrange(len(labels)) for label in row] for row in gold]
        own = metric.score([*map(list, zip(gold, predicted, strict=True))])
        named = [[[labels[number] for number in row] for row in rows] for rows in (gold, predicted)]
        return own, 100 * float(f1_score(*named, **SCHEMES[letters]))

    return pair


def bleu(language: str) -> Callable[[random.Random], tuple[float, float]]:
    """BLEU of ten sentences in a language, here and by sacrebleu, which is told the language."""
    tokenizer, space = tokenizer_of(language), "" if language in ("zh", "ja") else " "

    def pair(rng: random.Random) -> tuple[float, float]:
        words = [rng.choices(WORDS[language], k=rng.randint(1, 14)) for _ in range(10)]
        references = [space.join(row) for row in words]
        hypotheses = [space.join(word for word in row if rng.random() < 0.9) for row in words]
        rows = [statistics(*each, tokenizer) for each in zip(hypotheses, references, strict=True)]
        scorer = sacrebleu.BLEU(trg_lang=language)
        return CORPUS_BLEU.score(rows), scorer.corpus_score(hypotheses, [references]).score

    return pair


def rows(cases: int) -> Iterator[str]:
    """A row of Markdown for each metric."""
    pairs = {("accuracy", "scikit-learn"): accuracy}
    pairs |= {(f"F1 of spans, letters {letters}", "seqeval"): span_f1(letters) for letters in SCHEMES}
    pairs |= {(f"BLEU, {code}", "sacrebleu"): bleu(code) for code in WORDS if not unavailable(tokenizer_of(code))}
    for (name, library), pair in pairs.items():
        rng = random.Random(name)
        largest = max(abs(own - other) for own, other in (pair(rng) for _ in range(cases)))
        yield f"| {name} | {library} {version(library)} | {cases:,} | {largest:.0e} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000, help="the drawn cases of each metric")
    print("| metric | library | cases | largest difference |\n|---|---|---:|---:|")
    # seqeval says of each sentence without a span that it has none.
    warnings.simplefilter("ignore")
    for row in rows(parser.parse_args().cases):
        print(row, flush=True)


if __name__ == "__main__":
    main()
