"""What is behind the entries of a report: cells, runs and examples, as compressed data in the page.

`template/drill.js` shows them in a dialog. Without scripts, a page is the same without them.
"""

import base64
import json
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from xlgrid.exhibits.drawing.labels import labelled
from xlgrid.heads import ALL_HEADS
from xlgrid.heads.head import Example
from xlgrid.heads.metrics import LABEL
from xlgrid.languages.sources import NONE
from xlgrid.report import predictions, trace
from xlgrid.report.page import Html, Report
from xlgrid.results import records

if TYPE_CHECKING:
    from xlgrid.plan.plan import Plan
    from xlgrid.products.evaluate import Cell
    from xlgrid.products.train import Run

# The most cells of a page, the most of these with examples, the most examples of a cell, and the most labels of a matrix.
CELLS, WITH_EXAMPLES, EXAMPLES, LABELS = 20_000, 1_000, 10, 30
# What a page shows of the record of a run, after some settings.
OF_RUN = ("steps", "best_step", "dev_score", "n_train", "n_dev", "parameters", "inputs", "seconds", "device", "commit")
# Why a cell has no examples.
NO_ANSWERS = "Models of this task give no answers in single examples."
EARLIER = "An earlier version of xlgrid made this cell without its answers. To have examples, delete it and run the study again."
# The most characters of a text.
LONGEST = 240


def script(study: Report) -> Html:
    """An HTML element with the details of a study, which browsers without scripts ignore."""
    if study.plan is None:
        return Html()
    text = json.dumps(details(study.plan, study.root), ensure_ascii=False, separators=(",", ":"))
    packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    return Html(f'<script type="application/json" id="drill">"{packed}"</script>')


def details(plan: "Plan", root: Path = Path()) -> dict[str, Any]:
    """The details of a study: its exhibits, cells and runs.

    Returns:
        - `exhibits`: name -> `entries`, which has for each entry from left to right and from top to bottom the numbers of its
          cells, and None for a blank entry; and the names of the `rows` and `columns`;
        - `cells`: for each cell its `axes` and its `path`, and with a result its `scores`, each with its chance, and more;
        - `runs`: for each run its `facts`, its learning `curve`, and its files;
        - `study`: its name, and `again`: the command that makes files of the study again, without the files.
    """
    cells = plan.cells[:CELLS]
    metrics = {cell: dict.fromkeys(plan.study.metrics[cell.task]) for cell in cells}
    exhibits = {name: entries for name in plan.study.exhibits if (entries := _entries(plan, name, metrics))}
    known: dict[Cell, dict[str, Any]] = {}
    runs: dict[Run, dict[str, Any]] = {}
    read: dict[Cell, Mapping[str, Any]] = {}
    printed = plan.study.printed
    for cell in cells:
        known[cell] = {"axes": [str(value) for value in cell[1:]], "path": cell.path}
        run, path = plan.owned(cell.run), root / cell.path
        if cell.source != NONE and (root / run.path).exists():
            if run not in runs:
                runs[run] = _run(plan, run, root)
            known[cell]["run"] = runs[run]["number"] = runs[run].get("number", len(runs) - 1)
        if path.exists():
            read[cell] = record = records.read_expected(path, cell._asdict())
            chance = record.get("chance") or {}
            scores = {
                labelled(name, printed): [records.score(path, record, name), chance.get(name)] for name in metrics[cell]
            }
            known[cell] |= {"scores": scores, "log": cell.log(plan.study)}
            known[cell] |= {name: record.get(name) for name in ("n", "seconds", "digest", "command")}
    for cell, found in _Examples(plan, root, read).of_cells():
        known[cell] |= found
    parts = {"exhibits": exhibits, "cells": [*known.values()], "runs": [*runs.values()]}
    return {"study": plan.study.name, "again": trace.again(plan, []), **parts}


def _run(plan: "Plan", run: "Run", root: Path) -> dict[str, Any]:
    record, points = records.read_curve(root / run.folder) or ({}, [])
    facts = trace.settings_used(record.get("recipe", {}).get("training", {}))
    facts |= {name: record[name] for name in OF_RUN if name in record}
    if facts.get("parameters"):
        facts["parameters"] = ", ".join(f"{count:,} {name}" for name, count in facts["parameters"].items())
    return {
        "folder": run.folder,
        "facts": [[name.replace("_", " "), value] for name, value in facts.items() if value is not None],
        "curve": [[point["step"], point["score"]] for point in points],
        "log": run.log(plan.study),
        **{name: record.get(name) for name in ("digest", "command")},
    }


