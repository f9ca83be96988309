"""Small studies, and their plans."""

from xlgrid.study.schema import Study


def small(**grid: object) -> Study:
    axes = {
        "task": ["ner"],
        "encoder": ["mini"],
        "method": ["full-ft", "bitfit"],
        "source": ["en", "en+en-fr"],
        "target": ["mono", "en-X", "X-en"],
        "seed": [1, 2],
    }
    return Study(
        name="small",
        title="small",
        languages=["en", "fr", "de"],
        encoders={"mini": {"scratch": {"languages": ["en"]}}},
        tasks={"ner": {"kind": "ruletaker"}},
        methods={"full-ft": {}, "bitfit": {}},
        grids={"g": axes | grid},
    )


def begun(**changes: object) -> Study:
    """Runs that begin with text, of the source, of the target and of both, on a task that begins with another."""
    return Study(
        name="begun",
        title="begun",
        languages=["en", "fr", "de"],
        encoders={"mini": {"scratch": {"languages": ["en"]}}},
        tasks={"siqa": {"kind": "ruletaker"}, "copa": {"kind": "ruletaker", "start": "siqa"}, "mlm": {"kind": "mlm"}},
        methods={
            "mlm": {"base": "full-ft"},
            "mlm-src": {"base": "full-ft", "start": {"task": "mlm", "method": "mlm", "at": "source"}},
            "mlm-trg": {"base": "full-ft", "start": {"task": "mlm", "method": "mlm", "at": "target"}},
            "both": {"base": "bitfit", "start": {"task": "mlm", "method": "mlm"}},
        },
        training=[
            {"set": {"steps": 30}},
            {"when": {"source": "en"}, "set": {"lr": 1.0}},
            {"when": {"task": "mlm"}, "set": {"checkpoints": [10, 20]}},
        ],
        grids={
            "g": {
                "task": ["copa"],
                "encoder": ["mini"],
                "method": ["mlm-src", "mlm-trg", "both"],
                "source": ["en"],
                "target": ["en", "fr"],
                "seed": [1],
            },
            **changes,
        },
    )


EARLY = {
    "task": ["siqa"],
    "encoder": ["mini"],
    "method": ["both"],
    "source": ["en"],
    "target": ["en", "fr"],
    "seed": [1],
    "checkpoints": [10, 20],
}


COSTED = """\
title: Tiny
languages: [en, fr, de]
text: {sentences: 1000}
encoders:
  tiny: {scratch: {kind: bert, languages: [en], vocab: 100, hidden: 8, layers: 2, heads: 2, intermediate: 16}}
tasks:
  rt: {kind: ruletaker, options: {n: 1000, max_depth: 1, questions_per_theory: 2}}
  mlm: {kind: mlm}
methods:
  full-ft: {}
  bitfit: {}
  query: {base: queries, options: {tune: query}}
  pair: {base: queries, start: {task: mlm, method: query, pairs: [en-fr, en-de]}}
training:
  - set: {epochs: 2, batch_size: 32, evaluations: 4}
  - {when: {method: bitfit}, set: {epochs: 3}}
  - {when: {task: mlm}, set: {steps: 100, batch_size: 16, evaluations: 5}}
grids:
  one: {task: [rt], encoder: [tiny], method: [full-ft, bitfit], source: [en, en+en-fr], target: [mono], seed: [1, 2]}
  two: {task: [rt], encoder: [tiny], method: [pair], source: [en+en-fr], target: [en-X, de-en], seed: [1]}
exhibits:
  full: {kind: table, title: Full, select: {method: full-ft}, rows: [source], columns: target}
  biases: {kind: table, title: Biases, select: {method: bitfit, source: en}, rows: [source], columns: target}
  pairs: {kind: table, title: Pairs, select: {method: pair, target: [en-fr, de-en]}, rows: [source], columns: target}
  list: {kind: languages, title: List, columns: {Group: {x: far}}}
groups: {far: [fr, de]}
"""
