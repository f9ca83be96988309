"""The report of a study.

REQUIRED INPUTS: every cell and exhibit of the study
OUTPUTS: results/{study}/summary.csv, results/{study}/report.ipynb, results/{study}/report.html;
    of a study with claims, results/{study}/claims.csv .md .html .svg too
"""

SHOWN = {cell for exhibit in STUDY.exhibits.values() for cell in exhibit.cells(CELLS)}


rule claims:
    input:
        claimed,
    output:
        multiext("results/{study}/claims", ".csv", ".md"),
        report("results/{study}/claims.html", category="Claims", caption="../notebooks/captions/claims.rst"),
        report("results/{study}/claims.svg", category="Claims", caption="../notebooks/captions/claims.rst"),
    log:
        "results/{study}/logs/claims.log",
    conda:
        "../envs/xlgrid.yaml"
    params:
        study=STUDY_FILE,
        # Not for the command, but so that a change of the claims judges them again.
        claims=[claim.model_dump_json() for claim in STUDY.claims.values()],
    shell:
        "xlgrid claims {params.study:q} 2> {log:q}"


rule report_notebook:
    input:
        # The others are inputs of exhibits.
        cells=[cell.path for cell in CELLS if cell not in SHOWN],
        exhibits=expand("results/{study}/exhibits/{exhibit}.csv", study=STUDY.name, exhibit=STUDY.exhibits),
        claims=[f"results/{STUDY.name}/claims.html"] if STUDY.claims else [],
    output:
        summary="results/{study}/summary.csv",
    log:
        notebook="results/{study}/report.ipynb",
    conda:
        "../envs/xlgrid.yaml"
    params:
        # Not for the notebook, but so that a change of them makes the page again.
        texts=[STUDY.title, STUDY.description],
        study_file=STUDY_FILE,
        results=subpath(output.summary, parent=True),
    notebook:
        "../notebooks/report.ipynb"


rule report_html:
    input:
        "results/{study}/summary.csv",
    output:
        report("results/{study}/report.html", category="Report", caption="../notebooks/captions/report.rst"),
    log:
        "results/{study}/logs/report.log",
    conda:
        "../envs/xlgrid.yaml"
    params:
        notebook=subpath(input[0], parent=True),
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
