"""`xlgrid fetch` brings what a study needs from a Hub, locks it, and says what an offline machine needs; `xlgrid check` then agrees."""

import shutil
from pathlib import Path

import hub
import hub_server
import pytest
import yaml
from project import project, shell, small

COMMIT = hub_server.commit_of("main")


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a Hub with one encoder, whose card states a licence."""
    folder = tmp_path_factory.mktemp("hub")
    hub.write_xlmr(folder / "models/some/xlmr/main", ["one two three", "four five six"] * 50)
    (folder / "models/some/xlmr/main/README.md").write_text(
        "---\nlicense: [mit, other]\nlicense_name: of-some\n---\n# Some\n"
    )
    return folder


@pytest.fixture(scope="module")
def fetched(repositories: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A project that has fetched its encoder, and the output of the command."""
    study = small()
    study["encoders"]["mini-xlmr"] = {"hub": "some/xlmr"}
    study["grids"] = {"ner": study["grids"]["ner"]}
    study["exhibits"], study["claims"] = {}, {}
    folder = project(tmp_path_factory.mktemp("fetching"), study)
    with hub_server.serve(repositories) as address:
        process = shell(folder, f"HF_HUB_OFFLINE=0 HF_ENDPOINT={address} HF_HOME={folder}/cache xlgrid fetch demo")
    assert process.returncode == 0, process.stdout[-2000:] + process.stderr[-4000:]
    return folder, process.stdout


@pytest.mark.slow
def test_the_encoder_and_its_tokenizer_are_there_and_locked(fetched: tuple[Path, str]) -> None:
    folder, _ = fetched
    for name in ("encoders/mini-xlmr/model.safetensors", "tokenizers/mini-xlmr/tokenizer.json"):
        assert (folder / "results/demo" / name).exists()
    assert yaml.safe_load((folder / "hub.lock.yaml").read_text()) == {"model/some/xlmr@main": COMMIT}


@pytest.mark.slow
def test_the_output_names_what_an_offline_machine_needs(fetched: tuple[Path, str]) -> None:
    folder, output = fetched
    [line] = [line for line in output.splitlines() if line.strip().startswith("rsync -aR")]
    copied = line.split()[2:-1]
    assert {"hub.lock.yaml", "results/demo/encoders", "results/demo/tokenizers"} <= {*copied}
    assert all((folder / name).exists() for name in copied)


@pytest.mark.slow
def test_what_was_fetched_is_not_fetched_again_without_a_network(fetched: tuple[Path, str], tmp_path: Path) -> None:
    """A copy of the project, without a Hub, plans no job that fetches."""
    folder, _ = fetched
    copy = tmp_path / "offline"
    shutil.copytree(folder, copy, symlinks=True)
    process = shell(copy, "HF_HUB_OFFLINE=1 snakemake --dry-run; HF_HUB_OFFLINE=1 xlgrid check demo")
    assert "fetch_encoder" not in process.stdout and "fetch_tokenizer" not in process.stdout
    lines = process.stdout.splitlines()
    assert process.returncode == 0, process.stdout[-2000:]
    assert any(line.startswith("✓ model some/xlmr") and COMMIT[:7] in line for line in lines)
    assert any(line.startswith("✓ encoder mini-xlmr") for line in lines)


@pytest.mark.slow
def test_the_checklist_has_the_licences_that_the_hub_states(fetched: tuple[Path, str], repositories: Path) -> None:
    folder, _ = fetched
    with hub_server.serve(repositories) as address:
        asked = shell(folder, f"HF_HUB_OFFLINE=0 HF_ENDPOINT={address} xlgrid checklist demo")
    silent = shell(folder, "HF_HUB_OFFLINE=1 xlgrid checklist demo")
    assert "| model `some/xlmr` of the Hub | mit, of-some |" in asked.stdout
    assert "| model `some/xlmr` of the Hub | unknown, because the Hub does not answer here |" in silent.stdout
