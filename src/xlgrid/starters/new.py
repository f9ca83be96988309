"""Writes starting points: small files with comments, which run without changes, and which users then edit."""

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from xlgrid.base.files import write_text
from xlgrid.base.names import unknown
from xlgrid.base.settings import NAME
from xlgrid.data.origins.origin import SPLITS
from xlgrid.heads import ALL_HEADS
from xlgrid.languages import language
from xlgrid.methods import ALL_METHODS
from xlgrid.starters.described import Wishes, study_values
from xlgrid.synthetic.artificial import is_artificial
from xlgrid.synthetic.natural import LEXICONS, lexicon, natural_codes
from xlgrid.tasks import ALL_TASKS

# The languages in which a new task has example data.
EXAMPLES = ("en", "de")
# The facts at the beginning of a lexicon that are replaced by facts of the new language, if xlgrid knows them.
FACTS = ("name", "english", "family", "script", "direction")
# The form of a method's name, which becomes that of a package and a module.
PACKAGE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


class Begun(NamedTuple):
    """A starting point.

    Attributes:
        files: the files that were written.
        commands: the commands to run next, in their order.
    """

    files: list[Path]
    commands: list[str]


def begin(kind: str, name: str, like: str | None = None, wishes: Wishes | None = None) -> Begun:
    """Write the starting point of a kind into the project in the working directory.

    Args:
        kind: study, task, method or language.
        name: the name of the study, task or method, or the code of the language; the new study has the same name.
        like: for a natural language, the language whose lexicon is copied; None for a related language.
        wishes: for a study on data that exist; without them, the study has generated data.

    Raises:
        ValueError: the kind is unknown, the name is invalid or taken, or the working directory is not a project.
        FileExistsError: one of the files exists; nothing was written.
        OSError: a file cannot be written.
    """
    kinds: dict[str, Callable[..., Begun]] = {"study": _study, "task": _task, "method": _method}
    if kind not in (*kinds, "language"):
        raise ValueError(unknown("kind of starting point", kind, [*kinds, "language"]))
    if not Path("studies").is_dir():
        raise ValueError(f"there is no folder studies/ in {Path.cwd()}: run this in the folder of your clone of xlgrid")
    if not NAME.fullmatch(name) or name.endswith("."):
        raise ValueError(f"{name!r} cannot be a name: it becomes part of a path; use letters, digits and . _ + -")
    if kind == "language":
        return _language(name, like)
    if like:
        raise ValueError(f"--like is only for a new language, got --like {like} for a {kind}: leave it out")
    if wishes is None or not any(wishes):
        return kinds[kind](name)
    if kind != "study":
        raise ValueError(f"--{wishes.first} is only for a new study, got it for a {kind}: leave it out")
    return _described(name, wishes)


def _study(name: str) -> Begun:
    contents = {Path("studies", f"{name}.yaml"): _rendered("study.yaml.j2", name=name, kind="study", third="qa2")}
    return _written(contents, [f"xlgrid check {name}", *_making(name)])


def _described(name: str, wishes: Wishes) -> Begun:
    path = Path("studies", f"{name}.yaml")
    if path.exists():
        return _written({path: ""}, [])
    values = study_values(wishes)
    commands = [f"xlgrid fetch {name}"] if wishes.task else []
    return _written(
        {path: _rendered("described.yaml.j2", name=name, **values)},
        [f"xlgrid check {name}", f"xlgrid cost {name}", *commands, *_making(name)],
    )


def _task(name: str) -> Begun:
    taken = [*ALL_TASKS.names(), *ALL_HEADS.names()]
    if name in taken:
        raise ValueError(
            f"{name} is the name of a task or head that exists: choose another name (taken are {', '.join(taken)})"
        )
    folder = Path("data") / name
    contents = {Path("studies", f"{name}.yaml"): _rendered("task.yaml.j2", name=name, languages=EXAMPLES)}
    for code in EXAMPLES:
        for split in SPLITS:
            contents[folder / code / f"{split}.jsonl"] = _rendered("rows.jsonl.j2", language=code, split=split)
        contents[folder / f"{code}.txt"] = _rendered("rows.jsonl.j2", language=code, split=None)
    return _written(contents, [f"xlgrid check {name}", *_making(name)])


