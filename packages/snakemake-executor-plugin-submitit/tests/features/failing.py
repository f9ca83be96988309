"""A script that fails."""

with open(snakemake.log[0], "w") as file:  # noqa: F821 (Snakemake gives it to the script)
    file.write("why\n")
raise ValueError("from a script")
