"""Checkpoints that are chosen by the mean score on the dev sets of several targets (Pfeiffer et al. 2022, section 4.3)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokens_fixture import write

from xlgrid.training.loop import Loop, train
from xlgrid.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("one_thread")
EVALUATIONS = 6


def recipe(*dev_targets: str, **more: Any) -> Recipe:
    names = {"study": "s", "task": "t", "kind": "ruletaker", "encoder": "e", "method": "m", "base": "full-ft"}
    settings = {
        "steps": 30,
        "batch_tokens": 128,
        "lr": 5e-3,
        "evaluations": EVALUATIONS,
        "dev_targets": dev_targets,
    } | more
    return Recipe.model_validate({**names, "source": "en", "seed": 1, "training": settings})


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tokens to train on, of a small dev set with right labels, and of a larger one with labels of which most are wrong."""
    folder = tmp_path_factory.mktemp("tokens")
    rng = np.random.default_rng(1)
    ids = [[2, *rng.integers(5, 40, rng.integers(3, 20)).tolist(), 3] for _ in range(80)]
    right = [row[1] % 2 for row in ids]
    wrong = [1 - label if number % 3 else label for number, label in enumerate(right)]
    rows = {"train": (ids[:60], right[:60]), "fr": (ids[60:67], right[60:67]), "de": (ids[40:], wrong[40:])}
    return {name: write(folder / name, *(of[0], "sequence"), labels=of[1]) for name, of in rows.items()}


def curve(folder: Path, encoder: Path, files: dict[str, Path], *targets: str) -> list[float]:
    """The scores of a run that is evaluated on the dev sets of these targets."""
    run = folder / "-".join(targets)
    train(recipe(*targets), encoder, [files["train"]], [files[code] for code in targets], run)
    return [json.loads(line)["score"] for line in (run / "curve.jsonl").read_text().splitlines()]


def test_the_mean_of_the_scores_counts_whatever_the_sizes(
    encoder: Path, files: dict[str, Path], tmp_path: Path
) -> None:
    french, german = (np.array(curve(tmp_path, encoder, files, code)) for code in ("fr", "de"))
    both = curve(tmp_path, encoder, files, "fr", "de")
    assert both == pytest.approx(((french + german) / 2).tolist())
    # 7 examples and 40: their pooled accuracy would be another.
    assert not np.allclose(both, (7 * french + 40 * german) / 47)
    record: dict[str, Any] = json.loads((tmp_path / "fr-de" / "run.json").read_text())
    assert record["best_step"] == 5 * (1 + int(np.argmax((french + german) / 2)))
    assert (record["dev_score"], record["n_dev"]) == (max(both), 47)


def test_each_dev_set_is_read_in_its_language(encoder: Path, files: dict[str, Path], tmp_path: Path) -> None:
    """A method with modules for languages takes from there which of them is active."""
    loop = Loop(recipe("fr", "de"), encoder, [files["train"]], [files["fr"], files["de"]], tmp_path)
    assert [dev.languages for dev in loop.dev_sets] == [("fr",), ("de",)]
    assert loop.train.languages == ("en",)


def test_without_them_the_dev_set_of_the_source_counts(encoder: Path, files: dict[str, Path], tmp_path: Path) -> None:
    loop = Loop(recipe(), encoder, [files["train"]], [files["fr"]], tmp_path)
    assert [dev.languages for dev in loop.dev_sets] == [("en",)]
