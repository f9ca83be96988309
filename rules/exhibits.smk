"""Tables and figures from cells, and their comparisons with published numbers.

REQUIRED INPUTS: the cells that the exhibit selects, or attention; published numbers, if it shows or is compared with any
OUTPUTS: results/{study}/exhibits/{exhibit}.csv .md .tex, and .html (tables) or .png .svg .pdf (figures);
    results/{study}/exhibits/{exhibit}-published.csv .md .html (exhibits with `published`)
"""


rule table:
    """A table."""
    input:
        # The rule needs the cells or the attention that the table shows, and published numbers.
        inputs(Exhibit),
    output:
        multiext("results/{study}/exhibits/{exhibit}", ".csv", ".md", ".tex"),
        report(
            "results/{study}/exhibits/{exhibit}.html",
            category="Tables",
            labels={"exhibit": "{exhibit}"},
            caption="../notebooks/captions/table.rst",
        ),
    log:
        "results/{study}/logs/exhibits/{exhibit}.log",
    wildcard_constraints:
        study=made_by("table", Exhibit),
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(),
    params:
        study=study_file,
        # The command reads the study. With a change of these settings, Snakemake runs it again.
        settings=setting("settings", Exhibit),
        folder=subpath(output[0], parent=True),
    shell:
        "xlgrid exhibit {params.study:q} {wildcards.exhibit:q} --output {params.folder:q} 2> {log:q}"


use rule table as figure with:
    output:
        multiext("results/{study}/exhibits/{exhibit}", ".csv", ".md", ".tex", ".png", ".pdf"),
        report(
            "results/{study}/exhibits/{exhibit}.svg",
            category="Figures",
            labels={"exhibit": "{exhibit}"},
            caption="../notebooks/captions/figure.rst",
        ),
    wildcard_constraints:
        study=made_by("figure", Exhibit),


rule published:
    """The comparison of an exhibit with published numbers."""
    input:
        # The rule needs what the exhibit shows, and the published numbers.
        inputs(PublishedExhibit),
    output:
        multiext("results/{study}/exhibits/{exhibit}-published", ".csv", ".md"),
        report(
            "results/{study}/exhibits/{exhibit}-published.html",
            category="Comparisons with published numbers",
            labels={"exhibit": "{exhibit}"},
            caption="../notebooks/captions/published.rst",
        ),
    log:
        "results/{study}/logs/exhibits/{exhibit}-published.log",
    wildcard_constraints:
        study=made_by("published", PublishedExhibit),
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(),
    params:
        study=study_file,
        # The command reads the study. With a change of these settings, Snakemake runs it again.
        settings=setting("settings", Exhibit),
        folder=subpath(output[0], parent=True),
    shell:
        "xlgrid exhibit {params.study:q} {wildcards.exhibit:q} --published --output {params.folder:q} 2> {log:q}"
