"""Runs: one training each, or a merge of other runs; and choices among the settings of a sweep.

REQUIRED INPUTS: results/{study}/encoders/{encoder}/, the tokens of the source's parts, and, for some MLM runs, a
    tokenizer that is not the encoder's; for a merge, the encoder and the runs that are merged; for a
    choice, the runs of the variants of a method
OUTPUTS: results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/{delta.safetensors,run.json,curve.jsonl};
    results/{study}/together/{task}/{encoder}/{method}/{source}/seed{seed}.tar, with the runs of a group;
    results/{study}/choices/{task}/{encoder}/{method}/{source}.json
"""

from xlgrid.products.choice import Choice
from xlgrid.products.together import RunGroup


rule train:
    """A run: one training."""
    input:
        # The rule needs the encoder, the tokens of the source and of the dev sets, and the runs with which the training
        # begins; and the choice of the settings, if a sweep tries several.
        inputs(Run),
    output:
        "results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/delta.safetensors",
        "results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/run.json",
        "results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/curve.jsonl",
    log:
        "results/{study}/logs/runs/{task}/{encoder}/{method}/{source}/seed{seed}.log",
    benchmark:
        "results/{study}/benchmarks/runs/{task}/{encoder}/{method}/{source}/seed{seed}.tsv"
    wildcard_constraints:
        study=made_by("train", Run),
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(runtime=240, gpu=SETTINGS.gpus),
    params:
        # Settings that cannot change the results of a run are in `pace`: Snakemake does not compare a param that also depends
        # on inputs with that of the last time.
        recipe=setting("recipe", Run),
        pace=lambda w, input: recipe(w).pace(),
        encoder=subpath(input.encoder, parent=True),
        folder=subpath(output[0], parent=True),
        train=lambda w, input: [f"--train={path}" for path in input.train],
        dev=lambda w, input: [f"--dev={path}" for path in input.dev],
        start=lambda w, input: [f"--start={path}" for path in input.start],
        first=lambda w, input: [f"--first={path}" for path in input.first],
        tokenizer=lambda w, input: [f"--tokenizer={path}" for path in input.tokenizer],
        choice=lambda w, input: [f"--choice={path}" for path in input.choice],
        together=lambda w, input: [f"--together={path}" for path in input.together],
    shell:
        r"""
        xlgrid train --recipe {params.recipe:q} --pace {params.pace:q} \
            --encoder {params.encoder:q} \
            {params.train:q} \
            {params.dev:q} \
            {params.start:q} {params.first:q} {params.tokenizer:q} {params.choice:q} \
            {params.together:q} \
            --output {params.folder:q} 2>{log:q}
        """


rule merge:
    """A run that is merged from others, without training."""
    input:
        # The rule needs the encoder, the runs that are merged, the runs with which they begin, and tokens for some operations.
        inputs(Run),
    output:
        "results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/delta.safetensors",
        "results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/run.json",
        "results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/curve.jsonl",
    log:
        "results/{study}/logs/runs/{task}/{encoder}/{method}/{source}/seed{seed}.log",
    wildcard_constraints:
        study=made_by("merge", Run),
    conda:
        "../envs/xlgrid.yaml"
    resources:
        # TIES orders all values of a run in float64. Only operations that read examples run the model.
        **job(
            mem_mb=lambda w, attempt: 16000 * attempt,
            gpu=lambda w, input: SETTINGS.gpus if input.tokens or input.dev else 0,
        ),
    params:
        recipe=setting("recipe", Run),
        pace=lambda w, input: recipe(w).pace(),
        encoder=subpath(input.encoder, parent=True),
        folder=subpath(output[0], parent=True),
        members=lambda w, input: [f"--member={path}" for path in input.members],
        start=lambda w, input: [f"--start={path}" for path in input.start],
        tokens=lambda w, input: [f"--tokens={path}" for path in input.tokens],
        dev=lambda w, input: [f"--dev={path}" for path in input.dev],
    shell:
        r"""
        xlgrid merge --recipe {params.recipe:q} --pace {params.pace:q} \
            --encoder {params.encoder:q} \
            {params.members:q} {params.start:q} {params.tokens:q} {params.dev:q} \
            --output {params.folder:q} 2>{log:q}
        """


rule choose:
    """The choice of the settings of a method, by the dev scores of its variants."""
    input:
        # The rule needs the runs of all variants with all seeds of selection.
        inputs(Choice),
    output:
        "results/{study}/choices/{task}/{encoder}/{method}/{source}.json",
    log:
        "results/{study}/logs/choices/{task}/{encoder}/{method}/{source}.log",
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(),
    params:
        sweep=setting("sweep", Choice),
    shell:
        "xlgrid choose --sweep {params.sweep:q} {input.runs:q} --output {output:q} 2> {log:q}"


use rule train as take_winner with:
    # The run of the winning variant is copied.
    wildcard_constraints:
        study=made_by("take_winner", Run),
    resources:
        **job(runtime=30),


rule train_many:
    """The runs of a group, which train together in one forward pass of their encoder."""
    input:
        # The rule needs the inputs of all runs of the group.
        inputs(RunGroup),
    output:
        "results/{study}/together/{task}/{encoder}/{method}/{source}/seed{seed}.tar",
    log:
        "results/{study}/logs/together/{task}/{encoder}/{method}/{source}/seed{seed}.log",
    benchmark:
        "results/{study}/benchmarks/together/{task}/{encoder}/{method}/{source}/seed{seed}.tsv"
    conda:
        "../envs/xlgrid.yaml"
    resources:
        # Activations of all runs are in memory at once.
        **job(
            mem_mb=lambda w, input, attempt: (
                plans.megabytes(w, input, attempt) + 1000 * attempt * len(plans.product(RunGroup, w).runs(study(w)))
            ),
            runtime=720,
            gpu=SETTINGS.gpus,
        ),
    params:
        recipes=setting("recipes", RunGroup),
        encoder=subpath(input.encoder, parent=True),
        files=lambda w, input: [f"--files={each}" for each in plans.product(RunGroup, w).files_of_runs(PLANS[w.study])],
    shell:
        r"""
        xlgrid train-many {params.recipes:q} {params.files:q} \
            --encoder {params.encoder:q} --output {output:q} 2>{log:q}
        """


use rule train as take_run with:
    # The files of a run are taken from those of its group.
    wildcard_constraints:
        study=made_by("take_run", Run),
    resources:
        **job(runtime=30),
