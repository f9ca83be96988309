"""Cells: one evaluation each; and a run's attention on two targets.

REQUIRED INPUTS: a run, or an encoder alone; the tokens of the target's test set
OUTPUTS: results/{study}/cells/{task}/{encoder}/{method}/{source}/{target}/seed{seed}.json,
    results/{study}/attention/{task}/{encoder}/{method}/{source}/{target}/{other}/seed{seed}.json
"""


rule evaluate:
    """A cell: one evaluation of a run on a target."""
    input:
        # The run, or none of a method without training; its encoder; the test set; and the run on text of the target.
        inputs(Cell),
    output:
        "results/{study}/cells/{task}/{encoder}/{method}/{source}/{target}/seed{seed}.json",
    log:
        "results/{study}/logs/cells/{task}/{encoder}/{method}/{source}/{target}/seed{seed}.log",
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(runtime=30, gpu=SETTINGS.gpus),
    # The path of tokens of companions has a `~`, which a warm worker reads in quotes alone.
    # There are thousands of these jobs, so nothing is computed for each: `params` would be. A cell has its seconds in it, so there
    # is no `benchmark`, which would be as many files again.
    shell:
        "xlgrid evaluate --encoder {input.encoder} --tokens {input.tokens:q} --study {wildcards.study}"
        " --target {wildcards.target} --output {output} {input.delta} {input.text_run} 2> {log}"


rule attention:
    """The attention of a run on two targets."""
    input:
        # The run, its encoder and vocabulary, the test sets, and the runs on text of the targets.
        inputs(Contrast),
    output:
        "results/{study}/attention/{task}/{encoder}/{method}/{source}/{target}/{other}/seed{seed}.json",
    log:
        "results/{study}/logs/attention/{task}/{encoder}/{method}/{source}/{target}/{other}/seed{seed}.log",
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(runtime=30, gpu=SETTINGS.gpus),
    params:
        tokens=lambda w, input: [f"--tokens={w.target}={input.tokens[0]}", f"--tokens={w.other}={input.tokens[1]}"],
        text_runs=lambda w, input: [
            *(f"--text-run={w.target}={path}" for path in input.text_run),
            *(f"--text-run={w.other}={path}" for path in input.other_text_run),
        ],
    shell:
        r"""
        xlgrid attention --run {input.delta:q} --encoder {input.encoder:q} \
            --vocabulary {input.vocabulary:q} \
            {params.tokens:q} {params.text_runs:q} \
            --study {wildcards.study:q} --output {output:q} 2>{log:q}
        """
