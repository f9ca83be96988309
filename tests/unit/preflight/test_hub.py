"""The Hub is asked for each repository once; where it does not answer, the lock file does."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from xlgrid.plan.plan import Plan
from xlgrid.preflight import Line, State
from xlgrid.preflight.files import materials
from xlgrid.preflight.hub import hub_lines

COMMIT = "0123456789" * 4
DATA = {"topic": {"kind": "wikiann", "data": {"hub": "some/data", "name": "{language}"}}}


def lines_of(plan: Plan) -> dict[str, Line]:
    return {line.thing: line for line in hub_lines(plan.study, materials(plan), "hub.lock.yaml")}


def answers(
    monkeypatch: pytest.MonkeyPatch, files: dict[str, list[str]], configs: tuple[str, ...] = ()
) -> list[tuple[str, str]]:
    """The Hub has these files in each repository, and no others; returns what it will have been asked."""
    requests: list[tuple[str, str]] = []

    def ask(kind: str, repo: str, revision: str, seconds: float | None = None) -> Any:
        requests.append((repo, revision))
        if repo not in files:
            raise ValueError("RepositoryNotFoundError: 404")
        card = SimpleNamespace(configs=[{"config_name": name} for name in configs])
        return SimpleNamespace(
            sha=COMMIT, siblings=[SimpleNamespace(rfilename=name) for name in files[repo]], card_data=card
        )

    monkeypatch.setattr("xlgrid.data.lock.ask", ask)
    return requests


def test_a_silent_hub_is_asked_once_and_is_no_problem(plan_of: Callable[..., Plan], no_hub: list[str]) -> None:
    lines = lines_of(plan_of(tasks=DATA))
    assert len(no_hub) == 1
    assert {line.state for line in lines.values()} == {State.OPEN}
    assert "no network" in lines["Hub"].text
    assert (
        "xlgrid fetch topics" in lines["model some/encoder"].text
        and "xlgrid fetch topics" in lines["data set some/data"].text
    )


def test_a_silent_hub_leaves_the_lock_file_to_answer(plan_of: Callable[..., Plan], no_hub: list[str]) -> None:
    plan = plan_of()
    Path("hub.lock.yaml").write_text(f"model/some/encoder@main: {COMMIT}\n")
    line = lines_of(plan)["model some/encoder"]
    assert line.state is State.GOOD and COMMIT[:7] in line.text


def test_a_repository_is_asked_for_at_its_locked_commit(
    plan_of: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of()
    Path("hub.lock.yaml").write_text(f"model/some/encoder@main: {COMMIT}\n")
    requests = answers(monkeypatch, {"some/encoder": ["config.json", "model.safetensors", "tokenizer.json"]})
    assert lines_of(plan)["model some/encoder"].state is State.GOOD
    assert requests == [("some/encoder", COMMIT)]


def test_a_repository_that_does_not_exist_is_a_problem(
    plan_of: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(monkeypatch, {})
    line = lines_of(plan_of())["model some/encoder"]
    assert line.state is State.PROBLEM and "correct its name" in line.text


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["model.safetensors", "tokenizer.json"], "no config.json"),
        (["config.json", "tokenizer.json"], "neither model.safetensors"),
        (["config.json", "pytorch_model.bin"], "no tokenizer.json"),
        (["config.json", "pytorch_model.bin", "spm.model"], "packages sentencepiece and protobuf"),
        (["config.json", "flax_model.msgpack", "tokenizer.json"], "weights for Flax"),
        (
            ["config.json", "tokenizer.json", "model.safetensors.index.json", "model-00001-of-00002.safetensors"],
            "lacks model-00002-of-00002",
        ),
    ],
)
def test_a_repository_without_a_file_that_is_needed_is_a_problem(
    plan_of: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch, files: list[str], message: str
) -> None:
    answers(monkeypatch, {"some/encoder": files})
    line = lines_of(plan_of())["model some/encoder"]
    assert line.state is State.PROBLEM and message in line.text


def test_a_misspelt_configuration_of_data_is_named_with_its_nearest(
    plan_of: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"some/encoder": [], "some/data": ["README.md"]}
    answers(monkeypatch, files, configs=("en", "deu"))
    line = lines_of(plan_of(tasks=DATA))["data set some/data"]
    assert line.state is State.PROBLEM and "unknown configuration 'de', did you mean 'deu'" in line.text
    answers(monkeypatch, files, configs=("en", "de"))
    assert lines_of(plan_of(tasks=DATA))["data set some/data"].state is State.GOOD


def test_the_parquet_branch_shows_its_configurations_as_folders(
    plan_of: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = {"topic": {"kind": "wikiann", "data": DATA["topic"]["data"] | {"revision": "refs/convert/parquet"}}}
    answers(monkeypatch, {"some/encoder": [], "some/data": ["en/train/0000.parquet", "fr/train/0000.parquet"]})
    line = lines_of(plan_of(tasks=tasks))["data set some/data"]
    assert line.state is State.PROBLEM and "unknown configuration 'de'" in line.text


def data_line(plan_of: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch, there: list[str], **data: Any) -> Line:
    answers(monkeypatch, {"some/encoder": [], "some/data": there})
    tasks = {"topic": {"kind": "wikiann", "data": {"hub": "some/data"} | data}}
    return lines_of(plan_of(tasks=tasks))["data set some/data"]


SPLITS = ("en/train", "en/validation", "en/test", "de/test")


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("{name}/{split}.parquet", [f"{each}.parquet" for each in SPLITS]),
        ("{name}/{split}/*.parquet", [f"{each}/0000.parquet" for each in SPLITS]),
        ("{name}/{split}-0000[0-9]-of-00002.parquet", [f"{each}-00001-of-00002.parquet" for each in SPLITS]),
        ("**/{name}/{split}.parquet", [f"data/{each}.parquet" for each in SPLITS]),
    ],
)
def test_a_pattern_of_files_names_files_as_those_of_datasets_do(
    plan_of: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch, pattern: str, files: list[str]
) -> None:
    assert data_line(plan_of, monkeypatch, files, files=pattern).state is State.GOOD
    line = data_line(plan_of, monkeypatch, files[:-1], files=pattern)
    assert line.state is State.PROBLEM and "unknown file '" in line.text and "topic, de, test" in line.text


def test_a_star_in_a_pattern_is_no_folder(plan_of: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    files = [f"{each}/0000.parquet" for each in SPLITS]
    assert data_line(plan_of, monkeypatch, files, files="{name}/*.parquet").state is State.PROBLEM


@pytest.mark.parametrize(
    ("data", "is_read"),
    [
        ({}, False),
        ({"name": "{language}"}, False),
        ({"files": "{name}/{split}.parquet"}, False),
        ({"files": "{name}/{split}.csv", "quotes": True}, True),
        ({"files": "{name}/{split}.tsv"}, True),  # a file with a word on each line
    ],
)
def test_a_data_set_that_is_a_script_is_a_problem_unless_its_files_are_read_one_by_one(
    plan_of: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch, data: dict[str, Any], is_read: bool
) -> None:
    files = [f"{each}.{kind}" for each in SPLITS for kind in ("parquet", "csv", "tsv")]
    line = data_line(plan_of, monkeypatch, [*files, "data.py"], **data)
    assert line.state is (State.GOOD if is_read else State.PROBLEM)
    assert is_read or "the repository is a script, data.py, which is not run: write " in line.text
    assert data_line(plan_of, monkeypatch, [*files, "other.py"], **data).state is State.GOOD


def test_a_text_that_is_a_script_is_a_problem(plan_of: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = {"kind": "xlmr", "languages": ["en", "de"], "hidden": 16, "layers": 1, "intermediate": 16}
    answers(monkeypatch, {"some/data": ["data.py"]})
    text = {"data": {"hub": "some/data", "name": "{language}"}, "column": "text"}
    line = lines_of(plan_of(encoders={"e": {"scratch": scratch}}, text=text))["data set some/data"]
    assert line.state is State.PROBLEM and "text, en: the repository is a script" in line.text


@pytest.mark.parametrize("admitted", [True, False])
def test_a_gated_repository_is_a_problem_without_access(
    plan_of: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch, admitted: bool
) -> None:
    files = ["config.json", "model.safetensors", "tokenizer.json"]
    gated = SimpleNamespace(gated="auto", siblings=[SimpleNamespace(rfilename=name) for name in files])
    monkeypatch.setattr("xlgrid.data.lock.ask", lambda *_: gated)
    monkeypatch.setattr("xlgrid.data.lock.admits", lambda *_: admitted)
    line = lines_of(plan_of())["model some/encoder"]
    assert line.state is (State.GOOD if admitted else State.PROBLEM)
    assert admitted or "https://huggingface.co/some/encoder, then log in" in line.text
