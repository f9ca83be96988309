"""Collect the mistakes in a study that only its cells and runs show."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from xlgrid.methods.variants import plain
from xlgrid.models.lm_head import lacking
from xlgrid.models.lm_head import refusal as lm_head_refusal
from xlgrid.products.encode import Encoder, Tokenizer
from xlgrid.products.product import Product
from xlgrid.results.claims import problem_of_plan

if TYPE_CHECKING:
    from xlgrid.plan.plan import Plan


def plan_problems(plan: "Plan") -> list[str]:
    """Each mistake as `place: what is wrong`; a place is the path to a key, joined by dots."""
    try:
        plan.cells  # noqa: B018
    except ValueError as error:
        return [str(error)]
    return [
        # A study that extends another may have fewer runs, and still inherit the settings of the others.
        *(training_problems(plan) if not plan.ancestors else ()),
        *_products(plan),
        *_lm_heads(plan),
        *_derived_data(plan),
        *(
            problem
            for name, grid in plan.study.grids.items()
            for problem in grid.problems_of_checkpoints(plan.study, name)
        ),
        *_methods(plan),
        *_exhibits(plan),
        *_claims(plan),
    ]


def training_problems(plan: "Plan") -> Iterator[str]:
    """There is a run for each name in an entry of `training`."""
    study, runs = (
        plan.study,
        {run[:-1] for run in plan.named_runs} if plan.study.training or plan.study.sweep else set(),
    )
    known: dict[str, set[str]] = {
        "task": {task for _, task, _, _, _ in runs},
        "encoder": {encoder for _, _, encoder, _, _ in runs},
        "method": {plain(method) for _, _, _, method, _ in runs},
        "base": {study.methods[method].base for _, _, _, method, _ in runs},
        "source": {source.data for *_, source in runs},
    }
    entries = [(f"training.{i}", entry) for i, entry in enumerate(study.training)]
    for place, entry in [*entries, *((f"sweep.{i}", entry) for i, entry in enumerate(study.sweep))]:
        for axis, values in entry.when.items():
            for value in [values] if isinstance(values, str) else values:
                if axis == "method" and not study.methods[value].is_trained:
                    yield f"{place}.when.method: method {value} has no runs to train: leave it out"
                elif known[axis].isdisjoint(study.meant(axis, value)):
                    yield (
                        f"{place}.when.{axis}: no run has {axis} {value!r}, which the study defines: name it in a "
                        "grid, or leave it out here"
                    )


def _products(plan: "Plan") -> Iterator[str]:
    """The first mistake of runs, encoders and tokenizers about each key of the study."""
    study = plan.study
    products: list[Product] = [Encoder(study.name, name) for name in study.single_encoders]
    products += [Tokenizer(study.name, name) for name in study.all_tokenizers]
    # Runs that differ by their seed have the same mistakes.
    products += {run._replace(seed=0): run for run in plan.runs}.values()
    mistakes: dict[str, str] = {}
    for each in products:
        for mistake in each.mistakes(plan):
            mistakes.setdefault(mistake.partition(": ")[0], mistake)
    yield from mistakes.values()


def _lm_heads(plan: "Plan") -> Iterator[str]:
    """Encoders of tasks that predict tokens have a language-modelling head, and encoders that get one have none yet.

    Encoders without files on this machine are not checked.
    """
    study = plan.study
    missing: dict[str, tuple[str, str]] = {}
    for name, entry in study.single_encoders.items():
        copies = [plan.owned(Encoder(study.name, name)).folder] if entry.repository or entry.folder else []
        for place in filter(None, (entry.folder, *copies)):
            if weights := lacking(place):
                missing[name] = place, weights
    if not missing:
        return
    heads = {name: entry.task.head for name, entry in study.tasks.items()}
    predicting = {name for name, head in heads.items() if head.is_pretrained and head.output_share}
    users = {
        run.encoder_in(study).encoder: f"run {run.folder}"
        for run in plan.runs
        if run.task in predicting and not study.methods[run.method].derived
    }
    for name, grid in study.grids.items():
        if predicting.intersection(grid.task):
            sources = study.sources(grid)
            users |= {study.encoder_of(key, source): f"grid {name}" for key in grid.encoder for source in sources}
    for name, (place, weights) in missing.items():
        if name in users:
            yield f"encoders.{name}: {users[name]} predicts tokens, and {lm_head_refusal(name, place, weights)}"


def _derived_data(plan: "Plan") -> Iterator[str]:
    """The mistakes that data origins report for the plan."""
    for name, entry in plan.study.tasks.items():
        for derived in entry.data.derived.values() if entry.data else ():
            yield from derived.problems_of_plan(plan, name)


def _methods(plan: "Plan") -> Iterator[str]:
    """The mistakes that methods report for the plan."""
    for key, entry in plan.study.methods.items():
        yield from entry.method.problems_of_plan(plan, key)


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
