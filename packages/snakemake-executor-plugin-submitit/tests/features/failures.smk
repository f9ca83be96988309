# One way to fail per rule, and what Snakemake has to leave behind. The files of rule X lie in out/X, its log is log/X.txt.
WAYS = [
    "kept",
    "unset",
    "pipefail",
    "status",
    "status_nested",
    "killed",
    "before",
    "retried",
    "retried_nested",
    "missing",
    "missing_nested",
    "half",
    "empty",
    "updated",
    "folder",
    "of_old",
    "temp_used",
    "benchmark",
    "run",
    "script",
    "shadow",
    "touched",
    "group_last",
]


rule all:
    input:
        [f"out/{way}/text.txt" for way in WAYS],
        "out/folder/made",


rule kept:
    output:
        "out/kept/text.txt",
    shell:
        "sleep 0.5; echo kept > {output}"


rule unset:
    output:
        "out/unset/text.txt",
    shell:
        "echo $NOT_SET_ANYWHERE > {output}"


rule pipefail:
    output:
        "out/pipefail/text.txt",
    shell:
        "false | cat > {output}"


rule status:
    output:
        "out/status/text.txt",
    log:
        "log/status.txt",
    shell:
        "echo partial > {output}; echo why > {log}; exit 3"


rule status_nested:
    output:
        "out/status_nested/text.txt",
    log:
        "log/status_nested.txt",
    resources:
        shell_exec="bash",
    shell:
        "echo partial > {output}; echo why > {log}; exit 3"


rule killed:
    output:
        "out/killed/text.txt",
    log:
        "log/killed.txt",
    shell:
        "echo partial > {output}; echo why > {log}; kill -9 $$"


rule before:
    output:
        "out/before/text.txt",
    shell:
        "touch {output}; echo before > out/before/undeclared.txt; false"


rule after:
    input:
        "out/before/text.txt",
    output:
        "out/after/text.txt",
    shell:
        "touch {output}"


rule retried:
    output:
        "out/retried/text.txt",
    log:
        "log/retried.txt",
    retries: 2
    shell:
        "echo again >> out/retried/undeclared.txt; echo again >> {log}; false"


rule retried_nested:
    output:
        "out/retried_nested/text.txt",
    retries: 2
    resources:
        shell_exec="bash",
    shell:
        "echo again >> out/retried_nested/undeclared.txt; false"


rule missing:
    output:
        "out/missing/text.txt",
    log:
        "log/missing.txt",
    shell:
        "echo fine > {log}"


rule missing_nested:
    output:
        "out/missing_nested/text.txt",
    resources:
        shell_exec="bash",
    shell:
        "true"


rule half:
    output:
        "out/half/text.txt",
        "out/half/second.txt",
    shell:
        "touch {output[0]}"


rule empty:
    output:
        ensure("out/empty/text.txt", non_empty=True),
    shell:
        "touch {output}"


# Lies there from before, older than the input.
rule updated:
    input:
        "in/text.txt",
    output:
        update("out/updated/text.txt"),
    shell:
        "echo more >> {output}; false"


rule folder:
    output:
        "out/folder/text.txt",
        directory("out/folder/made"),
    shell:
        "mkdir {output[1]}; touch {output[1]}/x; false"


# Lies there from before, too, with its log and its benchmark.
rule of_old:
    input:
        "in/text.txt",
    output:
        "out/of_old/text.txt",
    log:
        "log/of_old.txt",
    benchmark:
        "bench/of_old.tsv"
    shell:
        "test ! -e {output}; test ! -e {log}; exit 1"


rule temp_made:
    output:
        temp("out/temp_used/temporary.txt"),
    shell:
        "touch {output}"


rule temp_used:
    input:
        "out/temp_used/temporary.txt",
    output:
        "out/temp_used/text.txt",
    shell:
        "false"


rule benchmark:
    output:
        "out/benchmark/text.txt",
    benchmark:
        "bench/benchmark.tsv"
    shell:
        "exit 4"


rule run:
    output:
        "out/run/text.txt",
    run:
        open(output[0], "w").close()
        raise ValueError("from a run block")


rule script:
    output:
        "out/script/text.txt",
    log:
        "log/script.txt",
    script:
        "failing.py"


rule shadow:
    output:
        "out/shadow/text.txt",
    log:
        "log/shadow.txt",
    shadow:
        "minimal"
    shell:
        "touch {output}; echo why > {log}; false"


rule touched:
    output:
        touch("out/touched/text.txt"),
    shell:
        "false"


rule group_first:
    output:
        "out/group_last/first.txt",
    group:
        "of-two"
    shell:
        "echo first > {output}"


rule group_last:
    input:
        "out/group_last/first.txt",
    output:
        "out/group_last/text.txt",
    group:
        "of-two"
    shell:
        "touch {output}; false"
