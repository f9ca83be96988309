"""Resources of rules as requests to a cluster."""

import pytest
from stub import asks

from snakemake_executor_plugin_submitit.resources import LEAST, TABLE, Request, check_names, request

# The resources of a cluster's own, and of another's.
OWN, OTHERS = {"lsf_queue": "queue", "lsf_extra": "extra"}, ["slurm_partition", "lsf_queue"]
DEFAULTS = asks(queue="small", bundle=50)


def asked(**resources: object) -> Request:
    return request(resources, 2, DEFAULTS, OWN)


def checked(rules: dict[str, list[str]], *constraints: str) -> list[str]:
    return check_names(rules, constraints, OWN, OTHERS)


def test_a_rule_s_resources_win_over_the_settings() -> None:
    job_request = asked(mem_mb=2048, runtime=30, gpus=1, lsf_queue="gpu", bundle=4)
    assert job_request == asks(cpus=2, mem_mb=2048, minutes=30, gpus=1, queue="gpu", bundle=4)


@pytest.mark.parametrize(("gpu", "gpus"), [(0, 2), (2, 0), (1, 2)])
def test_a_profile_may_ask_for_gpus_by_the_other_name_than_the_rule(gpu: int, gpus: int) -> None:
    assert asked(gpu=gpu, gpus=gpus).gpus == asked(gpus=gpus, gpu=gpu).gpus == 2


def test_every_resource_of_the_table_changes_the_request() -> None:
    same = [name for name in (*TABLE, *OWN) if asked(**{name: "7"}) == asked()]
    assert same == []


def test_an_unknown_resource_names_those_that_exist() -> None:
    with pytest.raises(
        ValueError, match="unknown resource 'lsf_queu' of rule train, did you mean 'lsf_queue'"
    ) as error:
        checked({"train": ["lsf_queu"]})
    assert all(name in str(error.value) for name in (*TABLE, *OWN))


def test_a_resource_of_another_kind_is_not_passed_on_and_said_once() -> None:
    """Resources of Snakemake itself, resources that it limits for the whole workflow, and resources of other clusters
    cause no warning."""
    fine = ["_cores", "tmpdir", "mem", "disk_mb", "runtime", "downloads", "slurm_partition"]
    warnings = checked({"train": ["att", "nodes", "mem_mb", *fine], "evaluate": ["att"]}, "downloads")
    assert [warning.partition(" is not passed on")[0] for warning in warnings] == [
        "the resource 'att' (train, evaluate)",
        "the resource 'nodes' (train)",
    ]
    assert asked(att=2, nodes=4, downloads=1, slurm_partition="gpu", **dict.fromkeys((*TABLE, *OWN))) == asked()


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        ({"runtime": "long"}, "runtime must be a whole number of at least 1, got 'long'"),
        # 83 may have been the account 0123, and True the partition `yes`.
        *(({name: value}, f"{name} must be text, got ") for name in OWN for value in (83, True, all, ["one"])),
    ],
)
def test_a_wrong_value_is_reported(resources: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        asked(**resources)


@pytest.mark.parametrize(("name", "least"), [(name, LEAST[field]) for name, field in TABLE.items()])
def test_a_number_that_is_too_small_or_none_is_refused(name: str, least: int) -> None:
    asked(**{name: least})
    for value in (least - 1, -5, str(least - 1), True, "yes", "1.5", [1]):
        with pytest.raises(ValueError, match=f"{name} must be a whole number of at least {least}, got "):
            asked(**{name: value})


def test_the_threads_of_a_rule_are_its_cores_unless_it_says_otherwise() -> None:
    assert (asked().cpus, asked(cpus_per_task=7).cpus) == (2, 7)


def test_a_resource_of_snakemake_s_own_executor_is_not_taken_for_a_misspelt_name() -> None:
    """`slurm_reservation`, `gpu_model` and others resemble names of the table."""
    names = ["nodes", "tasks", "slurm_cluster", "gpu_model", "reservation", "tasks_per_node"]
    assert len(checked({"train": names})) == len(names)


def test_memory_per_core_replaces_memory() -> None:
    assert (asked(mem_mb=1000).memory, asked(mem_mb=1000, mem_mb_per_cpu=300).memory) == (1000, 600)
