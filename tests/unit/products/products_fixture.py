"""A small study whose products the tests of this folder look at."""

from xlgrid.products.evaluate import Cell

STUDY = """\
title: Tiny
languages: [qa1, qa2, qb1]
encoders: {tiny: {scratch: {kind: bert, languages: [qa1, qa2, qb1]}}, mine: {path: encoder}}
tasks:
  siqa: {kind: siqa}
  own: {kind: copa, trained_on: siqa, data: {local: "x/{language}/{split}.jsonl"}}
methods: {full-ft: {}}
grids:
  main: {task: [own], encoder: [tiny, mine], method: [full-ft], source: [qa1], target: [mono], seed: [1]}
exhibits:
  scores: {kind: table, title: Scores, rows: [encoder], columns: target, select: {encoder: tiny}}
"""

CELL = Cell("tiny", "own", "tiny", "full-ft", "qa1", "qb1", 1)
