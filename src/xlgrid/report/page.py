"""The parts of a study's report: functions for `notebooks/report.ipynb`. Each returns HTML that needs no network.

The data frames are those of the exhibits:

- Cells have one row per *planned* cell, with the columns `study` (which makes the cell), `task`, `encoder`, `method`,
  `source`, `target`, `seed`, `metric`, `score` (NaN without a result), `n` (examples), `seconds` and `cpu_seconds` (of
  the evaluation), and in some studies `checkpoint` (the step of the target's MLM run with whose weights the cell is
  evaluated, NaN for its end) and `run` (the run's folder).
- Curves have the columns `task`, `encoder`, `method`, `source`, `seed`, `step`, `score`, and `target` if runs are for
  one target each.
- Run records are the contents of `run.json`. The `recipe` has the names of the study, and the other entries have paths
  under some of the same keys, such as `encoder`.
"""

import base64
import io
import json
import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd
from markupsafe import Markup
from matplotlib.figure import Figure

from xlgrid.base.clock import duration
from xlgrid.base.errors import Damaged
from xlgrid.exhibits.drawing import plots
from xlgrid.exhibits.drawing.labels import labelled
from xlgrid.languages.sources import NONE, Source
from xlgrid.methods.variants import plain
from xlgrid.pairs.sample import described
from xlgrid.plan.plan import Plan
from xlgrid.products.evaluate import Cell
from xlgrid.products.exhibits import Exhibit
from xlgrid.products.report import Partial
from xlgrid.products.train import Run
from xlgrid.report import figures
from xlgrid.report import verdicts as first
from xlgrid.report.donors import donors as donors_of
from xlgrid.report.figures import ENTRY, having
from xlgrid.report.sweeps import MOST_SURFACES, read_choices, surface
from xlgrid.report.sweeps import table as table_of_sweeps
from xlgrid.results import units

RUN = ["task", "encoder", "method", "source", "seed"]
# The folders of Snakemake's measurements, in the order of the work. The folders of parts come before them.
STAGES = ("data", "text", "tokenizers", "encoders", "tokens")
AXES = ("task", "encoder", "method", "source", "target", "seed", "metric")
# More panels of learning curves, and a longer table of times, are folded.
MOST_PANELS, MOST_ROWS = 12, 30

Labels = Mapping[str, str]
# The macros of the template, which return HTML for some values.
_PARTS: Any = first.TEMPLATES.get_template("parts.html.j2").module


