"""Which languages give and which receive."""

import itertools

import numpy as np
import pandas as pd
import pytest
from page_fixture import study_of

from xlgrid.report import page
from xlgrid.report.donors import donors
from xlgrid.results.crossed import fit

GIVES = {"en": 6.0, "de": 2.0, "fr": 0.0, "ru": -3.0, "ar": -5.0, "hi": 1.0}
RECEIVES = {"en": 1.0, "de": 2.0, "fr": -1.0, "ru": 0.0, "ar": -2.0, "hi": 0.0}


def grid(languages: list[str], methods: tuple[str, ...] = ("full-ft",), receives: float = 1) -> pd.DataFrame:
    """Scores of effects of sources and targets, with a noise of 0.1. In the language of the source, they are 99.

    Args:
        receives: a factor of the effects of targets.
    """
    rng = np.random.default_rng(1)
    rows = [
        {
            **{"task": "t", "encoder": "e", "metric": "f1", "method": method, "source": source, "target": target},
            **{
                "seed": seed,
                "score": 99.0
                if source == target
                else 50 + GIVES[source] + receives * RECEIVES[target] + rng.normal(0, 0.1),
            },
        }
        for method, source, target, seed in itertools.product(methods, languages, languages, (1, 2))
    ]
    return pd.DataFrame(rows)


def test_the_languages_that_give_are_those_that_the_scores_depend_on() -> None:
    [(title, table)] = donors(grid(list(GIVES)))
    assert title == "t, e, f1"
    gives = table.set_index("Language")["full-ft gives"].str.replace("−", "-").str.split(" ").str[0].astype(float)
    mean = np.mean(list(GIVES.values()))
    assert gives.to_dict() == {code: pytest.approx(value - mean, abs=0.2) for code, value in GIVES.items()}


def test_titles_and_languages_are_the_labels_of_the_study() -> None:
    [(title, table)] = donors(grid(list(GIVES)), {"t": "NER", "full-ft": "Full fine-tuning", "en": "English"})
    assert title == "NER, e, f1"
    assert "Full fine-tuning gives" in table and "English" in set(table["Language"])


def test_an_axis_on_which_the_scores_do_not_depend_has_no_column() -> None:
    """Zeros without an interval would look like certainty."""
    cells = grid(list(GIVES), receives=0)
    [(_, table)] = donors(cells)
    assert list(table) == ["Language", "full-ft gives"]


def test_the_numbers_are_the_predictions_of_the_model_over_transfer_alone() -> None:
    cells = grid(list(GIVES))
    away = cells[cells["source"] != cells["target"]].groupby(["source", "target"], sort=False)["score"].mean()
    effect, error = fit(away.tolist(), list(zip(*away.index, strict=True))).random[0]["en"]
    [(_, table)] = donors(cells)
    assert table.set_index("Language").loc["en", "full-ft gives"] == f"+{effect:.1f} ± {1.96 * error:.1f}"


def test_each_method_has_columns_and_one_with_few_languages_has_none() -> None:
    [(_, table)] = donors(grid(list(GIVES), ("full-ft", "bitfit")))
    assert list(table) == ["Language", "full-ft gives", "full-ft receives", "bitfit gives", "bitfit receives"]
    assert list(donors(grid(["en", "de", "fr", "ru"]))) == []


def test_a_pair_that_lacks_a_seed_does_not_count() -> None:
    cells = grid(list(GIVES))
    cells.loc[(cells["source"] == "en") & (cells["seed"] == 2), "score"] = np.nan
    [(_, table)] = donors(cells)
    assert table.set_index("Language").loc["en", "full-ft gives"] == ""


def test_the_page_has_a_table_for_a_study_with_enough_languages() -> None:
    html = page.donors(study_of(grid(list(GIVES))))
    assert '<h2 id="donors">Donors and recipients</h2>' in html and "<td>en</td>" in html
    assert page.donors(study_of(grid(["en", "de"]))) == ""
