"""A run's attention on two targets.

REQUIRED INPUTS: a run, the tokens of the test sets of two targets
OUTPUTS: results/{study}/attention/{task}/{encoder}/{method}/{source}/{target}/{other}/seed{seed}.json
"""

from xlgrid.papers.foroutan2023.contrast import Contrast


rule attention:
    """The attention of a run on two targets."""
    input:
        # The rule needs the run, the encoder and the tokenizer, the test sets, and the MLM runs of the targets.
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
        mlm_runs=lambda w, input: [
            *(f"--mlm-run={w.target}={path}" for path in input.mlm_run),
            *(f"--mlm-run={w.other}={path}" for path in input.other_mlm_run),
        ],
    shell:
        r"""
        xlgrid attention --run {input.delta:q} --encoder {input.encoder:q} \
            --tokenizer {input.tokenizer:q} \
            {params.tokens:q} {params.mlm_runs:q} \
            --study {wildcards.study:q} --output {output:q} 2>{log:q}
        """
