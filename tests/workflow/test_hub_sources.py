"""Studies read what the Hub has, as it has it: scripts beside tables, copies as parquet, gated and private repositories."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import hub_server
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from shipped import STUDIES

# Fetches splits, and then checks studies, in one process, since libraries read the address of the Hub when they are imported.
READ = """
import json, sys
from pathlib import Path
from xlgrid.data.fetch import fetch_data
from xlgrid.data.formats import read_table
from xlgrid.plan.load import load_plan
from xlgrid.preflight.hub import hub_lines
from xlgrid.preflight.files import materials

asked, answers = json.load(sys.stdin), {}
for key, arguments in asked["data"].items():
    try:
        fetch_data(**arguments, out="out.parquet", lock=f"{key}.lock.yaml")
        answers[key] = read_table("out.parquet").to_pylist()
    except ValueError as error:
        answers[key] = str(error)
for name in asked["studies"]:
    plan = load_plan(name)
    lines = hub_lines(plan.study, materials(plan), "hub.lock.yaml")
    answers[name] = {line.thing: (line.state.name, line.text) for line in lines}
print(json.dumps(answers))
"""


def ask(root: Path, folder: Path, data: dict[str, Any], studies: tuple[str, ...] = (), **environment: str) -> Any:
    """What a process answers whose Hub has the repositories below `root`."""
    with hub_server.serve(root, gated=("o/gated",), private=("o/private",)) as address:
        process = subprocess.run(
            [sys.executable, "-c", READ],
            input=json.dumps({"data": data, "studies": studies}),
            cwd=folder,
            # A model that another test has loaded in this process asks for no Hub from then on.
            env=os.environ
            | {"HF_ENDPOINT": address, "HF_HOME": str(folder / "cache"), "HF_HUB_OFFLINE": "0"}
            | environment,
            capture_output=True,
            text=True,
        )
    assert process.returncode == 0, process.stderr[-4000:]
    return json.loads(process.stdout.splitlines()[-1])


# Of each set of studies/benchmarks.yaml that is or was a script: a language, its rows by split of the study, the file of a split on
# the branch of parquet files, and the files beside the script.
MOVED: dict[str, tuple[str, dict[str, list[dict[str, Any]]], str, str]] = {
    "sib200": (
        "sw",
        {split: [{"category": "travel", "text": f'{split} "bare'}, {"category": "sports", "text": 'a "quote"'}] for split in ("train", "dev", "test")},
        "swh_Latn/{}/0000.parquet",
        "data/swh_Latn/{}.tsv",
    ),
    "masakhaner2": (
        "yo",
        {split: [{"tokens": ["Ade", split], "ner_tags": [1, 0]}] for split in ("train", "dev", "test")},
        "yor/{}/0000.parquet",
        "",
    ),
    "masakhanews": (
        "yo",
        {split: [{"headline_text": f"akọle {split}", "label": "sports"}] for split in ("train", "dev", "test")},
        "yor/{}/0000.parquet",
        "",
    ),
    "xstorycloze": (
        "eu",
        {
            split: [
                {f"input_sentence_{i}": f"{split == 'test'} {i}" for i in range(1, 5)}
                | {"sentence_quiz1": "a", "sentence_quiz2": "b", "answer_right_ending": 2}
            ]
            for split in ("train", "dev", "test")
        },
        "eu/{}/0000.parquet",
        "spring2016.val.eu.tsv.split_20_80_{}.tsv",
    ),
}  # fmt: skip


def publish(root: Path, task: str, data: dict[str, Any], main: str) -> None:
    """Write the data of a benchmark as the Hub has them: with a script or parquet files on main, and parquet files on their branch."""
    _, rows, copy, table = MOVED[task]
    of_main = hub_server.repository(root, "datasets", data["hub"])
    if main == "script":
        (of_main / f"{data['hub'].rpartition('/')[2]}.py").write_text("raise SystemExit('a script was run')\n")
    places = [hub_server.repository(root, "datasets", data["hub"], "refs/convert/parquet")]
    places += [of_main] if main == "parquet" else []
    # A commit stays as it is, whatever becomes of main.
    tables = [of_main] if main == "script" else []
    tables += (
        [hub_server.repository(root, "datasets", data["hub"], data["revision"])] if len(data["revision"]) == 40 else []
    )
    names = {"dev": "validation"} | data.get("splits", {})
    for split, of_split in rows.items():
        name = names.get(split, split)
        for place in places:
            (place / copy.format(name)).parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_pylist(of_split), place / copy.format(name))
        for place in tables if table else []:
            (place / table.format(name)).parent.mkdir(parents=True, exist_ok=True)
            lines = ["\t".join(map(str, row)) for row in ([*of_split[0]], *(row.values() for row in of_split))]
            (place / table.format(name)).write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("main", ["script", "parquet"])
def test_benchmarks_are_read_whatever_the_main_branch_has(tmp_path: Path, main: str) -> None:
    tasks = yaml.safe_load((STUDIES["benchmarks"]).read_text())["tasks"]
    asked, expected = {}, {}
    for task, (language, rows, *_) in MOVED.items():
        entry = tasks[task]
        publish(tmp_path / "hub", task, entry["data"], main)
        columns = {key: entry[key] for key in ("inputs", "choices", "target", "labels") if key in entry}
        for split in rows:
            asked[f"{task}-{split}"] = {
                "kind": entry["kind"],
                "source": entry["data"],
                "language": language,
                "split": split,
                "columns": columns,
            }
            expected[f"{task}-{split}"] = rows[split]
    answers = ask(tmp_path / "hub", tmp_path, asked)
    for key, rows in expected.items():
        assert not isinstance(answers[key], str), answers[key]
        got = [{name: row[name] for name in rows[0]} for row in answers[key]]
        # Labels are text or numbers, as the file has them or as the task does.
        assert json.dumps(got).replace('"2"', "2") == json.dumps(rows).replace('"2"', "2"), key


TASK = {
    "kind": "sequence",
    "inputs": ["text"],
    "target": "label",
    "labels": ["a", "b"],
    "max_length": 16,
    "examples": {"train": 9, "dev": 9, "test": 9},
}
GRID = {"encoder": ["e"], "method": ["full-ft"], "source": ["en"], "target": ["en"], "seed": [1]}
# Thing in a line of `xlgrid check` -> what it says.
CLOSED = {
    "data set o/gated": "ask for access at https://huggingface.co/datasets/o/gated, then log in with `hf auth login`, or set HF_TOKEN",
    "data set o/private": "there is no o/private, or it is private: log in",
}
REFUSED = {
    "data set o/script": 'write `revision: refs/convert/parquet` and `files: "{name}/{split}/*.parquet"`',
    "data set o/old": 'write `revision: refs/convert/parquet` and `files: "{name}/old-{split}*.parquet"`',
    "data set o/alone": "it has data/en.tsv",
    "data set o/table": "unknown revision 'v2', did you mean 'v1.2'? (there are: main, v1.2)",
    "model o/encoder": "lacks model-00002-of-00002.safetensors",
}
FILES = {
    "datasets/o/gated/main": ["train.csv"],
    "datasets/o/private/main": ["train.csv"],
    "datasets/o/script/main": ["script.py"],
    "datasets/o/script/refs%2Fconvert%2Fparquet": ["default/train/0000.parquet"],
    "datasets/o/old/main": ["old.py"],
    "datasets/o/old/refs%2Fconvert%2Fparquet": ["default/old-train.parquet"],
    "datasets/o/alone/main": ["alone.py", "data/en.tsv"],
    "datasets/o/table/main": ["train.csv"],
    "datasets/o/table/v1.2": ["train.csv"],
    "models/o/encoder/main": [
        "config.json",
        "tokenizer.json",
        "model.safetensors.index.json",
        "model-00001-of-00002.safetensors",
    ],
}


@pytest.mark.slow
def test_a_study_is_told_what_it_cannot_read_and_what_to_write_instead(tmp_path: Path) -> None:
    for folder, names in FILES.items():
        for name in names:
            path = tmp_path / "hub" / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("text,label\none,a\n")
    hubs = [line.partition("data set ")[2] for line in (*CLOSED, *REFUSED) if line.startswith("data set")]
    tasks = {
        hub.replace("/", "-"): TASK | {"data": {"hub": hub} | ({"revision": "v2"} if hub == "o/table" else {})}
        for hub in hubs
    }
    study = {
        "title": "Sources",
        "languages": ["en"],
        "encoders": {"e": {"hub": "o/encoder"}},
        "tasks": tasks,
        "methods": {"full-ft": {}},
    }
    study |= {"training": [{"set": {"steps": 2}}], "grids": {"all": GRID | {"task": [*tasks]}}}
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies/sources.yaml").write_text(yaml.safe_dump(study))
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.yaml").write_text("study: sources\nhub_lock: hub.lock.yaml\n")
    gated = {"kind": "sequence", "source": {"hub": "o/gated"}, "language": "en", "split": "train"}
    gated["columns"] = {key: TASK[key] for key in ("inputs", "target", "labels")}
    data = {"gated": gated, "script": gated | {"source": {"hub": "o/script"}}}
    answers = ask(tmp_path / "hub", tmp_path, data, ("sources",))
    lines = answers["sources"]
    for thing, text in {**CLOSED, **REFUSED}.items():
        assert lines[thing][0] == "PROBLEM" and text in lines[thing][1], lines[thing]
    assert CLOSED["data set o/gated"] in answers["gated"]
    assert "revision: refs/convert/parquet" in answers["script"]
    answers = ask(tmp_path / "hub", tmp_path, {"gated": gated}, ("sources",), HF_TOKEN=hub_server.TOKEN)
    assert {answers["sources"][thing][0] for thing in CLOSED} == {"GOOD"}
    assert answers["gated"] == [{"text": "one", "label": "a"}]
