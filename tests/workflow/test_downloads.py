"""Snakemake gets the files that a study names in `downloads`: as they are, out of archives, or from a person."""

import tarfile
from pathlib import Path

import pytest
from project import project, shell, small, succeeds

TEXT = "results/demo/text/en.parquet"


@pytest.fixture(scope="module")
def downloaded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A project that has asked for a file of each kind, and what Snakemake printed."""
    folder, server = tmp_path_factory.mktemp("downloads"), tmp_path_factory.mktemp("server")
    (server / "en.txt").write_text("a line\n")
    (server / "model.bin").write_bytes(b"weights")
    with tarfile.open(server / "release.tar.gz", "w:gz") as archive:
        for name in ("model.bin", "en.txt"):
            archive.add(server / name, f"release/{name}")
    study = small() | {
        "downloads": {
            "got/{code}.txt": {"url": f"{server.as_uri()}/{{code}}.txt"},
            "got/model.bin": {"url": f"{server.as_uri()}/release.tar.gz", "member": "model.bin"},
            "got/{code}.notes": {"url": f"{server.as_uri()}/release.tar.gz", "member": "{code}.txt"},
            "own/{code}.txt": {"by_hand": "it's at https://a.test: ask there"},
            # The entries above win over these.
            "got/{file}": {"url": "https://a.test/{file}"},
            "{folder}/{pair}/{split}.jsonl": {"by_hand": "ask"},
        }
    }
    study["text"] |= {"files": {"en": "own/en.txt"}}
    project(folder, study)
    wanted = f"got/en.txt got/model.bin got/en.notes {TEXT}"
    process = shell(folder, f"snakemake --cores 2 --keep-going {wanted}")
    assert process.returncode, "a file that a person has to get is not there"
    return folder, process.stdout + process.stderr


@pytest.mark.slow
def test_files_are_where_the_study_names_them(downloaded: tuple[Path, str]) -> None:
    folder, _ = downloaded
    assert (folder / "got/en.txt").read_text() == (folder / "got/en.notes").read_text() == "a line\n"
    assert (folder / "got/model.bin").read_bytes() == b"weights"


@pytest.mark.slow
def test_archives_are_gone_and_their_checksums_kept(downloaded: tuple[Path, str]) -> None:
    folder, _ = downloaded
    assert not [path for path in (folder / "downloads").rglob("*") if path.suffix in (".gz", ".zip")]
    locked = (folder / "hub.lock.yaml").read_text()
    assert all(name in locked for name in ("release.tar.gz", "en.txt"))


@pytest.mark.slow
def test_the_job_of_a_file_that_a_person_gets_says_how(downloaded: tuple[Path, str]) -> None:
    folder, output = downloaded
    assert "There is no own/en.txt" in output and "it's at https://a.test: ask there" in output
    (folder / "own").mkdir(exist_ok=True)
    (folder / "own/en.txt").write_text("mine\n")
    succeeds(folder, f"snakemake --cores 1 --forceall {TEXT}")
    assert (folder / "own/en.txt").read_text() == "mine\n", "a file of a person's own is never made again"
    assert (folder / TEXT).exists()
