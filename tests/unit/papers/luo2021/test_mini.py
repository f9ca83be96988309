"""The miniature of Luo et al. 2021 has all that the paper's study has, and needs nothing from outside."""

import pytest
from paper_fixture import ROOT

from xlgrid.data.origins.origin import Origin
from xlgrid.methods import make
from xlgrid.papers.luo2021.labelled import Unlabelled
from xlgrid.papers.luo2021.pair_attention import PairAttention
from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.products.data import Data
from xlgrid.products.train import Run
from xlgrid.results.claims import terms
from xlgrid.synthetic.artificial import artificial
from xlgrid.synthetic.miniatures import wikiann

# What only the miniature has: its control.
OWN_EXHIBIT, OWN_CLAIM = "control", "plug-in-reads-the-translation"


@pytest.fixture(scope="module")
def plan() -> Plan:
    return loaded("luo2021-mini")


def loaded(name: str) -> Plan:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return load_plan(name)


def test_it_has_every_exhibit_and_claim_of_the_paper_with_cells_of_its_own(plan: Plan) -> None:
    study, paper = plan.study, loaded("luo2021")
    assert [*study.exhibits] == [*paper.study.exhibits, OWN_EXHIBIT]
    assert [*study.claims] == [*paper.study.claims, OWN_CLAIM]
    assert {cell.study for cell in plan.cells} == {run.study for run in plan.runs} == {"luo2021-mini"}
    for name in study.exhibits:
        has_cells = bool(
            paper.study.exhibits.get(name) and paper.study.exhibit(name).cells(paper.cells, paper.study.facts)
        )
        assert bool(study.exhibit(name).cells(plan.cells, study.facts)) == (has_cells or name == OWN_EXHIBIT), name
    methods = {(cell.task, cell.method) for cell in plan.cells}
    assert methods == {(cell.task, cell.method) for cell in paper.cells} | {("xnli", "plug-in-shuffled")}
    for name, claim in study.claims.items():
        assert terms(name, claim, plan.cells, study.belongs)


def test_everything_is_generated_here(plan: Plan) -> None:
    study = plan.study
    assert all(entry.is_trained for entry in study.encoders.values())
    assert all(tokenizer.languages for tokenizer in study.tokenizers.values())
    assert not any(study.text.fetches(code) for code in study.languages)
    origins: dict[str, list[Origin]] = {}
    for name, entry in study.tasks.items():
        if entry.data:
            origins[name] = [entry.data.origin, entry.data.derived["labelled"].origin]
    assert [*origins] == ["udpos", "panx"]
    for name, both in origins.items():
        for origin in both:
            generated = Data("luo2021-mini", f"{name}-original", "qa2", "train")
            assert origin.paths("qa2", "train") == [generated.path] and study.tasks[generated.task].is_generated


def test_a_teacher_that_knows_one_language_labels_the_words_of_the_others(plan: Plan) -> None:
    for task, group in (("udpos", "pos"), ("panx", "ner")):
        source = "+".join(plan.study.groups[group])
        rests = plan.rests_on(Run("luo2021-mini", task, "mini-veco", "plug-in-all", source, 1))
        assert {each.language for each in rests if isinstance(each, Unlabelled)} == {"qa2", "qk1", "qb1"}
        assert Run("luo2021-mini", task, "mini-xlmr", "full-ft", "qa1", 1) in rests


def test_a_fifth_of_the_parallel_examples_are_wrong_and_all_of_the_control(plan: Plan) -> None:
    methods = {name: plan.study.methods[name] for name in ("plug-in-all", "plug-in-shuffled")}
    instances = {name: make(entry.base, entry.options) for name, entry in methods.items()}
    assert {name: (method.parallel_language, method.stack("xnli", None)) for name, method in instances.items()} == {
        "plug-in-all": ("qa1", ("parallel:shuffled-0.2-qa1",)),
        "plug-in-shuffled": ("qa1", ("parallel:shuffled-qa1",)),
    }


def test_the_figure_shows_a_sentence_of_the_languages_and_its_translation(plan: Plan) -> None:
    figure = plan.study.exhibit("figure01")
    assert isinstance(figure, PairAttention)
    dials = plan.study.text.dials
    options = wikiann.Options(n=10, seed=5, **dials.model_dump())
    [first, *_] = wikiann.draw(options, [8], named=False)
    assert figure.texts == tuple(artificial(code, **dials.model_dump()).sentence(first) for code in ("qa1", "qb1"))
