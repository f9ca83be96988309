"""Tokenizers and encoders, in the ordinary Hugging Face layout wherever they come from, and the data as tokens.

REQUIRED INPUTS: results/{study}/text/{language}.parquet (tokenizers, tokens of text),
    results/{study}/data/...
OUTPUTS: results/{study}/tokenizers/{tokenizer}/, results/{study}/encoders/{encoder}/,
    results/{study}/tokens/{task}/{tokenizer}/{language}/{split}.arrow
"""

TOKENIZER = multiext("results/{study}/tokenizers/{tokenizer}/tokenizer", ".json", "_config.json")
LAYOUT = [
    "results/{study}/encoders/{encoder}/config.json",
    "results/{study}/encoders/{encoder}/model.safetensors",
    "results/{study}/encoders/{encoder}/tokenizer.json",
]


rule tokenizer:
    """A tokenizer that is trained on texts."""
    input:
        # The rule needs the texts of the languages of the tokenizer.
        inputs(Tokenizer),
    output:
        TOKENIZER,
    log:
        "results/{study}/logs/tokenizers/{tokenizer}.log",
    benchmark:
        "results/{study}/benchmarks/tokenizers/{tokenizer}.tsv"
    wildcard_constraints:
        study=made_by("tokenizer", Tokenizer),
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(),
    params:
        spec=setting("spec", Tokenizer),
        folder=subpath(output[0], parent=True),
    shell:
        "xlgrid tokenizer {input.texts:q} --spec {params.spec:q} --output {params.folder:q} 2> {log:q}"


rule fetch_tokenizer:
    """A tokenizer from the Hub, or from a folder."""
    input:
        # The rule needs the files of the folder, if the tokenizer is not on the Hub.
        inputs(Tokenizer),
    output:
        TOKENIZER,
    log:
        "results/{study}/logs/tokenizers/{tokenizer}.log",
    benchmark:
        "results/{study}/benchmarks/tokenizers/{tokenizer}.tsv"
    wildcard_constraints:
        study=made_by("fetch_tokenizer", Tokenizer),
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(),
    params:
        place=setting("place", Tokenizer),
        revision=setting("revision", Tokenizer),
        lock=lock(Tokenizer),
        folder=subpath(output[0], parent=True),
    shell:
        r"""
        xlgrid fetch-tokenizer {params.place:q} {params.revision:q} {params.lock:q} \
            --output {params.folder:q} 2>{log:q}
        """


rule pretrain:
    """An encoder that is trained here: from scratch, or with a new language-modelling head."""
    input:
        # The rule needs the tokenizer, the tokens of the languages, and the encoder with which the training begins.
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
        study=made_by("pretrain", Encoder),
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(
            mem_mb=lambda w, input, attempt: max(1, SETTINGS.gpus) * plans.megabytes(w, input, attempt),
            runtime=240,
            gpu=SETTINGS.gpus,
        ),
    params:
        # As in rule train: settings that cannot change the result are in `pace`.
        recipe=setting("recipe", Encoder),
        pace=lambda w, input: study(w).pretraining(w.encoder).pace(),
        # One process for each GPU of the job. The number of processes changes only the order of sums in the result.
        processes=lambda w, resources: max(1, *(resources.get(name, 0) for name in ("gpu", "gpus"))),
        folder=subpath(output[0], parent=True),
        # `train` also has the encoder with which a pre-training begins: a new param would train all encoders again.
        train=lambda w, input: [
            *(f"--begin={path}" for path in input.begin),
            *(f"--train={path}" for path in input.train),
        ],
        dev=lambda w, input: [f"--dev={path}" for path in input.dev],
    shell:
        r"""
        xlgrid pretrain --recipe {params.recipe:q} --pace {params.pace:q} \
            --processes {params.processes} \
            --tokenizer {input.tokenizer:q} \
            {params.train:q} \
            {params.dev:q} \
            --output {params.folder:q} 2>{log:q}
        """


rule checkpoint_encoder:
    """The checkpoint of an encoder after a step of its pre-training."""
    input:
        # The rule needs the encoder at the end of the pre-training.
        inputs(Encoder),
    output:
        LAYOUT,
    log:
        "results/{study}/logs/encoders/{encoder}.log",
    benchmark:
        "results/{study}/benchmarks/encoders/{encoder}.tsv"
    wildcard_constraints:
        study=made_by("checkpoint_encoder", Encoder),
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(),
    params:
        step=setting("step", Encoder),
        folder=subpath(output[0], parent=True),
    shell:
        r"""
        xlgrid checkpoint-encoder --encoder {input.encoder:q} --step {params.step} \
            --output {params.folder:q} 2>{log:q}
        """


rule fetch_encoder:
    """An encoder from the Hub, or from a folder."""
    input:
        # The rule needs the tokenizer, and the files of the folder, if the encoder is not on the Hub.
        inputs(Encoder),
    output:
        LAYOUT,
    log:
        "results/{study}/logs/encoders/{encoder}.log",
    benchmark:
        "results/{study}/benchmarks/encoders/{encoder}.tsv"
    wildcard_constraints:
        study=made_by("fetch_encoder", Encoder),
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(),
    params:
        place=setting("place", Encoder),
        revision=setting("revision", Encoder),
        changes=setting("changes", Encoder),
        lock=lock(Encoder),
        folder=subpath(output[0], parent=True),
    shell:
        r"""
        xlgrid fetch-encoder {params.place:q} {params.revision:q} {params.lock:q} \
            --tokenizer {input.tokenizer:q} {params.changes:q} \
            --output {params.folder:q} 2>{log:q}
        """


rule tokens:
    """A split of the data of a task in a language, as the tokens of a tokenizer."""
    input:
        # The rule needs the data, or the texts of a task of kind mlm; and the tokenizer.
        inputs(Tokens),
    output:
        "results/{study}/tokens/{task}/{tokenizer}/{language}/{split}.arrow",
    log:
        "results/{study}/logs/tokens/{task}/{tokenizer}/{language}/{split}.log",
    benchmark:
        "results/{study}/benchmarks/tokens/{task}/{tokenizer}/{language}/{split}.tsv"
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(),
    params:
        kind=setting("kind", Tokens),
        columns=setting("columns", Tokens),
        max_length=setting("max_length", Tokens),
        separators=setting("separators", Tokens),
        text=setting("text", Tokens),
    shell:
        r"""
        xlgrid tokenize {params.kind:q} {input.data:q} \
            --columns {params.columns:q} \
            --tokenizer {input.tokenizer:q} \
            --max-length {params.max_length} {params.separators} {params.text} \
            --output {output:q} 2>{log:q}
        """


# Downloads need the network, which compute nodes may lack. A folder is copied by the same rules.
localrules:
    fetch_tokenizer,
    fetch_encoder,
