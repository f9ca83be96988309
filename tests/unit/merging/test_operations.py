"""Each operation is its paper's equation, written out for single numbers, in float64."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from peft.utils import merge_utils

from xlgrid.merging import OPERATIONS, Operation
from xlgrid.merging.operation import Parameter

numbers = st.floats(-8, 8, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-6)


@st.composite
def cases(draw: st.DrawFn, least: float = -2) -> tuple[list[float], list[list[float]], list[float]]:
    """θ_0, θ_i of each member, and weights, of which no sum is near 0."""
    size, count = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    vectors = st.lists(numbers, min_size=size, max_size=size)
    members = draw(st.lists(vectors, min_size=count, max_size=count))
    weights = draw(st.lists(st.floats(max(least, 0.1), 2), min_size=count, max_size=count))
    return draw(vectors), members, weights


class Whole:
    """A member whose only parameter is a vector."""

    def __init__(self, values: torch.Tensor, first: torch.Tensor) -> None:
        self.values, self.first = values, first

    def task_vector(self) -> list[torch.Tensor]:
        return [self.values - self.first]


def merged(
    operation: Operation,
    first: Sequence[float],
    members: Sequence[Sequence[float]],
    weights: Sequence[float],
    seed: int = 1,
) -> list[float]:
    begin, *values = (torch.tensor(x, dtype=torch.float64) for x in (first, *members))
    facts = [operation.fact(Whole(value, begin)) for value in values]  # type: ignore[arg-type]
    return operation.merge(Parameter("x", slice(None), begin, values, weights, facts, seed)).tolist()


def close(got: Sequence[float], expected: Sequence[float]) -> None:
    assert got == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(cases())
def test_a_sum(case: Any) -> None:
    first, members, weights = case
    expected = [math.fsum(w * m[j] for w, m in zip(weights, members, strict=True)) for j in range(len(first))]
    close(merged(OPERATIONS["sum"](), first, members, weights), expected)


@given(cases())
def test_an_average_divides_by_the_sum_of_the_weights(case: Any) -> None:
    first, members, weights = case
    operation = OPERATIONS["average"]()
    total = math.fsum(weights)
    expected = [math.fsum(w * m[j] for w, m in zip(weights, members, strict=True)) / total for j in range(len(first))]
    close(merged(operation, first, members, operation.weigh(weights, len(weights))), expected)


@given(cases())
def test_task_arithmetic(case: Any) -> None:
    """Ilharco et al. 2023, section 2: θ = θ_0 + Σ λ_i (θ_i - θ_0)."""
    first, members, weights = case
    expected = [
        float(
            Fraction(f)
            + sum(Fraction(w) * (Fraction(m[j]) - Fraction(f)) for w, m in zip(weights, members, strict=True))
        )
        for j, f in enumerate(first)
    ]
    close(merged(OPERATIONS["task-arithmetic"](), first, members, weights), expected)


def ties(first: Sequence[float], members: Sequence[Sequence[float]], density: float, scale: float) -> list[float]:
    """Algorithm 1 of Yadav et al. 2023, of which values as large as the smallest that stays stay, too."""
    kept = max(1, round(density * len(first)))
    trimmed = []
    for member in members:
        vector = [m - f for m, f in zip(member, first, strict=True)]
        least = sorted(map(abs, vector), reverse=True)[kept - 1]
        trimmed.append([x if abs(x) >= least else 0.0 for x in vector])
    result = []
    for j, f in enumerate(first):
        total = sum(vector[j] for vector in trimmed)
        elected = (total > 0) - (total < 0)
        agreeing = [vector[j] for vector in trimmed if elected and (vector[j] > 0) - (vector[j] < 0) == elected]
        result.append(f + scale * (math.fsum(agreeing) / len(agreeing) if agreeing else 0.0))
    return result


@given(cases(), st.sampled_from([0.2, 0.5, 1.0]), st.sampled_from([0.4, 1.0]))
def test_ties_with_equal_weights_is_the_algorithm_of_the_paper(case: Any, density: float, scale: float) -> None:
    first, members, _ = case
    # Integers, whose sums are exact, so that no sign depends on rounding.
    first, members = [round(x) for x in first], [[round(x) for x in member] for member in members]
    operation = OPERATIONS["ties"].model_validate({"density": density, "scale": scale})
    weights = [1.0] * len(members)
    close(merged(operation, first, members, weights), ties(first, members, density, scale))
    close(merged(operation, first, members, operation.weigh(None, len(members))), ties(first, members, density, scale))


def test_ties_trims_elects_and_merges_an_example_by_hand() -> None:
    operation = OPERATIONS["ties"].model_validate({"density": 0.5})
    members = [[4.0, 1.0, -3.0, 0.0], [-1.0, 2.0, 5.0, 0.5], [6.0, 3.0, 1.0, 0.0]]
    # Trimmed: [4, 0, -3, 0], [0, 2, 5, 0], [6, 3, 0, 0]. Elected: +, +, +, none.
    close(merged(operation, [0.0] * 4, members, [1.0] * 3), [5.0, 2.5, 5.0, 0.0])
    # With weights 3 and 1, the first sign of the third value wins: 3 * -3 + 5 < 0.
    close(merged(operation, [0.0] * 4, members[:2], [3.0, 1.0]), [4.0, 2.0, -3.0, 0.0])


def test_ties_and_sums_are_those_of_peft_where_no_sign_is_tied() -> None:
    generator = torch.Generator().manual_seed(1)
    vectors = [torch.randn(1000, generator=generator, dtype=torch.float64) for _ in range(3)]
    lists, zeros = [vector.tolist() for vector in vectors], [0.0] * 1000
    ours = merged(OPERATIONS["ties"].model_validate({"density": 0.2}), zeros, lists, [1.0] * 3)
    close(ours, merge_utils.ties(vectors, torch.ones(3, dtype=torch.float64), 0.2).tolist())
    weights = [0.3, 0.9, -0.2]
    ours = merged(OPERATIONS["task-arithmetic"](), zeros, lists, weights)
    close(ours, merge_utils.task_arithmetic(vectors, torch.tensor(weights, dtype=torch.float64)).tolist())


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.9])
def test_dare_drops_a_share_of_the_values_and_divides_the_others(rate: float) -> None:
    """Yu et al. 2024, section 3.2: δ = m ⊙ τ / (1 - p), with m from a Bernoulli distribution of probability 1 - p."""
    size = 20_000
    first, member = torch.linspace(-1, 1, size, dtype=torch.float64), torch.linspace(3, 5, size, dtype=torch.float64)
    operation = OPERATIONS["dare"].model_validate({"rate": rate})
    got = torch.tensor(merged(operation, first.tolist(), [member.tolist()], [0.5]), dtype=torch.float64) - first
    stays = got.abs() > 1e-9
    torch.testing.assert_close(got[stays], (0.5 * (member - first) / (1 - rate))[stays], rtol=1e-12, atol=1e-12)
    assert abs(float((~stays).double().mean()) - rate) < 4 * math.sqrt(rate * (1 - rate) / size) + 1e-12


def test_dare_draws_the_same_values_again_and_others_for_each_seed_member_and_parameter() -> None:
    operation = OPERATIONS["dare"].model_validate({"rate": 0.5})
    zeros, ones = [0.0] * 64, [1.0] * 64
    assert merged(operation, zeros, [ones], [1.0]) == merged(operation, zeros, [ones], [1.0])
    assert merged(operation, zeros, [ones], [1.0]) != merged(operation, zeros, [ones], [1.0], seed=2)
    assert len({*merged(operation, zeros, [ones, ones], [1.0, 1.0])}) == 3, "0, 2 and 4 where masks differ"
    begin, one = torch.zeros(64, dtype=torch.float64), torch.ones(64, dtype=torch.float64)
    of_names = [operation.merge(Parameter(name, slice(None), begin, [one], [1.0], [None], 1)) for name in "xy"]
    assert not of_names[0].equal(of_names[1])


@pytest.mark.parametrize("name", ["average", "ties", "fisher"])
def test_a_mean_has_weights_from_0_up_which_may_be_absent(name: str) -> None:
    operation = OPERATIONS[name]()
    assert operation.weigh(None, 4) == [0.25] * 4 and operation.weigh([3, 1], 2) == [0.75, 0.25]
    for wrong in ([1, -1], [0, 0]):
        with pytest.raises(ValueError, match="0 or more and not all 0"):
            operation.weigh(wrong, 2)


@pytest.mark.parametrize("name", ["sum", "task-arithmetic", "dare"])
def test_a_sum_needs_weights_and_takes_them_as_they_are(name: str) -> None:
    assert OPERATIONS[name]().weigh([3, -1], 2) == [3, -1]
    with pytest.raises(ValueError, match="add `weights`"):
        OPERATIONS[name]().weigh(None, 2)


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "fisher"])
@given(cases())
def test_a_merge_of_a_run_with_weight_1_is_the_run(name: str, case: Any) -> None:
    first, members, _ = case
    operation = OPERATIONS[name].model_validate({"dare": {"rate": 0}, "ties": {"density": 1}}.get(name, {}))
    close(merged(operation, first, members[:1], [1.0]), members[0])


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "fisher"])
def test_heads_are_averaged_by_the_weights_of_the_members_that_have_one(name: str) -> None:
    values = [torch.tensor([2.0, -4.0], dtype=torch.float64), torch.tensor([4.0, 0.0], dtype=torch.float64)]
    of = Parameter("classifier.weight", slice(None), torch.zeros(2), values, [0.6, 0.2], [0.0, 0.0], 1)
    close(OPERATIONS[name]().merge_head(of).tolist(), [2.5, -3.0])
