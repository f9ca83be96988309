"""The comparison of a run's attention on two targets: its path, and what it is made from."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from xlgrid.papers.foroutan2023.contrast import Contrast
from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.products import product_of
from xlgrid.products.exhibits import Exhibit

STUDY = """\
title: Old
languages: [en, fr]
encoders: {tiny: {scratch: {kind: bert, languages: [en, fr]}, training: {steps: 5}}}
tasks: {ner: {kind: ruletaker}}
methods: {full-ft: {}}
training: [{set: {steps: 4}}]
grids:
  main: {task: [ner], encoder: [tiny], method: [full-ft], source: [en], target: [en, en-fr], seed: [1, 2]}
exhibits:
  look: {kind: attention, title: Look, select: {method: full-ft}, targets: [en-fr, en]}
"""
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,8}", fullmatch=True)
codes = st.from_regex(r"[a-z]{2,3}(-[a-z]{2,3})?", fullmatch=True)


@given(st.builds(Contrast, names, names, names, names, codes, codes, codes, st.integers(0, 10**9)))
def test_a_contrast_comes_back_from_its_path(contrast: Contrast) -> None:
    assert product_of(contrast.path) == contrast


def extended(**changes: object) -> Plan:
    """The plan of a study that extends the old one with these keys."""
    Path("studies/new.yaml").write_text(yaml.safe_dump({"extends": "old", **changes}))
    return load_plan("new")


def test_a_contrast_is_that_of_the_study_which_has_both_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("studies").mkdir()
    Path("studies/old.yaml").write_text(STUDY)
    targets = {"look": {"targets": ["en-fr", "en"]}}
    old = [f"results/old/attention/ner/tiny/full-ft/en/en-fr/en/seed{seed}.json" for seed in (1, 2)]
    plan = extended(exhibits=targets, languages=["en", "fr", "de"])
    assert Exhibit("new", "look").inputs(plan)["results"] == old
    wider = {"main": {"target": ["en", "en-fr", "en-de"]}}
    plan = extended(exhibits={"look": {"targets": ["en-fr", "en-de"]}}, languages=["en", "fr", "de"], grids=wider)
    results = Exhibit("new", "look").inputs(plan)["results"]
    assert results == [path.replace("old", "new").replace("en/seed", "en-de/seed") for path in old]
    contrast = Contrast("new", "ner", "tiny", "full-ft", "en", "en-fr", "en-de", 1)
    assert contrast.inputs(plan)["tokens"] == [
        "results/old/tokens/ner/tiny/en-fr/test.arrow",
        "results/new/tokens/ner/tiny/en-de/test.arrow",
    ]
