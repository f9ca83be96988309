"""Meanings, data made from them, and data fetched."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from xlgrid import data
from xlgrid.data import fetch_data, make_data, make_meanings, read_table, sizes

OPTIONS = {"n": 40, "rules": [0, 2], "facts": [2, 4]}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
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


def test_too_few_examples_for_three_splits():
    with pytest.raises(ValueError, match="at least 40"):
        sizes(8, 4)


def test_splits_have_their_sizes_and_share_no_theory(made):
    tables = [read_table(made / "en" / f"{split}.parquet") for split in data.SPLITS]
    assert [table.num_rows for table in tables] == [28, 4, 8]
    theories = [{frozenset(context.split(". ")) for context in table["context"].to_pylist()} for table in tables]
    assert not (theories[0] & theories[1] or theories[0] & theories[2] or theories[1] & theories[2])


def test_row_i_is_the_same_in_every_language(made):
    english, french = (read_table(made / code / "test.parquet") for code in ("en", "fr"))
    assert english["label"] == french["label"] and english["depth"] == french["depth"]
    assert english["context"] != french["context"]


def test_the_same_options_give_the_same_bytes(made, tmp_path):
    make_meanings("ruletaker", OPTIONS, tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == (made / "meanings.parquet").read_bytes()


def test_a_misspelt_option_names_the_nearest(tmp_path):
    with pytest.raises(ValueError, match="did you mean 'max_depth'"):
        make_meanings("ruletaker", {"max_dept": 3}, tmp_path / "m.parquet")


def test_missing_empty_and_cut_files_are_told_apart(made, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*nowhere\.parquet"):
        read_table(tmp_path / "nowhere.parquet")
    (tmp_path / "empty.parquet").touch()
    with pytest.raises(ValueError, match="is empty"):
        read_table(tmp_path / "empty.parquet")
    (tmp_path / "cut.parquet").write_bytes((made / "meanings.parquet").read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"cut\.parquet is damaged"):
        read_table(tmp_path / "cut.parquet")


@pytest.mark.parametrize("suffix", ["parquet", "jsonl", "csv"])
def test_local_files_of_every_type(made, tmp_path, suffix):
    for split in data.SPLITS:
        frame = read_table(made / "en" / f"{split}.parquet").to_pandas()
        out = tmp_path / f"en-{split}.{suffix}"
        if suffix == "parquet":
            frame.to_parquet(out)
        elif suffix == "jsonl":
            frame.to_json(out, orient="records", lines=True)
        else:
            frame.to_csv(out, index=False)
    source = {"local": f"{tmp_path}/{{language}}-{{split}}.{suffix}", "limit": 3}
    fetch_data("ruletaker", source, "en", tmp_path / "out", tmp_path / "lock.yaml")
    found = read_table(tmp_path / "out" / "train.parquet")
    assert found.to_pylist() == read_table(made / "en" / "train.parquet").slice(0, 3).to_pylist()


def test_where_selects_and_says_what_there_is(made, tmp_path):
    source = {"local": f"{made}/{{language}}/{{split}}.parquet", "where": {"label": "entailment"}}
    fetch_data("ruletaker", source, "en", tmp_path / "out", tmp_path / "lock.yaml")
    assert set(read_table(tmp_path / "out" / "dev.parquet")["label"].to_pylist()) == {"entailment"}
    with pytest.raises(ValueError, match=r"no row whose config is 'depth-9' \(there are: depth-0\)"):
        fetch_data("ruletaker", source | {"where": {"config": "depth-9"}}, "en", tmp_path / "out", tmp_path / "l.yaml")


def test_columns_can_be_renamed(tmp_path):
    for split in data.SPLITS:
        pq.write_table(pa.table({"words": [["a"]], "pos_tags": [[3]]}), tmp_path / f"{split}.parquet")
    source = {"local": f"{tmp_path}/{{split}}.parquet"}
    with pytest.raises(ValueError, match=r"train\.parquet has no column 'tokens'"):
        fetch_data("udpos", source, "en", tmp_path / "out", tmp_path / "lock.yaml")
    fetch_data("udpos", source | {"rename": {"words": "tokens"}}, "en", tmp_path / "out", tmp_path / "lock.yaml")
    assert read_table(tmp_path / "out" / "dev.parquet").to_pylist() == [{"tokens": ["a"], "pos_tags": [3]}]


@pytest.mark.parametrize("source", [{}, {"hub": "a/b", "local": "c"}])
def test_a_source_is_the_hub_or_local(source, tmp_path):
    with pytest.raises(ValueError, match="either `hub` or `local`"):
        fetch_data("udpos", source, "en", tmp_path, tmp_path / "lock.yaml")


def test_the_hub_is_asked_for_the_locked_commit(monkeypatch, tmp_path):
    datasets = pytest.importorskip("datasets")
    asked = []

    def load_dataset(path, name, split, revision):
        asked.append((path, name, split, revision))
        return datasets.Dataset.from_dict({"tokens": [["a", "b"]], "pos_tags": [[0, 1]]})

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    (tmp_path / "lock.yaml").write_text("dataset/some/udpos@main: " + "a" * 40)
    source = {"hub": "some/udpos", "name": "udpos.{language}", "names": {"fr": "udpos.French"}}
    fetch_data("udpos", source, "fr", tmp_path / "out", tmp_path / "lock.yaml")
    assert asked[1] == ("some/udpos", "udpos.French", "validation", "a" * 40)
    assert read_table(tmp_path / "out" / "test.parquet")["tokens"].to_pylist() == [["a", "b"]]
