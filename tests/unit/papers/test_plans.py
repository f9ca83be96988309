"""Studies of papers: their miniatures share nothing with them, and a study that extends one makes only what is new."""

from pathlib import Path

import pytest
import yaml

from xlgrid.plan.load import load_plan
from xlgrid.products.train import Run

ROOT = Path(__file__).parents[3]


def test_one_more_target_language_of_a_paper_is_all_that_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixteen sources, three methods and five seeds; of the methods, one needs an adapter in the new language."""
    monkeypatch.chdir(tmp_path)
    Path("studies").mkdir()
    grid = {"task": ["wikiann"], "encoder": ["xlmr-base"], "method": ["full-ft", "mlm-src", "madx"], "source": ["ner"]}
    languages = load_plan("pfeiffer2020").study.languages
    grids = {"yo": grid | {"target": ["yo"], "seed": [1, 2, 3, 4, 5]}}
    keys = {"extends": "pfeiffer2020", "languages": [*languages, "yo"], "grids": grids}
    Path("studies/yoruba.yaml").write_text(yaml.safe_dump(keys))
    plan = load_plan("yoruba")
    assert {each.target for each in plan.cells if each.study == "yoruba"} == {"yo"}
    assert sum(each.study == "yoruba" for each in plan.cells) == 16 * 3 * 5
    assert [each for each in plan.runs if each.study == "yoruba"] == [
        Run("yoruba", "mlm", "xlmr-base", "adapter", "yo", 1)
    ]
    rests = {product for each in plan.cells if each.study == "yoruba" for product in plan.rests_on(each)}
    paths = {product.path.removeprefix("results/yoruba/") for product in rests if product.study == "yoruba"}
    assert {path for path in paths if not path.startswith("cells/")} == {
        "text/yo.parquet",
        "tokens/mlm/xlmr-base/yo/train.arrow",
        "tokens/mlm/xlmr-base/yo/dev.arrow",
        "runs/mlm/xlmr-base/adapter/yo/seed1/run.json",
        "data/wikiann/yo/test.parquet",
        "tokens/wikiann/xlmr-base/yo/test.arrow",
    }


@pytest.mark.parametrize("name", ["pfeiffer2020-mini", "foroutan2023-mini"])
def test_a_miniature_shares_nothing_with_its_paper(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    plan = load_plan(name)
    assert plan.ancestors and plan.shared == ""
    runs = {run._replace(seed=0): run for run in plan.runs}.values()
    assert {product.study for run in runs for product in plan.rests_on(run)} == {name}


def test_published_numbers_of_a_study_that_comes_with_xlgrid_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    study = load_plan("foroutan2023-mini").study
    files = [Path(path) for exhibit in study.exhibits.values() for path in exhibit.files(study, compare=True)]
    assert files and [path for path in files if not path.is_file()] == []
