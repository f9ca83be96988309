"""Slurm, with scripts in place of its commands, and what this machine tells about itself."""

import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from submitit.core.utils import DelayedSubmission

from snakemake_executor_plugin_submitit.clusters.cluster import GONE, Refused, python
from snakemake_executor_plugin_submitit.clusters.commands import Commands
from snakemake_executor_plugin_submitit.clusters.local import birth, devices
from snakemake_executor_plugin_submitit.clusters.slurm import Slurm, clean_environment
from snakemake_executor_plugin_submitit.resources import Request


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
    folder.answer("sbatch", "Submitted batch job 77\n")
    monkeypatch.setenv("PATH", f"{folder.folder}:/usr/bin:/bin")
    return folder


@pytest.fixture
def slurm(commands: Bin) -> Slurm:
    return Slurm(["module load cuda"], parallelism=5, slots=2, grace=45)


def submit(slurm: Slurm, folder: Path, count: int) -> list[str]:
    bundles = [folder / "array" / str(number) for number in range(count)]
    request = Request(cpus=3, extra="--nice=5")
    return slurm.submit(folder / "array" / "submitit", "rule-1", bundles, request, 30)


def test_without_commands_of_slurm_there_is_no_cluster(commands: Bin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(commands.folder))
    Slurm([], 1, 1, 90)
    (commands.folder / "sbatch").unlink()
    (commands.folder / "scancel").unlink()
    with pytest.raises(RuntimeError, match="there is no sbatch and no scancel on this machine: "):
        Slurm([], 1, 1, 90)


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
    assert lines.index("module load cuda") < lines.index("export OMP_NUM_THREADS=3") < len(lines) - 1


def test_errors_of_a_task_are_in_the_log_that_a_failure_cites(slurm: Slurm, tmp_path: Path) -> None:
    submit(slurm, tmp_path, 1)
    script = (tmp_path / "array" / "submitit" / "submission.sh").read_text()
    assert "--output=" in script and "--error" not in script, "standard error goes elsewhere"


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
    assert len([*folder.glob("*.pkl")]) == count


def test_submitit_never_ends_the_requeues_that_the_worker_counts(slurm: Slurm, tmp_path: Path) -> None:
    submit(slurm, tmp_path, 1)
    pickle = DelayedSubmission.load(tmp_path / "array" / "submitit" / "77_submitted.pkl")
    assert pickle._timeout_countdown >= 100_000


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Invalid partition name specified", Refused),
        ("Socket timed out on send/recv operation", OSError),
        ("Something new", RuntimeError),
    ],
)
def test_a_refusal_is_final_for_now_or_unknown(
    slurm: Slurm, commands: Bin, tmp_path: Path, words: str, kind: type
) -> None:
    commands.answer("sbatch", error=f"sbatch: error: {words}\n", code=1)
    with pytest.raises(kind, match=words) as raised:
        submit(slurm, tmp_path, 1)
    assert type(raised.value) is kind


@pytest.mark.parametrize(
    ("words", "has_hint"),
    [
        ("Invalid job array specification", True),
        ("Job violates accounting/QOS policy", True),
        ("Invalid partition name specified", False),
    ],
)
def test_a_refusal_for_size_names_the_setting(
    slurm: Slurm, commands: Bin, tmp_path: Path, words: str, has_hint: bool
) -> None:
    commands.answer("sbatch", error=f"sbatch: error: {words}\n", code=1)
    with pytest.raises((RuntimeError, OSError), match=words) as raised:
        submit(slurm, tmp_path, 1)
    assert ("--submitit-array-size" in str(raised.value)) == has_hint


def test_an_sbatch_that_does_not_answer_has_refused_nothing(slurm: Slurm, commands: Bin, tmp_path: Path) -> None:
    (commands.folder / "sbatch").write_text("#!/bin/bash\nsleep 60\n")
    slurm.commands.limit = 0.2
    with pytest.raises(TimeoutError, match=r"sbatch did not answer within 0\.2 s"):
        submit(slurm, tmp_path, 1)


# Limits.

PARTITIONS = """\
PartitionName=short AllowGroups=ALL Default=NO MaxTime=00:30:00 MinNodes=0
PartitionName=day Default=YES MaxTime=1-00:00:30 State=UP
PartitionName=long Default=NO MaxTime=UNLIMITED State=UP
"""


@pytest.mark.parametrize(
    ("partition", "extra", "minutes", "longest"),
    [
        ("short", None, 30, 30),
        ("short", None, 31, None),
        (None, None, 30, 1440),
        ("long", None, 10_000, None),
        ("day,short", None, 20, 30),
        ("day,short", None, 60, 1440),
        ("nowhere", None, 1, None),
        ("long", "--partition=short", 1, 30),
    ],
)
def test_a_task_may_request_what_its_partition_allows(
    slurm: Slurm, commands: Bin, partition: str | None, extra: str | None, minutes: int, longest: int | None
) -> None:
    commands.answer("scontrol", PARTITIONS)
    slurm.learn()
    assert slurm.longest(Request(partition=partition, extra=extra), minutes) == longest


