"""Cells: one evaluation each; and a run's attention on two targets.

REQUIRED INPUTS: a run, the tokens of the target's test set
OUTPUTS: results/{study}/cells/{task}/{encoder}/{method}/{source}/{target}/seed{seed}.json,
    results/{study}/attention/{task}/{encoder}/{method}/{source}/{target}/{other}/seed{seed}.json
"""


rule evaluate:
    input:
        delta="results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/delta.safetensors",
        encoder="results/{study}/encoders/{encoder}/model.safetensors",
        tokens=test_tokens,
        start=lambda w: starts(named(Cell, w)),
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
        delta="results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/delta.safetensors",
        encoder="results/{study}/encoders/{encoder}/model.safetensors",
        tokenizer="results/{study}/encoders/{encoder}/tokenizer.json",
        tokens=contrasted_tokens,
        start=lambda w: starts(*named(Contrast, w).cells),
    output:
        "results/{study}/attention/{task}/{encoder}/{method}/{source}/{target}/{other}/seed{seed}.json",
    log:
        "results/{study}/logs/attention/{task}/{encoder}/{method}/{source}/{target}/{other}/seed{seed}.log",
    wildcard_constraints:
        other=ALLOWED["target"],
    conda:
        "../envs/xlgrid.yaml"
    shell:
        "xlgrid attention {output} 2> {log}"


# Says what exists when a target is misspelt, before any job starts.
rule nothing_makes_this:
    input:
        lambda w: misspelt(f"results/{w.path}"),
    output:
        "results/{path}",
    log:
        "results/{path}.log",
    wildcard_constraints:
        path=rf"(?!(?:{files(ALLOWED, TABLES, FIGURES, COMPARED)})$)"
        r"(?:(?:[^/]+/)?(?:cells|runs|attention|exhibits)/.+|[^/]+/[^/]+)",
    conda:
        "../envs/xlgrid.yaml"
    shell:
        "false"
