"""The settings of the command that makes a product, which with the product's inputs decide its contents.

The rules ask it for their `params`, and a plan whether a product equals that of a study which its study extends.
"""

import json
import shlex
from typing import TYPE_CHECKING

from xlgrid.plan.products import (
    Claims,
    Comparison,
    Contrast,
    Data,
    Encoder,
    Exhibit,
    Meanings,
    Product,
    Report,
    Summary,
    Text,
    Tokens,
    Unlabelled,
    Vocabulary,
)
from xlgrid.results.identity import Cell, Run
from xlgrid.tasks import mlm

if TYPE_CHECKING:
    from xlgrid.data.vocabulary import VocabularyEntry
    from xlgrid.study.schema import Study
    from xlgrid.study.tasks import TaskEntry
    from xlgrid.training.encoders import EncoderEntry

# The settings of a command by name.
Settings = dict[str, str | int | list[str]]


def settings(study: "Study", product: Product) -> Settings | None:
    """The settings with which a study makes a product, without those that cannot change it; None if they are the study as a
    whole, as for its exhibits and report."""
    match product:
        case Meanings() | Tokens():
            entry = study.tasks[product.task]
            return _of_tokens(entry, product.split) if isinstance(product, Tokens) else _of_generated(entry)
        case Data():
            entry = study.tasks[product.task]
            if entry.data is None:
                return _of_generated(entry)
            if entry.data.labelled_in(product.split, product.language):
                return {"kind": entry.kind, "columns": _columns(entry), "max_length": entry.max_length}
            source = entry.data.of(product.split, product.language).concerning(product.language)
            return {
                "kind": entry.kind,
                "columns": _columns(entry),
                "source": source.model_dump_json(exclude_none=True),
            }
        case Unlabelled():
            entry = study.tasks[product.task]
            assert entry.data and entry.data.labelled
            labelled = entry.data.labelled.concerning(product.language)
            return {
                "kind": entry.kind,
                "columns": _columns(entry),
                "source": labelled.model_dump_json(exclude_none=True, exclude={"by"}),
            }
        case Text():
            # Other languages' settings do not change the text of a language.
            concerning = study.text.concerning(product.language)
            return {"settings": json.dumps(concerning, separators=(",", ":"), ensure_ascii=False)}
        case Vocabulary():
            vocabulary = study.all_vocabularies[product.vocabulary]
            if vocabulary.languages:
                return {"spec": vocabulary.model_dump_json(exclude_defaults=True)}
            return _of_origin(vocabulary)
        case Encoder():
            encoder = study.encoders[product.encoder]
            if encoder.step:
                return {"step": encoder.step}
            if encoder.is_trained:
                return {"recipe": study.pretraining(product.encoder).identity()}
            modules = json.dumps(encoder.modules, separators=(",", ":"), sort_keys=True)
            changes = [f"--modules={modules}"] if encoder.modules else []
            changes += [f"--layers={encoder.layers}"] if encoder.layers else []
            return _of_origin(encoder) | {"modules": changes}
        case Run():
            return _of_run(study, product)
        case Cell() | Contrast():
            return {}
        case Exhibit() | Comparison() | Claims() | Summary() | Report():
            return None


def _of_generated(entry: "TaskEntry") -> Settings:
    # Generated data do not depend on the settings of evaluation.
    evaluated = entry.task.head.options.model_fields
    options = {name: value for name, value in entry.options_without_defaults.items() if name not in evaluated}
    return {"kind": entry.kind, "options": json.dumps(options)}


def _of_origin(entry: "VocabularyEntry | EncoderEntry") -> Settings:
    return {"hub": entry.hub, "revision": entry.revision} if entry.hub else {"path": str(entry.path)}


def _columns(entry: "TaskEntry") -> str:
    """The columns of a task that its study describes; the library has no table of them."""
    return json.dumps(entry.columns, ensure_ascii=False)


def _of_tokens(entry: "TaskEntry", split: str) -> Settings:
    given, head = entry.task.Options(**entry.options), entry.task.head
    # Which rows of a text are for the split, and what becomes of long ones.
    options = given.model_dump() if isinstance(given, mlm.Options) else {}
    # Other data have files of their own for each split.
    options = options | {"split": split} if entry.from_text else options
    # Cells read the settings of evaluation from the tokens.
    if evaluated := given.model_dump(mode="json", include={*head.options.model_fields}, exclude_none=True):
        options["options"] = shlex.quote(json.dumps(evaluated, separators=(",", ":"), ensure_ascii=False))
    return {
        "kind": entry.kind,
        "columns": _columns(entry),
        "max_length": entry.max_length,
        "separators": "--one-separator" if entry.separators == "one" else "",
        "stride": f"--stride {entry.stride}" if entry.task.head.has_stride else "",
        "text": " ".join(f"--{name.replace('_', '-')} {value}" for name, value in options.items()),
    }


def _of_run(study: "Study", run: Run) -> Settings:
    recipe = study.recipe(*run[1:]).identity()
    imported = study.methods[run.method].imported
    if imported is None:
        return {"recipe": recipe}
    revision = [f"--revision={imported.revision}"] if imported.hub else []
    return {"recipe": recipe, "place": imported.place(run.source, run.encoder), "revision": revision}
