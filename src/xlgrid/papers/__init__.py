"""The papers whose grids xlgrid reproduces: a folder for each, with all that is its own.

A paper adds its methods, exhibits, products, commands and rules as a package of anyone else does: by the entry points that
pyproject.toml lists. The core works without any of these folders.
"""
