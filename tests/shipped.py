"""The studies and the published numbers of this project, for tests that may run in another folder."""

from xlgrid.base.papers import folders, shipped_studies

# Name -> file of each study, of the core and of the papers.
STUDIES = {file.stem: file.resolve() for file in shipped_studies()}
# Paper -> the folder with its published numbers.
PUBLISHED = {paper: folder / "reference" for paper, folder in folders().items()}
