"""`xlgrid new study --task` reads what the Hub has, as it has it, and writes a study that the check accepts there."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hub_server
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from datasets import ClassLabel, Features, List, Value
from hub import write_xlmr
from project import commands, make, project, small, succeeds

# Writes studies and then checks them, in one process, since libraries read the address of the Hub when they are imported.
WRITE = """
import json, sys
from pathlib import Path
from xlgrid.plan.load import load_plan
from xlgrid.preflight.files import materials
from xlgrid.preflight.hub import hub_lines
from xlgrid.starters.described import Wishes
from xlgrid.starters.new import begin

answers = {}
for name, wishes in json.load(sys.stdin).items():
    try:
        [path] = begin("study", name, wishes=Wishes(**wishes)).files
        plan = load_plan(name)
        lines = [line.text for line in hub_lines(plan.study, materials(plan), "lock.yaml") if line.thing.startswith("data")]
        answers[name] = {"text": path.read_text(), "lines": lines, "cells": len(plan.cells)}
    except ValueError as error:
        answers[name] = str(error)
print(json.dumps(answers))
"""
PARQUET = "refs/convert/parquet"
TAGS = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", "B-DATE", "I-DATE"]
NER = Features({"id": Value("string"), "tokens": List(Value("string")), "ner_tags": List(ClassLabel(names=TAGS))})
NLI = Features(
    {
        "premise": Value("string"),
        "hypothesis": Value("string"),
        "label": ClassLabel(names=["entailment", "neutral", "contradiction"]),
    }
)
UD = Features(
    {name: List(Value("string")) for name in ("tokens", "lemmas", "xpos", "feats", "deprel")}
    | {"idx": Value("string"), "upos": List(ClassLabel(names=["NOUN", "VERB"]))}
)
MASSIVE = Features(
    {
        "id": Value("string"),
        "locale": Value("string"),
        "partition": Value("string"),
        "utt": Value("string"),
        "scenario": ClassLabel(names=["a", "b"]),
        "intent": ClassLabel(names=["c", "d"]),
    }
)
N = 12


def ner(i: int) -> dict[str, Any]:
    return {"id": str(i), "tokens": ["Ali", "lives", f"here{i}"], "ner_tags": [1, 0, 0]}


def nli(i: int) -> dict[str, Any]:
    return {"premise": f"the premise of number {i}", "hypothesis": f"the hypothesis of number {i}", "label": i % 3}


def news(i: int) -> dict[str, Any]:
    return {
        "category": ("sports", "health")[i % 2],
        "headline": f"the headline number {i}",
        "text": f"the whole text of number {i}",
        "url": f"https://x.org/{i}",
    }


def ud(i: int) -> dict[str, Any]:
    words = {name: [f"{name}{i}", "x"] for name in ("tokens", "lemmas", "xpos", "feats", "deprel")}
    return {"idx": str(i), **words, "upos": [0, 1]}


def massive(i: int) -> dict[str, Any]:
    return {
        "id": str(i),
        "locale": "sw-KE",
        "partition": "train",
        "utt": f"wake me up at {i} today",
        "scenario": i % 2,
        "intent": i % 2,
    }


def squad(i: int) -> dict[str, Any]:
    return {
        "id": str(i),
        "context": f"Ali lives here since {i} years.",
        "question": f"Who lives {i}?",
        "answers": {"text": ["Ali"], "answer_start": [0]},
    }


def cloze(i: int) -> dict[str, Any]:
    texts = {f"input_sentence_{n}": f"the sentence {n} of number {i}" for n in range(1, 5)}
    return {
        "story_id": f"id-{i}",
        **texts,
        "sentence_quiz1": f"it ends well {i}",
        "sentence_quiz2": f"it ends badly {i}",
        "answer_right_ending": 1 + i % 2,
    }


def belebele(i: int) -> dict[str, Any]:
    choices = {f"mc_answer{n}": f"answer {n} of {i}" for n in range(1, 5)}
    return {
        "link": f"https://{i}",
        "question_number": 1,
        "flores_passage": f"the passage of number {i}",
        "question": f"which one is {i}?",
        **choices,
        "correct_answer_num": "1",
        "dialect": "x",
        "ds": "2023",
    }


def parquet(root: Path, name: str, revision: str, path: str, row: Any, features: Features | None = None) -> None:
    file = hub_server.repository(root, "datasets", name, revision) / path
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([row(i) for i in range(N)], schema=features and features.arrow_schema), file)


def card(root: Path, name: str, **entries: Any) -> None:
    (hub_server.repository(root, "datasets", name) / "README.md").write_text(
        f"---\n{yaml.safe_dump(entries)}---\n# Card\n"
    )


def script(root: Path, name: str) -> None:
    (hub_server.repository(root, "datasets", name) / f"{name.partition('/')[2]}.py").write_text("raise SystemExit\n")


def configs(
    root: Path,
    name: str,
    languages: list[str],
    splits: list[str],
    row: Any,
    features: Features | None = None,
    **entries: Any,
) -> None:
    """A data set with a configuration for each language, as its card declares them."""
    for code in languages:
        for split in splits:
            parquet(root, name, "main", f"{code}/{split}-00000-of-00001.parquet", row, features)
    declared = [
        {"config_name": code, "data_files": [{"split": split, "path": f"{code}/{split}-*"} for split in splits]}
        for code in languages
    ]
    card(root, name, configs=declared, **entries)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    root, folder = tmp_path_factory.mktemp("hub"), tmp_path_factory.mktemp("project")
    (folder / "studies").mkdir()
    three = ["train", "validation", "test"]
    script(root, "masakhane/masakhaner2")
    counts = {"hau": 5716, "swa": 6593, "yor": 6876}
    infos = [
        {
            "config_name": code,
            "splits": [
                {"name": "train", "num_examples": n},
                {"name": "validation", "num_examples": 9},
                {"name": "test", "num_examples": 9},
            ],
        }
        for code, n in counts.items()
    ]
    card(root, "masakhane/masakhaner2", dataset_info=infos)
    for code in counts:
        for split in three:
            parquet(root, "masakhane/masakhaner2", PARQUET, f"{code}/{split}/0000.parquet", ner, NER)
            parquet(root, "o/old", PARQUET, f"{code}/old-{split}.parquet", ner, NER)
    script(root, "o/old")
    script(root, "Davlan/sib200")
    for code in ("eng_Latn", "swh_Latn", "arb_Arab"):
        for split in ("train", "dev", "test"):
            file = hub_server.repository(root, "datasets", "Davlan/sib200") / f"data/{code}/{split}.tsv"
            file.parent.mkdir(parents=True, exist_ok=True)
            rows = [f'{i}\t{("travel", "sports")[i % 2]}\ta "bare quote in sentence {i}' for i in range(N)]
            file.write_text("\n".join(["index_id\tcategory\ttext", *rows]) + "\n")
    configs(root, "facebook/xnli", ["ar", "en", "sw", "all_languages"], three, nli, NLI)
    configs(root, "google/xtreme", ["PAN-X.en", "PAN-X.sw", "udpos.English"], three, ner, NER)
    configs(root, "masakhane/masakhanews", ["eng", "hau", "swa"], three, news)
    configs(root, "commul/universal_dependencies", ["en_ewt", "en_gum", "fr_gsd"], three, ud, UD)
    configs(root, "AmazonScience/massive", ["en-US", "sw-KE"], three, massive, MASSIVE)
    configs(root, "facebook/belebele", ["eng_Latn", "swh_Latn"], ["test"], belebele)
    stated = [{"name": "train", "num_examples": 87599}, {"name": "validation", "num_examples": 10570}]
    info = {"config_name": "plain_text", "splits": stated}
    configs(root, "rajpurkar/squad", ["plain_text"], ["train", "validation"], squad, language=["en"], dataset_info=info)
    script(root, "juletxara/xstory_cloze")
    for code in ("en", "eu"):
        for split in ("train", "eval"):
            parquet(root, "juletxara/xstory_cloze", PARQUET, f"{code}/{split}/0000.parquet", cloze)
    asked = {
        "ner": {"task": "masakhane/masakhaner2", "encoder": "FacebookAI/xlm-roberta-base", "languages": ["ha", "sw", "yo"]},
        "old": {"task": "o/old", "languages": ["ha", "sw"]},
        "sib": {"task": "Davlan/sib200", "languages": ["en", "sw", "ar"]},
        "nli": {"task": "facebook/xnli", "languages": ["en", "sw"]},
        "all": {"task": "facebook/xnli"},
        "panx": {"task": "google/xtreme", "languages": ["sw"]},
        "news": {"task": "masakhane/masakhanews", "languages": ["en", "ha", "sw"]},
        "ud": {"task": "commul/universal_dependencies", "languages": ["en", "fr"]},
        "massive": {"task": "AmazonScience/massive", "encoder": "jhu-clsp/mmBERT-base"},
        "cloze": {"task": "juletxara/xstory_cloze"},
        "squad": {"task": "rajpurkar/squad"},
        "belebele": {"task": "facebook/belebele", "languages": ["en", "sw"]},
        "absent": {"task": "facebook/xnli", "languages": ["en", "swa", "yo"]},
        "gated": {"task": "o/gated"},
        "nowhere": {"task": "o/nowhere"},
    }  # fmt: skip
    hub_server.repository(root, "datasets", "o/gated")
    with hub_server.serve(root, gated=("o/gated",)) as address:
        environment = {"HF_ENDPOINT": address, "HF_HOME": str(folder / "cache"), "HF_HUB_OFFLINE": "0"}
        process = subprocess.run(
            [sys.executable, "-c", WRITE], input=json.dumps(asked), cwd=folder, env=os.environ | environment, capture_output=True, text=True
        )  # fmt: skip
    assert process.returncode == 0, process.stderr[-4000:]
    yield json.loads(process.stdout.splitlines()[-1])


def task(answer: Any) -> Any:
    assert not isinstance(answer, str), answer
    assert answer["lines"] and not [line for line in answer["lines"] if not line.startswith("is on the Hub at")], (
        answer["lines"]
    )
    [entry] = yaml.safe_load(answer["text"])["tasks"].values()
    return entry


FILES = "{name}/{split}/*.parquet"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "data", "kind", "inputs", "target"),
    [
        ("ner", {"hub": "masakhane/masakhaner2", "revision": PARQUET, "files": FILES, "names": {"ha": "hau", "sw": "swa", "yo": "yor"}}, "token", ["tokens"], "ner_tags"),
        ("old", {"hub": "o/old", "revision": PARQUET, "files": "{name}/old-{split}.parquet", "names": {"ha": "hau", "sw": "swa"}}, "token", ["tokens"], "ner_tags"),
        ("sib", {"hub": "Davlan/sib200", "files": "data/{name}/{split}.tsv", "names": {"en": "eng_Latn", "sw": "swh_Latn", "ar": "arb_Arab"}, "splits": {"dev": "dev"}}, "sequence", ["text"], "category"),
        ("nli", {"hub": "facebook/xnli", "name": "{language}", "labels": {"0": "entailment", "1": "neutral", "2": "contradiction"}}, "sequence", ["premise", "hypothesis"], "label"),
        ("panx", {"hub": "google/xtreme", "name": "PAN-X.{language}"}, "token", ["tokens"], "ner_tags"),
        ("news", {"hub": "masakhane/masakhanews", "name": "{language}", "names": {"en": "eng", "ha": "hau", "sw": "swa"}}, "sequence", ["text"], "category"),
        ("ud", {"hub": "commul/universal_dependencies", "name": "{language}", "names": {"en": "en_ewt", "fr": "fr_gsd"}}, "token", ["tokens"], "upos"),
        ("massive", {"hub": "AmazonScience/massive", "name": "{language}", "names": {"en": "en-US", "sw": "sw-KE"}, "labels": {"0": "c", "1": "d"}}, "sequence", ["utt"], "intent"),
        ("cloze", {"hub": "juletxara/xstory_cloze", "revision": PARQUET, "files": FILES, "splits": {"dev": "train", "test": "eval"}}, "choice", [f"input_sentence_{n}" for n in range(1, 5)], "answer_right_ending"),
        ("squad", {"hub": "rajpurkar/squad", "name": "plain_text", "languages": ["en"], "splits": {"test": "validation", "dev": "train"}}, "span", ["question", "context"], "answers"),
    ],
)  # fmt: skip
def test_a_study_reads_the_data_as_the_hub_has_them(
    answers: Any, name: str, data: Any, kind: str, inputs: list[str], target: str
) -> None:
    entry = task(answers[name])
    assert (entry["data"], entry["kind"], entry["inputs"], entry["target"]) == (data, kind, inputs, target)


@pytest.mark.slow
def test_comments_say_what_was_seen(answers: Any) -> None:
    text = answers["ner"]["text"]
    assert "main branch is a script" in text
    assert "Runs train on yo" in text and "(yo: 6,876, sw: 6,593, ha: 5,716)" in text
    assert "examples: {train: 6876, dev: 9, test: 9}" in text
    assert task(answers["squad"])["examples"] == {"train": 87599, "dev": 87599, "test": 10570}
    assert task(answers["ner"])["labels"] == TAGS and answers["ner"]["cells"] == 18
    assert "# en could also be en_gum" in answers["ud"]["text"]
    assert "--inputs headline" in answers["news"]["text"] and "--target scenario" in answers["massive"]["text"]


@pytest.mark.slow
def test_all_languages_are_those_of_the_configurations(answers: Any) -> None:
    assert yaml.safe_load(answers["all"]["text"])["languages"] == ["ar", "en", "sw"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("belebele", ["facebook/belebele has no training set in en, sw (its splits: test)", "`trained_on`"]),
        ("absent", ["unknown language 'yo'", "there are: ar, en, sw"]),
        ("gated", ["gated: ask for access at"]),
        ("nowhere", ["there is no o/nowhere"]),
    ],
)
def test_what_the_hub_lacks_is_said(answers: Any, name: str, words: list[str]) -> None:
    assert all(word in answers[name] for word in words), answers[name]


@pytest.mark.slow
def test_a_study_on_files_is_checked_and_made(tmp_path: Path) -> None:
    """As the page on studies shows it, with an encoder in a folder and fewer passes over the data."""
    folder = project(tmp_path, small())
    for code, name in (("hau", "Kano"), ("swa", "Mombasa")):
        for split, count in (("train", 24), ("dev", 8), ("test", 8)):
            sentences = [f"Ali B-PER\nya O\nje O\n{name}{i} B-LOC\n" for i in range(count)]
            (folder / "names" / code).mkdir(parents=True, exist_ok=True)
            (folder / "names" / code / f"{split}.txt").write_text("\n".join(sentences))
    write_xlmr(folder / "xlmr", ["Ali ya je Kano", "Ali ya je Mombasa"])
    [command] = [line for line in commands("docs/how-to/study.md") if "--data" in line]
    succeeds(folder, f"{command} --encoder xlmr")
    study = folder / "studies" / f"{command.split()[3]}.yaml"
    study.write_text(study.read_text().replace("epochs: 20", "steps: 3").replace("seed: [1, 2, 3]", "seed: [1]"))
    succeeds(folder, f"xlgrid check {study.stem}")
    make(folder, f"results/{study.stem}/exhibits/scores.md", f"results/{study.stem}/exhibits/transfer.md")
