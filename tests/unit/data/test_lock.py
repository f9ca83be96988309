"""The lock file."""

import pytest

from xlgrid.data import lock

COMMIT = "0123456789" * 4


def test_the_hub_is_asked_once(monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(lock, "_ask", lambda *arguments: calls.append(arguments[:3]) or COMMIT)
    for _ in range(2):
        assert lock.commit(tmp_path / "lock.yaml", "model", "some/encoder") == COMMIT
    assert calls == [("model", "some/encoder", "main")]
    assert lock.read_lock(tmp_path / "lock.yaml") == {"model/some/encoder@main": COMMIT}


def test_models_and_data_sets_have_entries_of_their_own(monkeypatch, tmp_path):
    monkeypatch.setattr(lock, "_ask", lambda kind, *rest: ("a" if kind == "model" else "b") * 40)
    commits = [lock.commit(tmp_path / "lock.yaml", kind, "some/thing") for kind in ("model", "dataset")]
    assert commits == ["a" * 40, "b" * 40]
    assert len(lock.read_lock(tmp_path / "lock.yaml")) == 2


def test_a_commit_is_its_own_commit(tmp_path):
    assert lock.commit(tmp_path / "lock.yaml", "model", "some/encoder", COMMIT) == COMMIT


def test_an_unreachable_hub_locks_nothing(monkeypatch, tmp_path):
    from huggingface_hub import HfApi

    def refuse(*arguments, **more):
        raise ConnectionError("no network")

    monkeypatch.setattr(HfApi, "repo_info", refuse)
    with pytest.raises(ValueError, match=r"cannot get the commit of model some/encoder.*no network"):
        lock.commit(tmp_path / "lock.yaml", "model", "some/encoder")
    assert not (tmp_path / "lock.yaml").exists()


@pytest.mark.parametrize("content", ["model/a@main: latest", "- a list", "a: [b"])
def test_a_damaged_lock_is_an_error(tmp_path, content):
    (tmp_path / "lock.yaml").write_text(content)
    with pytest.raises(ValueError, match=r"lock\.yaml"):
        lock.read_lock(tmp_path / "lock.yaml")


def test_a_script_is_said_with_what_to_write_instead():
    error = RuntimeError("Dataset scripts are no longer supported, but found data.py")
    assert "write `revision: refs/convert/parquet` with `files:" in lock.said(error, "dataset", "some/data")


@pytest.mark.parametrize(("kind", "address"), [("dataset", "co/datasets/some/thing,"), ("model", "co/some/thing,")])
def test_a_gated_repository_is_said_with_its_page(kind, address):
    error = ConnectionError("Dataset 'some/thing' is a gated dataset on the Hub.")
    said = lock.said(error, kind, "some/thing")
    assert address in said and "hf auth login" in said and "HF_TOKEN" in said


def test_other_errors_are_said_as_they_are():
    assert lock.said(OSError("the disk is full"), "model", "some/thing") == "OSError: the disk is full"


def test_checksums_of_downloads_are_beside_commits(tmp_path):
    path = tmp_path / "lock.yaml"
    lock.commit(path, "model", "some/encoder", COMMIT)
    for _ in range(2):
        lock.keep_checksum(path, "https://a.test/x", "a" * 64)
    assert lock.read_lock(path) == {f"model/some/encoder@{COMMIT}": COMMIT, "https://a.test/x": "a" * 64}
    with pytest.raises(ValueError, match="the file at this address has changed"):
        lock.keep_checksum(path, "https://a.test/x", "b" * 64)
    assert lock.read_lock(path)["https://a.test/x"] == "a" * 64


@pytest.mark.parametrize("line", [f"https://a.test/x: {COMMIT}", f"model/some/encoder@main: {'a' * 64}"])
def test_a_checksum_is_no_commit(tmp_path, line):
    (tmp_path / "lock.yaml").write_text(f"{line}\n")
    with pytest.raises(ValueError, match=r"is not a .* hexadecimal digits; delete the line"):
        lock.read_lock(tmp_path / "lock.yaml")
