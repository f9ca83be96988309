# Software from elsewhere: bin/ has a conda, an apptainer and a module that do no more than to say that they were here.
rule all:
    input:
        expand("out/{way}/text.txt", way=["conda", "container", "modules", "none"]),


rule conda:
    output:
        "out/conda/text.txt",
    conda:
        workflow.basedir
    shell:
        "echo ${{DEPLOYED:-nothing}} > {output}"


rule container:
    output:
        "out/container/text.txt",
    container:
        "image.sif"
    shell:
        "echo ${{DEPLOYED:-nothing}} > {output}"


rule modules:
    output:
        "out/modules/text.txt",
    envmodules:
        "cuda/12",
    shell:
        "echo ${{DEPLOYED:-nothing}} > {output}"


rule none:
    output:
        "out/none/text.txt",
    shell:
        "echo ${{DEPLOYED:-nothing}} > {output}"
