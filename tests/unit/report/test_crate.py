"""A crate is complete: each reference leads to an entity, each file is there with its hash, and each job has its duration."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from results_fixture import make_results
from status_fixture import CELL, RUN, write

from xlgrid.plan.load import load_plan
from xlgrid.products.encode import Encoder
from xlgrid.report import crate

LICENCE = "https://creativecommons.org/licenses/by/4.0/"
FOLDER = Path("crate")


@pytest.fixture
def entities(tiny_project: None) -> dict[str, Any]:
    """The entities of the crate of a study, by their names."""
    make_results()
    write("Snakefile", "# the workflow")
    write("config.yaml", "study: tiny")
    os.utime(CELL.path, (1e9, 1e9))
    crate.write(load_plan("tiny"), FOLDER, LICENCE)
    listed = json.loads((FOLDER / crate.METADATA).read_text())["@graph"]
    found = {entity["@id"]: entity for entity in listed}
    assert len(found) == len(listed)
    return found


def references(value: Any) -> list[str]:
    """The names of the entities to which a property refers."""
    if isinstance(value, list):
        return [name for each in value for name in references(each)]
    return [value["@id"]] if isinstance(value, dict) else []


def test_each_reference_leads_to_an_entity(entities: dict[str, Any]) -> None:
    named = {name for entity in entities.values() for value in entity.values() for name in references(value)}
    outside = {name for name in named if name.startswith("https://")}
    assert named - outside <= entities.keys()
    assert outside - entities.keys() == {
        crate.CRATE,
        "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE",
    }


def test_each_file_is_there_with_its_hash_and_no_weights_and_data_are(entities: dict[str, Any]) -> None:
    files = {name: entity for name, entity in entities.items() if "File" in entity["@type"]}
    assert {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*") if path.is_file()} == {*files, crate.METADATA}
    for name, entity in files.items():
        assert entity["sha256"] == hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()
    assert {CELL.path, RUN.path, "results/tiny/exhibits/means.csv", "results/tiny/study/tiny.yaml"} <= files.keys()
    assert not [name for name in files if name.endswith((".safetensors", ".parquet", ".arrow"))]


def test_no_time_is_that_of_a_file(entities: dict[str, Any]) -> None:
    """`snakemake --touch` after a copy would change it."""
    assert "2001-09" not in (FOLDER / crate.METADATA).read_text()


def test_a_job_has_its_command_duration_inputs_and_outputs(entities: dict[str, Any]) -> None:
    job = entities[f"#job/{CELL.path}"]
    assert job["description"] == "xlgrid evaluate, on cuda (A100), in 2.5 s" and job["instrument"] == {"@id": "#Cell"}
    assert references(job["result"]) == [CELL.path]
    encoder = Encoder("tiny", "tiny").path
    # The encoder is not in the crate, but its hash is.
    assert f"#{encoder}" in references(job["object"])
    assert entities[f"#{encoder}"]["sha256"] == hashlib.sha256(Path(encoder).read_bytes()).hexdigest()


def test_the_crate_says_what_it_is_and_under_which_licence(entities: dict[str, Any]) -> None:
    root = entities["./"]
    assert root["name"] == "Tiny" and root["license"] == {"@id": LICENCE}
    assert f"{crate.RUNS}/provenance/0.5" in references(root["conformsTo"])
    workflow = entities[references(root["mainEntity"])[0]]
    assert references(workflow["output"]) == ["#exhibit/means"]
    requirements = {entities[name]["name"] for name in references(workflow["softwareRequirements"])}
    assert {"python", "torch"} <= requirements


def test_a_zip_has_the_same_files(entities: dict[str, Any]) -> None:
    crate.write(load_plan("tiny"), Path("crate.zip"), LICENCE)
    with ZipFile("crate.zip") as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    assert contents == {
        str(path.relative_to(FOLDER)): path.read_bytes() for path in FOLDER.rglob("*") if path.is_file()
    }


def test_without_a_licence_the_crate_says_so(entities: dict[str, Any]) -> None:
    crate.write(load_plan("tiny"), Path("other"))
    assert crate.UNLICENSED in Path("other", crate.METADATA).read_text()


def test_a_folder_with_files_is_refused(entities: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="crate is not empty: name another folder"):
        crate.write(load_plan("tiny"), FOLDER)


@pytest.mark.usefixtures("tiny_project")
def test_a_study_without_results_or_workflow_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no Snakefile in .*: run this in the folder of the project"):
        crate.write(load_plan("tiny"), FOLDER)
    write("Snakefile")
    with pytest.raises(ValueError, match="study tiny has no results yet"):
        crate.write(load_plan("tiny"), FOLDER)


@pytest.mark.thorough
def test_the_validator_finds_no_required_check_that_fails(entities: dict[str, Any]) -> None:
    """It reads the contexts of JSON-LD from the network."""
    services = pytest.importorskip("rocrate_validator.services")
    required = pytest.importorskip("rocrate_validator.models").Severity.REQUIRED
    profile = {"profile_identifier": "provenance-run-crate-0.5", "requirement_severity": required}
    settings = services.ValidationSettings(rocrate_uri=str(FOLDER), **profile)
    assert [issue.message for issue in services.validate(settings).get_issues()] == []
