"""BLEU (Papineni et al. 2002) as `sacrebleu` computes it (Post 2018), from statistics of each sentence.

The outcome of a sentence is its ten sufficient statistics: the number of words of the hypothesis and of the reference, the n-grams
of the hypothesis that are in the reference, for n from 1 to 4, and all n-grams of the hypothesis, for n from 1 to 4. BLEU of a
corpus follows from the sums of its sentences' statistics.
"""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

from xlgrid.heads.metrics import Metric

# Words are those of mteval-v13a, and a count of no n-gram is smoothed exponentially: the defaults of sacrebleu.
TOKENIZE, SMOOTH = "13a", "exp"
# The longest n-grams that are counted.
ORDER = 4
# The signature that sacrebleu prints for these settings.
SIGNATURE = f"nrefs:1|case:mixed|eff:no|tok:{TOKENIZE}|smooth:{SMOOTH}|version:{version('sacrebleu')}"


@cache
def _scorer() -> Any:
    """The scorer of sentences. Without `effective_order`, which changes no statistic, sacrebleu warns at each sentence."""
    from sacrebleu.metrics import BLEU

    return BLEU(tokenize=TOKENIZE, smooth_method=SMOOTH, effective_order=True)


def statistics(hypothesis: str, reference: str) -> list[int]:
    """The ten sufficient statistics of a sentence, as the top of this file lists them.

    Args:
        hypothesis, reference: text, not tokens.
    """
    sentence = _scorer().sentence_score(hypothesis, [reference])
    return [sentence.sys_len, sentence.ref_len, *sentence.counts, *sentence.totals]


def is_empty(outcome: Any) -> bool:
    """Whether the hypothesis of a sentence has no word. Such a sentence has no n-gram, and lengthens the reference alone."""
    return outcome[0] == 0


def corpus_bleu(sums: Sequence[float]) -> float:
    """BLEU, from 0 to 100, of the sums of sentences' statistics; 0 where no word is right."""
    from sacrebleu.metrics import BLEU

    words, reference_words, *ngrams = (int(amount) for amount in sums)
    score: float = BLEU.compute_bleu(
        ngrams[:ORDER], ngrams[ORDER:], words, reference_words, smooth_method=SMOOTH, max_ngram_order=ORDER
    ).score
    return score


CORPUS_BLEU = Metric("bleu", f"sacrebleu: {SIGNATURE}", tuple, unit="", of_sums=corpus_bleu)
