"""The files that `xlgrid fetch` asks Snakemake for, and what a machine without a network needs."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.preflight.fetch import advice, by_hand, command, lock_file, targets

ENCODER = "results/topics/encoders/e/model.safetensors"
TOKENIZER = "results/topics/tokenizers/e/tokenizer.json"


def test_what_comes_from_the_hub_is_fetched_and_files_of_ones_own_are_not(plan_of: Callable[..., Plan]) -> None:
    assert sorted(targets(plan_of())) == [ENCODER, TOKENIZER]


def test_downloads_of_rules_are_fetched_too(plan_of: Callable[..., Plan]) -> None:
    scratch = {"kind": "xlmr", "languages": ["en", "de"], "hidden": 16, "layers": 1, "intermediate": 16}
    text = {"data": {"local": "texts/{language}.txt.xz"}, "documents": True}
    downloads = {"texts/{code}.txt.xz": {"url": "https://a.test/{code}.xz"}, "texts/de.txt.xz": {"by_hand": "ask me"}}
    plan = plan_of(encoders={"e": {"scratch": scratch}}, text=text, downloads=downloads)
    assert targets(plan) == ["texts/en.txt.xz"]
    [line] = by_hand(plan)
    assert line.startswith("not fetched: texts/de.txt.xz") and line.endswith("ask me")


def test_tables_of_pairs_are_fetched_or_named_to_the_person_who_has_to_get_them(plan_of: Callable[..., Plan]) -> None:
    tables = {"near": {"file": "near.csv"}, "far": {"file": "far.csv"}, "own": {"file": "own.csv"}}
    downloads = {"near.csv": {"url": "https://a.test/near.csv"}, "far.csv": {"by_hand": "run `xlgrid distances`"}}
    plan = plan_of(pairs=tables, downloads=downloads)
    assert targets(plan) == [TOKENIZER, ENCODER, "near.csv"]
    [line] = by_hand(plan)
    assert line.startswith("not fetched: pairs far: there is no file far.csv") and line.endswith(
        "run `xlgrid distances`"
    )


def test_the_command_names_files_only(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of()
    words = command(plan, targets(plan))
    assert words[:3] == ["snakemake", "--cores", "4"] and sorted(words[words.index("--") + 1 :]) == [
        ENCODER,
        TOKENIZER,
    ]


def test_a_study_that_lies_elsewhere_is_named_to_snakemake(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of()
    Path("studies/topics.yaml").rename("topics.yaml")
    elsewhere = load_plan("topics.yaml")
    assert "--config study=topics.yaml -- results/topics/" in shlex.join(command(elsewhere, targets(elsewhere)))
    assert "--config" not in command(plan, targets(plan))
    assert "--config study=topics.yaml -- results/topics/report.html" in [*advice(elsewhere, targets(elsewhere))][-1]


def test_the_advice_names_the_lock_and_each_folder_once(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of()
    Path("hub.lock.yaml").touch()
    text = "\n".join(advice(plan, targets(plan)))
    assert "rsync -aR hub.lock.yaml .snakemake/metadata results/topics/" in text
    assert text.count("results/topics/encoders") == text.count("results/topics/tokenizers") == 1
    assert "HF_HUB_OFFLINE=1" in text


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            "- study\n",
            r"config\.yaml has settings, each with a value \(study: demo\), got \"\['study'\]\": correct",
        ),
        ("study: [\n", r"config\.yaml:\d: not valid YAML"),
        ("hub_lock: 3\n", "hub_lock: must be a text, got 3: write it in quotes"),
    ],
)
def test_settings_that_are_none_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(settings)
    with pytest.raises(ValueError, match=message):
        lock_file()


def test_a_folder_that_snakedeploy_has_made_has_its_settings_below_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("config").mkdir()
    Path("config/config.yaml").write_text("hub_lock: deployed.yaml\nsamples: of another workflow\n")
    assert lock_file() == "deployed.yaml"


def test_a_folder_that_is_no_project_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="run this in the folder of a project"):
        lock_file()
