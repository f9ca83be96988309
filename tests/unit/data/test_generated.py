"""Generated data: sizes of splits, parallel rows, errors."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from xlgrid.base.errors import Damaged
from xlgrid.data.formats import read_table
from xlgrid.data.generated import make_data, make_meanings, sizes
from xlgrid.data.origins.origin import SPLITS
from xlgrid.tasks import task

OPTIONS = {"n": 40, "rules": [0, 2], "facts": [2, 4]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    make_meanings("ruletaker", OPTIONS, folder / "meanings.parquet")
    for language in ("en", "fr"):
        make_data("ruletaker", OPTIONS, language, folder / "meanings.parquet", folder / language)
    return folder


@pytest.mark.parametrize(("n", "group"), [(10, 1), (100_000, 4), (43, 4), (97, 3)])
def test_sizes_add_up_and_cut_between_groups(n, group):
    train, dev, test = sizes(n, group)
    assert train + dev + test == n
    assert train % group == dev % group == 0
    assert abs(train - 0.7 * n) <= group


def test_a_share_is_rounded_to_the_nearest():
    assert sizes(15) == (11, 2, 2)


def test_too_few_examples_for_three_splits():
    with pytest.raises(ValueError, match="at least 40"):
        sizes(8, 4)


def test_splits_have_their_sizes_and_share_no_theory(folder):
    tables = [read_table(folder / "en" / f"{split}.parquet") for split in SPLITS]
    assert [table.num_rows for table in tables] == [28, 4, 8]
    theories = [{frozenset(context.split(". ")) for context in table["context"].to_pylist()} for table in tables]
    assert not (theories[0] & theories[1] or theories[0] & theories[2] or theories[1] & theories[2])


def test_row_i_is_the_same_in_every_language(folder):
    english, french = (read_table(folder / code / "test.parquet") for code in ("en", "fr"))
    assert english["label"] == french["label"] and english["depth"] == french["depth"]
    assert english["context"] != french["context"]


def test_the_same_options_give_the_same_bytes(folder, tmp_path):
    make_meanings("ruletaker", OPTIONS, tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == (folder / "meanings.parquet").read_bytes()


def test_a_misspelt_option_names_the_nearest(tmp_path):
    with pytest.raises(ValueError, match="did you mean 'max_depth'"):
        make_meanings("ruletaker", {"max_dept": 3}, tmp_path / "m.parquet")


def test_a_task_that_is_not_generated_is_refused(tmp_path):
    with pytest.raises(ValueError, match="data of mlm cannot be generated: name their source in the study's `data`"):
        make_meanings("mlm", {}, tmp_path / "m.parquet")


@pytest.mark.parametrize("kind", ["ruletaker", "lot", "xnli", "wikiann", "xquad", "copa", "causal-nli"])
@pytest.mark.parametrize("meaning", ["", "{}", "[]", "[1, 2]", '{"facts": [[]], "rules": [], "question": ["a", "b"]}'])
def test_a_damaged_meaning_is_refused_and_its_file_named(kind, meaning, tmp_path):
    pq.write_table(pa.table({"split": [*SPLITS], "meaning": [meaning] * 3}), tmp_path / "m.parquet")
    with pytest.raises(Damaged, match=r"m\.parquet, train: a meaning is damaged .* make the file again") as refused:
        make_data(kind, {}, "qa1" if task(kind).speaks("qa1") else "en", tmp_path / "m.parquet", tmp_path)
    assert refused.value.paths == (tmp_path / "m.parquet",)
