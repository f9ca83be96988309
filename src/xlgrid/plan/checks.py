"""Mistakes in a study that only its cells and runs show."""

from collections.abc import Iterator
from itertools import product
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING

from xlgrid.base.names import unknown
from xlgrid.data.encoders import older_tokenizer, without_tokenizer
from xlgrid.models.lm_head import lacking
from xlgrid.models.lm_head import refusal as lm_head_refusal
from xlgrid.products.encode import Encoder
from xlgrid.results.claims import problem_of_plan

if TYPE_CHECKING:
    from xlgrid.plan.plan import Plan
    from xlgrid.products.train import Run
    from xlgrid.study.schema import Study

# The most bytes in the name of a file or folder on common file systems; a character of a source is one byte.
LONGEST_NAME = 255


def plan_problems(plan: "Plan") -> list[str]:
    """Each mistake as `place: what is wrong`; a place is the path to a key, joined by dots."""
    try:
        plan.cells  # noqa: B018
    except ValueError as error:
        return [str(error)]
    return [
        *_trainings(plan),
        *_paths(plan),
        *_older_tokenizers(plan),
        *_lm_heads(plan),
        *_derived_data(plan),
        *_texts(plan),
        *_steps(plan),
        *_checkpoints(plan),
        *_tokenizers(plan),
        *_methods(plan),
        *_exhibits(plan),
        *_claims(plan),
    ]


def _trainings(plan: "Plan") -> Iterator[str]:
    """There is a run for each name in an entry of `training`."""
    study, runs = plan.study, {run[:-1] for run in plan._named_runs} if plan.study.training else set()
    known: dict[str, set[str]] = {
        "task": {task for _, task, _, _, _ in runs},
        "encoder": {encoder for _, _, encoder, _, _ in runs},
        "method": {method for _, _, _, method, _ in runs},
        "base": {study.methods[method].base for _, _, _, method, _ in runs},
        "source": {source.data for *_, source in runs},
    }
    for i, entry in enumerate(study.training):
        for axis, values in entry.when.items():
            for value in [values] if isinstance(values, str) else values:
                if known[axis].isdisjoint(study.meant(axis, value)):
                    yield (
                        f"training.{i}.when.{axis}: no run has {axis} {value!r}, which the study defines: name it in a "
                        "grid, or leave it out here"
                    )


def _paths(plan: "Plan") -> Iterator[str]:
    """No encoder is copied onto itself, and the source of each run is short enough for the name of a folder."""
    if too_long := next((run for run in plan.runs if len(run.source) > LONGEST_NAME), None):
        yield (
            f"grids: the source {too_long.source[:40]}... has {len(too_long.source)} characters, but it becomes the "
            f"name of a run's folder, which can have {LONGEST_NAME}: mix fewer languages, or choose shorter codes"
        )
    for name, entry in plan.study.encoders.items():
        if entry.folder and normpath(entry.folder) == normpath(Encoder(plan.study.name, name).folder):
            yield f"encoders.{name}.path: {entry.folder} is where xlgrid copies the encoder to: name another folder"


def _older_tokenizers(plan: "Plan") -> Iterator[str]:
    """Folders of tokenizers on this machine have a tokenizer.json, and not only the files of an older kind."""
    study = plan.study
    for name, entry in study.all_tokenizers.items():
        folder = Path(entry.folder or "")
        if not entry.folder or not folder.is_dir() or (folder / "tokenizer.json").exists():
            continue
        names = [file.name for file in folder.iterdir()]
        if older_tokenizer(names):
            section = "tokenizers" if name in study.tokenizers else "encoders"
            yield f"{section}.{name}.path: {without_tokenizer(entry.folder, names)}"


