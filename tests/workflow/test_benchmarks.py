"""The benchmarks of studies/benchmarks.yaml: each is planned with its id on the Hub, and runs on small files of its columns."""

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from project import FEW, SIZES, blocks, commands, make, project, succeeds
from shipped import STUDIES

from xlgrid.data import batches
from xlgrid.heads.encoding import IGNORED
from xlgrid.plan.grid import cells
from xlgrid.plan.load import load_study

# Benchmark -> its repository on the Hub, or its files.
BENCHMARKS = {
    "pawsx": "google-research-datasets/paws-x",
    "sib200": "Davlan/sib200",
    "americasnli": "nala-cub/americas_nli",
    "masakhaner2": "masakhane/masakhaner2",
    "belebele": "facebook/belebele",
    "xstorycloze": "juletxara/xstory_cloze",
    "masakhanews": "masakhane/masakhanews",
    "afrisenti": "masakhane/afrisenti",
    "emotions": "brighter-dataset/BRIGHTER-emotion-categories",
    "sts": "PhilipMay/stsb_multi_mt",
    "massive-intents": "mteb/amazon_massive_intent",
    "massive-slots": "massive/{name}/{split}.jsonl",
    "uner": "uner/{name}-ud-{split}.iob2",
    "ud-parsing": "ud/{name}-ud-{split}.conllu",
}
TRAINING = {"americasnli": "facebook/xnli", "belebele": "ehovy/race"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = project(tmp_path_factory.mktemp("benchmarks"), small())
    shutil.copy(STUDIES["benchmarks"], root / "studies")
    return root


def test_each_benchmark_is_read_from_its_place() -> None:
    study = load_study(STUDIES["benchmarks"])
    assert {cell.task for cell in cells(study)} == set(BENCHMARKS)
    for task, place in BENCHMARKS.items():
        source, training = (study.tasks[name].data for name in (task, study.tasks[task].trained_on or task))
        assert source and training
        assert (str(source.origin), str(training.of("train", "en"))) == (place, TRAINING.get(task, place))


def within(example: Any, whole: Any) -> bool:
    """Whether all that a page shows of a setting is in the study's file."""
    if isinstance(example, dict):
        return all(key in whole and within(value, whole[key]) for key, value in example.items())
    return example == whole


def test_the_page_about_tasks_shows_the_study_and_commands_that_work(folder: Path) -> None:
    study = yaml.safe_load((STUDIES["benchmarks"]).read_text())
    examples = [yaml.safe_load(block) for block in blocks("docs/how-to/task.md", "yaml")]
    of_benchmarks = [example for example in examples if "ner" not in example["tasks"]]
    assert len(of_benchmarks) == 5 and all(within(example, study) for example in of_benchmarks)
    of_retrieval = yaml.safe_load(blocks("docs/how-to/retrieval.md", "yaml")[1])
    assert within(of_retrieval["tasks"], yaml.safe_load((STUDIES["xtreme"]).read_text())["tasks"])
    succeeds(folder, *(command.replace("--cores 1", "-n") for command in commands("docs/how-to/task.md")))


# A row of each set of data with the columns of the Hub, the number of its label, and the type of its files.
ROWS: dict[str, tuple[str, Callable[[str, int], tuple[dict[str, Any], Any]]]] = {
    "pawsx": (
        "parquet",
        lambda code, i: ({"id": i, "sentence1": f"{code} {i}", "sentence2": f"so {i % 2}", "label": i % 2}, i % 2),
    ),
    "sib200": (
        "tsv",
        lambda code, i: (
            {"index_id": i, "category": ("travel", "sports")[i % 2], "text": f'{code}, "{i}'},
            (1, 3)[i % 2],
        ),
    ),
    "americasnli": (
        "parquet",
        lambda code, i: ({"premise": f"{code} {i}", "hypothesis": f"hm {i % 3}", "label": i % 3}, i % 3),
    ),
    "masakhaner2": (
        "parquet",
        lambda code, i: (
            {"id": str(i), "tokens": [code, "in", str(i)], "ner_tags": [0, 0, 5 + i % 2]},
            [0, 0, 5 + i % 2],
        ),
    ),
    "belebele": (
        "jsonl",
        lambda code, i: (
            {"flores_passage": f"{code} {i}", "question": "which?", "correct_answer_num": str(i % 4 + 1)}
            | {f"mc_answer{number}": f"it is {number}" for number in range(1, 5)},
            i % 4,
        ),
    ),
    "race": (
        "parquet",
        lambda code, i: (
            {"article": f"{code} {i}", "question": "which?", "options": ["a", "b", "c", "d"], "answer": "ABCD"[i % 4]},
            i % 4,
        ),
    ),
    "xstorycloze": (
        "jsonl",
        lambda code, i: (
            {f"input_sentence_{number}": f"{code} {number}" for number in range(1, 5)}
            | {"sentence_quiz1": "good", "sentence_quiz2": "bad", "answer_right_ending": i % 2 + 1},
            i % 2,
        ),
    ),
    "masakhanews": (
        "parquet",
        lambda code, i: ({"label": i % 7, "headline": code, "text": f"{i}", "headline_text": f"{code} {i}"}, i % 7),
    ),
    "afrisenti": (
        "parquet",
        lambda code, i: ({"tweet": f"@user {code} {i}", "label": ("positive", "neutral", "negative")[i % 3]}, i % 3),
    ),
    # Without disgust, as in English; each row has fear and one of two others.
    "emotions": (
        "parquet",
        lambda code, i: (
            {"id": f"{code}_{i}", "text": f"{code} {i}", "anger": i % 2, "disgust": None, "fear": 1, "joy": 1 - i % 2}
            | {"sadness": 0, "surprise": 0, "emotions": ["fear", ("joy", "anger")[i % 2]]},
            [i % 2, None, 1, 1 - i % 2, 0, 0],
        ),
    ),
    "sts": (
        "parquet",
        lambda code, i: (
            {"sentence1": f"{code} {i}", "sentence2": f"{code} {i % 3}", "similarity_score": i % 6 * 0.8},
            i % 6 * 0.8,
        ),
    ),
    "massive-intents": (
        "jsonl",
        lambda code, i: (
            {"id": str(i), "label": ("alarm_set", "play_music")[i % 2], "text": f"{code} {i}", "lang": code},
            (48, 45)[i % 2],
        ),
    ),
    # Labels: O, and the positions of B-date, I-date and B-time, or of B-LOC.
    "massive-slots": (
        "archive",
        lambda code, i: (
            {
                "locale": code,
                "annot_utt": f"wake me [date : {code} day {i}] at [time : nine]",
                "utt": f"wake me {code} day {i} at nine",
            },
            [0, 0, 25, 26, 26, 0, 95],
        ),
    ),
    "uner": (
        "iob2",
        lambda code, i: (
            {"words": [(code, "B-OTH"), ("in", "O"), (f"Oslo{i}", "B-LOC")]},
            [0, 0, 5],
        ),
    ),
    # A verb with a subject and an object, which stands first in every other sentence. Labels: the heads.
    "ud-parsing": (
        "conllu",
        lambda code, i: (
            {"words": [("sees", "0 root"), (f"{code}{i}", "1 nsubj"), ("Oslo", "1 obj:lvc")]}
            if i % 2 == 0
            else {"words": [("Oslo", "3 obj"), (f"{code}{i}", "3 nsubj"), ("sees", "0 root")]},
            [0, 1, 1] if i % 2 == 0 else [3, 3, 0],
        ),
    ),
}
WORDS = ("masakhaner2", "massive-slots", "uner")
# The files of a language of the benchmarks that have no repository on the Hub.
FILES = {
    "massive-slots": {"en": "1.1/data/en-US.jsonl", "sw": "1.1/data/sw-KE.jsonl"},
    "ud-parsing": {"en": "ud/UD_English-EWT/en_ewt-ud-{}.conllu", "fr": "ud/UD_French-Sequoia/fr_sequoia-ud-{}.conllu"},
    "uner": {"en": "uner/UNER_English-EWT/en_ewt-ud-{}.iob2", "sk": "uner/UNER_Slovak-SNK/sk_snk-ud-{}.iob2"},
}
SPLITS = {"train": 16, "validation": 8, "test": 12, "eval": 12}
RUNS = {
    "pawsx": ("en", "de"),
    "sib200": ("sw", "yo"),
    "americasnli": ("es", "qu"),
    "masakhaner2": ("yo", "ig"),
    "belebele": ("en", "zh"),
    "xstorycloze": ("en", "eu"),
    "masakhanews": ("sw", "yo"),
    "afrisenti": ("ha", "ig"),
    "emotions": ("en", "ha"),
    "sts": ("en", "de"),
    "massive-intents": ("en", "sw"),
    "massive-slots": ("en", "sw"),
    "uner": ("en", "sk"),
    "ud-parsing": ("en", "fr"),
}


def small() -> dict[str, Any]:
    """The study on local files instead of the Hub's, with a tiny encoder and a few steps."""
    gone = dict.fromkeys(("hub", "name", "names", "revision", "files"))
    tasks: dict[str, Any] = {}
    for name, (suffix, _) in ROWS.items():
        if name in FILES:
            continue
        local = gone | {"local": f"downloads/{name}/{{language}}/{{split}}.{suffix}"}
        tasks[name] = {"data": local | {"splits": {"dev": "validation"}}, "max_length": 48}
    tasks["xstorycloze"]["data"]["splits"] = {"dev": "train"}
    elsewhere = tasks["americasnli"]["data"]
    tasks["americasnli"]["data"] = elsewhere | {"train": elsewhere, "dev": elsewhere}
    mini = {"kind": "xlmr", "languages": ["en", "es"], **SIZES}
    return {
        "extends": "benchmarks",
        "text": {"sentences": 200},
        "encoders": {"me5-small": {"hub": None, "scratch": mini, "training": FEW}},
        "tasks": tasks,
        "training": [{"set": {"steps": 4, "batch_tokens": 256, "evaluations": 2}}],
        "grids": {
            "massive" if name.startswith("massive") else name: {"source": [source], "target": [target], "seed": [1]}
            for name, (source, target) in RUNS.items()
        },
    }


def write_iob2(path: Path, rows: list[dict[str, Any]]) -> None:
    """As Universal NER has it: numbered words, their labels, and two columns about the annotation."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sentences = (
        f"# sent_id = {number}\n"
        + "".join(f"{i}\t{word}\t{label}\t-\tme\n" for i, (word, label) in enumerate(row["words"], 1))
        for number, row in enumerate(rows)
    )
    path.write_text("\n".join(sentences) + "\n", encoding="utf-8")


def write_conllu(path: Path, rows: list[dict[str, Any]]) -> None:
    """As Universal Dependencies have it: ten columns, with a multiword token and an empty node in each sentence."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sentences, empty = [], "\t_" * 8
    for number, row in enumerate(rows):
        lines = [f"# sent_id = {number}", f"1-2\tjoined{empty}"]
        for i, (word, head) in enumerate(row["words"], 1):
            lines.append("\t".join((str(i), word, "_", "X", "_", "_", *head.split(), "_", "_")))
        sentences.append("\n".join([*lines, f"3.1\tleft out{empty}", ""]))
    path.write_text("\n".join(sentences) + "\n", encoding="utf-8")


def write_archive(folder: Path, path: Path, rows: dict[str, list[dict[str, Any]]]) -> None:
    """A file of MASSIVE's archive, with all splits, and the files that the page's program writes from it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row | {"partition": split}) for split in rows for row in rows[split]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    [program] = blocks("docs/how-to/task.md", "python")
    subprocess.run([sys.executable, "-c", program, path], cwd=folder, check=True)


@pytest.fixture(scope="module")
def built(folder: Path) -> Path:
    for name, (suffix, row) in ROWS.items():
        for code in RUNS["belebele" if name == "race" else name]:
            of_splits = {
                split: [row(code, i)[0] for i in range(n)] for split, n in (("train", 16), ("dev", 8), ("test", 12))
            }
            if suffix == "archive":
                write_archive(folder, folder / FILES[name][code], of_splits)
                continue
            if write := {"iob2": write_iob2, "conllu": write_conllu}.get(suffix):
                for split, rows in of_splits.items():
                    write(folder / FILES[name][code].format(split), rows)
                continue
            (folder / "downloads" / name / code).mkdir(parents=True)
            for split, count in SPLITS.items():
                frame = pd.DataFrame([row(code, i)[0] for i in range(count)])
                out = folder / "downloads" / name / code / f"{split}.{suffix}"
                if suffix == "parquet":
                    frame.to_parquet(out)
                elif suffix == "tsv":
                    frame.to_csv(out, index=False, sep="\t", quoting=csv.QUOTE_NONE)
                else:
                    frame.to_json(out, orient="records", lines=True)
    paths = [f"results/demo/cells/{task}/me5-small/full-ft/{'/'.join(RUNS[task])}/seed1.json" for task in RUNS]
    make(folder, *paths, "results/demo/exhibits/belebele.csv")
    return folder / "results" / "demo"


@pytest.mark.slow
@pytest.mark.parametrize("task", BENCHMARKS)
def test_a_benchmark_runs_on_files_of_its_columns(built: Path, task: str) -> None:
    source, target = RUNS[task]
    cell = json.loads((built / f"cells/{task}/me5-small/full-ft/{source}/{target}/seed1.json").read_text())
    assert cell["n"] == SPLITS["test"]
    assert all(-100 <= score <= 100 for score in cell["scores"].values())
    tokens = batches.read(built / f"tokens/{task}/me5-small/{target}/test.arrow", target)
    expected = [ROWS[task][1](target, i)[1] for i in range(SPLITS["test"])]
    if task in WORDS:
        rows = (slice(*tokens.offsets[row : row + 2]) for row in range(SPLITS["test"]))
        labels = [[label for label in tokens.token_columns["labels"][row].tolist() if label >= 0] for row in rows]
    elif task == "ud-parsing":
        labels = tokens.columns["heads"].to_pylist()
    elif task == "emotions":
        labels = [[None if label == IGNORED else label for label in row] for row in tokens.columns["label"].to_pylist()]
    else:
        labels = tokens.columns["label"].tolist()
    assert labels == expected
