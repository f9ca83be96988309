"""Every source x target x method x seed cell is a file: data -> encoders -> train -> evaluate -> exhibits -> report."""

from snakemake.utils import min_version

min_version("9.20")


configfile: "config/config.yaml"


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
    for folder in [Partial(name).folder for name in NAMED]:
        shell("rm -rf {folder:q}")


onerror:
    for name in NAMED:
        folder = Partial(name).folder
        study = NAMED[name].path
        shell("xlgrid partial {study:q} --log {log:q} --output {folder:q}")
