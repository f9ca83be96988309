"""Runs: one training each.

REQUIRED INPUTS: results/{study}/encoders/{encoder}/, tokens of the source's parts
OUTPUTS: results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/{delta.safetensors,run.json,curve.jsonl}
"""


rule train:
    input:
        train=lambda w: token_files(w.task, w.encoder, w.source.split("+"), "train"),
        dev=lambda w: token_files(w.task, w.encoder, w.source.split("+"), "dev"),
        encoder="results/{study}/encoders/{encoder}/model.safetensors",
        start=lambda w: starts(named(Run, w)),
    output:
        "results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/delta.safetensors",
        "results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/run.json",
        "results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/curve.jsonl",
    log:
        "results/{study}/logs/runs/{task}/{encoder}/{method}/{source}/seed{seed}.log",
    conda:
        "../envs/xlgrid.yaml"
    params:
        recipe=recipe,
        encoder=subpath(input.encoder, parent=True),
        folder=subpath(output[0], parent=True),
        train=lambda w, input: [f"--train={path}" for path in input.train],
        dev=lambda w, input: [f"--dev={path}" for path in input.dev],
    shell:
        r"""
        xlgrid train --recipe {params.recipe:q} \
            --encoder {params.encoder:q} \
            {params.train:q} \
            {params.dev:q} \
            --output {params.folder:q} 2>{log:q}
        """
