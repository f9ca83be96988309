"""Cells: one evaluation each; and a run's attention on two targets.

REQUIRED INPUTS: a run, the tokens of the target's test set
OUTPUTS: results/{study}/cells/{task}/{encoder}/{method}/{source}/{target}/seed{seed}.json,
    results/{study}/attention/{task}/{encoder}/{method}/{source}/{target}/{other}/seed{seed}.json
"""


rule evaluate:
    input:
        inputs(Cell),
    output:
        "results/{study}/cells/{task}/{encoder}/{method}/{source}/{target}/seed{seed}.json",
    log:
        "results/{study}/logs/cells/{task}/{encoder}/{method}/{source}/{target}/seed{seed}.log",
    conda:
        "../envs/xlgrid.yaml"
    # There are thousands of these jobs: what the path of the cell says, Snakemake need not work out for each.
    shell:
        "xlgrid evaluate {output} 2> {log}"


rule attention:
    input:
        inputs(Contrast),
    output:
        "results/{study}/attention/{task}/{encoder}/{method}/{source}/{target}/{other}/seed{seed}.json",
    log:
        "results/{study}/logs/attention/{task}/{encoder}/{method}/{source}/{target}/{other}/seed{seed}.log",
    conda:
        "../envs/xlgrid.yaml"
    shell:
        "xlgrid attention {output} 2> {log}"
