"""Vocabularies and encoders, in the ordinary Hugging Face layout wherever they come from, and the data as tokens.

REQUIRED INPUTS: results/{study}/text/{language}.parquet (vocabularies, tokens of text),
    results/{study}/data/...
OUTPUTS: results/{study}/vocabularies/{vocabulary}/, results/{study}/encoders/{encoder}/,
    results/{study}/tokens/{task}/{vocabulary}/{language}/{split}.arrow
"""

VOCABULARY = multiext("results/{study}/vocabularies/{vocabulary}/tokenizer", ".json", "_config.json")
LAYOUT = [
    "results/{study}/encoders/{encoder}/config.json",
    "results/{study}/encoders/{encoder}/model.safetensors",
    "results/{study}/encoders/{encoder}/tokenizer.json",
]


rule vocabulary:
    input:
        inputs(Vocabulary),
    output:
        VOCABULARY,
    log:
        "results/{study}/logs/vocabularies/{vocabulary}.log",
    benchmark:
        "results/{study}/benchmarks/vocabularies/{vocabulary}.tsv"
    wildcard_constraints:
        study=studies_where("vocabularies", "all_vocabularies", lambda vocabulary: vocabulary.languages),
    conda:
        "../envs/xlgrid.yaml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 8000 * attempt,
        runtime=60,
    params:
        spec=setting("spec", Vocabulary),
        folder=subpath(output[0], parent=True),
    shell:
        "xlgrid vocabulary {input.texts:q} --spec {params.spec:q} --output {params.folder:q} 2> {log:q}"


rule hub_vocabulary:
    input:
        inputs(Vocabulary),
    output:
        VOCABULARY,
    log:
        "results/{study}/logs/vocabularies/{vocabulary}.log",
    benchmark:
        "results/{study}/benchmarks/vocabularies/{vocabulary}.tsv"
    wildcard_constraints:
        study=studies_where("vocabularies", "all_vocabularies", lambda vocabulary: vocabulary.hub),
    conda:
        "../envs/xlgrid.yaml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 8000 * attempt,
        runtime=60,
    params:
        hub=setting("hub", Vocabulary),
        revision=setting("revision", Vocabulary),
        lock=SETTINGS.hub_lock,
        folder=subpath(output[0], parent=True),
    shell:
        r"""
        xlgrid fetch-vocabulary {params.hub:q} \
            --revision {params.revision:q} \
            --lock {params.lock:q} \
            --output {params.folder:q} 2>{log:q}
        """


rule local_vocabulary:
    input:
        inputs(Vocabulary),
    output:
        VOCABULARY,
    log:
        "results/{study}/logs/vocabularies/{vocabulary}.log",
    benchmark:
        "results/{study}/benchmarks/vocabularies/{vocabulary}.tsv"
    wildcard_constraints:
        study=studies_where("vocabularies", "all_vocabularies", lambda vocabulary: vocabulary.path),
    conda:
        "../envs/xlgrid.yaml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 8000 * attempt,
        runtime=60,
    params:
        path=setting("path", Vocabulary),
        folder=subpath(output[0], parent=True),
    shell:
        "xlgrid copy-vocabulary {params.path:q} --output {params.folder:q} 2> {log:q}"


rule pretrain:
    input:
        inputs(Encoder),
    output:
        LAYOUT,
        "results/{study}/encoders/{encoder}/run.json",
        "results/{study}/encoders/{encoder}/curve.jsonl",
    log:
        "results/{study}/logs/encoders/{encoder}.log",
    benchmark:
        "results/{study}/benchmarks/encoders/{encoder}.tsv"
    wildcard_constraints:
        study=studies_where("encoders", "encoders", lambda encoder: encoder.is_trained),
    conda:
        "../envs/xlgrid.yaml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 8000 * attempt,
        runtime=240,
        gpu=SETTINGS.gpus,
    params:
        # As in rule train: settings that cannot change the result are in `pace`.
        recipe=setting("recipe", Encoder),
        pace=lambda w, input: study(w).pretraining(w.encoder).pace(),
        # A process for each GPU that the job asks for. The number changes the result by the order of sums only.
        processes=lambda w, resources: max(1, *(resources.get(name, 0) for name in ("gpu", "gpus"))),
        folder=subpath(output[0], parent=True),
        # With the encoder that a pre-training begins with: a further parameter would train all encoders again.
        train=lambda w, input: [
            *(f"--begin={path}" for path in input.begin),
            *(f"--train={path}" for path in input.train),
        ],
        dev=lambda w, input: [f"--dev={path}" for path in input.dev],
    shell:
        r"""
        xlgrid pretrain --recipe {params.recipe:q} --pace {params.pace:q} \
            --processes {params.processes} \
            --vocabulary {input.vocabulary:q} \
            {params.train:q} \
            {params.dev:q} \
            --output {params.folder:q} 2>{log:q}
        """


rule snapshot_encoder:
    input:
        inputs(Encoder),
    output:
        LAYOUT,
    log:
        "results/{study}/logs/encoders/{encoder}.log",
    benchmark:
        "results/{study}/benchmarks/encoders/{encoder}.tsv"
    wildcard_constraints:
        study=studies_where("encoders", "encoders", lambda encoder: encoder.step),
    conda:
        "../envs/xlgrid.yaml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 8000 * attempt,
        runtime=60,
    params:
        step=setting("step", Encoder),
        folder=subpath(output[0], parent=True),
    shell:
        r"""
        xlgrid snapshot-encoder --encoder {input.encoder:q} --step {params.step} \
            --output {params.folder:q} 2>{log:q}
        """


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
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 8000 * attempt,
        runtime=60,
    params:
        hub=setting("hub", Encoder),
        # With the layers to keep: a further parameter would make all encoders again.
        modules=setting("modules", Encoder),
        revision=setting("revision", Encoder),
        lock=SETTINGS.hub_lock,
        folder=subpath(output[0], parent=True),
    shell:
        r"""
        xlgrid fetch-encoder {params.hub:q} --vocabulary {input.vocabulary:q} \
            --revision {params.revision:q} {params.modules:q} \
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
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 8000 * attempt,
        runtime=60,
    params:
        path=setting("path", Encoder),
        # With the layers to keep: a further parameter would make all encoders again.
        modules=setting("modules", Encoder),
        folder=subpath(output[0], parent=True),
    shell:
        r"""
        xlgrid copy-encoder {params.path:q} --vocabulary {input.vocabulary:q} {params.modules:q} \
            --output {params.folder:q} 2>{log:q}
        """


rule tokens:
    input:
        inputs(Tokens),
    output:
        "results/{study}/tokens/{task}/{vocabulary}/{language}/{split}.arrow",
    log:
        "results/{study}/logs/tokens/{task}/{vocabulary}/{language}/{split}.log",
    benchmark:
        "results/{study}/benchmarks/tokens/{task}/{vocabulary}/{language}/{split}.tsv"
    conda:
        "../envs/xlgrid.yaml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 8000 * attempt,
        runtime=60,
    params:
        kind=setting("kind", Tokens),
        columns=setting("columns", Tokens),
        max_length=setting("max_length", Tokens),
        separators=setting("separators", Tokens),
        stride=setting("stride", Tokens),
        text=setting("text", Tokens),
    shell:
        r"""
        xlgrid tokenize {params.kind:q} {input.data:q} \
            --columns {params.columns:q} \
            --vocabulary {input.vocabulary:q} \
            --max-length {params.max_length} {params.separators} {params.stride} {params.text} \
            --output {output:q} 2>{log:q}
        """


# Downloads need the network, which compute nodes may lack.
localrules:
    hub_vocabulary,
    hub_encoder,
