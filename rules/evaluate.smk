"""Cells: one evaluation each.

REQUIRED INPUTS: a run, or only an encoder; the tokens of the target's test set
OUTPUTS: results/{study}/cells/{task}/{encoder}/{method}/{source}/{target}/seed{seed}.json
"""


rule evaluate:
    """A cell: one evaluation of a run on a target."""
    input:
        # The rule needs the run (not for methods without training), the encoder, the test set, and the target's MLM
        # run.
        inputs(Cell),
    output:
        "results/{study}/cells/{task}/{encoder}/{method}/{source}/{target}/seed{seed}.json",
    log:
        "results/{study}/logs/cells/{task}/{encoder}/{method}/{source}/{target}/seed{seed}.log",
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(runtime=30, gpu=SETTINGS.gpus),
    # The path of tokens of parallel examples contains `~`, which a warm worker reads correctly only in quotes.
    # There are thousands of these jobs, and Snakemake formats the command of each several times, so the path of the
    # output alone says what is evaluated. The rule has no `params`, which are computed for each job. It has no
    # `benchmark` either, which would double the number of files: a cell contains its seconds.
    shell:
        "xlgrid evaluate {input.runs} --encoder {input.encoder} --tokens {input.tokens:q} --output {output} 2> {log}"
