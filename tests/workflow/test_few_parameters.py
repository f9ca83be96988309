"""The studies of docs/how-to/few-parameters.md, cut down: they run, and runs store what their methods train."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import yaml
from project import blocks, commands, first, project, shell, succeeds, write
from safetensors.torch import load_file

PAGE = "docs/how-to/few-parameters.md"
RUN = "results/{}/runs/{}/mini-xlmr/{}/qa1/seed1/delta.safetensors"
HEAD = {"classifier.weight", "classifier.bias"}

pytest.importorskip("peft", reason="these methods need peft, which is in the extra `peft`")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project in which the commands of the page have run."""
    folder = project(tmp_path_factory.mktemp("project"), first(), "first")
    for name, block in zip(("few", "few-text"), blocks(PAGE, "yaml"), strict=True):
        study = yaml.safe_load(block)
        for entry in study["training"]:
            entry["set"] |= {"steps": 5, "evaluations": 1}
        write(folder, study, name)
    succeeds(folder, *commands(PAGE))
    yield folder


def stored(built: Path, study: str, task: str, method: str) -> dict[str, torch.Tensor]:
    return load_file(built / RUN.format(study, task, method))


def test_the_table_has_a_row_for_each_method(built: Path) -> None:
    table = (built / "results/few/exhibits/transfer.md").read_text()
    rows = {line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")}
    assert {"bitfit", "lora", "lora-all", "ia3", "prefix-tuning"} <= rows


@pytest.mark.parametrize(
    ("method", "numbers"),
    [
        # Of one layer whose width and inner width are 16.
        ("lora", 2 * (8 * 16 + 16 * 8)),
        ("lora-all", 6 * (4 * 16 + 16 * 4)),
        ("ia3", 3 * 16),
        ("prefix-tuning", 10 * 2 * 16),
    ],
)
def test_a_run_stores_what_its_method_trains_and_the_head(built: Path, method: str, numbers: int) -> None:
    tensors = stored(built, "few", "ner", method)
    assert tensors.keys() > HEAD
    assert sum(tensor.numel() for name, tensor in tensors.items() if name not in HEAD) == numbers
    rows = [line.split() for line in shell(built, "xlgrid cost few").stdout.splitlines()]
    total = f"{sum(tensor.numel() for tensor in tensors.values()):,}"
    assert ["mini-xlmr", method, total] in [row[:3] for row in rows]


def test_a_run_continues_the_matrices_of_the_text(built: Path) -> None:
    """Five steps do not move A far, which begins at random."""
    text, alone, continued = (
        stored(built, *where)
        for where in (("few-text", "text", "text-lora"), ("few", "ner", "lora"), ("few-text", "ner", "continued"))
    )
    assert text.keys() == continued.keys() - HEAD == alone.keys() - HEAD
    a = [name for name in text if "lora_A" in name]
    assert a and all((continued[name] - text[name]).norm() < (continued[name] - alone[name]).norm() for name in a)


def test_a_run_after_all_weights_stores_matrices_only(built: Path) -> None:
    names = stored(built, "few-text", "ner", "adapted").keys()
    assert names - HEAD == {name for name in names if "lora_" in name}
