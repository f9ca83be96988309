"""The report of a study: what the cells of `notebooks/report.ipynb` call, each returning HTML that needs no network.

Frames are those of the exhibits. Cells have one row per *planned* cell: `task`, `encoder`, `method`, `source`,
`target`, `seed`, `metric`, `score` (percent, NaN without a result), `n` (examples), `seconds` (of evaluation), and maybe
`snapshot` (the step of its run on text that the target is spoken as of, NaN for the end) and `run` (the run's folder).
Curves have `task`, `encoder`, `method`, `source`, `seed`, `step`, `score`, and maybe `target`, of runs for one each. Run records are the contents of `run.json`.
"""

import base64
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from xlgrid.exhibits import plots
from xlgrid.exhibits.sheet import number
from xlgrid.languages.sources import Source

RUN = ["task", "encoder", "method", "source", "seed"]
# Folders of Snakemake's measurements, in the order of the work.
STAGES = ("data", "text", "encoders", "tokens")
ENTRY = ["task", "encoder", "method", "source", "target", "metric"]


class Html(str):
    """HTML that a notebook shows as such when it is the last expression of a cell."""

    def _repr_html_(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Report:
    """What a report is made of; `folder` is `results/{study}`."""

    name: str
    title: str
    description: str
    folder: Path
    exhibits: Mapping[str, Any]
    languages: Mapping[str, Any]
    cells: pd.DataFrame
    curves: pd.DataFrame
    runs: Sequence[Mapping[str, Any]]
    preparation: pd.DataFrame
    claims: Mapping[str, Any] = field(default_factory=dict)


def load(study_file: str | Path, folder: str | Path) -> Report:
    """Read a study and whatever results it has in `folder` (`results/{study}`)."""
    from xlgrid.plan import grid
    from xlgrid.plan.load import load_study
    from xlgrid.results import records

    study = load_study(Path(study_file))
    return Report(
        name=study.name,
        title=study.title,
        description=study.description,
        folder=Path(folder),
        exhibits=study.exhibits,
        languages=study.languages_used(),
        cells=records.read_cells(
            ((cell.path, {**cell._asdict(), "run": cell.run.folder}) for cell in grid.cells(study)), study.metrics
        ),
        curves=records.read_curves(run.folder for run in grid.runs(study)),
        runs=read_runs(run.folder for run in grid.runs(study)),
        preparation=read_preparation(folder),
        claims=study.claims,
    )


def read_runs(folders: Iterable[str | Path]) -> list[dict[str, Any]]:
    """The contents of the `run.json` of each run that has one, with the entries of its recipe.

    Raises:
        ValueError: a file is not JSON; the message names it.
    """
    found = []
    for path in (Path(folder) / "run.json" for folder in folders):
        if not path.exists():
            continue
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            found.append({**record.get("recipe", {}), **record})
        except json.JSONDecodeError as error:
            raise ValueError(f"{path} is not JSON ({error}): delete it and run the same command again") from error
    return found


def read_preparation(folder: str | Path) -> pd.DataFrame:
    """Columns `stage` and `seconds` of every job before training, from what Snakemake measured in `folder/benchmarks`."""
    found = [
        {"stage": stage, "seconds": float(pd.read_csv(path, sep="\t")["s"].sum())}
        for stage in STAGES
        for path in sorted((Path(folder) / "benchmarks" / stage).glob("**/*.tsv"))
    ]
    return pd.DataFrame(found, columns=["stage", "seconds"])


def overview(name: str, title: str, description: str, cells: pd.DataFrame) -> Html:
    """Titles, description, and boxes: how many cells and runs are done of those planned, and what the study varies."""
    # A cell with several metrics is one cell; runs of one source, each for one target, are several.
    each = cells.drop_duplicates(_having(cells, [*RUN, "target"], "run", "snapshot"))
    runs = each.assign(done=each["score"].notna()).groupby(_having(each, RUN, "run"), sort=False)["done"].all()
    counts = {
        "cells": (int(each["score"].notna().sum()), len(each)),
        "runs with all their cells": (int(runs.sum()), len(runs)),
    }
    boxes = "".join(
        f'<div class="figure {_state(done, planned)}"><b>{done}<small> / {planned}</small></b>{escape(what)}'
        f'<meter min="0" max="{max(planned, 1)}" value="{done}">{done} of {planned}</meter></div>'
        for what, (done, planned) in counts.items()
    )
    varied = "".join(
        f"<dt>{escape(label)}</dt><dd>{_listed(cells[column])}</dd>"
        for label, column in (
            ("Tasks", "task"),
            ("Encoders", "encoder"),
            ("Methods", "method"),
            ("Sources", "source"),
            ("Targets", "target"),
            ("Seeds", "seed"),
            ("Metrics", "metric"),
        )
    )
    left = counts["cells"][1] - counts["cells"][0]
    note = (
        "All planned cells have a result." if not left else f"Partial report: planned cells without a result: {left}."
    )
    return Html(
        f'<header class="overview"><p class="kicker">xlgrid report</p><h1>{escape(name)}</h1>'
        f'<p class="subtitle">{escape(title)}</p><p>{escape(description)}</p>'
        f'<div class="figures">{boxes}</div><p class="{"complete" if not left else "incomplete"} verdict">{note}</p>'
        f"<dl>{varied}</dl></header>"
    )


def language_table(languages: Mapping[str, Any], cells: pd.DataFrame) -> Html:
    """The languages of the cells: code, name, family, script, direction of writing, and where they are used."""
    uses = {column: _codes(cells[column]) for column in ("source", "target")}
    rows = []
    for code in dict.fromkeys(part for codes in uses.values() for part in codes):
        language = languages.get(code)
        # An artificial language has no name beside its code.
        facts = [str(getattr(language, fact, "") or "") for fact in ("name", "family", "script", "direction")]
        use = " and ".join(column for column, codes in uses.items() if code in codes)
        rows.append([f'<th scope="row">{escape(code)}</th>', *_td([*facts, use])])
    return _table(["Code", "Name", "Family", "Script", "Direction", "Used as"], rows)


def coverage(cells: pd.DataFrame) -> Html:
    """Seeds with a result of the seeds planned, for each method and source (rows) and target (columns)."""
    parts = []
    for (task, encoder), one in cells.groupby(["task", "encoder"], sort=False):
        # A cell with several metrics is one cell.
        one = one.drop_duplicates(_having(one, [*RUN, "target"], "snapshot"))
        if "snapshot" in one:
            steps = one["snapshot"].map("@{:.0f}".format).where(one["snapshot"].notna(), "")
            one = one.assign(target=one["target"] + steps)
        targets = list(dict.fromkeys(one["target"]))
        groups = one.groupby(["method", "source", "target"], sort=False)["score"].agg(["count", "size"])
        done = {key: (int(n), int(planned)) for key, n, planned in groups.itertuples()}
        rows = []
        for method, source in one[["method", "source"]].drop_duplicates().itertuples(index=False):
            row = [f'<th scope="row">{escape(str(key))}</th>' for key in (method, source)]
            for target in targets:
                n, planned = done.get((method, source, target), (0, 0))
                row.append(f'<td class="{_state(n, planned)}">{n}/{planned}</td>' if planned else "<td></td>")
            rows.append(row)
        caption = (
            f"<strong>{escape(str(task))}, {escape(str(encoder))}</strong> <small>Seeds with a result/planned.</small>"
        )
        parts.append(_table(["Method", "Source", *map(str, targets)], rows, caption, "coverage"))
    return Html("\n".join(parts))


def exhibits(planned: Mapping[str, Any], folder: str | Path) -> Html:
    """The rendered exhibits in the order of the study, embedded, with links to their files.

    Args:
        planned: name -> exhibit with `title`, `caption` and, if it is compared with published numbers, `published`.
        folder: `results/{study}`; the files are in its `exhibits/`, and links are relative to it.
    """
    parts = []
    for name, exhibit in planned.items():
        files = {suffix: Path(folder) / "exhibits" / f"{name}{suffix}" for suffix in (".html", ".svg", ".png")}
        caption = f"<figcaption>{escape(exhibit.caption)}</figcaption>" if exhibit.caption else ""
        if files[".html"].exists():
            # The table's own caption says all.
            body = f'<div class="wide">{files[".html"].read_text(encoding="utf-8")}</div>'
        elif files[".svg"].exists():
            body = _image(files[".svg"].read_bytes(), "svg+xml", exhibit.title) + caption
        elif files[".png"].exists():
            body = _image(files[".png"].read_bytes(), "png", exhibit.title) + caption
        else:
            command = f"snakemake {Path(folder) / 'exhibits' / name}.csv"
            body = f'<p class="missing">Not made yet. To make it: <code>{escape(command)}</code></p>{caption}'
        stems = [name]
        # Files of a comparison that the study no longer asks for may still be there.
        if getattr(exhibit, "published", None):
            stems.append(f"{name}-published")
            comparison = Path(folder) / "exhibits" / f"{name}-published.html"
            if comparison.exists():
                table = f'<div class="wide">{comparison.read_text(encoding="utf-8")}</div>'
                body += f"<details open><summary>Ours and the published numbers</summary>{table}</details>"
        links = ", ".join(
            f'<a href="exhibits/{escape(path.name)}">{path.name.removeprefix(name)[1:]}</a>'
            for stem in stems
            for path in sorted((Path(folder) / "exhibits").glob(f"{stem}.*"))
            if path.stem == stem
        )
        files_line = f'<p class="files">{escape(name)}: {links}</p>' if links else ""
        parts.append(f'<h3 id="exhibit-{escape(name)}">{escape(exhibit.title)}</h3>')
        parts.append(f'<figure class="exhibit">{body}{files_line}</figure>')
    return Html("\n".join(parts) or '<p class="missing">This study asks for no exhibits.</p>')


def claims(planned: Mapping[str, Any], folder: str | Path) -> Html | None:
    """The verdicts of a study's claims, as `xlgrid.exhibits.claims.render` left them in `folder`; nothing for a study without any."""
    if not planned:
        return None
    table, picture = (Path(folder) / f"claims{suffix}" for suffix in (".html", ".svg"))
    if table.exists() and picture.exists():
        alt = "Effect of each claim with its interval"
        body = (
            f'<div class="wide">{table.read_text(encoding="utf-8")}</div>{_image(picture.read_bytes(), "svg+xml", alt)}'
        )
        links = ", ".join(f'<a href="claims.{kind}">{kind}</a>' for kind in ("csv", "html", "md", "svg"))
        body += f'<p class="files">claims: {links}</p>'
    else:
        body = f'<p class="missing">Not judged yet. To judge them: <code>{escape(f"snakemake {table}")}</code></p>'
    return Html(f'<h3 id="claims">The paper\'s claims</h3><figure class="exhibit claims">{body}</figure>')


def spread(cells: pd.DataFrame) -> Html:
    """Strip plot of how far each seed lies from the mean of its cell's seeds."""
    deviations = seed_deviations(cells)
    if deviations.empty:
        return Html('<p class="missing">No cell has two seeds with a result yet.</p>')
    with plots.style():
        return _figure(spread_figure(deviations), "Deviation of each seed from the mean over seeds, by method")


def seed_deviations(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells with two seeds or more, and their `deviation` (points) from the mean over seeds of the same cell."""
    scored = cells.dropna(subset="score")
    seeds = scored.groupby(_having(scored, ENTRY, "snapshot"), sort=False, dropna=False)["score"]
    return scored.assign(deviation=scored["score"] - seeds.transform("mean"))[seeds.transform("size") > 1]


def spread_figure(deviations: pd.DataFrame) -> Figure:
    """One panel per task and encoder, one line per method, one mark per cell and seed; a bar spans ± one deviation.

    Args:
        deviations: as `seed_deviations` returns them, not empty.
    """
    panels = list(deviations.groupby(["task", "encoder"], sort=False))
    heights = [0.9 + 0.34 * one["method"].nunique() for _, one in panels]
    figure = Figure(figsize=(7.2, sum(heights)), layout="constrained")
    seeds = sorted(set(deviations["seed"]))
    reach = 1.08 * max(0.5, float(deviations["deviation"].abs().max()))
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    for ax, ((task, encoder), one) in zip(axes, panels, strict=True):
        methods = list(dict.fromkeys(one["method"]))
        for i, seed in enumerate(seeds):
            # Seeds are set apart vertically instead of at random.
            aside = 0.26 * (2 * (i + 0.5) / len(seeds) - 1)
            mine = one[one["seed"] == seed]
            ax.plot(
                mine["deviation"],
                [methods.index(method) + aside for method in mine["method"]],
                plots.MARKERS[i % len(plots.MARKERS)],
                color=plots.COLOURS[i % len(plots.COLOURS)],
                markersize=3.5,
                alpha=0.65,
                markeredgewidth=0,
                label=str(seed),
            )
        for y, method in enumerate(methods):
            mine = one[one["method"] == method]
            free = len(mine) - mine.drop_duplicates(_having(mine, ENTRY, "snapshot")).shape[0]
            sd = float(np.sqrt((mine["deviation"] ** 2).sum() / free))
            ax.plot([-sd, sd], [y, y], color=plots.INK, linewidth=1.2, solid_capstyle="butt", zorder=0.5)
            text = number(sd, 1)
            ax.annotate(text, (1, y), (4, 0), ax.get_yaxis_transform(), "offset points", va="center", fontsize=8)
        ax.set_yticks(range(len(methods)), methods)
        ax.set(xlim=(-reach, reach), ylim=(len(methods) - 0.5, -0.5))
        ax.axvline(0, color=plots.FAINT, linewidth=0.7, zorder=0)
        ax.set_title(f"{task}, {encoder}", loc="left", fontsize=9.5, fontweight="bold")
        ax.set_title("sd", loc="right", fontsize=8)
        _bare(ax)
    axes[-1].set_xlabel("deviation from the mean over seeds (points)")
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, title="seed", loc="outside right upper", frameon=False)
    return figure


def learning_curves(curves: pd.DataFrame) -> Html:
    """Small multiples of the score on the source's dev set during training."""
    if curves.empty:
        return Html('<p class="missing">No run has written a learning curve yet.</p>')
    with plots.style():
        return _figure(curves_figure(curves), "Dev score against training step, one panel per task and method")


def curves_figure(curves: pd.DataFrame) -> Figure:
    """One panel per task, encoder and method; a thin line per run, coloured and dashed by source.

    Args:
        curves: not empty.
    """
    panels = list(curves.groupby(["task", "encoder", "method"], sort=False))
    across = 2 if len(panels) == 4 else min(3, len(panels))
    down = -(-len(panels) // across)
    figure = Figure(figsize=(max(4.6, 2.5 * across), 0.5 + 1.9 * down), layout="constrained")
    sources = list(dict.fromkeys(curves["source"]))
    axes = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
    handles: dict[str, Any] = {}
    for ax, ((task, encoder, method), one) in zip(axes, panels, strict=False):
        for (source, *_), run in one.groupby(_having(one, ["source", "seed"], "target"), sort=False):
            i = sources.index(source)
            look: Any = {
                "color": plots.COLOURS[i % len(plots.COLOURS)],
                "linestyle": ("-", "--", ":", "-.")[i // len(plots.COLOURS) % 4],
                "marker": plots.MARKERS[i % len(plots.MARKERS)],
            }
            run = run.sort_values("step")
            (handles[str(source)],) = ax.plot(
                run["step"], run["score"], **look, linewidth=1, markersize=3, markevery=max(1, len(run) // 4), alpha=0.8
            )
        ax.set_title(f"{method}\n", loc="left", fontsize=9, fontweight="bold")
        ax.text(0, 1.04, f"{task}, {encoder}", transform=ax.transAxes, fontsize=8)
        _bare(ax)
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    figure.supxlabel("step", fontsize=9)
    figure.supylabel("dev score (%)", fontsize=9)
    figure.legend(handles.values(), handles, title="source", loc="outside right upper", frameon=False)
    return figure


def preparation(jobs: pd.DataFrame) -> Html:
    """Time of what comes before training, by stage; `jobs` as `read_preparation` returns them."""
    if jobs.empty:
        return Html('<p class="missing">The stages before training have not been measured.</p>')
    rows = [
        [
            f'<th scope="row">{stage}</th>',
            *_td([f"{len(one)}", duration(one["seconds"].sum()), duration(one["seconds"].mean())]),
        ]
        for stage, one in jobs.groupby("stage", sort=False)
    ]
    return _table(["Stage", "Jobs", "Time", "Each"], rows, style="cost")


def cost(cells: pd.DataFrame, runs: Sequence[Mapping[str, Any]]) -> Html:
    """Time of training and of evaluation by task, encoder and method, over whatever has a result.

    Args:
        runs: records with `task`, `encoder`, `method` and `seconds`; a record without `seconds` counts as 0.
    """
    keys = ["task", "encoder", "method"]
    # Several metrics of one cell share one evaluation.
    done = cells.dropna(subset="score")
    done = done.drop_duplicates(_having(done, [*RUN, "target"], "snapshot"))
    # In the order of the study.
    totals = {(str(t), str(e), str(m)): [0, 0.0, 0, 0.0] for t, e, m in cells[keys].itertuples(index=False)}
    for record in runs:
        task, encoder, method = (str(record.get(key, "?")) for key in keys)
        entry = totals.setdefault((task, encoder, method), [0, 0.0, 0, 0.0])
        entry[0] += 1
        entry[1] += float(record.get("seconds") or 0)
    for key, one in done.groupby(keys, sort=False):
        task, encoder, method = map(str, key)
        entry = totals.setdefault((task, encoder, method), [0, 0.0, 0, 0.0])
        entry[2] += len(one)
        entry[3] += float(one["seconds"].sum())
    totals = {key: entry for key, entry in totals.items() if entry[0] or entry[2]}
    if not totals:
        return Html('<p class="missing">Nothing has run yet.</p>')
    rows = [[*(f'<th scope="row">{escape(part)}</th>' for part in key), *_costs(*totals[key])] for key in totals]
    whole = [sum(entry[i] for entry in totals.values()) for i in range(4)]
    rows.append(['<th scope="row" colspan="3">All</th>', *_costs(*whole)])
    head = ["Task", "Encoder", "Method", "Runs", "Training", "Per run", "Cells", "Evaluation", "Total"]
    return _table(head, rows, style="cost")


def environment(runs: Sequence[Mapping[str, Any]]) -> Html:
    """Devices and versions that the run records name (`device`, `versions`); more than one of a kind is marked."""
    found: dict[str, Counter[str]] = {}
    for record in runs:
        for what, value in {"device": record.get("device"), **(record.get("versions") or {})}.items():
            if value is not None:
                found.setdefault(what, Counter())[str(value)] += 1
    if not found:
        return Html('<p class="missing">No run has recorded its environment yet.</p>')
    rows = []
    for what, values in found.items():
        said = ", ".join(
            f"{value} ({n} run{'s' * (n > 1)})" if len(values) > 1 else value for value, n in values.most_common()
        )
        mixed = ' class="incomplete" title="the runs differ"' if len(values) > 1 else ""
        rows.append([f'<th scope="row">{escape(what)}</th>', f"<td{mixed}>{escape(said)}</td>"])
    return _table(["What", "Value"], rows)


def summary(cells: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation (percent) over seeds of every task, encoder, method, source, target, metric and snapshot."""
    scores = cells.groupby(_having(cells, ENTRY, "snapshot"), sort=False, dropna=False)["score"]
    return scores.agg(mean="mean", sd="std", n_seeds="count", n_seeds_expected="size").reset_index()


def _having(frame: pd.DataFrame, names: Sequence[str], *also: str) -> list[str]:
    """These columns, and others where the frame has them."""
    return [*names, *(name for name in also if name in frame)]


def duration(seconds: float) -> str:
    """Seconds as people say them: `8.4 s`, `12 min 5 s`, `3 h 20 min`."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _costs(runs: float, training: float, cells: float, evaluation: float) -> list[str]:
    per_run = duration(training / runs) if runs else "–"
    said = [f"{runs:.0f}", duration(training), per_run, f"{cells:.0f}", duration(evaluation)]
    return _td([*said, duration(training + evaluation)])


def _state(done: int, planned: int) -> str:
    return "complete" if done >= planned else "incomplete" if done else "missing"


def _listed(values: "pd.Series[Any]") -> str:
    return ", ".join(escape(str(value)) for value in dict.fromkeys(values) if value != "")


def _codes(values: Iterable[Any]) -> list[str]:
    """The languages in sources and targets such as `en`, `en-fr` and `en+en-fr`, in the order of appearance."""
    return list(dict.fromkeys(code for value in values for code in Source(value).languages))


def _td(texts: Iterable[str]) -> list[str]:
    return [f"<td>{escape(text)}</td>" for text in texts]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "", style: str = "plain") -> Html:
    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    said = f"<caption>{caption}</caption>" if caption else ""
    return Html(
        f'<div class="wide"><table class="exhibit {style}">{said}<thead><tr>{titles}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )


def _image(data: bytes, kind: str, alt: str) -> str:
    return f'<img src="data:image/{kind};base64,{base64.b64encode(data).decode()}" alt="{escape(alt)}">'


def _figure(figure: Figure, alt: str) -> Html:
    out = io.BytesIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return Html(f'<figure class="exhibit">{_image(out.getvalue(), "svg+xml", alt)}</figure>')


def _bare(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#e6e6e6", linewidth=0.5)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=8, length=2)
