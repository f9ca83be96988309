"""Write the environment as `env --null` does."""

import os

with open(snakemake.output[0], "w") as file:  # noqa: F821 (Snakemake gives it to the script)
    file.writelines(f"{name}={value}\0" for name, value in os.environ.items())
