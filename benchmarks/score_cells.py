"""Are the scores of cells right? `python benchmarks/score_cells.py STUDY` computes them again without the code that made them.

    python benchmarks/score_cells.py africa [--task ner pos] [--method madx] [--cells 20]

Run it in the folder of the project, after the study. The program reads the test sets by itself (from the study's own files where
they are words with labels, jsonl, parquet or SQuAD's json, and otherwise from `results/`), cuts long inputs by itself, and calls the
model on inputs of one length, so that nothing is padded. seqeval scores entities, and plain counts score all else. From the library
come the plan of the study and the model of a cell, with the weights that the cell names.

Left out are cells without a run, of heads other than `token`, `sequence`, `choice` and `span`, of methods that read a parallel example, and
of methods that draw masks in evaluation. Batches of other sizes sum in another order, which can change which of two nearly equal logits
is the larger one, most of all with `precision: bf16`.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scorer import FILES_OF_WORDS, HEADS, Forward, Row, Task, read_rows, scores
from transformers import PreTrainedModel

from xlgrid.base.arrays import Segments
from xlgrid.data import batches
from xlgrid.data.tokenize import load_tokenizer
from xlgrid.evaluation import trained
from xlgrid.languages.sources import Target
from xlgrid.methods import Method
from xlgrid.models import by_language
from xlgrid.models.load import has_segments
from xlgrid.models.precision import arithmetic, autocast
from xlgrid.papers.foroutan2023.methods import Structured
from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.products.data import Data
from xlgrid.products.encode import Tokenizer
from xlgrid.products.evaluate import Cell
from xlgrid.results import records

# The largest difference of equal scores, in percent.
SAME = 1e-6


def test_set(plan: Plan, cell: Cell, task: Task) -> tuple[Path, list[Row]]:
    """The file of a cell's test set, and its rows."""
    entry, target = plan.study.tasks[cell.task], Target(cell.target).data
    if entry.data and len(target.languages) == 1:
        origin = entry.data.of("test", target)
        path = Path(origin.path(target, "test")) if origin.local else None
        is_plain = not (origin.where or origin.begins or origin.rename)
        kinds = (".parquet", ".jsonl", ".json", *(FILES_OF_WORDS if task.head == "token" else ()))
        if path and is_plain and {*path.suffixes} & {*kinds} and path.is_file():
            rows = read_rows(path, task, origin.columns or (), origin.labels)
            if origin.unanswerable:
                rows = [row for row in rows if row[task.target]["text"]]
            return path, rows[: origin.limit]
    path = Path(plan.owned(Data(plan.study.name, cell.task, target, "test")).path)
    return path, read_rows(path, task)


def settings(plan: Plan, cell: Cell) -> Task:
    entry = plan.study.tasks[cell.task]
    kind, options = entry.task, entry.task.Options(**entry.options)
    return Task(
        kind.head.name,
        kind.inputs,
        kind.target,
        kind.labels,
        entry.max_length,
        len(kind.choices),
        getattr(options, "stride", 0),
        entry.separators == "one",
    )


def model_of(plan: Plan, cell: Cell, record: Mapping[str, Any]) -> tuple[PreTrainedModel, trained.TrainedRun]:
    """The model of a cell, from the run and the weights that its record names."""
    run = trained.read(record["run"])
    step, texts = Target(cell.target).step, [Path(path) for path in record["speaks"]]
    mlm_run = next((path if step is None else path.parent for path in texts), None)
    tokens = batches.read(plan.owned(cell.tokens(plan)).path, Target(cell.target).data)
    return trained.model_of(run, run.record["encoder"], tokens, mlm_run, step).eval(), run


def forward_of(model: PreTrainedModel, method: Method, languages: tuple[str, str], bf16: bool) -> Forward:
    """Calls the model of a cell.

    Args:
        languages: those of the first and of the second segment.
    """
    codes = tuple(dict.fromkeys(languages))
    pair = np.array([codes.index(code) for code in languages], np.int16)

    def forward(tensors: dict[str, torch.Tensor], contexts: list[int]) -> Any:
        length = tensors["input_ids"].shape[-1]
        segments = Segments(np.array(contexts), codes, np.tile(pair, (len(contexts), 1)), length)
        extra = method.arrange(segments, model.device, training=False) if isinstance(method, Structured) else {}
        extra |= by_language.arguments(model, segments)
        with arithmetic(model.device, bf16), autocast(model.device, bf16):
            return model(**{name: tensor.to(model.device) for name, tensor in tensors.items()}, **extra)

    return forward


def is_scored(plan: Plan, cell: Cell) -> bool:
    """Whether the program can score a cell, which exists."""
    if not Path(cell.path).is_file() or plan.study.tasks[cell.task].task.head.name not in HEADS:
        return False
    if not (run := records.read_cell(cell.path).get("run")):
        return False
    method = trained.read(run).method
    return method.parallel_language is None and getattr(method, "evaluate", None) != "sampled"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", help="its name or file")
    parser.add_argument("--task", nargs="+", help="cells of these tasks (default: all)")
    parser.add_argument("--method", nargs="+", help="cells of these methods (default: all)")
    parser.add_argument("--cells", type=int, help="this many of each task, drawn at random (default: all)")
    arguments = parser.parse_args()
    plan = load_plan(arguments.study)
    chosen: dict[tuple[str, str, str], list[Cell]] = {}
    for name in arguments.task or plan.study.tasks:
        methods = arguments.method or plan.study.methods
        cells = [cell for cell in plan.cells if cell.task == name and cell.method in methods and is_scored(plan, cell)]
        size = min(len(cells), arguments.cells or len(cells))
        for number in sorted(np.random.default_rng(1).choice(len(cells), size, replace=False)) if size else ():
            tokenizer = cells[number].tokens(plan).tokenizer
            chosen.setdefault((name, Target(cells[number].target).data, tokenizer), []).append(cells[number])
    differences: dict[str, float] = {}
    print(f"{'task':16}  {'tokenizer':12}  {'target':8}  {'cells':>5}  {'rows':>6}  {'difference':>10}  test set")
    for (name, target, tokenizer), cells in chosen.items():
        task = settings(plan, cells[0])
        file, rows = test_set(plan, cells[0], task)
        folder = Path(plan.owned(Tokenizer(plan.study.name, tokenizer)).folder)
        loaded, codes = load_tokenizer(folder), Target(target).languages
        for cell in cells:
            record = records.read_cell(cell.path)
            model, run = model_of(plan, cell, record)
            _, bf16, segments = trained.placed(model, run.recipe.training)
            head = plan.study.tasks[name].task.head
            forward = forward_of(model, run.method, head.segment_languages(codes), bf16)
            own = scores(rows, loaded, forward, task._replace(types=segments and has_segments(model)))
            assert own.keys() <= record["scores"].keys(), f"{cell.path} lacks some of {', '.join(own)}"
            differences[cell.path] = max(abs(own[metric] - record["scores"][metric]) for metric in own)
        largest = max(differences[cell.path] for cell in cells)
        print(
            f"{name:16}  {tokenizer:12}  {target:8}  {len(cells):5,}  {len(rows):6,}  {largest:10.6f}  {file}",
            flush=True,
        )
    if not differences:
        raise SystemExit(f"no cell of {plan.study.name} exists that can be scored here: run the study first")
    worst = max(differences, key=lambda path: differences[path])
    count = sum(difference > SAME for difference in differences.values())
    print(
        f"{len(differences):,} cells, of which {count:,} differ; the largest difference is {differences[worst]:.6f} points, of {worst}"
    )


if __name__ == "__main__":
    main()
