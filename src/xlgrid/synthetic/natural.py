"""Natural languages as data: a lexicon file expresses RuleTaker's propositions and rules in one language, without code.

The sentences are those of Clark et al. (2020), "Transformers as soft reasoners over language": facts ("Anne is big.")
and rules ("If someone is big and they are not green then they are kind."). For LeapOfThought, there are also statements
about classes ("The cat is a mammal.", "A mammal is kind."). `lexicons/<code>.yaml` has these keys:

- `name` (endonym), `english`, `family`, `script` (ISO 15924), `direction` (ltr or rtl), `between` (the text between two
  sentences; the default is a space), `serial` (the text before each `and` of three conditions; the default is empty);
- `entities`, grouped by agreement class (gender, number, or another category with which predicates agree),
  `attributes` and `relations`: one entry for every concept of `concepts.yaml`. The members in `taxonomy.yaml` are
  entities, too, and `classes`, grouped likewise, has its classes. An entry is a string, which is used for all forms, or
  a mapping whose keys are names of forms, agreement classes, or names of forms with mappings of agreement classes;
- `variable`: the words of a rule for its subject: `first` ("someone"), `again` ("they"; empty in a pro-drop language)
  and `resumed` (after the rule mentions another subject, to which a pronoun might refer), each under its class;
- `words`: other words that agree with the subject (copula, auxiliaries);
- `templates`: statement, condition, conclusion x attribute, relation x positive, negative. `{s}` is the subject, `{o}`
  the object, `{a}` the attribute, `{v}` the relation, and any other name is one of `words`; `{o.acc}` is a form by its
  name. A form that depends on an agreement class always agrees with the subject;
- `hypernymy`, positive and negative: the statement that `{s}` is a `{c}`. A class is a subject in statements only;
- `frames`: the text around the clause of a statement, and of the parts of a rule (`if`, `and`, `then`);
- `rewrites`: ordered regular expressions and their replacements (elision, contraction).
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import yaml

from xlgrid.base.names import unknown
from xlgrid.base.yaml_files import LOADER
from xlgrid.synthetic.logic import IS_A, VARIABLE, Literal, Rule

Forms: TypeAlias = "str | dict[str, Forms]"

_HERE = Path(__file__).parent
LEXICONS = _HERE / "lexicons"
_TEXTS = ("name", "english", "family", "script", "direction")
# The number of levels of mappings in each section, and whether an entry below them may be a mapping of forms.
_SHAPES = {
    "entities": (2, True),
    "classes": (2, True),
    "attributes": (1, True),
    "relations": (1, True),
    "words": (1, True),
    "variable": (2, True),
    "templates": (3, False),
    "hypernymy": (1, False),
    "frames": (1, False),
    "rewrites": (1, False),
    **dict.fromkeys((*_TEXTS, "between", "serial"), (0, False)),
}
_OPTIONAL: dict[str, Any] = {"words": {}, "rewrites": {}, "between": " ", "serial": ""}
_FILLERS = {"attribute": ("s", "a"), "relation": ("s", "o", "v"), "hypernymy": ("s", "c")}
_CLAUSES = {
    "statement": "statement",
    "if": "condition",
    "and": "condition",
    "then": "conclusion",
}
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_LETTER = re.compile(r"[^\W\d_]")


class Concepts(NamedTuple):
    """The ids of the concepts that every lexicon expresses. Small tasks use the first ones."""

    persons: tuple[str, ...]
    animals: tuple[str, ...]
    attributes: tuple[str, ...]
    relations: tuple[str, ...]


@cache
def concepts() -> Concepts:
    """The concepts of `concepts.yaml`: 8 persons, 10 animals, 16 attributes, 8 relations."""
    return Concepts(**{kind: tuple(ids) for kind, ids in _read(_HERE / "concepts.yaml").items()})


@cache
def taxonomy() -> dict[str, tuple[str, ...]]:
    """The classes of `taxonomy.yaml` and their members: 4 classes that exclude one another, 27 members."""
    return {name: tuple(members) for name, members in _read(_HERE / "taxonomy.yaml").items()}


def natural_codes(folder: Path | None = None) -> tuple[str, ...]:
    """The codes of the languages that have a lexicon, sorted."""
    return tuple(sorted(path.stem for path in (folder or LEXICONS).glob("*.yaml")))


@cache
def lexicon(code: str, folder: Path | None = None) -> "Lexicon":
    """The lexicon of one language, read and checked once.

    Args:
        code: the stem of the lexicon's file, an ISO 639 code.
        folder: the folder of the lexicons; None for the lexicons of the package.

    Raises:
        ValueError: there is no such lexicon, or it is incomplete; the message names the file and every mistake.
    """
    folder = folder or LEXICONS
    codes = natural_codes(folder)
    if code not in codes:
        raise ValueError(f"{unknown('language', code, codes)}; to add it, write {folder / code}.yaml")
    path = folder / f"{code}.yaml"
    entries = _read(path)
    if not isinstance(entries, dict):
        raise ValueError(f"{path} is not a lexicon: write a mapping like {LEXICONS / 'en.yaml'}")
    entries = _OPTIONAL | entries
    holes = list(dict.fromkeys(_holes(entries)))
    if holes:
        raise ValueError(f"{path} has mistakes, correct them:\n" + "\n".join(f"- {hole}" for hole in holes))
    return Lexicon(code, entries)


@cache
def lexicons(codes: tuple[str, ...]) -> "tuple[Lexicon, Lexicon]":
    """The lexicons of the context and of the question, for two languages, or for one language that both are in.

    Raises:
        ValueError: a language has no lexicon.
    """
    return lexicon(codes[0]), lexicon(codes[-1])


class Lexicon:
    """A language: its metadata, and its sentences for literals and rules. Clauses are cached.

    All methods raise ValueError for an entity, attribute or relation that is neither in `concepts()` nor in
    `taxonomy()`.
    """

    def __init__(self, code: str, entries: dict[str, Any]) -> None:
        self.code = code
        self.name: str = entries["name"]
        self.english: str = entries["english"]
        self.family: str = entries["family"]
        self.script: str = entries["script"]
        self.direction: str = entries["direction"]
        self._between: str = entries["between"]
        self._serial: str = entries["serial"]
        self._entities: dict[str, Forms] = {}
        self._classes: dict[str, str] = {}
        for agreement, members in entries["entities"].items():
            self._entities |= members
            self._classes |= dict.fromkeys(members, agreement)
        self._kinds: dict[str, Forms] = {}
        for agreement, members in entries["classes"].items():
            self._kinds |= members
            self._classes |= dict.fromkeys(members, agreement)
        self._attributes: dict[str, Forms] = entries["attributes"]
        self._relations: dict[str, Forms] = entries["relations"]
        self._words: dict[str, Forms] = entries["words"]
        self._variable: dict[str, dict[str, Forms]] = entries["variable"]
        self._templates: dict[str, dict[str, dict[str, str]]] = entries["templates"]
        self._hypernymy: dict[str, str] = entries["hypernymy"]
        self._frames: dict[str, str] = entries["frames"]
        self._rewrites = [(re.compile(old), new) for old, new in entries["rewrites"].items()]
        self._realised: dict[tuple[str, str, Literal], str] = {}

    def statement(self, literal: Literal) -> str:
        """The declarative sentence of a literal: "The cat does not chase the dog.".

        A literal may also be about an attribute of a class, "A mammal is kind.", or about the class of an entity, with
        the predicate IS_A, "The cat is a mammal.".
        """
        return self._part("statement", "", literal)

    def rule(self, rule: Rule) -> str:
        """The sentence of a rule: "If someone is big and they are not green then they are kind.".

        Raises:
            ValueError: also if the conclusion is about everyone (VARIABLE), but no condition is.
        """
        parts: list[str] = []
        frame, mention, later = "if", "first", "again"
        for literal in rule.conditions:
            if parts and len(rule.conditions) > 2:
                parts.append(self._serial)
            if literal.subject == VARIABLE:
                parts.append(self._part(frame, mention, literal))
                mention = later
            else:
                parts.append(self._part(frame, "", literal))
                later = "resumed"
                mention = "first" if mention == "first" else later
            frame = "and"
        if rule.conclusion.subject != VARIABLE:
            mention = ""
        elif mention == "first":
            raise ValueError(f"the conclusion is about everyone, but no condition says who that is: {rule}")
        parts.append(self._part("then", mention, rule.conclusion))
        return "".join(parts)

    def join(self, sentences: Iterable[str]) -> str:
        """A paragraph of some sentences."""
        return self._between.join(sentences)

    def _part(self, frame: str, mention: str, literal: Literal) -> str:
        """A clause in its frame. `mention` is the key of the word for the variable (`first`, `again`, `resumed`), or ""
        if the subject is an entity."""
        key = (frame, mention, literal)
        part = self._realised.get(key)
        if part is None:
            part = self._realised[key] = self._realise(*key)
        return part

    def _realise(self, frame: str, mention: str, literal: Literal) -> str:
        fillers: dict[str, Forms] = dict(self._words)
        if mention:
            ((agreement, fillers["s"]),) = self._variable[mention].items()
        else:
            general = frame == "statement" and literal.object is None
            subjects = self._entities | self._kinds if general else self._entities
            fillers["s"] = _get("entity", literal.subject, subjects)
            agreement = self._classes[literal.subject]
        templates = self._templates[_CLAUSES[frame]]
        if literal.object is None:
            polarities = templates["attribute"]
            fillers["a"] = _get("attribute", literal.predicate, self._attributes)
        elif literal.predicate == IS_A and frame == "statement":
            polarities = self._hypernymy
            fillers["c"] = _get("class", literal.object, self._kinds)
        else:
            polarities = templates["relation"]
            fillers["v"] = _get("relation", literal.predicate, self._relations)
            fillers["o"] = _get("entity", literal.object, self._entities)

        def fill(placeholder: re.Match[str]) -> str:
            slot, *path = placeholder[1].split(".")
            return _inflect(fillers[slot], path, agreement)

        template = polarities["positive" if literal.positive else "negative"]
        text = self._frames[frame].replace("{clause}", _PLACEHOLDER.sub(fill, template))
        # An empty pronoun leaves two spaces.
        text = re.sub(" +", " ", text)
        for old, new in self._rewrites:
            text = old.sub(new, text)
        if frame in ("statement", "if"):
            text = _LETTER.sub(lambda letter: letter[0].upper(), text, count=1)
        return text


def _inflect(forms: Forms, path: Iterable[str], agreement: str) -> str:
    """The form for a placeholder: chosen by the names in it, and then by the class of the subject. A string is
    invariable.

    Raises:
        KeyError: an entry lacks the form; the error has its name.
    """
    for key in (*path, agreement):
        if isinstance(forms, str):
            return forms
        forms = forms[key]
    if isinstance(forms, str):
        return forms
    raise KeyError(f"{key} without a further distinction")


def _get(what: str, concept: str, section: dict[str, Forms]) -> Forms:
    if concept not in section:
        raise ValueError(unknown(what, concept, section))
    return section[concept]


def _read(path: Path) -> Any:
    try:
        return yaml.load(path.read_text(encoding="utf-8"), LOADER)
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not YAML: {error}") from error


def _holes(entries: dict[str, Any]) -> Iterator[str]:
    """The mistakes in a lexicon that would make a sentence missing or wrong, as messages."""
    wrong = [hole for key, value in entries.items() for hole in _wrong_types(key, value, *_SHAPES.get(key, (0, True)))]
    if wrong:
        yield from wrong
        return
    known = concepts()
    polarities = dict.fromkeys(("positive", "negative"))
    wanted: dict[str, Any] = dict.fromkeys((*_TEXTS, *_OPTIONAL, "entities", "classes")) | {
        "attributes": dict.fromkeys(known.attributes),
        "relations": dict.fromkeys(known.relations),
        "variable": dict.fromkeys(("first", "again", "resumed")),
        "templates": dict.fromkeys(_CLAUSES.values(), dict.fromkeys(("attribute", "relation"), polarities)),
        "hypernymy": polarities,
        "frames": dict.fromkeys(_CLAUSES),
    }
    yield from _differences("", entries, wanted)
    if entries.get("direction", "ltr") not in ("ltr", "rtl"):
        yield unknown("direction", entries["direction"], ("ltr", "rtl"))
    entries = {section: {} for section in _SHAPES} | entries
    entities = [item for members in entries["entities"].values() for item in members.items()]
    members = tuple(member for members in taxonomy().values() for member in members)
    yield from _differences("entities.", dict(entities), dict.fromkeys(known.persons + known.animals + members))
    kinds = [item for members in entries["classes"].values() for item in members.items()]
    yield from _differences("classes.", dict(kinds), dict.fromkeys(taxonomy()))
    for items in (entities + kinds, entries["attributes"].items(), entries["relations"].items()):
        for (name, forms), (other, others) in combinations(items, 2):
            if name == other or forms == others:
                yield f"{name} and {other} have the same forms: {forms}, {others}"
    for mention, named in entries["variable"].items():
        if len(named) != 1:
            yield f"variable.{mention} must have one agreement class, got {len(named)}"
    for frame, text in entries["frames"].items():
        if _PLACEHOLDER.findall(text) != ["clause"]:
            yield f"frames.{frame} must have {{clause}} once and nothing else in braces, got {text!r}"
    for old, new in entries["rewrites"].items():
        try:
            re.sub(old, new, "")
        except re.error as error:
            yield f"rewrites: {old!r} to {new!r} is not a valid substitution: {error}"
    yield from _missing_forms(entries)


def _wrong_types(where: str, value: Any, depth: int, inflects: bool) -> Iterator[str]:
    """The places that have text instead of a mapping, a mapping instead of text, or neither (YAML reads `no` as
    False)."""
    if isinstance(value, dict) and (depth > 0 or inflects):
        for key, below in value.items():
            if not isinstance(key, str):
                yield f"{where}: the key {key!r} is not text; put it in quotes"
            yield from _wrong_types(f"{where}.{key}", below, depth - 1, inflects)
    elif depth > 0:
        yield f"{where} is {value!r}, but must be a mapping"
    elif not isinstance(value, str):
        yield f"{where} is {value!r}, but must be text; put it in quotes"


def _differences(where: str, got: dict[str, Any], wanted: dict[str, Any]) -> Iterator[str]:
    """The missing and misspelt keys of a section."""
    yield from (f"{where}{key} is missing" for key in wanted if key not in got)
    for key, below in got.items():
        if key not in wanted:
            yield f"{where or 'the file'}: {unknown('key', key, wanted)}"
        elif wanted[key] is not None:
            yield from _differences(f"{where}{key}.", below, wanted[key])


def _missing_forms(entries: dict[str, Any]) -> Iterator[str]:
    """The placeholders that nothing fills, and the forms that a template needs and an entry lacks."""
    entities, kinds = (
        [(name, forms, group) for group, members in entries[section].items() for name, forms in members.items()]
        for section in ("entities", "classes")
    )
    mentions = [(name, forms, group) for name, named in entries["variable"].items() for group, forms in named.items()]
    others = {"statement": kinds, "condition": mentions, "conclusion": mentions}
    places = [(f"templates.{clause}", clause, texts) for clause, texts in entries["templates"].items()]
    for place, clause, texts in [*places, ("hypernymy", "", {"hypernymy": entries["hypernymy"]})]:
        subjects = entities + others.get(clause, [])
        groups = sorted({group for *_, group in subjects})
        fillers = {slot: [(slot, forms, group) for group in groups] for slot, forms in entries["words"].items()} | {
            "s": subjects,
            "o": [(name, forms, "uninflected") for name, forms, _ in entities],
            "c": [(name, forms, "uninflected") for name, forms, _ in kinds],
            "a": [(name, forms, group) for name, forms in entries["attributes"].items() for group in groups],
            "v": [(name, forms, group) for name, forms in entries["relations"].items() for group in groups],
        }
        for kind, polarity, template in ((k, p, t) for k, polarities in texts.items() for p, t in polarities.items()):
            where = ".".join([place] + [kind] * bool(clause) + [polarity])
            slots = (*_FILLERS.get(kind, ()), *entries["words"])
            if re.search("[{}]", _PLACEHOLDER.sub("", template)):
                yield f"{where} has a brace without its partner: {template!r}"
            for placeholder in _PLACEHOLDER.findall(template):
                slot, *path = placeholder.split(".")
                if slot not in slots:
                    yield f"{where}: nothing fills {{{placeholder}}}: {unknown('placeholder', slot, slots)}"
                    continue
                distinguished = {key for _, forms, _ in fillers[slot] for key in _distinctions(forms)}
                misspelt = [form for form in path if form not in distinguished]
                yield from (f"{where}: {unknown('form', f, sorted(distinguished))}" for f in misspelt)
                for name, forms, group in [] if misspelt else fillers[slot]:
                    try:
                        _inflect(forms, path, group)
                    except KeyError as error:
                        has = ", ".join(_distinctions(forms))
                        yield f"{name} has no form {error} to fill {{{placeholder}}} with, only {has}"


def _distinctions(forms: Forms) -> list[str]:
    """The names of forms and the agreement classes in an entry, at any level."""
    if isinstance(forms, str):
        return []
    return list(dict.fromkeys([*forms, *(key for below in forms.values() for key in _distinctions(below))]))
