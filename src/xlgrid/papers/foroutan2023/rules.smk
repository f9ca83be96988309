"""A run's attention on two targets.

REQUIRED INPUTS: a run, the tokens of the test sets of two targets
OUTPUTS: results/{study}/attention/{task}/{encoder}/{method}/{source}/{target}/{other}/seed{seed}.json
"""

from xlgrid.papers.foroutan2023.contrast import Contrast


rule attention:
    """The attention of a run on two targets."""
    input:
        # The rule needs the run, the encoder and the vocabulary, the test sets, and the runs on text of the targets.
        inputs(Contrast),
    output:
        "results/{study}/attention/{task}/{encoder}/{method}/{source}/{target}/{other}/seed{seed}.json",
    log:
        "results/{study}/logs/attention/{task}/{encoder}/{method}/{source}/{target}/{other}/seed{seed}.log",
    conda:
        ENVIRONMENT
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
