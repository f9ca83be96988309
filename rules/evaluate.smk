"""Cells: one evaluation each.

REQUIRED INPUTS: a run, or an encoder alone; the tokens of the target's test set
OUTPUTS: results/{study}/cells/{task}/{encoder}/{method}/{source}/{target}/seed{seed}.json
"""


rule evaluate:
    """A cell: one evaluation of a run on a target."""
    input:
        # The rule needs the run, or none of a method without training; the encoder; the test set; and the MLM run of the target.
        inputs(Cell),
    output:
        "results/{study}/cells/{task}/{encoder}/{method}/{source}/{target}/seed{seed}.json",
    log:
        "results/{study}/logs/cells/{task}/{encoder}/{method}/{source}/{target}/seed{seed}.log",
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(runtime=30, gpu=SETTINGS.gpus),
    # The path of tokens of parallel examples has a `~`, which a warm worker reads in quotes alone.
    # There are thousands of these jobs, so nothing is computed for each: `params` would be. A cell has its seconds in it, so there
    # is no `benchmark`, which would be as many files again.
    shell:
        "xlgrid evaluate --encoder {input.encoder} --tokens {input.tokens:q} --output {output} --cell"
        " {wildcards.study}/{wildcards.task}/{wildcards.encoder}/{wildcards.method}/{wildcards.source}/{wildcards.target}/{wildcards.seed}"
        " {input.delta} {input.mlm_run} 2> {log}"
