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


def everything(wildcards):
    plan = PLANS[config["study"]]
    page = Report(plan.study.name).path
    # Snakemake leaves a deleted file alone while the files that were made from it still stand, unless it is named here.
    return [page, *(cell.path for cell in plan.cells), *(delta(run) for run in sorted(plan.runs))]


rule all:
    default_target: True
    input:
        everything,


onsuccess:
    shell(" && ".join(f"rm -rf results/{name}/partial" for name in PLANS))


onerror:
    for name in PLANS:
        shell("xlgrid partial studies/{name}.yaml --log {log:q}")