class Html(str):
    """HTML that a notebook renders if it is the value of the last expression of a cell."""

    def _repr_html_(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Report:
    """A study and its results."""

    name: str
    title: str
    description: str
    exhibits: Mapping[str, Any]
    languages: Mapping[str, Any]
    cells: pd.DataFrame
    curves: pd.DataFrame
    runs: Sequence[Mapping[str, Any]]
    preparation: pd.DataFrame
    claims: Mapping[str, Any] = field(default_factory=dict)
    choices: Sequence[Mapping[str, Any]] = ()
    labels: Labels = field(default_factory=dict)
    shared: str = ""
    root: Path = Path()
    plan: Plan | None = None
    is_partial: bool = False

    def path_of(self, file: str) -> Path:
        """The path of a file of an exhibit or of claims."""
        return self.root / (Partial(self.name).path_of(file) if self.is_partial else file)


def load(study_name: str | Path, root: str | Path | None = None, *, partial: bool = False) -> Report:
    """Read a study and its existing results. Nothing is written.

    Args:
        study_name: the name of the study (`demo`), or its file (`studies/demo.yaml`) as a path relative to `root`. If
            results were moved without the file, the copy next to them is read.
        root: the folder that contains results/. None: the working directory, or the nearest folder above it that has
            the study or its results, so that a notebook in results/demo/ reads the results around it.
        partial: whether exhibits and claims are those that `xlgrid partial` has made.

    Raises:
        FileNotFoundError: the study does not exist.
        ValueError: the study has mistakes, or a result is damaged.
    """
    from xlgrid.plan.load import file_in, project_of, read_plan
    from xlgrid.results import records

    root = project_of(study_name) if root is None else Path(root)
    plan = read_plan(file_in(root, study_name))
    study = plan.study
    cells = ((root / cell.path, {**cell._asdict(), "run": plan.owned(cell.run).folder}) for cell in plan.cells)
    return Report(
        name=study.name,
        title=study.title,
        description=study.description,
        exhibits=study.exhibits,
        languages=study.languages_used,
        cells=records.read_cells(cells, study.metrics),
        curves=records.read_curves(root / run.folder for run in plan.runs),
        runs=read_runs(root / run.path for run in plan.runs),
        preparation=read_preparation(plan, root),
        claims=study.claims,
        choices=read_choices(plan, root),
        labels=study.printed,
        shared=plan.shared,
        root=root,
        plan=plan,
        is_partial=partial,
    )


def read_runs(paths: Iterable[str | Path]) -> list[dict[str, Any]]:
    """The contents of each `run.json` that exists.

    Raises:
        ValueError: a file is not JSON; the message has its path.
    """
    records = []
    for path in filter(Path.exists, map(Path, paths)):
        try:
            records.append(json.loads(path.read_text(encoding="utf-8")))
        except json.JSONDecodeError as error:
            raise Damaged(f"{path} is not JSON ({error}): delete it and run the same command again", path) from error
    return records


def read_preparation(plan: Plan, root: Path = Path()) -> pd.DataFrame:
    """The measured time of every job before training on which cells of a study depend.

    The columns are `study` (which ran the job), `stage` and `seconds` (measured by Snakemake).
    """
    used = plan.rests_on(*plan.cells)
    measured = [product.benchmark(plan.study) for product in used if not isinstance(product, Run | Cell)]
    jobs = [
        {"study": job.study, "stage": job.stage, "seconds": float(pd.read_csv(root / job.path, sep="\t")["s"].sum())}
        for job in sorted(measured, key=lambda job: STAGES.index(job.stage) if job.stage in STAGES else -1)
        if (root / job.path).exists()
    ]
    return pd.DataFrame(jobs, columns=["study", "stage", "seconds"])


def overview(study: Report) -> Html:
    """The title, the description, and boxes with the numbers of finished and planned cells and runs, and the axes of
    the study."""
    cells = study.cells
    # A cell with several metrics is one cell; a source may have several runs, each for one target.
    each = cells.drop_duplicates(having(cells, [*RUN, "target"], "run", "checkpoint"))
    trained = each[each["source"] != NONE]
    runs = trained.assign(done=trained["score"].notna()).groupby(having(each, RUN, "run"), sort=False)["done"].all()
    scored = int(each["score"].notna().sum())
    counts = [("cells", scored, len(each)), ("runs with all their cells", int(runs.sum()), len(runs))]
    named = cells.assign(method=cells["method"].map(plain))
    names = {axis: [labelled(name, study.labels) for name in dict.fromkeys(named[axis])] for axis in AXES}
    axes = [(f"{axis}s".capitalize(), ", ".join(names[axis])) for axis in AXES]
    axes += [("Not made here", study.shared)] if study.shared else []
    codes = dict.fromkeys(
        code for axis in ("source", "target") for value in cells[axis] for code in Source(value).languages
    )
    languages = first.by_family((code, study.languages.get(code)) for code in codes)
    boxes = [(*count, _state(*count[1:])) for count in counts]
    return Html(_PARTS.overview(study, first.of_study(study), languages, boxes, axes, len(each) - scored))


def language_table(languages: Mapping[str, Any], cells: pd.DataFrame) -> Html:
    """A table of the languages of the cells: code, name, family, script, direction of writing, and their use; and a line
    about them as a sample."""
    uses = {
        axis: dict.fromkeys(code for value in cells[axis] for code in Source(value).languages)
        for axis in ("source", "target")
    }
    rows = []
    for code in uses["source"] | uses["target"]:
        language = languages.get(code)
        # An artificial language has no name other than its code.
        facts = {
            fact.capitalize(): getattr(language, fact, "") or "" for fact in ("name", "family", "script", "direction")
        }
        used_as = " and ".join(axis for axis, codes in uses.items() if code in codes)
        rows.append({"Code": code, **facts, "Used as": used_as})
    known = [languages[code] for code in uses["source"] | uses["target"] if code in languages]
    about = Markup("<p>{}</p>").format(described(known))
    return Html(f"{_table(pd.DataFrame(rows), 'plain short')}{about}")


def exhibits(study: Report) -> Html:
    """The rendered exhibits in the order of the study, embedded in the page, with links to their files."""
    parts = [_exhibit(Exhibit(study.name, name), exhibit, study.path_of) for name, exhibit in study.exhibits.items()]
    return Html("\n".join(parts) or _PARTS.missing("This study asks for no exhibits."))


def _exhibit(product: Exhibit, exhibit: Any, path_of: Callable[[str], Path]) -> str:
    files = {suffix: path for suffix in exhibit.suffixes if (path := path_of(product.file(suffix))).exists()}
    pictures = [files[suffix] for suffix in (".svg", ".png") if suffix in files]
    caption, numbers = exhibit.caption, ""
    if ".html" in files:
        # A table contains its caption.
        body, caption = _wide(exhibit.title, files[".html"]), ""
    elif pictures:
        body = _picture(pictures[0], product.exhibit, exhibit.title)
        if ".md" in files:
            numbers = _PARTS.numbers(exhibit.title, *figures.numbers(files[".md"].read_text(encoding="utf-8")))
    else:
        body = _PARTS.missing("Not made yet. To make it:", f"snakemake --cores all {product.path}")
    comparison = Markup(files["-published.html"].read_text(encoding="utf-8")) if "-published.html" in files else ""
    frames = first.compared(path_of(product.folder), [product.exhibit])
    score = first.score(frames.values()) if frames else ""
    links = [(f"{path.parent.name}/{path.name}", suffix[1:]) for suffix, path in files.items()]
    return str(_PARTS.exhibit(product.exhibit, exhibit.title, body, caption, numbers, comparison, score, links))


def verdicts(study: Report) -> Html:
    """The verdicts of a study's claims, and the published numbers beside ours."""
    return Html(first.first_part(study, _figure))


def donors(study: Report) -> Html:
    """Tables of the languages that give and receive; nothing for a study with few languages."""
    tables = [(title, Markup(_table(rows, "plain"))) for title, rows in donors_of(study.cells, study.labels)]
    return Html(_PARTS.donors(tables) if tables else "")


def _wide(title: str, table: Path) -> Markup:
    return Markup(_PARTS.wide(title, Markup(table.read_text(encoding="utf-8"))))


def _picture(path: Path, name: str, title: str) -> Markup:
    """The picture of an exhibit, which scrolls on a narrow screen rather than being too small to read."""
    if path.suffix != ".svg":
        return Markup(_PARTS.image(base64.b64encode(path.read_bytes()).decode(), path.suffix[1:], title))
    return Markup(_PARTS.wide(title, Markup(figures.inlined(path.read_text(encoding="utf-8"), name, title))))


def spread(cells: pd.DataFrame, labels: Labels = MappingProxyType({})) -> Html:
    """A strip plot of the deviation of each seed from the mean over the seeds of its cell, without variants of methods."""
    deviations = figures.seed_deviations(cells[cells["method"].map(plain) == cells["method"]])
    if deviations.empty:
        return Html(_PARTS.missing("No cell has two seeds with a result yet."))
    with plots.style():
        return _figure(
            figures.spread(_labelled(deviations, labels)),
            "Deviation of each seed from the mean over seeds, by encoder and method",
        )


def sweeps(study: Report) -> Html | None:
    """What the sweeps of a study tried, with bounds, seeds and cost, what won, and the surfaces of dev scores; None for a study
    without sweeps."""
    if not study.choices:
        return None
    runs = sum(choice["runs"] for choice in study.choices)
    made = [choice for choice in study.choices if "chosen" in choice]
    seconds = sum(choice["seconds"] for choice in made)
    finished = f"{len(made):,} of {len(study.choices):,}"
    text = f"Runs tried: {runs:,}. Sweeps that are finished: {finished}. Time of their runs: {duration(seconds)}."
    with plots.style():
        alt = "Mean dev score of each setting that was tried"
        drawn = Markup("").join(Markup(_figure(surface(choice), alt)) for choice in made[:MOST_SURFACES])
    return Html(
        _PARTS.sweeps(text, Markup(_table(table_of_sweeps(study.choices), "plain")), drawn, len(made) - MOST_SURFACES)
    )


def learning_curves(curves: pd.DataFrame, cells: pd.DataFrame, labels: Labels = MappingProxyType({})) -> Html:
    """Small multiples of the score on the source's dev set during training.

    Args:
        cells: the cells of the same runs, which have the metrics of the curves.
    """
    if curves.empty:
        return Html(_PARTS.missing("No run has written a learning curve yet."))
    quantity = units.quantity(cells.loc[cells["task"].isin(curves["task"].unique()), "metric"])
    # The lines of the variants of a method are in one panel.
    curves = _labelled(curves.assign(method=curves["method"].map(plain)), labels)
    with plots.style():
        alt = "Dev score against training step, one panel per task, encoder and method"
        figure = _figure(figures.curves(curves, labelled(quantity, labels)), alt)
    panels = len(curves[["task", "encoder", "method"]].drop_duplicates())
    return _folded(f"The curves of {panels} tasks, encoders and methods", figure, panels > MOST_PANELS)


def preparation(jobs: pd.DataFrame) -> Html:
    """A table of the time of the stages before training, from the result of `read_preparation`."""
    if jobs.empty:
        return Html(_PARTS.missing("The stages before training have not been measured."))
    rows = [
        {
            "Stage": stage,
            "Study": study,
            "Jobs": len(seconds),
            "Time": duration(seconds.sum()),
            "Each": duration(seconds.mean()),
        }
        for (stage, study), seconds in jobs.groupby(["stage", "study"], sort=False)["seconds"]
    ]
    return _table(pd.DataFrame(rows), "cost")


def cost(report: Report) -> Html:
    """A table of the time of training and evaluation by task, encoder and method, over the existing results.

    The runs and cells of an extended study are in the report of that study. A record without `seconds` counts as 0. The
    CPU time is a dash if some record lacks it.
    """
    keys = ["task", "encoder", "method"]
    cells = report.cells[report.cells["study"] == report.name]
    runs = [record for record in report.runs if record["recipe"]["study"] == report.name]
    # Several metrics of one cell share one evaluation.
    scored = cells.dropna(subset="score")
    scored = scored.drop_duplicates(having(scored, [*RUN, "target"], "checkpoint"))
    times = {
        "seconds": [float(record.get("seconds") or 0) for record in runs],
        "cpu_seconds": [float(record.get("cpu_seconds", "nan")) for record in runs],
    }
    trained = pd.DataFrame([{key: record["recipe"][key] for key in keys} for record in runs], columns=keys)
    parts = [
        part.groupby(keys, sort=False).agg(
            size=("seconds", "size"),
            sum=("seconds", "sum"),
            cpu=("cpu_seconds", lambda seconds: seconds.sum(skipna=False)),
        )
        for part in (trained.assign(**times), scored)
    ]
    # Rows are in the order of the study.
    planned = dict.fromkeys([*cells[keys].itertuples(index=False, name=None), *parts[0].index])
    order = pd.MultiIndex.from_tuples([key for key in planned if any(key in part.index for part in parts)], names=keys)
    both = pd.concat([part.reindex(order, fill_value=0.0) for part in parts], axis=1)
    if both.empty:
        return Html(_PARTS.missing("Nothing has run yet."))
    rows = [[*(labelled(name, report.labels) for name in key), *_costs(*row)] for key, *row in both.itertuples()]
    total = _costs(*both.sum(skipna=False))
    rows.append(["All", "", "", *total])
    head = ["Task", "Encoder", "Method", "Runs", "Training", "Per run", "Cells", "Evaluation", "Total", "CPU"]
    summary = (
        f"{total[0]} runs and {total[3]} cells took {total[5]}: the time of {len(both)} tasks, encoders and methods"
    )
    return _folded(summary, _table(pd.DataFrame(rows, columns=head), "cost summed"), len(both) > MOST_ROWS)


def _folded(summary: str, body: Html, is_long: bool) -> Html:
    """A part of a report, which is behind its summary if it is long."""
    return Html(_PARTS.folded(summary, Markup(body))) if is_long else body


def _costs(
    runs: float, training: float, training_cpu: float, cells: float, evaluation: float, evaluation_cpu: float
) -> list[str]:
    per_run = duration(training / runs) if runs else "–"
    cpu = training_cpu + evaluation_cpu
    texts = [f"{runs:,.0f}", duration(training), per_run, f"{cells:,.0f}", duration(evaluation)]
    return [*texts, duration(training + evaluation), "–" if math.isnan(cpu) else duration(cpu)]


def environment(runs: Sequence[Mapping[str, Any]]) -> Html:
    """A table of the devices, versions and commits in the run records, with a note where the runs differ."""
    recorded: dict[str, Counter[str]] = {}
    for record in runs:
        named = {"device": record.get("device"), **record.get("versions", {}), "commit of xlgrid": record.get("commit")}
        for what, value in named.items():
            if value is not None:
                recorded.setdefault(what, Counter())[str(value)] += 1
    if not recorded:
        return Html(_PARTS.missing("No run has recorded its environment yet."))
    rows = []
    for what, values in recorded.items():
        counted = [f"{value} ({n} run{'s' * (n > 1)})" for value, n in values.most_common()]
        differs = len(values) > 1
        row = {"What": what, "Value": ", ".join(counted if differs else values), "Note": "the runs differ" * differs}
        rows.append(row)
    return _table(pd.DataFrame(rows), "plain")


def summary(cells: pd.DataFrame) -> pd.DataFrame:
    """The mean and standard deviation over seeds for every task, encoder, method, source, target, metric and
    checkpoint."""
    scores = cells.groupby(having(cells, ENTRY, "checkpoint"), sort=False, dropna=False)["score"]
    return scores.agg(mean="mean", sd="std", n_seeds="count", n_seeds_expected="size").reset_index()


def _labelled(frame: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """A frame with the labels of a study in place of names. A metric keeps its name, by which its unit is known."""
    axes = [axis for axis in ENTRY if axis in frame and axis != "metric"]
    return frame.assign(**{axis: frame[axis].map(lambda name: labelled(name, labels)) for axis in axes})


def _state(done: int, planned: int) -> str:
    return "complete" if done >= planned else "incomplete" if done else "missing"


def _table(rows: pd.DataFrame, style: str) -> Html:
    """A frame of texts as an HTML table with a class of the style sheet."""
    with pd.option_context("display.max_colwidth", None):
        table = rows.to_html(index=False, border=0, classes=f"exhibit {style}")
    return Html(_PARTS.wide(", ".join(map(str, rows.columns[:3])), Markup(table)))


def _figure(figure: Figure, alt: str) -> Html:
    """A figure of the report's own, which scrolls on a narrow screen like the pictures of exhibits."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    svg = out.getvalue()
    body = figures.inlined(svg, f"own-{zlib.crc32(svg.encode()):08x}", alt)
    return Html(Markup('<figure class="exhibit">{}</figure>').format(Markup(_PARTS.wide(alt, Markup(body)))))
