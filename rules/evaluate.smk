"""Cells: one evaluation each.

REQUIRED INPUTS: a run, the tokens of the target's test set
OUTPUTS: results/{study}/cells/{task}/{encoder}/{method}/{source}/{target}/seed{seed}.json
"""


def test_tokens(wildcards):
    cell = Cell(**{axis: getattr(wildcards, axis) for axis in Cell._fields[:-1]}, seed=int(wildcards.seed))
    if cell not in KNOWN:
        raise WorkflowError(explain(cell.path, STUDY))
    return token_files(cell.task, cell.encoder, [cell.target], "test")


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
            --output {output:q} 2> {log:q}
        """


rule nothing_makes_this:
    """Says what exists when a target is misspelt, before any job starts."""
    output:
        "results/{path}",
    input:
        lambda w: misspelt(f"results/{w.path}"),
    log:
        "results/{path}.log",
    conda:
        "../envs/xlgrid.yaml"
    wildcard_constraints:
        path=r"(?:cells|runs)/.+|[^/]+/(?:cells|runs)/.+",
    shell:
        "false"
