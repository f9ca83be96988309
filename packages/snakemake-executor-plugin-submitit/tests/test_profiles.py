"""Values of a profile that YAML reads as others than are written."""

from pathlib import Path

import pytest

from snakemake_executor_plugin_submitit.profiles import check_profiles, misread, profiles


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("0123", 83),
        ("012345", 5349),
        ("yes", True),
        ("off", False),
        ("true", True),
        ("1_000", 1000),
        ("1:30", 90),
        ("0x1F", 31),
        ("1.10", 1.1),
    ],
)
@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("submitit-account: {}", "submitit-account"),
        ("submitit-bundle-size: {}", "submitit-bundle-size"),
        ("--submitit-qos: {}", "submitit-qos"),
        ("default-resources:\n  slurm_account: {}", "slurm_account"),
        ("default-resources:\n  runtime: {}", "runtime"),
        ("set-resources:\n  train:\n    slurm_partition: {}", "slurm_partition"),
    ],
)
def test_a_value_that_yaml_reads_as_another_is_found(text: str, key: str, written: str, value: object) -> None:
    assert list(misread(text.format(written))) == [(key, written, value)]


@pytest.mark.parametrize("written", ["'0123'", '"yes"', "my-project", "12345", "-5", "7.5", "1e3", "0123a", "~", ""])
def test_a_value_that_yaml_reads_as_it_is_written_is_fine(written: str) -> None:
    assert list(misread(f"submitit-account: {written}\ndefault-resources:\n  slurm_account: {written}\n")) == []


@pytest.mark.parametrize(
    "text",
    [
        "keep-going: yes\nconfig:\n  seed: 0123\ndefault-resources:\n  attempts: 0123\n",
        "submitit-setup: |\n  yes\n",
        "default-resources:\n  - slurm_account=0123\nset-resources: [a]\n",
        "submitit-account: [0123]",
        "0123",
        "",
        "a: [",
    ],
)
def test_what_is_no_plain_value_of_this_executor_is_left_to_snakemake(text: str) -> None:
    assert list(misread(text)) == []


def test_every_wrong_value_is_named_with_its_file_and_the_words_to_write(tmp_path: Path) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text("submitit-account: 0123\nsubmitit-qos: yes\n")
    second.write_text("submitit-qos: 'yes'\n")
    with pytest.raises(ValueError) as error:
        check_profiles([first, second, tmp_path / "missing.yaml"])
    lines = str(error.value).splitlines()
    assert [(str(first) in line, key in line) for line, key in zip(lines, ("account", "qos"), strict=True)] == [
        (True, True)
    ] * 2
    assert 'write submitit-account: "0123"' in lines[0]


def test_the_profiles_are_those_that_snakemake_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is named on the command line, one in the environment, and one lies beside the Snakefile."""
    for name, line in (("named", "cores: 1"), ("variable", "cores: 2"), ("profiles/default", "executor: submitit")):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "profile.v9+.yaml").write_text(f"{line}\n")
    (tmp_path / "Snakefile").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SNAKEMAKE_PROFILE", raising=False)
    assert {path.parent.name for path in profiles(["-n", "--profile", "named"])} == {"named", "default"}
    monkeypatch.setenv("SNAKEMAKE_PROFILE", "variable")
    assert {path.parent.name for path in profiles(["-n"])} == {"variable", "default"}
    assert {path.parent.name for path in profiles(["-n", "--workflow-profile", "none"])} == {"variable"}


def test_arguments_of_another_program_name_no_profile(capfd: pytest.CaptureFixture[str]) -> None:
    assert profiles(["--no-such-option"]) == []
    assert capfd.readouterr() == ("", "")