def _lm_heads(plan: "Plan") -> Iterator[str]:
    """Encoders of tasks that predict tokens have a language-modelling head, and encoders that get one have none yet.

    Encoders without files on this machine are not checked.
    """
    study = plan.study
    missing: dict[str, tuple[str, str]] = {}
    for name, entry in study.encoders.items():
        copies = [plan.owned(Encoder(study.name, name)).folder] if entry.repository or entry.folder else []
        for place in filter(None, (entry.folder, *copies)):
            if weights := lacking(place):
                missing[name] = place, weights
    if not missing:
        return
    heads = {name: entry.task.head for name, entry in study.tasks.items()}
    predicting = {name for name, head in heads.items() if head.is_pretrained and head.output_share}
    users = {
        run.encoder: f"run {run.folder}"
        for run in plan.runs
        if run.task in predicting and not study.methods[run.method].imported
    }
    for name, grid in study.grids.items():
        if predicting.intersection(grid.task):
            users |= {encoder: f"grid {name}" for encoder in grid.encoder}
    for name, (place, weights) in missing.items():
        if name in users:
            yield f"encoders.{name}: {users[name]} predicts tokens, and {lm_head_refusal(name, place, weights)}"


def _derived_data(plan: "Plan") -> Iterator[str]:
    """The mistakes that data origins report for the plan."""
    for name, entry in plan.study.tasks.items():
        for derived in entry.data.derived.values() if entry.data else ():
            yield from derived.problems_of_plan(plan, name)


def _texts(plan: "Plan") -> Iterator[str]:
    """There is text in the language of each MLM run."""
    study = plan.study
    lacking = {code: problem for code in study.languages if (problem := study.text.lacks(code))}
    runs = [run for run in (plan.runs if lacking else ()) if study.tasks[run.task].from_text]
    for code, problem in lacking.items():
        methods = [
            run.method for run in runs if code in run.source.languages and not study.methods[run.method].imported
        ]
        if methods:
            yield f"text: runs of method {methods[0]} train on text in {code}, but {problem}"


def _tokenizers(plan: "Plan") -> Iterator[str]:
    """MLM runs with another tokenizer than the encoder's begin with the encoder, and are not imported."""
    study = plan.study
    if not any(entry.tokenizer for entry in study.tasks.values()):
        return
    for run in plan.runs:
        tokenizer = study.tasks[run.task].tokenizer_in(run.source)
        if tokenizer and tokenizer not in study.all_tokenizers:
            yield f"tasks.{run.task}.tokenizer: {run.folder} has {unknown('tokenizer', tokenizer, study.all_tokenizers)}"
            return
        chain = [*run.mlm_runs(study), run] if not study.tasks[run.task].task.target else []
        other = [each.task for each in chain if each.new_tokenizer(plan)]
        if other and study.methods[run.method].imported:
            yield f"tasks.{other[0]}.tokenizer: the runs of method {run.method} are imported, with no embeddings: leave it out"
            return
        if other and len(chain) > 1:
            yield (
                f"tasks.{other[0]}.tokenizer: {chain[-1].folder} begins with {chain[-2].folder}, but an MLM run that "
                "begins with another must have the encoder's tokenizer: leave out `tokenizer`, or the `start` of "
                "one method"
            )
            return


def _methods(plan: "Plan") -> Iterator[str]:
    """The mistakes that methods report for the plan."""
    for key, entry in plan.study.methods.items():
        yield from entry.method.problems_of_plan(plan, key)


def _steps(plan: "Plan") -> Iterator[str]:
    """The settings of each run fit together. For example, the training reaches the steps of its checkpoints."""
    study = plan.study
    numbered = [*enumerate(study.training)]
    setting: dict[str, str] = {key: f"training.{i}.set" for i, entry in numbered for key in entry.set}
    # Settings do not depend on the seed, nor on the target in source@target.
    alike = {run._replace(source=run.source.data, seed=0): run for run in (plan.runs if setting else ())}
    for run in alike.values():
        if conflict := study.recipe(*run[1:]).training.conflict:
            key, text = conflict
            yield f"{setting[key]}: in {run.folder}, {text}, or restrict the entry with `when`"
            return
        if problem := next(_dev_problems(study, run), None):
            yield f"{setting['dev_targets']}.dev_targets: {problem}; leave it out, or restrict it with `when`"
            return


