"""A table of tasks and their average, which never hides a missing cell."""

from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from exhibit_fixture import draw

NAN = float("nan")
# Task -> its metrics; those of `tatoeba` are of encoders without training.
METRICS = {"xnli": ["accuracy"], "xquad": ["squad-f1", "squad-em"], "tatoeba": ["accuracy"]}
TARGETS = ("fr", "sw")


def score(encoder: str, task: str, metric: str, target: str, seed: int) -> float:
    """Different for every cell."""
    return (
        40.0
        + 10 * (encoder == "large")
        + {"xnli": 1, "xquad": 3, "tatoeba": 7}[task]
        - 5 * (metric == "squad-em")
        + 0.5 * (target == "sw")
        + 0.25 * seed * (task != "xquad") * (task != "tatoeba")
    )


def cells(*missing: tuple[str, str, str, int]) -> pd.DataFrame:
    """Planned cells of two encoders; `missing` lists (encoder, task, target, seed) without a result."""
    rows = []
    for encoder in ("base", "large"):
        for task, metrics in METRICS.items():
            trained = task != "tatoeba"
            method, source = ("full-ft", "en") if trained else ("as-is", "none")
            for seed in (1, 2, 3) if trained else (1,):
                for target in TARGETS:
                    absent = (encoder, task, target, seed) in missing
                    for metric in metrics:
                        value = NAN if absent else score(encoder, task, metric, target, seed)
                        rows.append((task, encoder, method, source, target, seed, metric, value, 100.0))
    return pd.DataFrame(rows, columns=["task", "encoder", "method", "source", "target", "seed", "metric", "score", "n"])


def entries(frame: pd.DataFrame, folder: Path, **spec: Any) -> tuple[pd.DataFrame, str]:
    """The entries by encoder and column, and the Markdown."""
    files = draw({"kind": "benchmark"} | spec, frame, folder)
    return pd.read_csv(StringIO(files[".csv"].decode())).set_index(["encoder", "column"]), files[".md"].decode()


def expected(encoder: str, task: str, seed: int) -> float:
    values = [score(encoder, task, metric, target, seed) for metric in METRICS[task] for target in TARGETS]
    return sum(values) / len(values)


def test_each_task_and_the_average_are_means_within_seeds(tmp_path: Path) -> None:
    table, text = entries(cells(), tmp_path)
    for encoder in ("base", "large"):
        for task, seeds in (("xnli", (1, 2, 3)), ("xquad", (1, 2, 3)), ("tatoeba", (1,))):
            entry = table.loc[encoder, task]
            assert entry["mean"] == pytest.approx(sum(expected(encoder, task, seed) for seed in seeds) / len(seeds))
            assert entry["n_seeds"] == len(seeds)
        averages = [sum(expected(encoder, task, seed) for task in METRICS) / 3 for seed in (1, 2, 3)]
        entry = table.loc[encoder, "average"]
        assert (entry["mean"], entry["sd"]) == pytest.approx((sum(averages) / 3, pd.Series(averages).std()))
        assert (entry["n_seeds"], entry["n_cells"], entry["n_cells_expected"]) == (3, 14, 14)
    assert "The score of a task with several metrics is their mean." in text
    assert [*dict.fromkeys(table.index.get_level_values("column"))] == [*METRICS, "average"]


@pytest.mark.parametrize(("task", "seed", "left"), [("xnli", 2, 2), ("xquad", 3, 2), ("tatoeba", 1, 0)])
def test_a_missing_cell_takes_its_seeds_from_the_average(tmp_path: Path, task: str, seed: int, left: int) -> None:
    """Without a cell of an untrained encoder, no seed has an average."""
    table, _ = entries(cells(("base", task, "sw", seed)), tmp_path)
    entry = table.loc["base", "average"]
    assert (entry["n_seeds"], entry["n_seeds_expected"]) == (left, 3)
    kept = [each for each in (1, 2, 3) if each != seed] if left else []
    averages = [sum(expected("base", name, each) for name in METRICS) / 3 for each in kept]
    assert entry["mean"] == pytest.approx(sum(averages) / left if left else NAN, nan_ok=True)
    assert table.loc["large", "average"]["n_seeds"] == 3


def test_a_missing_metric_is_a_missing_score(tmp_path: Path) -> None:
    frame = cells()
    frame.loc[(frame["metric"] == "squad-em") & (frame["seed"] == 1), "score"] = NAN
    table, _ = entries(frame, tmp_path)
    assert table.loc["base", "xquad"]["n_seeds"] == table.loc["base", "average"]["n_seeds"] == 2


