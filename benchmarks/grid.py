"""CPU time of a dry run over a study of many cells, beside a plain Snakefile with the same files, of `xlgrid status`, and of its page.

The time of a dry run includes reading the study, its grid, and Snakemake's plan, but printing no jobs. The plain Snakefile has literal
paths, `expand`, and neither studies nor input functions: it shows what Snakemake itself takes.

Run from the repository root: python benchmarks/grid.py [--languages 50] [--seeds 4]
"""

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
STUDY = """\
title: Many cells
languages: [{languages}]
encoders:
  tiny: {{scratch: {{kind: bert, languages: [{languages}]}}}}
tasks:
  ner: {{kind: wikiann}}
methods:
  full-ft: {{}}
  bitfit: {{}}
grids:
  main: {{task: [ner], encoder: [tiny], method: [full-ft, bitfit], source: [mono], target: [mono], seed: [{seeds}]}}
exhibits:
  transfer: {{kind: heatmap, title: Transfer, method: full-ft}}
"""
PLAIN = """\
LANGUAGES, SEEDS = {languages!r}.split(", "), {seeds!r}.split(", ")
RUN = "results/many/runs/ner/tiny/{{method}}/{{source}}/seed{{seed}}"
CELL = "results/many/cells/ner/tiny/{{method}}/{{source}}/{{target}}/seed{{seed}}.json"
AXES = dict(method=["full-ft", "bitfit"], source=LANGUAGES, seed=SEEDS)


rule all:
    input:
        "results/many/report.html",
        expand(CELL, target=LANGUAGES, **AXES),
        expand(RUN + "/delta.safetensors", **AXES),


rule meanings:
    output: "results/many/data/ner/meanings.parquet",
    log: "results/many/logs/data/ner/meanings.log",
    shell: "touch {{output}}"


rule data:
    input: "results/many/data/ner/meanings.parquet",
    output: expand("results/many/data/ner/{{{{language}}}}/{{split}}.parquet", split=["train", "dev", "test"]),
    log: "results/many/logs/data/ner/{{language}}.log",
    shell: "touch {{output}}"


rule text:
    output: "results/many/text/{{language}}.parquet",
    log: "results/many/logs/text/{{language}}.log",
    shell: "touch {{output}}"


rule encoder:
    input: expand("results/many/text/{{language}}.parquet", language=LANGUAGES),
    output: expand("results/many/encoders/tiny/{{name}}", name=["config.json", "model.safetensors", "tokenizer.json"]),
    log: "results/many/logs/encoders/tiny.log",
    shell: "touch {{output}}"


rule tokens:
    input:
        "results/many/data/ner/{{language}}/{{split}}.parquet",
        "results/many/encoders/tiny/tokenizer.json",
    output: "results/many/tokens/ner/tiny/{{language}}/{{split}}.arrow",
    log: "results/many/logs/tokens/ner/tiny/{{language}}/{{split}}.log",
    shell: "touch {{output}}"


rule train:
    input:
        "results/many/tokens/ner/tiny/{{source}}/train.arrow",
        "results/many/tokens/ner/tiny/{{source}}/dev.arrow",
        "results/many/encoders/tiny/model.safetensors",
    output: expand(RUN.replace("{{", "{{{{").replace("}}", "}}}}") + "/{{name}}", name=["delta.safetensors", "run.json", "curve.jsonl"]),
    log: "results/many/logs/runs/ner/tiny/{{method}}/{{source}}/seed{{seed}}.log",
    shell: "touch {{output}}"


rule evaluate:
    input:
        RUN + "/delta.safetensors",
        "results/many/encoders/tiny/model.safetensors",
        "results/many/tokens/ner/tiny/{{target}}/test.arrow",
    output: CELL,
    log: "results/many/logs/cells/ner/tiny/{{method}}/{{source}}/{{target}}/seed{{seed}}.log",
    shell: "touch {{output}}"


rule figure:
    input: expand(CELL, target=LANGUAGES, method="full-ft", source=LANGUAGES, seed=SEEDS),
    output: multiext("results/many/exhibits/transfer", ".csv", ".md", ".tex", ".png", ".svg"),
    log: "results/many/logs/exhibits/transfer.log",
    shell: "touch {{output}}"


rule summary:
    input:
        expand(CELL, target=LANGUAGES, method="bitfit", source=LANGUAGES, seed=SEEDS),
        "results/many/exhibits/transfer.csv",
    output: "results/many/summary.csv",
    log: "results/many/report.ipynb",
    shell: "touch {{output}}"


rule report:
    input: "results/many/summary.csv",
    output: "results/many/report.html",
    log: "results/many/logs/report.log",
    shell: "touch {{output}}"
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--languages", type=int, default=50, help="sources, and targets (default: 50)")
    parser.add_argument("--seeds", type=int, default=4, help="(default: 4)")
    arguments = parser.parse_args()
    names = {
        "languages": ", ".join(f"qa{number}" for number in range(1, arguments.languages + 1)),
        "seeds": ", ".join(str(seed) for seed in range(arguments.seeds)),
    }
    cells = 2 * arguments.languages**2 * arguments.seeds
    seconds = {}
    with tempfile.TemporaryDirectory() as name:
        study, plain = Path(name, "study"), Path(name, "plain")
        for part in ("workflow", "rules", "notebooks", "envs"):
            shutil.copytree(ROOT / part, study / part)
        (study / "config.yaml").write_text("study: many\nhub_lock: hub.lock.yaml\n")
        (study / "studies").mkdir()
        (study / "studies" / "many.yaml").write_text(STUDY.format(**names))
        plain.mkdir()
        (plain / "Snakefile").write_text(PLAIN.format(**names))
        for folder in (plain, study):
            # With `--quiet all`, a dry run prints every job all the same; with `--quiet rules progress`, it prints none.
            seconds[folder.name] = cpu(
                folder, "snakemake", "--dry-run", "--quiet", "rules", "progress", "reason", "host"
            )
            print(
                f"{folder.name}: {cells:,} cells: {seconds[folder.name]:.1f} s, {1e3 * seconds[folder.name] / cells:.2f} ms a cell"
            )
        print(f"xlgrid status: {cpu(study, 'xlgrid', 'status', 'many'):.1f} s")
        print(f"its page: {cpu(study, 'xlgrid', 'status', 'many', '--page', 'status.html'):.1f} s")
    print(f"ratio: {seconds['study'] / seconds['plain']:.2f}")


def cpu(folder: Path, *command: str) -> float:
    """CPU seconds, of user and system, of a command of a module in a folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run([sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if result.returncode:
        sys.exit(result.stdout[-4000:] + result.stderr[-4000:])
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
