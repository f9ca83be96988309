"""The workflow, for `snakemake` at the top of the project. Other workflows use workflow/Snakefile as a module."""


include: "workflow/Snakefile"


# Snakemake does not take the default target from an included file.
workflow.default_target = "all"
