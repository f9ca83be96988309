"""Training data that a run of the study labels, and bitext of OPUS.

REQUIRED INPUTS: the study's own files, or the Hub; a run; archives of OPUS
OUTPUTS: results/{study}/unlabelled/{task}/{language}.parquet, results/{study}/data/{task}/{language}/train.parquet,
    the files that a study names in `downloads` with `corpora`
"""

from xlgrid.papers.luo2021.labelled import Unlabelled
from xlgrid.papers.luo2021.opus import pair_of
from xlgrid.products.data import Data


rule fetch_unlabelled:
    """The training data of a task in a language, before a run labels them."""
    input:
        # The rule needs the files of the study, if the data are not on the Hub.
        inputs(Unlabelled),
    output:
        "results/{study}/unlabelled/{task}/{language}.parquet",
    log:
        "results/{study}/logs/unlabelled/{task}/{language}.log",
    benchmark:
        "results/{study}/benchmarks/unlabelled/{task}/{language}.tsv"
    conda:
        ENVIRONMENT
    resources:
        **job(),
    params:
        kind=setting("kind", Unlabelled),
        columns=setting("columns", Unlabelled),
        source=setting("source", Unlabelled),
        lock=SETTINGS.hub_lock,
    shell:
        r"""
        xlgrid fetch-unlabelled {params.kind:q} {wildcards.language:q} \
            --columns {params.columns:q} \
            --source {params.source:q} \
            --lock {params.lock:q} \
            --output {output:q} 2>{log:q}
        """


rule label_data:
    """Training data with the labels that a run of the study predicts."""
    input:
        # The rule needs the data without labels, and the run with the encoder and the tokenizer that it has.
        inputs(Data),
    output:
        "results/{study}/data/{task}/{language}/{split}.parquet",
    log:
        "results/{study}/logs/data/{task}/{language}/{split}.log",
    benchmark:
        "results/{study}/benchmarks/data/{task}/{language}/{split}.tsv"
    wildcard_constraints:
        study=made_by("label_data", Data),
    conda:
        ENVIRONMENT
    resources:
        **job(gpu=SETTINGS.gpus),
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
            --tokenizer {input.tokenizer:q} \
            --output {output:q} 2>{log:q}
        """


rule join_bitext:
    """The sentences of a pair of languages in all corpora of OPUS that a study names for it."""
    input:
        archives=lambda wildcards: archives(f"{wildcards.folder}/train.jsonl"),
    output:
        expand("{{folder}}/{split}.jsonl", split=["train", "dev", "test"]),
    log:
        "downloads/{folder}.log",
    wildcard_constraints:
        folder=DOWNLOADS.regex("join_bitext"),
    conda:
        ENVIRONMENT
    resources:
        **job(runtime=600),
    params:
        pair=lambda wildcards: pair_of(DOWNLOADS.find(f"{wildcards.folder}/train.jsonl").values),
        folder=subpath(output[0], parent=True),
    shell:
        "xlgrid join-bitext {params.pair:q} {input.archives:q} --output {params.folder:q} 2> {log:q}"


# Downloads need the network, which compute nodes may lack.
localrules:
    fetch_unlabelled,
