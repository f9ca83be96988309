"""Slurm, with scripts in place of its commands, and what this machine tells about itself."""

import os
import re
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from stub import asks
from submitit.core.utils import DelayedSubmission
from waiting import wait_for

from snakemake_executor_plugin_submitit import failures
from snakemake_executor_plugin_submitit.clusters.cluster import GONE, Refused, python
from snakemake_executor_plugin_submitit.clusters.commands import Commands
from snakemake_executor_plugin_submitit.clusters.local import Local, birth, devices
from snakemake_executor_plugin_submitit.clusters.slurm import Slurm, clean_environment, parameters
from snakemake_executor_plugin_submitit.clusters.slurm import extra as extra_options
from snakemake_executor_plugin_submitit.resources import Request

# What scontrol says of a job that its controller does not know.
UNKNOWN = "slurm_load_jobs error: Invalid job id specified\n"


class Bin:
    """A folder, the only one on PATH before the system's, with scripts in place of commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def answer(self, command: str, out: str = "", error: str = "", code: int = 0) -> None:
        """From now on a command notes its arguments, prints `out` and `error`, and ends with this code."""
        text = f'#!/bin/bash\necho "$@" >> {self.folder}/{command}.log\necho -n {shlex.quote(out)}\n'
        text += f"echo -n {shlex.quote(error)} >&2\nexit {code}\n"
        (self.folder / command).write_text(text)
        (self.folder / command).chmod(stat.S_IRWXU)

    def calls(self, command: str) -> list[list[str]]:
        """The arguments of each call of a command."""
        log = self.folder / f"{command}.log"
        return [line.split() for line in log.read_text().splitlines()] if log.exists() else []


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bin:
    """Commands of Slurm that know no task and accept all."""
    folder = Bin(tmp_path / "bin")
    for name in ("sbatch", "squeue", "sacct", "scancel", "srun", "scontrol", "sacctmgr"):
        folder.answer(name)
    folder.answer("sbatch", "77\n")
    folder.answer("scontrol", error=UNKNOWN, code=1)
    monkeypatch.setenv("PATH", f"{folder.folder}:/usr/bin:/bin")
    return folder


@pytest.fixture
def slurm(commands: Bin) -> Slurm:
    return Slurm(["module load cuda"], parallelism=5, slots=2, grace=45)


def submit(slurm: Slurm, folder: Path, count: int) -> list[str]:
    bundles = [folder / "array" / str(number) for number in range(count)]
    request = asks(cpus=3, extra="--nice=5")
    return slurm.submit(folder / "array" / "submitit", "rule-1", bundles, request, 30)


# Submission.


def test_the_script_of_an_array_asks_for_what_its_tasks_need(slurm: Slurm, tmp_path: Path) -> None:
    submit(slurm, tmp_path, 7)
    script = (tmp_path / "array" / "submitit" / "submission.sh").read_text()
    options = {line.removeprefix("#SBATCH ") for line in script.splitlines() if line.startswith("#SBATCH ")}
    expected = {
        *("--array=0-6%5", "--job-name=rule-1", "--time=30", "--cpus-per-task=6", "--nice=5"),
        *("--signal=B:USR2@45", "--requeue", "--open-mode=append"),
    }
    assert expected <= options, expected - options


def test_the_script_of_a_task_sets_it_up_and_becomes_the_worker(slurm: Slurm, tmp_path: Path) -> None:
    """Slurm signals the batch shell alone, so the worker has to take the place of the shell."""
    submit(slurm, tmp_path, 1)
    lines = (tmp_path / "array" / "submitit" / "submission.sh").read_text().splitlines()
    assert [line for line in lines if line.startswith(f"exec {sys.executable} -P ")] == [lines[-1]]
    assert "srun" not in lines[-1]
    assert not any("--array" in line for line in lines), "Slurm would give the task another name"
    assert "export SUBMITIT_NODE=$SLURMD_NODENAME" in lines
    assert lines.index("module load cuda") < lines.index("export OMP_NUM_THREADS=3") < len(lines) - 1
    outputs = [line.split()[1].partition("=")[0] for line in lines if re.search("--(output|error)=", line)]
    assert outputs == ["--output"], "errors of the task are not in the log that a failure cites"


@pytest.mark.parametrize(("count", "name"), [(1, "%j_0_log.out"), (2, "%A_%a_0_log.out")])
def test_a_project_may_have_the_name_of_a_pattern(
    slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, name: str
) -> None:
    """Slurm and submitit replace %j and others; in a path of Slurm %% stands for %."""
    folder = tmp_path / "100%done 5%j %A%t"
    folder.mkdir()
    monkeypatch.chdir(folder)
    submit(slurm, folder, count)
    lines = (folder / "array" / "submitit" / "submission.sh").read_text().splitlines()
    [output] = shlex.split(next(line.partition("--output=")[2] for line in lines if "--output=" in line))
    assert output == str(folder / "array" / "submitit" / name).replace(str(folder), str(folder).replace("%", "%%"))
    seen = Path(shlex.split(lines[-1])[-1])
    assert "%" not in str(seen) and seen.samefile(folder / "array" / "submitit")


@pytest.mark.parametrize(("count", "names"), [(1, ["77"]), (2, ["77_0", "77_1"])])
def test_each_task_finds_its_bundle_under_its_name(slurm: Slurm, tmp_path: Path, count: int, names: list[str]) -> None:
    assert submit(slurm, tmp_path, count) == names
    folder = tmp_path / "array" / "submitit"
    pickles = [DelayedSubmission.load(folder / f"{name}_submitted.pkl") for name in names]
    assert [pickle.function.folder for pickle in pickles] == [str(tmp_path / "array" / str(n)) for n in range(count)]
    assert {pickle._timeout_min for pickle in pickles} == {30}
    assert {pickle._timeout_countdown >= 100_000 for pickle in pickles} == {True}, "submitit ends the worker's requeues"
    assert len([*folder.glob("*.pkl")]) == count


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Batch job submission failed: Invalid partition name specified", Refused),
        ("sbatch: error: invalid partition specified: connectome", Refused),
        ("Requested node configuration is not available", Refused),
        ("Invalid job array specification", Refused),
        ("Socket timed out on send/recv operation", OSError),
        ("Unable to contact slurm controller (connect failure)", OSError),
        ("Invalid job credential", OSError),
        ("Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)", OSError),
        ("Something new", RuntimeError),
    ],
)
def test_a_refusal_is_final_for_now_or_unknown_and_one_for_size_names_the_setting(
    slurm: Slurm, commands: Bin, tmp_path: Path, words: str, kind: type
) -> None:
    commands.answer("sbatch", error=f"sbatch: error: {words}\n", code=1)
    with pytest.raises(kind, match=re.escape(words)) as raised:
        submit(slurm, tmp_path, 1)
    assert type(raised.value) is kind
    assert ("--submitit-array-size" in str(raised.value)) == ("array" in words or "size" in words)


def test_an_sbatch_that_does_not_answer_has_refused_nothing(slurm: Slurm, commands: Bin, tmp_path: Path) -> None:
    (commands.folder / "sbatch").write_text("#!/bin/bash\nsleep 60\n")
    slurm.commands.limit = 0.2
    with pytest.raises(TimeoutError, match=r"sbatch did not answer within 0\.2 s"):
        submit(slurm, tmp_path, 1)


# Requests.


@pytest.mark.parametrize(
    ("request_", "slots", "named"),
    [
        (asks(), 1, {"cpus_per_task": 1}),
        (
            asks(cpus=2, mem_mb=2048, gpus=1, partition="small"),
            3,
            {"cpus_per_task": 6, "mem_gb": 6, "gpus_per_node": 1, "slurm_partition": "small"},
        ),
        (asks(mem_mb_per_cpu=500), 2, {"cpus_per_task": 2, "slurm_mem_per_cpu": "500M"}),
        (asks(gpus=1, gres="gpu:a100:1"), 1, {"cpus_per_task": 1, "slurm_gres": "gpu:a100:1"}),
    ],
)
def test_what_a_task_asks_for_grows_with_the_jobs_it_runs_at_a_time_but_for_gpus(
    request_: Request, slots: int, named: dict[str, object]
) -> None:
    assert parameters(request_, slots, minutes=90) == {"timeout_min": 90, **named}


def test_options_of_sbatch_are_those_of_its_command_line() -> None:
    extra = "--nice=5 --exclusive --comment='two words' --export=A=1 --switches="
    options = {"nice": "5", "exclusive": True, "comment": "two words", "export": "A=1", "switches": ""}
    assert extra_options(asks(extra=extra)) == options
    assert extra_options(asks()) == {}


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
def test_generic_resources_that_are_gpus_are_gpus_here_and_on_this_machine(slurm: Slurm, gres: str, gpus: int) -> None:
    request = asks(gpus=1, gres=gres)
    assert (slurm.adapt(request).gpus, Local().adapt(request)) == (gpus, Request(gpus=gpus))


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        *(({"extra": extra}, "not of the form --option") for extra in ("-n 5", "nice=5", "--", "--=5", "--nice 5")),
        ({"clusters": "all"}, "clusters must be names of clusters"),
        ({"extra": "--clusters=all"}, "clusters must be names of clusters"),
    ],
)
def test_a_request_that_slurm_cannot_grant_is_refused_before_it_is_submitted(
    slurm: Slurm, request_: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        slurm.adapt(asks(**request_))


def test_a_task_is_named_with_its_cluster_for_commands_of_slurm(slurm: Slurm) -> None:
    assert slurm.argument("1_0;wice") == "1_0 --clusters=wice"
    assert slurm.showing("1_0;wice") == "scontrol show job 1_0 --clusters=wice"


# Ends.


@pytest.mark.parametrize(
    ("state", "line", "cause"),
    [
        ("CANCELLED by 0", "", failures.CANCELLED),
        ("NODE_FAIL", "", failures.NODE_FAILURE),
        ("FAILED", "", failures.KILLED),
        ("", "", failures.KILLED),
        ("FAILED", "slurmstepd: error: Detected 1 oom_kill event in StepId=7.batch.", failures.OUT_OF_MEMORY),
        ("GONE", "slurmstepd: error: Detected 2 oom-kill event(s) in step 7.batch cgroup.", failures.OUT_OF_MEMORY),
        ("FAILED", "slurmstepd: error: Exceeded job memory limit", failures.OUT_OF_MEMORY),
        ("FAILED", "a job said: slurmstepd: error: oom_kill", failures.KILLED),
        ("NODE_FAIL", "slurmstepd: error: Detected 1 oom_kill event in StepId=7.batch.", failures.NODE_FAILURE),
    ],
)
def test_the_cause_of_the_end_of_a_task_is_the_word_of_slurm_or_its_line_in_the_log(
    slurm: Slurm, state: str, line: str, cause: str
) -> None:
    """Without accounting the state does not tell that the memory was used up."""
    assert slurm.cause(state, f"the log:\nsome words\n{line}\n") == cause


# Limits.

PARTITIONS = """\
PartitionName=short AllowGroups=ALL Default=NO MaxTime=00:30:00 MinNodes=0
PartitionName=day Default=YES MaxTime=1-00:00:30 State=UP
PartitionName=long Default=NO MaxTime=UNLIMITED State=UP
"""


@pytest.mark.parametrize(
    ("request_", "minutes", "longest"),
    [
        (asks(partition="short", qos="free"), 30, 30),
        (asks(partition="short", qos="free"), 31, None),
        (asks(qos="free"), 30, 1440),
        (asks(partition="long", qos="free"), 10_000, None),
        (asks(partition="day,short", qos="free"), 20, 30),
        (asks(partition="day,short", qos="free"), 60, 1440),
        (asks(partition="nowhere", qos="free"), 1, None),
        (asks(partition="long", qos="other", extra="--partition=short --qos=free"), 1, 30),
        (asks(partition="long", qos="quick"), 30, 60),
        (asks(partition="long", qos="quick"), 61, None),
        (asks(partition="long", qos="other"), 30, None),
        (asks(partition="long"), 30, 60),
        (asks(partition="long"), 61, 2880),
        (asks(partition="short", qos="brief"), 20, 20),
        (asks(partition="short", qos="brief"), 21, 30),
    ],
)
def test_a_task_may_request_what_its_partition_and_its_quality_of_service_allow(
    slurm: Slurm, commands: Bin, request_: Request, minutes: int, longest: int | None
) -> None:
    """Where no quality of service is named, it may be any of them. The least limit that leaves a job its time counts."""
    commands.answer("scontrol", PARTITIONS)
    commands.answer("sacctmgr", "free|\nbrief|00:20:00\nquick|01:00:00\nnormal|2-00:00:00\n")
    slurm.learn()
    assert slurm.longest(request_, minutes) == longest


def test_a_busy_slurm_is_asked_again_for_its_limits_and_one_that_tells_nobody_is_not(
    slurm: Slurm, commands: Bin
) -> None:
    commands.answer("scontrol", error="slurm_load_partitions: Unable to contact slurm controller\n", code=1)
    with pytest.raises(OSError, match="Unable to contact"):
        slurm.learn()
    commands.answer("scontrol", error="Access/permission denied\n", code=1)
    commands.answer("sacctmgr", error="You are not running a supported accounting_storage plugin\n", code=1)
    slurm.learn()
    assert slurm.longest(Request(), 1) is None


# What sbatch prints.


@pytest.mark.parametrize(
    ("printed", "count", "names"),
    [
        ("77\n", 1, ["77"]),
        ("77\n", 2, ["77_0", "77_1"]),
        ("77;wice\n", 2, ["77_0;wice", "77_1;wice"]),
        ("Submitted batch job 77\n", 1, ["77"]),
        ("Submitted batch job 77 on cluster wice\n", 1, ["77;wice"]),
    ],
)
def test_a_bare_number_is_the_array_even_if_squeue_does_not_tell(
    slurm: Slurm, commands: Bin, tmp_path: Path, printed: str, count: int, names: list[str]
) -> None:
    commands.answer("sbatch", printed)
    commands.answer("squeue", error="Unable to contact slurm controller\n", code=1)
    assert submit(slurm, tmp_path, count) == names
    assert commands.calls("sbatch")[0][0] == "--parsable"


BANNERS = ["job 1 of 1 checked\n77\n", "874\n77\n", "77\nyour budget is 874\n", "77\n874\n", "874\n", "welcome\n", ""]


@pytest.mark.parametrize("printed", BANNERS)
def test_of_what_a_site_prints_only_a_number_that_the_queue_knows_under_the_name_is_believed(
    slurm: Slurm, commands: Bin, tmp_path: Path, printed: str
) -> None:
    commands.answer("sbatch", printed)
    rows = listing("77_0|PENDING|Priority", "77_1|PENDING|Priority") + listing("874|RUNNING|None", array="mine")
    commands.answer("squeue", rows)
    assert submit(slurm, tmp_path, 2) == ["77_0", "77_1"]
    slurm.cancel(of("77_0", "77_1"))
    assert commands.calls("scancel") == [["77_0", "77_1"]]


def test_an_answer_that_nobody_can_tell_is_left_to_the_search_for_the_array(
    slurm: Slurm, commands: Bin, tmp_path: Path
) -> None:
    commands.answer("sbatch", "job 874 checked\n")
    with pytest.raises(RuntimeError, match="job 874 checked"):
        submit(slurm, tmp_path, 2)
    commands.answer("squeue", listing("77_0|PENDING|Priority", "77_1|PENDING|Priority"))
    assert slurm.stray(tmp_path / "array" / "submitit", "rule-1") == {0: "77_0", 1: "77_1"}


def test_numbers_that_have_proved_right_once_cost_no_further_question(
    slurm: Slurm, commands: Bin, tmp_path: Path
) -> None:
    commands.answer("squeue", listing("77|PENDING|Priority"))
    for number in range(3):
        submit(slurm, tmp_path / str(number), 1)
    assert len(commands.calls("squeue")) == 1


def test_a_site_that_prints_a_wrong_number_is_never_believed(slurm: Slurm, commands: Bin, tmp_path: Path) -> None:
    commands.answer("sbatch", "874\n")
    commands.answer("squeue", listing("77|PENDING|Priority"))
    assert [submit(slurm, tmp_path / str(number), 1) for number in range(3)] == [["77"]] * 3


# Several clusters behind one login.


@pytest.fixture
def wice(commands: Bin) -> Bin:
    """Commands that know tasks only if they are asked about the cluster wice."""
    answers = {
        "squeue": ("1_0|RUNNING|None|rule-1\n1_4|RUNNING|None|rule-1\n", ""),
        "sacct": ("1_1|FAILED|rule-1\n", ""),
        "scontrol": ("JobId=9 ArrayJobId=1 ArrayTaskId=2 JobName=rule-1 JobState=RUNNING\n", UNKNOWN),
    }
    for command, (out, error) in answers.items():
        script = commands.folder / command
        script.write_text(
            f'#!/bin/bash\necho "$@" >> "$0.log"\n'
            f'[[ " $* " == *" --clusters=wice "* ]] && {{ echo -n {shlex.quote(out)}; exit; }}\n'
            f"echo -n {shlex.quote(error)} >&2; [ -z {shlex.quote(error)} ]\n"
        )
    return commands


def test_each_cluster_is_asked_about_its_own_tasks(slurm: Slurm, wice: Bin) -> None:
    tasks = of("1_0;wice", "1_1;wice", "1_2;wice", "1_3;wice", "1_0", "1_0;genius")
    expected = {"1_0;wice": None, "1_1;wice": "FAILED", "1_2;wice": None, "1_3;wice": GONE}
    assert slurm.states(tasks) == expected | {"1_0": GONE, "1_0;genius": GONE}
    slurm.cancel(tasks | of("1_4", "1_4;wice"))
    assert wice.calls("scancel") == [["--clusters=wice", "1_0", "1_1", "1_2", "1_4"]]


@pytest.mark.parametrize(
    "request_", [asks(clusters="genius,wice"), asks(extra="--clusters=genius,wice")], ids=["setting", "extra"]
)
def test_an_array_is_looked_for_on_all_clusters_that_may_have_it(
    slurm: Slurm, wice: Bin, tmp_path: Path, request_: Request
) -> None:
    folder = tmp_path / "array" / "submitit"
    wice.answer("sbatch", error="Socket timed out\n", code=1)
    with pytest.raises(OSError, match="Socket timed out"):
        slurm.submit(folder, "rule-1", [tmp_path / "array" / "0"], request_, 30)
    assert "#SBATCH --clusters=genius,wice" in (folder / "submission.sh").read_text().splitlines()
    assert slurm.stray(folder, "rule-1") == {0: "1_0;wice", 4: "1_4;wice"}
    assert (folder / "1_0_submitted.pkl").exists(), "the task does not know its cluster's name"


# Questions.


def of(*tasks: str, array: str = "rule-1") -> dict[str, str]:
    """Tasks, and the name of their array."""
    return dict.fromkeys(tasks, array)


def listing(*rows: str, array: str = "rule-1") -> str:
    """What squeue prints: `task|state|reason` and the name of the array."""
    return "".join(f"  {row}|{array}\n" for row in rows)


def test_tasks_wait_from_their_submission_until_the_queue_says_otherwise(
    slurm: Slurm, commands: Bin, tmp_path: Path
) -> None:
    submit(slurm, tmp_path, 2)
    assert slurm.waiting == {"77_0", "77_1"}
    commands.answer("squeue", listing("77_0|RUNNING|None", "77_1|PENDING|Priority", "8|PENDING|Priority"))
    slurm.states(of("77_0", "77_1"))
    assert slurm.waiting & {"77_0", "77_1"} == {"77_1"}


def test_a_task_in_the_queue_has_no_end_and_one_that_is_over_has_the_word_of_slurm(slurm: Slurm, commands: Bin) -> None:
    rows = ["1_0|RUNNING|None", "1_1|PENDING|Priority", "1_2|FAILED|NonZeroExitCode", "9|RUNNING|None"]
    others = "a line without columns\nhalf|a line\n" + listing("8|RUNNING|None", array="a|b|c")
    commands.answer("squeue", others + listing(*rows))
    assert slurm.states(of("1_0", "1_1", "1_2")) == {"1_0": None, "1_1": None, "1_2": "FAILED"}
    assert commands.calls("sacct") == [], "the accounting was asked about tasks that the queue knows"
    assert "--all" in commands.calls("squeue")[0], "tasks in hidden partitions are not listed"


def test_the_accounting_knows_the_end_of_a_task_that_the_queue_has_forgotten(slurm: Slurm, commands: Bin) -> None:
    commands.answer("squeue", listing("1_0|RUNNING|None"))
    rows = ["1_0|COMPLETED", "1_1|CANCELLED by 0", "1_2|RUNNING", "2|COMPLETED"]
    commands.answer("sacct", "no columns\n" + "".join(f"{row}|rule-1\n" for row in rows))
    states = slurm.states(of("1_0", "1_1", "1_2", "2", "3_0"))
    assert states == {"1_0": None, "1_1": "CANCELLED by 0", "1_2": GONE, "2": "COMPLETED", "3_0": GONE}
    assert commands.calls("sacct")[0][-1] == "1,2,3", "each array is to be asked for once"


# Records of scontrol: of tasks that have started, and one of all others of their array.
RECORDS = """\
JobId=5 ArrayJobId=1 ArrayTaskId=0 JobName=rule-1 UserId=me(1) JobState=RUNNING Reason=None Command=/x/submission.sh
JobId=6 ArrayJobId=1 ArrayTaskId=1 JobName=rule-1 UserId=me(1) JobState=NODE_FAIL Reason=None
JobId=1 ArrayJobId=1 ArrayTaskId=3-9%4 JobName=rule-1 UserId=me(1) JobState=PENDING Reason=Priority
"""


@pytest.mark.parametrize("accounting", ["", "1_0|RUNNING|rule-1\n1_[3-9%4]|PENDING|rule-1\n"])
def test_a_task_that_squeue_does_not_list_is_what_the_controller_calls_it(
    slurm: Slurm, commands: Bin, accounting: str
) -> None:
    """A filter, a hidden partition or a controller that restarts leaves tasks out of the listing."""
    commands.answer("sacct", accounting)
    commands.answer("scontrol", RECORDS)
    assert slurm.states(of("1_0", "1_1", "1_3")) == {"1_0": None, "1_1": "NODE_FAIL", "1_3": None}
    assert len(commands.calls("scontrol")) == 1, "the controller is asked for each task"
    commands.answer("scontrol", "JobId=7 JobName=rule-1 UserId=me(1) JobState=PENDING Reason=Priority\n")
    assert slurm.states(of("7")) == {"7": None}, "a task that is alone in its array"


@pytest.mark.parametrize("silent", ["squeue", "scontrol"])
def test_without_the_queue_or_a_second_source_there_is_no_answer(slurm: Slurm, commands: Bin, silent: str) -> None:
    commands.answer("sacct", error="sacct: error: slurmdbd: Connection refused\n", code=1)
    commands.answer(silent, error="slurm_load_jobs error: Unable to contact slurm controller\n", code=1)
    with pytest.raises(OSError, match=f"{silent}: slurm_load_jobs error: Unable to contact"):
        slurm.states(of("1_0"))


@pytest.mark.parametrize("source", ["squeue", "sacct", "scontrol"])
def test_a_job_of_another_name_is_not_the_task_whatever_its_number(slurm: Slurm, commands: Bin, source: str) -> None:
    """Numbers begin anew when a controller has lost its state, and another cluster has the same numbers."""
    answers = {
        "squeue": listing("1_0|RUNNING|None", array="mine"),
        "sacct": "1_0|COMPLETED|mine\n",
        "scontrol": "JobId=1 ArrayJobId=1 ArrayTaskId=0 JobName=mine JobState=RUNNING\n",
    }
    commands.answer(source, answers[source])
    assert slurm.states(of("1_0")) == {"1_0": GONE}


def test_a_reason_to_wait_is_reported_for_own_tasks_that_wait_for_a_person(slurm: Slurm, commands: Bin) -> None:
    rows = ["1_0|PENDING|PartitionConfig", "1_1|PENDING|Priority", "1_2|RUNNING|JobHeldUser", "9|PENDING|JobHeldUser"]
    commands.answer("squeue", listing(*rows))
    slurm.states(of("1_0", "1_1", "1_2"))
    assert slurm.stuck == {"1_0": "PartitionConfig"}


def seen(slurm: Slurm, commands: Bin, count: int) -> dict[str, str]:
    """So many tasks that the queue has shown."""
    tasks = of(*(f"1_{number}" for number in range(count)))
    commands.answer("squeue", listing(*(f"{task}|RUNNING|None" for task in tasks)))
    slurm.states(tasks)
    return tasks


def test_all_tasks_are_cancelled_in_commands_of_a_bearable_length(slurm: Slurm, commands: Bin) -> None:
    """scancel fails where one of the tasks has ended meanwhile; the rest must be cancelled all the same."""
    commands.answer("scancel", error="scancel: error: Invalid job id\n", code=1)
    tasks = seen(slurm, commands, 1201)
    slurm.cancel(tasks)
    calls = commands.calls("scancel")
    assert [task for call in calls for task in call] == [*tasks]
    assert 1 < len(calls) <= 5


def test_a_task_is_cancelled_only_if_the_queue_shows_it_under_its_name(slurm: Slurm, commands: Bin) -> None:
    """A number that sbatch seems to have printed may be another job of the user."""
    tasks = seen(slurm, commands, 1)
    rows = listing("1_1|RUNNING|None") + listing("1_2|RUNNING|None", "5|PENDING|Priority", array="mine")
    commands.answer("squeue", rows)
    slurm.cancel(tasks | of("1_1", "1_2") | of("5", array="rule-2"))
    slurm.cancel({})
    assert commands.calls("scancel") == [["1_0", "1_1"]]


def test_a_task_that_squeue_does_not_list_is_cancelled_if_the_controller_knows_its_name(
    slurm: Slurm, commands: Bin
) -> None:
    commands.answer("scontrol", RECORDS)
    slurm.cancel(of("1_0", "1_3") | of("1_1", array="mine"))
    assert commands.calls("scancel") == [["1_0", "1_3"]]


def test_tasks_that_the_queue_has_shown_are_cancelled_whether_it_answers_or_not(slurm: Slurm, commands: Bin) -> None:
    tasks = seen(slurm, commands, 1)
    commands.answer("squeue", error="Unable to contact slurm controller\n", code=1)
    slurm.cancel(tasks)
    assert commands.calls("scancel") == [["1_0"]]
    with pytest.raises(OSError, match="Unable to contact"):
        slurm.cancel(tasks | of("1_1"))
    assert commands.calls("scancel") == [["1_0"], ["1_0"]]


@pytest.mark.parametrize(
    ("script", "words"),
    [("sleep 60", "did not answer"), ("echo Unable to contact slurm controller >&2; exit 1", "Unable to contact")],
)
def test_a_scancel_that_does_not_reach_slurm_is_an_error_after_all_tasks_were_tried(
    slurm: Slurm, commands: Bin, script: str, words: str
) -> None:
    tasks = seen(slurm, commands, 600)
    (commands.folder / "scancel").write_text(f'#!/bin/bash\necho "$@" >> $0.log\n{script}\n')
    slurm.commands.limit = 0.5
    with pytest.raises(OSError, match=words):
        slurm.cancel(tasks)
    assert sum(map(len, commands.calls("scancel"))) == 600


@pytest.mark.parametrize(("rows", "tasks"), [(["5_0", "5_2"], {0: "5_0", 2: "5_2"}), (["5"], {0: "5"}), ([], {})])
def test_tasks_whose_submission_was_not_answered_get_their_bundles(
    slurm: Slurm, commands: Bin, tmp_path: Path, rows: list[str], tasks: dict[int, str]
) -> None:
    commands.answer("squeue", listing(*(f"{row}|PENDING|Priority" for row in rows)))
    folder = tmp_path / "array" / "submitit"
    folder.mkdir(parents=True)
    assert slurm.stray(folder, "rule-1") == tasks
    assert "--name=rule-1" in commands.calls("squeue")[0]
    pickles = {n: DelayedSubmission.load(folder / f"{task}_submitted.pkl") for n, task in tasks.items()}
    assert {n: pickle.function.folder for n, pickle in pickles.items()} == {
        number: str(tmp_path / "array" / str(number)) for number in tasks
    }
    assert len([*folder.iterdir()]) == len(tasks), "a temporary file is left"


def test_a_task_that_has_its_bundle_counts_although_squeue_does_not_list_it(
    slurm: Slurm, commands: Bin, tmp_path: Path
) -> None:
    """The head was killed before it could note the task."""
    tasks = submit(slurm, tmp_path, 3)
    commands.answer("squeue", listing(f"{tasks[1]}|PENDING|Priority"))
    assert slurm.stray(tmp_path / "array" / "submitit", "rule-1") == dict(enumerate(tasks))


def test_a_task_that_has_its_bundle_keeps_it(slurm: Slurm, commands: Bin, tmp_path: Path) -> None:
    """The task may be reading the file."""
    folder = tmp_path / "array" / "submitit"
    submit(slurm, tmp_path, 1)
    before = (folder / "77_submitted.pkl").stat()
    commands.answer("squeue", listing("77|PENDING|Priority"))
    assert slurm.stray(folder, "rule-1") == {0: "77"}
    after = (folder / "77_submitted.pkl").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_command_reads_nothing_and_its_output_need_not_be_text() -> None:
    assert Commands().run("bash", "-c", "cat; printf 'a\\377'") == "a\ufffd"


def test_ctrl_c_does_not_reach_a_command() -> None:
    """A terminal signals the process group of the head."""
    group = Commands().run("bash", "-c", "ps -o pgid= -p $$")
    assert int(group) != os.getpgid(0)


# This machine.


MIG = "MIG-GPU-8932f937-d72c/1/0"


@pytest.mark.parametrize(
    ("visible", "names"),
    [
        ("4,7", ["4", "7"]),
        (" 4, 7 ", ["4", "7"]),
        ("1,0,1,1", ["1", "0"]),
        (f"GPU-8932f937-d72c,{MIG}, MIG-1-2", ["GPU-8932f937-d72c", MIG, "MIG-1-2"]),
        ("", []),
        (" ", []),
        ("-1", []),
        ("2,-1,3", ["2"]),
        ("NoDevFiles", []),
        ("none", []),
        ("void,0", []),
        ("0,,1", ["0"]),
    ],
)
def test_gpus_are_those_that_the_head_sees(monkeypatch: pytest.MonkeyPatch, visible: str, names: list[str]) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert devices() == names


def test_gpus_are_those_of_the_machine_where_nothing_hides_them(commands: Bin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    commands.answer("nvidia-smi", "GPU 0: NVIDIA H100 (UUID: GPU-5d5ba0d6)\nGPU 1: NVIDIA H100 (UUID: GPU-6e6cb1e7)\n")
    assert devices() == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "all")
    assert devices() == ["0", "1"]
    commands.answer("nvidia-smi", "No devices were found\n")
    assert devices() == []
    commands.answer("nvidia-smi", error="no devices were found\n", code=6)
    assert devices() == []


def test_a_gpu_that_is_divided_is_shared_out_by_its_instances(commands: Bin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    lines = [
        "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)",
        "  MIG 3g.20gb     Device  0: (UUID: MIG-7089d0f3-293f-58c9-8f8c-5ea666eedbde)",
        "  MIG 1g.5gb      Device  1: (UUID: MIG-56c30729-347f-5dd6-8da0-c3cc59e969e0)",
        "GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-8932f937-d72c-4106-c12f-20bd9faed9f6)",
    ]
    commands.answer("nvidia-smi", "\n".join(lines))
    instances = ["MIG-7089d0f3-293f-58c9-8f8c-5ea666eedbde", "MIG-56c30729-347f-5dd6-8da0-c3cc59e969e0"]
    assert devices() == [*instances, "1"]


def test_births_tell_processes_apart() -> None:
    """A process that begins later has a later birth. One that has ended has none, whether it was waited for or not."""
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    assert process.stdin
    try:
        assert int(birth(os.getpid())) < int(birth(process.pid))
        assert birth(process.pid) == birth(process.pid)
        process.stdin.close()
        wait_for(lambda: not birth(process.pid), "a zombie has a birth")
    finally:
        process.wait()
    assert birth(process.pid) == ""


FORGOTTEN = ["SLURM_JOB_ID", "SQUEUE_PARTITION", "SACCT_FORMAT", "SCANCEL_STATE", "SCONTROL_ALL", "SINFO_FORMAT"]
OVERRULING = [
    "SBATCH_PARTITION",
    "SBATCH_TIMELIMIT",
    "SBATCH_ARRAY_INX",
    "SBATCH_WAIT",
    "SBATCH_JOB_NAME",
    "SLURM_CLUSTERS",
]
KEPT = ["SLURM_CONF", "SLURM_JWT", "SBATCH_EXPORT", "SBATCH_RESERVATION", "SLURMX", "OTHER_SLURM_JOB", "SQUEUE"]


def test_a_head_forgets_what_would_change_its_commands_and_names_what_sbatch_would_have_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in list(os.environ):
        if name.startswith(("SBATCH_", "SLURM_")):
            monkeypatch.delenv(name)
    for name in (*FORGOTTEN, *OVERRULING, *KEPT):
        monkeypatch.setenv(name, "7")
    assert clean_environment() == dict.fromkeys(OVERRULING, "7")
    assert not {*FORGOTTEN, *OVERRULING} & set(os.environ)
    assert {*KEPT} <= set(os.environ)


def test_python_starts_without_the_current_directory_on_its_path(tmp_path: Path) -> None:
    """A file `random.py` of a project would otherwise replace a library of the worker."""
    first = Commands().run(*shlex.split(python()), "-c", "import sys; print(sys.path[0])")
    assert first.strip() not in ("", os.getcwd())
