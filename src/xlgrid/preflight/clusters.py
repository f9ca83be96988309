"""Whether each cluster for which the project has a profile answers, and whether a job of one second runs there."""

import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from xlgrid.base.profiles import profiles
from xlgrid.preflight.lines import Line, State

# The executor is a distribution of its own, which knows its clusters.
ABOUT = [sys.executable, "-P", "-m", "snakemake_executor_plugin_submitit", "about"]
SNAKEFILE = 'rule second:\n    output: "ended"\n    shell: "sleep 1; touch {output}"\n'
# Seconds that a cluster has for its answer, that the job has to end, and that Snakemake has to cancel it.
ANSWER, JOB, END = 60, 300, 60


def cluster_lines(submit: bool = False) -> Iterator[Line]:
    """A line for each cluster, and if asked for, one on a job of one second that is submitted to it.

    Only a user who wants such a job has a problem where the cluster is missing or does not answer.
    """
    for cluster, profile in profiles().items():
        try:
            done = subprocess.run([*ABOUT, cluster], capture_output=True, text=True, timeout=ANSWER)
            said, error = done.stdout.strip(), " ".join(done.stderr.split()) if done.returncode else ""
        except (OSError, subprocess.SubprocessError) as trouble:
            said, error = "", str(trouble)
        if error:
            yield Line(
                State.PROBLEM if submit else State.OPEN,
                f"cluster {cluster}",
                f"does not answer ({error}): other profiles than `{profile}` do not need it",
            )
        elif said:
            yield Line(State.GOOD, f"cluster {cluster}", f"answers: {said}")
            if submit:
                yield _job_line(cluster, profile)


def _job_line(cluster: str, profile: str) -> Line:
    """Run a workflow with one job of one second on a cluster."""
    thing = f"a job on {cluster}"
    # All nodes have to see the folder of the job, as they see that of the executor.
    Path(".snakemake").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="doctor-", dir=".snakemake") as folder:
        snakefile = Path(folder, "Snakefile")
        snakefile.write_text(SNAKEFILE)
        command = [sys.executable, "-m", "snakemake", "--nocolor", "--snakefile", str(snakefile), "--directory", folder]
        began = time.monotonic()
        process = subprocess.Popen(
            [*command, "--profile", profile, "--verbose", "--retries", "0", "--", "ended"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            said, _ = process.communicate(timeout=JOB)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=END)
            return Line(State.OPEN, thing, f"the job had not ended after {JOB} s, and is cancelled: look at the queue")
        if process.returncode:
            # Snakemake prints the executor's words on a failed job after this one.
            words = re.search(r"message: (.*)", said) or re.search(r"(\S.*)\s*\Z", said)
            reason = words[1] if words else f"exit status {process.returncode}"
            return Line(State.PROBLEM, thing, f"it fails ({reason}): correct the settings in {profile}/")
        return Line(State.GOOD, thing, f"a job of one second ended after {time.monotonic() - began:.0f} s")
