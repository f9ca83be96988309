"""Cells in the schema of Every Eval Ever 0.3 (https://github.com/evaleval/every_eval_ever): a log for each model, and its examples.

A model is a run, or an encoder without training, and a log has its scores on all targets. Beside it, a file of JSON lines
has each example with the answer of the model. The folders are those of the datastore of Every Eval Ever.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from xlgrid.base.files import write_text
from xlgrid.heads import metric
from xlgrid.plan.plan import Plan
from xlgrid.products import product_of
from xlgrid.products.evaluate import Cell
from xlgrid.products.train import Run
from xlgrid.report import predictions
from xlgrid.results import records

VERSION = "0.3.0"
Record = dict[str, Any]


def export(plan: Plan, folder: Path) -> str:
    """Write the cells of a study that have a result.

    Returns:
        A sentence about the folder, and about cells without examples.

    Raises:
        FileNotFoundError: the data of a cell do not exist.
        ValueError: a cell is damaged.
    """
    models: dict[Run, list[Cell]] = {}
    for cell in plan.cells:
        if Path(cell.path).exists():
            models.setdefault(cell.run, []).append(cell)
    with_examples = 0
    for model, cells in models.items():
        with_examples += _write(plan, model, cells, folder)
    total = sum(map(len, models.values()))
    without = f", {total - with_examples:,} of them without examples" if with_examples < total else ""
    return f"wrote {len(models):,} logs to {folder}: {total:,} cells{without}"


def _write(plan: Plan, model: Run, cells: Sequence[Cell], folder: Path) -> int:
    """Write the log of a model and its examples; returns the number of cells with examples."""
    study = plan.study
    name = "_".join([model.task, model.encoder, model.method, model.source, f"seed{model.seed}"])
    made = {cell: records.read_expected(cell.path, cell._asdict()) for cell in cells}
    # No record has the time of the evaluation. This one, which the schema requires, is that of the newest file.
    first, when = made[cells[0]], str(int(max(Path(cell.path).stat().st_mtime for cell in cells)))
    identity = {"evaluation_id": f"{model.folder}/{when}", "model_id": f"{study.name}/{name}"}
    # The same model has the same number, so that another export replaces its files.
    uuid = UUID(bytes=hashlib.sha256(model.folder.encode()).digest()[:16], version=4)
    place = f"data/{study.name}/{study.name}/{name}/{uuid}"
    examples = {cell: [*_examples(plan, cell, record, identity)] for cell, record in made.items()}
    lines = "".join(json.dumps(line, ensure_ascii=False) + "\n" for each in examples.values() for line in each)
    versions = first.get("versions", {})
    log: Record = {
        "schema_version": VERSION,
        "evaluation_id": identity["evaluation_id"],
        "retrieved_timestamp": when,
        "source_metadata": {
            "source_name": study.title,
            "source_type": "evaluation_run",
            "source_organization_name": "not stated",
            "evaluator_relationship": "first_party",
        },
        "eval_library": {
            "name": "xlgrid",
            "version": versions.get("xlgrid", "unknown"),
            "additional_details": {"commit": str(first.get("commit"))},
        },
        "model_info": {
            "name": name,
            "id": identity["model_id"],
            "inference_engine": {"name": "transformers", "version": versions.get("transformers", "unknown")},
            "additional_details": {
                "deployment_type": "self_deployed",
                "model_availability": "unknown",
                **{axis: str(getattr(model, axis)) for axis in ("task", "encoder", "method", "source", "seed")},
                "digest": str(first.get("digest")),
            },
        },
        "evaluation_results": [
            _result(plan, cell, record, each) for cell, record in made.items() for each in study.metrics[cell.task]
        ],
    }
    if lines:
        log["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": f"{place}_samples.jsonl",
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(lines.encode()).hexdigest(),
            "total_rows": lines.count("\n"),
        }
        write_text(folder / f"{place}_samples.jsonl", lines)
    write_text(folder / f"{place}.json", json.dumps(log, ensure_ascii=False, indent=1) + "\n")
    return sum(map(bool, examples.values()))


def _result(plan: Plan, cell: Cell, record: Record, name: str) -> Record:
    """A score of a cell."""
    of, path = metric(name), predictions.data_path(plan, cell)
    data = product_of(path)
    repository = data and data.under(plan.study.name).repository(plan.study)
    source: Record = {"dataset_name": cell.task, "source_type": "other", "additional_details": {"data": path or "text"}}
    if repository:
        source |= {"source_type": "hf_dataset", "hf_repo": repository.name, "samples_number": record["n"]}
        source["additional_details"] |= {"revision": repository.revision}
    main = record["metric"]
    details = {"n": str(record["n"]), "cell": cell.path}
    if name in record.get("chance", {}):
        details["chance"] = str(record["chance"][name])
    return {
        "evaluation_result_id": _result_id(cell, name),
        "evaluation_name": f"{cell.task}.{cell.target}",
        "source_data": source,
        "metric_config": {
            "metric_id": name,
            "metric_name": name,
            "metric_unit": {"%": "percent"}.get(of.unit, of.unit or "none"),
            "lower_is_better": not of.higher_is_better,
            "score_type": "continuous",
            # A score in percent may be below 0, as a correlation.
            "min_score": None,
            "max_score": 100 if of.unit == "%" and of.higher_is_better else None,
            "additional_details": {"implementation": str(main.get("implementation"))} if main["name"] == name else {},
        },
        "score_details": {"score": records.score(cell.path, record, name), "details": details},
        "generation_config": {"generation_args": {"execution_command": str(record.get("command"))}},
    }


def _result_id(cell: Cell, name: str) -> str:
    return f"{cell.task}/{cell.target}/{name}"


def _examples(plan: Plan, cell: Cell, record: Record, identity: Mapping[str, str]) -> Iterator[Record]:
    """The examples of a cell with the answers of the model; none where answers are neither right nor wrong."""
    found = [each for each in predictions.examples(plan, cell, record) or () if each.is_right is not None]
    if not found:
        return
    rows = predictions.rows_of(predictions.data_path(plan, cell)).take([each.row for each in found])
    inputs = zip(*predictions.inputs(plan, cell, rows).values(), strict=True)
    for example, texts in zip(found, inputs, strict=True):
        given = {"raw": "\n".join(texts), "reference": [example.gold]}
        hashed = json.dumps(given, sort_keys=True, separators=(",", ":")).encode()
        answer = {"turn_idx": 0, "source": "output.raw", "extracted_value": example.predicted}
        yield {
            "schema_version": VERSION,
            **identity,
            "evaluation_name": f"{cell.task}.{cell.target}",
            "evaluation_result_id": _result_id(cell, record["metric"]["name"]),
            "sample_id": f"{cell.task}.{cell.target}.{example.row}",
            "sample_hash": hashlib.sha256(hashed).hexdigest(),
            "interaction_type": "single_turn",
            "input": given,
            "output": {"raw": [example.predicted]},
            "answer_attribution": [answer | {"extraction_method": record["head"], "is_terminal": True}],
            "evaluation": {"score": float(bool(example.is_right)), "is_correct": bool(example.is_right)},
        }
