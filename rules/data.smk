"""Data of the tasks, and text.

REQUIRED INPUTS: none (generated), or the Hub, or the study's own files; a run that labels data
OUTPUTS: results/{study}/data/{task}/{language}/{split}.parquet, results/{study}/text/{language}.parquet,
    results/{study}/unlabelled/{task}/{language}.parquet (data before a run labels them),
    cc100/{code}.txt.xz (text of CC-100, for studies that name it), bucc2018/{pair}/ (BUCC 2018, likewise)
"""


rule meanings:
    input:
        inputs(Meanings),
    output:
        "results/{study}/data/{task}/meanings.parquet",
    log:
        "results/{study}/logs/data/{task}/meanings.log",
    benchmark:
        "results/{study}/benchmarks/data/{task}/meanings.tsv"
    wildcard_constraints:
        study=studies_where("data", "tasks", lambda task: not task.data),
    conda:
        "../envs/xlgrid.yaml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 8000 * attempt,
        runtime=60,
    params:
        kind=setting("kind", Meanings),
        options=setting("options", Meanings),
    shell:
        "xlgrid meanings {params.kind:q} --options {params.options:q} --output {output:q} 2> {log:q}"


rule data:
    input:
        inputs(Data, split="train"),
    output:
        expand("results/{{study}}/data/{{task}}/{{language}}/{split}.parquet", split=["train", "dev", "test"]),
    log:
        "results/{study}/logs/data/{task}/{language}.log",
    benchmark:
        "results/{study}/benchmarks/data/{task}/{language}.tsv"
    wildcard_constraints:
        study=studies_where("data", "tasks", lambda task: not task.data),
    conda:
        "../envs/xlgrid.yaml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 8000 * attempt,
        runtime=60,
    params:
        kind=setting("kind", Data, split="train"),
        options=setting("options", Data, split="train"),
        folder=subpath(output[0], parent=True),
    shell:
        r"""
        xlgrid data {params.kind:q} {wildcards.language:q} \
            --options {params.options:q} \
            --meanings {input.meanings:q} \
            --output {params.folder:q} 2>{log:q}
        """


rule fetch_data:
    input:
        inputs(Data),
    output:
        "results/{study}/data/{task}/{language}/{split}.parquet",
    log:
        "results/{study}/logs/data/{task}/{language}/{split}.log",
    benchmark:
        "results/{study}/benchmarks/data/{task}/{language}/{split}.tsv"
    wildcard_constraints:
        study=plans.studies_with(
            PLANS,
            "data",
            lambda plan: [name for name, task in plan.study.tasks.items() if task.data],
            plans.labelled_data,
        ),
    conda:
        "../envs/xlgrid.yaml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 8000 * attempt,
        runtime=60,
    params:
        kind=setting("kind", Data),
        columns=setting("columns", Data),
        source=setting("source", Data),
        lock=SETTINGS.hub_lock,
    shell:
        r"""
        xlgrid fetch-data {params.kind:q} {wildcards.language:q} {wildcards.split} \
            --columns {params.columns:q} \
            --source {params.source:q} \
            --lock {params.lock:q} \
            --output {output:q} 2>{log:q}
        """


rule fetch_unlabelled:
    """Training data without labels, which a run of the study labels."""
    input:
        inputs(Unlabelled),
    output:
        "results/{study}/unlabelled/{task}/{language}.parquet",
    log:
        "results/{study}/logs/unlabelled/{task}/{language}.log",
    benchmark:
        "results/{study}/benchmarks/unlabelled/{task}/{language}.tsv"
    conda:
        "../envs/xlgrid.yaml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 8000 * attempt,
        runtime=60,
    params:
        kind=setting("kind", Unlabelled),
        columns=setting("columns", Unlabelled),
        source=setting("source", Unlabelled),
        lock=SETTINGS.hub_lock,
    shell:
        r"""
        xlgrid fetch-data {params.kind:q} {wildcards.language:q} train --unlabelled \
            --columns {params.columns:q} \
            --source {params.source:q} \
            --lock {params.lock:q} \
            --output {output:q} 2>{log:q}
        """


