"""Data of the tasks, and text.

REQUIRED INPUTS: none (generated), or the Hub, or the study's own files
OUTPUTS: results/{study}/data/{task}/{language}/{split}.parquet, results/{study}/text/{language}.parquet,
    the files that a study names in `downloads`
"""


rule meanings:
    """The meanings of a generated task, which every language expresses."""
    input:
        # The rule has no inputs. This call refuses a study that does not generate the task.
        inputs(Meanings),
    output:
        "results/{study}/data/{task}/meanings.parquet",
    log:
        "results/{study}/logs/data/{task}/meanings.log",
    benchmark:
        "results/{study}/benchmarks/data/{task}/meanings.tsv"
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(),
    params:
        kind=setting("kind", Meanings),
        options=setting("options", Meanings),
    shell:
        "xlgrid meanings {params.kind:q} --options {params.options:q} --output {output:q} 2> {log:q}"


rule data:
    """The examples of a generated task in a language."""
    input:
        # The rule needs the meanings of the task.
        inputs(Data, split="train"),
    output:
        expand("results/{{study}}/data/{{task}}/{{language}}/{split}.parquet", split=["train", "dev", "test"]),
    log:
        "results/{study}/logs/data/{task}/{language}.log",
    benchmark:
        "results/{study}/benchmarks/data/{task}/{language}.tsv"
    wildcard_constraints:
        study=made_by("data", Data),
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(),
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
    """A split of the data of a task in a language, from the Hub or from files."""
    input:
        # The rule needs the files of the study, if the data are not on the Hub.
        inputs(Data),
    output:
        "results/{study}/data/{task}/{language}/{split}.parquet",
    log:
        "results/{study}/logs/data/{task}/{language}/{split}.log",
    benchmark:
        "results/{study}/benchmarks/data/{task}/{language}/{split}.tsv"
    wildcard_constraints:
        study=made_by("fetch_data", Data),
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(),
    params:
        kind=setting("kind", Data),
        columns=setting("columns", Data),
        source=setting("source", Data),
        split="{split}",
        lock=SETTINGS.hub_lock,
    shell:
        r"""
        xlgrid fetch-data {params.kind:q} {wildcards.language:q} {params.split:q} \
            --columns {params.columns:q} \
            --source {params.source:q} \
            --lock {params.lock:q} \
            --output {output:q} 2>{log:q}
        """


rule text:
    """The text of a language, generated or from files."""
    input:
        # The rule needs the files of the study, unless the text is generated.
        inputs(Text),
    output:
        "results/{study}/text/{language}.parquet",
    log:
        "results/{study}/logs/text/{language}.log",
    benchmark:
        "results/{study}/benchmarks/text/{language}.tsv"
    wildcard_constraints:
        study=made_by("text", Text),
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(),
    params:
        settings=setting("settings", Text),
        lock=lock(Text),
    shell:
        r"""
        xlgrid text {wildcards.language:q} \
            --settings {params.settings:q} {params.lock:q} \
            --output {output:q} 2>{log:q}
        """


use rule text as fetch_text with:
    wildcard_constraints:
        study=made_by("fetch_text", Text),


rule download:
    """A file that a study names in `downloads`."""
    output:
        "{file}",
    log:
        "downloads/{file}.log",
    wildcard_constraints:
        file=DOWNLOADS.regex("download"),
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(),
    params:
        url=lambda wildcards: DOWNLOADS.find(wildcards.file).urls[0],
        options=lambda wildcards: DOWNLOADS.find(wildcards.file).entry.options,
        lock=SETTINGS.hub_lock,
    shell:
        r"""
        xlgrid download {params.url:q} {params.options:q} \
            --lock {params.lock:q} \
            --output {output:q} 2>{log:q}
        """


rule download_archive:
    """An archive with files that a study names in `downloads`; it is deleted when they have been taken out."""
    output:
        temp("downloads/{address}"),
    log:
        "downloads/{address}.log",
    wildcard_constraints:
        address=DOWNLOADS.regex("download_archive"),
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(),
    params:
        url=lambda wildcards: DOWNLOADS.archive(wildcards.address).url,
        options=lambda wildcards: DOWNLOADS.archive(wildcards.address).entry.options,
        lock=SETTINGS.hub_lock,
    shell:
        r"""
        xlgrid download {params.url:q} {params.options:q} \
            --lock {params.lock:q} \
            --output {output:q} 2>{log:q}
        """


rule unpack:
    """A file of an archive."""
    input:
        archive=lambda wildcards: archives(wildcards.file),
    output:
        "{file}",
    log:
        "downloads/{file}.log",
    wildcard_constraints:
        file=DOWNLOADS.regex("unpack"),
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(),
    params:
        member=lambda wildcards: DOWNLOADS.find(wildcards.file).member,
    shell:
        "xlgrid unpack {input.archive:q} {params.member:q} --output {output:q} 2> {log:q}"


rule by_hand:
    """A file that a person has to get. `xlgrid check` reports it early; this job fails with the same advice."""
    output:
        "{file}",
    log:
        "downloads/{file}.log",
    wildcard_constraints:
        file=DOWNLOADS.regex("by_hand"),
    # This job runs before jobs that take long.
    priority: 100
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(),
    params:
        how=lambda wildcards: DOWNLOADS.find(wildcards.file).entry.by_hand,
    shell:
        "echo There is no {output:q}, and no rule makes it: {params.how:q} 2>&1 | tee {log:q} >&2; exit 1"


# Downloads need the network, which compute nodes may lack. Local files may be large, so they are read in jobs.
localrules:
    by_hand,
    download,
    download_archive,
    fetch_data,
    fetch_text,