class _Examples(NamedTuple):
    """The examples of the cells that have been read."""

    plan: "Plan"
    root: Path
    read: Mapping["Cell", Mapping[str, Any]]

    def of_cells(self) -> Iterator[tuple["Cell", dict[str, Any]]]:
        """For one seed of each run and target: examples that it got wrong, and the labels that it confused.

        Each example has the answer of another method, and that in the language of the training if the test examples are
        translations of one another.
        """
        first: dict[Cell, Cell] = {}
        for cell in self.read:
            first.setdefault(cell._replace(seed=0), cell)
        together: dict[Any, list[Cell]] = defaultdict(list)
        for cell in [*first.values()][:WITH_EXAMPLES]:
            together[cell.task, cell.encoder, cell.source].append(cell)
        for cells in together.values():
            found: dict[Cell, list[Example]] = {}
            without: dict[Cell, str] = {}
            for cell in cells:
                found[cell], without[cell] = self._found(cell)
            for cell in cells:
                same = [each for each in cells if each.target == cell.target and each.seed == cell.seed]
                other = next((each for each in same if each != cell and found[each]), None)
                home = next((each for each in cells if found[each] and self._is_home(each, cell)), None)
                shown = self._wrong(cell, found, other, home) if found[cell] else {"without": without[cell]}
                yield cell, self._labels(cell) | shown

    def _found(self, cell: "Cell") -> tuple[list[Example], str]:
        """The examples of a cell, and the reason if there are none."""
        try:
            found = predictions.examples(self.plan, cell, self.read[cell], self.root)
        except (OSError, ValueError) as error:
            return [], f"The examples of this cell cannot be read: {error}."
        return found or [], EARLIER if found is None else NO_ANSWERS

    def _data(self, cell: "Cell") -> pa.Table:
        return predictions.rows_of(str(self.root / predictions.data_path(self.plan, cell)))

    def _texts(self, cell: "Cell", rows: Sequence[int]) -> list[str]:
        """The inputs of some rows of the data of a cell."""
        chosen = self._data(cell).take(pa.array(rows, pa.int64()))
        return [" ‖ ".join(texts) for texts in zip(*predictions.inputs(self.plan, cell, chosen).values(), strict=True)]

    def _is_home(self, other: "Cell", cell: "Cell") -> bool:
        """Whether a cell is in the language of the training of another one, with translations of its examples: as far as the
        data show, row i has the same content."""
        if other == cell or other.target != cell.source or other.method != cell.method:
            return False
        task = self.plan.study.tasks[cell.task].task
        if not (column := task.head.parallel(task)):
            return False
        values = [self._data(each)[column].to_pylist() for each in (cell, other)]
        return values[0] == values[1] and len({json.dumps(value) for value in values[0]}) > 1

    def _labels(self, cell: "Cell") -> dict[str, Any]:
        """The precision, the recall and the F1 of each label or type, and the confusion matrix, for heads that have them."""
        record = self.read[cell]
        head, labels = ALL_HEADS.find(record["head"]), record["labels"]
        outcomes = records.outcomes(self.root / cell.path, record)
        of_label = {each.name: each for each in head.metrics(labels) if LABEL in each.name}
        names = [name.partition(LABEL)[2] for name in of_label if name.startswith(f"f1{LABEL}")]
        measures = [f"{measure}{LABEL}" for measure in ("precision", "recall", "f1")]
        scores = [[name, *(of_label[each + name].score(outcomes) for each in measures)] for name in names]
        counts = head.confusion(labels, outcomes) if len(labels) <= LABELS else None
        matrix = {} if counts is None else {"matrix": {"labels": labels, "counts": counts.tolist()}}
        return {"labels": scores or None, **matrix}

    def _wrong(
        self, cell: "Cell", found: Mapping["Cell", Sequence[Example]], other: "Cell | None", home: "Cell | None"
    ) -> dict[str, Any]:
        """Some wrong answers, beside those of two other cells in the same examples."""
        wrong = [each for each in found[cell] if each.is_right is not True and each.gold != each.predicted]
        # The same rows are shown for cells with the same data, as far as both are wrong.
        chosen = sorted(sorted(wrong, key=lambda each: zlib.crc32(str(each.row).encode()))[:EXAMPLES])
        rows = [each.row for each in chosen]
        translations = self._texts(home, rows) if home else [""] * len(rows)
        beside = [{each.row: each.predicted for each in found[of]} if of else {} for of in (other, home)]
        shown, head = [], self.plan.study.tasks[cell.task].task.head
        for example, text, translation in zip(chosen, self._texts(cell, rows), translations, strict=True):
            words = text.split(" ") if head.reads_words else None
            answers = [example.gold, example.predicted, *(of.get(example.row, "") for of in beside)]
            texts = _clipped(text, example.gold), _clipped(translation), *map(_clipped, _briefly(words, answers))
            shown.append([example.row, *texts])
        is_graded = any(each.is_right is None for each in found[cell])
        return {
            "wrong": None if is_graded else sum(each.is_right is False for each in found[cell]),
            "examples": shown,
            "other": other and other.method,
            "home": home and str(home.target),
        }


