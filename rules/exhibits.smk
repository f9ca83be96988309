"""Tables and figures from cells.

REQUIRED INPUTS: the cells that the exhibit selects, or attention; published numbers, if it is compared with any
OUTPUTS: results/{study}/exhibits/{exhibit}.csv .md .tex, and .html (tables) or .png .svg (figures);
    of one that is compared with published numbers, {exhibit}-published.csv .md .html too
"""


rule table:
    input:
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
        **drawn(tables=True, with_published=False),
    conda:
        "../envs/xlgrid.yaml"
    params:
        study="studies/{study}.yaml",
        # Snakemake renders the exhibit again when this changes; the command reads the study.
        exhibit=exhibit_settings,
    shell:
        "xlgrid exhibit {params.study:q} {wildcards.exhibit:q} 2> {log:q}"


rule figure:
    input:
        inputs(Exhibit),
    output:
        multiext("results/{study}/exhibits/{exhibit}", ".csv", ".md", ".tex", ".png"),
        report(
            "results/{study}/exhibits/{exhibit}.svg",
            category="Figures",
            labels={"exhibit": "{exhibit}"},
            caption="../notebooks/captions/figure.rst",
        ),
    log:
        "results/{study}/logs/exhibits/{exhibit}.log",
    wildcard_constraints:
        **drawn(tables=False, with_published=False),
    conda:
        "../envs/xlgrid.yaml"
    params:
        study="studies/{study}.yaml",
        # Snakemake renders the exhibit again when this changes; the command reads the study.
        exhibit=exhibit_settings,
    shell:
        "xlgrid exhibit {params.study:q} {wildcards.exhibit:q} 2> {log:q}"


use rule table as table_compared with:
    output:
        multiext("results/{study}/exhibits/{exhibit}", ".csv", ".md", ".tex", "-published.csv", "-published.md"),
        report(
            "results/{study}/exhibits/{exhibit}.html",
            category="Tables",
            labels={"exhibit": "{exhibit}"},
            caption="../notebooks/captions/table.rst",
        ),
        report(
            "results/{study}/exhibits/{exhibit}-published.html",
            category="Comparisons with published numbers",
            labels={"exhibit": "{exhibit}"},
            caption="../notebooks/captions/published.rst",
        ),
    wildcard_constraints:
        **drawn(tables=True, with_published=True),


use rule figure as figure_compared with:
    output:
        multiext("results/{study}/exhibits/{exhibit}", ".csv", ".md", ".tex", ".png", "-published.csv", "-published.md"),
        report(
            "results/{study}/exhibits/{exhibit}.svg",
            category="Figures",
            labels={"exhibit": "{exhibit}"},
            caption="../notebooks/captions/figure.rst",
        ),
        report(
            "results/{study}/exhibits/{exhibit}-published.html",
            category="Comparisons with published numbers",
            labels={"exhibit": "{exhibit}"},
            caption="../notebooks/captions/published.rst",
        ),
    wildcard_constraints:
        **drawn(tables=False, with_published=True),


localrules:
    table,
    figure,
    table_compared,
    figure_compared,
