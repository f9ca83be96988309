"""Data of tasks that are generated from the embedded worlds: one file for each benchmark, in its columns.

A module has `COLUMNS`, `LABELS`, `Options` and the functions of `xlgrid.tasks.task.Generator`.
"""
