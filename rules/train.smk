"""Runs: one training each, or adapters that others have trained.

REQUIRED INPUTS: results/{study}/encoders/{encoder}/, tokens of the source's parts, adapters of one's own (`imported: path`)
OUTPUTS: results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/{delta.safetensors,run.json,curve.jsonl}
"""

IMPORTED = among(name for name, method in STUDY.methods.items() if method.imported)


rule train:
    input:
        train=lambda w: source_tokens(w, "train"),
        dev=lambda w: source_tokens(w, "dev"),
        encoder="results/{study}/encoders/{encoder}/model.safetensors",
        start=lambda w: starts(named(Run, w)),
    output:
        "results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/delta.safetensors",
        "results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/run.json",
        "results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/curve.jsonl",
    log:
        "results/{study}/logs/runs/{task}/{encoder}/{method}/{source}/seed{seed}.log",
    wildcard_constraints:
        task=rf"(?!{MLM}/[^/]+/(?:{IMPORTED})/)(?:{ALLOWED['task']})",
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


rule import_adapter:
    input:
        encoder="results/{study}/encoders/{encoder}/model.safetensors",
        adapter=imported_files,
    output:
        "results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/delta.safetensors",
        "results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/run.json",
        "results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/curve.jsonl",
    log:
        "results/{study}/logs/runs/{task}/{encoder}/{method}/{source}/seed{seed}.log",
    wildcard_constraints:
        task=MLM,
        method=IMPORTED,
    conda:
        "../envs/xlgrid.yaml"
    params:
        recipe=recipe,
        encoder=subpath(input.encoder, parent=True),
        folder=subpath(output[0], parent=True),
        place=imported_place,
    shell:
        r"""
        xlgrid import-adapter {params.place:q} \
            --recipe {params.recipe:q} \
            --encoder {params.encoder:q} \
            --output {params.folder:q} 2>{log:q}
        """


localrules:
    import_adapter,
