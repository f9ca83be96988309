"""The report of a study.

REQUIRED INPUTS: every cell and exhibit of the study
OUTPUTS: results/{study}/summary.csv, results/{study}/report.ipynb, results/{study}/report.html;
    of a study with claims, results/{study}/claims.csv .md .html .svg too
"""


rule claims:
    input:
        inputs(Claims),
    output:
        multiext("results/{study}/claims", ".csv", ".md"),
        report("results/{study}/claims.html", category="Claims", caption="../notebooks/captions/claims.rst"),
        report("results/{study}/claims.svg", category="Claims", caption="../notebooks/captions/claims.rst"),
    log:
        "results/{study}/logs/claims.log",
    conda:
        "../envs/xlgrid.yaml"
    params:
        study="studies/{study}.yaml",
        # Not for the command, but so that a change of the claims judges them again.
        claims=lambda w: [claim.model_dump_json() for claim in study(w).claims.values()],
    shell:
        "xlgrid claims {params.study:q} 2> {log:q}"


rule report_notebook:
    input:
        inputs(Summary),
    output:
        summary="results/{study}/summary.csv",
    log:
        notebook="results/{study}/report.ipynb",
    conda:
        "../envs/xlgrid.yaml"
    params:
        # Not for the notebook, but so that a change of them makes the page again.
        texts=lambda w: [study(w).title, study(w).description],
        study_file="studies/{study}.yaml",
        results=subpath(output.summary, parent=True),
    notebook:
        "../notebooks/report.ipynb"


rule report_html:
    input:
        inputs(Report),
    output:
        report("results/{study}/report.html", category="Report", caption="../notebooks/captions/report.rst"),
    log:
        "results/{study}/logs/report.log",
    conda:
        "../envs/xlgrid.yaml"
    params:
        notebook=subpath(input.summary, parent=True),
    shell:
        r"""
        jupyter-nbconvert {params.notebook:q}/report.ipynb --to html --no-input \
            --template template --TemplateExporter.extra_template_basedirs=notebooks \
            --output report.html 2>{log:q}
        """


localrules:
    claims,
    report_notebook,
    report_html,
