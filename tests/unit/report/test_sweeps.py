"""Sweeps in a report, from made-up choices."""

import json
from pathlib import Path
from typing import Any

import pytest
from matplotlib.patches import Rectangle

from xlgrid.exhibits.drawing import plots
from xlgrid.plan.load import load_plan
from xlgrid.report import sweeps
from xlgrid.training.sweep import Swept, at_bounds

STUDY = """\
title: Sweeps
languages: [en, fr]
encoders: {e: {path: e}}
tasks: {nli: {kind: xnli, max_length: 128}}
methods: {bitfit: {}}
sweep: [{set: {lr: [1.0e-4, 1.0e-3]}}]
grids: {g: {task: [nli], encoder: [e], method: [bitfit], source: [en], target: [fr], seed: [1, 2]}}
"""


def choice(values: dict[str, Any], means: list[float], metric: str = "f1", **changes: Any) -> dict[str, Any]:
    """A choice with two seeds, whose first settings won."""
    swept = Swept(set=values, seeds=(1, 2))
    tried = [
        {
            "settings": settings,
            "mean": mean,
            "runs": [{"seed": 1, "dev_score": mean - 1}, {"seed": 2, "dev_score": mean + 1}],
        }
        for settings, mean in zip(swept.tried, means, strict=True)
    ]
    won = tried[0]
    about = {
        "task": "ner",
        "encoder": "e",
        "method": "bitfit",
        "source": "en",
        "metric": metric,
        "dev": ["en"],
        "ties": 0,
    }
    of_runs = {
        "runs": 2 * len(tried),
        "seconds": 7200.0,
        "tried": tried,
        "chosen": won["settings"],
        "mean": won["mean"],
    }
    return {
        **about,
        **swept.model_dump(mode="json"),
        **of_runs,
        "at_bounds": at_bounds(swept, swept.tried[0]),
        **changes,
    }


def test_a_row_tells_bounds_runs_seeds_time_winner_and_how_close_the_next_is() -> None:
    [row] = sweeps.table([choice({"lr": (1e-4, 1e-3), "keep": ("last", "best")}, [81.24, 70.0, 80.0, 79.0])]).to_dict(
        "records"
    )
    assert row == {
        "Task": "ner",
        "Encoder": "e",
        "Method": "bitfit",
        "Source": "en",
        "Tried": "lr 0.0001, 0.001; keep last, best",
        "Runs": "8 (seeds 1, 2)",
        "Time": "2 h",
        "Chosen": "lr 0.0001, keep last",
        "Dev score": "F1 81.2 (next: 80.0)",
        "Remarks": "the best lr is the smallest tried",
    }


def test_the_next_best_of_a_metric_whose_lower_values_are_better_is_the_lowest() -> None:
    [row] = sweeps.table([choice({"lr": (1, 2, 3)}, [4.0, 9.0, 6.0], "perplexity")]).to_dict("records")
    assert row["Dev score"] == "perplexity 4.0 (next: 6.0)"


def test_the_next_best_is_a_number_if_another_training_diverged() -> None:
    [row] = sweeps.table([choice({"lr": (1, 2, 3)}, [9.0, float("nan"), 6.0])]).to_dict("records")
    assert row["Dev score"] == "F1 9.0 (next: 6.0)"


def test_an_oracle_is_marked_in_the_table_and_in_the_picture() -> None:
    oracle = choice({"lr": (1, 2)}, [2.0, 1.0], choose_on="target", dev=["sw", "yo"], ties=2)
    [row] = sweeps.table([oracle]).to_dict("records")
    assert row["Method"] == "bitfit ‡"
    assert row["Remarks"].split("; ") == [
        "the best lr is the smallest tried",
        "2 other settings have the same score: the first of the list wins",
        "‡ an oracle, chosen on the dev sets of sw, yo",
    ]
    with plots.style():
        [ax] = sweeps.surface(oracle).axes
    assert ax.get_title("left") == "bitfit ‡ oracle\n"


def test_one_setting_is_a_line_and_two_are_a_matrix_with_a_frame_around_the_winner() -> None:
    one = choice({"lr": (1e-4, 1e-3, 1e-2)}, [3.0, 2.0, 1.0])
    two = choice({"lr": (1e-4, 1e-3), "epochs": (5, 10, 20)}, [90.0, 80.0, 70.0, 60.0, 50.0, 40.0])
    with plots.style():
        line, matrix = (sweeps.surface(each).axes[0] for each in (one, two))
    assert [text.get_text() for text in line.get_xticklabels()] == ["0.0001", "0.001", "0.01"]
    assert any(list(drawn.get_ydata()) == [3.0, 2.0, 1.0] for drawn in line.lines)
    assert [text.get_text() for text in matrix.texts[:6]] == ["90.0", "80.0", "70.0", "60.0", "50.0", "40.0"]
    assert (matrix.get_ylabel(), matrix.get_xlabel()) == ("lr", "epochs")
    frames = [patch for patch in matrix.patches if isinstance(patch, Rectangle)]
    assert frames and all(0 <= frame.get_x() < 1 and 0 <= frame.get_y() < 1 for frame in frames)


def test_of_three_settings_a_panel_shows_the_best_over_the_third() -> None:
    three = choice({"lr": (1, 2), "epochs": (5, 10), "warmup": (0.1, 0.2)}, [9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 6.0])
    with plots.style():
        [matrix] = sweeps.surface(three).axes
    assert [text.get_text() for text in matrix.texts[:4]] == ["9.0", "3.0", "5.0", "7.0"]


def test_a_choice_that_is_not_made_names_the_runs_for_which_it_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(STUDY)
    plan = load_plan("s.yaml")
    done = [run for run in plan.runs if run.method == "bitfit@lr=0.0001"]
    for run in done:
        Path(run.path).parent.mkdir(parents=True)
        Path(run.path).write_text("{}")
    [waiting] = sweeps.read_choices(plan)
    [row] = sweeps.table([waiting]).to_dict("records")
    assert row["Remarks"] == "waits for 2 of 4 runs, such as results/s/runs/nli/e/bitfit@lr=0.001/en/seed1"
    assert (row["Chosen"], row["Time"], row["Dev score"]) == ("–", "–", "–")
    [planned] = plan.choices
    Path(planned.path).parent.mkdir(parents=True)
    Path(planned.path).write_text(json.dumps(choice({"lr": (1e-4, 1e-3)}, [2.0, 1.0], metric="accuracy")))
    [made] = sweeps.read_choices(plan)
    assert (made["task"], made["method"], made["chosen"], made["runs"]) == ("nli", "bitfit", {"lr": 1e-4}, 4)
