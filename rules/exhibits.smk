"""Tables and figures from cells.

REQUIRED INPUTS: the cells that the exhibit selects
OUTPUTS: results/{study}/exhibits/{exhibit}.csv .md .tex, and .html (tables) or .png .svg (figures)
"""


rule table:
    input:
        lambda w: [cell.path for cell in needed(STUDY.exhibits[w.exhibit], CELLS)],
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
        exhibit=among(TABLES),
    conda:
        "../envs/xlgrid.yaml"
    params:
        study=STUDY_FILE,
        # Not for the command, but so that a change of the exhibit renders it again.
        exhibit=lambda w: STUDY.exhibits[w.exhibit].model_dump_json(),
    shell:
        "xlgrid exhibit {params.study:q} {wildcards.exhibit:q} 2> {log:q}"


rule figure:
    input:
        lambda w: [cell.path for cell in needed(STUDY.exhibits[w.exhibit], CELLS)],
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
        exhibit=among(FIGURES),
    conda:
        "../envs/xlgrid.yaml"
    params:
        study=STUDY_FILE,
        # Not for the command, but so that a change of the exhibit renders it again.
        exhibit=lambda w: STUDY.exhibits[w.exhibit].model_dump_json(),
    shell:
        "xlgrid exhibit {params.study:q} {wildcards.exhibit:q} 2> {log:q}"


localrules:
    table,
    figure,
