"""Encoders, in the ordinary Hugging Face layout wherever they come from, and the data in their tokens.

REQUIRED INPUTS: results/{study}/text/{language}.parquet (mini encoders), results/{study}/data/...
OUTPUTS: results/{study}/encoders/{encoder}/, results/{study}/tokens/{task}/{encoder}/{language}/{split}.arrow, where
    text is of task mlm
"""

LAYOUT = [
    "results/{study}/encoders/{encoder}/config.json",
    "results/{study}/encoders/{encoder}/model.safetensors",
    "results/{study}/encoders/{encoder}/tokenizer.json",
]


rule mini_encoder:
    input:
        lambda w: expand("results/{{study}}/text/{language}.parquet", language=STUDY.encoders[w.encoder].mini.languages),
    output:
        LAYOUT,
    log:
        "results/{study}/logs/encoders/{encoder}.log",
    benchmark:
        "results/{study}/benchmarks/encoders/{encoder}.tsv"
    wildcard_constraints:
        encoder=from_origin("mini"),
    conda:
        "../envs/xlgrid.yaml"
    params:
        spec=lambda w: STUDY.encoders[w.encoder].mini.model_dump_json(exclude_defaults=True),
        folder=subpath(output[0], parent=True),
    shell:
        "xlgrid mini-encoder {input:q} --spec {params.spec:q} --output {params.folder:q} 2> {log:q}"


rule hub_encoder:
    output:
        LAYOUT,
    log:
        "results/{study}/logs/encoders/{encoder}.log",
    benchmark:
        "results/{study}/benchmarks/encoders/{encoder}.tsv"
    wildcard_constraints:
        encoder=from_origin("hub"),
    conda:
        "../envs/xlgrid.yaml"
    params:
        hub=lambda w: STUDY.encoders[w.encoder].hub,
        revision=lambda w: STUDY.encoders[w.encoder].revision,
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
    output:
        LAYOUT,
    log:
        "results/{study}/logs/encoders/{encoder}.log",
    benchmark:
        "results/{study}/benchmarks/encoders/{encoder}.tsv"
    wildcard_constraints:
        encoder=from_origin("path"),
    conda:
        "../envs/xlgrid.yaml"
    params:
        path=lambda w: STUDY.encoders[w.encoder].path,
        folder=subpath(output[0], parent=True),
    shell:
        "xlgrid copy-encoder {params.path:q} --output {params.folder:q} 2> {log:q}"


rule tokens:
    input:
        data="results/{study}/data/{task}/{language}/{split}.parquet",
        tokenizer="results/{study}/encoders/{encoder}/tokenizer.json",
    output:
        "results/{study}/tokens/{task}/{encoder}/{language}/{split}.arrow",
    log:
        "results/{study}/logs/tokens/{task}/{encoder}/{language}/{split}.log",
    benchmark:
        "results/{study}/benchmarks/tokens/{task}/{encoder}/{language}/{split}.tsv"
    wildcard_constraints:
        task=among(STUDY.tasks),
    conda:
        "../envs/xlgrid.yaml"
    params:
        kind=lambda w: STUDY.tasks[w.task].kind,
        max_length=lambda w: STUDY.tasks[w.task].max_length,
        separators=lambda w: "--one-separator" if STUDY.tasks[w.task].separators == "one" else "",
        stride=lambda w: (
            f"--stride {STUDY.tasks[w.task].stride}" if task(STUDY.tasks[w.task].kind).head.has_stride else ""
        ),
        encoder=subpath(input.tokenizer, parent=True),
    shell:
        r"""
        xlgrid tokenize {params.kind:q} {input.data:q} \
            --encoder {params.encoder:q} \
            --max-length {params.max_length} {params.separators} {params.stride} \
            --output {output:q} 2>{log:q}
        """


rule text_tokens:
    input:
        text=lambda w: expand("results/{{study}}/text/{code}.parquet", code=parts(w.language)),
        tokenizer="results/{study}/encoders/{encoder}/tokenizer.json",
    output:
        train="results/{study}/tokens/mlm/{encoder}/{language}/train.arrow",
        dev="results/{study}/tokens/mlm/{encoder}/{language}/dev.arrow",
    log:
        "results/{study}/logs/tokens/mlm/{encoder}/{language}.log",
    benchmark:
        "results/{study}/benchmarks/tokens/mlm/{encoder}/{language}.tsv"
    conda:
        "../envs/xlgrid.yaml"
    params:
        separators="--one-separator" if STUDY.text.separators == "one" else "",
        documents=STUDY.text.documents,
        max_length=f"--max-length {STUDY.text.max_length}" if STUDY.text.max_length else "",
        dev_inputs=STUDY.text.dev_inputs,
        encoder=subpath(input.tokenizer, parent=True),
    shell:
        r"""
        xlgrid tokenize-text {input.text:q} \
            --encoder {params.encoder:q} {params.separators} \
            --documents {params.documents} {params.max_length} \
            --dev-inputs {params.dev_inputs} \
            --train {output.train:q} \
            --dev {output.dev:q} 2>{log:q}
        """


localrules:
    hub_encoder,
    local_encoder,
