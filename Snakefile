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
        f"results/{STUDY.name}/report.html",
        # Named here too, because Snakemake leaves a deleted file alone while what was made from it still stands.
        [cell.path for cell in CELLS],
        [f"{run.folder}/delta.safetensors" for run in sorted(RUNS)],


onsuccess:
    shell("rm -rf results/{STUDY.name}/partial")


onerror:
    shell("xlgrid partial {STUDY_FILE:q} --log {log:q}")
