"""A file that a study does not make is refused with the part that is wrong and what is near it."""

import re

import pytest
from plan_fixture import EARLY, begun, small

from xlgrid.plan.explain import explain
from xlgrid.plan.plan import Plan
from xlgrid.results.claims import Claim


@pytest.mark.parametrize(
    "path",
    [
        "cells/ner/mini/bitfit/en/fr/seed1.json",
        "runs/ner/mini/bitfit/en/seed1/curve.jsonl",
        "data/ner/meanings.parquet",
        "data/ner/en-fr/test.parquet",
        "text/fr.parquet",
        "encoders/mini/tokenizer.json",
        "tokenizers/mini/tokenizer_config.json",
        "tokens/ner/mini/fr-en/test.arrow",
        "summary.csv",
        "report.html",
        "benchmarks/data/ner/fr.tsv",
    ],
)
def test_a_file_that_the_study_makes_needs_no_explanation(path: str) -> None:
    assert explain(Plan(small()), f"results/small/{path}") is None


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("results/small/cells/ner/mini/bitfut/en/fr/seed1.json", "did you mean 'bitfit'"),
        ("results/small/cells/ner/mini/bitfit/en/fr/seed9.json", "unknown seed '9'"),
        ("results/small/cells/ner/mini/full-ft/en/fr+de/seed1.json", "nothing makes"),
        ("results/small/tokens/ner/mini/pt/test.arrow", "unknown language 'pt'"),
        ("results/small/tokens/ner/mini/en/tset.arrow", "did you mean 'test'"),
        ("results/small/data/nre/en/test.parquet", "did you mean 'ner'"),
        ("results/small/tokenizers/mimi/tokenizer.json", "unknown tokenizer 'mimi', did you mean 'mini'"),
        ("results/small/tokens/ner/mimi/en/test.arrow", "unknown tokenizer 'mimi', did you mean 'mini'"),
        ("results/small/encoders/mimi/model.safetensors", "did you mean 'mini'"),
        ("results/small/text/en-fr.parquet", "unknown language 'en-fr'"),
        ("results/small/claims.html", "study small has no claims"),
        ("results/small/exhibit/x.csv", "nothing makes"),
    ],
)
def test_a_misspelt_target_is_explained(path: str, message: str) -> None:
    assert message in str(explain(Plan(small()), path))


def test_claims_are_among_what_exists_where_a_study_has_any() -> None:
    claim = Claim(says="It guesses.", against=50, expect="greater")
    studies = (small().model_copy(update={"claims": {"chance": claim}}), small())
    messages = [str(explain(Plan(study), "results/small/claim.html")) for study in studies]
    assert "The nearest file is results/small/claims.html." in messages[0]
    assert all(name in messages[0] for name in ("exhibits/", "claims.md", "claims.csv", "summary.csv", "report.html"))
    assert "claims" not in messages[1]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("cells/copa/mini/mlm-trg/en@fx/fr/seed1.json", "did you mean 'en@fr'"),
        ("cells/copa/mini/mlm-trg/en/fr/seed1.json", "nearest is .*/mlm-trg/en@fr/fr/seed1.json"),
        ("cells/siqa/mini/both/en/fr@30/seed1.json", "did you mean 'fr@"),
        ("runs/mlm/mini/mlm/fr/seed1/step10.safetensors", "nearest file is .*/mlm/mini/mlm/fr/seed1/delta.safetensors"),
        ("runs/mlm/mini/mlm/de/seed1/run.json", "unknown source 'de'"),
        ("runs/siqa/mini/mlm-trg/en/seed1/run.json", "nearest is .*/siqa/mini/"),
    ],
)
def test_a_misspelt_start_is_explained(path: str, message: str) -> None:
    assert re.search(message, str(explain(Plan(begun(early=EARLY)), f"results/begun/{path}")))


def test_a_method_that_no_grid_uses_is_not_called_unknown() -> None:
    study = small(method=["full-ft"])
    message = str(explain(Plan(study), "results/small/cells/ner/mini/bitfit/en/fr/seed1.json"))
    assert "no grid uses method 'bitfit', which the study defines" in message


@pytest.mark.parametrize(
    "path",
    [
        "cells/ner/mini/bitfit/en/fr/seed1.json",
        "runs/ner/mini/bitfit/en/seed1/run.json",
        "tokens/ner/mini/en/test.arrow",
        "encoders/mini/model.safetensors",
    ],
)
def test_a_file_that_another_study_makes_is_explained_with_its_path(path: str) -> None:
    new = small().model_copy(update={"name": "new"})
    plan = Plan(new, (Plan(small()),))
    message = str(explain(plan, f"results/new/{path}"))
    assert "study new extends small and changes nothing that this file depends on" in message
    assert message.endswith(f"ask for results/small/{path}")
    assert explain(plan, "results/new/report.html") is None


def test_the_nearest_file_of_a_misspelt_one_may_be_another_study_s() -> None:
    plan = Plan(small().model_copy(update={"name": "new"}), (Plan(small()),))
    assert "unknown seed '3'" in str(explain(plan, "results/new/cells/ner/mini/bitfit/en/fr/seed3.json"))
    grids = small().grids | {"h": small(method=["full-ft"], source=["en"], seed=[3]).grids["g"]}
    plan = Plan(small().model_copy(update={"name": "new", "grids": grids}), (Plan(small()),))
    message = str(explain(plan, "results/new/cells/ner/mini/bitfit/en+en-fr/fr/seed3.json"))
    assert "the nearest is results/small/cells/ner/mini/bitfit/en+en-fr/fr/seed" in message
