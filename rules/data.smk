"""Data of the tasks and text for the mini encoders.

REQUIRED INPUTS: none (generated), or the Hub, or the study's own files
OUTPUTS: results/{study}/data/{task}/{language}/{split}.parquet, results/{study}/text/{language}.parquet
"""

GENERATED = among(name for name, task in STUDY.tasks.items() if task.data is None)
FETCHED = among(name for name, task in STUDY.tasks.items() if task.data is not None)
FETCHED_TEXT = {code for code in STUDY.languages if STUDY.text.fetches(code)}


rule meanings:
    output:
        "results/{study}/data/{task}/meanings.parquet",
    log:
        "results/{study}/logs/data/{task}/meanings.log",
    benchmark:
        "results/{study}/benchmarks/data/{task}/meanings.tsv"
    wildcard_constraints:
        task=GENERATED,
    conda:
        "../envs/xlgrid.yaml"
    params:
        kind=lambda w: STUDY.tasks[w.task].kind,
        options=lambda w: json.dumps(STUDY.tasks[w.task].options),
    shell:
        "xlgrid meanings {params.kind:q} --options {params.options:q} --output {output:q} 2> {log:q}"


rule data:
    input:
        "results/{study}/data/{task}/meanings.parquet",
    output:
        expand("results/{{study}}/data/{{task}}/{{language}}/{split}.parquet", split=["train", "dev", "test"]),
    log:
        "results/{study}/logs/data/{task}/{language}.log",
    benchmark:
        "results/{study}/benchmarks/data/{task}/{language}.tsv"
    wildcard_constraints:
        task=GENERATED,
    conda:
        "../envs/xlgrid.yaml"
    params:
        kind=lambda w: STUDY.tasks[w.task].kind,
        options=lambda w: json.dumps(STUDY.tasks[w.task].options),
        folder=subpath(output[0], parent=True),
    shell:
        r"""
        xlgrid data {params.kind:q} {wildcards.language:q} \
            --options {params.options:q} \
            --meanings {input:q} \
            --output {params.folder:q} 2>{log:q}
        """


rule fetch_data:
    output:
        "results/{study}/data/{task}/{language}/{split}.parquet",
    log:
        "results/{study}/logs/data/{task}/{language}/{split}.log",
    benchmark:
        "results/{study}/benchmarks/data/{task}/{language}/{split}.tsv"
    wildcard_constraints:
        task=FETCHED,
    conda:
        "../envs/xlgrid.yaml"
    params:
        kind=lambda w: STUDY.tasks[w.task].kind,
        source=lambda w: STUDY.tasks[w.task].data.of(w.split, w.language).model_dump_json(exclude_none=True),
        lock=config["hub_lock"],
    shell:
        r"""
        xlgrid fetch-data {params.kind:q} {wildcards.language:q} {wildcards.split} \
            --source {params.source:q} \
            --lock {params.lock:q} \
            --output {output:q} 2>{log:q}
        """


rule text:
    output:
        "results/{study}/text/{language}.parquet",
    log:
        "results/{study}/logs/text/{language}.log",
    benchmark:
        "results/{study}/benchmarks/text/{language}.tsv"
    wildcard_constraints:
        language=among(LANGUAGES - FETCHED_TEXT),
    conda:
        "../envs/xlgrid.yaml"
    params:
        settings=text_settings,
    shell:
        "xlgrid text {wildcards.language:q} --settings {params.settings:q} --output {output:q} 2> {log:q}"


rule fetch_text:
    input:
        lambda w: STUDY.text.files.get(w.language, []),
    output:
        "results/{study}/text/{language}.parquet",
    log:
        "results/{study}/logs/text/{language}.log",
    benchmark:
        "results/{study}/benchmarks/text/{language}.tsv"
    wildcard_constraints:
        language=among(FETCHED_TEXT),
    conda:
        "../envs/xlgrid.yaml"
    params:
        settings=text_settings,
        lock=config["hub_lock"],
    shell:
        r"""
        xlgrid text {wildcards.language:q} \
            --settings {params.settings:q} \
            --lock {params.lock:q} \
            --output {output:q} 2>{log:q}
        """


localrules:
    fetch_data,
    fetch_text,
