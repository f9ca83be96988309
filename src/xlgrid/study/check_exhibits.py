"""Mistakes in the exhibits and claims of a study: what they show or compare must be in its grids."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from xlgrid import methods
from xlgrid.exhibits.schema import (
    SEVERAL,
    Attention,
    Curve,
    Heatmap,
    Masks,
    Parameters,
    Table,
    compared,
    stands_beside,
)
from xlgrid.languages.sources import Target
from xlgrid.study.checks import among, axes, definitions, metrics

if TYPE_CHECKING:
    from xlgrid.study.schema import Study


def exhibits(study: "Study") -> Iterator[str]:
    """Exhibits show what the grids have, and stand beside numbers of what they show."""
    known, defined = axes(study), definitions(study)
    measured = metrics(study, known["task"])
    for name, exhibit in study.exhibits.items():
        place = f"exhibits.{name}"
        for axis, values in {} if isinstance(exhibit, Masks | Parameters) else exhibit.select.items():
            names = measured if axis == "metric" else known[axis]
            yield from among(f"{place}.select.{axis}", axis, values, names, defined.get(axis, ()))
        if isinstance(exhibit, Heatmap):
            shown = exhibit.difference or [exhibit.method]
            key = "difference" if exhibit.difference else "method"
            yield from among(f"{place}.{key}", "method", shown, known["method"], study.methods)
            yield from among(f"{place}.blocks", "group of the study", exhibit.blocks, study.groups)
        elif isinstance(exhibit, Table):
            for group in exhibit.groups:
                try:
                    study.belongs(group, str(known["source"][0]), str(known["target"][0]))
                except ValueError as error:
                    yield f"{place}.groups: {error}"
        elif isinstance(exhibit, Curve):
            yield from among(f"{place}.x", "axis", [exhibit.x], ["step", "snapshot"])
        elif isinstance(exhibit, Masks):
            masked = [key for key, entry in study.methods.items() if methods.METHODS[entry.base].masks]
            yield from among(f"{place}.methods", "method with masks", exhibit.methods, masked)
        elif isinstance(exhibit, Attention):
            yield from _contrasted(place, exhibit, known["target"])
        elif isinstance(exhibit, Parameters):
            yield from among(f"{place}.encoders", "encoder", exhibit.encoders, study.encoders)
            yield from among(f"{place}.methods", "method", exhibit.methods, study.methods)
        if f"{name}-published" in study.exhibits and compared(exhibit):
            yield f"{place}-published: the comparison of exhibit {name} has files of this name: choose another"
    yield from _published(study, known)


def _contrasted(place: str, exhibit: Attention, targets: list[object]) -> Iterator[str]:
    """The two targets whose attention is compared are in the grids and have one context."""
    if wrong := list(among(f"{place}.targets", "target", exhibit.targets, targets)):
        yield from wrong
        return
    contexts = [Target(target).languages[0] for target in exhibit.targets]
    if contexts[0] != contexts[1]:
        yield (
            f"{place}.targets: attention is compared over the tokens of one context, got contexts in "
            f"{' and '.join(contexts)}: name pairs such as {contexts[0]}-X"
        )


def _published(study: "Study", known: Mapping[str, list[object]]) -> Iterator[str]:
    """The study's names in `names` and `seeds_of` exist. The paper's names are checked when an exhibit is rendered."""
    shown = study.exhibits.values()
    differences = ["-minus-".join(each.difference) for each in shown if isinstance(each, Heatmap) and each.difference]
    names = {
        **known,
        "method": [*known["method"], *differences],
        "source": [*known["source"], SEVERAL],
        "target": [*known["target"], SEVERAL],
        "group": [group for each in shown if isinstance(each, Table) for group in each.groups],
    }
    namings = {"published": study.published}
    namings |= {
        f"exhibits.{name}.published": published
        for name, exhibit in study.exhibits.items()
        if (published := stands_beside(exhibit)) is not None
    }
    for place, naming in namings.items():
        for key, by_axis in (("names", naming.names), ("seeds_of", naming.seeds_of)):
            for axis, values in by_axis.items():
                if axis != "metric":
                    yield from among(f"{place}.{key}.{axis}", axis, list(values), names[axis])


def claims(study: "Study") -> Iterator[str]:
    """Claims compare what the grids have."""
    known, defined = axes(study), definitions(study)
    for name, claim in study.claims.items():
        if claim.metric:
            tasks = claim.select.task or {value for side in claim.sides for value in side.task or ()} or known["task"]
            measured = metrics(study, [key for key in tasks if key in known["task"]])
            yield from among(f"claims.{name}.metric", "metric of its tasks", [claim.metric], measured)
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