rule label_data:
    """Training data with the labels that a run of the study predicts."""
    input:
        inputs(Data),
    output:
        "results/{study}/data/{task}/{language}/{split}.parquet",
    log:
        "results/{study}/logs/data/{task}/{language}/{split}.log",
    benchmark:
        "results/{study}/benchmarks/data/{task}/{language}/{split}.tsv"
    wildcard_constraints:
        study=plans.studies_with(PLANS, "data", plans.labelled_data),
    conda:
        "../envs/xlgrid.yaml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 8000 * attempt,
        runtime=60,
        gpu=SETTINGS.gpus,
    params:
        kind=setting("kind", Data),
        columns=setting("columns", Data),
        max_length=setting("max_length", Data),
    shell:
        r"""
        xlgrid label-data {params.kind:q} {wildcards.language:q} {input.rows:q} \
            --columns {params.columns:q} \
            --max-length {params.max_length} \
            --run {input.delta:q} --encoder {input.encoder:q} \
            --vocabulary {input.vocabulary:q} \
            --output {output:q} 2>{log:q}
        """


rule text:
    input:
        inputs(Text),
    output:
        "results/{study}/text/{language}.parquet",
    log:
        "results/{study}/logs/text/{language}.log",
    benchmark:
        "results/{study}/benchmarks/text/{language}.tsv"
    wildcard_constraints:
        study=plans.studies_with(
            PLANS,
            "text",
            lambda plan: [code for code in plan.study.languages if not plan.study.text.is_from_hub(code)],
        ),
    conda:
        "../envs/xlgrid.yaml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 8000 * attempt,
        runtime=60,
    params:
        settings=setting("settings", Text),
    shell:
        "xlgrid text {wildcards.language:q} --settings {params.settings:q} --output {output:q} 2> {log:q}"


rule fetch_text:
    input:
        inputs(Text),
    output:
        "results/{study}/text/{language}.parquet",
    log:
        "results/{study}/logs/text/{language}.log",
    benchmark:
        "results/{study}/benchmarks/text/{language}.tsv"
    wildcard_constraints:
        study=plans.studies_with(
            PLANS, "text", lambda plan: [code for code in plan.study.languages if plan.study.text.is_from_hub(code)]
        ),
    conda:
        "../envs/xlgrid.yaml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 8000 * attempt,
        runtime=60,
    params:
        settings=setting("settings", Text),
        lock=SETTINGS.hub_lock,
    shell:
        r"""
        xlgrid text {wildcards.language:q} \
            --settings {params.settings:q} \
            --lock {params.lock:q} \
            --output {output:q} 2>{log:q}
        """


rule download_cc100:
    """CC-100 (Conneau et al. 2020) in a language, for studies that name the file as their text."""
    output:
        "cc100/{code}.txt.xz",
    log:
        "cc100/{code}.log",
    wildcard_constraints:
        code="[A-Za-z_-]+",
    conda:
        "../envs/xlgrid.yaml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 8000 * attempt,
        runtime=60,
    shell:
        r"""
        curl --fail --location --continue-at - --output {output:q}.part \
            https://data.statmt.org/cc-100/{wildcards.code}.txt.xz 2>{log:q}
        mv {output:q}.part {output:q}
        """


rule download_bucc:
    """The pools and gold pairs of BUCC 2018 (Zweigenbaum et al. 2018), for studies that name them as data of mining."""
    output:
        "bucc2018/{code}-en/{code}-en.{split}.{code}",
        "bucc2018/{code}-en/{code}-en.{split}.en",
        "bucc2018/{code}-en/{code}-en.{split}.gold",
    log:
        "bucc2018/{code}-en.{split}.log",
    wildcard_constraints:
        code="[a-z]{2}",
        split="sample|training",
    conda:
        "../envs/xlgrid.yaml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 8000 * attempt,
        runtime=60,
    shell:
        r"""
        curl --fail --location --retry 3 https://comparable.limsi.fr/bucc2018/bucc2018-{wildcards.code}-en.{wildcards.split}-gold.tar.bz2 2>{log:q} \
            | tar --extract --bzip2 2>>{log:q}
        """


# Downloads need the network, which compute nodes may lack. Local files may be large, so they are read in jobs.
localrules:
    download_bucc,
    download_cc100,
    fetch_data,
    fetch_text,
    fetch_unlabelled,
