# The outputs lie in a folder of the workflow's choice, where every job runs.
workdir: "elsewhere"


rule all:
    input:
        "out/plain.txt",
        "out/nested.txt",
    log:
        "log/all.txt",
    shell:
        "cat {input} > out/undeclared.txt; echo done > {log}"


rule plain:
    output:
        "out/plain.txt",
    shell:
        "pwd > {output}"


rule nested:
    output:
        "out/nested.txt",
    resources:
        shell_exec="bash",
    shell:
        "pwd > {output}"
