"""Kinds of bad input: what is wrong, how the files of a small project change, and what the one message says.

`bad_studies.py` and `bad_commands.py` have further kinds.
"""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from hub import write_mbert

STUDY = """\
title: Topics and names
languages: [en, de]
groups:
  germanic: [en, de]
encoders:
  tiny: {path: encoders/tiny}
  mini: {scratch: {kind: bert, languages: [en, de]}, training: {steps: 10}}
tasks:
  topic:
    kind: sequence
    inputs: [text]
    target: label
    labels: [sport, money]
    max_length: 16
    data: {local: "data/{language}/{split}.csv"}
  names:
    kind: token
    inputs: [words]
    target: tags
    labels: [X, PER]
    max_length: 16
    data: {local: "names/{language}/{split}.jsonl"}
  nli: {kind: xnli, options: {n: 100}, max_length: 64}
  mlm: {kind: mlm, max_length: 64}
methods:
  full-ft: {}
  bitfit: {}
  adapted: {base: madx, start: {task: mlm, method: language}}
  language: {base: madx, options: {tune: language}}
training:
  - set: {steps: 10, lr: 1.0e-3}
  - {when: {method: bitfit}, set: {lr: 1.0e-2}}
grids:
  files: {task: [topic, names], encoder: [tiny], method: [full-ft, bitfit], source: [en], target: [mono], seed: [1, 2, 3]}
  inference: {task: [nli], encoder: [mini], method: [adapted], source: [en], target: [mono, en-X], seed: [1, 2, 3]}
exhibits:
  scores: {kind: table, title: Scores, rows: [method], columns: target, select: {task: topic}}
claims:
  better: {says: It is better., compare: [{method: full-ft}, {method: bitfit}], expect: greater, select: {task: [topic]}}
"""
TOPICS = "text,label\nThe team won the match.,sport\nThe bank lowers its rates.,money\n"
NAMES = '{"words": ["Anna", "sleeps"], "tags": ["PER", "X"]}\n{"words": ["She", "sleeps"], "tags": ["X", "X"]}\n'
CONFIG = "study: mine\nhub_lock: hub.lock.yaml\n"
STUDY_FILE, SETTINGS = "studies/mine.yaml", "config.yaml"
TOPICS_FILE, NAMES_FILE = "data/en/train.csv", "names/en/train.jsonl"
ENCODER = "encoders/tiny"
CELL = "results/mine/cells/topic/tiny/full-ft/en/de/seed1.json"

Change = Callable[[Path], None]


class Bad(NamedTuple):
    """A kind of bad input.

    Attributes:
        what: what is wrong.
        says: the message, in which `...` stands for any words. Of a mistake in a study, it follows the file and line.
        change: what is done to the files of the project.
        command: the command that finds it: of `xlgrid`, or `snakemake` and its targets.
        at: a text in the line of a mistake in a study; None: there is no such line.
    """

    what: str
    says: str
    change: Change
    command: str = "check mine"
    at: str | None = None


def project(folder: Path) -> Path:
    """A project with a study on files of its own and an encoder in a folder, in which all is in order."""
    _write(folder / SETTINGS, CONFIG)
    _write(folder / STUDY_FILE, STUDY)
    for language in ("en", "de"):
        for split in ("train", "dev", "test"):
            # Files with the same rows would be remarked.
            _write(folder / f"data/{language}/{split}.csv", TOPICS.replace(".", f" in {language} {split}."))
            _write(folder / f"names/{language}/{split}.jsonl", NAMES.replace("sleeps", f"sleeps {language} {split}"))
    write_mbert(folder / ENCODER, [TOPICS, NAMES])
    _json("tokenizer_config.json", pad_token="[PAD]", mask_token="[MASK]")(folder)
    return folder


