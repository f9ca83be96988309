"""Mistakes in the exhibits and claims of a study: what they show or compare must be in its grids."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from xlgrid.base.names import among, unknown
from xlgrid.results.naming import SEVERAL, NamedAxis, Naming
from xlgrid.results.records import COLUMNS
from xlgrid.study.axes import axes, facts, metrics

if TYPE_CHECKING:
    from xlgrid.study.schema import Study


def exhibits(study: "Study") -> Iterator[str]:
    """Exhibits show what the grids have, and stand beside numbers of what they show."""
    known, defined = axes(study), study.defined_names
    known["metric"] = [*metrics(study, known["task"])]
    known_facts = facts(study)
    known |= known_facts
    for name, exhibit in study.exhibits.items():
        named = [(key, axis, allowed) for key, (used, allowed) in exhibit.named_axes.items() for axis in used]
        wrong = [
            f"exhibits.{name}.{key}: {unknown('axis or fact of encoders', axis, [*allowed, *known_facts])}"
            for key, axis, allowed in named
            if axis not in (*allowed, *known_facts)
        ]
        if wrong:
            yield from wrong
            continue
        for axis, values in exhibit.named_values.items():
            yield from among(f"exhibits.{name}.select.{axis}", axis, values, known[axis], defined.get(axis, ()))
        yield from (f"exhibits.{name}.{problem}" for problem in exhibit.problems(study, known))
        if name.endswith("-published"):
            yield f"exhibits.{name}: files of such a name compare an exhibit with published numbers: choose another"
    yield from _published(study, known)


def _published(study: "Study", known: Mapping[str, list[object]]) -> Iterator[str]:
    """The study's names in `names` and `seeds_of` exist. The paper's names are checked when an exhibit is rendered."""
    names: dict[str, Sequence[object]] = {**known, "group": []}
    for axis in ("source", "target"):
        names[axis] = [*names[axis], SEVERAL]
    for exhibit in study.exhibits.values():
        for axis, coined in exhibit.coined_names.items():
            names[axis] = [*names[axis], *coined]
    namings: dict[str, Naming] = {"published": study.published}
    namings |= {
        f"exhibits.{name}.published": published
        for name, exhibit in study.exhibits.items()
        if (published := exhibit.published_numbers) is not None
    }
    for place, naming in namings.items():
        sections: dict[str, Mapping[NamedAxis, Mapping[str, object]]] = {
            "names": naming.names,
            "seeds_of": naming.seeds_of,
        }
        for key, section in sections.items():
            for axis, values in section.items():
                if axis != "metric":
                    yield from among(f"{place}.{key}.{axis}", axis, values, names[axis])


def encoders(study: "Study") -> Iterator[str]:
    """Facts of encoders have names of their own."""
    for name, entry in study.encoders.items():
        for fact in entry.facts:
            if fact in COLUMNS:
                yield f"encoders.{name}.facts.{fact}: an axis or a column of exhibits has this name: choose another"


def claims(study: "Study") -> Iterator[str]:
    """Claims compare what the grids have."""
    known, defined = axes(study), study.defined_names
    for name, claim in study.claims.items():
        stated = claim.select.task or {value for side in claim.sides for value in side.task or ()}
        tasks = [str(key) for key in known["task"] if key in (stated or known["task"])]
        if claim.metric:
            yield from among(f"claims.{name}.metric", "metric of its tasks", [claim.metric], metrics(study, tasks))
        elif stated and len(main := dict.fromkeys(study.metrics[key][0] for key in tasks)) > 1:
            # Where no task is stated, an encoder or a method may leave cells of one task alone.
            yield f"claims.{name}.select.task: one effect has one metric, but these tasks have {' and '.join(main)}: state a claim for each"
        # As the file has them: `against` has no sides of its own.
        keys = {"compare": claim.compare, "within": claim.within, "trend": claim.trend}
        sides = {f"{key}.{at}": side for key, chosen in keys.items() for at, side in enumerate(chosen or ())}
        for place, selection in {"select": claim.select, **sides}.items():
            for axis, values in selection.axes.items():
                here = f"claims.{name}.{place}.{axis}"
                if axis != "group":
                    yield from among(here, axis, values, known[axis], defined.get(axis, ()))
                    continue
                for group in values:
                    try:
                        study.belongs(group, str(known["source"][0]), str(known["target"][0]))
                    except ValueError as error:
                        yield f"{here}: {error}"
