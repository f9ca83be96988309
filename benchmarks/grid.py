"""Time of a dry run over a study of many cells: reading the study, the grid, and Snakemake's plan.

Run from the repository root: python benchmarks/grid.py [--languages 50] [--seeds 4]
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
STUDY = """\
title: Many cells
languages: [{languages}]
encoders:
  tiny: {{mini: {{kind: bert, languages: [{languages}]}}}}
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--languages", type=int, default=50, help="sources, and targets (default: 50)")
    parser.add_argument("--seeds", type=int, default=4, help="(default: 4)")
    arguments = parser.parse_args()
    languages = ", ".join(f"qa{number}" for number in range(1, arguments.languages + 1))
    seeds = ", ".join(str(seed) for seed in range(arguments.seeds))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("rules", "notebooks", "envs"):
            shutil.copytree(ROOT / part, folder / part)
        shutil.copy(ROOT / "Snakefile", folder)
        (folder / "config.yaml").write_text("study: many\nhub_lock: hub.lock.yaml\n")
        (folder / "studies").mkdir()
        (folder / "studies" / "many.yaml").write_text(STUDY.format(languages=languages, seeds=seeds))
        command = [sys.executable, "-m", "snakemake", "--dry-run", "--quiet", "all"]
        start = time.perf_counter()
        subprocess.run(command, cwd=folder, check=True)
        seconds = time.perf_counter() - start
    cells = 2 * arguments.languages**2 * arguments.seeds
    print(f"{cells:,} cells: {seconds:.1f} s, {1e3 * seconds / cells:.2f} ms a cell")


if __name__ == "__main__":
    main()
