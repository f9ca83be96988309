"""The best source of each target: which it is, what it is ahead of, and what is not known yet."""

from pathlib import Path

import pandas as pd
import pytest
from exhibit_fixture import draw

NAN = float("nan")
SCORES = {("en", "en"): 90, ("fr", "en"): 60, ("de", "en"): 70, ("en", "fr"): 50, ("fr", "fr"): 80, ("de", "fr"): 40}


def cells(**scores: float) -> pd.DataFrame:
    """Two seeds of `SCORES`, the second one point better; `fr_en_1=nan` changes source fr on target en in seed 1."""
    rows = [
        ("ner", "mini", "madx", source, target, seed, "f1", scores.get(f"{source}_{target}_{seed}", score + seed), 100)
        for (source, target), score in SCORES.items()
        for seed in (0, 1)
    ]
    return pd.DataFrame(rows, columns=["task", "encoder", "method", "source", "target", "seed", "metric", "score", "n"])


def best(frame: pd.DataFrame, folder: Path) -> dict[str, str]:
    """Target -> what the table says."""
    draw({"kind": "best", "title": "Best"}, frame, folder, name="t")
    lines = (folder / "t.md").read_text(encoding="utf-8").splitlines()
    rows = [[part.strip() for part in line.split("|")[1:-1]] for line in lines if line.startswith("|")]
    return {target: text for target, text in rows[2:]}


def test_the_best_source_is_another_language_with_its_lead(tmp_path: Path) -> None:
    assert best(cells(), tmp_path) == {"en": "de 70.5 (−10.0)", "fr": "en 50.5 (−10.0)"}


def test_the_best_source_has_the_lowest_score_where_less_is_better(tmp_path: Path) -> None:
    assert best(cells().assign(metric="perplexity"), tmp_path) == {"en": "fr 60.5 (10.0)", "fr": "de 40.5 (10.0)"}


def test_a_mix_with_the_target_is_left_out(tmp_path: Path) -> None:
    frame = cells()
    mix = frame[frame["source"] == "en"].assign(source="en+de", score=99.0)
    assert best(pd.concat([frame, mix]), tmp_path) == {"en": "de 70.5 (−10.0)", "fr": "en+de 99.0 (−48.5)"}


def test_a_source_without_all_seeds_leaves_the_entry_marked(tmp_path: Path) -> None:
    assert best(cells(fr_en_1=NAN), tmp_path)["en"] == "de 70.5 (−10.5) †"


def test_without_any_complete_seed_there_is_no_best(tmp_path: Path) -> None:
    frame = cells(**{f"{source}_en_{seed}": NAN for source in ("fr", "de") for seed in (0, 1)})
    assert best(frame, tmp_path)["en"] == "–"


def test_of_equal_sources_the_first_is_best(tmp_path: Path) -> None:
    assert best(cells(fr_en_0=70, fr_en_1=71), tmp_path)["en"] == "fr 70.5 (0.0)"


def test_the_csv_names_the_next(tmp_path: Path) -> None:
    best(cells(fr_en_1=NAN), tmp_path)
    row = pd.read_csv(tmp_path / "t.csv").set_index("target").loc["en"]
    values = row[["column", "source", "mean", "next", "next_mean", "n_sources", "n_sources_expected"]]
    assert values.to_list() == ["madx", "de", 70.5, "fr", 60.0, 1, 2]


def test_tasks_are_not_mixed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="several tasks"):
        best(pd.concat([cells(), cells().assign(task="pos")]), tmp_path)


def test_sources_that_are_all_trained_on_the_target_are_refused(tmp_path: Path) -> None:
    frame = cells()
    with pytest.raises(ValueError, match="every selected source is trained on its target"):
        best(frame[frame["source"] == frame["target"]], tmp_path)
