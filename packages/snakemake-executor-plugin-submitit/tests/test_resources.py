"""Resources of rules as requests to Slurm."""

import pytest

from snakemake_executor_plugin_submitit.resources import LEAST, TABLE, Request, check_names, request

DEFAULTS = Request(partition="small", bundle=50)


def asked(**resources: object) -> Request:
    return request(resources, 2, DEFAULTS)


def test_a_rule_s_resources_win_over_the_settings() -> None:
    job_request = asked(mem_mb=2048, runtime=30, gpus=1, slurm_partition="gpu", bundle=4)
    assert job_request == Request(cpus=2, mem_mb=2048, minutes=30, gpus=1, partition="gpu", bundle=4)


@pytest.mark.parametrize(("gpu", "gpus"), [(0, 2), (2, 0), (1, 2)])
def test_a_profile_may_ask_for_gpus_by_the_other_name_than_the_rule(gpu: int, gpus: int) -> None:
    assert asked(gpu=gpu, gpus=gpus).gpus == asked(gpus=gpus, gpu=gpu).gpus == 2


def test_a_job_on_this_machine_has_no_limit_of_time_and_asks_for_no_memory() -> None:
    assert asked(mem_mb=2048, runtime=30, gpus=1).here() == asked(gpus=1)


@pytest.mark.parametrize(
    ("gres", "gpus"),
    [
        ("gpu", 1),
        ("gpu:2", 2),
        ("gpu:a100", 1),
        ("gpu:a100:3", 3),
        ("gres/gpu:2", 2),
        ("lustre:1,gpu:2", 2),
        ("shard:4", 1),
        ("gpumem:4", 1),
    ],
)
def test_generic_resources_that_are_gpus_are_gpus_on_this_machine_too(gres: str, gpus: int) -> None:
    assert asked(gpus=1, gres=gres).here() == asked(gpus=gpus)


def test_what_a_task_asks_for_grows_with_the_jobs_it_runs_at_a_time_but_for_gpus() -> None:
    parameters = asked(mem_mb=2048, gpus=1).slurm(slots=3, minutes=90)
    assert parameters == {
        "timeout_min": 90,
        "cpus_per_task": 6,
        "mem_gb": 6,
        "gpus_per_node": 1,
        "slurm_partition": "small",
    }


def test_memory_per_core_replaces_memory() -> None:
    parameters = asked(mem_mb=1000, mem_mb_per_cpu=500).slurm(1, 60)
    assert parameters["slurm_mem_per_cpu"] == "500M" and "mem_gb" not in parameters


def test_gres_replaces_gpus() -> None:
    parameters = asked(gpus=1, gres="gpu:a100:1").slurm(1, 60)
    assert parameters["slurm_gres"] == "gpu:a100:1" and "gpus_per_node" not in parameters


def test_every_resource_of_the_table_changes_the_request() -> None:
    values = {"slurm_extra": "--nice=5"}
    same = [name for name in TABLE if asked(**{name: values.get(name, "7")}) == asked()]
    assert same == []


def test_an_unknown_resource_names_those_that_exist() -> None:
    with pytest.raises(
        ValueError, match="unknown resource 'slurm_partion' of rule train, did you mean 'slurm_partition'"
    ) as error:
        check_names({"train": ["slurm_partion"]}, [])
    assert all(name in str(error.value) for name in TABLE)


def test_a_resource_that_snakemake_limits_asks_nothing_of_slurm() -> None:
    assert check_names({"fetch": ["downloads"]}, ["downloads"]) == []
    assert request({"downloads": 1}, 1, DEFAULTS) == Request(partition="small", bundle=50)


def test_a_resource_of_another_kind_is_not_passed_on_and_said_once() -> None:
    warnings = check_names({"train": ["att", "nodes", "mem_mb"], "evaluate": ["att"]}, [])
    assert [warning.partition(" is not passed on")[0] for warning in warnings] == [
        "the resource 'att' (train, evaluate)",
        "the resource 'nodes' (train)",
    ]
    assert asked(att=2, nodes=4) == asked()


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        ({"runtime": "long"}, "runtime must be a whole number of at least 1, got 'long'"),
        ({"slurm_extra": "-n 5"}, "not of the form --option"),
        ({"clusters": "all"}, "clusters must be names of clusters"),
        ({"clusters": ["one", "two"]}, "clusters must be text"),
        ({"slurm_extra": "--clusters=all"}, "clusters must be names of clusters"),
    ],
)
def test_a_wrong_value_is_reported(resources: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        asked(**resources)


@pytest.mark.parametrize(
    ("name", "least"), [(name, LEAST[where]) for name, (where, _) in TABLE.items() if where in LEAST]
)
def test_a_number_that_is_too_small_or_none_is_refused(name: str, least: int) -> None:
    asked(**{name: least})
    for value in (least - 1, -5, str(least - 1), True, "yes", "1.5", [1]):
        with pytest.raises(ValueError, match=f"{name} must be a whole number of at least {least}, got "):
            asked(**{name: value})


@pytest.mark.parametrize("name", [name for name, (where, _) in TABLE.items() if where not in LEAST])
def test_a_number_or_a_truth_value_is_not_taken_for_text(name: str) -> None:
    """83 may have been the account 0123, and True the partition `yes`."""
    for value in (83, True, all):
        with pytest.raises(ValueError, match=f"{name} must be text, got "):
            asked(**{name: value})


def test_a_resource_without_a_value_asks_for_nothing() -> None:
    assert asked(**dict.fromkeys(TABLE)) == asked()


def test_a_task_without_gpus_or_memory_asks_for_neither() -> None:
    assert Request().slurm(1, 60) == {"timeout_min": 60, "cpus_per_task": 1}


def test_options_of_sbatch_are_those_of_its_command_line() -> None:
    extra = "--nice=5 --exclusive --comment='two words' --export=A=1 --switches="
    options = {"nice": "5", "exclusive": True, "comment": "two words", "export": "A=1", "switches": ""}
    assert Request(extra=extra).options() == options
    assert Request().options() == {}


@pytest.mark.parametrize("extra", ["-n 5", "nice=5", "--", "--=5", "--nice 5"])
def test_options_in_another_form_are_refused(extra: str) -> None:
    with pytest.raises(ValueError, match="not of the form --option"):
        Request(extra=extra).options()


def test_clusters_are_those_of_the_rule_or_of_the_setting() -> None:
    settings = Request(clusters="one,all-gpus")
    assert request({}, 1, settings).clusters == "one,all-gpus"
    assert request({"clusters": "two"}, 1, settings).clusters == "two"


def test_the_threads_of_a_rule_are_its_cores_unless_it_says_otherwise() -> None:
    assert (asked().cpus, asked(cpus_per_task=7).cpus) == (2, 7)


def test_the_smallest_bundle_is_a_single_job() -> None:
    assert asked(bundle=1).bundle == 1


def test_a_resource_of_snakemake_s_own_executor_is_not_taken_for_a_misspelt_name() -> None:
    """`slurm_reservation`, `gpu_model` and others resemble names of the table."""
    names = ["nodes", "tasks", "slurm_cluster", "gpu_model", "reservation", "tasks_per_node"]
    assert len(check_names({"train": names}, [])) == len(names)


def test_resources_of_snakemake_itself_are_no_reason_to_warn() -> None:
    assert check_names({"train": ["_cores", "tmpdir", "mem", "disk_mb", "runtime"]}, []) == []
