"""What a worker imports ahead is all that a command then needs."""

import json
import os
import subprocess
import sys
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import torch
from typer.main import get_command

from xlgrid import warm
from xlgrid.cli.app import app
from xlgrid.warm import LIBRARIES, warm_up

# Runs a command in a process that is warm for it, and tells how many modules it imported all the same.
WARM = """
import sys
import xlgrid.cli.app
from xlgrid.warm import warm_up
words = sys.argv[1:]
warm_up(words)
before = set(sys.modules)
sys.argv = ["xlgrid", *words]
try:
    xlgrid.cli.app.app()
except SystemExit as end:
    assert not end.code, end.code
print(len(set(sys.modules) - before))
"""


def imported(*words: str) -> int:
    process = subprocess.run([sys.executable, "-c", WARM, *words], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr[-2000:]
    return int(process.stdout.split()[-1])


def test_libraries_are_those_of_commands_that_exist() -> None:
    assert LIBRARIES.keys() <= set(get_command(app).commands)  # type: ignore[attr-defined]


def test_workers_find_the_functions_beside_the_one_that_the_script_calls() -> None:
    [script] = entry_points(group="console_scripts", name="xlgrid")
    module = import_module(script.module)
    assert callable(module.warm_up) and callable(module.serve)
    assert [module.serves(words) for words in (["evaluate", "run"], ["train"], [])] == [True, False, False]


@pytest.mark.parametrize("words", [[], ["status", "x.yaml"], ["no-such-command"], ["--help"]])
def test_a_command_without_libraries_needs_nothing(words: list[str]) -> None:
    warm_up(words)


@pytest.mark.thorough
def test_the_commands_from_data_to_a_run_import_little_more(tmp_path: Path) -> None:
    """A first model or tokenizer of transformers otherwise imports a thousand modules, in each job again."""
    spec = {"languages": ["qa1"], "vocab": 300, "hidden": 16, "layers": 1, "heads": 2, "intermediate": 16}
    training = {"steps": 2, "evaluations": 1, "lr": 1e-3}
    recipe = {"study": "s", "task": "ner", "kind": "wikiann", "encoder": "mini", "method": "full-ft", "base": "full-ft"}
    recipe |= {"options": {}, "source": "qa1", "seed": 1, "training": training}
    pretraining = recipe | {"task": "pretraining", "kind": "mlm", "scratch": spec}
    generated = ["--options", '{"n": 100}']
    encoder = ["--encoder", f"{tmp_path}/mini"]
    tokenizer = {"languages": ["qa1"], "size": 300}
    tokens = ["--tokenizer", f"{tmp_path}/tokenizer", "--max-length", "64", "--output"]
    split = ["--train", f"{tmp_path}/train.arrow", "--dev", f"{tmp_path}/dev.arrow"]
    commands = [
        ["meanings", "wikiann", *generated, "--output", f"{tmp_path}/m.parquet"],
        ["data", "wikiann", "qa1", *generated, "--meanings", f"{tmp_path}/m.parquet", "--output", f"{tmp_path}/data"],
        ["text", "qa1", "--settings", '{"sentences": 100}', "--output", f"{tmp_path}/qa1.parquet"],
        [
            *("tokenizer", f"{tmp_path}/qa1.parquet", "--spec", json.dumps(tokenizer)),
            *("--output", f"{tmp_path}/tokenizer"),
        ],
        [
            *("tokenize", "mlm", f"{tmp_path}/qa1.parquet", "--split", "train"),
            *(*tokens, f"{tmp_path}/text.arrow"),
        ],
        [
            *("pretrain", "--recipe", json.dumps(pretraining), "--tokenizer", f"{tmp_path}/tokenizer"),
            *("--train", f"{tmp_path}/text.arrow", "--dev", f"{tmp_path}/text.arrow", "--output", encoder[1]),
        ],
        ["tokenize", "wikiann", f"{tmp_path}/data/train.parquet", *tokens, f"{tmp_path}/train.arrow"],
        ["tokenize", "wikiann", f"{tmp_path}/data/dev.parquet", *tokens, f"{tmp_path}/dev.arrow"],
        ["train", "--recipe", json.dumps(recipe), *encoder, *split, "--output", f"{tmp_path}/run"],
        # As the rule writes it, with the files of run and encoder.
        [
            *("evaluate", f"{tmp_path}/run/delta.safetensors", "--encoder", f"{encoder[1]}/model.safetensors"),
            *("--tokens", f"{tmp_path}/dev.arrow"),
            *("--output", f"{tmp_path}/results/s/cells/ner/mini/full-ft/qa1/qa1/seed1.json"),
        ],
    ]
    assert {command[0]: many for command in commands if (many := imported(*command)) >= 100} == {}


@pytest.mark.slow
def test_nothing_imported_ahead_asks_for_a_gpu() -> None:
    """After that no fork could use one."""
    refused = "torch.cuda.is_available = torch.cuda.device_count = torch.cuda.init = lambda: 1 / 0"
    warmed = "; ".join(f"warm_up([{command!r}])" for command in LIBRARIES if command != "evaluate")
    script = f"import torch; {refused}; from xlgrid.warm import warm_up; {warmed}"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("before", [None, "0"])
def test_a_package_may_ask_for_a_gpu_while_it_is_imported(before: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA is not initialised then, but afterwards torch asks CUDA itself again."""
    name, seen = "PYTORCH_NVML_BASED_CUDA_CHECK", []
    monkeypatch.delenv(name, raising=False)
    if before:
        monkeypatch.setenv(name, before)
    monkeypatch.setattr(warm, "import_module", lambda library: seen.append(torch.cuda._nvml_based_avail()))
    warm_up(["train"])
    assert seen and all(seen)
    assert os.environ.get(name) == before
