"""A small study as a file, and variations of it; and one of an encoder and a method."""

from pathlib import Path
from typing import Any

from xlgrid.study.schema import Study

TEXT = """\
title: a study
languages: [en, fr]
encoders:
  mini: {scratch: {kind: bert, languages: [en]}}
tasks:
  rt: {kind: ruletaker, options: {n: 100}}
methods:
  full-ft: {}
  bitfit: {}
training:
  - set: {lr: 1.0e-3}
  - {when: {method: bitfit}, set: {lr: 2.0e-3}}
grids:
  main: {task: [rt], encoder: [mini], method: [full-ft, bitfit], source: [en], target: [mono, en-X], seed: [1]}
groups:
  romance: [fr]
exhibits:
  heat: {kind: heatmap, title: t, method: full-ft, select: {task: rt}}
  table: {kind: table, title: t, rows: [method], columns: group, groups: [mono, romance, en-X]}
  curve: {kind: curve, title: t, x: step, lines: method}
"""


CURVE = "{kind: curve, title: t, x: step, lines: method}"


def write(folder: Path, text: str, name: str = "s.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


STARTED = TEXT.replace(
    "methods:\n",
    "  mlm: {kind: mlm}\nmethods:\n  query: {base: queries, options: {tune: query}}\n  pair: {base: queries, start: {task: mlm, method: query, pairs: [en-fr]}}\n",
).replace("method: [full-ft, bitfit], source: [en]", "method: [full-ft, bitfit, pair], source: [en+en-fr]")


SPOKEN = """\
title: a study
languages: [en, fr]
encoders:
  mini: {scratch: {kind: bert, languages: [en]}}
tasks:
  rt: {kind: ruletaker, options: {n: 100}}
  ner: {kind: wikiann, data: {local: x}}
  mlm: {kind: mlm}
methods:
  query: {base: queries, options: {tune: query}}
  own: {base: queries, start: {task: mlm, method: query}}
training:
  - {set: {steps: 100}}
  - {when: {task: mlm, source: fr}, set: {checkpoints: [50, 100]}}
  - {when: {task: mlm, source: en}, set: {checkpoints: [50, 100]}}
grids:
  main: {task: [rt], encoder: [mini], method: [own], source: [en], target: [mono], seed: [1], checkpoints: [50, 100]}
"""


QA = """\
title: a study
languages: [qa1, qb1]
encoders:
  mini: {scratch: {kind: bert, languages: [qa1]}}
tasks:
  xquad: {kind: xquad, max_length: 128}
  copa: {kind: copa, max_length: 128}
  siqa: {kind: siqa, max_length: 128}
methods: {full-ft: {}}
grids:
  main: {task: [xquad, copa], encoder: [mini], method: [full-ft], source: [qa1], target: [mono], seed: [1]}
exhibits:
  table: {kind: table, title: t, rows: [task], columns: target, select: {method: full-ft}}
claims:
  one: {says: s, against: 50, expect: greater, select: {task: xquad}}
"""


def of_encoder(method: dict[str, Any], encoder: dict[str, Any]) -> Study:
    axes = {"task": ["ner"], "encoder": ["e"], "method": ["m"], "source": ["en"], "target": ["en"], "seed": [1]}
    return Study(
        name="s",
        title="s",
        languages=["en"],
        tokenizers={"own": {"kind": "xlmr", "languages": ["en"]}},
        encoders={"e": encoder},
        tasks={"ner": {"kind": "ruletaker"}},
        methods={"m": method},
        grids={"g": axes},
    )


def misfits(study: Study, encoder: str = "e") -> list[str]:
    """Why an encoder is not for the grid of `of_encoder`."""
    return study.encoders[encoder].problems_in(study, encoder, "g")
