"""The papers whose grids xlgrid reproduces. Each paper has a folder with everything that only it needs.

A paper adds its methods, exhibits, products, commands and rules in the same way as any other package: with the entry
points that pyproject.toml lists. The core works without these folders.
"""
