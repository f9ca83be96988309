"""A study of 16 × 16 languages in many scripts, with made-up results, and the page of its report."""

import json
import random
import warnings
from pathlib import Path
from typing import Any

import nbformat
import pyarrow as pa
import pyarrow.parquet as pq
from status_fixture import write

from xlgrid.evaluation.cell import pack
from xlgrid.heads import ALL_HEADS
from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.report import drill, notebook, page, predictions

# Language -> its name, and a text in it.
LANGUAGES = {
    "en": ("English", "The match ended without a goal"),
    "fr": ("Français", "Le match s’est terminé sans but"),
    "vi": ("Tiếng Việt", "Trận đấu kết thúc không bàn thắng"),
    "el": ("Ελληνικά", "Ο αγώνας έληξε χωρίς γκολ"),
    "ru": ("Русский", "Матч закончился без голов"),
    "bg": ("Български", "Мачът завърши без гол"),
    "ka": ("ქართული", "მატჩი უგოლოდ დასრულდა"),
    "ar": ("العربية", "انتهت المباراة بدون أهداف"),
    "ur": ("اردو", "میچ بغیر کسی گول کے ختم ہوا"),
    "he": ("עברית", "המשחק הסתיים ללא שערים"),
    "hi": ("हिन्दी", "मैच बिना गोल के समाप्त हुआ"),
    "bn": ("বাংলা", "ম্যাচটি গোলশূন্য শেষ হয়েছে"),
    "ta": ("தமிழ்", "ஆட்டம் கோல் இன்றி முடிந்தது"),
    "th": ("ไทย", "การแข่งขันจบลงโดยไม่มีประตู"),
    "zh": ("中文", "比赛以零比零结束"),
    "ko": ("한국어", "경기는 득점 없이 끝났다"),
}
LABELS = ("sports", "politics", "health")
EXAMPLES = 12
CODES = ", ".join(LANGUAGES)
STUDY = f"""\
title: Many languages
description: Every source and target of 16 languages.
languages: [{CODES}]
encoders: {{large: {{path: models/large}}}}
tasks:
  news:
    kind: sequence
    inputs: [text]
    target: label
    labels: [{", ".join(LABELS)}]
    data: {{local: "news/{{language}}/{{split}}.csv"}}
methods: {{full-ft: {{}}, bitfit: {{}}}}
labels: {{{", ".join(f"{code}: {name}" for code, (name, _) in LANGUAGES.items())}, full-ft: Full fine-tuning}}
grids:
  all: {{task: [news], encoder: [large], method: [full-ft, bitfit], languages: [{CODES}], source: [mono], target: [mono], seed: [1, 2]}}
exhibits:
  matrix: {{kind: heatmap, title: "Full fine-tuning, accuracy", method: full-ft, published: {{file: paper/t1}}}}
  gain: {{kind: heatmap, title: BitFit minus full fine-tuning, difference: [bitfit, full-ft]}}
  rows: {{kind: table, title: Each source, rows: [method, source], columns: group, groups: [in-language, same-family, other-family]}}
  panels: {{kind: heatmaps, title: Both methods, width: page, panels: method, select: {{source: [en, ru, ar], target: [en, ru, ar, hi]}}}}
  narrow: {{kind: table, title: One entry, select: {{method: full-ft, source: en, target: fr}}, rows: [source], columns: target}}
  blocks: {{kind: table, title: Both metrics, select: {{metric: [accuracy, macro-f1]}}, rows: [target], columns: [metric, method]}}
"""
PUBLISHED = """\
exhibit,model,dataset,method,source,target,metric,value
t1,large,news,full-ft,en,fr,accuracy,71.0
t1,large,news,full-ft,ko,en,accuracy,67.0
"""


def made() -> Plan:
    """Write the study, its results and the numbers of a paper into the working directory. The first cell has no result."""
    write("reference/paper/t1.csv", PUBLISHED)
    write("studies/wide.yaml", STUDY)
    plan = load_plan("wide")
    head = ALL_HEADS.find("sequence")
    draw = random.Random(0)
    gold = [draw.randrange(len(LABELS)) for _ in range(EXAMPLES)]
    for code, (_, text) in LANGUAGES.items():
        path = Path(predictions.data_path(plan, next(cell for cell in plan.cells if cell.target == code)))
        path.parent.mkdir(parents=True)
        rows = [{"text": f"{text} {number}", "label": LABELS[label]} for number, label in enumerate(gold)]
        pq.write_table(pa.Table.from_pylist(rows), path)
    for run in plan.runs:
        recipe = {**run._asdict(), "training": {"lr": 2e-5, "batch_size": 32}}
        record = {"recipe": recipe, "digest": "d1", "metric": "accuracy", "steps": 20, "n_train": 500, "seconds": 65}
        write(run.path, json.dumps(record))
        points = [{"step": step, "score": 50.0 + step, "loss": 1 / step} for step in (10, 20)]
        write(f"{run.folder}/curve.jsonl", "".join(json.dumps(point) + "\n" for point in points))
    for cell in plan.cells[1:]:
        # A run is better at its own language, and chance is a third.
        share = 0.9 if cell.target == cell.source else 0.6
        outcomes = [[label, label if draw.random() < share else draw.randrange(len(LABELS))] for label in gold]
        metrics = {metric.name: metric for metric in head.metrics(LABELS)}
        record: dict[str, Any] = {
            **cell._asdict(),
            **{"run": cell.run.folder, "digest": "d1", "head": "sequence", "labels": LABELS, "n": EXAMPLES},
            "scores": {name: metrics[name].score(outcomes) for name in ("accuracy", "macro-f1")},
            "metric": {"name": "accuracy"},
            "chance": {"accuracy": 100 / 3},
            "seconds": 0.5,
            "command": f"xlgrid evaluate --output {cell.path}",
            "outcomes": pack(outcomes),
        }
        write(cell.path, json.dumps(record))
    return plan


def written() -> Path:
    """The page of the study."""
    plan = made()
    with warnings.catch_warnings():
        # The browser has the fonts that matplotlib may lack.
        warnings.filterwarnings("ignore", "Glyph")
        for name, exhibit in plan.study.exhibits.items():
            exhibit.render(name, plan, "results/wide/exhibits")
        plan.study.exhibit("matrix").render("matrix", plan, "results/wide/exhibits", compare=True)
    study = page.load("wide", Path())
    parts = [page.overview(study), page.exhibits(study), page.language_table(study.languages, study.cells)]
    parts += [page.learning_curves(study.curves, study.cells), drill.script(study)]
    outputs = [nbformat.v4.new_output("display_data", {"text/html": str(part)}) for part in parts]
    cells = [nbformat.v4.new_markdown_cell("## Exhibits"), nbformat.v4.new_code_cell("", outputs=outputs[1:])]
    cells.insert(0, nbformat.v4.new_code_cell("", outputs=outputs[:1]))
    path = Path("results/wide/report.html").resolve()
    path.write_text(notebook.to_html(nbformat.v4.new_notebook(cells=cells)))
    return path
