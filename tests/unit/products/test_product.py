"""What every product has: a path that leads back to it, and what it is made from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_fixture import EARLY, begun

from xlgrid.plan.plan import Plan
from xlgrid.products import product_of
from xlgrid.products.data import Data, Meanings, Text
from xlgrid.products.encode import Encoder, Tokenizer, Tokens
from xlgrid.products.evaluate import Cell
from xlgrid.products.exhibits import Exhibit, PublishedExhibit
from xlgrid.products.product import Product
from xlgrid.products.report import Claims, Report, Summary
from xlgrid.products.train import Run

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,8}", fullmatch=True).filter(lambda name: not name.endswith("."))


codes = st.from_regex(r"[a-z]{2,3}(-[a-z]{2,3})?", fullmatch=True)


splits = st.sampled_from(["train", "dev", "test"])


exhibits = names.filter(lambda name: not name.endswith("-published"))


seeds = st.integers(0, 2**32 - 1)


products = (
    st.builds(Meanings, names, names)
    | st.builds(Data, names, names, codes, splits)
    | st.builds(Text, names, codes)
    | st.builds(Tokenizer, names, names)
    | st.builds(Encoder, names, names)
    | st.builds(Tokens, names, names, names, codes, splits)
    | st.builds(Exhibit, names, exhibits)
    | st.builds(PublishedExhibit, names, exhibits)
    | st.builds(Claims, names)
    | st.builds(Summary, names)
    | st.builds(Report, names)
    | st.builds(Run, names, names, names, names, codes, seeds)
    | st.builds(Cell, names, names, names, names, codes, codes, seeds)
)


@given(products)
def test_a_product_comes_back_from_each_of_its_files(product: Product) -> None:
    files = [product.file(name) for name in product.files]
    assert len({*files}) == len(files)
    assert {product_of(file) for file in files} == {product}


def test_files_have_the_paths_that_the_documentation_names() -> None:
    run, encoder, exhibit = Run("s", "t", "e", "m", "en", 1), Encoder("s", "e"), Exhibit("s", "x")
    assert (run.path, run.delta) == (f"{run.folder}/run.json", "results/s/runs/t/e/m/en/seed1/delta.safetensors")
    assert (encoder.folder, encoder.path) == ("results/s/encoders/e", "results/s/encoders/e/model.safetensors")
    assert Tokenizer("s", "v").path == "results/s/tokenizers/v/tokenizer.json"
    assert Tokens("s", "t", "v", "en", "dev").path == "results/s/tokens/t/v/en/dev.arrow"
    assert (exhibit.path, exhibit.folder) == ("results/s/exhibits/x.csv", "results/s/exhibits")
    assert product_of("results/s/exhibits/x-published.md") == PublishedExhibit("s", "x")
    assert Cell("s", "t", "e", "m", "en", "fr@5", 1).path == "results/s/cells/t/e/m/en/fr@5/seed1.json"


@pytest.mark.parametrize(
    "path",
    [
        "results/s/runs/t/e/m/en/seed1",
        "results/s/exhibits/x.eps",
        "results/s/claims.tex",
        "results/s/runs/t/e/m/en/seed1/step5.safetensors",
        "results/s/encoders/e/vocab.txt",
        "results/s/exhibits/x",
        "results/s/other.csv",
        "data/qa1/test.jsonl",
        "/elsewhere/results/s/text/en.parquet",
    ],
)
def test_other_files_belong_to_nothing(path: str) -> None:
    assert product_of(path) is None


def test_products_of_different_kinds_are_different_whatever_their_names() -> None:
    """As keys of one dictionary: a text and an encoder of one name, for instance."""
    assert len({Text("s", "en"), Encoder("s", "en"), Meanings("s", "en"), Exhibit("s", "en")}) == 4
    assert len({Claims("s"), Summary("s"), Report("s")}) == 3


def test_everything_comes_after_what_it_is_made_from(plan: Plan) -> None:
    for whole in (plan, Plan(begun(early=EARLY))):
        for cell in whole.cells:
            order = [product.path for product in whole.rests_on(cell)]
            assert len(set(order)) == len(order) and order[-1] == cell.path
            for product in whole.rests_on(cell):
                for files in product.inputs(whole).values():
                    earlier = [product_of(file) for file in ([files] if isinstance(files, str) else files)]
                    paths = {whole.rests_on(each)[-1].path for each in earlier if each}
                    assert paths <= set(order[: order.index(product.path)]), product