def _write(path: Path, content: str | bytes | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def nothing(folder: Path) -> None:
    """The command itself is what is wrong."""


def file(name: str, content: str | bytes | None) -> Change:
    """Another content of a file; None: there is no such file."""
    return lambda folder: _write(folder / name, content)


def several(*changes: Change) -> Change:
    """Several changes."""

    def change(folder: Path) -> None:
        for each in changes:
            each(folder)

    return change


def _json(name: str, **entries: Any) -> Change:
    """Other entries of a file of the encoder."""

    def change(folder: Path) -> None:
        path = folder / ENCODER / name
        path.write_text(json.dumps(json.loads(path.read_text()) | entries))

    return change


def _without_embedding(folder: Path) -> None:
    """A tokenizer with a token for which the encoder has no embedding."""
    path = folder / ENCODER / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    tokenizer["model"]["vocab"]["zebra"] = 9999
    path.write_text(json.dumps(tokenizer))


def _without_tokenizer(folder: Path) -> None:
    for name in ("tokenizer.json", "vocab.txt"):
        (folder / ENCODER / name).unlink()


def _without_head(folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    path = folder / ENCODER / "model.safetensors"
    weights = {name: tensor for name, tensor in load_file(path).items() if not name.startswith("cls.")}
    save_file(weights, path, {"format": "pt"})
    _write(folder / STUDY_FILE, STUDY.replace("task: [nli], encoder: [mini]", "task: [nli], encoder: [tiny]"))


def _cut_weights(folder: Path) -> None:
    path = folder / ENCODER / "model.safetensors"
    path.write_bytes(path.read_bytes()[:3000])


def _compressed(content: bytes) -> Change:
    """Compressed files, of which the first one of English has another content."""

    def change(folder: Path) -> None:
        _write(folder / STUDY_FILE, STUDY.replace("{split}.csv", "{split}.csv.gz"))
        for path in (folder / "data").rglob("*.csv"):
            _write(path.with_name(f"{path.name}.gz"), gzip.compress(TOPICS.encode()))
        _write(folder / f"{TOPICS_FILE}.gz", content)

    return change


DATA = (
    Bad(
        "no file",
        f"data topic: there is no file {TOPICS_FILE}: put it there, correct the path in the study",
        file(TOPICS_FILE, None),
    ),
    Bad("an empty file", f"data topic: {TOPICS_FILE} is empty; mend it", file(TOPICS_FILE, "")),
    Bad(
        "a split without rows",
        f"data topic: {TOPICS_FILE} has no rows: check the source",
        file(TOPICS_FILE, "text,label\n"),
    ),
    Bad(
        "no such column",
        f"data topic: {TOPICS_FILE} has no column 'label', which sequence needs: ... (there are: text, labels); in `data`, `rename` renames",
        file(TOPICS_FILE, TOPICS.replace("label", "labels")),
    ),
    Bad(
        "other columns",
        f"data topic: {TOPICS_FILE} has no column 'text', ... seems to have semicolons",
        file(TOPICS_FILE, TOPICS.replace(",", ";")),
    ),
    Bad(
        "two columns of one name",
        f"data topic: {TOPICS_FILE} has two columns 'text': rename one of them in the first line",
        file(TOPICS_FILE, TOPICS.replace("label", "text")),
    ),
    Bad(
        "an unknown label",
        f"data topic: {TOPICS_FILE}, row 1, column 'label': unknown label 'sports', did you mean 'sport'? (there are: sport, money); `labels` of the task lists",
        file(TOPICS_FILE, TOPICS.replace("sport", "sports")),
    ),
    Bad(
        "a value is missing",
        f"data names: {NAMES_FILE}, row 3, column 'tags': the value is missing; fill it in, or remove the row",
        file(NAMES_FILE, NAMES + '{"words": ["Anna"]}\n'),
    ),
    Bad(
        "a row too long",
        f"data topic: {TOPICS_FILE} is damaged or not csv: ... Row #4: Expected 2 columns, got 3: ... in double quotes; mend it",
        file(TOPICS_FILE, TOPICS + "Rain, and wind.,sport\n"),
    ),
    Bad(
        "data not in UTF-8",
        f"data topic: {TOPICS_FILE}, line 2, byte 13: not UTF-8 (... mend this line",
        file(TOPICS_FILE, TOPICS.replace("won", "gewänne").encode("latin-1")),
    ),
    Bad(
        "a broken gzip file",
        f"data topic: {TOPICS_FILE}.gz is damaged or cut short after byte ... (Compressed file ended before the end-of-stream marker was reached); copy or download it again",
        _compressed(gzip.compress(TOPICS.encode())[:-12]),
    ),
    Bad(
        "a file that only its name compresses",
        f"data topic: {TOPICS_FILE}.gz is damaged or not a .gz file, as its first bytes show: if it is not compressed, remove .gz from its name",
        _compressed(TOPICS.encode()),
    ),
    Bad(
        "fewer tags than words",
        f"data names: {NAMES_FILE}, row 1: 2 values in 'words' but 1 in 'tags'; give each word one value",
        file(NAMES_FILE, NAMES.replace('["PER", "X"]', '["PER"]')),
    ),
    Bad(
        "an unknown tag",
        f"data names: {NAMES_FILE}, row 1, column 'tags', word 'Anna': unknown label 'PERS', did you mean 'PER'? (there are: X, PER); ",
        file(NAMES_FILE, NAMES.replace("PER", "PERS")),
    ),
    Bad(
        "a broken line of JSON",
        f"data names: {NAMES_FILE}, line 3: not JSON (... mend this line",
        file(NAMES_FILE, NAMES + '{"words": ["Anna"],\n'),
    ),
    Bad(
        "tags of two types",
        f"data names: {NAMES_FILE}, column 'tags': row 3 has a list of numbers, '[1]', and the rows before have a list of text; give it one type in all rows",
        file(NAMES_FILE, NAMES + '{"words": ["Anna"], "tags": [1]}\n'),
    ),
)
ENCODERS = (
    Bad(
        "an encoder without a config",
        f"encoder tiny: there is no file {ENCODER}/config.json: put it there, correct the path",
        file(f"{ENCODER}/config.json", None),
    ),
    Bad(
        "an encoder of an unknown type",
        f"encoders.tiny.path: {ENCODER}/config.json has the unknown model_type 'bertt', did you mean 'bert'? (there are: bert, ... take the config.json that was saved with",
        _json("config.json", model_type="bertt"),
        at="  tiny: {path",
    ),
    Bad(
        "an encoder without a tokenizer",
        f"tokenizer tiny: there is no file {ENCODER}/tokenizer.json: put it there, correct the path",
        _without_tokenizer,
    ),
    Bad(
        "an encoder with a tokenizer of an older kind alone",
        f"encoders.tiny.path: {ENCODER} has no tokenizer.json, but vocab.txt, from which transformers makes one: ... name the folder where it is saved",
        file(f"{ENCODER}/tokenizer.json", None),
        at="  tiny: {path",
    ),
    Bad(
        "weights that are cut short",
        f"encoder tiny: {ENCODER}/model.safetensors is damaged, perhaps cut short at 3,000 bytes ... copy or fetch it again from where it is from",
        _cut_weights,
    ),
    Bad(
        "a tokenizer of another encoder",
        f"encoder tiny: the tokenizer {ENCODER} does not fit the encoder {ENCODER}: the token 'zebra' has the id 9,999, but there are ... embeddings; use the tokenizer.json that was published with model.safetensors",
        _without_embedding,
    ),
    Bad(
        "no language-modelling head",
        "encoders.tiny: run results/mine/runs/mlm/tiny/language/en-de/seed1 predicts tokens, and encoders/tiny has no language-modelling head: ... Train one head that all runs share, ",
        _without_head,
        at="tiny: {path",
    ),
)
