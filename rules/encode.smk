"""Encoders, in the ordinary Hugging Face layout wherever they come from, and the data in their tokens.

REQUIRED INPUTS: results/{study}/text/{language}.parquet (mini encoders, tokens of text), results/{study}/data/...
OUTPUTS: results/{study}/encoders/{encoder}/, results/{study}/tokens/{task}/{encoder}/{language}/{split}.arrow
"""

LAYOUT = [
    "results/{study}/encoders/{encoder}/config.json",
    "results/{study}/encoders/{encoder}/model.safetensors",
    "results/{study}/encoders/{encoder}/tokenizer.json",
]


rule mini_encoder:
    input:
        inputs(Encoder),
    output:
        LAYOUT,
    log:
        "results/{study}/logs/encoders/{encoder}.log",
    benchmark:
        "results/{study}/benchmarks/encoders/{encoder}.tsv"
    wildcard_constraints:
        study=studies_where("encoders", "encoders", lambda encoder: encoder.mini),
    conda:
        "../envs/xlgrid.yaml"
    params:
        spec=setting("spec", Encoder),
        folder=subpath(output[0], parent=True),
    shell:
        "xlgrid mini-encoder {input.texts:q} --spec {params.spec:q} --output {params.folder:q} 2> {log:q}"


rule hub_encoder:
    input:
        inputs(Encoder),
    output:
        LAYOUT,
    log:
        "results/{study}/logs/encoders/{encoder}.log",
    benchmark:
        "results/{study}/benchmarks/encoders/{encoder}.tsv"
    wildcard_constraints:
        study=studies_where("encoders", "encoders", lambda encoder: encoder.hub),
    conda:
        "../envs/xlgrid.yaml"
    params:
        hub=setting("hub", Encoder),
        revision=setting("revision", Encoder),
        lock=config["hub_lock"],
        folder=subpath(output[0], parent=True),
    shell:
        r"""
        xlgrid fetch-encoder {params.hub:q} \
            --revision {params.revision:q} \
            --lock {params.lock:q} \
            --output {params.folder:q} 2>{log:q}
        """


rule local_encoder:
    input:
        inputs(Encoder),
    output:
        LAYOUT,
    log:
        "results/{study}/logs/encoders/{encoder}.log",
    benchmark:
        "results/{study}/benchmarks/encoders/{encoder}.tsv"
    wildcard_constraints:
        study=studies_where("encoders", "encoders", lambda encoder: encoder.path),
    conda:
        "../envs/xlgrid.yaml"
    params:
        path=setting("path", Encoder),
        folder=subpath(output[0], parent=True),
    shell:
        "xlgrid copy-encoder {params.path:q} --output {params.folder:q} 2> {log:q}"


rule tokens:
    input:
        inputs(Tokens),
    output:
        "results/{study}/tokens/{task}/{encoder}/{language}/{split}.arrow",
    log:
        "results/{study}/logs/tokens/{task}/{encoder}/{language}/{split}.log",
    benchmark:
        "results/{study}/benchmarks/tokens/{task}/{encoder}/{language}/{split}.tsv"
    conda:
        "../envs/xlgrid.yaml"
    params:
        kind=setting("kind", Tokens),
        columns=setting("columns", Tokens),
        max_length=setting("max_length", Tokens),
        separators=setting("separators", Tokens),
        stride=setting("stride", Tokens),
        text=setting("text", Tokens),
        encoder=subpath(input.tokenizer, parent=True),
    shell:
        r"""
        xlgrid tokenize {params.kind:q} {input.data:q} \
            --columns {params.columns:q} \
            --encoder {params.encoder:q} \
            --max-length {params.max_length} {params.separators} {params.stride} {params.text} \
            --output {output:q} 2>{log:q}
        """


localrules:
    hub_encoder,
    local_encoder,
