"""Mistakes in a study: each is told with the file and the line."""

from bad_inputs import STUDY, STUDY_FILE, Bad, file


def _in_study(what: str, old: str, new: str, says: str, at: str | None = None) -> Bad:
    """A study in which `new` stands in place of `old`; the mistake is in the line of `at`, or else that of `new`."""
    assert STUDY.count(old) == 1, f"{old!r} is not one place of the study"
    return Bad(what, says, file(STUDY_FILE, STUDY.replace(old, new)), at=(at or new).strip())


YAML = (
    Bad(
        "an empty study",
        f"{STUDY_FILE}: a study has keys (title: ..., grids: ...), got an empty file: `xlgrid new study NAME` writes a starting point",
        file(STUDY_FILE, ""),
    ),
    Bad("a study that is a list", f"{STUDY_FILE}: a study has keys ... got a list: ", file(STUDY_FILE, "- title\n")),
    Bad(
        "a study that is not in UTF-8",
        f"{STUDY_FILE}:1: not in UTF-8 (invalid continuation byte): save the file in UTF-8",
        file(STUDY_FILE, STUDY.replace("Topics", "Thémes").encode("latin-1")),
    ),
    _in_study(
        "an open bracket",
        "languages: [en, de]\n",
        "languages: [en, de\n",
        "not valid YAML: expected ',' or ']', but got ':', while parsing a flow sequence that begins in line 2; see whether brackets",
        at="groups:",
    ),
    _in_study(
        "a colon in a text",
        "title: Topics",
        "title: News: topics",
        "not valid YAML: mapping values are not allowed here; ... a text with a colon or # in it stands in quotes",
    ),
    _in_study(
        "a tab",
        "  bitfit: {}",
        "\tbitfit: {}",
        "not valid YAML: found character '\\t' that cannot start any token, ... lines are indented with spaces alone",
    ),
    _in_study(
        "a key that stands twice",
        "title: Topics and names",
        "title: Topics\ntitle: Names",
        "title is there twice (first in line 1): remove or rename one of the two",
        at="title: Names",
    ),
    _in_study(
        "two claims of one name",
        "claims:\n",
        "claims:\n  better: {says: It is.}\n",
        "claims.better is there twice (first in line 39): remove or rename one of the two",
        at="It is better.",
    ),
)
KEYS = (
    _in_study(
        "an unknown key",
        "languages: [en, de]\n",
        "langages: [en, de]\n",
        "langages: unknown key 'langages', did you mean 'languages'? (there are: extends, ",
    ),
    _in_study("a missing key", "title: Topics and names\n", "", "`title` is missing: add it", at="languages: [en"),
    _in_study(
        "an unknown key of a grid",
        "task: [topic, names]",
        "tasks: [topic, names]",
        "grids.files.tasks: unknown key 'tasks', did you mean 'task'? (there are: task, ",
    ),
    _in_study(
        "text for a list",
        "target: [mono], seed",
        "target: mono, seed",
        "grids.files.target: must be a list, [...], got 'mono'",
    ),
    _in_study(
        "text for a number",
        "max_length: 64}\nmethods",
        "max_length: long}\nmethods",
        "tasks.mlm.max_length: must be a whole number, got 'long'",
        at="max_length: long",
    ),
    _in_study(
        "a number for text",
        "title: Topics and names",
        "title: 2024",
        "title: must be a text, got 2024: write it in quotes",
    ),
    _in_study(
        "Norwegian without quotes",
        "languages: [en, de]\n",
        "languages: [en, no]\n",
        'languages.1: must be a text, got no, which YAML reads as false: write "no" in quotes',
    ),
    _in_study(
        "labels that YAML reads as truth values",
        "labels: [sport, money]",
        "labels: [no, money]",
        'tasks.topic.labels.0: must be a text, got no, which YAML reads as false: write "no" in quotes',
    ),
    _in_study(
        "a name that YAML reads as a truth value",
        "  full-ft: {}",
        "  off: {}",
        'methods: got the key off, which YAML reads as false: write "off" in quotes',
    ),
    _in_study(
        "an axis without values",
        "encoder: [tiny]",
        "encoder: []",
        "grids.files.encoder: must have at least 1 item, got []",
    ),
    _in_study(
        "a study that extends none",
        "title: Topics and names\n",
        "extends: demmo\n",
        "extends: there is no such study: unknown study 'demmo', did you mean 'demo'? (there are: ",
    ),
    _in_study(
        "a study that extends itself",
        "title: Topics and names\n",
        "extends: mine\n",
        "extends: studies extend one another in a circle: mine.yaml -> mine.yaml: leave `extends` out of one of them",
    ),
)
NAMES_OF_STUDY = (
    _in_study(
        "an unknown language",
        "languages: [en, de]\n",
        "languages: [en, de, zzz]\n",
        "languages.2: unknown language 'zzz' ... `new_languages` of a study declares others",
    ),
    _in_study(
        "a language that the study does not name",
        "source: [en], target: [mono], ",
        "source: [fr], target: [mono], ",
        "grids.files.source: unknown language or group 'fr' (there are: en, de, mono, ",
    ),
    _in_study(
        "an unknown group",
        "target: [mono], ",
        "target: [germanik], ",
        "grids.files.target: unknown language or group 'germanik', did you mean 'germanic'? (there are: ",
    ),
    _in_study(
        "an unknown family",
        "target: [mono], ",
        "target: ['family:Romance'], ",
        "grids.files.target: unknown family 'Romance', did you mean 'Germanic'? (there are: Germanic)",
    ),
    Bad(
        "a group without members",
        "grids.files.target: group 'germanic' has no members: add some to it, or name another group",
        file(
            STUDY_FILE, STUDY.replace("germanic: [en, de]", "germanic: []").replace("[mono], seed", "[germanic], seed")
        ),
        at="target: [germanic]",
    ),
    _in_study(
        "an unknown task in a grid",
        "task: [topic, names]",
        "task: [topics, names]",
        "grids.files.task: unknown task 'topics', did you mean 'topic'? (there are: topic, names, nli, mlm",
    ),
    _in_study(
        "an unknown encoder in a grid",
        "encoder: [tiny]",
        "encoder: [tinny]",
        "grids.files.encoder: unknown encoder 'tinny', did you mean 'tiny'? (there are: tiny, mini)",
    ),
    _in_study(
        "an unknown method in a grid",
        "method: [full-ft, bitfit]",
        "method: [full-ft, bit-fit]",
        "grids.files.method: unknown method 'bit-fit', did you mean 'bitfit'? (there are: full-ft, ",
    ),
    _in_study(
        "an unknown kind of task",
        "kind: xnli",
        "kind: xnly",
        "tasks.nli: unknown kind of task 'xnly', did you mean 'xnli'? (there are: ruletaker, ",
    ),
    _in_study(
        "an unknown base of a method",
        "base: madx, start",
        "base: mad-x, start",
        "methods.adapted: unknown method 'mad-x', did you mean 'madx'? (there are: full-ft, ",
    ),
    _in_study(
        "an unknown setting of training",
        "set: {lr: 1.0e-2}",
        "set: {lrr: 1.0e-2}",
        "training.1.set: unknown key 'lrr', did you mean 'lr'? (there are: steps, ",
    ),
    _in_study(
        "settings for a method that no grid has",
        "when: {method: bitfit}",
        "when: {method: bitfitt}",
        "training.1.when.method: unknown method 'bitfitt', did you mean 'bitfit'? (there are: ",
    ),
    _in_study(
        "an unknown kind of exhibit",
        "kind: table",
        "kind: tabel",
        "exhibits.scores: unknown kind 'tabel', did you mean 'table'? (there are: table, ",
    ),
    _in_study(
        "an unknown axis of a table",
        "rows: [method]",
        "rows: [methods]",
        "exhibits.scores.rows: unknown axis, fact of encoders or setting of variants 'methods', did you mean 'method'? (there are: ",
    ),
)
PARTS = (
    _in_study(
        "a cell that two grids make",
        "seed: [1, 2, 3]}\n  inference",
        "seed: [1, 1]}\n  inference",
        "grids.files: the cell results/mine/cells/topic/tiny/full-ft/en/en/seed1.json is made twice, by grids 'files' and 'files': remove one",
        at="seed: [1, 1]",
    ),
    _in_study(
        "an exhibit of no cell",
        "columns: target, select: {task: topic}",
        "columns: target, select: {task: topic, method: adapted}",
        "exhibits.scores.select: no grid has a cell with all of task topic and method adapted: name other values, or leave the exhibit out",
    ),
    _in_study(
        "a claim about no cell",
        "select: {task: [topic]}",
        "select: {task: [nli]}",
        "claims.better: no cell is planned for nli full-ft: select others, or leave the claim out",
    ),
    _in_study(
        "a claim with one side",
        "compare: [{method: full-ft}, {method: bitfit}]",
        "compare: [{method: full-ft}]",
        "claims.better.compare: must have 2 entries or more, got [{'method': 'full-ft'}]",
    ),
    _in_study(
        "a claim with two sides alike",
        "{method: full-ft}, {method: bitfit}]",
        "{method: bitfit}, {method: bitfit}]",
        "claims.better: `compare` has the selection 'bitfit' twice: name another in one place",
    ),
    _in_study(
        "a claim that expects what is not there",
        "expect: greater",
        "expect: greeter",
        "claims.better.expect: unknown value 'greeter', did you mean 'greater'? (there are: greater, less, none)",
    ),
    _in_study(
        "a method without its start",
        ", start: {task: mlm, method: language}",
        "",
        "methods.adapted: no run trains the language and invertible adapters of this method: add a `start` ... or set",
        at="adapted: {base",
    ),
    _in_study(
        "a start with nothing",
        "start: {task: mlm, method: language}",
        "start: {task: mlm}",
        "methods.adapted.start: `method` is missing: add it",
    ),
    _in_study(
        "methods that start with one another",
        "options: {tune: language}",
        "options: {tune: language}, start: {task: mlm, method: language}",
        "methods.language: runs would be made from one another in a circle, language -> language: add a method whose runs begin with the encoder",
    ),
    _in_study(
        "an unknown option of a method",
        "tune: language",
        "tunes: language",
        "methods.language.options: unknown key 'tunes', did you mean 'tune'? (there are: tune, ",
    ),
    _in_study(
        "a wrong option of a method",
        "tune: language",
        "tune: tongue",
        "methods.language.options.tune: unknown value 'tongue' (there are: task, language, encoder)",
    ),
    _in_study(
        "a wrong option of a task",
        "options: {n: 100}",
        "options: {n: many}",
        "tasks.nli.options.n: must be a whole number, got 'many'",
    ),
    _in_study(
        "sizes that do not fit",
        "scratch: {kind: bert, languages: [en, de]}",
        "scratch: {kind: bert, languages: [en, de], hidden: 65}",
        "encoders.mini.scratch: hidden (65) must be a multiple of heads (4)",
    ),
    _in_study(
        "a task without data",
        '    data: {local: "data/{language}/{split}.csv"}\n',
        "",
        "tasks.topic: data of kind sequence cannot be generated: name their source in `data`",
        at="topic:",
    ),
    _in_study(
        "an unknown name in braces",
        "data/{language}/",
        "data/{lang}/",
        "tasks.topic.data: unknown name in the braces of `local` 'lang', did you mean 'language'? (there are: language, ",
    ),
    _in_study(
        "an unknown type of file",
        "{split}.csv",
        "{split}.docx",
        "tasks.topic.data: `local` names files of an unknown type, .docx: expected .parquet, .jsonl, ",
    ),
    _in_study(
        "too many layers",
        "{path: encoders/tiny}",
        "{path: encoders/tiny, layers: 9}",
        "encoders.tiny.layers: `layers` keeps the first 9 layers, but the encoder has 2: lower it, or leave it out",
    ),
    _in_study(
        "a Hub id and a folder",
        "{path: encoders/tiny}",
        "{path: encoders/tiny, hub: some/encoder}",
        "encoders.tiny: an encoder has exactly one of hub, path, scratch, step (with of) and lm_head (with of), got hub and path",
    ),
)