@pytest.mark.parametrize(
    ("qos", "extra", "minutes", "longest"),
    [
        ("quick", None, 30, 60),
        ("quick", None, 61, None),
        ("free", None, 30, None),
        ("other", None, 30, None),
        ("free", "--qos=quick", 30, 60),
        (None, None, 30, 60),
        (None, None, 61, 2880),
    ],
)
def test_a_task_may_request_what_its_quality_of_service_allows(
    slurm: Slurm, commands: Bin, qos: str | None, extra: str | None, minutes: int, longest: int | None
) -> None:
    """Where none is named, it may be any of them."""
    commands.answer("sacctmgr", "free|\nquick|01:00:00\nnormal|2-00:00:00\n")
    slurm.learn()
    assert slurm.longest(Request(qos=qos, extra=extra), minutes) == longest


def test_the_least_limit_that_leaves_a_job_its_time_counts(slurm: Slurm, commands: Bin) -> None:
    commands.answer("scontrol", PARTITIONS)
    commands.answer("sacctmgr", "quick|00:20:00\n")
    slurm.learn()
    request = Request(partition="short", qos="quick")
    assert [slurm.longest(request, minutes) for minutes in (20, 21, 31)] == [20, 30, None]


def test_without_accounting_the_limits_of_partitions_are_known(slurm: Slurm, commands: Bin) -> None:
    commands.answer("scontrol", PARTITIONS)
    commands.answer("sacctmgr", error="You are not running a supported accounting_storage plugin\n", code=1)
    slurm.learn()
    assert slurm.longest(Request(partition="short"), 30) == 30


def test_a_busy_slurm_is_asked_again_for_its_limits_and_one_that_tells_nobody_is_not(
    slurm: Slurm, commands: Bin
) -> None:
    commands.answer("scontrol", error="slurm_load_partitions: Unable to contact slurm controller\n", code=1)
    with pytest.raises(OSError, match="Unable to contact"):
        slurm.learn()
    commands.answer("scontrol", error="Access/permission denied\n", code=1)
    slurm.learn()
    assert slurm.longest(Request(), 1) is None


# Questions.


def test_tasks_wait_from_their_submission_until_the_queue_says_otherwise(
    slurm: Slurm, commands: Bin, tmp_path: Path
) -> None:
    submit(slurm, tmp_path, 2)
    assert slurm.waiting == {"77_0", "77_1"}
    commands.answer("squeue", "77_0|RUNNING|None\n77_1|PENDING|Priority\n8|PENDING|Priority\n")
    slurm.states(["77_0", "77_1"])
    assert slurm.waiting & {"77_0", "77_1"} == {"77_1"}


def test_a_task_in_the_queue_has_no_end_and_one_that_is_over_has_the_word_of_slurm(slurm: Slurm, commands: Bin) -> None:
    rows = ["1_0|RUNNING|None", "1_1|PENDING|Priority", "1_2|FAILED|NonZeroExitCode", "9|RUNNING|None"]
    commands.answer("squeue", "".join(f"  {row}\n" for row in ["a line without columns", "half|a line", *rows]))
    assert slurm.states(["1_0", "1_1", "1_2"]) == {"1_0": None, "1_1": None, "1_2": "FAILED"}
    assert commands.calls("sacct") == [], "the accounting was asked about tasks that the queue knows"


def test_the_accounting_knows_the_end_of_a_task_that_the_queue_has_forgotten(slurm: Slurm, commands: Bin) -> None:
    commands.answer("squeue", "1_0|RUNNING|None\n")
    commands.answer("sacct", "no columns\n1_0|COMPLETED\n1_1|CANCELLED by 0\n1_2|RUNNING\n2|COMPLETED\n")
    states = slurm.states(["1_0", "1_1", "1_2", "2", "3_0"])
    assert states == {"1_0": None, "1_1": "CANCELLED by 0", "1_2": GONE, "2": "COMPLETED", "3_0": GONE}
    assert commands.calls("sacct")[0][-1] == "1,2,3", "each array is to be asked for once"


def test_without_accounting_a_forgotten_task_is_gone(slurm: Slurm, commands: Bin) -> None:
    commands.answer("sacct", error="Slurm accounting storage is disabled\n", code=1)
    assert slurm.states(["1_0"]) == {"1_0": GONE}


def test_a_queue_that_does_not_answer_is_an_error(slurm: Slurm, commands: Bin) -> None:
    commands.answer("squeue", error="slurm_load_jobs error: Unable to contact slurm controller\n", code=1)
    with pytest.raises(OSError, match="squeue: slurm_load_jobs error: Unable to contact"):
        slurm.states(["1_0"])


def test_a_reason_to_wait_is_reported_for_own_tasks_that_wait_for_a_person(slurm: Slurm, commands: Bin) -> None:
    rows = ["1_0|PENDING|PartitionConfig", "1_1|PENDING|Priority", "1_2|RUNNING|JobHeldUser", "9|PENDING|JobHeldUser"]
    commands.answer("squeue", "\n".join(rows) + "\n")
    slurm.states(["1_0", "1_1", "1_2"])
    assert slurm.stuck == {"1_0": "PartitionConfig"}


