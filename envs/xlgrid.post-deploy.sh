#!/usr/bin/env bash
# Snakemake runs this in the new environment, from the root of the project.
# For GPUs: XLGRID_LOCK=envs/gpu.txt snakemake --sdm conda ...
set -euo pipefail
pip install -r "${XLGRID_LOCK:-envs/cpu.txt}"
pip install --no-deps -e . -e packages/snakemake-executor-plugin-submitit -e packages/snakemake-logger-plugin-xlgrid
