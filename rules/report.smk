"""The report of a study.

REQUIRED INPUTS: every cell and exhibit of the study
OUTPUTS: results/{study}/summary.csv, results/{study}/report.ipynb, results/{study}/report.html;
    for a study with claims, also results/{study}/claims.csv .md .html .svg
"""

NOTEBOOK = workflow.source_path("../notebooks/report.ipynb")


rule claims:
    """The verdicts of the claims of a study."""
    input:
        # The rule needs the cells that the claims compare.
        inputs(Claims),
    output:
        multiext("results/{study}/claims", ".csv", ".md"),
        report("results/{study}/claims.html", category="Claims", caption="../notebooks/captions/claims.rst"),
        report("results/{study}/claims.svg", category="Claims", caption="../notebooks/captions/claims.rst"),
    log:
        "results/{study}/logs/claims.log",
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(),
    params:
        study=study_file,
        # The command reads the study. With a change of these settings, Snakemake runs it again.
        settings=setting("settings", Claims),
        folder=subpath(output[0], parent=True),
    shell:
        "xlgrid claims {params.study:q} --output {params.folder:q} 2> {log:q}"


rule report_notebook:
    """The notebook of the report, which also writes the scores of all cells."""
    input:
        # The rule needs all cells, exhibits, comparisons and verdicts.
        inputs(Summary),
    output:
        summary="results/{study}/summary.csv",
    log:
        notebook="results/{study}/report.ipynb",
        errors="results/{study}/logs/summary.log",
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(),
    params:
        study=study_file,
        # The command reads the study. With a change of these settings, Snakemake runs it again.
        settings=setting("settings", Summary),
        # Snakemake may read the notebook through a temporary file of another name each time. It does not compare a param
        # that also depends on inputs with that of the last time.
        notebook=lambda w, input: NOTEBOOK,
    shell:
        r"""
        xlgrid report {params.study:q} {params.notebook:q} \
            --output {log.notebook:q} \
            --summary {output.summary:q} 2>{log.errors:q}
        """


rule report_html:
    """The report as a page."""
    input:
        # The rule needs the scores of all cells, and the notebook of the report.
        inputs(Report),
    output:
        report("results/{study}/report.html", category="Report", caption="../notebooks/captions/report.rst"),
    log:
        "results/{study}/logs/report.log",
    conda:
        "../envs/xlgrid.yaml"
    resources:
        **job(),
    params:
        notebook=rules.report_notebook.log.notebook,
    shell:
        "xlgrid report-html {params.notebook:q} --output {output:q} 2> {log:q}"


localrules:
    report_notebook,
    report_html,
