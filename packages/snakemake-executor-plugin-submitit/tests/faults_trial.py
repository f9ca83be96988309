"""A trial of `faults`: jobs, settings of the head, and faults, all drawn by a seed."""

import random
from dataclasses import dataclass, field

from faults_jobs import Plan, draw_plans

# How often each fault is drawn.
WEIGHTS = {
    "kill head": 6,
    "kill head while it submits": 2,
    "interrupt head": 1,
    "kill worker": 3,
    "FAILED": 1,
    "OUT_OF_MEMORY": 1,
    "NODE_FAIL": 1,
    "NODE_FAIL and requeue": 3,
    "PREEMPTED": 1,
    "PREEMPTED and requeue": 2,
    "CANCELLED": 1,
    "TIMEOUT": 1,
    "USR2": 2,
    "damage": 3,
    "full disk": 2,
    "blind queue": 2,
    "broken host": 2,
}


@dataclass
class Trial:
    """The values that the seed draws: the grid, the settings, and the faults as (seconds after the start, kind, a number in [0, 1)).

    Attributes:
        refuse, lose, mute: how often a submission is refused, its answer is lost, or a question goes unanswered.
        slow: seconds that reading a file of the ledger takes at most.
        forgets: the queue soon forgets tasks that have ended, and there is no accounting.
        contained: the cluster clears away all processes of a task whose first one has died, as Slurm does; a machine
            without a cluster does not.
        idle: seconds for which a worker without jobs waits for more.
        deaf: how often a message between a head and a worker is lost.
        dies: the head with this number kills itself after so many verdicts, between its record and `close`.
    """

    seed: int
    plans: list[Plan]
    faults: list[tuple[float, str, float]]
    bundle: int = 4
    array: int = 3
    slots: int = 1
    seconds: float = 600
    width: int = 2
    refuse: float = 0.0
    lose: float = 0.0
    mute: float = 0.0
    slow: float = 0.0
    forgets: bool = False
    contained: bool = True
    idle: float = 0.0
    deaf: float = 0.0
    dies: dict[int, int] = field(default_factory=dict)


def draw(seed: int) -> Trial:
    """The trial of a seed."""
    random_ = random.Random(f"faults {seed}")
    plans = draw_plans(random_)
    kinds = random_.choices(list(WEIGHTS), list(WEIGHTS.values()), k=random_.randint(0, 6))
    # A job may try a broken host only so many times.
    kinds = [kind for n, kind in enumerate(kinds) if kind != "broken host" or kind not in kinds[:n]]
    return Trial(
        seed,
        plans,
        sorted((random_.uniform(0.02, 0.15 + 0.02 * len(plans)), kind, random_.random()) for kind in kinds),
        bundle=random_.randint(1, 7),
        array=random_.randint(1, 4),
        slots=random_.choice((1, 1, 1, 2)),
        seconds=random_.choice((600, 600, 600, 0.15)),
        width=random_.randint(1, 3),
        refuse=random_.choice((0, 0, 0.2)),
        lose=random_.choice((0, 0, 0.2)),
        mute=random_.choice((0, 0.2)),
        slow=random_.choice((0, 0, 0.005)),
        forgets=random_.random() < 0.3,
        contained=random_.random() < 0.6,
        dies={number: random_.randint(1, 8) for number in range(3) if random_.random() < 0.15},
        idle=random_.choice((0, 0.1, 1)),
        deaf=random_.choice((0, 0, 0.3)),
    )