def test_all_tasks_are_cancelled_in_commands_of_a_bearable_length(slurm: Slurm, commands: Bin) -> None:
    """scancel fails where one of the tasks has ended meanwhile; the rest must be cancelled all the same."""
    commands.answer("scancel", error="scancel: error: Invalid job id\n", code=1)
    tasks = [f"1_{number}" for number in range(1201)]
    slurm.cancel(tasks)
    calls = commands.calls("scancel")
    assert [task for call in calls for task in call] == tasks
    assert 1 < len(calls) <= 5


def test_nothing_to_cancel_is_no_command(slurm: Slurm, commands: Bin) -> None:
    """scancel without a task fails."""
    slurm.cancel([])
    assert commands.calls("scancel") == []


def test_a_scancel_that_does_not_answer_is_an_error(slurm: Slurm, commands: Bin) -> None:
    (commands.folder / "scancel").write_text("#!/bin/bash\nsleep 60\n")
    slurm.commands.limit = 0.2
    with pytest.raises(TimeoutError, match="scancel did not answer"):
        slurm.cancel(["1"])


def test_a_scancel_that_does_not_reach_slurm_is_an_error_after_all_tasks_were_tried(
    slurm: Slurm, commands: Bin
) -> None:
    commands.answer("scancel", error="scancel: error: Unable to contact slurm controller\n", code=1)
    with pytest.raises(OSError, match="Unable to contact"):
        slurm.cancel([f"1_{number}" for number in range(600)])
    assert sum(map(len, commands.calls("scancel"))) == 600


@pytest.mark.parametrize(("listing", "tasks"), [("5_0\n5_2\n", {0: "5_0", 2: "5_2"}), ("5\n", {0: "5"}), ("", {})])
def test_tasks_whose_submission_was_not_answered_get_their_bundles(
    slurm: Slurm, commands: Bin, tmp_path: Path, listing: str, tasks: dict[int, str]
) -> None:
    commands.answer("squeue", listing)
    folder = tmp_path / "array" / "submitit"
    folder.mkdir(parents=True)
    assert slurm.stray(folder, "rule-1") == tasks
    assert "--name=rule-1" in commands.calls("squeue")[0]
    pickles = {n: DelayedSubmission.load(folder / f"{task}_submitted.pkl") for n, task in tasks.items()}
    assert {n: pickle.function.folder for n, pickle in pickles.items()} == {
        number: str(tmp_path / "array" / str(number)) for number in tasks
    }
    assert len([*folder.iterdir()]) == len(tasks), "a temporary file is left"


def test_a_task_that_has_its_bundle_keeps_it(slurm: Slurm, commands: Bin, tmp_path: Path) -> None:
    """The task may be reading the file."""
    folder = tmp_path / "array" / "submitit"
    submit(slurm, tmp_path, 1)
    before = (folder / "77_submitted.pkl").stat()
    commands.answer("squeue", "77\n")
    assert slurm.stray(folder, "rule-1") == {0: "77"}
    after = (folder / "77_submitted.pkl").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_an_ending_head_stops_a_command_of_slurm(slurm: Slurm, commands: Bin) -> None:
    slurm.hurry()
    assert slurm.commands.limit <= 10, "a command of Slurm may keep an interrupted head for long"


def test_a_command_may_take_nearly_a_minute_and_no_longer() -> None:
    """A busy controller of Slurm takes some tens of seconds to answer."""
    assert 45 <= Commands().limit <= 60


def test_a_command_that_fails_without_a_word_shows_its_exit_code() -> None:
    with pytest.raises(OSError, match=r"^bash: exit code 3$"):
        Commands().run("bash", "-c", "exit 3")


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
    commands.answer("nvidia-smi", "0\n1\n")
    assert devices() == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "all")
    assert devices() == ["0", "1"]
    commands.answer("nvidia-smi", "No devices were found\n")
    assert devices() == []
    commands.answer("nvidia-smi", error="no devices were found\n", code=6)
    assert devices() == []


def test_a_process_that_does_not_exist_has_no_birth() -> None:
    assert birth(2**22 + 1) == ""


def test_births_tell_processes_apart() -> None:
    """A small process that begins later has a later birth."""
    process = subprocess.Popen(["sleep", "60"])
    try:
        assert int(birth(os.getpid())) < int(birth(process.pid))
        assert birth(process.pid) == birth(process.pid)
    finally:
        process.kill()
        process.wait()


def test_a_head_in_a_job_of_slurm_forgets_the_job_and_keeps_the_configuration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("SLURM_JOB_ID", "SLURM_CONF", "SLURMX", "OTHER_SLURM_JOB"):
        monkeypatch.setenv(name, "7")
    clean_environment()
    assert "SLURM_JOB_ID" not in os.environ
    assert {"SLURM_CONF", "SLURMX", "OTHER_SLURM_JOB"} <= set(os.environ)


def test_python_starts_without_the_current_directory_on_its_path(tmp_path: Path) -> None:
    """A file `random.py` of a project would otherwise replace a library of the worker."""
    first = Commands().run(*shlex.split(python()), "-c", "import sys; print(sys.path[0])")
    assert first.strip() not in ("", os.getcwd())
