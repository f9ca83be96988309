"""Cells: one evaluation each.

REQUIRED INPUTS: a run, the tokens of the target's test set
OUTPUTS: results/{study}/cells/{task}/{encoder}/{method}/{source}/{target}/seed{seed}.json
"""


rule evaluate:
    input:
        delta="results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/delta.safetensors",
        encoder="results/{study}/encoders/{encoder}/model.safetensors",
        tokens=test_tokens,
    output:
        "results/{study}/cells/{task}/{encoder}/{method}/{source}/{target}/seed{seed}.json",
    log:
        "results/{study}/logs/cells/{task}/{encoder}/{method}/{source}/{target}/seed{seed}.log",
    conda:
        "../envs/xlgrid.yaml"
    params:
        run=subpath(input.delta, parent=True),
        encoder=subpath(input.encoder, parent=True),
    shell:
        r"""
        xlgrid evaluate {params.run:q} {wildcards.target:q} \
            --encoder {params.encoder:q} \
            --tokens {input.tokens:q} \
            --output {output:q} 2>{log:q}
        """


ruleorder: evaluate > nothing_makes_this
ruleorder: train > nothing_makes_this
ruleorder: table > nothing_makes_this
ruleorder: figure > nothing_makes_this


# Says what exists when a target is misspelt, before any job starts.
rule nothing_makes_this:
    input:
        lambda w: misspelt(f"results/{w.path}"),
    output:
        "results/{path}",
    log:
        "results/{path}.log",
    wildcard_constraints:
        path=r"(?:[^/]+/)?(?:cells|runs|exhibits)/.+",
    conda:
        "../envs/xlgrid.yaml"
    shell:
        "false"
