"""Write the attributes of the job that a script sees."""

import os

job = snakemake  # noqa: F821 (Snakemake gives it to the script)
with open(job.output[0], "w") as file:
    print(job.input.named, job.wildcards.name, job.params.text, job.params.number, job.threads, job.rule, file=file)
    print(dict(job.config), os.getcwd(), os.environ["OMP_NUM_THREADS"], os.environ["TMPDIR"], file=file)
with open(job.log[0], "w") as file:
    file.write("from the script\n")
