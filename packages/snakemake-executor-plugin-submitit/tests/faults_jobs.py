"""The jobs of a trial of `faults`: what each does, by design."""

import random
from dataclasses import dataclass

# Run as `bash job.bash NAME KIND SECONDS` in the folder of the trial. Whoever holds descriptor 9, children included,
# holds the lock; the log has name, task, process, time and what happened. One whose worker has died while it was being
# started must not shoot who it falls to then, the process that plays Slurm.
JOB = r"""
name=$1 kind=$2 seconds=$3
if [[ -e broken ]]; then echo "job.bash: $name: No space left on device"; exit 1; fi
log() { echo "$name $TASK $$ $EPOCHREALTIME $1" >> runs.log; }
exec 9>> "locks/$name"
flock -n 9 || log overlap
log start
echo >> "starts/$name"
mapfile -t starts < "starts/$name"
first=$(( ${#starts[@]} == 1 ))
case $kind in
    fails) log failed; exit 3;;
    flaky) if ((first)); then log failed; exit 3; fi;;
    dies) if ((first)); then log dies; kill -9 $$; fi;;
    shot) if ((first)); then log dies; kill -9 $((PPID == CONTROLLER ? $$ : PPID)); fi;;
    hangs) if ((first)); then log hangs; sleep 60; fi;;
    stubborn) if ((first)); then log hangs; trap '' USR2; sleep 60; fi;;
    endless) log hangs; trap '' USR2; sleep 60;;
    deaf) trap '' TERM;;
    resumes)
        trap 'log saved; exit 75' USR2
        read -r step < "state/$name" || step=0
        while ((step < 4)); do
            sleep "$seconds"
            step=$((step + 1))
            echo $step > "state/$name.$$" && mv "state/$name.$$" "state/$name"
        done 2> /dev/null;;
esac
sleep "$seconds"
{ echo "begin $name"; echo "end $name"; } > "out/$name.$$"
mv "out/$name.$$" "out/$name"
log end
"""
WEIGHTS = {
    "works": 60,
    "fails": 3,
    "flaky": 5,
    "dies": 3,
    "shot": 3,
    "hangs": 2,
    "stubborn": 2,
    "endless": 1,
    "deaf": 8,
    "resumes": 10,
}


@dataclass(frozen=True)
class Plan:
    """A job: its name, what it does, for how long, and the job that it needs the output of, if any."""

    name: str
    kind: str
    seconds: float
    needs: str | None = None


def draw_plans(source: random.Random) -> list[Plan]:
    """The jobs of a trial."""
    kinds = source.choices(list(WEIGHTS), list(WEIGHTS.values()), k=source.randint(4, 20))
    plans: list[Plan] = []
    for number, kind in enumerate(kinds):
        needs = source.choice(plans).name if plans and source.random() < 0.2 else None
        plans.append(Plan(f"c{number}", kind, round(source.uniform(0.002, 0.06), 3), needs))
    return plans
