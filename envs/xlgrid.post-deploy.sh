#!/usr/bin/env bash
# Snakemake runs this in the new environment, from the working directory, which has to be the root of xlgrid's repository.
set -euo pipefail
if ! [ -e envs/lock.txt ]; then
    echo "error: no envs/lock.txt in $PWD: a workflow that takes in xlgrid as a module runs in an environment in which xlgrid is installed, without --sdm conda" >&2
    exit 1
fi
pip install -r envs/lock.txt
for folder in . packages/*; do pip install --no-deps -e "$folder"; done