def _dev_problems(study: "Study", run: "Run") -> Iterator[str]:
    """Reasons why a run cannot be evaluated on its `dev_targets` while it trains."""
    name, entry = study.entry(run.task, "dev")
    start = study.methods[run.method].start
    known, text = study.encoders[run.encoder].modules_of(study), start.of_run(run.source) if start else None
    # The MLM run has added a module, with which this run begins.
    added = text.languages if text else ()
    for target in study.recipe(*run[1:]).training.dev_targets:
        if not entry.task.target:
            yield f"{run.folder} is an MLM run, which is evaluated on the text that it trains on"
        elif entry.data and (problem := entry.data.lacks(name, "dev", target)):
            yield problem
        elif not entry.data and not all(entry.task.speaks(code) for code in target.languages):
            yield f"task {name} cannot be generated in {target}"
        elif known and not {*target.languages} <= {*known, *added}:
            yield f"{run.folder} cannot be evaluated on {target}: encoder {run.encoder} has no module of it"
        elif start and start.at == "both" and start.of_target(target, run.source.data) != start.of_run(run.source):
            # Each evaluation would have to load the weights of another MLM run.
            yield (
                f"{run.folder} cannot be evaluated on {target} while it trains, because cells of {target} have weights of "
                "another MLM run"
            )


def _checkpoints(plan: "Plan") -> Iterator[str]:
    """MLM runs keep the checkpoints for which the grids ask."""
    study = plan.study
    for name, grid in study.grids.items():
        for encoder, method in product(grid.encoder, grid.method) if grid.checkpoints else ():
            start = study.methods[method].start
            assert start
            if study.methods[start.method].imported:
                yield (
                    f"grids.{name}.checkpoints: cells of {method} are evaluated with the runs of method {start.method}, "
                    "which are imported and have no steps: leave out `checkpoints`, or train these runs here"
                )
                continue
            texts = {start.of_target(t, s): t for t, s in product(study.targets(grid), study.sources(grid))}
            for text, target in texts.items():
                if text is None:
                    yield f"grids.{name}.checkpoints: method {method} has no MLM run for target {target}: leave {target} out"
                    continue
                kept = study.recipe(start.task, encoder, start.method, text, start.seed).training.checkpoints
                if missing := [step for step in grid.checkpoints if step not in kept]:
                    yield (
                        f"grids.{name}.checkpoints: the MLM run of method {start.method} in {text} keeps "
                        f"{', '.join(map(str, kept)) or 'none'}, not {', '.join(map(str, missing))}: add them to the "
                        f"`checkpoints` that `training` sets {{when: {{task: {start.task}, method: {start.method}}}}}"
                    )
                    break


def _exhibits(plan: "Plan") -> Iterator[str]:
    """The planned cells have all values that exhibits show."""
    inherited = plan.ancestors[-1].study.exhibits if plan.ancestors else {}
    for name, exhibit in plan.study.exhibits.items():
        for problem in exhibit.problems_of_plan(plan.cells, plan.study.facts):
            # A study may have fewer cells than the study that it extends, and still inherit exhibits of the missing
            # cells.
            if not (problem.startswith("select: ") and inherited.get(name) == exhibit):
                yield f"exhibits.{name}.{problem}"
        for result in exhibit.products(plan.cells):
            if wrong := result.under(plan.study.name).problem(plan):
                yield f"exhibits.{name}: {result.path}: {wrong}"
                break


def _claims(plan: "Plan") -> Iterator[str]:
    """The grids have cells for each selection of the claims that the study states itself."""
    for name, problem in _claims_without_cells(plan, inherited=False):
        yield f"claims.{name}: {problem}"


def inherited_problems(plan: "Plan") -> list[str]:
    """The problems of inherited claims without cells. Only the report needs these claims; tables and figures do not."""
    return [
        f"claims.{name}: {problem} (`claims: {{{name}: null}}` leaves out the inherited claim)"
        for name, problem in _claims_without_cells(plan, inherited=True)
    ]


def _claims_without_cells(plan: "Plan", inherited: bool) -> Iterator[tuple[str, str]]:
    """(name, problem) of each claim without cells, among the inherited claims or among the study's own."""
    study = plan.study
    earlier = plan.ancestors[-1].study.claims if plan.ancestors else {}
    for name, claim in study.claims.items():
        if (earlier.get(name) == claim) == inherited and (problem := problem_of_plan(claim, plan.cells, study.belongs)):
            yield name, problem
