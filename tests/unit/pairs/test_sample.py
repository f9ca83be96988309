"""What a report says about the languages of a study as a sample."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from xlgrid.languages import Language, language
from xlgrid.pairs.built_in import great_circle
from xlgrid.pairs.sample import described, effective


@given(st.lists(st.sampled_from("abcdef"), min_size=1))
def test_the_effective_number_is_exp_of_scipy_s_entropy(groups: list[str]) -> None:
    _, sizes = np.unique(groups, return_counts=True)
    assert effective(groups) == pytest.approx(np.exp(entropy(sizes)), abs=1e-12)


def test_the_effective_number_of_equal_groups_is_their_number() -> None:
    assert effective("aabbcc") == pytest.approx(3)
    assert effective("") == 0


def test_a_sample_has_its_families_scripts_and_mean_distance() -> None:
    known = [language(code) for code in ("en", "de", "ru")]
    apart = [great_circle(known[i], known[j]) or 0 for i, j in ((0, 1), (0, 2), (1, 2))]
    said = described(known)
    assert said.startswith("Languages: 3. Families: 2. Scripts: 2. Effective number of families")
    assert ": 1.9. " in said and f"Mean great-circle distance of two languages: {np.mean(apart):,.0f} km." in said


def test_what_is_not_known_is_said() -> None:
    said = described([Language("xx", "X", None, "Latn", "ltr"), language("en"), language("de")])
    assert "Families: 1, and the family of 1 language is not known." in said and "over 1 of 3 pairs" in said


def test_artificial_languages_have_no_distance() -> None:
    assert "great-circle" not in described([language("qa1"), language("qb1")])
