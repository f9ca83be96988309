"""A screen never exceeds its terminal, and what is most urgent stays on it."""

from hypothesis import given
from hypothesis import strategies as st

from xlgrid.report.overview import Failure
from xlgrid.report.screen import LONGEST, Screen, bars, draw, failure_lines, total, training_lines
from xlgrid.report.stages import RULES, Stage
from xlgrid.report.trainings import Training

STAGES = [Stage("data", 41, 41), Stage("encode", 38, 30, 1), Stage("train", 32, 3, 1, 27, 1), Stage("evaluate", 224)]
RUN = "results/demo/runs/ner/mini-xlmr/full-ft/qa1/seed{}/delta.safetensors"
FAILURES = [Failure(RUN.format(seed), "the loss is nan", f"logs/seed{seed}.log") for seed in range(3)]
TRAININGS = [Training(f"ner seed{number}", 10 * number, 100, 50.0) for number in range(4)]


def lines(width: int = 100, height: int = 24, failures: int = 0, trainings: int = 0) -> list[str]:
    screen = Screen("demo", STAGES, TRAININGS[:trainings], FAILURES[:failures], ["full log: x.log"])
    return [line.plain for line in draw(screen, width, height)]


@given(
    st.lists(st.tuples(*[st.integers(0, 9999)] * 5), min_size=0, max_size=7),
    st.integers(0, 200),
    st.integers(0, 50),
    st.integers(1, 200),
    st.integers(1, 60),
)
def test_a_screen_is_never_larger_than_its_terminal(
    numbers: list[tuple[int, ...]], trainings: int, failures: int, width: int, height: int
) -> None:
    stages = [Stage(name, sum(states), *states[1:]) for name, states in zip((*RULES, "other"), numbers, strict=False)]
    failed = [Failure(RUN.format(n), f"reason {n % 7} " * 20, "a.log") for n in range(failures)]
    running = [Training(f"training {n}", n, 200, 1.0) for n in range(trainings)]
    drawn = draw(Screen("title " * 30, stages, running, failed, ["note"]), width, height)
    assert len(drawn) <= height
    assert all(len(line.plain) <= width and "\n" not in line.plain for line in drawn)


def test_a_bar_is_full_only_when_everything_is_done() -> None:
    full, almost = (bars([Stage("train", 1000, number)], 100)[0].plain for number in (1000, 999))
    assert "█" * LONGEST in full and "█" * (LONGEST - 1) + "░" in almost


def test_a_bar_shows_what_is_done_failed_and_running() -> None:
    [line] = bars([Stage("train", 40, 10, running=20, failed=10)], 120)
    assert line.plain.split()[1:3] == ["█" * 10 + "▞" * 10 + "▒" * 20, "10/40"]


def test_numbers_of_jobs_in_other_states_are_beside_the_bar() -> None:
    assert lines()[3].endswith("3/32  1 running, 27 queued, 1 failed")


def test_a_narrow_terminal_has_numbers_without_bars() -> None:
    assert lines(width=40)[1].split() == ["data", "41/41"]


def test_a_low_terminal_has_one_bar_for_all_stages() -> None:
    assert lines(height=3)[0] == "demo" and lines(height=3)[1].startswith("all ") and "74/335" in lines(height=3)[1]
    assert total(STAGES) == Stage("all", 335, 74, 2, 27, 1)


def test_failures_of_one_reason_are_shown_together_with_reason_and_log() -> None:
    rows = lines(failures=3)
    at = rows.index("✗ ner mini-xlmr full-ft qa1 seed0 and 2 more")
    assert rows[at + 1 : at + 3] == ["  reason: the loss is nan", "  log: logs/seed0.log"]


def test_failures_take_a_line_each_where_there_is_little_room_and_the_rest_is_counted() -> None:
    different = [failure._replace(reason=f"reason {number}") for number, failure in enumerate(FAILURES)]
    assert [line.plain for line in failure_lines(different, 2)] == [
        "✗ ner mini-xlmr full-ft qa1 seed0: reason 0 (logs/seed0.log)",
        "✗ 2 more failed",
    ]
    assert len(failure_lines(different, 3)) == 3 and len(failure_lines(different, 9)) == 9


def test_a_failure_keeps_its_place_among_many_trainings() -> None:
    rows = lines(height=12, failures=1, trainings=4)
    assert any("the loss is nan" in line for line in rows) and any("and 3 more trainings" in line for line in rows)


def test_a_training_shows_step_and_score_and_the_one_nearest_to_its_end_is_first() -> None:
    assert [line.plain for line in training_lines(TRAININGS[:2], 9)] == [
        "▶ ner seed1  step 10/100  dev 50.00",
        "▶ ner seed0  step 0/100  dev 50.00",
    ]


def test_a_training_without_a_line_in_its_log_starts() -> None:
    assert [line.plain for line in training_lines([Training("encoder mini")], 9)] == ["▶ encoder mini  starts"]


def test_the_note_is_the_last_line() -> None:
    assert lines(failures=3, trainings=4)[-1] == "full log: x.log"