def _briefly(words: Sequence[str] | None, answers: Sequence[str]) -> list[str]:
    """The gold answer, the predicted one, and further ones. Of labels of words, only those where the first two differ."""
    labels = [answer.split(" ") for answer in answers]
    if words is None or len(labels[0]) != len(words):
        return [*answers]
    padded = [[*each, *["–"] * (len(words) - len(each))] for each in labels]
    at = [place for place in range(len(words)) if padded[0][place] != padded[1][place]]
    return [
        ", ".join(f"{words[place]} {each[place]}" for place in at) if answer else ""
        for each, answer in zip(padded, answers, strict=True)
    ]


def _clipped(text: str, around: str = "") -> str:
    """A text of at most LONGEST characters, with the place where another text begins if it has this text."""
    start = max(0, text.find(around.split(" / ")[0]) - LONGEST // 2) if around and len(text) > LONGEST else 0
    end = start + LONGEST
    return "…" * (start > 0) + text[start:end] + "…" * (end < len(text))


def _entries(plan: "Plan", name: str, metrics: Mapping["Cell", dict[str, None]]) -> dict[str, Any] | None:
    """The `entries` of an exhibit, and the names of its `rows` and `columns`; None if these are not known without results.

    Args:
        metrics: the cells, in the order of their numbers, and the metrics of each, to which those of the exhibit are added.
    """
    from xlgrid.exhibits.drawing.sheet import lines

    # Without files, the frame has a row for each planned cell.
    unmade = plan.unmade
    try:
        rendering = plan.study.exhibit(name).rendering(unmade)
    except (ValueError, OSError):
        return None
    # Learning curves have runs behind them, and not cells.
    if rendering.behind is None or not {"path", "metric"} <= {*rendering.behind}:
        return None
    own, numbers = [*metrics.values()], {cell.path: number for number, cell in enumerate(unmade.cells[:CELLS])}
    keys = [key for key in (*rendering.sheet.rows, *rendering.sheet.axes) if key in rendering.behind]
    # The metric of a difference of scores is named after it.
    known = {name: {*entry.task.all_metrics} for name, entry in plan.study.tasks.items()}
    behind: dict[Any, dict[int, None]] = defaultdict(dict)
    found = rendering.behind[rendering.behind["path"].isin(numbers)]
    for *key, path, task, metric in found[[*keys, "path", "task", "metric"]].itertuples(index=False, name=None):
        behind[tuple(key)][numbers[path]] = None
        if metric in known[task]:
            own[numbers[path]][metric] = None
    printed, entries = lines(rendering.sheet), rendering.sheet.entries
    keys_of = dict(zip(entries.index, entries[keys].itertuples(index=False, name=None), strict=True))
    return {
        "entries": [entry and [*behind[keys_of[entry.Index]]] for line in printed for entry in line.entries],
        "rows": [" ".join(key for key, _ in line.keys) for line in printed],
        "columns": [" ".join(names) for names in rendering.sheet.columns],
    }
