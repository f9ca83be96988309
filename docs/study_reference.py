"""Write the reference of the study file, and its JSON Schema, from the code: `python docs/study_reference.py`.

`docs/reference/study.md` has every key of a study, and every option of methods and tasks, with type, default and
meaning. `studies/study.schema.json` is what an editor needs to complete and check a study. Both follow from the
pydantic models of `src/xlgrid/study/schema.py` and of the methods and tasks.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

from xlgrid.architectures import Architecture
from xlgrid.architectures.scratch import ALL_ARCHITECTURES
from xlgrid.data import tokenizer
from xlgrid.methods import ALL_METHODS, Method
from xlgrid.study import encoders, starts
from xlgrid.study.schema import Study
from xlgrid.tasks import ALL_TASKS
from xlgrid.training.derived import ALL_DERIVED_RUNS
from xlgrid.training.recipe import Training

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "study.md"
SCHEMA = ROOT / "studies" / "study.schema.json"
Json = dict[str, Any]

INTRODUCTION = """# The study file

A study is a YAML file in `studies/`. This page lists every key, with its type, its default and its meaning. A key with the default –
may be absent. A key that is not listed here is an error that names the nearest key. In a study that
[extends another](../how-to/study.md#extending-a-study), every key may be absent, and `null` removes an inherited key.

`python docs/study_reference.py` writes this page and `studies/study.schema.json`, a JSON Schema for editors. A first line
`# yaml-language-server: $schema=study.schema.json`, as the studies of this project have it, lets an editor with a YAML language server
complete keys, show their meaning and underline mistakes. The schema knows single keys and values. Whether the parts of a study fit together,
xlgrid checks when it reads the study.
"""
# The text above the keys of a place in the study, where the docstring of the model is about the code.
ABOUT = {"Study": "The keys at the top of the file."}


# The page


def escaped(text: str) -> str:
    """Text for a cell of a Markdown table."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def code(value: Any) -> str:
    """A value as YAML has it."""
    return f"`{value if isinstance(value, str) and value else json.dumps(value)}`"


class Page:
    """The page as it grows: a section for each model, under the place at which a study first has the model."""

    def __init__(self, schema: Json):
        self.definitions: Json = schema["$defs"]
        self.places: dict[str, str] = {}
        self.parts: list[str] = []

    def type_of(self, field: Json) -> str:
        """The type of a field in words; models are links to their sections."""
        if "$ref" in field:
            place = self.places[field["$ref"].rpartition("/")[2]]
            return f"[`{place}`](#{anchor(place)})"
        if "const" in field:
            return code(field["const"])
        if "enum" in field:
            return ", ".join(map(code, field["enum"]))
        if "discriminator" in field:
            kinds = [f"[`{kind}`](#{anchor(f'exhibits: {kind}')})" for kind in KINDS.values()]
            return f"an exhibit of the kind {', '.join(kinds)}"
        if options := field.get("anyOf") or field.get("oneOf"):
            kinds = [self.type_of(option) for option in options if option.get("type") != "null"]
            if {"whole number", "number"} <= set(kinds):
                kinds.remove("whole number")
            return " or ".join(dict.fromkeys(kinds))
        kind = field.get("type")
        if kind == "array" and "prefixItems" in field:
            kinds = [self.type_of(item) for item in field["prefixItems"]]
            return f"list of {len(kinds)}: {' and '.join(dict.fromkeys(kinds))}"
        if kind == "array":
            return f"list of {self.type_of(field.get('items', {}))}"
        if kind == "object" and "additionalProperties" in field and field["additionalProperties"] is not True:
            return f"mapping of names to {self.type_of(field['additionalProperties'])}"
        names = {"string": "text", "integer": "whole number", "number": "number", "boolean": "`true`, `false`"}
        return f"{names.get(str(kind), 'mapping' if kind == 'object' else 'any value')}{limits(field)}"

    def references(self, field: Any) -> Iterator[str]:
        """The names of the models that a field mentions, in their order."""
        if isinstance(field, dict):
            if "$ref" in field:
                yield field["$ref"].rpartition("/")[2]
            for key, value in field.items():
                if key != "discriminator":
                    yield from self.references(value)
        elif isinstance(field, list):
            for value in field:
                yield from self.references(value)

    def place(self, model: Json, at: str) -> list[tuple[str, str]]:
        """Give a place to each model that the fields of this one mention and that has none; returns them as (name,
        place)."""
        new = []
        for key, field in model.get("properties", {}).items():
            several = "additionalProperties" in field and isinstance(field["additionalProperties"], dict)
            for name in self.references(field):
                if name in self.places:
                    continue
                here = f"{at}.{key}" if at else key
                # The key that tells the kind of an entry is among its keys.
                here = re.sub(r"(?<=\.NAME): \w+\.", ".", here)
                # Most keys are the same in all kinds of exhibits. A place names the kind where an earlier kind has
                # another model there.
                general = re.sub("^exhibits: [a-z-]+", "exhibits.NAME", here)
                here = here if general in self.places.values() else general
                if several and name not in KINDS:
                    here = f"{here}.NAME"
                if name in MEMBERS:
                    here = f"{here}: {MEMBERS[name]}"
                elif any(kind.get("type") == "array" for kind in (field, *field.get("anyOf", ()))) and not several:
                    here = f"{here}[]"
                self.places[name] = here
                new.append((name, here))
        return new

    def section(self, name: str, model: Json, at: str) -> None:
        """Add the section of a model, then those of the models that it mentions first."""
        nested = self.place(model, at)
        level = "##" if not at or not re.search(r"[.\[]", at.replace(".NAME", "").replace("[]", "")) else "###"
        title = f"`{at}`" if at else "The study"
        text = prose(ABOUT.get(name) or model.get("description", ""))
        if name in NAMES and name != "Plain":
            place = self.places["Plain"]
            text += f" It has the keys of [`{place}`](#{anchor(place)}) from `masked` to `seed`, and these:"
            plain = self.definitions["Plain"]["properties"]
            shared = {key for key in Architecture.model_fields if model["properties"][key] == plain[key]}
            own = {key: field for key, field in model["properties"].items() if key not in shared}
            model = model | {"properties": own}
        self.parts.append(f"{level} {title}\n\n{text}\n\n{self.table(model)}")
        for other, place in nested:
            self.section(other, self.definitions[other], place)

    def table(self, model: Json) -> str:
        """The keys of a model as a table."""
        required = {*model.get("required", ())} - HIDDEN.get(model.get("title", ""), set())
        rows = []
        for key, field in model.get("properties", {}).items():
            if key == "name" and model.get("title") == "Study":
                continue
            default = "required" if key in required else default_of(field)
            meaning = field.get("description") or ("the kind of exhibit" if key == "kind" else "")
            rows.append((f"`{key}`", self.type_of(field), default, escaped(meaning)))
        return table(("Key", "Type", "Default", "Meaning"), rows)


# Keys that pydantic requires and that a study need not have.
HIDDEN = {"MethodEntry": {"base"}}
# Class of an architecture -> its name, the first one if it has several.
NAMES = {architecture.__name__: name for name, architecture in reversed(ALL_ARCHITECTURES.own.items())}
KINDS = {
    name.rpartition("/")[2]: kind
    for kind, name in Study.model_json_schema()["properties"]["exhibits"]["additionalProperties"]["discriminator"][
        "mapping"
    ].items()
}

# Class of one of several kinds of entries -> what tells it from the others.
MEMBERS = KINDS | NAMES
MEMBERS |= {
    kind.__name__: key for kinds in (encoders.MEMBERS, tokenizer.MEMBERS, starts.MEMBERS) for key, kind in kinds.items()
}
# The key that the entries of a class require tells them from the others.
MEMBERS |= {
    name: model["required"][0]
    for kind in ALL_DERIVED_RUNS.own.values()
    if kind.__pydantic_root_model__
    for name, model in kind.model_json_schema().get("$defs", {}).items()
}


def anchor(heading: str) -> str:
    """The anchor of a heading, as GitHub and the site make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def prose(docstring: str) -> str:
    """A docstring as Markdown, with blocks that are indented by four spaces as YAML."""
    text = re.sub(
        r"(?:\n\n)((?:    .*\n?|\n)+)", lambda block: f"\n\n```yaml\n{dedent(block[1]).strip()}\n```\n\n", docstring
    )
    return text.strip()


def limits(field: Json) -> str:
    """The range of a number."""
    words = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "below"}
    said = [f"{word} {field[key]:g}" for key, word in words.items() if key in field]
    if field.get("exclusiveMaximum") == 2**32:
        return " from 0"
    return f" {' '.join(said)}" if said else ""


def default_of(field: Json) -> str:
    default = field.get("default", {})
    return "–" if default in (None, {}, [], "") or isinstance(default, dict) else code(default)


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def methods() -> Iterator[str]:
    """The sections about the options of methods."""
    yield (
        "## Options of methods\n\n`methods.NAME.options` has the options of the base. Packages can add [bases of their "
        "own](../how-to/method.md)."
    )
    for base, method in ALL_METHODS.own.items():
        schema = method.model_json_schema()
        text = "Trains all weights." if method is Method else prose(schema["description"])
        options = Page(schema | {"$defs": {}}).table(schema) if schema["properties"] else "It has no options."
        yield f"### `base: {base}`\n\n{text}\n\n{options}"


def tasks() -> Iterator[str]:
    """The sections about the options of tasks: one for the kinds that share a schema."""
    yield (
        "## Options of tasks\n\n`tasks.NAME.options` has the options of the kind. [A task of your own](../how-to/task.md) lists the kinds, and "
        "what their columns contain."
    )
    kinds: dict[str, list[str]] = {}
    schemas: dict[str, Json] = {}
    for name, task in ALL_TASKS.own.items():
        options = task.Options.model_json_schema()
        key = json.dumps(options)
        kinds.setdefault(key, []).append(name)
        schemas[key] = options
    for key, names in kinds.items():
        if not schemas[key].get("properties"):
            continue
        page = Page(schemas[key] | {"$defs": schemas[key].get("$defs", {})})
        about = prose(schemas[key].get("description", ""))
        yield f"### `kind: {', '.join(names)}`\n\n{about}\n\n{page.table(schemas[key])}"


def page() -> str:
    """The whole page."""
    schema = Study.model_json_schema()
    reference = Page(schema)
    reference.section("Study", schema, "")
    parts = [INTRODUCTION.strip(), *reference.parts, *settings_of_training(), *methods(), *tasks()]
    return "\n\n".join(parts) + "\n"


def settings_of_training() -> list[str]:
    """The section about the settings of training, then those of the models that settings of papers mention."""
    training = {"$defs": {}, **Training.model_json_schema()}
    page = Page(training)
    nested = page.place(training, "training[].set")
    page.parts.append(
        "## Settings of training\n\n`training[].set` has these, and so has `training` of an encoder that is trained here, with defaults of its own. "
        f"Packages can add [settings of their own](../how-to/method.md#other-parts).\n\n{page.table(training)}"
    )
    for name, place in nested:
        page.section(name, page.definitions[name], place)
    return page.parts


# The JSON Schema: what is true of every study, and then what is true of a study that extends no other


def of_one_kind(schema: Json) -> Json:
    """A schema of exhibits whose errors are about the kind that an exhibit has. The kind may be inherited."""
    kinds = schema["discriminator"]["mapping"]
    chosen = [
        {"if": {"type": "object", "properties": {"kind": {"const": kind}}, "required": ["kind"]}, "then": of(reference)}
        for kind, reference in kinds.items()
    ]
    inherited = {
        "if": {"type": "object", "not": {"required": ["kind"]}},
        "then": {"anyOf": [*map(of, kinds.values())]},
    }
    properties = {"kind": {"enum": [*kinds], "description": "the kind of exhibit"}}
    return {"type": "object", "properties": properties, "allOf": [*chosen, inherited]}


def of(reference: str) -> Json:
    return {"$ref": reference}


def merged(members: list[Json]) -> Json:
    """The schema of an entry of one of several kinds, which its keys tell apart. An entry that extends another may
    change its kind."""
    properties = {key: field for member in reversed(members) for key, field in member["properties"].items()}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def options(model: Json, key: str, known: dict[str, Json], definitions: Json) -> None:
    """Let `options` be those of the base or kind that the entry names, where xlgrid knows it."""
    names: dict[str, list[str]] = {}
    for name, schema in known.items():
        names.setdefault(json.dumps(schema), []).append(name)
    model["allOf"] = []
    for text, alike in names.items():
        definitions[f"options of {alike[0]}"] = of_any_study(json.loads(text))
        then = {"properties": {"options": of(f"#/$defs/options of {alike[0]}")}}
        model["allOf"].append({"if": {"properties": {key: {"enum": alike}}, "required": [key]}, "then": then})


def of_any_study(schema: Any) -> Any:
    """The schema of what any study may state: keys may be absent, and null removes what is inherited."""
    if isinstance(schema, list):
        return [of_any_study(value) for value in schema]
    if not isinstance(schema, dict):
        return schema
    if "discriminator" in schema:
        return of_one_kind(schema)
    changed = {key: of_any_study(value) for key, value in schema.items() if key not in ("required", "minProperties")}
    if "properties" in schema:
        changed["properties"] = {name: or_null(of_any_study(field)) for name, field in schema["properties"].items()}
    if isinstance(changed.get("additionalProperties"), dict):
        changed["additionalProperties"] = or_null(changed["additionalProperties"])
    return changed


def or_null(field: Json) -> Json:
    """The schema of a value that may also be null."""
    field = {key: value for key, value in field.items() if key != "default" or value not in (None, "", [], {})}
    if "anyOf" in field:
        kinds = [kind for kind in field.pop("anyOf") if kind != {"type": "null"}]
        if len(kinds) > 1:
            return field | {"anyOf": [*kinds, {"type": "null"}]}
        field |= kinds[0]
    # A model may be null itself.
    changed = dict(field)
    if "const" in field:
        changed["enum"] = [changed.pop("const")]
    if "enum" in changed:
        changed["enum"] = [*changed["enum"], None]
    if "type" in field:
        kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
        changed["type"] = [*kinds, "null"]
    return changed


def of_whole_study(schema: Json, needed: set[str]) -> Json:
    """The keys that a study which extends no other study must have in one part of the file, as a further schema.

    The schema is empty if the part has no such keys.

    Args:
        needed: the models that have such keys, or parts with such keys.
    """
    if "discriminator" in schema:
        kinds = {kind: name_of(reference) for kind, reference in schema["discriminator"]["mapping"].items()}
        chosen = [
            {"if": {"properties": {"kind": {"const": kind}}}, "then": whole(name)}
            for kind, name in kinds.items()
            if name in needed
        ]
        return {"type": "object", "required": ["kind"], "allOf": chosen}
    if "$ref" in schema:
        return whole(name_of(schema["$ref"])) if name_of(schema["$ref"]) in needed else {}
    if "anyOf" in schema:
        members = [of_whole_study(member, needed) for member in schema["anyOf"]]
        others = [member for member, more in zip(schema["anyOf"], members, strict=True) if not more]
        # A member without more to say takes part as it is.
        return {"anyOf": [*filter(None, members), *of_any_study(others)]} if any(members) else {}
    said: Json = {}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict) and (inside := of_whole_study(schema[key], needed)):
            said[key] = inside
    properties = {key: of_whole_study(field, needed) for key, field in schema.get("properties", {}).items()}
    required = schema.get("required", [])
    for key in required:
        properties[key] |= {"not": {"type": "null"}}
    if properties := {key: inside for key, inside in properties.items() if inside}:
        said["properties"] = properties
    return said | ({"type": "object", "required": required} if required else {})


def name_of(reference: str) -> str:
    return reference.rpartition("/")[2]


def whole(name: str) -> Json:
    return {"$ref": f"#/$defs/whole {name}"}


def share(definitions: Json) -> None:
    """Let a field refer to the same field of an earlier model, if there is one, where the reference is shorter."""
    first: dict[str, str] = {}
    for name, model in definitions.items():
        for key, field in model.get("properties", {}).items():
            text = json.dumps(untitled(field))
            reference = {"$ref": first.setdefault(text, f"#/$defs/{name}/properties/{key}")}
            if reference["$ref"] != f"#/$defs/{name}/properties/{key}" and len(json.dumps(reference)) < len(text):
                model["properties"][key] = reference


def schema() -> Json:
    """The JSON Schema of a study file."""
    study = Study.model_json_schema()
    definitions: Json = study.pop("$defs")
    del study["properties"]["name"]
    training = Training.model_json_schema()
    definitions |= training.pop("$defs", {})
    definitions["Training"] = training
    for name, keys in (("TrainingEntry", "set"), ("ScratchEncoder", "training"), ("EncoderWithHead", "training")):
        said = definitions[name]["properties"][keys]
        definitions[name]["properties"][keys] = {"description": said["description"], "$ref": "#/$defs/Training"}
    of_methods = {base: method.model_json_schema() for base, method in ALL_METHODS.own.items()}
    of_tasks = {}
    for kind, task in ALL_TASKS.own.items():
        of_tasks[kind] = task.Options.model_json_schema()
        definitions |= of_tasks[kind].pop("$defs", {})
    definitions["MethodEntry"]["required"] = []
    for section, kinds in (("encoders", encoders.MEMBERS), ("tokenizers", tokenizer.MEMBERS)):
        members = [definitions.pop(kind.__name__) for kind in kinds.values()]
        definitions[section] = merged(members)
        study["properties"][section]["additionalProperties"] = {"$ref": f"#/$defs/{section}"}
    needed: set[str] = set()
    before = None
    while before != needed:
        before = set(needed)
        needed |= {name for name, model in definitions.items() if of_whole_study(model, before)}
    of_whole = {f"whole {name}": of_whole_study(definitions[name], needed) for name in sorted(needed)}
    for section, kinds in (("encoders", encoders.MEMBERS), ("tokenizers", tokenizer.MEMBERS)):
        of_one = {"type": "object", "anyOf": [{"required": [key]} for key in kinds]}
        of_whole[f"whole {section}"] = of_whole.get(f"whole {section}", {}) | of_one
        needed.add(section)
    of_whole["whole study"] = of_whole_study(study, needed)
    # The keys have descriptions, and the page has those of models.
    for model in (study, *definitions.values(), *of_methods.values()):
        model.pop("description", None)
    definitions = {name: or_null(of_any_study(model)) for name, model in definitions.items()}
    options(definitions["MethodEntry"], "base", of_methods, definitions)
    options(definitions["TaskEntry"], "kind", of_tasks, definitions)
    share(definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A study of xlgrid",
        "description": "Written by docs/study_reference.py.",
        **of_any_study(study),
        "if": {"not": {"required": ["extends"]}},
        "then": whole("study"),
        "$defs": {**definitions, **of_whole},
    }


def untitled(value: Any) -> Any:
    """A schema without the titles that pydantic gives to models and fields, which repeat their names."""
    if isinstance(value, list):
        return [untitled(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: untitled(each) for key, each in value.items() if not (key == "title" and isinstance(each, str))}


def schema_text() -> str:
    """The JSON Schema as a file, with a line for each model."""
    whole = schema()
    definitions = whole.pop("$defs")
    lines = [
        f"{json.dumps(name)}:{json.dumps(untitled(model), ensure_ascii=False, separators=(',', ':'))}"
        for name, model in definitions.items()
    ]
    head = json.dumps(untitled(whole), ensure_ascii=False, separators=(",", ":")).removesuffix("}")
    return head + ',\n"$defs":{\n' + ",\n".join(lines) + "\n}}\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    SCHEMA.write_text(schema_text(), encoding="utf-8")
