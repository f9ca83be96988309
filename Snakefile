"""Every source x target x method x seed cell is a file: data -> encoders -> train -> evaluate -> exhibits -> report."""

from snakemake.utils import min_version

min_version("9.20")


configfile: "config.yaml"


include: "rules/common.smk"
include: "rules/data.smk"
include: "rules/encode.smk"
include: "rules/train.smk"
include: "rules/evaluate.smk"
include: "rules/exhibits.smk"
include: "rules/report.smk"


rule all:
    default_target: True
    input:
        everything,


onsuccess:
    shell(" && ".join(f"rm -rf results/{name}/partial" for name in PLANS))


onerror:
    for name in PLANS:
        shell("xlgrid partial {name} --log {log:q} --output results/{name}/partial")
