"""Metrics, which are computed from the outcome of each example, so that a cell's examples can be paired and resampled later.

The head decides what an outcome is: 0 or 1 for a sequence or a choice, `[correct, labelled]` for the accuracy of tokens,
`[negative log-likelihood, masked]` for the perplexity of masked tokens, `[true positives, false positives, false negatives]`
for the F1 of labelled spans, of chunks or of mined pairs, `[F1, exact match]`, each from 0 to 1, for the answer to a question, and
ten statistics for the BLEU of a sentence.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

# The largest exponent of a number in double precision is a little larger.
LARGEST = 700
# The draws of examples from which a bootstrap estimates a variance.
DRAWS = 1000
Outcome = int | list[int] | list[float]
# The amounts that an example adds to the sums from which a metric is computed: to the numerator and to the denominator of a ratio.
Share = tuple[float, ...]


@dataclass(frozen=True)
class Metric:
    """A ratio of two sums over examples, or its exponential; or, with `of_sums`, another function of several sums.

    Attributes:
        name: the name in cells, tables and published numbers.
        implementation: the module of the computation and the definition that it follows; cells record it.
        shares: returns the amounts that an outcome adds to the sums, which are the numerator and the denominator of a ratio.
        unit: "%" or, for a metric without a unit, "".
        higher_is_better: whether a greater score is a better one.
        scale: the factor of the ratio, 100 for percent.
        is_exponential: the metric is e to the power of the ratio, as perplexity is.
        of_sums: returns the metric, in its unit, of the sums of `shares`, as for BLEU; None for a ratio.
    """

    name: str
    implementation: str
    shares: Callable[[Any], Share]
    unit: str = "%"
    higher_is_better: bool = True
    scale: float = 100
    is_exponential: bool = False
    of_sums: Callable[[Sequence[float]], float] | None = None

    def score(self, outcomes: Iterable[Outcome]) -> float:
        """The metric over all examples, in its unit.

        Where nothing can be counted (no example, no span), a metric of which more is better is 0. A metric of which less is
        better has no such value: 0 would be the best one, tables show NaN as a missing cell, and JSON has no infinity.

        Raises:
            ValueError: nothing can be counted, and less is better; or an exponential is too large for a number.
        """
        shares = [self.shares(outcome) for outcome in outcomes]
        if self.of_sums:
            return self.of_sums([sum(column) for column in zip(*shares, strict=True)]) if shares else 0.0
        numerator, denominator = (sum(column) for column in zip(*shares, strict=True)) if shares else (0, 0)
        if denominator > 0:
            ratio = self.scale * numerator / denominator
            if self.is_exponential and not ratio < LARGEST:
                raise ValueError(f"{self.name}, e to the power of {ratio:g}, is no number: the model has diverged")
            return math.exp(ratio) if self.is_exponential else ratio
        if self.higher_is_better:
            return 0.0
        raise ValueError(
            f"{self.name}, of which less is better, has no value: nothing can be counted in {len(shares)} examples: look at "
            "the task's data and its labels, then tokenize again"
        )

    def moves(self, outcomes: Sequence[Outcome]) -> "np.ndarray":
        """Values of which the mean of the squares, divided by their number, is the variance of the score over draws of as many
        examples.

        The values of scores on the same examples add up as the scores do, so that the variance of a weighted sum of scores follows
        from the weighted sum of their values.

        Returns:
            Shape [examples], as `influences`; for a metric with `of_sums`, shape [DRAWS], as `resampled`.
        """
        return self.resampled(outcomes) if self.of_sums else self.influences(outcomes)

    def resampled(self, outcomes: Sequence[Outcome]) -> "np.ndarray":
        """How far the score is from its mean, in its unit, times the root of `DRAWS`, in each of `DRAWS` draws of examples with
        replacement (the bootstrap; for BLEU, Koehn 2004). The draws depend on the number of examples only.

        Returns:
            Shape [DRAWS], of mean 0.
        """
        import numpy as np

        assert self.of_sums
        shares = np.array([self.shares(outcome) for outcome in outcomes], dtype=float)
        scores = np.array([self.of_sums(sums) for sums in _draws(len(outcomes)) @ shares])
        moves: np.ndarray = (scores - scores.mean()) * math.sqrt(DRAWS)
        return moves

    def influences(self, outcomes: Sequence[Outcome]) -> "np.ndarray":
        """How far each example moves a ratio, in the unit of the score, to first order; the mean of all is 0.

        The variance of a score over draws of as many examples is the mean of their squares divided by their number. All are
        0 where nothing can be counted.

        Returns:
            Shape [examples]: the number of examples times the change of `score` per unit of the example's weight.
        """
        import numpy as np

        shares = [self.shares(outcome) for outcome in outcomes]
        numerators, denominators = np.array(shares, dtype=float).reshape(-1, 2).T
        if not denominators.sum():
            return np.zeros(len(outcomes))
        ratio = numerators.sum() / denominators.sum()
        slope = self.scale * (np.exp(self.scale * ratio) if self.is_exponential else 1)
        influences: np.ndarray = slope * (numerators - denominators * ratio) / denominators.mean()
        return influences

    def better(self, first: float, second: float) -> bool:
        """Whether the first of two scores is the better one."""
        return first > second if self.higher_is_better else first < second


@lru_cache(maxsize=1)
def _draws(examples: int) -> "np.ndarray":
    """[DRAWS, examples], how often each draw takes each example."""
    import numpy as np

    return np.random.default_rng([examples]).multinomial(examples, np.full(examples, 1 / examples), size=DRAWS)


def _accuracy(outcome: int | list[int]) -> Share:
    return (outcome, 1) if isinstance(outcome, int) else (outcome[0], outcome[1])


def _answer_f1(outcome: list[float]) -> Share:
    return outcome[0], 1


def _answer_match(outcome: list[float]) -> Share:
    return outcome[1], 1


def _f1(outcome: list[int]) -> Share:
    true_positives, false_positives, false_negatives = outcome
    return 2 * true_positives, 2 * true_positives + false_positives + false_negatives


ACCURACY = Metric(
    "accuracy",
    "xlgrid.heads.metrics: correct / all (of a token task: of the first pieces of words)",
    _accuracy,
)
SPAN_F1 = Metric(
    "f1",
    "xlgrid.heads.token: micro-averaged F1 of exact spans",
    _f1,
)
CHUNK_F1 = Metric(
    "chunk-f1",
    "xlgrid.heads.token_chunks: micro-averaged F1 of runs of words with one label, as XTREME takes it from seqeval 0.0.12",
    _f1,
)
SQUAD_F1 = Metric(
    "squad-f1",
    "xlgrid.heads.span: F1 of words, mean over questions, as the evaluation script of SQuAD v1.1 has it",
    _answer_f1,
)
SQUAD_EM = Metric(
    "squad-em",
    "xlgrid.heads.span: exact match, mean over questions, as the evaluation script of SQuAD v1.1 has it",
    _answer_match,
)
MLQA_F1 = Metric(
    "mlqa-f1",
    "xlgrid.heads.span.mlqa: F1 of words, mean over questions, as MLQA's evaluation script v1 has it for the context's language",
    _answer_f1,
)
MLQA_EM = Metric(
    "mlqa-em",
    "xlgrid.heads.span.mlqa: exact match, mean over questions, as MLQA's evaluation script v1 has it for the context's language",
    _answer_match,
)
MINING_F1 = Metric(
    "mining-f1",
    "xlgrid.heads.embed.mining: F1 of pairs from two pools above the threshold that is best on the dev set, as XTREME mines BUCC",
    _f1,
)
PERPLEXITY = Metric(
    "perplexity",
    "xlgrid.heads.language_modelling.perplexity: e to the mean negative log-likelihood, in nats, of masked tokens",
    lambda outcome: (outcome[0], outcome[1]),
    unit="",
    higher_is_better=False,
    scale=1,
    is_exponential=True,
)