def _method(name: str) -> Begun:
    if name in ALL_METHODS.names():
        raise ValueError(f"the method {name} exists: choose another name (taken are {', '.join(ALL_METHODS.names())})")
    if not PACKAGE.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot be the name of a method, because it becomes the name of a Python package: use "
            "lower-case letters, digits, and single hyphens between them, such as norm-tuning"
        )
    names = {
        "name": name,
        "package": f"xlgrid-{name}",
        "module": f"xlgrid_{name.replace('-', '_')}",
        "class_name": "".join(part.capitalize() for part in name.split("-")),
    }
    folder = Path("methods") / name
    contents = {
        folder / f"{names['module']}.py": _rendered("method.py.j2", **names),
        folder / f"test_{names['module']}.py": _rendered("method_test.py.j2", **names),
        folder / "pyproject.toml": _rendered("method.toml.j2", **names),
        Path("studies", f"{name}.yaml"): _rendered("study.yaml.j2", kind="method", third="qa2", **names),
    }
    install = f"pip install --no-deps --editable {folder}"
    tests = [f"pytest {folder}", f"pytest tests/unit/methods/test_method.py -k {name}"]
    return _written(contents, [install, *tests, f"xlgrid check {name}", *_making(name)])


def _language(code: str, like: str | None) -> Begun:
    known = language(code)
    study = Path("studies", f"{code}.yaml")
    if is_artificial(code):
        if like:
            raise ValueError(f"{code} is an artificial language, which needs no lexicon: leave out --like")
        third = "qa2" if code in ("qa1", "qb1") else code
        contents = {study: _rendered("study.yaml.j2", name=code, kind="language", third=third)}
        return _written(contents, [f"xlgrid check {code}", *_making(code)])
    codes = natural_codes()
    if code in codes:
        raise ValueError(
            f"{code} has a lexicon already, {LEXICONS / code}.yaml: add {code} to `languages` of your study, or "
            f"choose a language without a lexicon (lexicons exist for {', '.join(codes)})"
        )
    if like and like not in codes:
        raise ValueError(f"--like: {unknown('language with a lexicon', like, codes)}")
    copied = like or next((each for each in codes if lexicon(each).family == known.family), "en")
    facts = dict(zip(FACTS, (known.name, known.name, known.family, known.script, known.direction), strict=True))
    text = (LEXICONS / f"{copied}.yaml").read_text(encoding="utf-8")
    contents = {
        LEXICONS / f"{code}.yaml": _rendered("lexicon.yaml.j2", code=code, like=copied, known=known)
        + _with_facts(text, facts),
        study: _rendered("language.yaml.j2", name=code, language=known.name, like=copied),
    }
    tests = "pytest tests/unit/synthetic/test_natural.py tests/unit/tasks"
    return _written(contents, [f"xlgrid check {code}", *_making(code), tests])


def _with_facts(text: str, facts: Mapping[str, str | None]) -> str:
    """A lexicon with new facts at its beginning. Where a fact is not known, the old one stays, with a comment."""
    for key, value in facts.items():
        line = f"{key}: {value}" if value else r"\g<0> # not known: correct this"
        text = re.sub(rf"^{key}: .*$", line, text, count=1, flags=re.MULTILINE)
    return text


def _making(name: str) -> list[str]:
    return [f"snakemake --profile laptop {shlex.quote(f'results/{name}/report.html')}"]


def _rendered(template: str, **values: Any) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("xlgrid.starters"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["flow"] = _flow
    return templates.get_template(template).render(values)


def _flow(value: Any) -> str:
    """A value in the flow style of YAML, on lines of at most 120 characters, which continue with an indentation."""
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, sort_keys=False, width=100)
    return text.removesuffix("\n...\n").strip().replace("\n", "\n        ")


def _written(contents: Mapping[Path, str], commands: list[str]) -> Begun:
    """Write all files, or none if one of them exists."""
    if taken := [str(path) for path in contents if path.exists()]:
        raise FileExistsError(
            f"{', '.join(taken)} exists already: choose another name, or move it away; nothing was written"
        )
    for path, text in contents.items():
        write_text(path, text)
    return Begun([*contents], commands)