def test_a_row_without_all_tasks_has_no_average(tmp_path: Path) -> None:
    frame = cells()
    frame = frame[(frame["encoder"] != "base") | (frame["task"] != "xquad")]
    table, text = entries(frame, tmp_path)
    assert ("base", "average") not in table.index and ("large", "average") in table.index
    assert "A row without all tasks has no average." in text


def test_encoders_without_training_alone_have_an_average_of_one_seed(tmp_path: Path) -> None:
    frame = cells()
    table, _ = entries(frame[frame["task"] == "tatoeba"], tmp_path)
    assert table.loc["base", "average"][["n_seeds", "n_seeds_expected"]].tolist() == [1, 1]


def test_metrics_of_which_less_is_better_are_refused(tmp_path: Path) -> None:
    frame = cells().assign(metric=lambda frame: frame["metric"].replace("squad-em", "perplexity"))
    with pytest.raises(
        ValueError, match=r"averages over metrics in percent for which higher is better, got .*perplexity"
    ):
        entries(frame, tmp_path)


# Method -> its entry in a study: `plug-in` reads each example in two languages.
TRAINED = {
    name: SimpleNamespace(method=SimpleNamespace(parallel_language=parallel))
    for name, parallel in (("plug-out", None), ("plug-in", "en"))
}


def plugged() -> pd.DataFrame:
    """The cells of two methods of each encoder, of which plug-in has 2 points more in each, and of the encoder without training."""
    frame = cells()
    trained, bare = frame[frame["method"] == "full-ft"], frame[frame["method"] == "as-is"]
    mix = {"xnli": "en+fr", "xquad": "en+sw"}
    plugged_in = trained.assign(method="plug-in", source=trained["task"].map(mix), score=trained["score"] + 2)
    return pd.concat([trained.assign(method="plug-out"), plugged_in, bare], ignore_index=True)


def rows(frame: pd.DataFrame, folder: Path, **spec: Any) -> tuple[pd.DataFrame, str]:
    """The entries by encoder, method and column, and the Markdown."""
    files = draw({"kind": "benchmark", "rows": ["encoder", "method"]} | spec, frame, folder, methods=TRAINED)
    table = pd.read_csv(StringIO(files[".csv"].decode()))
    return table.set_index(["encoder", "method", "column"]), files[".md"].decode()


def test_an_encoder_without_training_counts_in_the_rows_that_read_a_sentence_alone(tmp_path: Path) -> None:
    table, text = rows(plugged(), tmp_path)
    assert [*dict.fromkeys(table.index.get_level_values("method"))] == ["plug-out", "plug-in"], "no row of `as-is`"
    for encoder in ("base", "large"):
        of_plug_out = table.loc[encoder, "plug-out"]
        assert [*of_plug_out.index] == [*METRICS, "average"]
        assert of_plug_out.loc["tatoeba", "mean"] == pytest.approx(expected(encoder, "tatoeba", 1))
        averages = [sum(expected(encoder, task, seed) for task in METRICS) / 3 for seed in (1, 2, 3)]
        entry = of_plug_out.loc["average"]
        assert (entry["mean"], entry["sd"]) == pytest.approx((sum(averages) / 3, pd.Series(averages).std()))
        assert (entry["n_seeds"], entry["n_cells"], entry["n_cells_expected"]) == (3, 14, 14)
        of_plug_in = table.loc[encoder, "plug-in"]
        assert [*of_plug_in.index] == ["xnli", "xquad"], "retrieval is undefined, so there is no average"
        assert of_plug_in.loc["xnli", "mean"] == pytest.approx(of_plug_out.loc["xnli", "mean"] + 2)
    assert "A row without all tasks has no average." in text
    assert "Encoders without training have one score of tatoeba for all of their rows." in text


def test_an_encoder_without_training_counts_in_all_rows_if_a_study_says_so(tmp_path: Path) -> None:
    table, _ = rows(plugged(), tmp_path, untrained="all")
    average = table.xs("average", level="column")["mean"]
    for encoder in ("base", "large"):
        scores = {method: table.loc[(encoder, method, "tatoeba"), "mean"] for method in ("plug-out", "plug-in")}
        assert scores["plug-in"] == scores["plug-out"]
        # Two of three tasks have 2 points more.
        assert average[encoder, "plug-in"] == pytest.approx(average[encoder, "plug-out"] + 4 / 3)


