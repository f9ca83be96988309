"""Cells have one path each, and read the tokens of their tokenizer."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xlgrid.plan.checks import plan_problems
from xlgrid.plan.plan import Plan
from xlgrid.products.evaluate import Cell
from xlgrid.study.schema import Study

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,11}", fullmatch=True)


codes = st.from_regex(r"[A-Za-z0-9._]{1,5}", fullmatch=True)


ends = codes | st.builds("{}-{}".format, codes, codes)


targets = ends | st.builds("{}@{}".format, ends, st.integers(1, 10**6))


mixes = st.lists(ends, min_size=1, max_size=3).map("+".join)


sources = mixes | st.builds("{}@{}".format, mixes, targets)


seeds = st.integers(0, 10**9)


@given(st.builds(Cell, names, names, names, names, sources, targets, seeds))
def test_a_cell_comes_back_from_its_path(cell: Cell) -> None:
    assert (
        Cell.parse(cell.path) == Cell.of_file(Path(cell.path)) == Cell.of_file(Path("/else/where", cell.path)) == cell
    )


@pytest.mark.parametrize("path", ["cell.json", "s/t/e/m/en/de/1", "results/s/cells/t/e/m/en/de/seedx.json"])
def test_the_file_of_a_cell_names_what_it_evaluates(path: str) -> None:
    example = "results/demo/cells/ner/mini/full-ft/en/de/seed1.json"
    with pytest.raises(ValueError, match=f"as in {example} below any folder, got {path}"):
        Cell.of_file(Path(path))


def test_the_tokens_of_a_cell_are_those_of_its_target() -> None:
    cell = Cell("s", "t", "e", "m", "en", "de@100", 1)
    for path in (
        "results/s/tokens/t/v/de/test.arrow",
        "results/older/tokens/t/v/de~en/test.arrow",
        "elsewhere/fr.arrow",
    ):
        cell.check_tokens(path)
    with pytest.raises(ValueError, match=r"the cell has the target de@100, and .* has tokens of fr: name the tokens"):
        cell.check_tokens("results/s/tokens/t/v/fr/test.arrow")


@given(
    st.builds(Cell, names, names, names, names, sources, targets, seeds),
    st.integers(0, 200),
    st.text("/.0s-éx", max_size=2),
)
def test_a_path_with_a_slip_is_refused_or_is_canonical(cell: Cell, at: int, slip: str) -> None:
    path = cell.path[:at] + slip + cell.path[at + 1 :]
    read = Cell.parse(path)
    assert read is None or read.path == path


@pytest.mark.parametrize("seed", ["seed01", "seed-1", "seed", "seed1 ", "seed" + "9" * 5000])
def test_a_seed_has_one_spelling(seed: str) -> None:
    assert Cell.parse(f"results/s/cells/t/e/m/en/fr/{seed}.json") is None


def test_a_path_with_a_source_that_cannot_be_parsed_is_no_cell() -> None:
    assert Cell.parse("results/s/cells/t/e/m/en/fr/seed1.json")
    assert Cell.parse("results/s/cells/t/e/m/en-fr-de/fr/seed1.json") is None


OWN = {"base": "queries", "options": {"own": "embeddings"}}


def added_languages() -> Plan:
    """Fine-tuning from a pre-trained source and from an added one, with pre-trained and added targets."""
    scratch = {"kind": "xlmr", "languages": ["en", "fr"]}
    axes = {"task": ["ner"], "encoder": ["mini"], "method": ["own"], "seed": [1]}
    start = {"task": "text", "method": "add", "pairs": ["de", "ru"], "missing": "none"}
    study = Study(
        name="s",
        title="s",
        languages=["en", "fr", "de", "ru"],
        tokenizers={f"own-{code}": {"kind": "xlmr", "languages": [code]} for code in ("de", "ru")},
        encoders={"mini": {"scratch": scratch}},
        tasks={"ner": {"kind": "ruletaker"}, "text": {"kind": "mlm", "tokenizer": "own-{language}"}},
        methods={"own": OWN | {"start": start}, "add": OWN},
        grids={"g": axes | {"source": ["en", "de"], "target": ["fr", "de", "ru"]}},
    )
    return Plan(study)


@pytest.mark.usefixtures("queries")
def test_a_cell_has_the_tokenizer_of_its_target_where_embeddings_belong_to_a_language() -> None:
    plan = added_languages()
    tokenizers = {(cell.source, cell.target): cell.tokenizer(plan) for cell in plan.cells}
    assert tokenizers == {
        (source, target): tokenizer
        for source in ("en", "de")
        for target, tokenizer in (("fr", "mini"), ("de", "own-de"), ("ru", "own-ru"))
    }
    on_text = {run.source: run.new_tokenizer(plan)[0].tokenizer for run in plan.runs if run.task == "text"}
    assert on_text == {"de": "own-de", "ru": "own-ru"}
    of_runs = {run.source: run.tokenizer(plan) for run in plan.runs if run.task == "ner"}
    assert of_runs == {"en": "mini", "de": "own-de"}


@pytest.mark.usefixtures("queries")
def test_a_tokenizer_that_a_language_lacks_is_named() -> None:
    study = added_languages().study
    lacking = study.model_copy(update={"tokenizers": {"own-de": study.tokenizers["own-de"]}})
    [problem] = plan_problems(Plan(lacking))
    assert "tasks.text.tokenizer: results/s/runs/text/mini/add/ru/seed1 has unknown tokenizer 'own-ru'" in problem
