# The workflow says how every command starts and ends.
shell.prefix("set -eu; greeting=hello; ")
shell.suffix("; true")


rule all:
    output:
        "out/text.txt",
    shell:
        "echo $greeting > {output}; set -o | grep pipefail >> {output}; false | true"
