"""Miniatures: generated data in the format of benchmarks, with a module for each benchmark.

A module has `COLUMNS`, `LABELS`, `Options` and the functions of `xlgrid.tasks.task.Generator`.
"""
