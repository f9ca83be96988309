"""The workflow, for calls of `snakemake` at the top of the project. Other workflows take in workflow/Snakefile as a module."""


include: "workflow/Snakefile"


# Snakemake forgets the default target of a file that is included.
workflow.default_target = "all"