def test_an_encoder_without_training_may_have_a_row_of_its_own(tmp_path: Path) -> None:
    table, _ = rows(plugged(), tmp_path, untrained="own")
    assert [*dict.fromkeys(table.index.get_level_values("method"))] == ["plug-out", "plug-in", "as-is"]
    assert "average" not in table.index.get_level_values("column"), "no row has all tasks"


def test_a_missing_cell_without_training_takes_the_average_from_each_row(tmp_path: Path) -> None:
    frame = plugged()
    frame.loc[(frame["task"] == "tatoeba") & (frame["encoder"] == "base") & (frame["target"] == "sw"), "score"] = NAN
    table, _ = rows(frame, tmp_path, untrained="all")
    seeds = table.xs("average", level="column")["n_seeds"]
    assert seeds["base"].tolist() == [0, 0] and seeds["large"].tolist() == [3, 3]


def test_an_encoder_that_nothing_trains_keeps_its_row(tmp_path: Path) -> None:
    frame = plugged()
    frame = frame[(frame["encoder"] == "large") | (frame["method"] == "as-is")]
    table, _ = rows(frame, tmp_path)
    assert [*table.loc["base"].index] == [("as-is", "tatoeba")]
    assert ("large", "plug-out", "average") in table.index


def test_rows_that_only_the_paper_has_stand_beside_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The published number of a task with several metrics is their mean, as is ours; a row of the paper may lack one of them."""
    monkeypatch.chdir(tmp_path)
    Path("reference/luo").mkdir(parents=True)
    numbers = {
        ("ours", "out@all", "all"): {("nli", "acc"): 50, ("qa", "f1"): 70.1, ("qa", "em"): 70.3, ("all", "score"): 55},
        ("mmte", "transfer", "en"): {
            ("nli", "acc"): 67.4,
            ("qa", "f1"): 64.1,
            ("qa", "em"): 46.3,
            ("all", "score"): 59.5,
        },
        ("ours", "in@all", "all"): {("nli", "acc"): 84.3, ("qa", "f1"): 70.0},
    }
    lines = [
        f"table02,{model},{task},{method},{source},avg,{metric},{value}"
        for (model, method, source), row in numbers.items()
        for (task, metric), value in row.items()
    ]
    Path("reference/luo/table02.csv").write_text(
        "\n".join(["exhibit,model,dataset,method,source,target,metric,value", *lines, ""])
    )
    names = {
        "encoder": {"base": "ours"},
        "method": {"plug-out": {"method": "out@all", "source": "all"}},
        "task": {"xnli": "nli", "xquad": "qa", "avg": {"dataset": "all", "metric": "score"}},
        "metric": {"accuracy": "acc", "squad-f1": "f1", "squad-em": "em"},
    }
    frame = plugged()
    frame = frame[(frame["encoder"] == "base") & (frame["method"] != "plug-in")]
    spec = {"kind": "benchmark", "rows": ["encoder", "method"], "published": {"file": "luo/table02", "names": names}}
    files = draw(spec, frame, tmp_path / "exhibit", methods=TRAINED)
    compared = pd.read_csv(StringIO(files["-published.csv"].decode()), dtype={"published": str})
    published = compared.set_index(["encoder", "method", "column"])["published"].dropna().map(float).to_dict()
    assert published == {
        ("base", "plug-out", "xnli"): 50.0,
        ("base", "plug-out", "xquad"): 70.2,
        ("base", "plug-out", "average"): 55.0,
        ("mmte", "transfer", "xnli"): 67.4,
        ("mmte", "transfer", "xquad"): 55.2,
        ("mmte", "transfer", "average"): 59.5,
        ("ours", "in@all", "xnli"): 84.3,
    }
    assert compared.loc[compared["encoder"] == "mmte", ["mean", "difference", "verdict"]].isna().all(axis=None)
    text = files["-published.md"].decode()
    assert "This study does not have the rows with a single line, which are published." in text
    assert "has a number for 3 of the 4 entries" in text
    mmte = next(line for line in text.splitlines() if "mmte" in line)
    assert [part.strip() for part in mmte.strip("|").split("|")] == [
        "mmte",
        "transfer",
        "paper",
        "67.4",
        "55.2",
        "",
        "59.5",
    ]


def test_selected_metrics_alone_count(tmp_path: Path) -> None:
    table, _ = entries(cells(), tmp_path, select={"metric": ["accuracy", "squad-f1"]})
    mean = sum(score("base", "xquad", "squad-f1", target, 1) for target in TARGETS) / 2
    assert table.loc["base", "xquad"]["mean"] == pytest.approx(mean)
