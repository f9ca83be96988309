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
        spec=lambda w: study(w).encoders[w.encoder].mini.model_dump_json(exclude_defaults=True),
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
        hub=lambda w: study(w).encoders[w.encoder].hub,
        revision=lambda w: study(w).encoders[w.encoder].revision,
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
        path=lambda w: study(w).encoders[w.encoder].path,
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
    wildcard_constraints:
        study=studies_where("tokens", "tasks", lambda task: not task.is_text),
    conda:
        "../envs/xlgrid.yaml"
    params:
        kind=lambda w: study(w).tasks[w.task].kind,
        columns=task_columns,
        max_length=lambda w: study(w).tasks[w.task].max_length,
        separators=lambda w: "--one-separator" if study(w).tasks[w.task].separators == "one" else "",
        stride=lambda w: (f"--stride {study(w).tasks[w.task].stride}" if task(w).head.has_stride else ""),
        encoder=subpath(input.tokenizer, parent=True),
    shell:
        r"""
        xlgrid tokenize {params.kind:q} {input.data:q} \
            --columns {params.columns:q} \
            --encoder {params.encoder:q} \
            --max-length {params.max_length} {params.separators} {params.stride} \
            --output {output:q} 2>{log:q}
        """


rule text_tokens:
    input:
        inputs(Tokens, split="train"),
    output:
        train="results/{study}/tokens/{task}/{encoder}/{language}/train.arrow",
        dev="results/{study}/tokens/{task}/{encoder}/{language}/dev.arrow",
    log:
        "results/{study}/logs/tokens/{task}/{encoder}/{language}.log",
    benchmark:
        "results/{study}/benchmarks/tokens/{task}/{encoder}/{language}.tsv"
    wildcard_constraints:
        study=studies_where("tokens", "tasks", lambda task: task.is_text),
    conda:
        "../envs/xlgrid.yaml"
    params:
        separators=lambda w: "--one-separator" if study(w).tasks[w.task].separators == "one" else "",
        documents=lambda w: task(w).Options(**study(w).tasks[w.task].options).documents,
        dev_inputs=lambda w: task(w).Options(**study(w).tasks[w.task].options).dev_inputs,
        max_length=lambda w: study(w).tasks[w.task].max_length,
        encoder=subpath(input.tokenizer, parent=True),
    shell:
        r"""
        xlgrid tokenize-text {input.texts:q} \
            --encoder {params.encoder:q} \
            --documents {params.documents} \
            --max-length {params.max_length} {params.separators} \
            --dev-inputs {params.dev_inputs} \
            --train {output.train:q} \
            --dev {output.dev:q} 2>{log:q}
        """


localrules:
    hub_encoder,
    local_encoder,
