"""MLM runs with adapters that others have trained (`imported`).

REQUIRED INPUTS: results/{study}/encoders/{encoder}/, adapters of one's own (`imported: path`)
OUTPUTS: results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/{delta.safetensors,run.json,curve.jsonl}
"""

from xlgrid.products.train import Run


rule import_adapter:
    """A run whose adapter others have trained."""
    input:
        # The rule needs the encoder, and the files of the adapter, if it is not on the Hub.
        inputs(Run),
    output:
        "results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/delta.safetensors",
        "results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/run.json",
        "results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/curve.jsonl",
    log:
        "results/{study}/logs/runs/{task}/{encoder}/{method}/{source}/seed{seed}.log",
    wildcard_constraints:
        study=made_by("import_adapter", Run),
    conda:
        ENVIRONMENT
    resources:
        **job(),
    params:
        recipe=setting("recipe", Run),
        encoder=subpath(input.encoder, parent=True),
        folder=subpath(output[0], parent=True),
        place=setting("place", Run),
        revision=setting("revision", Run),
        lock=lock(Run),
    shell:
        r"""
        xlgrid import-adapter {params.place:q} {params.revision:q} {params.lock:q} \
            --recipe {params.recipe:q} \
            --encoder {params.encoder:q} \
            --output {params.folder:q} 2>{log:q}
        """


localrules:
    import_adapter,
