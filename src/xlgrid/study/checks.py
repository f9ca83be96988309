"""Collect the mistakes that the parts of a study find, such as a name that the study does not define, or sizes that do not fit.

These checks run when a study is read, because a job that fails for the same reason may come after hours of work.
"""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from xlgrid.base.chains import first_mistakes
from xlgrid.base.names import among
from xlgrid.methods.variants import settings_of
from xlgrid.pairs.built_in import BUILT_IN
from xlgrid.results.naming import SEVERAL, Naming
from xlgrid.study import groups, languages
from xlgrid.study.grids import problems_of_copies
from xlgrid.study.languages import LANGUAGE

if TYPE_CHECKING:
    from xlgrid.study.schema import Study


def problems(study: "Study") -> list[str]:
    """Each mistake as `place: what is wrong`; a place is the path to a key, joined by dots."""
    # Each of these relies on those before it.
    mistakes = first_mistakes(
        (problem for code, entry in study.new_languages.items() for problem in entry.problems(code)),
        languages.problems(study),
        groups.problems(study),
        (
            f"pairs.{name}: this is the name of a built-in table: choose another name"
            for name in study.pairs
            if name in BUILT_IN
        ),
        _entries(study),
        (problem for name, grid in study.grids.items() for problem in grid.problems(study, name)),
        problems_of_copies(study),
        (problem for name, grid in study.grids.items() for problem in grid.problems_of_parts(study, name)),
        (problem for name, task in study.tasks.items() for problem in task.problems_of_data(study, name)),
        (problem for i, entry in enumerate(study.training) for problem in entry.problems(study, f"training.{i}")),
        (problem for i, entry in enumerate(study.sweep) for problem in entry.problems(study, i)),
        (problem for name, encoder in study.encoders.items() for problem in encoder.problems_of_texts(study, name)),
        _exhibits(study),
        (
            f"claims.{name}.{problem}"
            for name, claim in study.claims.items()
            for problem in claim.problems(study, study.order)
        ),
    )
    return list(dict.fromkeys(mistakes))


def _entries(study: "Study") -> Iterator[str]:
    """Tokenizers, encoders, methods and tasks name each other, and languages of the study with text."""
    yield from among("text.files", "language", study.text.files, study.languages)
    texts = {f"tokenizers.{name}": entry.texts for name, entry in study.tokenizers.items()}
    for name, entry in study.encoders.items():
        texts |= {f"encoders.{name}.{key}": codes for key, codes in entry.texts.items()}
        yield from entry.problems(study, name)
        if name in study.tokenizers and entry.own_tokenizer:
            yield (
                f"tokenizers.{name}: encoder {name} has a tokenizer of its own, which has this name: choose another, or add "
                f"`tokenizer: {name}` to the encoder"
            )
    for place, codes in texts.items():
        yield from among(f"{place}.languages", LANGUAGE, codes, study.languages)
        lacking = (study.text.lacks(code) for code in codes if code in study.languages)
        yield from (f"{place}: {problem}" for problem in lacking if problem)
    for name, method in study.methods.items():
        yield from method.problems(study, name)
    for name, task in study.tasks.items():
        yield from task.problems(study, name)


def _exhibits(study: "Study") -> Iterator[str]:
    """Exhibits select values that the grids have, and published numbers match what the exhibits show."""
    known: dict[str, list[object]] = {axis: [*values] for axis, values in study.order.items()}
    known["metric"] = [*dict.fromkeys(name for key in known["task"] for name in study.tasks[str(key)].task.all_metrics)]
    for facts in (*study.facts.values(), *map(settings_of, study.methods)):
        for fact, value in facts.items():
            known.setdefault(fact, []).append(value)
    several: list[object] = [SEVERAL]
    names = {**known, "group": [], "source": known["source"] + several, "target": known["target"] + several}
    namings: dict[str, Naming] = {"published": study.published}
    for name, exhibit in study.exhibits.items():
        problems = [*exhibit.unknown_names(study, known)] or exhibit.problems(study, known)
        yield from (f"exhibits.{name}.{problem}" for problem in problems)
        if name.endswith("-published"):
            yield f"exhibits.{name}: such names are for comparisons with published numbers: choose another name"
        if exhibit.published_numbers is not None:
            namings[f"exhibits.{name}.published"] = exhibit.published_numbers
        for axis, coined in exhibit.coined_names.items():
            names[axis] = [*names[axis], *coined]
    for place, naming in namings.items():
        yield from (f"{place}.{problem}" for problem in naming.problems(names))
    printed: list[object] = [
        *study.methods,
        *study.encoders,
        *study.tasks,
        *study.languages,
        *study.groups,
        *study.pairs,
    ]
    printed += [*groups.RELATIONS, *BUILT_IN, *names, *(name for values in names.values() for name in values)]
    printed = [name for name in printed if not settings_of(str(name))]
    yield from among("labels", "name", study.labels, map(str, printed))
    for axis, values in names.items():
        shown = Counter(study.labels.get(name, name) for name in dict.fromkeys(map(str, values)))
        for text in (text for text, number in shown.items() if number > 1):
            yield f"labels: {text} would stand for {shown[text]} names of {axis}: give each a label of its own"
